//! Ranges of integers, and boxes of two and three dimensions.

use super::{IntoParallel, Source};
use crate::loops::sealed::Sealed;
use std::ops::{Range, RangeInclusive};

/// An integer type whose ranges can be sources.
pub trait Integer: Copy + Send + Sync + private::Count {}

mod private {
    pub trait Count: Sized {
        /// How many numbers are in `start..end`, if a `usize` can hold that.
        fn count(start: Self, end: Self) -> Option<usize>;
        /// The n-th number after `start`.
        fn nth(start: Self, n: usize) -> Self;
    }
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Integer for $type {}
        impl private::Count for $type {
            #[inline]
            fn count(start: $type, end: $type) -> Option<usize> {
                if start >= end { Some(0) } else { usize::try_from(end.checked_sub(start).map_or_else(
                    // The difference of signed numbers may overflow their type.
                    || end as i128 - start as i128, |n| n as i128)).ok() }
            }
            #[inline]
            fn nth(start: $type, n: usize) -> $type {
                start.wrapping_add(n as $type)
            }
        }
    )+};
}
integers!(usize, u64, u32, u16, u8, isize, i64, i32, i16, i8);

fn count<I: Integer>(range: &Range<I>) -> usize {
    I::count(range.start, range.end).expect("a range of more items than can be counted")
}

/// The lengths of a box. All are 0 if it has no points, so that their product never overflows.
fn lengths<const N: usize>(lengths: [usize; N]) -> [usize; N] {
    if lengths.contains(&0) {
        return [0; N];
    }
    let points = lengths.iter().try_fold(1_usize, |points, len| points.checked_mul(*len));
    points.expect("a box of more points than can be counted");
    lengths
}

/// The numbers of a range.
#[derive(Clone, Copy, Debug)]
pub struct Range1<I> {
    start: I,
    len: usize,
}

impl<I> Sealed for Range1<I> {}

impl<I: Integer> Source for Range1<I> {
    type Item = I;
    /// The next number itself. It stays in a register, whereas the start would have to be read again for
    /// every item.
    type Cursor = I;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn cursor(&self, at: usize) -> I {
        I::nth(self.start, at)
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut I) -> I {
        let i = *cursor;
        *cursor = I::nth(i, 1);
        i
    }
}

impl<I: Integer> IntoParallel for Range<I> {
    type Source = Range1<I>;

    #[inline]
    fn into_source(self) -> Range1<I> {
        Range1 { start: self.start, len: count(&self) }
    }
}

impl<I: Integer> IntoParallel for RangeInclusive<I> {
    type Source = Range1<I>;

    #[inline]
    fn into_source(self) -> Range1<I> {
        let (start, end) = self.into_inner();
        let len = if I::count(end, start) == Some(0) {
            count(&(start..end)).checked_add(1).expect("a range of more items than can be counted")
        } else {
            0
        };
        Range1 { start, len }
    }
}

/// The first item of the row behind the one of item `at`, if rows have `len` items.
#[inline]
pub(super) fn next_row(at: usize, len: usize) -> usize {
    at - at.checked_rem(len).unwrap_or(0) + len.max(1)
}

/// The points of a box of two dimensions, in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct Range2<I> {
    start: [I; 2],
    pub(super) len: [usize; 2],
}

impl<I> Sealed for Range2<I> {}

impl<I: Integer> Source for Range2<I> {
    type Item = (I, I);
    type Cursor = [usize; 2];

    fn len(&self) -> usize {
        self.len[0] * self.len[1]
    }

    fn extents(&self) -> Option<&[usize]> {
        Some(&self.len)
    }

    #[inline]
    fn row_end(&self, at: usize) -> usize {
        next_row(at, self.len[1])
    }

    fn cursor(&self, at: usize) -> [usize; 2] {
        let row = self.len[1].max(1);
        [at / row, at % row]
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut [usize; 2]) -> (I, I) {
        let [i, j] = *cursor;
        cursor[1] += 1;
        (I::nth(self.start[0], i), I::nth(self.start[1], j))
    }
}

impl<I: Integer> IntoParallel for (Range<I>, Range<I>) {
    type Source = Range2<I>;

    fn into_source(self) -> Range2<I> {
        let len = lengths([count(&self.0), count(&self.1)]);
        Range2 { start: [self.0.start, self.1.start], len }
    }
}

/// The points of a box of three dimensions, in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct Range3<I> {
    start: [I; 3],
    pub(super) len: [usize; 3],
}

impl<I> Sealed for Range3<I> {}

impl<I: Integer> Source for Range3<I> {
    type Item = (I, I, I);
    type Cursor = [usize; 3];

    fn len(&self) -> usize {
        self.len[0] * self.len[1] * self.len[2]
    }

    fn extents(&self) -> Option<&[usize]> {
        Some(&self.len)
    }

    #[inline]
    fn row_end(&self, at: usize) -> usize {
        next_row(at, self.len[2])
    }

    fn cursor(&self, at: usize) -> [usize; 3] {
        let row = self.len[2].max(1);
        let plane = (self.len[1] * row).max(1);
        [at / plane, at % plane / row, at % row]
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut [usize; 3]) -> (I, I, I) {
        let [i, j, k] = *cursor;
        cursor[2] += 1;
        (I::nth(self.start[0], i), I::nth(self.start[1], j), I::nth(self.start[2], k))
    }
}

impl<I: Integer> IntoParallel for (Range<I>, Range<I>, Range<I>) {
    type Source = Range3<I>;

    fn into_source(self) -> Range3<I> {
        let len = lengths([count(&self.0), count(&self.1), count(&self.2)]);
        Range3 { start: [self.0.start, self.1.start, self.2.start], len }
    }
}
