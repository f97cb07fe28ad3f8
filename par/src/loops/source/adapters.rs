//! Sources made of sources.

use super::{IntoParallel, Source, private::Sealed};

/// Pairs of the items of two sources of the same length: see [`Loop::zip`](crate::Loop::zip).
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B>(A, B);

/// Two sources to be [zipped](crate::Loop::zip) have different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnequalLengths {
    /// The number of items of the loop.
    pub left: usize,
    /// The number of items of what it was to be zipped with.
    pub right: usize,
}

impl std::fmt::Display for UnequalLengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { left, right } = self;
        write!(
            f,
            "a loop over {left} items cannot be zipped with {right}: cut the longer one to the length of the other"
        )
    }
}

impl std::error::Error for UnequalLengths {}

impl<A: Source, B: Source> Zip<A, B> {
    pub(crate) fn new<I: IntoParallel<Source = B>>(a: A, b: I) -> Result<Self, UnequalLengths> {
        let b = b.into_source();
        let (left, right) = (a.len(), b.len());
        if left == right { Ok(Self(a, b)) } else { Err(UnequalLengths { left, right }) }
    }
}

impl<A, B> Sealed for Zip<A, B> {}

impl<A: Source, B: Source> Source for Zip<A, B> {
    type Item = (A::Item, B::Item);
    type Cursor = (A::Cursor, B::Cursor);

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn cursor(&self, at: usize) -> Self::Cursor {
        (self.0.cursor(at), self.1.cursor(at))
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item {
        // SAFETY: as the caller promises, for both.
        unsafe { (self.0.next(&mut cursor.0), self.1.next(&mut cursor.1)) }
    }
}

/// Items with their numbers: see [`Loop::enumerate`](crate::Loop::enumerate).
#[derive(Clone, Copy, Debug)]
pub struct Enumerate<A>(pub(crate) A);

impl<A> Sealed for Enumerate<A> {}

impl<A: Source> Source for Enumerate<A> {
    type Item = (usize, A::Item);
    type Cursor = (usize, A::Cursor);

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn cursor(&self, at: usize) -> Self::Cursor {
        (at, self.0.cursor(at))
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item {
        let i = cursor.0;
        cursor.0 += 1;
        // SAFETY: as the caller promises.
        (i, unsafe { self.0.next(&mut cursor.1) })
    }
}
