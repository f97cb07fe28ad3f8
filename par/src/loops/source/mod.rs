//! What loops run over: sources of items that any participant can reach by their number.

mod adapters;
mod chunks;
mod range;
mod slice;

pub use adapters::{Enumerate, UnequalLengths, Zip};
pub use chunks::ParallelSlice;
pub use slice::{Slice, SliceMut};

use super::Loop;

/// Items `0..len`, each of which can be reached without those before it.
///
/// Implemented by this crate's sources only; any other indexed source is `(0..n).par().map(|i| ...)`.
pub trait Source: Sync + private::Sealed {
    /// What the source gives.
    type Item;
    /// Where in the source a participant is.
    #[doc(hidden)]
    type Cursor;

    /// The number of items.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cursor before item `at`.
    #[doc(hidden)]
    fn cursor(&self, at: usize) -> Self::Cursor;

    /// The item behind the cursor, which is moved on.
    ///
    /// # Safety
    /// There is such an item, and over all cursors each is asked for at most once: an item may be an exclusive borrow.
    #[doc(hidden)]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item;
}

pub(crate) mod private {
    pub trait Sealed {}
}

/// What a [`Loop`] can be made of: slices, mutable slices, vectors by reference, ranges of integers, and pairs and
/// triples of ranges, whose items are all points of the box in row-major order.
///
/// ```
/// use anabranch_par::prelude::*;
///
/// let squares: Vec<u64> = (0..4_u64).par().map(|i| i * i).collect();
/// assert_eq!(squares, [0, 1, 4, 9]);
///
/// let mut values = vec![1.0, 2.0, 3.0];
/// values.par_mut().for_each(|x| *x *= 2.0);
/// assert_eq!(values.par().sum(), 12.0);
///
/// let sums: Vec<usize> = (0..2, 0..3).par().map(|(i, j)| 10 * i + j).collect();
/// assert_eq!(sums, [0, 1, 2, 10, 11, 12]);
/// ```
pub trait IntoParallel: Sized {
    /// What its items come from.
    type Source: Source;

    /// The source of its items.
    fn into_source(self) -> Self::Source;

    /// A loop over its items, on the calling thread's pool unless it is told [another](Loop::on).
    #[inline]
    fn par<'a>(self) -> Loop<'a, Self::Source> {
        Loop::new(self.into_source())
    }
}
