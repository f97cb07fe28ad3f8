//! Task groups: a group waits for its own tasks, gets its own failures, and cancels its own tasks.

mod common;

use anabranch::{Error, Failures, graph::print::Format, prelude::*};
use common::{Gate, THREADS, block_on, runtime, runtimes};
use parking_lot::Mutex;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};
use testing::deadline;

fn failures(result: Result<(), Error>) -> Failures {
    match result {
        Err(Error::Failed(failures)) => failures,
        other => panic!("{other:?}"),
    }
}

fn names(result: Result<(), Error>) -> Vec<String> {
    failures(result).iter().map(|failure| failure.task.name().to_string()).collect()
}

fn fail(group: &TaskGroup, name: &'static str) -> TaskHandle {
    group.task(name).once().host(|()| Err::<(), _>("no luck")).unwrap()
}

/// Without groups, a thread that waits takes the failures of the other threads.
#[test]
fn threads_that_share_a_runtime_get_their_own_failures() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        thread::scope(|scope| {
            for thread in 0..4 {
                let rt = &rt;
                scope.spawn(move || {
                    let group = rt.group(format!("thread {thread}"));
                    for round in 0..50 {
                        let fails = (thread + round) % 2 == 0;
                        let name = format!("{thread} {round}");
                        let task = group.task(name.clone()).once();
                        task.host(move |()| if fails { Err("no luck") } else { Ok(()) }).unwrap();
                        match fails {
                            true => assert_eq!(names(group.wait()), [name]),
                            false => group.wait().unwrap(),
                        }
                    }
                });
            }
        });
        rt.wait().unwrap();
    }
}

#[test]
fn failures_come_out_at_the_group_and_nowhere_else() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (outer, sibling) = (rt.group("outer"), rt.group("sibling"));
        let inner = outer.group("inner");
        fail(&inner, "of inner");
        fail(&outer, "of outer");
        rt.task("of none").once().host(|()| Err::<(), _>("no luck")).unwrap();
        assert_eq!(names(outer.wait()), ["of outer"]);
        sibling.wait().unwrap();
        assert_eq!(names(rt.wait()), ["of none"]);
        assert_eq!(names(inner.check()), ["of inner"]);
        for group in [&outer, &inner, &sibling] {
            group.wait().unwrap();
        }
        rt.wait().unwrap();
    }
}

/// A task that is skipped because of a failure in another group is a reason to report that failure here, too.
#[test]
fn the_group_of_a_skipped_task_reports_why_it_was_skipped() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (first, second) = (rt.group("first"), rt.group("second"));
        let u = rt.buffer::<u8, 1>([1]);
        first.task("bad").once().write(&u, all()).host(|(_u,)| Err::<(), _>("no luck")).unwrap();
        second.task("needs it").once().read(&u, all()).host(|(_u,)| ()).unwrap();
        rt.wait().unwrap();
        let seen = failures(second.wait());
        assert_eq!((seen.iter().next().unwrap().task.name(), seen.skipped()), ("bad", 1));
        let seen = failures(first.wait());
        assert_eq!((seen.iter().next().unwrap().task.name(), seen.skipped()), ("bad", 0));
    }
}

#[test]
fn waiting_for_a_group_does_not_wait_for_other_tasks() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (other, gate) = (rt.group("other"), Gate::default());
        let closed = gate.clone();
        let blocked = other.task("blocked").once().host(move |()| closed.pass()).unwrap();
        let group = rt.group("group");
        let done = group.task("free").over([4]).kernel(|_, ()| ()).unwrap();
        group.wait().unwrap();
        block_on(group.idle()).unwrap();
        group.idle().wait().unwrap();
        assert_eq!(done.status(), Status::Done);
        assert_ne!(blocked.status(), Status::Done);
        gate.open();
        other.wait().unwrap();
        assert_eq!(blocked.status(), Status::Done);
    }
}

