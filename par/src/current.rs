//! The calling thread's pool, its place in a loop, and how many regions, joins, scopes and jobs it is inside.
//!
//! A loop that is opened inside another one runs on the same pool, so that nesting never adds threads. Such a
//! loop finds its pool here. Everything is in cells without a destructor, so it may be used at any time, also
//! while a thread ends.

use crate::{
    context::{HeldValues, HoldingFor, hold_for},
    thread_pool::state::PoolState,
};
use std::{cell::Cell, marker::PhantomData, ptr};

/// Each field has a cell of its own, because a processor stalls when it loads as one word what it has just
/// stored in parts.
struct Current {
    pool: Cell<*const PoolState>,
    participant: Cell<Participant>,
    /// How many regions, joins, scopes and jobs this thread is inside.
    depth: Cell<u32>,
}

thread_local! {
    static CURRENT: Current = const {
        Current { pool: Cell::new(ptr::null()), participant: Cell::new(Participant::NONE), depth: Cell::new(0) }
    };
}

/// The place of a thread among the threads that work on a loop or form a team: see [`participant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Participant {
    /// The place of a thread that works on no loop.
    pub(crate) const NONE: Self = Self { index: 0, count: 0 };

    /// From 0 (the thread that opened the loop) to [`count`](Self::count) - 1. No two participants of one
    /// loop have the same index.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// How many participants the loop may have. Fewer take part if threads are busy elsewhere.
    pub fn count(self) -> usize {
        self.count as usize
    }
}

/// The calling thread's place in the innermost loop that it works on; `None` outside of all loops.
///
/// ```
/// use anabranch_par::prelude::*;
///
/// assert!(participant().is_none());
/// (0..100).par().for_each(|_| {
///     let me = participant().unwrap();
///     assert!(me.index() < me.count());
/// });
/// ```
pub fn participant() -> Option<Participant> {
    let participant = CURRENT.with(|current| current.participant.get());
    (participant.count > 0).then_some(participant)
}

/// The calling thread's pool; null if it works for none.
#[inline]
pub(crate) fn pool() -> *const PoolState {
    CURRENT.with(|current| current.pool.get())
}

/// Calls `f` with the pool that the calling thread works for, if it works for one.
#[inline]
pub(crate) fn with_installed<R>(f: impl FnOnce(Option<&PoolState>) -> R) -> R {
    // SAFETY: the pointer is null, or was set by a guard further up on this thread's stack, which borrows the
    // pool.
    f(unsafe { pool().as_ref() })
}

/// Whether the calling thread is inside a region, a join, a scope or a job of any pool.
#[inline]
pub(crate) fn is_inside() -> bool {
    depth() > 0
}

/// How many regions, joins, scopes and jobs the calling thread is inside.
#[inline]
pub(crate) fn depth() -> u32 {
    CURRENT.with(|current| current.depth.get())
}

/// The block that the calling thread, which is inside a region of `pool`, claims from first under a static
/// schedule. It is the same one in every region that all threads take part in, so that caches stay warm. In a
/// region of fewer threads it follows from the place in the region, so that no two have the same. The opener
/// begins with block 0.
pub(crate) fn own_block(pool: &PoolState) -> usize {
    match (participant(), pool.worker_index()) {
        (Some(me), _) if me.count() < pool.workers() => me.index(),
        (_, Some(worker)) => worker + 1,
        (_, None) => 0,
    }
}

/// Makes `pool` the calling thread's pool and counts the thread as inside, until the guard is dropped.
#[inline]
pub(crate) fn enter(pool: &PoolState, participant: Participant) -> Entered<'_> {
    let _installed = install(pool);
    Entered { _inside: enter_installed(participant), _installed }
}

/// Enters a join or a scope that the calling thread opens. The thread keeps its place in a loop around it.
pub(crate) fn enter_here(pool: &PoolState) -> Entered<'_> {
    enter(pool, CURRENT.with(|current| current.participant.get()))
}

/// Enters work for another thread, which holds `values` while it waits for that work.
pub(crate) fn enter_for(pool: &PoolState, participant: Participant, values: HeldValues) -> EnteredFor<'_> {
    EnteredFor { _entered: enter(pool, participant), _holding: hold_for(values) }
}

/// Enters a job of the pool that is installed already; a thread that waits for the job holds `values`.
#[inline]
pub(crate) fn enter_job(values: HeldValues) -> EnteredJob {
    EnteredJob { _inside: enter_installed(Participant::NONE), _holding: hold_for(values) }
}

#[inline]
fn enter_installed(participant: Participant) -> Inside {
    CURRENT.with(|current| {
        current.depth.set(current.depth.get() + 1);
        Inside { before: current.participant.replace(participant) }
    })
}

/// Makes `pool` the calling thread's pool until the guard is dropped. The thread does not count as inside:
/// see [`ThreadPool::install`](crate::ThreadPool::install).
#[inline]
pub(crate) fn install(pool: &PoolState) -> Installed<'_> {
    Installed { before: CURRENT.with(|current| current.pool.replace(pool)), _pool: PhantomData }
}

/// Restores the former pool when it is dropped. It borrows the pool, so a pointer in [`CURRENT`] never
/// outlives its target. It must be dropped in the frame that made it, so it stays inside this crate and is
/// never forgotten.
#[must_use]
#[derive(Debug)]
pub(crate) struct Installed<'p> {
    before: *const PoolState,
    _pool: PhantomData<&'p PoolState>,
}

/// Restores the former place and depth when it is dropped.
#[derive(Debug)]
struct Inside {
    before: Participant,
}

/// Restores the former pool, place and depth when it is dropped.
#[must_use]
#[derive(Debug)]
pub(crate) struct Entered<'p> {
    _inside: Inside,
    _installed: Installed<'p>,
}

/// Restores the former pool, place, depth and held values when it is dropped.
#[must_use]
#[derive(Debug)]
pub(crate) struct EnteredFor<'p> {
    _holding: HoldingFor,
    _entered: Entered<'p>,
}

/// Restores the former place, depth and held values when it is dropped.
#[must_use]
#[derive(Debug)]
pub(crate) struct EnteredJob {
    _holding: HoldingFor,
    _inside: Inside,
}

impl Drop for Installed<'_> {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.pool.set(self.before));
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| {
            current.participant.set(self.before);
            current.depth.set(current.depth.get() - 1);
        });
    }
}
