//! Threads that this crate did not start, and the record that every thread keeps between its calls.
//!
//! Any thread may use pools, loops and scratch memory. It *attaches* by itself when it first needs its record
//! (which holds its [scratch](crate::scratch) memory), and *detaches* when it ends. [`attach`] attaches at
//! once, and its guard detaches early. The record is then lent to the next thread that attaches. So an
//! endless sequence of short-lived threads works in bounded memory, and each of them finds its scratch memory
//! warm.
//!
//! ```text
//! thread ── RECORD: its record, or none (a plain cell: may be used at any time, also while the thread ends)
//!           AT_END: gives the record back; touched when the thread attaches, and never again
//! process ─ REGISTRY: all records, taken and free
//! ```
//!
//! A thread that is attached takes no lock, makes no system call and allocates nothing to use its record. A
//! destructor of another thread-local may run after AT_END. A thread that has no record then borrows one for
//! the moment.

mod call;
mod registry;

#[cfg(all(test, loom))]
pub(crate) use registry::Registry;
pub use registry::Statistics;

use crate::current;
use registry::{Kept, REGISTRY, TakenRecord};
use std::{cell::Cell, fmt, marker::PhantomData};

thread_local! {
    /// The calling thread's record. It is out of the cell while it is used.
    static RECORD: Cell<Option<TakenRecord>> = const { Cell::new(None) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Detaches a thread that ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(record) = RECORD.take() {
            REGISTRY.give_back(record);
        }
    }
}

/// Makes the calling thread detach when it ends. Returns `false` if its thread-local destructors are running
/// already.
fn detach_at_end() -> bool {
    AT_END.try_with(|_| ()).is_ok()
}

/// Calls `f` with the contents of the calling thread's record, after attaching the thread if it is not
/// attached. `f` must not panic, and must not call this again.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut Kept) -> R) -> R {
    let Some(mut record) = RECORD.take() else { return attach_with(f) };
    let result = record.with(f);
    RECORD.set(Some(record));
    result
}

#[cold]
fn attach_with<R>(f: impl FnOnce(&mut Kept) -> R) -> R {
    let mut record = REGISTRY.take();
    let result = record.with(f);
    if detach_at_end() {
        RECORD.set(Some(record));
    } else {
        REGISTRY.give_back(record);
    }
    result
}

/// Attaches the calling thread now, until the guard is dropped or [detaches](Attached::detach).
///
/// No program needs this, because a thread attaches by itself. It is for threads that should be ready before
/// their first call, and for threads that live on without further use of this crate and should keep nothing.
/// Guards may be nested. The thread detaches with the last one, also if it had attached by itself before, and
/// attaches again when it next needs to.
///
/// ```
/// use anabranch_par::{foreign, scratch};
///
/// // On a thread of another library:
/// let attached = foreign::attach();
/// let sum = scratch::scope(|scope| scope.filled(100, 1.0_f64).iter().sum::<f64>());
/// assert_eq!(sum, 100.0);
/// attached.detach()?;
/// # Ok::<(), foreign::StillInside>(())
/// ```
pub fn attach() -> Attached {
    let mut record = RECORD.take().unwrap_or_else(|| {
        // If the thread is ending already, it detaches with the guard.
        detach_at_end();
        REGISTRY.take()
    });
    record.with(|kept| kept.guards += 1);
    let index = record.index();
    RECORD.set(Some(record));
    Attached { index, _of_this_thread: PhantomData }
}

/// Keeps the calling thread attached: see [`attach`].
///
/// If it is dropped inside an open region, scope or job, the thread stays attached until it ends (or until
/// another guard detaches it).
#[derive(Debug)]
#[must_use = "the thread detaches when this is dropped"]
pub struct Attached {
    index: usize,
    _of_this_thread: PhantomData<*const ()>,
}

impl Attached {
    /// The thread's number. No other attached thread has the same one. Numbers of threads that have detached
    /// are given again, so a number is less than the largest number of threads that were ever attached at
    /// once.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Detaches the thread, if this is its last guard. Its record is lent to other threads.
    ///
    /// # Errors
    /// Inside an open region, scope or job nothing is changed, and the error gives the guard back.
    pub fn detach(self) -> Result<(), StillInside> {
        if current::is_inside() {
            return Err(StillInside { guard: self });
        }
        drop(self);
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // There is no record if the thread's end came first.
        let Some(mut record) = RECORD.take() else { return };
        let guards = record.with(|kept| {
            kept.guards = kept.guards.saturating_sub(1);
            kept.guards
        });
        if guards > 0 || current::is_inside() && detach_at_end() {
            RECORD.set(Some(record));
        } else {
            REGISTRY.give_back(record);
        }
    }
}

/// A thread wanted to detach inside an open region, scope or job: see [`Attached::detach`].
#[derive(thiserror::Error)]
#[error(
    "a thread cannot detach inside an open region, scope or job; keep the guard and detach when that has ended"
)]
pub struct StillInside {
    guard: Attached,
}

impl StillInside {
    /// The guard, to detach later.
    pub fn into_guard(self) -> Attached {
        self.guard
    }
}

impl fmt::Debug for StillInside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StillInside").finish_non_exhaustive()
    }
}

/// Counts the records of attached threads, and those that are free.
pub fn statistics() -> Statistics {
    REGISTRY.statistics()
}
