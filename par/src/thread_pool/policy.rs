//! How threads of a pool wait.

use crate::region::slot::Patience;
use std::time::Duration;

/// How threads wait: idle workers, and a thread that waits for the other participants at the end of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Threads never sleep. Work begins soonest, and every thread keeps its processor busy for as long as the pool lives. For a
    /// machine that runs nothing else.
    Spin,
    /// Threads spin for a moment ([`Builder::spin`](super::Builder::spin)), then sleep.
    #[default]
    Adaptive,
    /// Threads sleep at once. For a machine that is shared, or if power counts more than time.
    Passive,
}

impl WaitPolicy {
    /// How long a worker looks for work before it sleeps.
    pub(super) fn spin(self, adaptive: Duration) -> Duration {
        match self {
            Self::Spin => Duration::MAX,
            Self::Adaptive => adaptive,
            Self::Passive => Duration::ZERO,
        }
    }

    /// How long the opener of a region looks for the end of its participants before it sleeps.
    pub(super) fn patience(self) -> Patience {
        match self {
            Self::Spin => Patience::ENDLESS,
            Self::Adaptive => Patience::ADAPTIVE,
            Self::Passive => Patience::SHORT,
        }
    }
}
