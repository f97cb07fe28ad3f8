//! The elements of a slice while they are merged: they are in the slice, in a buffer, or during a round
//! partly in both.
//!
//! This is the `unsafe` part of sorting. It relies on these invariants, which hold whatever the cuts and the
//! comparison are:
//! - every element is in exactly one [`Merge`] of a round, because they are made by splitting slices;
//! - a [`Merge`] that is dropped, by a panic or because it was not run, moves the remaining elements to their
//!   places;
//! - [`Elements`] that are dropped move everything back to the slice.
//!
//! An element is compared in the place that it is moved from later, and never read there again. So a
//! comparison may change a value in a cell.

use std::{marker::PhantomData, mem::MaybeUninit, ops::Range, ptr};

/// The elements of a slice. Dropping this moves them back to the slice.
pub(super) struct Elements<'s, T> {
    slice: &'s mut [MaybeUninit<T>],
    buffer: Box<[MaybeUninit<T>]>,
    /// Whether the elements are in the buffer. The other place holds bits that have no owner.
    in_buffer: bool,
}

impl<'s, T> Elements<'s, T> {
    pub(super) fn new(slice: &'s mut [T]) -> Self {
        let buffer = Box::new_uninit_slice(slice.len());
        // SAFETY: the layouts are the same. No other code sees the slice before this is dropped, and then all
        // its elements are back.
        let slice = unsafe { &mut *(ptr::from_mut(slice) as *mut [MaybeUninit<T>]) };
        Self { slice, buffer, in_buffer: false }
    }

    pub(super) fn as_slice(&self) -> &[T] {
        let elements: &[MaybeUninit<T>] = if self.in_buffer { &self.buffer } else { self.slice };
        // SAFETY: all elements are here and initialised: `Merge`s move all of them to the other place before
        // the borrow that they hold ends.
        unsafe { &*(ptr::from_ref(elements) as *const [T]) }
    }

    pub(super) fn are_in_buffer(&self) -> bool {
        self.in_buffer
    }

    /// The merges of one round, which move all elements to the other place. `pairs` has the lengths of the
    /// two runs of each pair; the elements behind the last pair are one more run. A pair is merged in pieces
    /// of length `piece`, of which the last may be shorter. `cuts` has the number of elements of each piece
    /// that come from the left run.
    ///
    /// The merges must be run or dropped, not forgotten.
    pub(super) fn merges(
        &mut self,
        pairs: &[(usize, usize)],
        piece: usize,
        cuts: &[usize],
    ) -> impl Iterator<Item = Merge<'_, T>> {
        assert!(piece > 0);
        let (mut from, mut to) = match self.in_buffer {
            false => (&mut *self.slice, &mut *self.buffer),
            true => (&mut *self.buffer, &mut *self.slice),
        };
        let mut merges = Vec::with_capacity(pairs.len() + from.len() / piece + 1);
        let (mut pairs, mut cuts) = (pairs.iter().copied(), cuts.iter().copied());
        // From here on the merges move the elements. Nothing below panics, so all merges are made.
        self.in_buffer = !self.in_buffer;
        while !from.is_empty() {
            let pair = pairs.next().unwrap_or((from.len(), 0));
            let (mut left, mut right, places);
            (left, from) = from.split_at_mut(pair.0.min(from.len()));
            (right, from) = from.split_at_mut(pair.1.min(from.len()));
            (places, to) = to.split_at_mut(left.len() + right.len());
            for to in places.chunks_mut(piece) {
                // There are as many elements as places, so both bounds can be kept.
                let least = to.len().saturating_sub(right.len());
                let most = to.len().min(left.len());
                let cut = cuts.next().unwrap_or(0).clamp(least, most);
                let (l, r);
                (l, left) = left.split_at_mut(cut);
                (r, right) = right.split_at_mut(to.len() - cut);
                // SAFETY: the elements are in `from`, and each is in one merge only. The cut makes the
                // lengths right.
                merges.push(unsafe { Merge::new(l, r, to) });
            }
        }
        merges.into_iter()
    }
}

impl<T> Drop for Elements<'_, T> {
    fn drop(&mut self) {
        if self.in_buffer {
            // SAFETY: the two are different allocations of the same length. From here on the slice owns the
            // elements; the buffer drops none of them.
            unsafe {
                ptr::copy_nonoverlapping(self.buffer.as_ptr(), self.slice.as_mut_ptr(), self.slice.len());
            }
        }
    }
}

