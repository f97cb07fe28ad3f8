//! Failures that no synchronisation has reported yet.
//!
//! A report lists the oldest failures, in the order of submission, and counts the rest. Reading an empty list costs one load.

use crate::error::{Error, Failure, Failures};
use anabranch_graph::TaskId;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
};

/// The number of failures in a report: a program that never synchronises must not fill the memory with them.
const MAX_LISTED: usize = 64;

#[derive(Default)]
pub(crate) struct UnreportedFailures {
    /// Whether `list` may have entries.
    any: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    failures: BTreeMap<TaskId, Arc<Failure>>,
    /// The number of newer failures that are not listed.
    omitted: u64,
    skipped: u64,
}

impl List {
    /// Adds a failure, if it is among the oldest. Returns the one that it displaces, or itself.
    fn add(&mut self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        self.failures.insert(failure.id, Arc::clone(failure));
        if self.failures.len() > MAX_LISTED { self.failures.pop_last().map(|(_, last)| last) } else { None }
    }
}

impl UnreportedFailures {
    /// Adds the failure of a task.
    #[cold]
    pub(crate) fn add(&self, failure: &Arc<Failure>) {
        let mut list = self.list.lock();
        let omitted = list.add(failure);
        list.omitted += u64::from(omitted.is_some());
        drop(list);
        self.any.store(true, Release);
    }

    /// Counts a task that was skipped because of this failure.
    #[cold]
    pub(crate) fn add_skipped(&self, root: &Arc<Failure>) {
        let mut list = self.list.lock();
        let _omitted = list.add(root);
        list.skipped += 1;
        drop(list);
        self.any.store(true, Release);
    }

    /// Takes the failures since the last report and returns them as an error, if there are any.
    #[inline]
    pub(crate) fn report(&self) -> Result<(), Error> {
        if self.any.load(Acquire) { self.report_all() } else { Ok(()) }
    }

    #[cold]
    fn report_all(&self) -> Result<(), Error> {
        // The flag first: a failure that is added in between sets it again.
        self.any.store(false, Release);
        let List { mut failures, omitted, skipped } = std::mem::take(&mut *self.list.lock());
        match failures.pop_first() {
            Some((_, first)) => {
                let others = failures.into_values().collect();
                Err(Failures { first, others, omitted, skipped }.into())
            }
            None => Ok(()),
        }
    }
}
