//! Spans: a subscriber of `tracing` sees every run of a task and every wait.

use anabranch::{local_nodes, prelude::*};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};
use testing::deadline;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Calls a function with each span that begins: its name, and the fields that have strings as their values.
struct OnSpan<F>(F);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        *self.0 += &format!(" {}={value}", field.name());
    }
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl<F: Fn(String) + Send + Sync + 'static> Subscriber for OnSpan<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        (self.0)(text);
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Panics when the span of a fence begins.
fn no_fences(span: String) {
    assert!(!span.contains("name=fence"), "no spans of fences");
}

#[test]
fn a_task_and_a_wait_have_a_span_each() {
    let _deadline = deadline();
    let spans = Arc::new(Mutex::new(Vec::new()));
    let record = {
        let spans = Arc::clone(&spans);
        move |span| spans.lock().push(span)
    };
    tracing::subscriber::with_default(OnSpan(record), || {
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
    let spans: Vec<String> = spans.lock().clone();
    for name in ["greet", "part"] {
        let runs = spans.iter().filter(|span| span.starts_with(&format!("task name={name} file=")));
        assert_eq!(runs.count(), 1, "{spans:?}");
    }
    assert_eq!(spans.iter().filter(|span| *span == "wait call=Runtime::wait").count(), 1, "{spans:?}");
}

#[test]
fn a_fence_whose_subscriber_panics_fails() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(1).build().unwrap();
    let u = rt.buffer_from(&[1.0]).unwrap();
    let error =
        tracing::subscriber::with_default(OnSpan(no_fences), || rt.fence(&u).unwrap().wait()).unwrap_err();
    assert!(error.to_string().contains("no spans of fences"), "{error}");
    assert!(rt.wait().is_err());
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap()[[0]], 1.0);
}

/// The steps that exchange data for a fence are no runs of it. If they had spans, this subscriber would let
/// the other node wait for ever.
#[test]
fn transfers_between_nodes_have_no_spans() {
    let _deadline = deadline();
    let results = local_nodes(2).threads(1).run(|rt| {
        let u = rt.buffer::<f64, 1>([10]);
        rt.task("fill").over([10]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
        rt.wait()?;
        let fence = || rt.fence(&u).and_then(|fence| fence.wait());
        let result = match rt.node() {
            1 => tracing::subscriber::with_default(OnSpan(no_fences), fence),
            _ => fence(),
        };
        Ok(result.map(Snapshot::into_vec).map_err(|error| error.to_string()))
    });
    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(results[0], Ok(vec![1.0; 10]));
    // The fence itself may run on a thread that has no subscriber.
    assert!(results[1].as_ref().map_or_else(|error| error.contains("no spans of fences"), |u| u.len() == 10));
}
