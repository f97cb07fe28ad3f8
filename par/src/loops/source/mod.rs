//! What loops run over: sources of items that any participant can reach by their number.
//!
//! [`IntoParallel::par`] makes them of slices, ranges and boxes, [`ParallelSlice`] of parts of slices, and with the feature
//! `ndarray` `ParallelArray` of arrays of any layout. Loops [zip](Loop::zip) and [number](Loop::enumerate) them. The types
//! are here to be named, in the fields of a structure or in what a function returns:
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

    /// The lengths of its axes, the outermost first, where it has more to say than the number of items: a plain sequence,
    /// which has `None`, goes with every source of as many.
    #[doc(hidden)]
    fn extents(&self) -> Option<&[usize]> {
        None
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
/// triples of ranges, whose items are all points of the box in row-major order. With the feature `ndarray` also arrays and
/// their views, whose items are the elements in row-major order, whatever their layout.
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
