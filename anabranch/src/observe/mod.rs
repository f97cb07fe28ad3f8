//! Observing a program: failures for the next report, warnings, spans, recorded graphs and dry runs.

mod failures;
mod recorder;
mod spans;
mod warnings;

pub(crate) use self::{
    failures::{MAX_LISTED, UnreportedFailures},
    recorder::{NodeAccess, Place as RecordedPlace, RecordedTask, Recorder, TaskRecord, Touched},
    spans::{task_span, wait_span},
    warnings::{Progress, Warnings},
};
