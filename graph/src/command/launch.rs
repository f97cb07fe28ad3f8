//! Launches: a task, as every node submits it to its command graph.

use super::{
    mapper::Mapper,
    types::{CommandKind, NodeId},
};
use crate::task::{BufferId, Effect, Mode, TaskId};
use anabranch_grid::GridBox;
use std::fmt;

/// The kind of a task, and the index space that it is executed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// A data-parallel kernel.
    Kernel {
        /// The index space.
        space: GridBox<3>,
    },
    /// A host function for each chunk of an index space.
    HostChunks {
        /// The index space.
        space: GridBox<3>,
    },
    /// A host function that runs once, on node 0 unless a [hint](Hints::node) says otherwise. Its index space
    /// is one point.
    HostOnce,
    /// A host function that runs once on every node. Node `n` is the point `[n, 0, 0]` of the index space.
    Collective,
    /// A snapshot on every node. Its index space is one point, unless each node has [regions of its
    /// own](Hints::own_regions).
    Fence,
    /// An epoch, perhaps with a snapshot on every node. Its index space is that of a fence.
    Epoch,
    /// A horizon.
    Horizon,
}

impl Work {
    /// The only command of every node, for kinds that are not split into chunks.
    pub(super) fn snapshot(&self) -> Option<CommandKind> {
        match self {
            Self::Fence => Some(CommandKind::Fence),
            Self::Epoch => Some(CommandKind::Epoch),
            Self::Horizon => Some(CommandKind::Horizon),
            _ => None,
        }
    }

    /// Whether all nodes divide the index space among them.
    pub(super) fn is_divided(&self, hints: &Hints) -> bool {
        matches!(self, Self::Kernel { .. } | Self::HostChunks { .. }) && hints.node.is_none()
    }

    /// The number of the kind in the program hash.
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
    /// Along axes 0 and 1, into tiles that are as square as possible.
    Tiles,
}

/// How a task is distributed over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hints {
    /// Rows or tiles. Tasks with reductions are always cut into rows.
    pub tiling: Tiling,
    /// Chunks and pieces are cut at multiples of these sizes along axes 0 and 1.
    pub granularity: [usize; 2],
    /// The largest number of pieces into which the chunk of a node is cut, along axis 0. Each piece is
    /// executed by a command of its own, with dependencies of its own: it runs as soon as its own inputs are
    /// there. Pieces change nothing about which node has which points.
    pub pieces: usize,
    /// The node that executes the whole index space.
    pub node: Option<NodeId>,
    /// For tasks with reductions: the largest number of leaves that the index space is cut into;
    /// [`default_leaves`](super::default_leaves) if it is `None`. The result depends on this number but not
    /// on the number of nodes. At most as many nodes as leaves take part.
    pub leaves: Option<usize>,
    /// For a snapshot that is of other regions on each node: a hash of the regions of all nodes, for the
    /// program hash. Node `n` is then the point `[n, 0, 0]` of the index space.
    pub own_regions: Option<u64>,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            tiling: Tiling::Rows,
            granularity: [1, 1],
            pieces: 1,
            node: None,
            leaves: None,
            own_regions: None,
        }
    }
}

/// An access of a task to a buffer.
#[derive(Clone, PartialEq, Eq)]
pub struct BufferAccess {
    /// The buffer.
    pub buffer: BufferId,
    /// Whether the task reads or writes.
    pub mode: Mode,
    /// The region that each chunk accesses.
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
    /// Whether the current contents of the buffer take part: the first leaf then starts from them, the other
    /// leaves from the identity.
    pub include_current: bool,
}

/// A task, as every node submits it to its command graph.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The task's id in the task graph. Ids ascend.
    pub task: TaskId,
    /// The kind of the task and its index space.
    pub work: Work,
    /// How the task is distributed.
    pub hints: Hints,
    /// The accesses to buffers. Accesses that overlap only read; the task graph has checked that.
    pub accesses: &'a [BufferAccess],
    /// The reductions. The task does not access their buffers otherwise.
    pub reductions: &'a [Reduction],
    /// The effects on host objects. Each command of the task has them on its own node's objects.
    pub effects: &'a [Effect],
}

impl Launch<'_> {
    /// Whether the task accesses no buffer.
    pub(super) fn is_without_data(&self) -> bool {
        self.accesses.is_empty() && self.reductions.is_empty()
    }

    /// A task without accesses and effects.
    pub fn new(task: TaskId, work: Work) -> Self {
        Self { task, work, hints: Hints::default(), accesses: &[], reductions: &[], effects: &[] }
    }
}
