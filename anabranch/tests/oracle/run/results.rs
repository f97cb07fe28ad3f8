//! Results of tasks, fences, barriers and waits, as observations.

use super::on_device;
use crate::{
    model::{Captured, Fault, Observation, Refusal, Report},
    program::When,
};
use anabranch::{Cause, Error, Failure, Failures, Mistake, device::DeviceError, prelude::*};
use std::{
    cell::RefCell,
    future::Future,
    panic::resume_unwind,
    pin::pin,
    task::{Context, Waker},
};

/// The captured values of fences and barriers, as numbers.
pub trait Numbers {
    fn numbers(self) -> Vec<u64>;
}

impl Numbers for () {
    fn numbers(self) -> Vec<u64> {
        Vec::new()
    }
}

impl<const D: usize> Numbers for Snapshot<u64, D> {
    fn numbers(self) -> Vec<u64> {
        self.into_vec()
    }
}

impl<T: Numbers> Numbers for Option<T> {
    fn numbers(self) -> Vec<u64> {
        self.map_or_else(Vec::new, T::numbers)
    }
}

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn numbers(self) -> Vec<u64> {
        let (a, b) = self;
        [a.numbers(), b.numbers()].concat()
    }
}

/// A fence or a barrier. The function waits for it, or drops it.
pub type Pending = Box<dyn FnOnce(When) -> Option<Result<Vec<u64>, Error>>>;

/// Polls a future once and drops it.
pub fn once_polled(future: impl Future) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}

thread_local! {
    /// The failures that the program of this thread has seen.
    static SEEN: RefCell<Vec<Failures>> = const { RefCell::new(Vec::new()) };
}

/// Takes the failures that the program of this thread has seen.
pub fn take_failures() -> Vec<Failures> {
    SEEN.take()
}

/// What a device has done wrong, if that is why a task has failed.
pub fn fault(cause: &Cause) -> Option<Fault> {
    let Cause::Error(error) = cause else { return None };
    let in_error = || match error.downcast_ref::<Error>() {
        Some(Error::DeviceMemory { error, .. }) => Some(error),
        _ => None,
    };
    let (device, what) = match error.downcast_ref::<DeviceError>().or_else(in_error)? {
        DeviceError::OutOfMemory { device, .. } => (device, "no memory"),
        DeviceError::Failed { device, .. } => (device, "failed"),
        DeviceError::Lost { device, .. } => (device, "lost"),
        _ => return None,
    };
    // The devices of the tests on a GPU have other names, and never fail.
    let device = on_device::number(device).unwrap_or_else(|| resume_unwind(Box::new(cause.to_string())));
    Some(Fault { device, what })
}

/// The name of the task, and what else the model knows about the failure.
fn described(failure: &Failure) -> String {
    let name = failure.task.name();
    // A copy is named after a buffer: `copy of buffer "slot 1" to the host`.
    if let Some(fault) = fault(&failure.cause) {
        return format!("{} ({fault})", name.replace("buffer ", "").replace('"', ""));
    }
    let of_slot = |elements: &str, buffer: &str| {
        // The label of a buffer is `buffer "slot 1"`.
        format!("{elements} of {}", buffer.replace("buffer ", "").replace('"', ""))
    };
    match &failure.cause {
        Cause::Unwritten { buffer, elements, .. } => format!("{name} left {}", of_slot(elements, buffer)),
        Cause::ReadBeforeWrite { buffer, elements, .. } => {
            format!("{name} read {}", of_slot(elements, buffer))
        }
        Cause::Callback { .. } => format!("{name}: callback"),
        Cause::ReplaysCancelled => format!("{name} in its replays"),
        Cause::InReplay { task, replay, .. } => format!("{name} in replay {replay}, {}", task.name()),
        _ => name.replace("buffer ", "").replace('"', ""),
    }
}

pub fn chain(failures: &Failures) -> Vec<String> {
    SEEN.with_borrow_mut(|seen| seen.push(failures.clone()));
    let first = failures.iter().next().expect("never empty");
    first.chain().map(described).collect()
}

/// Ends the program because of an error that no program may get. Prints nothing: the oracle does.
fn unexpected(error: Error) -> ! {
    resume_unwind(Box::new(error.to_string()))
}

pub fn captured(result: Result<Vec<u64>, Error>) -> Captured {
    match result {
        Ok(values) => Captured::Values(values),
        // The error of a fence is the failure of the task that it needed.
        Err(Error::Failed(failures)) => Captured::Failed(chain(&failures)),
        Err(error) => unexpected(error),
    }
}

pub fn report(result: Result<(), Error>) -> Option<Report> {
    let failures = match result {
        Ok(()) => return None,
        Err(Error::Failed(failures)) => failures,
        Err(error) => unexpected(error),
    };
    SEEN.with_borrow_mut(|seen| seen.push(failures.clone()));
    let listed = failures.iter().map(described).collect();
    Some(Report { listed, omitted: failures.omitted(), skipped: failures.skipped() })
}

/// The result of waiting for a barrier or a drain: its report of failures, or its captured values.
pub fn waited(result: Result<Vec<u64>, Error>) -> Observation {
    match &result {
        Err(Error::Failed(failures)) if chain(failures).len() == 1 => {
            Observation::Report(report(result.map(|_| ())), None)
        }
        _ => Observation::Report(None, Some(captured(result))),
    }
}

pub fn refusal(error: Error) -> Observation {
    match error {
        Error::Declaration(error) => match error.mistake {
            Mistake::NeverWritten { .. } => Observation::Refused(Refusal::NeverWritten),
            Mistake::OutsideBuffer { .. } => Observation::Refused(Refusal::Outside),
            _ => unexpected(error.into()),
        },
        Error::Device { error: DeviceError::Lost { device, .. }, .. } => match on_device::number(&device) {
            Some(device) => Observation::Refused(Refusal::Lost(device)),
            None => resume_unwind(Box::new(format!("{device} is lost"))),
        },
        error => unexpected(error),
    }
}
