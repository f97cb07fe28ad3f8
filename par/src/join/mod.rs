//! Two closures at the same time if a thread is idle; otherwise one after the other, for hardly more than two
//! calls.
//!
//! ```text
//! mod.rs      the public functions
//! local.rs    the list of the calling thread's pending halves
//! offers.rs   the cells in which threads offer halves to each other
//! half.rs     the second half of a join
//! latch.rs    how a thief publishes the outcome
//! wait.rs     the owner's side: taking a half back, or waiting for it
//! steal.rs    the thief's side
//! backoff.rs  pauses between offers
//! ```
//!
//! # The protocol
//! 1. A join keeps its second closure, the *half*, in its own stack frame and links it into the list of the
//!    calling thread, the *owner*. That costs a few stores, no allocation and no atomic operation.
//! 2. One load says whether any thread is idle. If none is, the owner calls the first closure, takes the half
//!    out of the list and calls it, too. A join that ends here has cost a few nanoseconds.
//! 3. If a thread is idle, the owner *offers* its oldest half, which is the largest: it takes the half out of
//!    the list, puts it into its cell and wakes a sleeper. (An owner that has no other half pending offers
//!    its first one in any case, for threads that are idle later.)
//! 4. An idle worker *steals* the half from the cell, runs it, writes the result and sets the outcome in the
//!    half's latch.
//! 5. An owner that needs an offered half takes it back from its cell and runs it. If it was stolen, the
//!    owner waits for the outcome.
//! 6. While the owner waits, it may steal from its thief, but only halves that descend from its own half
//!    ([`steal_descendant`](offers::Offers::steal_descendant)). If the thief offers one, it wakes the owner.
//! 7. An offer that was taken back, or that was not worth it, makes the owner pause before the next one
//!    ([`backoff`]).
//!
//! ```text
//! owner                                          thief
//! link the half, call the first closure
//!   (a thread is idle) offer the oldest
//!                                                steal; run it; write the result
//! take back ── done: run it here                 set the outcome, wake the owner
//!         └─ stolen: wait for the outcome
//! ```
//!
//! # The states of a half
//!
//! | state | in the list | in a cell | latch | left by | to |
//! |---|---|---|---|---|---|
//! | pending | yes | no | – | the owner that pops it | run by the owner |
//! | pending | yes | no | – | the owner that offers it | offered |
//! | offered | no | yes | PENDING | the owner that takes it back | run by the owner |
//! | offered | no | yes | PENDING | a thread that steals it | stolen |
//! | stolen | no | no | PENDING or PARKED | the thief that has run it | `Long` or `Short` |
//! | stolen | no | no | PENDING or PARKED | a thief to which it does not descend (6) | `Returned`: run by the owner |
//!
//! | field | pending | offered | stolen | outcome |
//! |---|---|---|---|---|
//! | `older`, `newer` | the owner | – | – | – |
//! | `body` | the owner | the thread that takes it | the thief | the owner, if `Returned` |
//! | `result` | – | – | the thief | the owner |
//! | `share` | the owner writes it before the offer | both read it | both: atomics, and `owner` of the latch | the owner drops it |
//!
//! # What always holds
//! A thread that waits for a half runs only descendants of that very half. On one thread, those would have
//! run on this stack, at this place. So nothing that the frames below hold (a borrowed `RefCell`, a locked
//! mutex) meets code that it would not meet on one thread. `a_waiting_thread_takes_no_unrelated_work` in
//! `tests/join.rs` shows it. Loom checks the protocol in `join/models.rs`.
//!
//! # Prior art
//! - Work is split lazily, and the oldest half is given away: E. Mohr, D. A. Kranz, R. H. Halstead, [*Lazy
//!   task creation*](https://doi.org/10.1109/71.86103), IEEE TPDS 2(3), 1991.
//! - Lists are private, and halves are handed over on demand through cells: U. A. Acar, A. Charguéraud, M.
//!   Rainey, [*Scheduling parallel programs by work stealing with private
//!   deques*](https://doi.org/10.1145/2442516.2442538), PPoPP 2013. The Chase-Lev deque of rayon and Cilk
//!   costs a fence in every join instead.
//! - Pauses bound the cost of offers by a share of the work: [*Heartbeat
//!   scheduling*](https://doi.org/10.1145/3192366.3192391), PLDI 2018.
//! - A thread that waits steals back from its thief only: D. B. Wagner, B. G. Calder,
//!   [*Leapfrogging*](https://doi.org/10.1145/155332.155354), PPoPP 1993.

