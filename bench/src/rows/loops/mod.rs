//! Parallel loops: items, joins, reductions, scratch memory and sorting.
//!
//! Our side is in [`ours`], a short function per benchmark. The other modules are the peers' side and the
//! shared work. Rayon is called from inside its pool, where it is fastest. Our side and all other peers are
//! called from a foreign thread, which takes part in the work.

mod idle;
mod items;
mod joins;
mod matmulsums;
mod ours;
mod product;
mod reductions;
mod serial;
mod sorting;
mod timing;
mod two_items;
pub(super) mod work;

use crate::row::Row;

pub fn rows() -> Vec<Row> {
    [
        items::rows(),
        two_items::rows(),
        joins::rows(),
        reductions::rows(),
        matmulsums::rows(),
        sorting::rows(),
        idle::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
