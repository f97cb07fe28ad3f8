//! The settings that a loop consults between batches: a token, a deadline, a progress report, statistics.

use super::{progress::Reporter, statistics::Statistics};
use crate::CancellationToken;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::loops) struct Hooks<'a> {
    pub(in crate::loops) token: Option<&'a CancellationToken>,
    pub(in crate::loops) deadline: Option<Instant>,
    /// The reporter, and the least time between two reports.
    pub(in crate::loops) progress: Option<(Duration, Reporter<'a>)>,
    pub(in crate::loops) statistics: Option<&'a Statistics>,
}

/// A function that a loop calls when an item has failed or the loop is interrupted, because batches may be
/// missing from then on.
pub type OnInterrupt<'f> = Option<&'f (dyn Fn() + Sync)>;

/// Why a loop ends before its items are done, although none has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::loops) enum Interruption {
    Cancelled,
    DeadlineExceeded,
}

impl Hooks<'_> {
    /// Whether batches must be short, so that the loop looks at its hooks often enough.
    pub(in crate::loops) fn need_short_batches(&self) -> bool {
        self.token.is_some() || self.deadline.is_some() || self.progress.is_some()
    }

    /// Whether the loop must end now, and why.
    #[inline]
    pub(in crate::loops) fn interruption(&self) -> Option<Interruption> {
        if self.token.is_some_and(CancellationToken::is_cancelled) {
            Some(Interruption::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Interruption::DeadlineExceeded)
        } else {
            None
        }
    }
}