#[test]
fn waiting_for_a_group_waits_for_the_groups_in_it() {
    let _deadline = deadline();
    for rt in runtimes() {
        let outer = rt.group("outer");
        let mut tasks = Vec::new();
        for i in 0..20 {
            let inner = outer.group(format!("inner {i}"));
            let innermost = inner.group("innermost");
            tasks.push(innermost.task("task").once().host(|()| thread::yield_now()).unwrap());
            tasks.push(inner.task("task").over([2]).kernel(|_, ()| ()).unwrap());
        }
        outer.wait().unwrap();
        assert!(tasks.iter().all(|task| task.status() == Status::Done));
    }
}

/// As the users of other task groups expect: a task may submit further tasks to its own group.
#[test]
fn waiting_for_a_group_waits_for_tasks_that_its_tasks_submit() {
    let _deadline = deadline();
    fn split(group: &TaskGroup, depth: usize, leaves: &Arc<AtomicUsize>) {
        if depth == 0 {
            leaves.fetch_add(1, Relaxed);
            return;
        }
        for _ in 0..2 {
            let (inside, leaves) = (group.clone(), Arc::clone(leaves));
            group.task("split").once().host(move |()| split(&inside, depth - 1, &leaves)).unwrap();
        }
    }
    for rt in runtimes() {
        let (group, leaves) = (rt.group("tree"), Arc::new(AtomicUsize::new(0)));
        split(&group, 7, &leaves);
        group.wait().unwrap();
        assert_eq!(leaves.load(Relaxed), 128);
    }
}

/// A thread that waits for a group runs host tasks of this group, and no others.
#[test]
fn a_thread_that_waits_helps_only_with_what_it_waits_for() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let me = thread::current().id();
        let group = rt.group("group");
        let strangers = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            for _ in 0..10 {
                let strangers = Arc::clone(&strangers);
                let run = move |()| {
                    strangers.fetch_add(usize::from(thread::current().id() == me), Relaxed);
                };
                rt.task("stranger").once().host(run).unwrap();
                group.task("own").once().host(|()| ()).unwrap();
            }
            group.wait().unwrap();
        }
        // This future does not help.
        block_on(rt.idle()).unwrap();
        assert_eq!(strangers.load(Relaxed), 0, "{threads} threads");
    }
}

#[test]
fn cancelling_a_group_cancels_the_groups_in_it() {
    let _deadline = deadline();
    for rt in runtimes() {
        let outer = rt.group("outer");
        let (left, right) = (outer.group("left"), outer.group("right"));
        let task = |group: &TaskGroup| group.task("task").once().host(|()| ()).unwrap();
        left.cancel();
        let before = [task(&left), task(&right), task(&outer)];
        outer.wait().unwrap();
        assert_eq!(before.map(|task| task.status()), [Status::Cancelled, Status::Done, Status::Done]);
        outer.cancel();
        let after = [task(&left), task(&right), task(&outer), task(&outer.group("late"))];
        outer.wait().unwrap();
        assert_eq!(after.map(|task| task.status()), [Status::Cancelled; 4]);
        assert!(right.token().is_cancelled());
        assert_eq!(rt.task("outside").once().host(|()| ()).map(|task| task.wait().is_ok()).ok(), Some(true));
    }
}

#[test]
fn waiting_for_a_group_inside_a_task_is_an_error() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (group, idle) = (rt.group("group"), rt.group("idle"));
        let (inside, quiet) = (group.clone(), idle.clone());
        let answers = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&answers);
        group
            .task("task")
            .once()
            .host(move |()| {
                let results = [inside.wait(), inside.idle().wait(), inside.barrier().wait(), quiet.wait()];
                *seen.lock() =
                    results.map(|result| matches!(result, Err(Error::WaitInsideTask { .. }))).into();
                inside.check()
            })
            .unwrap();
        group.wait().unwrap();
        assert_eq!(*answers.lock(), [true; 4]);
    }
}

