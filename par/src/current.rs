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
}

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::NOWHERE) };
}

impl Here {
    const NOWHERE: Self = Self { pool: ptr::null(), participant: ALONE, depth: 0 };
}

/// The place of a thread among those that work on a loop, or in a team: see [`participant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

/// Whoever runs a job works on it alone.
pub(crate) const ALONE: Participant = Participant { index: 0, count: 1 };

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
/// use anabranch_par::{ThreadPool, participant};
///
/// assert!(participant().is_none());
/// ThreadPool::global().region(100).run(|_| {
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
    depth() > 0
}

/// How many of them it is inside.
pub(crate) fn depth() -> u32 {
    HERE.get().depth
}

/// Makes `pool` the calling thread's pool until the guard is dropped.
pub(crate) fn enter(pool: &Shared, participant: Participant) -> Entered<'_> {
    let before = HERE.get();
    HERE.set(Here { pool, participant, depth: before.depth + 1 });
    Entered { before, _pool: PhantomData }
}

/// The same, without going inside: see [`ThreadPool::install`].
pub(crate) fn install(pool: &Shared) -> Entered<'_> {
    let before = HERE.get();
    HERE.set(Here { pool, ..before });
    Entered { before, _pool: PhantomData }
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
