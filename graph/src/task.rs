//! The vocabulary of the graphs: ids, accesses, effects, dependencies, answers and errors.

use anabranch_grid::{GridBox, Region};
use smallvec::SmallVec;
use std::fmt;

/// A task, epoch or horizon, by the order of submission; [`TaskId::EPOCH`] is the root of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl TaskId {
    /// The epoch that precedes every task.
    pub const EPOCH: Self = Self(0);
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// A buffer that the graph tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u64);

/// A host object that the graph tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// The way in which a task uses a region of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Its current contents are read.
    Read,
    /// All of it is overwritten; its former contents are not needed.
    Write,
    /// Its current contents are read and changed.
    Update,
}

impl Mode {
    /// Whether the current contents are needed.
    pub fn reads(self) -> bool {
        self != Self::Write
    }

    /// Whether the contents change.
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A declared access of a task to a buffer: the union over all chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// The region of the buffer.
    pub region: Region<3>,
    /// Whether the task reads or writes there.
    pub mode: Mode,
}

impl Access {
    /// A read of a box.
    pub fn read(buffer: BufferId, range: GridBox<3>) -> Self {
        Self { buffer, region: range.into(), mode: Mode::Read }
    }

    /// An overwrite of a box.
    pub fn write(buffer: BufferId, range: GridBox<3>) -> Self {
        Self { buffer, region: range.into(), mode: Mode::Write }
    }

    /// A change of a box.
    pub fn update(buffer: BufferId, range: GridBox<3>) -> Self {
        Self { buffer, region: range.into(), mode: Mode::Update }
    }
}

/// How an effect on a host object is ordered against other effects on the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Ordered by submission against every other effect, and never at the same time.
    Sequential,
    /// In any order with exclusive and relaxed effects, but never at the same time.
    Exclusive,
    /// In any order with relaxed effects, also at the same time.
    Relaxed,
    /// Ordered like a sequential effect, but it only observes: later effects come after it ([`Kind::Anti`])
    /// and do not depend on its success, only on the effects that changed the object before.
    Observe,
}

impl Order {
    /// Whether the effect comes after all earlier effects, and before all later ones.
    pub fn is_in_order(self) -> bool {
        matches!(self, Self::Sequential | Self::Observe)
    }
}

/// A declared effect of a task on a host object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The object.
    pub object: ObjectId,
    /// The order against other effects.
    pub order: Order,
}

/// Why one task comes after another, the strongest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// It reads what the earlier task wrote.
    True,
    /// Both touch a host object, or one of them is an epoch or a horizon.
    Serial,
    /// It overwrites what the earlier task reads.
    Anti,
    /// It overwrites what the earlier task wrote.
    Output,
}

/// The subject of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A buffer that both tasks access.
    Buffer(BufferId),
    /// A host object that both tasks touch.
    Object(ObjectId),
    /// The graph's own structure: an epoch or a horizon.
    Graph,
}

/// An edge to an earlier task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The earlier task.
    pub on: TaskId,
    /// The strongest reason for the edge.
    pub kind: Kind,
    /// The subject of the reason.
    pub origin: Origin,
}

/// The graph's answer to a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// The new task or epoch.
    pub id: TaskId,
    /// The tasks that it comes after: at most one edge to each, ascending. There is at least an edge to an
    /// epoch or horizon. An edge that only says what comes first may be missing, if others imply it.
    pub dependencies: SmallVec<[Dependency; 4]>,
    /// The version of the buffer that each access uses, in order (0 unless the buffer has several).
    pub versions: SmallVec<[u32; 8]>,
    /// The earlier tasks that it must never overlap in time, although either may run first. Ascending,
    /// without tasks that it comes after by dependencies. Empty unless
    /// [`Settings::conflicts`](crate::Settings::conflicts) is set.
    pub conflicts: SmallVec<[TaskId; 4]>,
    /// The horizon that the graph made after this submission, with the next id. `None` unless a horizon was
    /// due and [`Settings::horizons`](crate::Settings::horizons) is set.
    pub horizon: Option<Horizon>,
}

impl Submitted {
    /// Makes this the empty answer for the task `id`, without freeing memory.
    pub(crate) fn clear(&mut self, id: TaskId) {
        self.id = id;
        self.dependencies.clear();
        self.versions.clear();
        self.conflicts.clear();
        self.horizon = None;
    }
}

/// A horizon that the graph made: a node that does nothing but come after everything before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Its id.
    pub id: TaskId,
    /// Edges to the execution front: the tasks that no other task depended on. Ascending, all
    /// [`Kind::Serial`].
    pub dependencies: Vec<Dependency>,
    /// The previous horizon or epoch, which is applied now: it stands for everything before itself, and no
    /// later submission depends on or conflicts with anything older.
    pub applied: TaskId,
}

/// The error for a submission that contradicts itself or the graph. The graph has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An access reads points that were never written.
    #[error("access {access} reads {missing}, which was never written or was discarded")]
    NeverWritten {
        /// The position of the access in the submission.
        access: usize,
        /// The points that were never written, or not since they were discarded.
        missing: Region<3>,
    },
    /// An access leaves its buffer.
    #[error("access {access} leaves its buffer")]
    Outside {
        /// The position of the access in the submission.
        access: usize,
    },
    /// Two accesses of one task overlap in a buffer, and at least one of them writes.
    #[error("accesses {} and {} overlap in {common}", .accesses[0], .accesses[1])]
    Overlap {
        /// The positions of the accesses in the submission.
        accesses: [usize; 2],
        /// The points that both access.
        common: Region<3>,
    },
}
