//! The runtime holds no lock while it calls code of the program: range mappers, destructors, `Clone`, wakers,
//! subscribers of `tracing`. Each of them may submit tasks and take snapshots.

mod common;

use anabranch::{grid::Chunk, prelude::*};
use common::{Gate, THREADS, runtime};
use parking_lot::Mutex;
use std::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::*},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use testing::deadline;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// What code of the program does in these tests: it submits tasks and takes a snapshot.
#[derive(Clone)]
struct Program {
    rt: Weak<Runtime>,
    calls: Arc<AtomicUsize>,
}

impl Program {
    fn of(rt: &Arc<Runtime>) -> Self {
        Self { rt: Arc::downgrade(rt), calls: Arc::default() }
    }

    fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Submits tasks to the runtime and takes a snapshot. Does not wait.
    fn act(&self) {
        let Some(rt) = self.rt.upgrade() else { return };
        let u = rt.buffer_from(&[1, 2, 3]).unwrap();
        rt.task("of foreign code").once().update(&u, all()).host(|(u,)| u[[0]] += 1).unwrap();
        drop(rt.fence(&u).unwrap());
        self.calls.fetch_add(1, Relaxed);
    }

    /// The same, and waits for the snapshot.
    fn act_and_wait(&self) {
        self.act();
        let Some(rt) = self.rt.upgrade() else { return };
        let u = rt.buffer_from(&[1, 2, 3]).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [1, 2, 3]);
    }
}

/// Acts when it is dropped or cloned.
struct Value(Program);

impl Clone for Value {
    fn clone(&self) -> Self {
        self.0.act();
        Self(self.0.clone())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.0.act();
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that acts")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that acts")
    }
}

impl std::error::Error for Value {}

/// Calls a function when it is dropped; also as a waker.
struct OnDrop<F: Fn()>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for OnDrop<F> {
    fn wake(self: Arc<Self>) {}
}

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn mappers_of_a_dry_run_may_submit_wait_and_drop_buffers() {
    let _deadline = deadline();
    for nodes in [1, 4] {
        let rt = Arc::new(Runtime::builder().threads(2).dry_run(nodes).build().unwrap());
        let program = Program::of(&rt);
        let buffers = Mutex::new((0..1000).map(|_| rt.buffer_from(&[0]).unwrap()).collect::<Vec<_>>());
        let u = rt.buffer_from(&[0_u8; 64]).unwrap();
        let mapper_program = program.clone();
        let acting = mapper(move |chunk: &Chunk<1>, _| {
            mapper_program.act_and_wait();
            let last = buffers.lock().pop();
            drop(last);
            chunk.range
        });
        rt.task("acts in its mapper").over([64]).update(&u, acting).kernel(|_, (_,)| ()).unwrap();
        rt.task("after").over([64]).read(&u, neighborhood([1])).kernel(|_, (_,)| ()).unwrap();
        rt.wait().unwrap();
        let (calls, summary) = (program.calls(), rt.dry_run_summary().unwrap());
        assert!(calls > 1, "{calls}");
        assert!(!summary.contains("refused"), "{summary}");
        // Two tasks and a fence for each call, and these two tasks.
        assert!(summary.contains(&format!(": {} tasks,", 3 * calls + 2)), "{calls}: {summary}");
    }
}

/// Threads that submit while the mapper of another thread runs leave the command graphs to that thread.
#[test]
fn a_slow_mapper_of_a_dry_run_delays_no_other_thread() {
    let _deadline = deadline();
    /// The calls at the submission: for the whole index space, and for each chunk.
    const AT_SUBMISSION: usize = 1 + 4;
    let rt = Arc::new(Runtime::builder().threads(2).dry_run(2).build().unwrap());
    let u = rt.buffer_from(&[0_u8; 64]).unwrap();
    let submitter = Arc::clone(&rt);
    // The task itself asks the mapper first, for its chunks. The dry run asks it last.
    let calls = AtomicUsize::new(0);
    let waits = mapper(move |chunk: &Chunk<1>, _| {
        if calls.fetch_add(1, Relaxed) == AT_SUBMISSION {
            let rt = Arc::clone(&submitter);
            let other = std::thread::spawn(move || {
                for _ in 0..10 {
                    rt.task("of another thread").once().host(|()| ()).unwrap();
                }
                rt.wait().unwrap();
            });
            other.join().unwrap();
        }
        chunk.range
    });
    rt.task("has a slow mapper").over([64]).chunks(4).update(&u, waits).kernel(|_, (_,)| ()).unwrap();
    rt.wait().unwrap();
    let summary = rt.dry_run_summary().unwrap();
    assert!(summary.contains(": 11 tasks,"), "the mapper was asked by the dry run: {summary}");
}

