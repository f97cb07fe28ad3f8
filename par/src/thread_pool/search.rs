//! The loop of a worker, apart from the kinds of work: it searches, works, and sleeps when it finds nothing
//! for a while.
//!
//! [`worker`](super::worker) gives it the work of a pool. Loom checks the loop with small work of its own, in
//! `models.rs` and `join/models.rs`.

use super::sleep::Sleep;
use crate::patience::Patience;

/// What one worker looks for.
pub(crate) trait Work {
    /// How many kinds of work there are. Every kind has its turn, so none can keep the others waiting
    /// forever.
    const KINDS: usize;

    /// Looks for work of this kind. If there is some, ends the worker's search, does the work and returns
    /// `true`.
    fn help(&self, kind: usize) -> bool;

    /// Is called after work, before the next search. Returns whether the worker goes on. If not, the loop
    /// ends at once.
    fn goes_on(&self) -> bool {
        true
    }

    /// Whether there is work that any worker may do.
    fn is_left(&self) -> bool;

    /// Whether this worker must not sleep.
    fn keeps_awake(&self) -> bool {
        self.is_left()
    }

    /// Whether the worker, which has found nothing, ends.
    fn is_over(&self) -> bool;
}

/// Searches and works until the work is over. A worker that has found nothing for a while sleeps.
pub(crate) fn search<W: Work>(sleep: &Sleep, worker: usize, idle: &Patience, work: &W) {
    sleep.start_search();
    let mut patience = *idle;
    loop {
        let mut found = false;
        for kind in 0..W::KINDS {
            if !work.help(kind) {
                continue;
            }
            found = true;
            if !work.goes_on() {
                return;
            }
            sleep.start_search();
        }
        if found {
            patience = *idle;
            continue;
        }
        if work.is_over() {
            break;
        }
        if !patience.pause() {
            sleep.sleep(worker, || work.keeps_awake());
            patience = *idle;
        }
    }
    sleep.end_search(|| work.is_left());
}
