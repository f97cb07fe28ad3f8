//! The program hash: a rolling hash of everything that was submitted.
//!
//! Nodes compare their program hashes to find out whether they run the same program, so the hash must be the same on every
//! node, in every run and on every machine. That is why its definition stands here and no library's hasher is used. The
//! same function makes the keys by which a node recognises [launches that repeat](super::replay), for its speed.

use super::{
    launch::{BufferAccess, Hints, Launch, Work},
    shape::Shape,
    weights::Weights,
};
use anabranch_grid::{GridBox, Region};

/// A hash of a sequence of words.
///
/// Each word is combined with the state by exclusive or; a multiplication with an odd number (2^64 divided by the golden
/// ratio) and a rotation spread its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RollingHash(u64);

impl Default for RollingHash {
    fn default() -> Self {
        Self(0x6a09_e667_f3bc_c908)
    }
}

impl RollingHash {
    pub(super) fn value(self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    #[inline]
    pub(super) fn add(&mut self, word: u64) {
        self.0 = ((self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29);
    }

    /// Adds several words at the cost of one: their weighted sum, whose terms the processor computes in parallel.
    #[inline]
    pub(super) fn add_all<const N: usize>(&mut self, words: [u64; N]) {
        let mut weight = 0xd1b5_4a32_d192_ed03u64;
        let mut sum = 0u64;
        for word in words {
            sum = sum.wrapping_add((word ^ word >> 31).wrapping_add(weight >> 17).wrapping_mul(weight));
            weight = weight.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7).wrapping_add(2);
        }
        self.add(sum ^ sum >> 29);
    }

    fn add_box(&mut self, range: &GridBox<3>) {
        let ([a, b, c], [d, e, f]) = (range.min().0, range.max().0);
        self.add_all([a, b, c, d, e, f].map(|at| at as u64));
    }

    fn add_region(&mut self, region: &Region<3>) {
        self.add(region.boxes().len() as u64);
        region.boxes().iter().for_each(|range| self.add_box(range));
    }
}

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

/// The key of a launch on this node, whose index space is divided by these weights. Launches that repeat each other have the same
/// key, which is never 0.
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
