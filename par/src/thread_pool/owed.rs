//! Jobs of pools without workers: the thread that hands one over runs it, as soon as it is inside nothing: no region, join,
//! scope or job, of whatever pool. So a job never runs in the middle of something else.
//!
//! A thread that is inside something remembers which pools it owes this to.

use super::Shared;
use crate::current;
use std::{cell::RefCell, mem::ManuallyDrop, ptr, sync::Arc};

thread_local! {
    /// Without a destructor, so that it may be used while the thread ends. It is empty, and has no memory, whenever the thread
    /// is inside nothing.
    static OWED: RefCell<ManuallyDrop<Vec<Arc<Shared>>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Jobs were queued in a pool without workers: they are run now, or when the thread has left what it is inside of.
pub(super) fn see_to(pool: &Shared) {
    if !current::is_inside() {
        pool.run_queued();
        return settle();
    }
    OWED.with_borrow_mut(|owed| {
        if !owed.iter().any(|other| ptr::eq(&**other, pool)) {
            owed.push(pool.to_arc());
        }
    });
}

/// Runs what the calling thread owes, if it is inside nothing.
#[inline]
pub(super) fn settle() {
    if OWED.with_borrow(|owed| !owed.is_empty()) && !current::is_inside() {
        run_owed();
    }
}

#[cold]
fn run_owed() {
    // A pool stays in the list while its jobs are run, for the sake of those that submit further ones.
    while let Some(pool) = OWED.with_borrow(|owed| owed.first().cloned()) {
        pool.run_queued();
        OWED.with_borrow_mut(|owed| {
            owed.remove(0);
            if owed.is_empty() {
                // Its memory, too.
                drop(std::mem::take(&mut **owed));
            }
        });
    }
}

/// The calling thread is about to go inside something. This is dropped when it has left that again: the outermost of them
/// runs what the thread owes.
#[derive(Debug)]
pub(crate) struct Busy(());

impl Busy {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self(())
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        settle();
    }
}