mod backoff;
pub(crate) mod half;
pub(crate) mod latch;
pub(crate) mod local;
pub(crate) mod offers;
pub(crate) mod steal;
mod wait;

#[cfg(all(test, loom))]
mod models;

use crate::{
    current,
    jobs::deferred::RunDeferred,
    thread_pool::{ThreadPool, state::PoolState, with_pool},
};
use half::Half;
use local::Local;
use std::{mem, panic::resume_unwind, ptr};
use wait::reclaim;

/// Calls both closures and returns both results. `b` runs at the same time as `a` if a thread of the pool is
/// idle.
///
/// It runs on the pool that the calling thread works for, or else on the [global](ThreadPool::global) one.
/// `a` runs on the calling thread. `b` runs on an idle worker, or on the calling thread after `a`. A join
/// costs a few nanoseconds if all threads are busy, so it may be used down to small pieces of work. A join
/// offers a pending closure to idle workers when it begins: the oldest first, and none for a while if the
/// last offer was not worth it. While the calling thread waits for `b`, it may run closures of joins that `b`
/// makes, and nothing else.
///
/// `b` runs in the floating-point mode of the calling thread, on whatever thread. In a loop,
/// [`participant`](crate::participant) is `None` in a `b` that another thread runs, because that thread is no
/// participant of the loop.
///
/// # Panics
/// If `a` or `b` panics: with the panic of `a`, if both do. The other closure has returned by then, or is not
/// called. And if this process was forked after the pool was built.
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
            with_pool(|pool| begin(pool, a, b))
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
        let elsewhere = !ptr::eq(self.state(), current::pool());
        let _installed = elsewhere.then(|| current::install(self.state()));
        join(a, b)
    }
}

/// The outermost join of this thread on this pool.
#[cold]
#[inline(never)]
fn begin<RA, RB>(pool: &PoolState, a: impl FnOnce() -> RA + Send, b: impl FnOnce() -> RB + Send) -> (RA, RB)
where
    RA: Send,
    RB: Send,
{
    pool.expect_not_forked();
    let _deferred = RunDeferred::on_drop();
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
    // SAFETY: the half stays here until it is popped or reclaimed: below, or by the guard if `a` panics. The
    // frame that opened the session borrows the pool.
    let pool = unsafe {
        local.push(ptr::from_ref(&half).cast());
        &*local.pool()
    };
    if first | pool.sleep.any_idle() {
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

/// Returns the result of a half that was offered.
#[cold]
#[inline(never)]
fn finish<R, B: FnOnce() -> R>(local: &Local, half: &Half<B, R>) -> R {
    // SAFETY: halves are reclaimed in the reverse of the order in which they are made.
    if unsafe { reclaim(local, &half.head, true) } {
        // SAFETY: it was taken back or returned.
        let body = unsafe { half.take_body() };
        return body();
    }
    // SAFETY: the outcome says that it was run.
    unsafe { half.take_result() }.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Abandons the half if `a` panics: no other thread may have it when the frame is gone. A half that has not
/// begun is not called; a half that has begun elsewhere is waited for.
struct Abandon<'h, R, B: FnOnce() -> R> {
    local: &'h Local,
    half: &'h Half<B, R>,
}

impl<R, B: FnOnce() -> R> Drop for Abandon<'_, R, B> {
    #[cold]
    fn drop(&mut self) {
        let kept = self.local.pop(&self.half.head);
        // SAFETY: the frame that opened the session borrows the pool.
        if !kept && unsafe { (*self.local.pool()).check_fork() }.is_err() {
            // This is the child of a `fork`. The thief, if there is one, is in the parent, so no thread
            // touches the half any more.
            return;
        }
        // SAFETY: as in `finish`.
        if kept || unsafe { reclaim(self.local, &self.half.head, false) } {
            // SAFETY: it was not offered, or was taken back or returned.
            drop(unsafe { self.half.take_body() });
        } else {
            // SAFETY: the outcome says that it was run.
            unsafe { self.half.drop_result() };
        }
    }
}
