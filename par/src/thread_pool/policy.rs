//! How threads of a pool wait.

use crate::patience::Patience;
use std::time::Duration;

/// How threads wait: idle workers, and threads that wait for others at the end of a loop, join, job or scope
/// or at a barrier.
///
/// If the process may use one processor only when the pool is built, no thread spins: it would keep the
/// processor from the thread that it waits for. It yields instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Threads never sleep. Work begins soonest, and every thread keeps its processor busy for as long as the
    /// pool lives. For a machine that runs nothing else.
    Spin,
    /// Threads spin for a moment, yield, and then sleep. [`Builder::spin`](super::Builder::spin) says how
    /// long workers spin.
    #[default]
    Adaptive,
    /// Threads sleep almost at once, and never spin. For a machine that is shared, or if power counts more
    /// than time.
    Passive,
}

impl WaitPolicy {
    /// The patience of a worker that finds no work, on a machine with many processors. `adaptive` is how long
    /// it looks for work under [`Adaptive`](Self::Adaptive).
    pub(super) fn idle(self, adaptive: Duration) -> Patience {
        match self {
            Self::Spin => Patience::looking_for_work(Duration::MAX),
            Self::Adaptive => Patience::looking_for_work(adaptive),
            Self::Passive => Patience::SHORT,
        }
    }

    /// The patience of a thread that waits for other threads, on a machine with many processors.
    pub(super) fn waiting(self) -> Patience {
        match self {
            Self::Spin => Patience::WAITING_AWAKE,
            Self::Adaptive => Patience::WAITING,
            Self::Passive => Patience::SHORT,
        }
    }
}
