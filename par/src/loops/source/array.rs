//! Arrays of the crate `ndarray`: their elements, or their sub-views along an axis.
//!
//! Elements have the row-major order of their indices, whatever their order in memory. A cursor is a pointer
//! to the next element. An array that lies in memory like a slice is one row, in which the pointer moves by
//! one element. In any other array the pointer moves by the stride of the last axis, and each row needs a new
//! cursor.

use super::{IntoParallel, Shaped, Source, range::next_row};
use crate::loops::{Loop, sealed::Sealed};
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

    /// A loop over the sub-views along `axis`, by exclusive reference.
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

/// The places of the elements of an array, relative to its first element.
#[derive(Clone, Debug)]
struct Layout<D> {
    dim: D,
    /// Negative strides wrap around, as in `ndarray` itself.
    strides: D,
    len: usize,
    /// Whether elements are contiguous in memory, in row-major order.
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
    fn row_end(&self, at: usize) -> usize {
        if self.standard { usize::MAX } else { next_row(at, self.dim.slice().last().copied().unwrap_or(1)) }
    }

    /// A cursor at item `at`, in an array whose first element is at `start`.
    #[inline]
    fn cursor<A>(&self, start: *mut A, at: usize) -> ArrayCursor<A> {
        if self.standard {
            ArrayCursor { next: start.wrapping_add(at), stride: 1, unit: true }
        } else {
            self.row_cursor(start, at)
        }
    }

    fn row_cursor<A>(&self, start: *mut A, at: usize) -> ArrayCursor<A> {
        let (mut rest, mut offset, mut stride) = (at, 0_usize, 1);
        let axes = self.dim.slice().iter().zip(self.strides.slice()).rev();
        for (axis, (&len, &step)) in axes.enumerate() {
            let len = len.max(1);
            offset = offset.wrapping_add((rest % len).wrapping_mul(step));
            rest /= len;
            if axis == 0 {
                stride = step as isize;
            }
        }
        ArrayCursor { next: start.wrapping_add(offset), stride, unit: stride == 1 }
    }
}

/// A position in a row of an array.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayCursor<A> {
    /// Behind the row's last item it may point anywhere, so it moves by wrapping arithmetic.
    next: *mut A,
    stride: isize,
    /// Whether the stride is 1: then the compiler can use vector instructions.
    unit: bool,
}

impl<A> ArrayCursor<A> {
    /// The address of the item. Moves to the next one.
    #[inline]
    fn next(&mut self) -> *mut A {
        if self.unit { self.step::<true>() } else { self.step::<false>() }
    }

    /// As `next`, if it is known whether the stride is 1.
    #[inline]
    fn step<const UNIT: bool>(&mut self) -> *mut A {
        let item = self.next;
        self.next = item.wrapping_offset(if UNIT { 1 } else { self.stride });
        item
    }
}

/// The elements of an array, by shared reference.
pub struct Elements<'s, A, D> {
    start: *mut A,
    layout: Layout<D>,
    _borrow: PhantomData<&'s A>,
}

/// The elements of an array, by exclusive reference.
pub struct ElementsMut<'s, A, D> {
    start: *mut A,
    layout: Layout<D>,
    _borrow: PhantomData<&'s mut A>,
}

// SAFETY: it is a shared borrow of the array, which may be sent if its elements may be shared.
unsafe impl<A: Sync, D: Send> Send for Elements<'_, A, D> {}
// SAFETY: as above.
unsafe impl<A: Sync, D: Sync> Sync for Elements<'_, A, D> {}
// SAFETY: it is an exclusive borrow of the array, which may be sent if its elements may.
unsafe impl<A: Send, D: Send> Send for ElementsMut<'_, A, D> {}
// SAFETY: through a shared reference only `next` and `step` reach elements, and each element once, so one
// thread borrows it.
unsafe impl<A: Send, D: Sync> Sync for ElementsMut<'_, A, D> {}

impl<'s, A, D: Dimension> Elements<'s, A, D> {
    fn new(array: &'s ArrayRef<A, D>) -> Self {
        Self { start: array.as_ptr().cast_mut(), layout: Layout::new(array), _borrow: PhantomData }
    }
}

impl<'s, A, D: Dimension> ElementsMut<'s, A, D> {
    fn new(array: &'s mut ArrayRef<A, D>) -> Self {
        let layout = Layout::new(array);
        Self { start: array.as_mut_ptr(), layout, _borrow: PhantomData }
    }
}

macro_rules! elements {
    ($([$source:ident, $bound:ident] $item:ty, |$element:ident| $reference:expr);+ $(;)?) => {$(
        impl<A, D> Sealed for $source<'_, A, D> {}

        impl<'s, A: $bound, D: Dimension> Source for $source<'s, A, D> {
            type Item = $item;
            type Cursor = ArrayCursor<A>;

            #[inline]
            fn len(&self) -> usize {
                self.layout.len
            }

            fn extents(&self) -> Option<&[usize]> {
                Some(self.layout.dim.slice())
            }

            #[inline]
            fn row_end(&self, at: usize) -> usize {
                self.layout.row_end(at)
            }

            #[inline]
            fn cursor(&self, at: usize) -> ArrayCursor<A> {
                self.layout.cursor(self.start, at)
            }

            #[inline]
            unsafe fn next(&self, cursor: &mut ArrayCursor<A>) -> $item {
                let $element = cursor.next();
                // SAFETY: the caller asks only for items that exist, so the element is in the array, which is
                // borrowed for 's; and it asks for each item at most once.
                unsafe { $reference }
            }

            #[inline]
            fn is_unit(&self, cursor: &ArrayCursor<A>) -> bool {
                cursor.unit
            }

            #[inline]
            unsafe fn step<const UNIT: bool>(&self, cursor: &mut ArrayCursor<A>) -> $item {
                let $element = cursor.step::<UNIT>();
                // SAFETY: as above.
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
    [Elements, Sync] &'s A, |element| &*element;
    [ElementsMut, Send] &'s mut A, |element| &mut *element;
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
        Elements { start: self.as_ptr().cast_mut(), layout: Layout::new(&self), _borrow: PhantomData }
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
        // SAFETY: the part is in the array, which is borrowed for 's. Parts have no element in common, and
        // the caller asks for each of them once.
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
