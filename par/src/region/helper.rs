//! The worker's side of a region.

use super::{flushed, slots::RegionSlot};
use crate::{
    current::{self, Participant},
    enter::in_chain,
    thread_pool::state::PoolState,
};

/// Joins an open region, if there is one: ends the worker's search, and works in the region until no unit is
/// left to claim.
pub(crate) fn help(pool: &PoolState) -> bool {
    let Some((index, joined)) = pool.regions.join() else { return false };
    let RegionSlot { slot, counters } = pool.regions.get(index);
    let body = joined.body();
    let unclaimed = || slot.is_joinable() && body.has_unclaimed(counters);
    pool.sleep.end_search(|| unclaimed() || pool.has_work_outside(1 << index));
    let count = body.participants;
    let place = Participant { index: count - joined.ticket() as u32, count };
    let entered = current::enter_for(pool, place, body.context.held);
    // SAFETY: `joined` counts this thread as inside the region.
    let work = || flushed(body.flush, || unsafe { body.participate(counters, current::own_block(pool)) });
    // SAFETY: the opener waits until this thread has left. A worker that looks for work is in no chain.
    unsafe { in_chain(body.context.chain, work) };
    // All units are claimed, so no other worker needs to join.
    slot.shut();
    pool.regions.hide(index);
    drop((joined, entered));
    true
}
