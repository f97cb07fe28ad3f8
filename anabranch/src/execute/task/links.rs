//! Adding and taking what waits for a task to complete.

use super::node::{Callback, DeadLatches, Links, Successors};
use crate::{
    error::Failure,
    events::latch::{Latch, Latches},
};
use std::{mem, sync::Arc};

impl Links {
    /// Adds a latch. Latches for which no thread waits any more must not pile up on a task that runs for
    /// long: some of them are moved to `dead`.
    pub(super) fn add_latch(&mut self, latch: &Arc<Latch>, dead: &mut DeadLatches) {
        latch.add();
        let latch = Arc::clone(latch);
        match &mut self.latch {
            None => self.latch = Some(latch),
            Some(first) if Arc::strong_count(first) == 1 => dead.push(mem::replace(first, latch)),
            Some(_) => {
                let latches = &mut self.others.get_or_insert_default().latches;
                if latches.len() >= 16 && latches.len().is_power_of_two() {
                    dead.extend(latches.extract_if(.., |latch| Arc::strong_count(latch) == 1));
                }
                latches.push(latch);
            }
        }
    }

    /// Takes the callbacks, if there are any.
    #[inline]
    pub(super) fn take_callbacks(&mut self) -> Option<Vec<Callback>> {
        let callbacks = &mut self.others.as_mut()?.callbacks;
        (!callbacks.is_empty()).then(|| mem::take(callbacks))
    }

    /// Takes the latches, if there are any.
    #[inline]
    pub(super) fn take_latches(&mut self) -> Option<Latches> {
        let first = self.latch.take()?;
        let others = self.others.take().map_or_else(Vec::new, |others| others.latches);
        Some(Latches::new(first, others))
    }
}

/// What waited for a task that is done.
pub(crate) struct Completed {
    pub(crate) successors: Successors,
    pub(crate) latches: Option<Latches>,
    /// The failure because of which the task has not written its results.
    pub(crate) poison: Option<Arc<Failure>>,
}
