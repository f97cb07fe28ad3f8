//! What is told to the graph about a task, and what it answers.

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

/// What a task does with a region of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Its current contents are read.
    Read,
    /// All of it is overwritten; what it held before is not needed.
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

/// A declared access: the union over all chunks of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// The region of it.
    pub region: Region<3>,
    /// What is done there.
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

/// How an effect on a host object is ordered against others on the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// In the order of submission, never at the same time: against every other effect.
    Sequential,
    /// In any order, never at the same time: against other exclusive effects and relaxed ones.
    Exclusive,
    /// In any order, and at the same time: against other relaxed effects.
    Relaxed,
    /// Ordered like a sequential one against every other effect, but it only looks: what comes after it does not depend on
    /// what it does ([`Kind::Anti`]), only on who has changed the object before.
    Observe,
}

impl Order {
    /// Whether it comes after all earlier effects, and before all later ones.
    pub fn is_in_order(self) -> bool {
        matches!(self, Self::Sequential | Self::Observe)
    }
}

/// A declared side effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The object that is touched.
    pub object: ObjectId,
    /// In which order.
    pub order: Order,
}

/// Why one task comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// It reads what the other has written.
    True,
    /// Both touch a host object, or the other is an epoch.
    Serial,
    /// It overwrites what the other still reads.
    Anti,
    /// It overwrites what the other has written.
    Output,
}

/// What a dependency is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A buffer that both access.
    Buffer(BufferId),
    /// A host object that both touch.
    Object(ObjectId),
    /// The graph's own structure: an epoch or a horizon.
    Graph,
}

/// An edge to an earlier task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The earlier task.
    pub on: TaskId,
    /// The strongest reason: true before serial before anti before output.
    pub kind: Kind,
    /// What the reason is about.
    pub origin: Origin,
}

/// The graph's answer to a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// The new task or epoch.
    pub id: TaskId,
    /// The tasks that it comes after: at most one edge each, ascending; at least an epoch or horizon.
    pub dependencies: SmallVec<[Dependency; 4]>,
    /// For each access, in order: which version of the buffer it uses (0 unless the buffer has several).
    pub versions: SmallVec<[u32; 8]>,
    /// The earlier tasks that it must never overlap in time, although either may come first: ascending, none of them
    /// before or after it by dependencies. Empty unless [`Settings::conflicts`](crate::Settings::conflicts) is set.
    pub conflicts: SmallVec<[TaskId; 4]>,
    /// The horizon that the graph has made after this submission, with the next id. `None` unless
    /// [`Settings::horizons`](crate::Settings::horizons) is set.
    pub horizon: Option<Horizon>,
}

impl Submitted {
    /// The answer about the task `id`, as long as nothing is known about it; keeps memory.
    pub(crate) fn clear(&mut self, id: TaskId) {
        self.id = id;
        self.dependencies.clear();
        self.versions.clear();
        self.conflicts.clear();
        self.horizon = None;
    }
}

/// A horizon that the graph has made: a node that does nothing but come after everything before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Its id.
    pub id: TaskId,
    /// The execution front: the tasks that nobody depended on, ascending, all [`Kind::Serial`].
    pub dependencies: Vec<Dependency>,
    /// The horizon or epoch before it. From now on this one stands for everything before *it*: no later submission
    /// depends on or conflicts with anything older.
    pub applied: TaskId,
}

/// A submission that makes no sense. Nothing has changed in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// A part of what an access reads was never written.
    NeverWritten {
        /// Which access of the submission.
        access: usize,
        /// The part that was never written, or not since it was discarded.
        missing: Region<3>,
    },
    /// An access leaves its buffer.
    Outside {
        /// Which access of the submission.
        access: usize,
    },
    /// Two accesses of one task touch a common part of a buffer, and at least one of them writes it.
    Overlap {
        /// Which accesses of the submission.
        accesses: [usize; 2],
        /// The common part.
        common: Region<3>,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverWritten { access, missing } => {
                write!(f, "access {access} reads {missing}, which was never written or was discarded")
            }
            Self::Outside { access } => write!(f, "access {access} leaves its buffer"),
            Self::Overlap { accesses: [a, b], common } => {
                write!(f, "accesses {a} and {b} overlap in {common}")
            }
        }
    }
}

impl std::error::Error for GraphError {}
