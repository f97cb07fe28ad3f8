//! What the calling thread is in the middle of: the pool it works for, its place in a region, and whether it may wait.
//!
//! A loop that is opened inside another one runs on the same pool, so that nesting never adds threads; that pool is
//! found here. Everything is in one `Cell` without a destructor, so it may be used at any time, also while a thread ends.

use crate::thread_pool::{Shared, ThreadPool};
use std::{cell::Cell, fmt, marker::PhantomData, ptr, sync::OnceLock};

/// A copy of this is all that a region costs to enter and to leave.
#[derive(Clone, Copy)]
struct Here {
    pool: *const Shared,
    participant: Participant,
    /// How many regions, jobs and scopes this thread is inside.
    depth: u32,
    /// How many values of pools are held by this thread, and by those whose work it does.
    held: u32,
}

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::NOWHERE) };
}

impl Here {
    const NOWHERE: Self =
        Self { pool: ptr::null(), participant: Participant { index: 0, count: 1 }, depth: 0, held: 0 };
}

/// The place of a thread among those that work on a loop, or in a team: see [`participant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Participant {
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
    let here = HERE.get();
    (here.depth > 0).then_some(here.participant)
}

/// Whether the calling thread is inside a region, a job or a scope of any pool.
pub(crate) fn is_inside() -> bool {
    HERE.get().depth > 0
}

/// Makes `pool` the calling thread's pool until the guard is dropped.
pub(crate) fn enter(pool: &Shared, participant: Participant) -> Entered<'_> {
    let before = HERE.get();
    HERE.set(Here { pool, participant, depth: before.depth + 1, ..before });
    Entered { before, _pool: PhantomData }
}

/// The same for work that another thread waits for: it passes on what that one holds.
pub(crate) fn enter_for(pool: &Shared, participant: Participant, held: Held) -> Entered<'_> {
    let entered = enter(pool, participant);
    HERE.set(Here { held: held.0, ..HERE.get() });
    entered
}

/// How many values of pools a thread holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held(u32);

/// What the calling thread holds.
pub(crate) fn held() -> Held {
    Held(HERE.get().held)
}

/// Whether the calling thread holds a value of a pool, or a thread does that waits for its work.
pub(crate) fn is_holding() -> bool {
    HERE.get().held > 0
}

/// The calling thread holds a value of a pool as long as this lives.
#[derive(Debug)]
pub(crate) struct Holding(PhantomData<*const ()>);

impl Holding {
    pub(crate) fn begin() -> Self {
        let here = HERE.get();
        HERE.set(Here { held: here.held + 1, ..here });
        Self(PhantomData)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let here = HERE.get();
        HERE.set(Here { held: here.held.saturating_sub(1), ..here });
    }
}

/// The same, without going inside: see [`ThreadPool::install`].
pub(crate) fn install(pool: &Shared) -> Installed<'_> {
    let before = HERE.get();
    HERE.set(Here { pool, ..before });
    Installed { before: before.pool, _pool: PhantomData }
}

/// Restores the pool and nothing else: what the program holds may be taken or given back meanwhile.
#[must_use]
#[derive(Debug)]
pub(crate) struct Installed<'p> {
    before: *const Shared,
    _pool: PhantomData<(&'p Shared, *const ())>,
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        HERE.set(Here { pool: self.before, ..HERE.get() });
    }
}

/// Restores what was before. It borrows the pool: a pointer in [`HERE`] never outlives what it points to. It must be dropped
/// in the frame that made it, so it stays inside this crate and is never forgotten.
#[must_use]
pub(crate) struct Entered<'p> {
    before: Here,
    _pool: PhantomData<(&'p Shared, *const ())>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        HERE.set(self.before);
    }
}

impl fmt::Debug for Entered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

/// Calls `f` with the calling thread's pool: the one it works for, or else the [global](ThreadPool::global) one.
#[inline]
pub(crate) fn with_pool<R>(f: impl FnOnce(&Shared) -> R) -> R {
    let pool = HERE.get().pool;
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
