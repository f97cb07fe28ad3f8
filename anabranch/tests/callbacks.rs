//! A callback is called once at the end of a task, a fence or a barrier, however that end comes about, and
//! counts as a part of the task. `drain_async` is `drain` as a future.

mod common;

use anabranch::{Cause, Failures, prelude::*};
use common::{Gate, THREADS, block_on, runtime, runtimes, seeded};
use parking_lot::Mutex;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use testing::deadline;

/// Notes the calls of callbacks.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<(&'static str, Status)>>>);

impl Calls {
    fn note(&self, name: &'static str) -> impl FnOnce(Status) + Send + 'static {
        let calls = Self::clone(self);
        move |status| calls.0.lock().push((name, status))
    }

    /// All calls so far, by name.
    fn sorted(&self) -> Vec<(&'static str, Status)> {
        let mut calls = self.0.lock().clone();
        calls.sort_by_key(|call| call.0);
        calls
    }
}

fn failures(error: Error) -> Failures {
    let Error::Failed(failures) = error else { panic!("{error}") };
    failures
}

#[test]
fn a_callback_is_called_once_with_the_last_status() {
    let _deadline = deadline();
    for rt in runtimes() {
        let calls = Calls::default();
        let (u, object) = (rt.buffer_from(&[0]).unwrap(), rt.host_object(()));
        let good = rt.task("good").once().effect(&object, sequential()).host(|_| ()).unwrap();
        let bad = rt.task("bad").once().update(&u, all()).host(|_| Err::<(), _>("no luck")).unwrap();
        let skipped = rt.task("skipped").once().read(&u, all()).host(|_| ()).unwrap();
        let kernel = rt.task("kernel").over([8]).kernel(|_, ()| ()).unwrap();
        let tasks = [("good", &good), ("bad", &bad), ("skipped", &skipped), ("kernel", &kernel)];
        tasks.iter().for_each(|(name, task)| task.on_done(calls.note(name)));
        rt.wait().unwrap_err();
        let all = [
            ("bad", Status::Failed),
            ("good", Status::Done),
            ("kernel", Status::Done),
            ("skipped", Status::Skipped),
        ];
        assert_eq!(calls.sorted(), all, "the wait for the runtime has waited for the callbacks");
        // They are done, so the callbacks are called at once.
        tasks.iter().for_each(|(name, task)| task.on_done(calls.note(name)));
        assert_eq!(calls.sorted(), all.map(|call| [call, call]).concat());
    }
}

#[test]
fn a_callback_of_a_cancelled_task_is_called_when_its_turn_has_come() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (gate, object, calls) = (Gate::default(), rt.host_object(()), Calls::default());
        let held = gate.clone();
        rt.task("held").once().effect(&object, sequential()).host(move |_| held.pass()).unwrap();
        let next = rt.task("next").once().effect(&object, sequential()).host(|_| ()).unwrap();
        next.on_done(calls.note("first"));
        assert!(next.cancel());
        next.on_done(calls.note("second"));
        assert!(calls.sorted().is_empty());
        gate.open();
        rt.wait().unwrap();
        assert_eq!(calls.sorted(), [("first", Status::Cancelled), ("second", Status::Cancelled)]);
    }
}

#[test]
fn fences_and_barriers_have_callbacks() {
    let _deadline = deadline();
    struct Panics;
    impl Clone for Panics {
        fn clone(&self) -> Self {
            panic!("not this time")
        }
    }
    for rt in runtimes() {
        let calls = Calls::default();
        let (u, bad, panics) =
            (rt.buffer_from(&[1]).unwrap(), rt.buffer::<u8, 1>([1]), rt.host_object(Panics));
        rt.task("bad").once().write(&bad, all()).host(|_| Err::<(), _>("no luck")).unwrap();
        let good = rt.fence(&u).unwrap();
        good.on_done(calls.note("a good fence"));
        let skipped = rt.fence(&bad).unwrap();
        skipped.on_done(calls.note("a skipped fence"));
        let failed = rt.fence(&panics).unwrap();
        failed.on_done(calls.note("a failed fence"));
        let (barrier, bad_barrier) = (rt.barrier(), rt.barrier_with(bad.capture()).unwrap());
        barrier.on_done(calls.note("barrier"));
        bad_barrier.on_done(calls.note("bad barrier"));
        rt.wait().unwrap_err();
        assert_eq!(good.wait().unwrap()[[0]], 1);
        assert!(skipped.wait().is_err() && failed.wait().is_err());
        assert_eq!(
            calls.sorted(),
            [
                ("a failed fence", Status::Failed),
                ("a good fence", Status::Done),
                ("a skipped fence", Status::Skipped),
                ("bad barrier", Status::Skipped),
                ("barrier", Status::Done),
            ]
        );
    }
}

