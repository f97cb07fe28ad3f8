//! The thief's side of a join.

use super::{
    half::Head,
    local::{self, Running},
};
use crate::{
    current::{self, Participant},
    denormals::in_mode,
    enter::in_chain,
    thread_pool::state::PoolState,
};

/// An idle worker steals a half, if one is offered, ends its search and runs the half.
pub(crate) fn help(pool: &PoolState, worker: usize) -> bool {
    let Some(half) = pool.offers.steal(worker) else { return false };
    pool.sleep.end_search(|| pool.has_work());
    // SAFETY: this thread has just stolen it.
    unsafe { run(pool, half, worker) };
    true
}

/// Runs a half that the calling thread has stolen. Its own offers go to `cell`.
///
/// # Safety
/// As [`Head::run`].
pub(super) unsafe fn run(pool: &PoolState, half: *const Head, cell: usize) {
    let outer = local::with(|local| local.running.get());
    // SAFETY: the half was offered, and its owner waits for the outcome.
    let running = Running { share: unsafe { Head::share(half) }, outer };
    // SAFETY: as above.
    let (flush, context) = unsafe { ((*running.share).flush, (*running.share).context) };
    let _entered = current::enter_for(pool, Participant::NONE, context.held);
    local::with(|local| local.running.set(&running));
    let leave = || local::with(|local| local.running.set(outer));
    // SAFETY: the caller vouches for it. It does not unwind.
    let run = || in_mode(flush, || unsafe { Head::run(half, cell, leave) });
    // SAFETY: the frame that made the half waits for the outcome, after which nothing asks for the chain. A
    // thread that waits and steals a half is in a part of its chain, because the half descends from its own.
    unsafe { in_chain(context.chain, run) };
}
