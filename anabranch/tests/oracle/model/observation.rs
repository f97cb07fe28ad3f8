//! What a program observes: the results of its steps.

use anabranch::Status;

/// What a step shows to the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub what: Observation,
    /// The status in each call of a callback that the step has added.
    pub called: Vec<Status>,
    /// Whether a callback that panics was called by the thread that added it, because the task was done already.
    pub passed_on: bool,
}

/// The observable result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    Nothing,
    /// The step was refused because of its declaration.
    Refused(Refusal),
    /// The status of a task that has ended, and the chain of causes: the task itself first, then the tasks that it needed.
    Task(Status, Vec<String>),
    /// The result of a fence, or of a barrier that was waited for later.
    Captured(Captured),
    /// The failures that a wait reported, for the current group or for tasks in none, and the values that a barrier captured.
    Report(Option<Report>, Option<Captured>),
    /// The failures that were left in each group.
    GroupReports(Vec<Option<Report>>),
    /// The result of cancelling a task.
    CancelAnswer(bool),
    /// The result of a drain, and the values that the host objects still had if it failed.
    Drained(Box<Observation>, Vec<Option<Vec<u64>>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    Outside,
    NeverWritten,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    Values(Vec<u64>),
    Failed(Vec<String>),
}

/// The failures, oldest first, and the number of skipped tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Report(pub Vec<String>, pub u64);

pub fn name(step: usize) -> String {
    format!("step {step}")
}
