//! The leaves of the reductions of a recorded kernel.

use anabranch_grid::GridBox;
use anabranch_kernel::Leaves;

/// The leaves of an index space, or of a chunk that begins and ends at bands.
pub(in crate::submit) fn leaves<const K: usize>(points: &GridBox<K>) -> Leaves {
    let mut extent = [1; 3];
    extent[3 - K..].copy_from_slice(&points.extent().0);
    Leaves::new(K, [[0; 3], extent])
}
