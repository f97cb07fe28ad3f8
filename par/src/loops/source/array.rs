//! Arrays of the crate `ndarray`: their elements, or their sub-views along an axis.
//!
//! Elements come in row-major order of the indices, whatever their order in memory. A cursor knows its distance from the
//! array's first element. Where the array lies in memory like a slice, the distance grows by one from item to item;
//! otherwise by the stride of the last axis, and at the end of each row it is worked out anew from the item's number.

use super::{IntoParallel, Shaped, Source, private::Sealed};
use crate::loops::Loop;
use ndarray::{
    ArrayBase, ArrayRef, ArrayView, ArrayViewMut, Axis, Data, DataMut, Dimension, Ix1, RawArrayViewMut,
    RemoveAxis,
};
use std::{fmt, marker::PhantomData};

/// Loops over the elements of arrays by exclusive reference, and over sub-views.
///
/// ```
/// use anabranch_par::prelude::*;
/// use ndarray::{Array2, Axis, array};
///
/// let mut field = Array2::<f64>::ones((2, 3));
/// field.par_axis_mut(Axis(1)).enumerate().for_each(|(j, mut column)| column[0] += j as f64);
/// field.par_mut().for_each(|x| *x *= 2.0);
/// assert_eq!(field, array![[2.0, 4.0, 6.0], [2.0, 2.0, 2.0]]);
/// let largest = field.par_axis(Axis(0)).map(|row| row.par().max().unwrap()).collect();
/// assert_eq!(largest, [6.0, 2.0]);
/// ```
///
/// The loop borrows the array:
///
/// ```compile_fail
/// # use anabranch_par::prelude::*;
/// let mut field = ndarray::Array2::<f64>::ones((2, 3));
/// let loop_ = field.par_mut();
/// field[[0, 0]] = 1.0;
/// loop_.for_each(|x| *x = 0.0);
/// ```
pub trait ParallelArray<A, D: Dimension> {
    /// A loop over the elements in row-major order, by exclusive reference.
    fn par_mut<'a, 's>(&'s mut self) -> Loop<'a, ElementsMut<'s, A, D>>
    where
        A: Send;

    /// A loop over the sub-views along `axis`, from which that axis is gone: the rows of a matrix for axis 0.
    ///
    /// # Panics
    /// If there is no such axis.
    fn par_axis<'a, 's>(&'s self, axis: Axis) -> Loop<'a, Subviews<'s, A, D>>
    where
        A: Sync,
        D: RemoveAxis;

    /// The same, by exclusive reference.
    ///
    /// # Panics
    /// If there is no such axis.
    fn par_axis_mut<'a, 's>(&'s mut self, axis: Axis) -> Loop<'a, SubviewsMut<'s, A, D>>
    where
        A: Send,
        D: RemoveAxis;
}

impl<A, D: Dimension> ParallelArray<A, D> for ArrayRef<A, D> {
    fn par_mut<'a, 's>(&'s mut self) -> Loop<'a, ElementsMut<'s, A, D>>
    where
        A: Send,
    {
        self.par()
    }

    fn par_axis<'a, 's>(&'s self, axis: Axis) -> Loop<'a, Subviews<'s, A, D>>
    where
        A: Sync,
        D: RemoveAxis,
    {
        let len = length(self.shape(), axis);
        Loop::new(Subviews { view: self.view(), axis, len })
    }

    fn par_axis_mut<'a, 's>(&'s mut self, axis: Axis) -> Loop<'a, SubviewsMut<'s, A, D>>
    where
        A: Send,
        D: RemoveAxis,
    {
        let len = length(self.shape(), axis);
        Loop::new(SubviewsMut { view: self.raw_view_mut(), axis, len, _borrow: PhantomData })
    }
}

fn length(shape: &[usize], Axis(axis): Axis) -> usize {
    let axes = shape.len();
    *shape.get(axis).unwrap_or_else(|| panic!("axis {axis} of an array that has {axes}: they count from 0"))
}

/// Where the elements of an array are, in items from its first element.
#[derive(Clone, Debug)]
struct Layout<D> {
    dim: D,
    /// Negative ones wrap around, as in `ndarray` itself.
    strides: D,
    len: usize,
    /// Whether elements follow each other in memory in row-major order.
    standard: bool,
}

impl<D: Dimension> Layout<D> {
    fn new<A>(array: &ArrayRef<A, D>) -> Self {
        let mut strides = D::zeros(array.ndim());
        for (to, &stride) in strides.slice_mut().iter_mut().zip(array.strides()) {
            *to = stride as usize;
        }
        Self { dim: array.raw_dim(), strides, len: array.len(), standard: array.is_standard_layout() }
    }

    #[inline]
    fn walk(&self, at: usize) -> Walk {
        if self.standard {
            Walk { standard: true, offset: at as isize, stride: 1, left: 0, row_end: 0 }
        } else {
            self.walk_strided(at)
        }
    }

    /// Wraps around behind the last item, where there is nothing to be reached.
    #[cold]
    fn walk_strided(&self, at: usize) -> Walk {
        let (dim, strides) = (self.dim.slice(), self.strides.slice());
        let (mut rest, mut offset) = (at, 0_usize);
        for (&len, &stride) in dim.iter().zip(strides).rev() {
            offset = offset.wrapping_add((rest % len.max(1)).wrapping_mul(stride));
            rest /= len.max(1);
        }
        let last = dim.len() - 1;
        let left = dim[last] - at % dim[last].max(1);
        let stride = strides[last] as isize;
        Walk { standard: false, offset: offset as isize, stride, left, row_end: at + left }
    }
}

/// A place in a [`Layout`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// As in the layout: here the compiler sees that it does not change, and makes two loops of one.
    standard: bool,
    offset: isize,
    stride: isize,
    /// The items in this row that are still to come.
    left: usize,
    /// The number of the next row's first item.
    row_end: usize,
}

impl Walk {
    /// Where the item is; moves on.
    #[inline]
    fn next<D: Dimension>(&mut self, layout: &Layout<D>) -> isize {
        let offset = self.offset;
        if self.standard {
            self.offset += 1;
        } else {
            self.left -= 1;
            if self.left > 0 {
                self.offset += self.stride;
            } else {
                *self = layout.walk_strided(self.row_end);
            }
        }
        offset
    }
}

/// The elements of an array, by shared reference.
pub struct Elements<'s, A, D> {
    start: *const A,
    layout: Layout<D>,
    _borrow: PhantomData<&'s A>,
}

/// The elements of an array, by exclusive reference.
pub struct ElementsMut<'s, A, D> {
    start: *mut A,
    layout: Layout<D>,
    _borrow: PhantomData<&'s mut A>,
}

// SAFETY: it stands for a shared borrow of the array, which may be sent where its elements may be shared.
unsafe impl<A: Sync, D: Send> Send for Elements<'_, A, D> {}
// SAFETY: as above.
unsafe impl<A: Sync, D: Sync> Sync for Elements<'_, A, D> {}
// SAFETY: it stands for an exclusive borrow of the array, which may be sent where its elements may.
unsafe impl<A: Send, D: Send> Send for ElementsMut<'_, A, D> {}
// SAFETY: through a shared reference only `next` reaches elements, each of them once, so that each is borrowed by one
// thread.
unsafe impl<A: Send, D: Sync> Sync for ElementsMut<'_, A, D> {}

impl<'s, A, D: Dimension> Elements<'s, A, D> {
    fn new(array: &'s ArrayRef<A, D>) -> Self {
        Self { start: array.as_ptr(), layout: Layout::new(array), _borrow: PhantomData }
    }
}

impl<'s, A, D: Dimension> ElementsMut<'s, A, D> {
    fn new(array: &'s mut ArrayRef<A, D>) -> Self {
        let layout = Layout::new(array);
        Self { start: array.as_mut_ptr(), layout, _borrow: PhantomData }
    }
}

macro_rules! elements {
    ($([$source:ident, $bound:ident] $item:ty, |$start:ident, $offset:ident| $reference:expr);+ $(;)?) => {$(
        impl<A, D> Sealed for $source<'_, A, D> {}

        impl<'s, A: $bound, D: Dimension> Source for $source<'s, A, D> {
            type Item = $item;
            type Cursor = Walk;

            #[inline]
            fn len(&self) -> usize {
                self.layout.len
            }

            fn extents(&self) -> Option<&[usize]> {
                Some(self.layout.dim.slice())
            }

            #[inline]
            fn cursor(&self, at: usize) -> Walk {
                self.layout.walk(at)
            }

            #[inline]
            unsafe fn next(&self, cursor: &mut Walk) -> $item {
                let ($start, $offset) = (self.start, cursor.next(&self.layout));
                // SAFETY: the caller asks only for items that there are, so the element is in the array, which is borrowed
                // for 's; and for each item at most once.
                unsafe { $reference }
            }
        }

        impl<A: $bound, D: Dimension> Shaped for $source<'_, A, D> {
            type Dim = D;

            fn shape(&self) -> D {
                self.layout.dim.clone()
            }
        }

        impl<A, D: fmt::Debug> fmt::Debug for $source<'_, A, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($source)).field("dim", &self.layout.dim).finish_non_exhaustive()
            }
        }
    )+};
}
elements! {
    [Elements, Sync] &'s A, |start, offset| &*start.offset(offset);
    [ElementsMut, Send] &'s mut A, |start, offset| &mut *start.offset(offset);
}

