//! What the command graph is told about a task.

use super::types::NodeId;
use crate::task::{BufferId, Effect, Mode, TaskId};
use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, Region};
use std::{fmt, sync::Arc};

/// A range mapper with the buffer's extent built in, and all dimensions padded to three.
///
/// It must be monotonic (a part of a chunk maps to a part of the chunk's region), and give the same answer every time.
/// Equal pointers are taken for equal mappers: a program that submits the same `Arc` again saves work.
pub type Mapper = Arc<dyn Fn(&Chunk<3>) -> Region<3> + Send + Sync>;

/// A range mapper of any dimensions, for a buffer of this extent.
///
/// ```
/// use anabranch_graph::command::erase;
/// use anabranch_grid::{Chunk, Extent, GridBox, neighborhood};
/// let mapper = erase(neighborhood([1]), Extent([10]));
/// let chunk = Chunk { range: GridBox::new(4, 6), global: GridBox::full(10) };
/// let chunk = Chunk { range: chunk.range.cast(), global: chunk.global.cast() };
/// assert_eq!(mapper(&chunk), GridBox::new([3, 0, 0], [7, 1, 1]).into());
/// ```
pub fn erase<const K: usize, const B: usize>(
    mapper: impl RangeMapper<K, B> + 'static,
    extent: Extent<B>,
) -> Mapper {
    Arc::new(move |chunk| {
        let chunk = Chunk { range: chunk.range.cast::<K>(), global: chunk.global.cast::<K>() };
        mapper.map(&chunk, extent).cast()
    })
}

/// What kind of task it is, and what it is executed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// A data-parallel kernel.
    Kernel {
        /// The points.
        space: GridBox<3>,
    },
    /// A host function for each chunk of an index space.
    HostChunks {
        /// The points.
        space: GridBox<3>,
    },
    /// A host function once, on node 0 unless a [hint](Hints::node) says otherwise. Its index space is one point.
    HostOnce,
    /// A host function once on every node. Node `n` is the point `[n, 0, 0]` of the index space.
    Collective,
    /// A snapshot on every node. Its index space is one point.
    Fence,
    /// An epoch, perhaps with a snapshot on every node. Its index space is one point.
    Epoch,
    /// A horizon.
    Horizon,
}

impl Work {
    /// A number for each kind.
    pub(super) fn code(&self) -> u64 {
        match self {
            Self::Kernel { .. } => 5,
            Self::HostChunks { .. } => 6,
            Self::HostOnce => 7,
            Self::Collective => 8,
            Self::Fence => 9,
            Self::Epoch => 10,
            Self::Horizon => 11,
        }
    }
}

/// How an index space is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tiling {
    /// Along axis 0.
    #[default]
    Rows,
    /// Along axes 0 and 1, into tiles that are nearly square.
    Tiles,
}

/// How a task is shared out over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hints {
    /// Rows or tiles; tasks with reductions are always cut into rows.
    pub tiling: Tiling,
    /// Chunks are cut at multiples of these, along axes 0 and 1.
    pub granularity: [usize; 2],
    /// How many chunks each node gets (oversubscription).
    pub chunks_per_node: usize,
    /// All chunks go to this node.
    pub node: Option<NodeId>,
    /// For tasks with reductions: the most leaves that the index space is cut into. The result depends on it, and not on
    /// the number of nodes; no more nodes than leaves take part.
    pub leaves: usize,
}

impl Default for Hints {
    fn default() -> Self {
        Self { tiling: Tiling::Rows, granularity: [1, 1], chunks_per_node: 1, node: None, leaves: 64 }
    }
}

/// An access of a task to a buffer.
#[derive(Clone)]
pub struct BufferAccess {
    /// The buffer.
    pub buffer: BufferId,
    /// What is done.
    pub mode: Mode,
    /// Where each chunk does it.
    pub mapper: Mapper,
}

impl fmt::Debug for BufferAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.mode, self.buffer)
    }
}

/// A reduction of a task to a whole buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// The buffer.
    pub buffer: BufferId,
    /// Whether what the buffer holds takes part: the first leaf starts from it, where others start from the identity.
    pub include_current: bool,
}

/// A task, as every node tells it to its command graph.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The task's number in the task graph. Numbers ascend.
    pub task: TaskId,
    /// What kind of task it is.
    pub work: Work,
    /// How it is shared out.
    pub hints: Hints,
    /// The buffers that it accesses; accesses that overlap only read, as the task graph has made sure.
    pub accesses: &'a [BufferAccess],
    /// The buffers that it reduces to; it does not access them otherwise.
    pub reductions: &'a [Reduction],
    /// The host objects that it touches: each node's own, by each of the task's commands there.
    pub effects: &'a [Effect],
}

impl Launch<'_> {
    /// A task without any access.
    pub fn new(task: TaskId, work: Work) -> Self {
        Self { task, work, hints: Hints::default(), accesses: &[], reductions: &[], effects: &[] }
    }
}
