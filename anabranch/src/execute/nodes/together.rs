//! Several steps with one transfer.

use crate::{
    error::{Cause, Failure},
    execute::task::later::{Completion, Later},
};
use parking_lot::Mutex;
use std::{mem, sync::Arc};

/// Steps of one node that share a transfer: it begins with the last of them, and ends all of them.
pub(super) struct Together {
    steps: usize,
    begun: Mutex<Begun>,
}

#[derive(Default)]
struct Begun {
    /// Of the steps that have begun.
    completions: Vec<Completion>,
    /// Why one of the steps was skipped. Then there is no transfer.
    skipped: Option<Cause>,
}

impl Together {
    pub(super) fn new(steps: usize) -> Self {
        Self { steps, begun: Mutex::default() }
    }

    /// A step begins. Returns the completions of all steps, which end with the transfer, if this is the last of them.
    pub(super) fn begin(&self, later: Later<'_>) -> Result<Option<Vec<Completion>>, Cause> {
        let mut begun = self.begun.lock();
        if let Some(cause) = &begun.skipped {
            return Err(cause.clone());
        }
        begun.completions.push(later.completion());
        if begun.completions.len() < self.steps {
            return Ok(None);
        }
        Ok(Some(mem::take(&mut begun.completions)))
    }

    /// A step is skipped, and so are the others.
    pub(super) fn skip(&self, why: &Arc<Failure>) {
        let completions = {
            let mut begun = self.begun.lock();
            begun.skipped = Some(why.cause.clone());
            mem::take(&mut begun.completions)
        };
        completions.into_iter().for_each(|completion| completion.finish(Err(why.cause.clone())));
    }
}