impl<A, D: Clone> Clone for Elements<'_, A, D> {
    fn clone(&self) -> Self {
        Self { start: self.start, layout: self.layout.clone(), _borrow: PhantomData }
    }
}

impl<'s, A: Sync, D: Dimension> IntoParallel for &'s ArrayRef<A, D> {
    type Source = Elements<'s, A, D>;

    fn into_source(self) -> Elements<'s, A, D> {
        Elements::new(self)
    }
}

impl<'s, A: Send, D: Dimension> IntoParallel for &'s mut ArrayRef<A, D> {
    type Source = ElementsMut<'s, A, D>;

    fn into_source(self) -> ElementsMut<'s, A, D> {
        ElementsMut::new(self)
    }
}

impl<'s, A: Sync, S: Data<Elem = A>, D: Dimension> IntoParallel for &'s ArrayBase<S, D> {
    type Source = Elements<'s, A, D>;

    fn into_source(self) -> Elements<'s, A, D> {
        Elements::new(self)
    }
}

impl<'s, A: Send, S: DataMut<Elem = A>, D: Dimension> IntoParallel for &'s mut ArrayBase<S, D> {
    type Source = ElementsMut<'s, A, D>;

    fn into_source(self) -> ElementsMut<'s, A, D> {
        ElementsMut::new(self)
    }
}

