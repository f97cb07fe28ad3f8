//! Slices: the items are borrows of their elements.

use super::{IntoParallel, Source};
use crate::loops::sealed::Sealed;
use std::marker::PhantomData;

/// The elements of a slice, by shared reference.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s, T>(pub(crate) &'s [T]);

impl<T> Sealed for Slice<'_, T> {}

impl<'s, T: Sync> Source for Slice<'s, T> {
    type Item = &'s T;
    // A pointer instead of a number: the compiler sees that writes of the closure cannot change it.
    type Cursor = *const T;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn cursor(&self, at: usize) -> *const T {
        self.0[at..].as_ptr()
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut *const T) -> &'s T {
        debug_assert!(*cursor < self.0.as_ptr_range().end || size_of::<T>() == 0);
        // SAFETY: the caller asks only for items that exist.
        unsafe {
            let item = &**cursor;
            *cursor = cursor.add(1);
            item
        }
    }
}

/// The elements of a slice, by exclusive reference.
#[derive(Debug)]
pub struct SliceMut<'s, T> {
    start: *mut T,
    len: usize,
    _borrow: PhantomData<&'s mut [T]>,
}

// SAFETY: it is an exclusive borrow of the slice, which may be sent if its elements may.
unsafe impl<T: Send> Send for SliceMut<'_, T> {}
// SAFETY: through a shared reference only `next` reaches elements, and each element once, so one thread
// borrows it.
unsafe impl<T: Send> Sync for SliceMut<'_, T> {}

impl<'s, T> SliceMut<'s, T> {
    pub(crate) fn new(slice: &'s mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), _borrow: PhantomData }
    }
}

impl<T> Sealed for SliceMut<'_, T> {}

impl<'s, T: Send> Source for SliceMut<'s, T> {
    type Item = &'s mut T;
    type Cursor = *mut T;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn cursor(&self, at: usize) -> *mut T {
        assert!(at <= self.len);
        // SAFETY: the pointer is inside the slice, or at its end.
        unsafe { self.start.add(at) }
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut *mut T) -> &'s mut T {
        // SAFETY: the element is in the slice, which is borrowed for 's, and the caller asks for it once.
        unsafe {
            let item = &mut **cursor;
            *cursor = cursor.add(1);
            item
        }
    }
}

macro_rules! by_reference {
    ($($type:ty $(, $n:ident)?);+) => {$(
        impl<'s, T: Sync $(, const $n: usize)?> IntoParallel for &'s $type {
            type Source = Slice<'s, T>;

            #[inline]
            fn into_source(self) -> Slice<'s, T> {
                Slice(self)
            }
        }

        impl<'s, T: Send $(, const $n: usize)?> IntoParallel for &'s mut $type {
            type Source = SliceMut<'s, T>;

            #[inline]
            fn into_source(self) -> SliceMut<'s, T> {
                SliceMut::new(self)
            }
        }
    )+};
}
by_reference!([T]; Vec<T>; [T; N], N);
