//! What the nodes and the recognition of repeated launches compare: the digest of a launch, and its key.
//!
//! Nodes compare their program hashes, a rolling hash of the digests of everything that was submitted, to
//! find out whether they run the same program. The key of a launch finds [launches that
//! repeat](super::memo).

use super::{
    launch::{BufferAccess, Hints, Launch, Work},
    shape::Shape,
    weights::Weights,
};
use crate::rolling_hash::RollingHash;

/// The share of a launch in the program hash, without its task id and effects: the same on every node.
pub(super) fn digest(launch: &Launch, shape: &Shape) -> u64 {
    let mut hash = RollingHash::default();
    hash.add(launch.work.code());
    hash.add_box(&shape.split.space());
    let Hints { tiling, granularity: [rows, columns], pieces, node, leaves, own_regions } = launch.hints;
    let (node, leaves) = (node.map_or(usize::MAX, |node| node.0.into()), leaves.unwrap_or(0));
    hash.add_all([tiling as usize, rows, columns, pieces, leaves, node].map(|word| word as u64));
    own_regions.into_iter().for_each(|regions| hash.add(regions));
    for access in &shape.accesses {
        hash.add(shape.buffers[access.operand].0 << 2 | access.mode as u64);
        hash.add_region(&access.whole);
    }
    for reduction in launch.reductions {
        hash.add(reduction.buffer.0 << 1 | u64::from(reduction.include_current));
    }
    hash.value()
}

/// The key of a launch on this node, whose index space is divided by these weights. Launches that repeat each
/// other have the same key, which is never 0.
pub(super) fn key(launch: &Launch, weights: Option<&Weights>) -> u64 {
    let mut hash = RollingHash::default();
    let space = match launch.work {
        Work::Kernel { space } | Work::HostChunks { space } => Some(space),
        _ => None,
    };
    hash.add(launch.work.code() << 1 | u64::from(space.is_some()));
    if let Some(space) = space {
        hash.add_box(&space);
    }
    weights.into_iter().for_each(|weights| hash.add(weights.hash()));
    for BufferAccess { buffer, mode, mapper } in launch.accesses {
        hash.add_all([buffer.0 << 2 | *mode as u64, mapper.hash()]);
    }
    launch.reductions.iter().for_each(|reduction| hash.add(reduction.buffer.0));
    hash.value().max(1)
}