/// Two parts of runs that are being merged, from both ends. `left` and `right` are the elements that have not
/// been moved yet, and `to` has as many places.
///
/// Invariant: each of the three lies in one allocation, `to` in another one than the elements, and no other
/// code uses them.
pub(super) struct Merge<'e, T> {
    left: Range<*const T>,
    right: Range<*const T>,
    to: Range<*mut T>,
    _elements: PhantomData<&'e mut [T]>,
}

// SAFETY: it owns its elements, like a `&mut [T]`.
unsafe impl<T: Send> Send for Merge<'_, T> {}

impl<'e, T> Merge<'e, T> {
    /// # Safety
    /// `left` and `right` are initialised, and together as long as `to`. The caller does not use their
    /// elements afterwards.
    unsafe fn new(
        left: &'e mut [MaybeUninit<T>],
        right: &'e mut [MaybeUninit<T>],
        to: &'e mut [MaybeUninit<T>],
    ) -> Self {
        let (left, right, to) = (left.as_ptr_range(), right.as_ptr_range(), to.as_mut_ptr_range());
        Self {
            left: left.start.cast()..left.end.cast(),
            right: right.start.cast()..right.end.cast(),
            to: to.start.cast()..to.end.cast(),
            _elements: PhantomData,
        }
    }

    /// Merges the two parts. Of equal elements the left ones come first.
    pub(super) fn run(mut self, less: &impl Fn(&T, &T) -> bool) {
        loop {
            // Each turn takes two elements, so neither side runs out within this number of turns. The two are
            // independent of each other, so the processor works on both at once.
            let turns = length(&self.left).min(length(&self.right)) / 2;
            if turns == 0 {
                break;
            }
            for _ in 0..turns {
                // SAFETY: neither side is empty, as counted above.
                unsafe {
                    self.take_first(less);
                    self.take_last(less);
                }
            }
        }
        while !self.left.is_empty() && !self.right.is_empty() {
            // SAFETY: neither side is empty.
            unsafe { self.take_first(less) };
        }
        // `drop` moves the rest of one side.
    }

    /// # Safety
    /// Neither side is empty.
    #[inline(always)]
    unsafe fn take_first(&mut self, less: &impl Fn(&T, &T) -> bool) {
        let (left, right) = (self.left.start, self.right.start);
        // SAFETY: both are in range, so they are initialised and belong to this merge, and there is a place.
        // No branch depends on the comparison, because it would be mispredicted half of the time.
        unsafe {
            let from_right = less(&*right, &*left);
            let from = if from_right { right } else { left };
            ptr::copy_nonoverlapping(from, self.to.start, 1);
            self.left.start = left.add(usize::from(!from_right));
            self.right.start = right.add(usize::from(from_right));
            self.to.start = self.to.start.add(1);
        }
    }

    /// # Safety
    /// Neither side is empty.
    #[inline(always)]
    unsafe fn take_last(&mut self, less: &impl Fn(&T, &T) -> bool) {
        // SAFETY: as in `take_first`; the last of a range that is not empty is in it.
        unsafe {
            let (left, right) = (self.left.end.sub(1), self.right.end.sub(1));
            let from_left = less(&*right, &*left);
            let from = if from_left { left } else { right };
            self.to.end = self.to.end.sub(1);
            ptr::copy_nonoverlapping(from, self.to.end, 1);
            self.left.end = self.left.end.sub(usize::from(from_left));
            self.right.end = self.right.end.sub(usize::from(!from_left));
        }
    }
}

impl<T> Drop for Merge<'_, T> {
    fn drop(&mut self) {
        let (left, right) = (length(&self.left), length(&self.right));
        // SAFETY: they fill the places exactly, and the places are in another allocation.
        unsafe {
            ptr::copy_nonoverlapping(self.left.start, self.to.start, left);
            ptr::copy_nonoverlapping(self.right.start, self.to.start.add(left), right);
        }
    }
}

fn length<T>(range: &Range<*const T>) -> usize {
    // SAFETY: each range of a `Merge` lies in one allocation, and its ends never cross. The size of `T` is
    // not 0.
    unsafe { range.end.offset_from_unsigned(range.start) }
}
