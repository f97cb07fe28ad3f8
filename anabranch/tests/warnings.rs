//! Threads that wait warn through `tracing` about tasks that run long, standstills and too many waits. Each
//! warning comes once, and a healthy program gets none.

mod common;

use anabranch::prelude::*;
use common::Gate;
use parking_lot::Mutex;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use testing::deadline;
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

/// Runs `program`, and returns the warnings of this thread.
fn warnings(program: impl FnOnce(&Recorder)) -> Vec<String> {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || program(&recorder));
    let warnings = recorder.0.lock();
    warnings.clone()
}

fn impatient(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).patience(Duration::from_millis(20)).build().unwrap()
}

#[test]
fn a_long_running_task_is_named_once() {
    let _deadline = deadline();
    let given = warnings(|_| {
        let rt = impatient(2);
        rt.task("sleeps").once().host(|()| std::thread::sleep(Duration::from_millis(300))).unwrap();
        // Wait until a lane has the task, so that this thread does not run it and watches instead.
        std::thread::sleep(Duration::from_millis(10));
        rt.wait().unwrap();
    });
    let running: Vec<_> = given.iter().filter(|w| w.contains("has been running for")).collect();
    assert_eq!(running.len(), 1, "{given:?}");
    assert!(running[0].starts_with("task \"sleeps\" (") && running[0].contains("warnings.rs:"), "{given:?}");
}

#[test]
fn a_standstill_is_reported_with_the_names_of_running_tasks() {
    let _deadline = deadline();
    let given = warnings(|recorder| {
        let rt = impatient(1);
        let (object, gate) = (rt.host_object(()), Gate::default());
        let held = gate.clone();
        rt.task("holds up").once().effect(&object, exclusive()).host(move |_| held.pass()).unwrap();
        let waits = rt.task("waits").once().effect(&object, exclusive()).host(|_| ()).unwrap();
        let (recorder, opener) = (recorder.clone(), gate.clone());
        let opens = std::thread::spawn(move || {
            let is_standstill = |w: &String| w.contains("no task has ended for");
            while !recorder.0.lock().iter().any(is_standstill) {
                std::thread::sleep(Duration::from_millis(1));
            }
            opener.open();
        });
        waits.wait().unwrap();
        opens.join().unwrap();
        rt.wait().unwrap();
    });
    let standstill: Vec<_> = given.iter().filter(|w| w.contains("no task has ended for")).collect();
    assert_eq!(standstill.len(), 1, "{given:?}");
    assert!(standstill[0].contains("running: task \"holds up\""), "{given:?}");
    assert!(
        standstill[0].contains("waiting: 1, of which 1 because of a conflict with a running task"),
        "{given:?}"
    );
}

#[test]
fn a_submitter_that_waits_for_the_limit_of_tasks_in_flight_warns_too() {
    let _deadline = deadline();
    let given = warnings(|recorder| {
        let rt = Runtime::builder()
            .threads(1)
            .max_in_flight(1)
            .patience(Duration::from_millis(20))
            .build()
            .unwrap();
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
    assert!(given.iter().any(|w| w.contains("task \"blocks\"")), "{given:?}");
}

#[test]
fn too_many_waits_are_reported_once() {
    let _deadline = deadline();
    let given = warnings(|_| {
        let rt = Runtime::builder().threads(1).build().unwrap();
        for _ in 0..3000 {
            // The task makes the runtime busy when the wait begins.
            let u = rt.buffer_from(&[0]).unwrap();
            rt.task("task").once().update(&u, all()).host(|_| std::thread::yield_now()).unwrap();
            rt.wait().unwrap();
        }
    });
    let waits: Vec<_> = given.iter().filter(|w| w.contains("waits with")).collect();
    assert_eq!(waits.len(), 1, "{given:?}");
    assert!(waits[0].starts_with("1000 waits with 1."), "{given:?}");
}

#[test]
fn a_starving_runtime_is_reported_once() {
    let _deadline = deadline();
    let given = warnings(|_| {
        let rt = Runtime::builder().threads(1).build().unwrap();
        for _ in 0..3 * 64 * 64 {
            rt.task("task").once().host(|()| ()).unwrap().wait().unwrap();
        }
    });
    assert_eq!(
        given.iter().filter(|w| w.contains("its threads are idle most of the time")).count(),
        1,
        "{given:?}"
    );
}

#[test]
fn a_healthy_program_gets_no_warning() {
    let _deadline = deadline();
    // The system may stop a thread for some 20 ms on a busy machine, and a standstill of that length deserves
    // a warning. The program runs for several times the patience, so that a thread has looked for
    // reasons to warn.
    let patience = Duration::from_millis(500);
    let given = warnings(|_| {
        let rt = Runtime::builder().threads(2).patience(patience).build().unwrap();
        let u = rt.buffer_from(&[0; 64]).unwrap();
        let begin = Instant::now();
        while begin.elapsed() < 3 * patience {
            // The first task ends when all others are submitted. So the submissions find the runtime busy,
            // however fast its threads are.
            let submitted = Gate::default();
            let all_submitted = submitted.clone();
            rt.task("first").once().update(&u, all()).host(move |_| all_submitted.pass()).unwrap();
            for _ in 0..100 {
                rt.task("count")
                    .over([64])
                    .update(&u, one_to_one())
                    .kernel(|t, (u,)| t.points().for_each(|p| u[p] += 1))
                    .unwrap();
            }
            submitted.open();
            rt.wait().unwrap();
        }
    });
    assert!(given.is_empty(), "{given:?}");
}
