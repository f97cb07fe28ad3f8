//! Models of nodes, latches and events. Loom checks every interleaving, up to a bound on preemptions:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --profile loom -p anabranch --lib --target-dir target/loom models
//! ```
//!
//! The results of tasks are cells that loom watches: it reports a task that reads while another one may still
//! write. A wake-up that is lost is a deadlock, which loom reports, too.

use super::{
    core::Core,
    current_task::RuntimeId,
    groups::group::{Callback, Due, Group},
    task::{
        links::Completed,
        node::{Body, Head, Node},
        place::Place,
        properties::{Needs, Properties},
        queued::Next,
    },
    threads::compute::Compute,
};
use crate::{
    error::{Cause, Failure},
    events::{
        event::Event,
        latch::{Latch, Latches},
    },
    label::TaskLabel,
    sync::thread::current,
};
use anabranch_graph::TaskId;
use anabranch_par::Patience;
use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicUsize, Ordering::*},
    thread,
};
use std::{
    panic::Location,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

mod queued;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

/// The models do the work of a task themselves, where the runtime would call the body.
struct NoBody;

impl Body for NoBody {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {}
}

fn label() -> TaskLabel {
    TaskLabel { name: "task".into(), location: Location::caller() }
}

fn node(id: u64) -> Node {
    node_in(None, id)
}

fn node_in(group: Option<Arc<Group>>, id: u64) -> Node {
    let (place, observes) = (Place::Compute, false);
    let properties = Properties { label: label(), place, observes, group, contention: None, queue: None };
    // The models never ask a node for its runtime.
    let head = Head::new(TaskId(id), properties, NonNull::<Core>::dangling(), RuntimeId::new().unwrap());
    Node::new(|| head, || NoBody)
}

/// A node that depends on nothing and is claimed by its runner.
fn running(id: u64) -> Node {
    let node = node(id);
    assert!(node.wait_for_dependencies(0) && node.claim());
    node
}

/// A number that one task writes and another one reads.
#[derive(Clone)]
struct Contents(Arc<UnsafeCell<usize>>);

// SAFETY: loom checks every access.
unsafe impl Send for Contents {}
// SAFETY: as above.
unsafe impl Sync for Contents {}

impl Contents {
    fn new() -> Self {
        Self(Arc::new(UnsafeCell::new(0)))
    }

    fn add(&self) {
        // SAFETY: the tasks of the models that write wait for each other; loom reports a race otherwise.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

/// Completes a claimed task like `Node::retire`, which needs a runtime. Calls `start` with each successor
/// that becomes ready.
fn retire(node: &Node, mut start: impl FnMut(&Node)) {
    let Completed { successors, latches, poison } = node.complete(|callback| callback(node));
    node.release_successors(successors, poison, |next| match next {
        Next::Ready(node) => start(&node),
        Next::Ended(node) => unreachable!("{node:?} goes to no queue"),
    });
    latches.into_iter().for_each(Latches::release);
}

/// Two tasks complete while a third one is submitted that needs both. It starts once, and sees what both have
/// written.
#[test]
fn a_task_starts_once_and_after_its_dependencies() {
    model(|| {
        let starts = Arc::new(AtomicUsize::new(0));
        let contents = [Contents::new(), Contents::new()];
        let start = {
            let (starts, contents) = (Arc::clone(&starts), contents.clone());
            move |node: &Node| {
                assert!(node.is_ready() && node.claim());
                assert!(contents.iter().all(|contents| contents.get() == 1));
                starts.fetch_add(1, Relaxed);
            }
        };
        let before = [running(1), running(2)];
        let runners: Vec<_> = std::iter::zip(before.clone(), contents)
            .map(|(node, contents)| {
                let start = start.clone();
                thread::spawn(move || {
                    contents.add();
                    retire(&node, start);
                })
            })
            .collect();
        let after = node(3);
        let dependencies = before.iter().filter(|node| node.add_successor(&after, Needs::Contents)).count();
        if after.wait_for_dependencies(dependencies as u32) {
            start(&after);
        }
        runners.into_iter().for_each(|runner| runner.join().unwrap());
        assert_eq!(starts.load(Relaxed), 1);
    });
}

/// A task fails while another one is submitted that needs its results: the other one is poisoned when it
/// starts.
#[test]
fn a_failure_reaches_a_successor_that_is_being_submitted() {
    model(|| {
        let before = running(1);
        let start = |node: &Node| {
            assert!(node.claim() && node.is_poisoned());
            assert_eq!(node.poison().expect("the failure of the first task").id, TaskId(1));
        };
        let runner = {
            let before = before.clone();
            thread::spawn(move || {
                before.fail(Arc::new(Failure::new(TaskId(1), label(), Cause::Cancelled)));
                retire(&before, start);
            })
        };
        let after = node(2);
        let dependencies = u32::from(before.add_successor(&after, Needs::Contents));
        if after.wait_for_dependencies(dependencies) {
            start(&after);
        }
        runner.join().unwrap();
        assert!(after.is_claimed());
    });
}

/// A task is cancelled while a thread claims it. The answer is `true` exactly if that thread finds the task
/// cancelled.
#[test]
fn a_cancelled_task_does_not_begin() {
    model(|| {
        let node = node(1);
        assert!(node.wait_for_dependencies(0));
        let runner = {
            let node = node.clone();
            thread::spawn(move || node.claim() && node.is_cancelled())
        };
        let answer = node.cancel();
        assert_eq!(runner.join().unwrap(), answer);
    });
}

/// A task that begins on all nodes or on none is cancelled while it is committed. The answer is `true`
/// exactly if it is not committed, and then the thread that claims it finds it cancelled.
#[test]
fn a_committed_task_is_not_cancelled() {
    model(|| {
        let node = node(1);
        let runner = {
            let node = node.clone();
            thread::spawn(move || {
                let commits = node.commit();
                assert!(node.wait_for_dependencies(0) && node.claim());
                assert_eq!(node.is_cancelled(), !commits);
                commits
            })
        };
        let answer = node.cancel();
        assert_eq!(runner.join().unwrap(), !answer);
    });
}

/// Two threads find a ready task. One of them gives its claim back, and queues the task again.
#[test]
fn a_claim_that_is_given_back_passes_the_task_on() {
    model(|| {
        let (node, contents) = (node(1), Contents::new());
        assert!(node.wait_for_dependencies(0));
        let other = {
            let (node, contents) = (node.clone(), contents.clone());
            thread::spawn(move || {
                if node.claim() {
                    contents.add();
                    node.unclaim();
                }
            })
        };
        let claimed = node.claim();
        if claimed {
            contents.add();
        }
        other.join().unwrap();
        if !claimed {
            assert!(node.claim(), "the other thread has given its claim back");
            assert_eq!(contents.get(), 1);
        }
    });
}

/// A thread waits for a task that completes meanwhile. It wakes up, and sees what the task has written.
#[test]
fn a_thread_that_waits_for_a_task_sees_its_results() {
    model(|| {
        let (node, contents) = (running(1), Contents::new());
        let runner = {
            let (node, contents) = (node.clone(), contents.clone());
            thread::spawn(move || {
                contents.add();
                retire(&node, |_| ());
            })
        };
        node.latch().event.wait(Patience::new(), || false, Duration::MAX, || ());
        assert!(node.is_done());
        assert_eq!(contents.get(), 1);
        runner.join().unwrap();
    });
}

/// A task ends later than its body. Another thread finishes its completion while the body returns: one of the
/// two retires the task, after both, and sees what both have written.
#[test]
fn a_task_that_ends_later_is_retired_once() {
    model(|| {
        let (node, contents) = (running(1), [Contents::new(), Contents::new()]);
        let retired = Arc::new(AtomicUsize::new(0));
        node.defer_end();
        let finish = {
            let (contents, retired) = (contents.clone(), Arc::clone(&retired));
            move |node: &Node| {
                assert!(contents.iter().all(|contents| contents.get() == 1));
                retired.fetch_add(1, Relaxed);
                retire(node, |_| ());
            }
        };
        let completion = {
            let (node, contents, finish) = (node.clone(), contents[0].clone(), finish.clone());
            thread::spawn(move || {
                contents.add();
                if node.completion_is_finished() {
                    finish(&node);
                }
            })
        };
        contents[1].add();
        if node.body_has_returned() {
            finish(&node);
        }
        completion.join().unwrap();
        assert!(node.is_done());
        assert_eq!(retired.load(Relaxed), 1);
    });
}

/// A callback is added while the task completes. It is called once, by either thread, and sees what the task
/// has written.
#[test]
fn a_callback_is_called_once() {
    model(|| {
        let (node, contents) = (running(1), Contents::new());
        let calls = Arc::new(AtomicUsize::new(0));
        let runner = {
            let (node, contents) = (node.clone(), contents.clone());
            thread::spawn(move || {
                contents.add();
                retire(&node, |_| ());
            })
        };
        let callback = {
            let calls = Arc::clone(&calls);
            Box::new(move |_: &Head| {
                assert_eq!(contents.get(), 1);
                calls.fetch_add(1, Relaxed);
            })
        };
        if let Err(callback) = node.add_callback(callback) {
            callback(&node);
        }
        runner.join().unwrap();
        assert_eq!(calls.load(Relaxed), 1);
    });
}

/// Completes a task of a group, and calls callbacks whose turn has come.
fn complete(group: &Group) {
    let mut latches = Vec::new();
    let mut due = group.complete(&mut latches);
    while let Some(Due { group, callbacks }) = due {
        callbacks.into_iter().for_each(|callback| (callback.call)(group));
        due = group.complete(&mut latches);
    }
    latches.into_iter().for_each(|latch| latch.release());
}

/// Tasks of a group and of a group in it complete, while a thread adds a callback and waits. The callback is
/// called once, by either thread, and sees what both tasks have written. The thread that waits goes on after
/// it.
#[test]
fn a_wait_for_a_group_waits_for_its_callbacks() {
    model(|| {
        let outer = Group::new("outer".into(), None);
        let inner = Group::new("inner".into(), Some(&outer));
        let (first, second, called) = (Contents::new(), Contents::new(), Contents::new());
        inner.submit();
        outer.submit();
        let runners =
            [(inner, first.clone()), (Arc::clone(&outer), second.clone())].map(|(group, contents)| {
                thread::spawn(move || {
                    contents.add();
                    complete(&group);
                })
            });
        let calls = called.clone();
        let call = Box::new(move |_: &Group| {
            assert_eq!((first.get(), second.get()), (1, 1));
            calls.add();
        });
        if let Err(callback) = outer.add_callback(Callback { call, label: label() }) {
            (callback.call)(&outer);
        }
        outer.latch().event.wait(Patience::new(), || false, Duration::MAX, || ());
        assert!(outer.is_idle());
        assert_eq!(called.get(), 1);
        runners.into_iter().for_each(|runner| runner.join().unwrap());
    });
}

/// A task of a group completes while a thread begins to wait for the runtime. The thread goes on after the
/// callback of the group.
#[test]
fn a_wait_for_the_runtime_waits_for_callbacks_of_groups() {
    model(|| {
        let (group, called) = (Group::new("group".into(), None), Contents::new());
        let node = node_in(Some(Arc::clone(&group)), 1);
        assert!(node.wait_for_dependencies(0) && node.claim());
        group.submit();
        let calls = called.clone();
        let call = Box::new(move |_: &Group| calls.add());
        assert!(group.add_callback(Callback { call, label: label() }).is_ok());
        let runner = {
            let node = node.clone();
            thread::spawn(move || {
                retire(&node, |_| ());
                complete(&group);
                node.close().into_iter().for_each(Latches::release);
            })
        };
        let (latch, mut dead) = (Latch::new(TaskId(1)), Vec::new());
        node.add_latch_if_last(&latch, &mut dead);
        latch.release();
        latch.event.wait(Patience::new(), || false, Duration::MAX, || ());
        assert_eq!(called.get(), 1);
        runner.join().unwrap();
    });
}

/// A group gets another task and another callback while its first callback comes due. Each is called once,
/// when the tasks before it have completed.
#[test]
fn a_callback_of_a_group_is_called_once() {
    model(|| {
        let group = Group::new("group".into(), None);
        let calls = Arc::new(AtomicUsize::new(0));
        let callback = |contents: &Contents| {
            let (contents, calls) = (contents.clone(), Arc::clone(&calls));
            let call = Box::new(move |_: &Group| {
                assert_eq!(contents.get(), 1);
                calls.fetch_add(1, Relaxed);
            });
            Callback { call, label: label() }
        };
        let (first, second) = (Contents::new(), Contents::new());
        group.submit();
        assert!(group.add_callback(callback(&first)).is_ok());
        let runner = {
            let group = Arc::clone(&group);
            thread::spawn(move || {
                first.add();
                complete(&group);
            })
        };
        group.submit();
        assert!(group.add_callback(callback(&second)).is_ok());
        second.add();
        complete(&group);
        runner.join().unwrap();
        assert_eq!((calls.load(Relaxed), group.is_idle()), (2, true));
    });
}

/// Two threads wait for one event.
#[test]
fn an_event_wakes_all_threads() {
    model(|| {
        let event = Arc::new(Event::default());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let event = Arc::clone(&event);
                thread::spawn(move || event.wait(Patience::new(), || false, Duration::MAX, || ()))
            })
            .collect();
        event.set();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// A future is polled while the event is set. If it is pending, its waker is called.
#[test]
fn an_event_wakes_a_future() {
    struct Unpark(crate::sync::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    model(|| {
        let (event, contents) = (Arc::new(Event::default()), Contents::new());
        let setter = {
            let (event, contents) = (Arc::clone(&event), contents.clone());
            thread::spawn(move || {
                contents.add();
                event.set();
            })
        };
        let waker = Waker::from(Arc::new(Unpark(current())));
        while let Poll::Pending = event.poll(&mut Context::from_waker(&waker)) {
            thread::park();
        }
        assert_eq!(contents.get(), 1);
        setter.join().unwrap();
    });
}
