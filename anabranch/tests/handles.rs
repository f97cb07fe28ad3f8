//! A task handle has the task's status, waits for the task and cancels it. A token cancels all tasks
//! submitted under it.

mod common;

use anabranch::{Cause, Error, Failure, Failures, interface::NewTask, prelude::*};
use common::{Gate, THREADS, block_on, runtime, runtimes, seeded};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use testing::deadline;

fn failures(error: Error) -> Failures {
    let Error::Failed(failures) = error else { panic!("{error}") };
    failures
}

fn names(failure: &Failure) -> Vec<String> {
    failure.chain().map(|failure| failure.task.name().to_string()).collect()
}

#[test]
fn a_handle_has_the_status_of_its_task() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (gate, order) = (Gate::default(), rt.host_object(()));
        let held = gate.clone();
        let first = rt.task("first").once().effect(&order, sequential()).host(move |_| held.pass()).unwrap();
        let second = rt.task("second").once().effect(&order, sequential()).host(|_| ()).unwrap();
        while first.status() != Status::Running {
            std::thread::yield_now();
        }
        assert_eq!(second.status(), Status::Waiting);
        assert!(!first.cancel(), "it has begun");
        gate.open();
        second.wait().unwrap();
        assert_eq!((first.status(), second.status()), (Status::Done, Status::Done));
        assert!(!second.cancel(), "it is done");
        assert_eq!(second.status(), Status::Done);
        rt.wait().unwrap();
    }
}

#[test]
fn failed_and_skipped_tasks_report_the_whole_chain_of_causes() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (a, b) = (rt.buffer::<u8, 1>([4]), rt.buffer::<u8, 1>([4]));
        let log = rt.host_object(());
        let bad = rt.task("bad").over([4]).write(&a, one_to_one()).kernel(|_, _| panic!("no luck")).unwrap();
        let line = line!() - 1;
        let copy = rt.task("copy").once().read(&a, all()).write(&b, all()).host(|_| ()).unwrap();
        let note = rt.task("note").once().read(&b, all()).effect(&log, sequential()).host(|_| ()).unwrap();
        let fine = rt.task("fine").once().host(|()| ()).unwrap();
        let error = note.wait().unwrap_err();
        let text = format!(
            "task \"note\" ({0}:{3}) failed: it was skipped, because task \"copy\" ({0}:{2}) failed: it was skipped, \
             because task \"bad\" ({0}:{1}) failed: it panicked in chunk [",
            file!(),
            line,
            line + 2,
            line + 3
        );
        assert!(error.to_string().starts_with(&text), "{error}\n{text}");
        assert!(error.to_string().ends_with("]: no luck"), "{error}");
        assert_eq!(names(failures(error).iter().next().unwrap()), ["note", "copy", "bad"]);
        assert_eq!(names(failures(bad.wait().unwrap_err()).iter().next().unwrap()), ["bad"]);
        fine.wait().unwrap();
        let status = [&bad, &copy, &note, &fine].map(TaskHandle::status);
        assert_eq!(status, [Status::Failed, Status::Skipped, Status::Skipped, Status::Done]);
        let reported = failures(rt.wait().unwrap_err());
        assert_eq!((reported.iter().count(), reported.skipped()), (1, 2));
        // `Error::source` follows the same chain.
        let error = note.wait().unwrap_err();
        let mut source: &dyn std::error::Error = &error;
        let mut links = 0;
        while let Some(next) = source.source() {
            (source, links) = (next, links + 1);
        }
        assert!(links >= 3 && source.to_string().contains("no luck"), "{links}: {source}");
    }
}

#[test]
fn a_long_chain_keeps_both_ends() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer::<u8, 1>([1]);
    rt.task("root").once().write(&u, all()).host(|_| Err::<(), _>("no luck")).unwrap();
    let mut last = None;
    for i in 0..100 {
        last = Some(rt.task(format!("link {i}")).once().update(&u, all()).host(|_| ()).unwrap());
    }
    let error = last.unwrap().wait().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("task \"link 99\"") && text.ends_with("failed: no luck"), "{text}");
    assert!(text.contains("tasks between are left out"), "{text}");
    let names = names(failures(error).iter().next().unwrap());
    assert_eq!((names[0].as_str(), names.last().unwrap().as_str()), ("link 99", "root"));
    assert!((10..30).contains(&names.len()), "{names:?}");
    assert!(rt.wait().is_err());
}

