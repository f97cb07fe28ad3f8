//! Several steps that begin one transfer together, and may end one by one.

use crate::{
    error::{Cause, Failure},
    execute::task::node::{Completion, Later},
};
use parking_lot::Mutex;
use std::{mem, sync::Arc};

/// Steps of one node that share a transfer, which begins with the last of them.
pub(in crate::execute::nodes) struct JointTransfer {
    steps: usize,
    begun: Mutex<Begun>,
}

#[derive(Default)]
struct Begun {
    /// The completions of the steps that have begun, each with the place of its step among all.
    completions: Vec<(usize, Completion)>,
    /// Why one of the steps was skipped. Then there is no transfer.
    skipped: Option<Cause>,
}

impl JointTransfer {
    pub(in crate::execute::nodes) fn new(steps: usize) -> Self {
        Self { steps, begun: Mutex::default() }
    }

    /// A step begins, whose place among the steps is `at`. If this is the last of them, returns the
    /// completions of all, by place.
    pub(in crate::execute::nodes) fn begin(
        &self,
        at: usize,
        later: Later<'_>,
    ) -> Result<Option<Vec<Completion>>, Cause> {
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
    pub(in crate::execute::nodes) fn skip(&self, why: &Arc<Failure>) {
        let completions = {
            let mut begun = self.begun.lock();
            begun.skipped = Some(why.cause.clone());
            mem::take(&mut begun.completions)
        };
        completions.into_iter().for_each(|(_, completion)| completion.finish(Err(why.cause.clone())));
    }
}

/// Steps that have begun and have not ended, by place. They end one by one, or several at once when the
/// transfer is over.
pub(in crate::execute::nodes) struct Unfinished<T = Completion>(Mutex<Vec<Option<T>>>);

impl<T> Default for Unfinished<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Unfinished<T> {
    /// Keeps the steps, all of which have begun.
    pub(in crate::execute::nodes) fn begin(&self, steps: Vec<T>) {
        *self.0.lock() = steps.into_iter().map(Some).collect();
    }

    /// Takes the step at this place, for the caller to end it. The answer is `None` if the step was taken
    /// before: another thread may have received the completion of all transfers.
    pub(in crate::execute::nodes) fn end(&self, at: usize) -> Option<T> {
        self.0.lock().get_mut(at)?.take()
    }

    /// Takes all steps that are left, each with its place.
    pub(in crate::execute::nodes) fn end_all(&self) -> Vec<(usize, T)> {
        let steps = mem::take(&mut *self.0.lock()).into_iter().enumerate();
        steps.filter_map(|(at, step)| Some((at, step?))).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_once() {
        let steps = Unfinished::default();
        assert_eq!(steps.end(0), None);
        steps.begin(vec!['a', 'b', 'c']);
        assert_eq!((steps.end(1), steps.end(1)), (Some('b'), None));
        assert_eq!(steps.end_all(), [(0, 'a'), (2, 'c')]);
        // One thread holds the report of a part while another thread ends all steps.
        assert_eq!((steps.end(0), steps.end(2), steps.end_all()), (None, None, vec![]));
    }
}
