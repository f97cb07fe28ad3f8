//! What the calling thread is in the middle of: the pool it works for, its place in a region, and whether it may wait.
//!
//! A loop that is opened inside another one runs on the same pool, so that nesting never adds threads; that pool is
//! found here. Everything is in cells without a destructor, so it may be used at any time, also while a thread ends.

use crate::thread_pool::{Shared, ThreadPool};
use std::{cell::Cell, marker::PhantomData, ptr, sync::OnceLock};

/// Each field has a cell of its own: a processor waits where it reads at once what it has just written in parts.
struct Here {
    pool: Cell<*const Shared>,
    participant: Cell<Participant>,
    /// How many regions, jobs and scopes this thread is inside.
    depth: Cell<u32>,
    /// How many values of pools (and critical sections) are held by this thread, and by those whose work it does.
    held: Cell<u32>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            pool: Cell::new(ptr::null()),
            participant: Cell::new(Participant::NONE),
            depth: Cell::new(0),
            held: Cell::new(0),
        }
    };
}

/// The place of a thread among those that work on a loop, or in a team: see [`participant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Participant {
    /// Of a thread that works on no loop.
    pub(crate) const NONE: Self = Self { index: 0, count: 0 };

    /// From 0 (the thread that opened the loop) to [`count`](Self::count) - 1; no two participants of one loop have the
    /// same.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// How many participants the loop may have; fewer take part where threads are busy elsewhere.
    pub fn count(self) -> usize {
        self.count as usize
    }
}

/// The calling thread's place in the innermost loop that it is working on; `None` outside of all loops.
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
    let participant = HERE.with(|here| here.participant.get());
    (participant.count > 0).then_some(participant)
}

/// The calling thread's pool; null where it works for none.
#[inline]
pub(crate) fn pool() -> *const Shared {
    HERE.with(|here| here.pool.get())
}

/// Whether the calling thread is inside a region, a job or a scope of any pool.
#[inline]
pub(crate) fn is_inside() -> bool {
    depth() > 0
}

/// How many of them it is inside.
#[inline]
pub(crate) fn depth() -> u32 {
    HERE.with(|here| here.depth.get())
}

/// Makes `pool` the calling thread's pool, and takes it inside, until the guard is dropped.
#[inline]
pub(crate) fn enter(pool: &Shared, participant: Participant) -> Entered<'_> {
    let _installed = install(pool);
    HERE.with(|here| {
        here.depth.set(here.depth.get() + 1);
        Entered { before: here.participant.replace(participant), _installed }
    })
}

/// The same for a join or a scope that the calling thread opens: its place in a loop around it stays.
pub(crate) fn enter_here(pool: &Shared) -> Entered<'_> {
    enter(pool, HERE.with(|here| here.participant.get()))
}

/// The same for work that another thread waits for, and that counts as holding what that one holds.
pub(crate) fn enter_for(pool: &Shared, participant: Participant, held: Held) -> EnteredFor<'_> {
    let before = Held(HERE.with(|here| here.held.replace(here.held.get().max(held.0))));
    EnteredFor { before, _entered: enter(pool, participant) }
}

/// Restores all that was before, and what was held.
#[must_use]
#[derive(Debug)]
pub(crate) struct EnteredFor<'p> {
    before: Held,
    _entered: Entered<'p>,
}

impl Drop for EnteredFor<'_> {
    fn drop(&mut self) {
        HERE.with(|here| here.held.set(self.before.0));
    }
}

/// How many values of pools a thread holds; a critical section that it is inside of counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held(u32);

impl Held {
    /// For work that nobody waits for.
    pub(crate) const NOTHING: Self = Self(0);
}

/// What the calling thread holds.
#[inline]
pub(crate) fn held() -> Held {
    HERE.with(|here| Held(here.held.get()))
}

/// Whether the calling thread holds a value of a pool, or a thread does that waits for its work.
pub(crate) fn is_holding() -> bool {
    held().0 > 0
}

/// The calling thread holds a value of a pool, or is inside a critical section, as long as this lives.
#[derive(Debug)]
pub(crate) struct Holding(PhantomData<*const ()>);

impl Holding {
    pub(crate) fn begin() -> Self {
        HERE.with(|here| here.held.set(here.held.get() + 1));
        Self(PhantomData)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HERE.with(|here| here.held.set(here.held.get().saturating_sub(1)));
    }
}

/// Makes `pool` the calling thread's pool until the guard is dropped, without going inside: see [`ThreadPool::install`].
#[inline]
pub(crate) fn install(pool: &Shared) -> Installed<'_> {
    Installed { before: HERE.with(|here| here.pool.replace(pool)), _pool: PhantomData }
}

/// Restores the pool that was before. It borrows the pool: a pointer in [`HERE`] never outlives what it points to. It must be
/// dropped in the frame that made it, so it stays inside this crate and is never forgotten.
#[must_use]
#[derive(Debug)]
pub(crate) struct Installed<'p> {
    before: *const Shared,
    _pool: PhantomData<&'p Shared>,
}

/// Restores all that was before.
#[must_use]
#[derive(Debug)]
pub(crate) struct Entered<'p> {
    before: Participant,
    _installed: Installed<'p>,
}

impl Drop for Installed<'_> {
    #[inline]
    fn drop(&mut self) {
        HERE.with(|here| here.pool.set(self.before));
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        HERE.with(|here| {
            here.participant.set(self.before);
            here.depth.set(here.depth.get() - 1);
        });
    }
}

/// Calls `f` with the calling thread's pool: the one it works for, or else the [global](ThreadPool::global) one.
#[inline]
pub(crate) fn with_pool<R>(f: impl FnOnce(&Shared) -> R) -> R {
    let pool = HERE.with(|here| here.pool.get());
    if pool.is_null() {
        return f(ThreadPool::global().shared());
    }
    // SAFETY: set by a guard further up on this thread's stack, which borrows the pool.
    f(unsafe { &*pool })
}

static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();

/// The pool of all threads that work for no other.
pub(crate) fn global() -> &'static ThreadPool {
    GLOBAL.get_or_init(|| match ThreadPool::builder().build() {
        Ok(pool) => pool,
        Err(error) => panic!("the global thread pool could not be started: {error}"),
    })
}
