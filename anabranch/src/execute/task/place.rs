//! Where a task may run, and which kind of thread runs it.

/// Where a task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a compute worker.
    Compute,
    /// On a host lane, because it may block, or on a thread that waits for the runtime.
    Host,
    /// On a host lane only, because it blocks or must not run on a thread that waits.
    Blocking,
    /// On any thread that finds it ready, because it takes only a moment.
    Inline,
    /// Likewise, and it begins a transfer between nodes: the sooner it begins, the sooner another node goes
    /// on.
    Transfer,
}

/// The kind of thread that runs a task. It decides which task the thread may run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A compute worker.
    Worker,
    /// A host lane.
    Lane,
    /// A thread of the program that waits for this task or for room, or has just submitted it. Other tasks
    /// must not delay it.
    Program,
}

impl Runner {
    /// Whether a thread of this kind may go on with a task for `place`.
    pub(crate) fn takes(self, place: Place) -> bool {
        match place {
            Place::Inline | Place::Transfer => true,
            Place::Compute => self == Self::Worker,
            Place::Host | Place::Blocking => self == Self::Lane,
        }
    }
}
