//! The reasons why calls fail, and the last failure of each thread.

use crate::anabranch_status::{self, *};
use anabranch_par::{Consecutive, Forked, LoopError, Panic, PoolError};
use std::{
    any::Any,
    cell::Cell,
    ffi::{c_char, c_int},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    status: anabranch_status,
    message: String,
    /// The value that a callback returned, if that is the reason.
    code: c_int,
}

impl Failure {
    pub(crate) fn new(status: anabranch_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), code: 0 }
    }

    /// A required argument is NULL.
    pub(crate) fn null(function: &str, argument: &str) -> Self {
        Self::new(ANABRANCH_INVALID_ARGUMENT, format!("{function}: the argument {argument} is NULL"))
    }

    /// A callback or the library panicked.
    pub(crate) fn panicked(message: Option<&str>) -> Self {
        Self::new(ANABRANCH_PANIC, format!("panicked: {}", message.unwrap_or("(no message)")))
    }

    /// A panic that was caught with this payload.
    pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let failure = Self::panicked(text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)));
        // The destructor of the payload is code of a callback, and may panic too. The payload of that panic
        // is leaked.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(mem::forget);
        failure
    }

    /// A loop failed. Item `i` of the loop is the range `ranges.chunk(i)`, shifted by `begin`.
    pub(crate) fn of_loop(error: LoopError<c_int>, begin: usize, ranges: &Consecutive) -> Self {
        let place = |item| {
            let range = ranges.chunk(item);
            format!("the callback for [{}, {})", begin + range.start, begin + range.end)
        };
        match error {
            LoopError::Item { index, error: code } => {
                let message = format!("{} returned {code}", place(index));
                Self { code, ..Self::new(ANABRANCH_CANCELLED, message) }
            }
            LoopError::Panic(panic) => {
                let place = place(panic.index().expect("a panic of a loop has an item"));
                let Self { status, message, .. } = Self::caught(panic.into_payload());
                Self::new(status, format!("{place} {message}"))
            }
            LoopError::Forked(forked) => forked.into(),
            cut_short => Self::new(ANABRANCH_CANCELLED, format!("{cut_short:?}")),
        }
    }

    /// Stores this failure as the last one of the calling thread.
    #[cold]
    pub(crate) fn record(self) -> anabranch_status {
        LAST.with(|last| {
            last.status.set(self.status);
            last.code.set(self.code);
            last.message.set(c_string(&self.message));
        });
        self.status
    }
}

impl From<Forked> for Failure {
    fn from(forked: Forked) -> Self {
        Self::new(ANABRANCH_FORKED, forked.to_string())
    }
}

impl From<Panic> for Failure {
    fn from(panic: Panic) -> Self {
        Self::panicked(panic.message())
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let status = match error {
            PoolError::Threads { .. } => ANABRANCH_INVALID_ARGUMENT,
            PoolError::Environment { .. } => ANABRANCH_ENVIRONMENT,
            _ => ANABRANCH_SYSTEM,
        };
        Self::new(status, error.to_string())
    }
}

/// The maximum length of a message, including the terminating 0.
const MESSAGE: usize = 1024;

/// The last failure of a thread. It has no destructor, so that a thread can still read errors while it ends.
struct Last {
    status: Cell<anabranch_status>,
    code: Cell<c_int>,
    message: Cell<[u8; MESSAGE]>,
}

thread_local! {
    static LAST: Last = const {
        Last { status: Cell::new(ANABRANCH_OK), code: Cell::new(0), message: Cell::new([0; MESSAGE]) }
    };
}

/// The text as a C string: cut if it is too long, with each inner 0 replaced by a space.
fn c_string(text: &str) -> [u8; MESSAGE] {
    let fits = (0..text.len().min(MESSAGE - 1) + 1).rev().find(|&end| text.is_char_boundary(end));
    let mut message = [0; MESSAGE];
    for (to, from) in message.iter_mut().zip(text[..fits.unwrap_or(0)].bytes()) {
        *to = if from == 0 { b' ' } else { from };
    }
    message
}

/// The message, until the thread's next failure.
pub(crate) fn last_message() -> *const c_char {
    LAST.with(|last| last.message.as_ptr().cast_const().cast())
}

pub(crate) fn last_status() -> anabranch_status {
    LAST.with(|last| last.status.get())
}

pub(crate) fn last_code() -> c_int {
    LAST.with(|last| last.code.get())
}

pub(crate) fn clear() {
    LAST.with(|last| {
        last.status.set(ANABRANCH_OK);
        last.code.set(0);
        last.message.set([0; MESSAGE]);
    });
}
