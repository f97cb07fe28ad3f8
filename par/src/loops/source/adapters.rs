//! Sources made of sources.

use super::{IntoParallel, Source};
use crate::loops::sealed::Sealed;

/// Pairs of the items of two sources of the same length: see [`Loop::zip`](crate::Loop::zip).
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B>(pub(super) A, pub(super) B);

/// The error of a [`zip`](crate::Loop::zip) of two sources that have different lengths or different shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", describe(.left, .right, .shapes))]
pub struct UnequalLengths {
    /// The number of items of the loop.
    pub left: usize,
    /// The number of items of the other one.
    pub right: usize,
    shapes: Option<Box<[Vec<usize>; 2]>>,
}

impl UnequalLengths {
    /// The lengths of the axes of both, if both are boxes or arrays. Their numbers of items may be equal.
    pub fn shapes(&self) -> Option<(&[usize], &[usize])> {
        self.shapes.as_deref().map(|[left, right]| (&left[..], &right[..]))
    }
}

fn describe(left: &usize, right: &usize, shapes: &Option<Box<[Vec<usize>; 2]>>) -> String {
    match shapes.as_deref() {
        Some([left, right]) => format!(
            "a loop of shape {left:?} cannot be zipped with one of shape {right:?}: slice or transpose one of them, or zip it \
             with a slice, which has no shape"
        ),
        None => format!(
            "a loop over {left} items cannot be zipped with {right}: cut the longer one to the length of the other"
        ),
    }
}

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
    fn row_end(&self, at: usize) -> usize {
        self.0.row_end(at).min(self.1.row_end(at))
    }

    #[inline]
    fn cursor(&self, at: usize) -> Self::Cursor {
        (self.0.cursor(at), self.1.cursor(at))
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item {
        // SAFETY: the caller keeps the contract for both sources.
        unsafe { (self.0.next(&mut cursor.0), self.1.next(&mut cursor.1)) }
    }

    #[inline]
    fn is_unit(&self, cursor: &Self::Cursor) -> bool {
        self.0.is_unit(&cursor.0) && self.1.is_unit(&cursor.1)
    }

    #[inline]
    unsafe fn step<const UNIT: bool>(&self, cursor: &mut Self::Cursor) -> Self::Item {
        // SAFETY: the caller keeps the contract for both sources.
        unsafe { (self.0.step::<UNIT>(&mut cursor.0), self.1.step::<UNIT>(&mut cursor.1)) }
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
    fn row_end(&self, at: usize) -> usize {
        self.0.row_end(at)
    }

    #[inline]
    fn cursor(&self, at: usize) -> Self::Cursor {
        (at, self.0.cursor(at))
    }

    #[inline]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item {
        let i = cursor.0;
        cursor.0 += 1;
        // SAFETY: the caller keeps the contract.
        (i, unsafe { self.0.next(&mut cursor.1) })
    }
}
