//! Slices: items are borrows of their elements.

use super::{IntoParallel, Source, private::Sealed};
use std::marker::PhantomData;

/// The elements of a slice, by shared reference.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s, T>(pub(crate) &'s [T]);

impl<T> Sealed for Slice<'_, T> {}

impl<'s, T: Sync> Source for Slice<'s, T> {
    type Item = &'s T;
    type Cursor = usize;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> &'s T {
        let i = *cursor;
        *cursor += 1;
        debug_assert!(i < self.0.len());
        // SAFETY: the caller asks only for items that there are.
        unsafe { self.0.get_unchecked(i) }
    }
}

/// The elements of a slice, by exclusive reference.
#[derive(Debug)]
pub struct SliceMut<'s, T> {
    start: *mut T,
    len: usize,
    _borrow: PhantomData<&'s mut [T]>,
}

// SAFETY: it stands for an exclusive borrow of the slice, which may be sent where its elements may.
unsafe impl<T: Send> Send for SliceMut<'_, T> {}
// SAFETY: through a shared reference only `next` reaches elements, each of them once, so that each is borrowed by one
// thread.
unsafe impl<T: Send> Sync for SliceMut<'_, T> {}

impl<'s, T> SliceMut<'s, T> {
    pub(crate) fn new(slice: &'s mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), _borrow: PhantomData }
    }
}

impl<T> Sealed for SliceMut<'_, T> {}

impl<'s, T: Send> Source for SliceMut<'s, T> {
    type Item = &'s mut T;
    type Cursor = usize;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> &'s mut T {
        let i = *cursor;
        *cursor += 1;
        debug_assert!(i < self.len);
        // SAFETY: the element is in the slice, which is borrowed for 's, and asked for once.
        unsafe { &mut *self.start.add(i) }
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
