//! Why calls fail, and the last failure of each thread.

use crate::anabranch_status::{self, *};
use anabranch_par::{Consecutive, Forked, LoopError, PoolError, foreign::CallPanic};
use std::{
    any::Any,
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_int},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    status: anabranch_status,
    message: String,
    /// What a callback returned, where that is why.
    code: c_int,
}

impl Failure {
    pub(crate) fn new(status: anabranch_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), code: 0 }
    }

    /// An argument that must be there is NULL.
    pub(crate) fn null(function: &str, argument: &str) -> Self {
        Self::new(ANABRANCH_INVALID_ARGUMENT, format!("{function}: the argument {argument} is NULL"))
    }

    /// Something panicked.
    pub(crate) fn panicked(message: Option<&str>) -> Self {
        Self::new(ANABRANCH_PANIC, format!("panicked: {}", message.unwrap_or("(no message)")))
    }

    /// The same, for what the panic carried.
    pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let failure = Self::panicked(text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)));
        // Its destructor is a callback's code, and may panic too: then what that carries is left alone.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(mem::forget);
        failure
    }

    /// A loop was not done. `begin` and `ranges`: what its items stand for.
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
                let place = place(panic.index());
                let Self { status, message, .. } = Self::caught(panic.into_payload());
                Self::new(status, format!("{place} {message}"))
            }
            LoopError::Forked(forked) => forked.into(),
            cut_short => Self::new(ANABRANCH_CANCELLED, format!("{cut_short:?}")),
        }
    }

    /// Leaves this for the calling thread to ask for.
    #[cold]
    pub(crate) fn tell(self) -> anabranch_status {
        let Self { status, message, code } = self;
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // A thread that ends may have freed its message for good: then it hears the status alone.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(Last { status, message, code }));
        status
    }
}

impl From<Forked> for Failure {
    fn from(forked: Forked) -> Self {
        Self::new(ANABRANCH_FORKED, forked.to_string())
    }
}

impl From<CallPanic> for Failure {
    fn from(panic: CallPanic) -> Self {
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

/// What is kept of a failure.
struct Last {
    status: anabranch_status,
    message: CString,
    code: c_int,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Calls `f` with the calling thread's last failure.
fn with_last<R>(f: impl FnOnce(&Last) -> R) -> Option<R> {
    LAST.try_with(|last| last.borrow().as_ref().map(f)).ok().flatten()
}

/// The message, until the thread's next failure.
pub(crate) fn last_message() -> *const c_char {
    const NONE: &CStr = c"";
    with_last(|last| last.message.as_ptr()).unwrap_or(NONE.as_ptr())
}

pub(crate) fn last_status() -> anabranch_status {
    with_last(|last| last.status).unwrap_or(ANABRANCH_OK)
}

pub(crate) fn last_code() -> c_int {
    with_last(|last| last.code).unwrap_or(0)
}

pub(crate) fn clear() {
    let _ = LAST.try_with(|last| last.borrow_mut().take());
}
