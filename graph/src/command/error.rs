//! Errors of launches.

use crate::task::{BufferId, TaskId};
use anabranch_grid::{GridBox, Region};

/// The error for a launch that contradicts itself or the graph. The command graph has not changed.
///
/// Every node gets the same error for the same launch, with one exception: only nodes whose chunks it
/// concerns notice that a mapper that *reads* is [not monotonic](Self::NotMonotonic).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Two pieces of the index space write the same points.
    #[error(
        "{task}: access {access} writes {common} from {} and again from {}; pieces must write disjoint regions",
        .parts[0], .parts[1]
    )]
    OverlappingWrites {
        /// The task.
        task: TaskId,
        /// The position of the access in the launch.
        access: usize,
        /// The two pieces of the index space, on one node or two.
        parts: Box<[GridBox<3>; 2]>,
        /// The points that both parts write.
        common: Box<Region<3>>,
    },
    /// The index space declares writes that none of its pieces declares.
    #[error(
        "{task}: access {access} declares that {part} writes {missing}, but no piece of it does; \
         a writing range mapper must give a chunk the union of what it gives the chunk's parts"
    )]
    InexactWrite {
        /// The task.
        task: TaskId,
        /// The position of the access in the launch.
        access: usize,
        /// The index space.
        part: GridBox<3>,
        /// The points that no piece writes.
        missing: Box<Region<3>>,
    },
    /// A chunk maps to points that the whole index space does not map to.
    #[error(
        "{task}: access {access} maps {part} to {beyond}, which a larger part does not map to; \
         a range mapper must give parts of a chunk parts of the chunk's region"
    )]
    NotMonotonic {
        /// The task.
        task: TaskId,
        /// The position of the access in the launch.
        access: usize,
        /// The part of the index space.
        part: GridBox<3>,
        /// The points that the surrounding part does not map to.
        beyond: Box<Region<3>>,
    },
    /// The task reads points that no node ever wrote.
    #[error("{task} reads {missing} of buffer {}, never written on any node", .buffer.0)]
    NeverWritten {
        /// The task.
        task: TaskId,
        /// The buffer.
        buffer: BufferId,
        /// The points.
        missing: Box<Region<3>>,
    },
    /// A fence or an epoch writes or reduces.
    #[error(
        "{task} is a fence or an epoch and can only read; write or reduce in a task of its own before it"
    )]
    WritingSnapshot {
        /// The task.
        task: TaskId,
    },
}