/// A callback races with the end of its task.
#[test]
fn no_callback_is_lost_or_called_twice() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let calls = Arc::new(AtomicUsize::new(0));
        for _ in 0..500 {
            let task = rt.task("task").once().host(|()| ()).unwrap();
            for _ in 0..3 {
                let calls = Arc::clone(&calls);
                task.on_done(move |status| {
                    assert_eq!(status, Status::Done);
                    calls.fetch_add(1, Relaxed);
                });
            }
        }
        drop(rt);
        assert_eq!(calls.load(Relaxed), 1500, "the drop has waited");
    }
}

#[test]
fn a_callback_may_submit_but_not_wait() {
    let _deadline = deadline();
    for rt in runtimes() {
        let rt = Arc::new(rt);
        let (refused, followed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let callback = || {
            let (rt, refused, followed) = (Arc::clone(&rt), Arc::clone(&refused), Arc::clone(&followed));
            move |_| {
                let follow = move |()| {
                    followed.fetch_add(1, Relaxed);
                };
                let task = rt.task("follows").once().host(follow).unwrap();
                for error in [task.wait(), rt.barrier().wait()] {
                    assert!(matches!(error, Err(Error::WaitInsideTask { .. })));
                    refused.fetch_add(1, Relaxed);
                }
            }
        };
        let task = rt.task("task").once().host(|()| ()).unwrap();
        task.on_done(callback());
        rt.wait().unwrap();
        // Also if the task is done: answers do not depend on the schedule.
        task.on_done(callback());
        rt.wait().unwrap();
        assert_eq!((refused.load(Relaxed), followed.load(Relaxed)), (4, 2));
    }
}

#[test]
fn a_panic_in_a_callback_is_reported() {
    let _deadline = deadline();
    for rt in runtimes() {
        let good = rt.task("good").once().host(|()| ()).unwrap();
        let bad = rt.task("bad").once().host(|()| Err::<(), _>("no luck")).unwrap();
        let panics = |task: &TaskHandle, message: &'static str| {
            let call = || task.on_done(move |_| std::panic::resume_unwind(Box::new(message)));
            // A task that is done already passes the panic on to this thread.
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err()
        };
        let passed_on = [(&good, "first"), (&good, "second"), (&bad, "third")]
            .map(|(task, message)| panics(task, message));
        let reported = failures(rt.wait().unwrap_err());
        let causes: Vec<_> = reported.iter().map(|failure| failure.cause.to_string()).collect();
        let of_callbacks = reported.iter().filter(|f| matches!(f.cause, Cause::Callback { .. })).count();
        assert_eq!(of_callbacks, passed_on.iter().filter(|passed_on| !**passed_on).count(), "{causes:?}");
        assert!(causes.contains(&"no luck".to_string()), "{causes:?}");
        for (passed_on, message) in passed_on.into_iter().zip(["first", "second", "third"]) {
            let message = format!("its callback panicked: {message}");
            assert_eq!(causes.contains(&message), !passed_on, "{causes:?}");
        }
        assert_eq!((good.status(), bad.status()), (Status::Done, Status::Failed));
        rt.wait().unwrap();
    }
}

#[test]
fn all_panics_of_the_callbacks_of_one_task_are_reported() {
    let _deadline = deadline();
    let rt = runtime(2);
    let gate = Gate::default();
    let held = gate.clone();
    let task = rt.task("held").once().blocking().host(move |()| {
        held.pass();
        Err::<(), _>("no luck")
    });
    let task = task.unwrap();
    for message in ["first", "second"] {
        task.on_done(move |_| std::panic::resume_unwind(Box::new(message)));
    }
    gate.open();
    let reported = failures(rt.wait().unwrap_err());
    let causes: Vec<_> = reported.iter().map(|failure| failure.cause.to_string()).collect();
    assert_eq!(causes, ["no luck", "its callback panicked: first", "its callback panicked: second"]);
}

