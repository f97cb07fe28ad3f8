//! Sources: collections whose items any participant can reach by their number.
//!
//! [`IntoParallel::par`] makes them of slices, ranges and boxes, [`ParallelSlice`] of parts of slices, and
//! with the feature `ndarray` `ParallelArray` of arrays of any layout. Loops [zip](Loop::zip) and
//! [number](Loop::enumerate) them. The types are public so that programs can name them, in the fields of a
//! structure or in the result of a function:
//!
//! ```
//! use anabranch_par::{Loop, prelude::*, source::Slice};
//!
//! fn rows(field: &[[f64; 64]]) -> Loop<'_, Slice<'_, [f64; 64]>> {
//!     field.par().min_chunk_size(16)
//! }
//! assert_eq!(rows(&[[0.5; 64]; 2]).map(|row| row.iter().sum::<f64>()).sum(), 64.0);
//! ```

mod adapters;
#[cfg(feature = "ndarray")]
mod array;
mod chunks;
mod range;
#[cfg(feature = "ndarray")]
mod shaped;
mod slice;

pub use adapters::{Enumerate, UnequalLengths, Zip};
#[cfg(feature = "ndarray")]
pub use array::{Elements, ElementsMut, ParallelArray, Subviews, SubviewsMut};
pub use chunks::{Chunks, ChunksMut, ParallelSlice};
pub use range::{Integer, Range1, Range2, Range3};
#[cfg(feature = "ndarray")]
pub use shaped::Shaped;
pub use slice::{Slice, SliceMut};

use super::{Loop, sealed::Sealed};

/// A collection of items `0..len`, each of which can be reached without the items before it.
///
/// Only this crate implements it; for any other indexed collection write `(0..n).par().map(|i| ...)`.
pub trait Source: Sync + Sealed {
    /// The type of the items.
    type Item;
    /// A participant's position in the source.
    #[doc(hidden)]
    type Cursor;

    /// The number of items.
    fn len(&self) -> usize;

    /// Whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lengths of its axes, the outermost first. `None` for a plain sequence, which can be zipped with
    /// every source of the same length.
    #[doc(hidden)]
    fn extents(&self) -> Option<&[usize]> {
        None
    }

    /// The end of the row of item `at`. A cursor gives the items of one row; to look for the end of the row
    /// at each item would cost more than all else.
    #[doc(hidden)]
    #[inline]
    fn row_end(&self, _at: usize) -> usize {
        usize::MAX
    }

    /// A cursor that points to item `at`.
    #[doc(hidden)]
    fn cursor(&self, at: usize) -> Self::Cursor;

    /// The item that the cursor points to. Moves the cursor to the next one.
    ///
    /// # Safety
    /// The cursor points to an item of the row that it began in. Over all cursors, each item is asked for at
    /// most once: an item may be an exclusive borrow.
    #[doc(hidden)]
    unsafe fn next(&self, cursor: &mut Self::Cursor) -> Self::Item;

    /// Whether the items from the cursor on are contiguous in memory, or not in memory at all.
    #[doc(hidden)]
    #[inline]
    fn is_unit(&self, _cursor: &Self::Cursor) -> bool {
        true
    }

    /// As [`next`](Self::next), for a cursor of which it is known whether it [is unit](Self::is_unit). For
    /// loops that are too large for the compiler to make both versions.
    ///
    /// # Safety
    /// As for `next`, and `UNIT` is `is_unit(cursor)`.
    #[doc(hidden)]
    #[inline]
    unsafe fn step<const UNIT: bool>(&self, cursor: &mut Self::Cursor) -> Self::Item {
        // SAFETY: the caller keeps the contract of `next`.
        unsafe { self.next(cursor) }
    }
}

/// Makes a [`Loop`] of a collection: slices, mutable slices, vectors by reference, ranges of integers, and
/// pairs and triples of ranges, whose items are all points of the box in row-major order. With the feature
/// `ndarray` also arrays and their views, whose items are the elements in row-major order, whatever their
/// layout.
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
    /// The type of the source.
    type Source: Source;

    /// The source of its items.
    fn into_source(self) -> Self::Source;

    /// A loop over its items. It runs on the calling thread's pool unless the program chooses
    /// [another](Loop::on).
    #[inline]
    fn par<'a>(self) -> Loop<'a, Self::Source> {
        Loop::new(self.into_source())
    }
}
