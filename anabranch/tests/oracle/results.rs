//! Results of fences, barriers and waits, as observations.

use crate::model::{Captured, Observation, Refusal, Report};
use anabranch::{Error, Failures, Mistake, prelude::*};

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

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn numbers(self) -> Vec<u64> {
        let (a, b) = self;
        [a.numbers(), b.numbers()].concat()
    }
}

/// A fence or a barrier to wait for.
pub type Pending = Box<dyn FnOnce() -> Result<Vec<u64>, Error>>;

pub fn chain(failures: &Failures) -> Vec<String> {
    let first = failures.iter().next().expect("never empty");
    first.chain().map(|failure| failure.task.name().to_string()).collect()
}

pub fn captured(result: Result<Vec<u64>, Error>) -> Captured {
    match result {
        Ok(values) => Captured::Values(values),
        // The error of a fence is the failure of the task that it needed.
        Err(Error::Failed(failures)) => Captured::Failed(chain(&failures)),
        Err(error) => panic!("{error}"),
    }
}

pub fn report(result: Result<(), Error>) -> Option<Report> {
    let failures = match result {
        Ok(()) => return None,
        Err(Error::Failed(failures)) => failures,
        Err(error) => panic!("{error}"),
    };
    let names = failures.iter().map(|failure| failure.task.name().to_string()).collect();
    Some(Report(names, failures.skipped()))
}

/// The result of waiting for a barrier: its report of failures, or its captured values.
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
            _ => panic!("{error}"),
        },
        error => panic!("{error}"),
    }
}