#[test]
fn mappers_may_submit_and_wait_when_they_are_dropped() {
    let _deadline = deadline();
    for nodes in [1, 4] {
        let rt = Arc::new(Runtime::builder().threads(2).dry_run(nodes).build().unwrap());
        let program = Program::of(&rt);
        for _ in 0..20 {
            let u = rt.buffer_from(&[0_u8; 64]).unwrap();
            let acting = program.clone();
            let value = OnDrop(move || acting.act_and_wait());
            let mapper = mapper(move |chunk: &Chunk<1>, _| {
                let _ = &value;
                chunk.range
            });
            rt.task("has a mapper").over([64]).update(&u, mapper).kernel(|_, (_,)| ()).unwrap();
        }
        rt.wait().unwrap();
        assert!(program.calls() > 0, "{}", program.calls());
    }
}

/// Acts at each warning.
struct Acting(Program);

impl Subscriber for Acting {
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
    fn event(&self, _: &Event<'_>) {
        // Enough submissions for a sample of the warnings.
        (0..64).for_each(|_| self.0.act());
        self.0.rt.upgrade().unwrap().wait().unwrap();
    }
}

#[test]
fn subscribers_of_warnings_may_submit_and_wait() {
    let _deadline = deadline();
    let starve: fn(&Runtime) = |rt| {
        for _ in 0..3 * 64 * 64 {
            rt.task("alone").once().host(|()| ()).unwrap().wait().unwrap();
        }
    };
    let wait_often: fn(&Runtime) = |rt| {
        for _ in 0..3000 {
            let u = rt.buffer_from(&[0]).unwrap();
            rt.task("task").once().update(&u, all()).host(|_| std::thread::yield_now()).unwrap();
            rt.wait().unwrap();
        }
    };
    let run_long: fn(&Runtime) = |rt| {
        let sleeps = rt.task("sleeps").once().host(|()| std::thread::sleep(Duration::from_millis(300)));
        while sleeps.as_ref().unwrap().status() != Status::Running {
            std::thread::yield_now();
        }
        rt.wait().unwrap();
    };
    for (warning, provoke) in [("starve", starve), ("wait often", wait_often), ("run long", run_long)] {
        let rt = Runtime::builder().threads(1).patience(Duration::from_millis(20)).build();
        let rt = Arc::new(rt.unwrap());
        let program = Program::of(&rt);
        tracing::subscriber::with_default(Acting(program.clone()), || provoke(&rt));
        assert!(program.calls() >= 64, "{warning}: {}", program.calls());
        rt.wait().unwrap();
    }
}

/// Futures that are polled once and dropped leave wakers behind. The runtime drops them when there are many.
#[test]
fn wakers_that_no_future_needs_any_more_may_act_when_they_are_dropped() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(runtime(threads));
        let (gate, program) = (Gate::default(), Program::of(&rt));
        let held = gate.clone();
        rt.task("held").once().host(move |()| held.pass()).unwrap();
        for _ in 0..100 {
            let acting = program.clone();
            let waker = Waker::from(Arc::new(OnDrop(move || acting.act())));
            assert!(pin!(rt.idle()).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert!(program.calls() > 0);
        gate.open();
        rt.wait().unwrap();
    }
}

/// A waker that another one replaces is dropped outside the lock that a task takes when it ends.
#[test]
fn a_waker_that_is_replaced_may_wait_when_it_is_dropped() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(runtime(threads));
        let gate = Gate::default();
        let held = gate.clone();
        let mut task = rt.task("held").once().host(move |()| held.pass()).unwrap();
        let (opens, waits) = (gate.clone(), Arc::clone(&rt));
        let first = Waker::from(Arc::new(OnDrop(move || {
            opens.open();
            waits.wait().unwrap();
        })));
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&first)).is_pending());
        drop(first);
        let mut context = Context::from_waker(Waker::noop());
        // The task ends while the first waker is dropped.
        let _ = Pin::new(&mut task).poll(&mut context);
        task.wait().unwrap();
    }
}

#[test]
fn values_and_errors_may_act_when_they_are_dropped_or_cloned() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(runtime(threads));
        let program = Program::of(&rt);
        let (object, u) = (rt.host_object(Value(program.clone())), rt.buffer_from(&[0]).unwrap());
        for _ in 0..300 {
            let (captured, error) = (Value(program.clone()), Value(program.clone()));
            let task = rt.task("fails").once().update(&u, all()).host(move |_| {
                let _ = &captured;
                Err::<(), _>(error)
            });
            drop(task.unwrap());
            rt.task("heals").once().write(&u, all()).host(|(u,)| u.set([0], 1)).unwrap();
            drop(rt.fence(&object).unwrap());
        }
        drop(rt.wait().unwrap_err());
        drop(object);
        rt.wait().unwrap();
        // Each captured value, each clone and at least the errors that were not reported.
        assert!(program.calls() > 900, "{}", program.calls());
    }
}
