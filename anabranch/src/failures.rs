//! Failures that no synchronisation has reported yet.

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

/// A report has no more failures than this: a program that never synchronises must not fill the memory with them.
const KEPT: usize = 64;

#[derive(Default)]
pub(crate) struct Unreported {
    /// Whether `list` is worth a look.
    any: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    failures: BTreeMap<TaskId, Arc<Failure>>,
    /// Newer failures that were not kept.
    omitted: u64,
    skipped: u64,
}

impl List {
    /// Keeps the failure, if it is among the oldest; one that must make way comes back.
    fn keep(&mut self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        self.failures.insert(failure.id, Arc::clone(failure));
        if self.failures.len() > KEPT { self.failures.pop_last().map(|(_, last)| last) } else { None }
    }
}

impl Unreported {
    /// A task has failed.
    #[cold]
    pub(crate) fn failed(&self, failure: &Arc<Failure>) {
        let mut list = self.list.lock();
        let omitted = list.keep(failure);
        list.omitted += u64::from(omitted.is_some());
        drop(list);
        self.any.store(true, Release);
    }

    /// A task was skipped because of a failure.
    #[cold]
    pub(crate) fn skipped(&self, root: &Arc<Failure>) {
        let mut list = self.list.lock();
        let _omitted = list.keep(root);
        list.skipped += 1;
        drop(list);
        self.any.store(true, Release);
    }

    /// The failures since the last report, if there are any.
    #[inline]
    pub(crate) fn report(&self) -> Result<(), Error> {
        if self.any.load(Acquire) { self.report_all() } else { Ok(()) }
    }

    #[cold]
    fn report_all(&self) -> Result<(), Error> {
        // First the flag: a failure that comes in between raises it again.
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
