//! Warnings: what is told through `tracing` by threads that wait.

mod common;

use anabranch::prelude::*;
use common::Gate;
use parking_lot::Mutex;
use std::{fmt, sync::Arc, time::Duration};
use tracing::{Event, Level, Metadata, Subscriber, field::Visit, span};

/// Records the messages of warnings.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Message(String);
        impl Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().push(message.0);
    }
}

/// The warnings given on this thread meanwhile.
fn warnings(what: impl FnOnce(&Recorder)) -> Vec<String> {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || what(&recorder));
    let warnings = recorder.0.lock();
    warnings.clone()
}

fn impatient(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).patience(Duration::from_millis(20)).build().unwrap()
}

#[test]
fn a_task_that_runs_for_long_is_named_once() {
    let told = warnings(|_| {
        let rt = impatient(2);
        rt.task("sleeps").once().host(|()| std::thread::sleep(Duration::from_millis(300))).unwrap();
        // Not helped: so that the lane has it, and this thread watches.
        std::thread::sleep(Duration::from_millis(10));
        rt.wait().unwrap();
    });
    let running: Vec<_> = told.iter().filter(|w| w.contains("has been running for")).collect();
    assert_eq!(running.len(), 1, "{told:?}");
    assert!(running[0].starts_with("task \"sleeps\" (") && running[0].contains("warnings.rs:"), "{told:?}");
}

#[test]
fn a_standstill_is_told_with_names() {
    let told = warnings(|recorder| {
        let rt = impatient(1);
        let (object, gate) = (rt.host_object(()), Gate::default());
        let held = gate.clone();
        rt.task("holds up").once().effect(&object, exclusive()).host(move |_| held.pass()).unwrap();
        let waits = rt.task("waits").once().effect(&object, exclusive()).host(|_| ()).unwrap();
        let (recorder, opener) = (recorder.clone(), gate.clone());
        let opens = std::thread::spawn(move || {
            let is_told = |w: &String| w.contains("no task has ended for");
            while !recorder.0.lock().iter().any(is_told) {
                std::thread::sleep(Duration::from_millis(1));
            }
            opener.open();
        });
        waits.wait().unwrap();
        opens.join().unwrap();
        rt.wait().unwrap();
    });
    let standstill: Vec<_> = told.iter().filter(|w| w.contains("no task has ended for")).collect();
    assert_eq!(standstill.len(), 1, "{told:?}");
    assert!(standstill[0].contains("running: task \"holds up\""), "{told:?}");
    assert!(
        standstill[0].contains("waiting: 1, of which 1 for others that they must not run beside"),
        "{told:?}"
    );
}

#[test]
fn a_submitter_that_is_held_back_watches_too() {
    let told = warnings(|recorder| {
        let rt = Runtime::builder().threads(1).lead(1).patience(Duration::from_millis(20)).build().unwrap();
        let gate = Gate::default();
        let held = gate.clone();
        rt.task("blocks").once().host(move |()| held.pass()).unwrap();
        let recorder = recorder.clone();
        let opens = std::thread::spawn(move || {
            while recorder.0.lock().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            gate.open();
        });
        rt.task("next").once().host(|()| ()).unwrap();
        opens.join().unwrap();
        rt.wait().unwrap();
    });
    assert!(told.iter().any(|w| w.contains("task \"blocks\"")), "{told:?}");
}

#[test]
fn too_many_waits_are_told_once() {
    let told = warnings(|_| {
        let rt = Runtime::builder().threads(1).build().unwrap();
        for _ in 0..3000 {
            // Busy when the wait begins.
            let u = rt.buffer_from(&[0]).unwrap();
            rt.task("task").once().update(&u, all()).host(|_| std::thread::yield_now()).unwrap();
            rt.wait().unwrap();
        }
    });
    let waits: Vec<_> = told.iter().filter(|w| w.contains("waits with")).collect();
    assert_eq!(waits.len(), 1, "{told:?}");
    assert!(waits[0].starts_with("1000 waits with 1."), "{told:?}");
}

#[test]
fn a_runtime_that_starves_is_told_once() {
    let told = warnings(|_| {
        let rt = Runtime::builder().threads(1).build().unwrap();
        for _ in 0..3 * 64 * 64 {
            rt.task("task").once().host(|()| ()).unwrap().wait().unwrap();
        }
    });
    assert_eq!(told.iter().filter(|w| w.contains("its threads starve")).count(), 1, "{told:?}");
}

#[test]
fn a_program_that_does_well_hears_nothing() {
    let told = warnings(|_| {
        let rt = impatient(2);
        let u = rt.buffer_from(&[0; 64]).unwrap();
        for _ in 0..50 {
            for _ in 0..100 {
                rt.task("count")
                    .over([64])
                    .update(&u, one_to_one())
                    .kernel(|t, (u,)| t.points().for_each(|p| u[p] += 1))
                    .unwrap();
            }
            rt.wait().unwrap();
        }
    });
    assert!(told.is_empty(), "{told:?}");
}
