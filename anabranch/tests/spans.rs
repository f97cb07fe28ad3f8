//! Spans: a subscriber of `tracing` sees every run of a task and every wait.

use anabranch::prelude::*;
use parking_lot::Mutex;
use std::{fmt, sync::Arc};
use testing::deadline;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Records the spans, with the fields that have strings as their values.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        *self.0 += &format!(" {}={value}", field.name());
    }
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        self.0.lock().push(text);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_task_and_a_wait_have_a_span_each() {
    let _deadline = deadline();
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        // A seeded runtime runs its tasks on this thread, which has the subscriber.
        let rt = Runtime::builder().seeded(1).build().unwrap();
        rt.task("greet").once().host(|()| ()).unwrap();
        rt.task("part").once().host(|()| ()).unwrap();
        let counter = rt.host_object(());
        // More tasks than a submission runs, so that some are left for the wait.
        for _ in 0..20 {
            rt.task("count").once().effect(&counter, sequential()).host(|_| ()).unwrap();
        }
        rt.wait().unwrap();
    });
    let spans = recorder.0.lock();
    for name in ["greet", "part"] {
        let runs = spans.iter().filter(|span| span.starts_with(&format!("task name={name} file=")));
        assert_eq!(runs.count(), 1, "{spans:?}");
    }
    assert_eq!(spans.iter().filter(|span| *span == "wait call=Runtime::wait").count(), 1, "{spans:?}");
}