impl<'s, A: Sync, D: Dimension> IntoParallel for ArrayView<'s, A, D> {
    type Source = Elements<'s, A, D>;

    fn into_source(self) -> Elements<'s, A, D> {
        Elements { start: self.as_ptr(), layout: Layout::new(&self), _borrow: PhantomData }
    }
}

impl<'s, A: Send, D: Dimension> IntoParallel for ArrayViewMut<'s, A, D> {
    type Source = ElementsMut<'s, A, D>;

    fn into_source(mut self) -> ElementsMut<'s, A, D> {
        ElementsMut { start: self.as_mut_ptr(), layout: Layout::new(&self), _borrow: PhantomData }
    }
}

/// Sub-views of an array along an axis: see [`ParallelArray::par_axis`].
#[derive(Clone)]
pub struct Subviews<'s, A, D> {
    view: ArrayView<'s, A, D>,
    axis: Axis,
    len: usize,
}

impl<A, D> Sealed for Subviews<'_, A, D> {}

impl<'s, A: Sync, D: RemoveAxis> Source for Subviews<'s, A, D> {
    type Item = ArrayView<'s, A, D::Smaller>;
    type Cursor = usize;

    fn len(&self) -> usize {
        self.len
    }

    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> ArrayView<'s, A, D::Smaller> {
        let i = *cursor;
        *cursor += 1;
        self.view.clone().index_axis_move(self.axis, i)
    }
}

/// Sub-views of an array along an axis, by exclusive reference: see [`ParallelArray::par_axis_mut`].
pub struct SubviewsMut<'s, A, D> {
    view: RawArrayViewMut<A, D>,
    axis: Axis,
    len: usize,
    _borrow: PhantomData<&'s mut A>,
}

// SAFETY: as for `ElementsMut`.
unsafe impl<A: Send, D: Send> Send for SubviewsMut<'_, A, D> {}
// SAFETY: as for `ElementsMut`: sub-views are disjoint, and `next` gives each of them once.
unsafe impl<A: Send, D: Sync> Sync for SubviewsMut<'_, A, D> {}

impl<A, D> Sealed for SubviewsMut<'_, A, D> {}

impl<'s, A: Send, D: RemoveAxis> Source for SubviewsMut<'s, A, D> {
    type Item = ArrayViewMut<'s, A, D::Smaller>;
    type Cursor = usize;

    fn len(&self) -> usize {
        self.len
    }

    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> ArrayViewMut<'s, A, D::Smaller> {
        let i = *cursor;
        *cursor += 1;
        let part = self.view.clone().index_axis_move(self.axis, i);
        // SAFETY: the part is in the array, which is borrowed for 's; parts have no element in common, and each is asked
        // for once.
        unsafe { part.deref_into_view_mut() }
    }
}

macro_rules! subviews {
    ($($source:ident, $bound:ident);+) => {$(
        impl<A: $bound, D: RemoveAxis> Shaped for $source<'_, A, D> {
            type Dim = Ix1;

            fn shape(&self) -> Ix1 {
                Ix1(self.len)
            }
        }

        impl<A, D> fmt::Debug for $source<'_, A, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($source)).field("axis", &self.axis).finish_non_exhaustive()
            }
        }
    )+};
}
subviews!(Subviews, Sync; SubviewsMut, Send);
