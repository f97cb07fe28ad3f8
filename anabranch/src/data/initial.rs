//! Initial contents of buffers.

use super::{
    allocation::Allocation,
    element::{Element, Rank, Shape},
};
use anabranch_grid::Extent;

/// Initial contents of a buffer: a slice, an array or a `Vec` (1-D), or an `ndarray` array of 0 to 3
/// dimensions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the initial contents of a buffer",
    label = "not initial contents",
    note = "a buffer is made from a slice, an array or a `Vec` of elements (1-D), or from an `ndarray` array of 0 to 3 dimensions"
)]
pub trait Initial<const D: usize> {
    /// The type of the elements.
    type Element: Element;

    /// The extent of the buffer.
    fn extent(&self) -> Extent<D>;

    /// Copies all elements, in row-major order.
    fn copy_to(&self, target: &mut [Self::Element]);
}

impl<T: Element> Initial<1> for [T] {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([self.len()])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

impl<T: Element, const N: usize> Initial<1> for [T; N] {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([N])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

impl<T: Element> Initial<1> for Vec<T> {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([self.len()])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

macro_rules! initial_from_array {
    ($($rank:literal),*) => {$(
        impl<T, S> Initial<$rank> for ndarray::ArrayBase<S, <Rank as Shape<$rank>>::Dim>
        where
            T: Element,
            S: ndarray::Data<Elem = T>,
        {
            type Element = T;
            fn extent(&self) -> Extent<$rank> {
                Extent(std::array::from_fn(|d| self.shape()[d]))
            }
            fn copy_to(&self, target: &mut [T]) {
                // `iter` is row-major, whatever the layout of the array.
                target.iter_mut().zip(self).for_each(|(to, from)| *to = *from);
            }
        }
    )*};
}

initial_from_array!(0, 1, 2, 3);

/// The filled memory of a new buffer with this extent; `None` if the system has none.
pub(crate) fn filled<const D: usize, I: Initial<D> + ?Sized>(
    initial: &I,
    extent: Extent<D>,
) -> Option<Allocation> {
    let len = extent.checked_len()?;
    let mut memory = Allocation::zeroed(len.checked_mul(size_of::<I::Element>())?)?;
    initial.copy_to(memory.values_mut(len));
    Some(memory)
}
