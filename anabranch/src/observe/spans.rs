//! Spans, through [`tracing`]: one for each run of a task and one for each wait, both at the level `DEBUG`.
//!
//! Without a subscriber that is interested in this level, a span costs one relaxed load. (Programs that use
//! the `log` crate instead of `tracing` get the [warnings](super::warnings), not the spans.)

use crate::label::TaskLabel;
use tracing::{Level, debug_span, level_filters::LevelFilter, span::EnteredSpan};

/// The span of a task that runs on this thread, or is skipped. The span is in a box, so that most tasks,
/// which have none, copy one word.
#[inline]
pub(crate) fn task_span(label: &TaskLabel) -> Option<Box<EnteredSpan>> {
    is_enabled().then(|| enter_task(label))
}

/// The span of a wait in the function `call`.
#[inline]
pub(crate) fn wait_span(call: &'static str) -> Option<EnteredSpan> {
    is_enabled().then(|| enter_wait(call))
}

/// Without a subscriber, the current maximum level is `OFF`.
#[inline]
fn is_enabled() -> bool {
    LevelFilter::current() >= Level::DEBUG
}

#[cold]
fn enter_task(label: &TaskLabel) -> Box<EnteredSpan> {
    let location = label.location();
    Box::new(
        debug_span!("task", name = label.name(), file = location.file(), line = location.line()).entered(),
    )
}

#[cold]
fn enter_wait(call: &'static str) -> EnteredSpan {
    debug_span!("wait", call).entered()
}
