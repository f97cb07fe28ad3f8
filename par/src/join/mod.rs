//! Two closures at the same time, where somebody is idle; else one after the other, for hardly more than two calls.
//!
//! A join keeps its second half in its own stack frame and links it into a list of the calling thread ([`local`]): a few
//! stores, no allocation, no atomic operation. One load tells whether anybody is idle. Only then is a half put where
//! others can take it ([`board`]): the oldest, which is the largest. (A thread that has nothing else pending offers its first half
//! in any case, for those who are idle later.) Where that turns out to be in vain, the thread offers nothing for a
//! while ([`backoff`]).
//!
//! ```text
//! owner                                          thief
//! link the half, call the first closure
//!   (somebody is idle) board: offer the oldest
//!                                                board: take; run it; keep the result
//! board: take back ── done: run it here          latch: set the outcome, wake the owner
//!         └─ taken: wait for the outcome
//! ```
//!
//! A thread that waits for a half runs only what descends from that very half: what its thief offers while it runs it
//! ([`Share::take_descendant`](half::Share::take_descendant)). One after the other, that would have run on this stack, at this place. So what the
//! frames below hold (a `RefCell` borrowed, a mutex) meets nothing that it would not meet on one thread.

mod backoff;
pub(crate) mod board;
pub(crate) mod half;
pub(crate) mod latch;
pub(crate) mod local;
#[cfg(all(test, loom))]
mod models;

use crate::{
    ThreadPool, current,
    thread_pool::{Busy, Shared},
};
use half::Half;
use local::Local;
use std::{mem, panic::resume_unwind, ptr};

/// Calls both closures, and returns what they return; `b` at the same time as `a` where a thread of the pool is idle.
///
/// It runs on the pool that the calling thread works for, or else on the [global](ThreadPool::global) one. `a` runs on the
/// calling thread. `b` runs on a worker that is idle, or on the calling thread after `a`. A join costs a few nanoseconds
/// where everybody is busy, so it may be used down to small pieces of work. Halves that are pending are offered when a join
/// begins: the oldest first, and none for a while where that was not worth it. While the calling thread waits for `b`, it
/// may run halves of joins that `b` makes, and nothing else.
///
/// `b` runs in the calling thread's floating-point mode, wherever it runs. In a loop, [`participant`](crate::participant) is `None`
/// in a `b` that another thread runs: that thread is no participant of the loop.
///
/// # Panics
/// If `a` or `b` panics: with the panic of `a`, if both do. The other closure has returned by then, or is not called. And if this
/// process was forked after the pool was built.
///
/// ```
/// use anabranch_par::join;
///
/// fn sum(values: &[u64]) -> u64 {
///     if values.len() <= 1000 {
///         return values.iter().sum();
///     }
///     let (left, right) = values.split_at(values.len() / 2);
///     let (left, right) = join(|| sum(left), || sum(right));
///     left + right
/// }
/// let values: Vec<u64> = (0..100_000).collect();
/// assert_eq!(sum(&values), 4_999_950_000);
/// ```
#[inline]
pub fn join<RA, RB>(a: impl FnOnce() -> RA + Send, b: impl FnOnce() -> RB + Send) -> (RA, RB)
where
    RA: Send,
    RB: Send,
{
    local::with(|local| {
        if ptr::eq(local.pool(), current::pool()) {
            // SAFETY: a session is open on this thread's pool.
            unsafe { join_here(local, a, b) }
        } else {
            current::with_pool(|pool| begin(pool, a, b))
        }
    })
}

