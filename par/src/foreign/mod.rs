//! Threads that this crate did not start, and what every thread keeps between its calls.
//!
//! Any thread may use pools, regions and scratch. It *joins* by itself when it first needs something that is kept for it
//! (its [scratch](crate::scratch) memory) and *leaves* when it ends; [`attach`] joins at once, and its guard leaves
//! early. What was kept is then lent to the next thread that joins, so that an endless sequence of short-lived threads
//! works in bounded memory, and each of them finds its scratch warm.
//!
//! ```text
//! thread ── MEMBER: its record, or none yet (a plain cell: may be used at any time, also while the thread ends)
//!           AT_END: gives the record back; touched when the thread joins, and never again
//! process ─ REGISTRY: all records, taken and free
//! ```
//!
//! A thread that has joined takes no lock, makes no system call and allocates nothing to use what is its own. A
//! destructor of another thread-local may run after AT_END: a thread that has no record then borrows one for the moment.

mod call;
mod registry;

pub(crate) use registry::Held;
#[cfg(all(test, loom))]
pub(crate) use registry::Registry;
pub use registry::Statistics;

use crate::current;
use registry::{Membership, REGISTRY};
use std::{cell::Cell, fmt, marker::PhantomData};

thread_local! {
    /// The calling thread's record; it is out of the cell for as long as it is being looked at.
    static MEMBER: Cell<Option<Membership>> = const { Cell::new(None) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Leaves for a thread that ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(member) = MEMBER.take() {
            REGISTRY.give_back(member);
        }
    }
}

/// Sees to it that the calling thread leaves when it ends. Not if its destructors are running already: then `false`.
fn leaves_at_end() -> bool {
    AT_END.try_with(|_| ()).is_ok()
}

/// Calls `f` with what is kept for the calling thread, which joins if it has not yet. `f` must not panic, and must not call
/// this again.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut Held) -> R) -> R {
    let Some(mut member) = MEMBER.take() else { return join_with(f) };
    let result = member.with(f);
    MEMBER.set(Some(member));
    result
}

#[cold]
fn join_with<R>(f: impl FnOnce(&mut Held) -> R) -> R {
    let mut member = REGISTRY.take();
    let result = member.with(f);
    if leaves_at_end() {
        MEMBER.set(Some(member));
    } else {
        REGISTRY.give_back(member);
    }
    result
}

/// Makes the calling thread a member now, until the guard is dropped or [leaves](Attached::leave).
///
/// Nobody needs this: a thread joins by itself. It is for threads that are to be ready before their first call, or that live
/// on when they have no more to do with this crate and shall keep nothing. Guards may be nested; the thread leaves with
/// the last one, also where it had joined by itself before, and joins again when it next needs to.
///
/// ```
/// use anabranch_par::{foreign, scratch};
///
/// // On a thread of another library:
/// let attached = foreign::attach();
/// let sum = scratch::scope(|scope| scope.filled(100, 1.0_f64).iter().sum::<f64>());
/// assert_eq!(sum, 100.0);
/// attached.leave()?;
/// # Ok::<(), foreign::StillInside>(())
/// ```
pub fn attach() -> Attached {
    let mut member = MEMBER.take().unwrap_or_else(|| {
        // Where the thread's end has begun already, it leaves with the guard.
        leaves_at_end();
        REGISTRY.take()
    });
    member.with(|held| held.guards += 1);
    let index = member.index();
    MEMBER.set(Some(member));
    Attached { index, _of_this_thread: PhantomData }
}

/// Keeps the calling thread a member: see [`attach`].
///
/// Where it is dropped inside an open region, scope or job, the thread stays a member until it ends (or until another guard
/// leaves).
#[derive(Debug)]
#[must_use = "the thread leaves when this is dropped"]
pub struct Attached {
    index: usize,
    _of_this_thread: PhantomData<*const ()>,
}

impl Attached {
    /// The thread's number among the members: no other member has the same, and numbers of threads that have left are
    /// given again, so that it is less than the largest number of members that there ever were at once.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Ends the membership, if this is the thread's last guard. What was kept for the thread is lent to others.
    ///
    /// # Errors
    /// Inside an open region, scope or job nothing is changed, and the error gives the guard back.
    pub fn leave(self) -> Result<(), StillInside> {
        if current::is_inside() {
            return Err(StillInside { guard: self });
        }
        drop(self);
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // There is none where the thread's end came first.
        let Some(mut member) = MEMBER.take() else { return };
        let guards = member.with(|held| {
            held.guards = held.guards.saturating_sub(1);
            held.guards
        });
        if guards > 0 || current::is_inside() && leaves_at_end() {
            MEMBER.set(Some(member));
        } else {
            REGISTRY.give_back(member);
        }
    }
}

/// A thread wanted to leave from inside an open region, scope or job: see [`Attached::leave`].
pub struct StillInside {
    guard: Attached,
}

impl StillInside {
    /// The guard, to leave later.
    pub fn into_guard(self) -> Attached {
        self.guard
    }
}

impl fmt::Debug for StillInside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StillInside").finish_non_exhaustive()
    }
}

impl fmt::Display for StillInside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a thread cannot leave inside an open region, scope or job; keep the guard and leave when that has ended",
        )
    }
}

impl std::error::Error for StillInside {}

/// How many threads are members at this moment, and what is kept for those that will be.
pub fn statistics() -> Statistics {
    REGISTRY.statistics()
}
