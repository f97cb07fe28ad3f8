//! The settings that a loop consults between batches: a token, a deadline, a progress report, statistics.

use super::{Statistics, progress::Reporter};
use crate::CancellationToken;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hooks<'a> {
    pub(super) token: Option<&'a CancellationToken>,
    pub(super) deadline: Option<Instant>,
    /// The reporter, and the least time between two reports.
    pub(super) progress: Option<(Duration, Reporter<'a>)>,
    pub(super) statistics: Option<&'a Statistics>,
}

/// Why a loop ends before its items are done, although none has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    Cancelled,
    DeadlineExceeded,
}

impl Hooks<'_> {
    /// Whether batches must be short, so that the loop looks at its hooks often enough.
    pub(super) fn need_short_batches(&self) -> bool {
        self.token.is_some() || self.deadline.is_some() || self.progress.is_some()
    }

    /// Whether the loop must end now, and why.
    #[inline]
    pub(super) fn interruption(&self) -> Option<Interruption> {
        if self.token.is_some_and(CancellationToken::is_cancelled) {
            Some(Interruption::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Interruption::DeadlineExceeded)
        } else {
            None
        }
    }
}
