//! Sources made of sources.

use super::{IntoParallel, Source, private::Sealed};

/// Pairs of the items of two sources of the same length: see [`Loop::zip`](crate::Loop::zip).
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B>(pub(super) A, pub(super) B);

/// Two sources to be [zipped](crate::Loop::zip) have different lengths, or different shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnequalLengths {
    /// The number of items of the loop.
    pub left: usize,
    /// The number of items of what it was to be zipped with.
    pub right: usize,
    shapes: Option<Box<[Vec<usize>; 2]>>,
}

impl UnequalLengths {
    /// The lengths of the axes of both, where both are boxes or arrays. There may be as many items in them all the same.
    pub fn shapes(&self) -> Option<(&[usize], &[usize])> {
        self.shapes.as_deref().map(|[left, right]| (&left[..], &right[..]))
    }
}

impl std::fmt::Display for UnequalLengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { left, right, .. } = self;
        match self.shapes() {
            Some((left, right)) => write!(
                f,
                "a loop of shape {left:?} cannot be zipped with one of shape {right:?}: slice or transpose one of them, or \
                 zip it with a slice, which has no shape"
            ),
            None => write!(
                f,
                "a loop over {left} items cannot be zipped with {right}: cut the longer one to the length of the other"
            ),
        }
    }
}

impl std::error::Error for UnequalLengths {}

impl<A: Source, B: Source> Zip<A, B> {
    pub(crate) fn new<I: IntoParallel<Source = B>>(a: A, b: I) -> Result<Self, UnequalLengths> {
        let b = b.into_source();
        let (left, right) = (a.len(), b.len());
        let shapes = a.extents().zip(b.extents());
        if left == right && shapes.is_none_or(|(left, right)| left == right) {
            return Ok(Self(a, b));
        }
        let shapes = shapes.map(|(left, right)| Box::new([left.to_vec(), right.to_vec()]));
        Err(UnequalLengths { left, right, shapes })
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

    fn extents(&self) -> Option<&[usize]> {
        self.0.extents().or_else(|| self.1.extents())
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

    fn extents(&self) -> Option<&[usize]> {
        self.0.extents()
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