#[test]
fn handles_are_futures() {
    let _deadline = deadline();
    for rt in runtimes() {
        let good = rt.task("good").once().host(|()| ()).unwrap();
        let bad = rt.task("bad").once().host(|()| Err::<(), _>("no luck")).unwrap();
        let kernel = rt.task("kernel").over([100]).kernel(|_, ()| ()).unwrap();
        block_on(async {
            bad.await.unwrap_err();
            good.await.unwrap();
            kernel.await.unwrap();
        });
        assert!(block_on(rt.idle()).is_err());
        block_on(rt.idle()).unwrap();
    }
}

/// Tasks end on lanes, on workers and on threads that wait. Each of these wakes the futures of the task.
#[test]
fn every_thread_that_ends_a_task_wakes_its_futures() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer_from(&[0_u64; 8]).unwrap();
        for round in 1..=200 {
            let host = rt.task("host").once().update(&u, all()).host(|(u,)| u[[0]] += 1).unwrap();
            let kernel = rt.task("kernel").over([8]).read(&u, one_to_one()).kernel(|_, (_u,)| ()).unwrap();
            let (fence, barrier) = (rt.fence(&u).unwrap(), rt.barrier());
            block_on(async {
                kernel.await.unwrap();
                assert_eq!(fence.await.unwrap()[[0]], round);
                barrier.await.unwrap();
                host.await.unwrap();
                rt.idle().await.unwrap();
            });
        }
    }
}

#[test]
fn a_thread_that_waits_for_a_task_runs_no_unrelated_task() {
    let _deadline = deadline();
    for _ in 0..500 {
        let rt = runtime(1);
        let gate = Gate::default();
        for _ in 0..3 {
            let short = || std::thread::sleep(std::time::Duration::from_micros(30));
            rt.task("short").once().host(move |()| short()).unwrap();
        }
        let held = gate.clone();
        rt.task("waits for the program").once().host(move |()| held.pass()).unwrap();
        rt.task("quick").once().host(|()| ()).unwrap().wait().unwrap();
        gate.open();
        rt.wait().unwrap();
    }
}

#[test]
fn a_cancelled_task_does_not_run_and_is_not_reported() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (gate, u) = (Gate::default(), rt.buffer_from(&[1, 2, 3]).unwrap());
        let held = gate.clone();
        rt.task("slow").once().read(&u, all()).host(move |_| held.pass()).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let task = |name| {
            let ran = Arc::clone(&ran);
            let count = move || _ = ran.fetch_add(1, Relaxed);
            rt.task(name).once().update(&u, all()).host(move |_| count()).unwrap()
        };
        let (cancelled, dependent) = (task("cancelled"), task("dependent"));
        assert!(cancelled.cancel());
        assert_eq!(cancelled.status(), Status::Cancelled);
        gate.open();
        let error = dependent.wait().unwrap_err();
        assert!(error.to_string().ends_with("failed: it was cancelled"), "{error}");
        assert_eq!((cancelled.status(), dependent.status()), (Status::Cancelled, Status::Skipped));
        let cause = &failures(cancelled.wait().unwrap_err()).iter().next().unwrap().cause.clone();
        assert!(matches!(cause, Cause::Cancelled));
        // The program asked for the cancellation, so it is not reported. But the task's buffer is poisoned.
        rt.wait().unwrap();
        assert!(rt.fence(&u).unwrap().wait().is_err());
        assert_eq!(ran.load(Relaxed), 0);
    }
}

#[test]
fn cancelling_a_group_cancels_only_its_tasks() {
    let _deadline = deadline();
    for rt in runtimes() {
        let count = rt.host_object(0);
        let submit =
            |task: NewTask| task.once().effect(&count, exclusive()).host(|(count,)| *count += 1).unwrap();
        let (first, second) = (rt.group("first"), rt.group("second"));
        let before = submit(rt.task("before"));
        first.cancel();
        let in_first = submit(first.task("in the first group"));
        let in_second = submit(second.task("in the second group"));
        let after = submit(rt.task("after"));
        rt.wait().unwrap();
        let status = [before, in_first, in_second, after].map(|task| task.status());
        assert_eq!(status, [Status::Done, Status::Cancelled, Status::Done, Status::Done]);
        assert!(first.token().is_cancelled() && !second.token().is_cancelled());
        second.cancel();
        // A cancelled task leaves its host objects as if it had never been submitted.
        assert_eq!(rt.fence(&count).unwrap().wait().unwrap(), 3);
        assert_eq!(count.into_inner().unwrap(), 3);
    }
}