/// Groups do not change the order of tasks.
#[test]
fn tasks_of_different_groups_are_in_the_order_of_submission() {
    let _deadline = deadline();
    for rt in runtimes() {
        let groups: Vec<_> = (0..4).map(|i| rt.group(format!("group {i}"))).collect();
        let log = rt.host_object(Vec::new());
        for i in 0..100 {
            let task = if i % 5 == 4 { rt.task("task") } else { groups[i % 5].task("task") };
            task.once().effect(&log, sequential()).host(move |(log,)| log.push(i)).unwrap();
        }
        assert_eq!(rt.drain(log.capture()).unwrap(), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn fences_and_barriers_of_a_group_are_tasks_of_the_group() {
    let _deadline = deadline();
    for rt in runtimes() {
        let group = rt.group("group");
        let u = rt.buffer_from(&[1, 2, 3]).unwrap();
        let fence = group.fence(&u).unwrap();
        drop(group.barrier());
        group.wait().unwrap();
        assert!(fence.is_ready());
        assert_eq!(fence.wait().unwrap().as_slice(), [1, 2, 3]);
        fail(&group, "bad");
        rt.task("of none").once().host(|()| Err::<(), _>("no luck")).unwrap();
        assert_eq!(names(group.barrier().wait()), ["bad"]);
        let captured = group.barrier_with(u.capture()).unwrap();
        assert_eq!(block_on(captured).unwrap().as_slice(), [1, 2, 3]);
        assert_eq!(names(rt.barrier().wait()), ["of none"]);
    }
}

#[test]
fn groups_do_not_change_recorded_graphs() {
    let _deadline = deadline();
    let graphs = [false, true].map(|grouped| {
        let rt = Runtime::builder().threads(2).record_graphs(true).dry_run(4).build().unwrap();
        let group = rt.group("group");
        let u = rt.buffer_from(&[0; 8]).unwrap();
        for _ in 0..3 {
            let task = if grouped { group.task("task") } else { rt.task("task") };
            task.over([8]).update(&u, one_to_one()).kernel(|_, (_u,)| ()).unwrap();
        }
        let barrier = if grouped { group.barrier() } else { rt.barrier() };
        barrier.wait().unwrap();
        (rt.task_graph().unwrap().render(Format::Dot), rt.dry_run_summary())
    });
    assert_eq!(graphs[0], graphs[1]);
}

#[test]
fn a_group_keeps_its_runtime_running() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (group, ran) = (rt.group("group"), Arc::new(AtomicUsize::new(0)));
        drop(rt);
        for _ in 0..10 {
            let ran = Arc::clone(&ran);
            let count = move |()| {
                ran.fetch_add(1, Relaxed);
            };
            group.task("late").once().host(count).unwrap();
        }
        // The last handle: its drop waits for the tasks.
        drop(group);
        assert_eq!(ran.load(Relaxed), 10);
    }
}

/// The task has the last handle of its runtime.
#[test]
fn the_last_group_may_be_dropped_inside_a_task() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (gate, closed) = (Gate::default(), Gate::default());
        let (group, open) = (rt.group("group"), gate.clone());
        let inside = group.clone();
        let (pass, done) = (closed.clone(), Gate::default());
        let ended = done.clone();
        group
            .task("last")
            .once()
            .host(move |()| {
                pass.pass();
                open.open();
                inside.task("later").once().host(move |()| ended.open()).unwrap();
                drop(inside);
            })
            .unwrap();
        let idle = rt.idle();
        thread::scope(|scope| {
            scope.spawn(|| {
                gate.pass();
                idle.wait().unwrap();
            });
            closed.open();
            drop((group, rt));
        });
        done.pass();
    }
}

#[test]
fn several_threads_wait_for_one_group() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let group = rt.group("group");
        for _ in 0..50 {
            let done = Arc::new(AtomicUsize::new(0));
            for _ in 0..4 {
                let done = Arc::clone(&done);
                let count = move |()| {
                    done.fetch_add(1, Relaxed);
                };
                group.task("task").once().host(count).unwrap();
            }
            thread::scope(|scope| {
                for waiter in 0..3 {
                    let (group, done) = (&group, &done);
                    scope.spawn(move || {
                        if waiter == 0 { block_on(group.idle()) } else { group.wait() }.unwrap();
                        assert_eq!(done.load(Relaxed), 4);
                    });
                }
            });
        }
    }
}

