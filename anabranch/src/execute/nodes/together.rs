//! Several steps that begin one transfer together.

use crate::{
    error::{Cause, Failure},
    execute::task::later::{Completion, Later},
};
use parking_lot::Mutex;
use std::{mem, sync::Arc};

/// Steps of one node that share a transfer, which begins with the last of them.
pub(super) struct Together {
    steps: usize,
    begun: Mutex<Begun>,
}

#[derive(Default)]
struct Begun {
    /// Of the steps that have begun, each with its place among all.
    completions: Vec<(usize, Completion)>,
    /// Why one of the steps was skipped. Then there is no transfer.
    skipped: Option<Cause>,
}

impl Together {
    pub(super) fn new(steps: usize) -> Self {
        Self { steps, begun: Mutex::default() }
    }

    /// A step begins, whose place among the steps is `at`. If this is the last of them, returns the completions of all, by place.
    pub(super) fn begin(&self, at: usize, later: Later<'_>) -> Result<Option<Vec<Completion>>, Cause> {
        let mut begun = self.begun.lock();
        if let Some(cause) = &begun.skipped {
            return Err(cause.clone());
        }
        begun.completions.push((at, later.completion()));
        if begun.completions.len() < self.steps {
            return Ok(None);
        }
        let mut completions = mem::take(&mut begun.completions);
        completions.sort_unstable_by_key(|(at, _)| *at);
        Ok(Some(completions.into_iter().map(|(_, completion)| completion).collect()))
    }

    /// A step is skipped, and so are the others.
    pub(super) fn skip(&self, why: &Arc<Failure>) {
        let completions = {
            let mut begun = self.begun.lock();
            begun.skipped = Some(why.cause.clone());
            mem::take(&mut begun.completions)
        };
        completions.into_iter().for_each(|(_, completion)| completion.finish(Err(why.cause.clone())));
    }
}