/// A program that has cancelled its tasks can still read the results of other tasks.
#[test]
fn groups_do_not_cancel_fences_barriers_and_drain() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, object) = (rt.buffer_from(&[1, 2]).unwrap(), rt.host_object(7));
        let group = rt.group("cancelled");
        group.cancel();
        assert_eq!(group.fence((&u, &object)).unwrap().wait().unwrap().1, 7);
        group.barrier().wait().unwrap();
        drop(group);
        let (u, object) = rt.drain((u.capture(), object.capture())).unwrap();
        assert_eq!((u.as_slice(), object), (&[1, 2][..], 7));
    }
}

#[test]
fn a_running_kernel_may_check_the_token_itself() {
    let _deadline = deadline();
    let rt = runtime(2);
    let group = rt.group("cancelled");
    let seen = group.token().clone();
    let begun = Gate::default();
    let began = begun.clone();
    let long = group
        .task("long")
        .over([2])
        .kernel(move |_, ()| {
            began.open();
            while !seen.is_cancelled() {
                std::thread::yield_now();
            }
        })
        .unwrap();
    begun.pass();
    group.cancel();
    long.wait().unwrap();
    assert_eq!(long.status(), Status::Done);
}

#[test]
fn handles_outlive_the_runtime() {
    let _deadline = deadline();
    for rt in [runtime(2), seeded(1)] {
        let good = rt.task("good").once().host(|()| ()).unwrap();
        let bad = rt.task("bad").once().host(|()| Err::<(), _>("no luck")).unwrap();
        let barrier = rt.barrier();
        drop(rt);
        assert_eq!((good.status(), bad.status()), (Status::Done, Status::Failed));
        good.wait().unwrap();
        assert!(bad.wait().is_err());
        // The barrier reports the failure after the runtime is gone.
        assert!(barrier.wait().is_err());
        assert!(!good.cancel());
    }
}

#[test]
fn waiting_inside_a_task_is_an_error_in_every_form() {
    let _deadline = deadline();
    fn refused<T>(result: Result<T, Error>) {
        assert!(matches!(result, Err(Error::WaitInsideTask { .. })));
    }
    for rt in runtimes() {
        let rt = Arc::new(rt);
        let inside = Arc::clone(&rt);
        let earlier = rt.task("earlier").once().host(|()| ()).unwrap();
        let object = rt.host_object(0);
        let task = rt
            .task("waits")
            .once()
            .host(move |()| {
                let inside = &*inside;
                refused(inside.wait());
                refused(inside.idle().wait());
                refused(block_on(inside.idle()));
                refused(inside.barrier().wait());
                refused(block_on(inside.barrier()));
                refused(inside.fence(&object)?.wait());
                refused(earlier.wait());
                let later = inside.task("later").once().effect(&object, sequential()).host(|_| ())?;
                refused(later.wait());
                // `check` does not wait, so it is allowed.
                inside.check()
            })
            .unwrap();
        task.wait().unwrap();
        rt.wait().unwrap();
    }
}

/// Waiting is an error also with a task of another runtime in between.
#[test]
fn waiting_through_another_runtime_is_an_error() {
    let _deadline = deadline();
    let outer = Arc::new(runtime(2));
    let deeper = Arc::clone(&outer);
    let task = outer
        .task("outer")
        .once()
        .host(move |()| {
            // The tasks of a seeded runtime run on the thread that waits.
            let inner = seeded(1);
            let check = move || assert!(matches!(deeper.wait(), Err(Error::WaitInsideTask { .. })));
            inner.task("inner").once().host(move |()| check())?.wait()
        })
        .unwrap();
    task.wait().unwrap();
}

/// In a seeded runtime only threads that submit or wait run tasks. A waiting thread runs the tasks that
/// another one left.
#[test]
fn two_threads_may_use_a_seeded_runtime() {
    let _deadline = deadline();
    for seed in 0..20 {
        let rt = Arc::new(Runtime::builder().seeded(seed).build().unwrap());
        let other = Arc::clone(&rt);
        let thread = std::thread::spawn(move || {
            let object = other.host_object(0);
            for _ in 0..20 {
                let slow = |(count,): (&mut i32,)| {
                    *count += 1;
                    std::thread::sleep(std::time::Duration::from_micros(200));
                };
                other.task("slow").once().effect(&object, sequential()).host(slow).unwrap();
            }
        });
        for _ in 0..20 {
            rt.task("quick").once().host(|()| ()).unwrap();
            rt.wait().unwrap();
        }
        thread.join().unwrap();
        rt.wait().unwrap();
    }
}