#[test]
fn a_drain_is_a_future() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, log) = (rt.buffer_from(&[1, 2, 3]).unwrap(), rt.host_object(vec![1]));
        for i in 2..5 {
            rt.task("note").once().effect(&log, sequential()).host(move |(log,)| log.push(i)).unwrap();
        }
        let (last, log) = block_on(rt.drain_async((u.capture(), log.capture()))).unwrap();
        assert_eq!((last.as_slice(), log), (&[1, 2, 3][..], vec![1, 2, 3, 4]));
    }
    // A failure is reported, and no object is moved out.
    let rt = seeded(1);
    let log = rt.host_object(7);
    rt.task("bad").once().host(|()| Err::<(), _>("no luck")).unwrap();
    assert!(block_on(rt.drain_async(log.capture())).unwrap_err().to_string().contains("no luck"));
    assert_eq!(log.into_inner().unwrap(), 7);
    // A drain that is never polled, or dropped before its end, ends the runtime.
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let rt = runtime(2);
    rt.task("sleeps")
        .once()
        .host(move |()| {
            std::thread::sleep(Duration::from_millis(10));
            counted.fetch_add(1, Relaxed);
        })
        .unwrap();
    drop(rt.drain_async(()));
    assert_eq!(ran.load(Relaxed), 1);
}

/// A panic in a callback of a group is a failure of that group: not of the group or the runtime of its last
/// task. A wait for the group waits for the callback, too, and so gets the failure.
#[test]
fn a_panic_in_a_callback_of_a_group_is_reported_by_that_group() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (outer, gate) = (rt.group("outer"), Gate::default());
        let inner = outer.group("inner");
        let pass = gate.clone();
        // A seeded runtime may run the task when it is submitted.
        gate.open();
        let object = rt.host_object(());
        let held = rt.task("held").once().effect(&object, sequential()).host(move |_| pass.pass()).unwrap();
        inner.task("last").once().effect(&object, sequential()).host(|_| ()).unwrap();
        let passed_on = catch_unwind(AssertUnwindSafe(|| {
            outer.on_done(|_| {
                // Long enough for the thread that waits to go on if it does not wait for callbacks.
                std::thread::sleep(Duration::from_millis(20));
                panic!("of the outer group");
            });
        }));
        held.wait().unwrap();
        if passed_on.is_ok() {
            let message = outer.wait().unwrap_err().to_string();
            assert!(message.contains("group outer") && message.contains("of the outer group"), "{message}");
        }
        outer.wait().unwrap();
        rt.wait().unwrap();
        inner.wait().unwrap();
    }
}

/// A callback adds the next one while a task of the group runs, or while none does. A wait for the group
/// waits for all of them.
#[test]
fn a_wait_for_a_group_waits_for_callbacks_that_callbacks_add() {
    let _deadline = deadline();
    fn add(group: &TaskGroup, left: usize, called: &Arc<AtomicUsize>) {
        let (again, called) = (group.clone(), Arc::clone(called));
        group.on_done(move |_| {
            if left > 0 {
                add(&again, left - 1, &called);
            }
            std::thread::yield_now();
            called.fetch_add(1, Relaxed);
        });
    }
    for rt in runtimes() {
        for _ in 0..20 {
            let (outer, called) = (rt.group("outer"), Arc::new(AtomicUsize::new(0)));
            let inner = outer.group("inner");
            inner.task("task").once().host(|()| ()).unwrap();
            add(&inner, 5, &called);
            add(&outer, 5, &called);
            outer.wait().unwrap();
            assert_eq!(called.load(Relaxed), 12);
        }
    }
}

/// A worker has completed the task that a fence and a kernel need. Code of the program, at the end of the
/// fence, lasts until the program has waited for the kernel: the worker must not keep the kernel for itself.
#[test]
fn code_at_the_end_of_a_fence_does_not_hold_other_tasks_up() {
    let _deadline = deadline();
    // One worker is in the code of the program.
    for threads in [2, 3, 4] {
        for by_waker in [false, true] {
            for kernel_first in [false, true] {
                let rt = runtime(threads);
                let u = rt.buffer::<u64, 1>([10]);
                let (submitted, waited) = (Gate::default(), Gate::default());
                let waits = submitted.clone();
                let task = rt.task("write").over([10]).write(&u, one_to_one());
                task.chunks(1)
                    .kernel(move |_, (u,)| {
                        waits.pass();
                        u.fill(1);
                    })
                    .unwrap();
                let kernel = || rt.task("read").over([10]).read(&u, all()).kernel(|_, _| ()).unwrap();
                let before = kernel_first.then(kernel);
                let mut fence = Box::pin(rt.fence(&u).unwrap());
                let waits = waited.clone();
                if by_waker {
                    struct Waits(Gate);
                    impl Wake for Waits {
                        fn wake(self: Arc<Self>) {
                            self.0.pass();
                        }
                    }
                    let waker = Waker::from(Arc::new(Waits(waits)));
                    assert!(fence.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                } else {
                    fence.on_done(move |_| waits.pass());
                }
                let kernel = before.unwrap_or_else(kernel);
                submitted.open();
                kernel.wait().unwrap();
                waited.open();
                rt.wait().unwrap();
            }
        }
    }
}
