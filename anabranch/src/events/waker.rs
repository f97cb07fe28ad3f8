//! The wakers of futures, which are the program's code.

use anabranch_par::{Marks, discard_payload};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Waker},
};

/// The waker of a future that was polled, with the marks of the work that polls it.
pub(crate) struct LeftWaker {
    waker: Waker,
    marks: Marks,
}

impl LeftWaker {
    /// The waker of the future that is being polled. No lock may be held: a waker is cloned by the program's
    /// code.
    pub(crate) fn of(context: &Context<'_>) -> Self {
        Self { waker: context.waker().clone(), marks: Marks::current() }
    }

    /// Wakes the future. A waker may poll the future at once, and run into any of the program's code. It
    /// counts as a [callback](Marks::enter_callback). If it panics, the calling thread still has other work
    /// to do.
    pub(crate) fn wake(self) {
        let Self { waker, marks } = self;
        let wake = AssertUnwindSafe(|| marks.enter_callback(|| waker.wake()));
        if let Err(payload) = catch_unwind(wake) {
            discard_payload(payload);
        }
    }

    /// Whether both wake the same future.
    pub(crate) fn will_wake(&self, other: &Self) -> bool {
        self.waker.will_wake(&other.waker)
    }
}

impl fmt::Debug for LeftWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.waker.fmt(f)
    }
}
