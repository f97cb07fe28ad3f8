//! Observing a program: failures for the next report, warnings, spans, recorded graphs and dry runs.

mod failures;
mod recorder;
mod spans;
mod watchdog;

pub(crate) use self::{
    failures::{MAX_LISTED, UnreportedFailures},
    recorder::{NodeAccess, Place as RecordedPlace, RecordedTask, Recorder, TaskRecord, Touched},
    spans::{task_span, wait_span},
    watchdog::{Progress, Watchdog},
};
