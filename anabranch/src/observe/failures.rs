//! Failures that no synchronisation has reported yet.
//!
//! A report lists the oldest failures, in the order of submission, and counts the rest. Reading an empty list
//! costs one load. Failures that the program can no longer ask for are printed.

use crate::{
    error::{Error, Failure, Failures},
    stderr,
};
use anabranch_graph::TaskId;
use anabranch_par::discard_payload;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
};

/// The number of failures in a report: a program that never synchronises must not fill the memory with them.
pub(crate) const MAX_LISTED: usize = 64;

#[derive(Default)]
pub(crate) struct UnreportedFailures {
    /// Whether `list` may have entries.
    any: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// The failures by task and number: after its own failure, a task may have callbacks that fail.
    failures: BTreeMap<(TaskId, u32), Arc<Failure>>,
    /// The number of newer failures that are not listed.
    omitted: u64,
    skipped: u64,
}

impl List {
    /// Adds a failure, if it is among the oldest. Returns the one that it displaces, or itself.
    fn add(&mut self, failure: &Arc<Failure>) -> Option<Arc<Failure>> {
        let mut number = 0;
        for ((_, last), other) in self.failures.range((failure.id, 0)..=(failure.id, u32::MAX)) {
            if other.is_same(failure) {
                return None;
            }
            number = last + 1;
        }
        self.failures.insert((failure.id, number), Arc::clone(failure));
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

    /// Whether there is no failure to report.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Acquire)
    }

    /// Takes the failures since the last report and returns them as an error, if there are any.
    #[inline]
    pub(crate) fn report(&self) -> Result<(), Error> {
        if self.any.load(Acquire) { self.report_all() } else { Ok(()) }
    }

    /// Prints the failures that the program was not given: `what` is dropped, so no call can report them any
    /// more.
    pub(crate) fn print(&self, what: fmt::Arguments<'_>) {
        if !self.any.load(Acquire) {
            return;
        }
        let List { mut failures, omitted, skipped } = self.take();
        failures.retain(|_, failure| !failure.is_given());
        let Some((_, first)) = failures.pop_first() else { return };
        let failures = Failures { first, others: failures.into_values().collect(), omitted, skipped };
        // Errors are the program's own, and so are their messages and destructors: they may panic.
        let print = || {
            let text = failures.to_string();
            drop(failures);
            stderr::print(format_args!(
                "{what} was dropped, but no call has reported these failures: {text}; call `wait` or `check` before the drop \
                 to get them as an error"
            ));
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(print)) {
            discard_payload(payload);
        }
    }

    #[cold]
    fn take(&self) -> List {
        // The flag first: a failure that is added in between sets it again.
        self.any.store(false, Release);
        mem::take(&mut *self.list.lock())
    }

    #[cold]
    fn report_all(&self) -> Result<(), Error> {
        let List { mut failures, omitted, skipped } = self.take();
        failures.values().for_each(|failure| failure.mark_given());
        match failures.pop_first() {
            Some((_, first)) => {
                let others = failures.into_values().collect();
                Err(Failures { first, others, omitted, skipped }.into())
            }
            None => Ok(()),
        }
    }
}
