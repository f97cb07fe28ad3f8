//! Chunks of slices: the items are consecutive parts of a slice.

use super::{IntoParallel, Source, slice::SliceMut};
use crate::loops::{Loop, sealed::Sealed};
use std::marker::PhantomData;

/// Loops over slices by exclusive reference, and over parts of slices.
///
/// ```
/// use anabranch_par::prelude::*;
///
/// let mut values = vec![1, 2, 3, 4, 5];
/// values.par_chunks_mut(2).for_each(|pair| pair.reverse());
/// assert_eq!(values, [2, 1, 4, 3, 5]);
/// let sums: Vec<i32> = values.par_chunks(2).map(|pair| pair.iter().sum()).collect();
/// assert_eq!(sums, [3, 7, 5]);
/// ```
pub trait ParallelSlice<T> {
    /// A loop over the elements, by exclusive reference.
    fn par_mut<'a, 's>(&'s mut self) -> Loop<'a, SliceMut<'s, T>>
    where
        T: Send;

    /// A loop over parts of `size` elements; the last one may be shorter.
    ///
    /// # Panics
    /// If `size` is 0.
    fn par_chunks<'a, 's>(&'s self, size: usize) -> Loop<'a, Chunks<'s, T>>
    where
        T: Sync;

    /// A loop over parts of `size` elements, by exclusive reference.
    ///
    /// # Panics
    /// If `size` is 0.
    fn par_chunks_mut<'a, 's>(&'s mut self, size: usize) -> Loop<'a, ChunksMut<'s, T>>
    where
        T: Send;
}

impl<T> ParallelSlice<T> for [T] {
    #[inline]
    fn par_mut<'a, 's>(&'s mut self) -> Loop<'a, SliceMut<'s, T>>
    where
        T: Send,
    {
        self.par()
    }

    fn par_chunks<'a, 's>(&'s self, size: usize) -> Loop<'a, Chunks<'s, T>>
    where
        T: Sync,
    {
        assert!(size > 0, "chunks of 0 elements: choose a size of at least 1");
        Loop::new(Chunks { slice: self, size })
    }

    fn par_chunks_mut<'a, 's>(&'s mut self, size: usize) -> Loop<'a, ChunksMut<'s, T>>
    where
        T: Send,
    {
        assert!(size > 0, "chunks of 0 elements: choose a size of at least 1");
        Loop::new(ChunksMut { start: self.as_mut_ptr(), len: self.len(), size, _borrow: PhantomData })
    }
}

/// Parts of a slice, by shared reference: see [`ParallelSlice::par_chunks`].
#[derive(Clone, Copy, Debug)]
pub struct Chunks<'s, T> {
    slice: &'s [T],
    size: usize,
}

impl<T> Sealed for Chunks<'_, T> {}

impl<'s, T: Sync> Source for Chunks<'s, T> {
    type Item = &'s [T];
    type Cursor = usize;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> &'s [T] {
        let start = *cursor * self.size;
        *cursor += 1;
        let rest = &self.slice[start..];
        &rest[..self.size.min(rest.len())]
    }
}

/// Parts of a slice, by exclusive reference: see [`ParallelSlice::par_chunks_mut`].
#[derive(Debug)]
pub struct ChunksMut<'s, T> {
    start: *mut T,
    len: usize,
    size: usize,
    _borrow: PhantomData<&'s mut [T]>,
}

// SAFETY: it is an exclusive borrow of the slice, which may be sent if its elements may.
unsafe impl<T: Send> Send for ChunksMut<'_, T> {}
// SAFETY: through a shared reference only `next` reaches elements, and each part once, so one thread borrows
// it.
unsafe impl<T: Send> Sync for ChunksMut<'_, T> {}

impl<T> Sealed for ChunksMut<'_, T> {}

impl<'s, T: Send> Source for ChunksMut<'s, T> {
    type Item = &'s mut [T];
    type Cursor = usize;

    fn len(&self) -> usize {
        self.len.div_ceil(self.size)
    }

    fn cursor(&self, at: usize) -> usize {
        at
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut usize) -> &'s mut [T] {
        let start = *cursor * self.size;
        *cursor += 1;
        debug_assert!(start < self.len);
        // SAFETY: the part is in the slice, which is borrowed for 's. Parts are disjoint, and the caller asks
        // for each once.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), self.size.min(self.len - start)) }
    }
}