impl ThreadPool {
    /// Calls both closures on this pool: see [`join`](join()).
    ///
    /// # Panics
    /// As [`join`](join()).
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let mut values = [3, 1, 4, 1, 5, 9, 2, 6];
    /// let (left, right) = values.split_at_mut(4);
    /// pool.join(|| left.sort(), || right.sort());
    /// assert_eq!(values, [1, 1, 3, 4, 2, 5, 6, 9]);
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    #[inline]
    pub fn join<RA, RB>(&self, a: impl FnOnce() -> RA + Send, b: impl FnOnce() -> RB + Send) -> (RA, RB)
    where
        RA: Send,
        RB: Send,
    {
        let elsewhere = !ptr::eq(self.shared(), current::pool());
        let _installed = elsewhere.then(|| current::install(self.shared()));
        join(a, b)
    }
}

/// The outermost join of this thread on this pool.
#[cold]
#[inline(never)]
fn begin<RA, RB>(pool: &Shared, a: impl FnOnce() -> RA + Send, b: impl FnOnce() -> RB + Send) -> (RA, RB)
where
    RA: Send,
    RB: Send,
{
    pool.expect_not_forked();
    let _busy = Busy::enter();
    let _entered = current::enter_here(pool);
    local::in_session(pool, || join(a, b))
}

/// # Safety
/// The calling thread must be in a session.
#[inline(always)]
unsafe fn join_here<RA, RB>(
    local: &Local,
    a: impl FnOnce() -> RA + Send,
    b: impl FnOnce() -> RB + Send,
) -> (RA, RB)
where
    RA: Send,
    RB: Send,
{
    let half = Half::new(b);
    let first = local.is_empty();
    // SAFETY: the half stays here until it is popped or settled: below, or by the guard where `a` panics. The session's
    // opener borrows the pool.
    let pool = unsafe {
        local.push(ptr::from_ref(&half).cast());
        &*local.pool()
    };
    if first | pool.sleep.anybody_idle() {
        local.offer(pool, first);
    }
    let guard = Abandon { local, half: &half };
    let left = a();
    mem::forget(guard);
    if local.pop(&half.head) {
        // SAFETY: it was not offered.
        let b = unsafe { half.take_body() };
        return (left, b());
    }
    (left, finish(local, &half))
}

/// What the half returns, that was offered.
#[cold]
#[inline(never)]
fn finish<R, B: FnOnce() -> R>(local: &Local, half: &Half<B, R>) -> R {
    // SAFETY: halves are settled in the reverse of the order in which they are made.
    if unsafe { local.settle(&half.head, true) } {
        // SAFETY: it was taken back or returned.
        let body = unsafe { half.take_body() };
        return body();
    }
    // SAFETY: the outcome says that it was run.
    unsafe { half.take_result() }.unwrap_or_else(|payload| resume_unwind(payload))
}

/// `a` panics: nobody may have the other half any more when the frame is gone. It is not begun; if it was begun elsewhere, this
/// waits for it.
struct Abandon<'h, R, B: FnOnce() -> R> {
    local: &'h Local,
    half: &'h Half<B, R>,
}

impl<R, B: FnOnce() -> R> Drop for Abandon<'_, R, B> {
    #[cold]
    fn drop(&mut self) {
        let kept = self.local.pop(&self.half.head);
        // SAFETY: the session's opener borrows the pool.
        if !kept && unsafe { (*self.local.pool()).check_fork() }.is_err() {
            // In a child of `fork`: who may have taken the half is in the parent. Nobody touches it any more.
            return;
        }
        // SAFETY: as in `finish`.
        if kept || unsafe { self.local.settle(&self.half.head, false) } {
            // SAFETY: it was not offered, or was taken back or returned.
            drop(unsafe { self.half.take_body() });
        } else {
            // SAFETY: the outcome says that it was run.
            unsafe { self.half.drop_result() };
        }
    }
}

/// An idle worker takes what somebody offers, if there is anything.
pub(crate) fn help(pool: &Shared, worker: usize) -> bool {
    let Some(half) = pool.offers.take(worker) else { return false };
    pool.sleep.end_search(|| pool.has_work());
    // SAFETY: it was just taken, by this thread.
    unsafe { local::run(pool, half, worker) };
    pool.sleep.start_search();
    true
}