#[test]
fn a_very_deep_nest_of_groups_works() {
    let _deadline = deadline();
    let rt = runtime(2);
    let (outer, mut group) = (rt.group("outer"), rt.group("outer"));
    for _ in 0..50_000 {
        group = group.group("deeper");
    }
    group.task("task").once().host(|()| ()).unwrap();
    group.wait().unwrap();
    outer.wait().unwrap();
}

#[test]
fn a_callback_of_a_group_is_called_once_when_the_group_is_done() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (group, gate) = (rt.group("group"), Gate::default());
        let inner = group.group("inner");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |group: &TaskGroup| {
            let (seen, inside) = (Arc::clone(&seen), group.clone());
            group.on_done(move |status| {
                let refused = matches!(inside.wait(), Err(Error::WaitInsideTask { .. }));
                seen.lock().push((status, refused));
            });
        };
        note(&group);
        assert_eq!(*seen.lock(), [(Status::Done, true)]);
        let closed = gate.clone();
        inner.task("task").once().host(move |()| closed.pass()).unwrap();
        fail(&group, "bad").wait().unwrap_err();
        note(&group);
        assert_eq!(seen.lock().len(), 1);
        gate.open();
        // The callback is called before its last task is counted as completed.
        rt.wait().unwrap();
        assert_eq!(seen.lock()[1..], [(Status::Failed, true)]);
        assert_eq!(names(group.wait()), ["bad"]);
        inner.cancel();
        inner.task("cancelled").once().host(|()| ()).unwrap();
        note(&inner);
        rt.wait().unwrap();
        assert_eq!(seen.lock()[2..], [(Status::Cancelled, true)]);
    }
}

/// A task is done before the callbacks of its group are called. A wait that begins in between waits for them,
/// whatever later tasks complete meanwhile.
#[test]
fn a_wait_for_the_runtime_waits_for_callbacks_of_groups() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = &runtime(threads);
        let (group, [begin, begun, end]) = (rt.group("group"), [(); 3].map(|()| Gate::default()));
        let (task, calls) = (begin.clone(), (begun.clone(), end.clone()));
        group.task("task").once().host(move |()| task.pass()).unwrap();
        group.on_done(move |_| {
            calls.0.open();
            calls.1.pass();
        });
        begin.open();
        begun.pass();
        let mut idle = pin!(rt.idle());
        let is_waiting = AtomicBool::new(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                rt.wait().unwrap();
                is_waiting.store(false, Release);
            });
            for _ in 0..100 {
                rt.task("later").once().host(|()| ()).unwrap().wait().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
            let mut late = Box::pin(rt.idle());
            let context = &mut Context::from_waker(Waker::noop());
            let pending = [idle.as_mut(), late.as_mut()].map(|idle| idle.poll(context).is_pending());
            let is_waiting = is_waiting.load(Acquire);
            end.open();
            block_on(late).unwrap();
            assert_eq!((pending, is_waiting), ([true; 2], true), "{threads} threads");
        });
        block_on(idle).unwrap();
    }
}

/// A callback may submit the next tasks of its group.
#[test]
fn a_callback_of_a_group_may_submit_tasks() {
    let _deadline = deadline();
    fn next(group: &TaskGroup, left: usize, ran: &Arc<AtomicUsize>) {
        let (again, count, ran) = (group.clone(), Arc::clone(ran), Arc::clone(ran));
        let run = move |()| {
            count.fetch_add(1, Relaxed);
        };
        group.task("task").once().host(run).unwrap();
        if left > 0 {
            group.on_done(move |_| next(&again, left - 1, &ran));
        }
    }
    for rt in runtimes() {
        let (group, ran) = (rt.group("group"), Arc::new(AtomicUsize::new(0)));
        next(&group, 20, &ran);
        while ran.load(Relaxed) < 21 {
            group.wait().unwrap();
        }
        rt.wait().unwrap();
    }
}
