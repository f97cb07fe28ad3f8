//! Inside a task, and in all work that it begins: calls that would wait are errors, submission does not
//! block, and the runtime may be dropped. Each construct that hands over work, with each call, on 1, 2, 3, 4
//! and 8 threads.

mod common;

use anabranch::prelude::*;
use anabranch_par::{Job, Lanes, ThreadPool, join, prelude::IntoParallel, prelude::IntoStream, scope, spawn};
use common::{Gate, THREADS, block_on, runtime, seeded};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use testing::deadline;

type Body = Arc<dyn Fn() + Send + Sync>;

/// Runs the body in one way of handing over work, one or more times, and waits for it.
type Construct = fn(Body);

struct Call(Body, mpsc::Sender<()>);

impl Job for Call {
    fn run(self: Arc<Self>) {
        (self.0)();
        self.1.send(()).unwrap();
    }
}

/// Runs the body as a job that the task does not join, but whose end it sees.
fn submitted(body: Body, submit: impl FnOnce(Arc<dyn Job>)) {
    let (sender, receiver) = mpsc::channel();
    submit(Arc::new(Call(body, sender)));
    receiver.recv().unwrap();
}

/// Runs the body as a callback of another runtime, whose task ends after `leave` has left the callback.
fn called_back(body: Body, leave: impl FnOnce(&Runtime, &TaskGroup, TaskHandle, Body)) {
    let (other, gate) = (runtime(1), Gate::default());
    let group = other.group("inner");
    let pass = gate.clone();
    let task = group.task("inner").once().blocking().host(move |()| pass.pass()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let call: Body = Arc::new(move || {
        body();
        sender.send(()).unwrap();
    });
    leave(&other, &group, task, call);
    gate.open();
    receiver.recv_timeout(Duration::from_secs(50)).unwrap();
    other.wait().unwrap();
    group.wait().unwrap();
}

fn pool() -> ThreadPool {
    ThreadPool::new(3).unwrap()
}

const CONSTRUCTS: [(&str, Construct); 18] = [
    ("the task itself", |body| body()),
    ("a loop", |body| (0..8).par().chunking(false).for_each(|_| body())),
    ("a stream", |body| (0..8).par_stream().for_each(|_| body())),
    ("a join", |body| {
        join(|| join(&*body, &*body), || join(&*body, &*body));
    }),
    ("a scope", |body| {
        scope(|s| {
            for _ in 0..4 {
                s.spawn(|| body());
            }
        });
    }),
    ("a spawned job", |body| spawn(move || body()).join().unwrap()),
    ("a job of a job", |body| spawn(move || spawn(move || body()).join().unwrap()).join().unwrap()),
    ("a detached job", |body| {
        // On another pool: the only worker of the runtime may be the one that waits here.
        let pool = pool();
        let (sender, receiver) = mpsc::channel();
        drop(pool.spawn(move || {
            body();
            sender.send(()).unwrap();
        }));
        receiver.recv().unwrap();
    }),
    ("a submitted job", |body| {
        let pool = pool();
        submitted(body, |job| pool.submit(job));
    }),
    ("a lane", |body| {
        let lanes: Lanes = Lanes::new(1, 2, "lane-").unwrap();
        submitted(body, |job| lanes.submit(job));
    }),
    ("a loop on another pool", |body| (0..8).par().on(&pool()).chunking(false).for_each(|_| body())),
    ("a team in a job of another pool", |body| {
        let pool = pool();
        // Not inside a loop of the task's own pool, where a team is an error.
        let of = |count| pool.team(count, |_| body()).map(drop);
        of(3).or_else(|_| of(1)).unwrap();
    }),
    ("a host task of another runtime", |body| {
        let other = runtime(2);
        other
            .task("inner")
            .once()
            .host(move |()| {
                spawn({
                    let body = Arc::clone(&body);
                    move || body()
                })
                .join()
                .unwrap()
            })
            .unwrap();
        other.wait().unwrap();
    }),
    ("a kernel of another runtime", |body| {
        let other = runtime(2);
        let task = other.task("inner").over([4]).kernel(move |_, ()| body()).unwrap();
        task.wait().unwrap();
    }),
    ("a callback of another runtime", |body| {
        called_back(body, |_, _, task, body| task.on_done(move |_| body()));
    }),
    ("a task that a callback of another runtime submits", |body| {
        called_back(body, |other, _, task, body| {
            let group = other.group("follows");
            let follows = move |_| _ = group.task("follows").once().host(move |()| body()).unwrap();
            task.on_done(follows);
        });
    }),
    ("a callback of a group of another runtime", |body| {
        called_back(body, |_, group, _, body| group.on_done(move |_| body()));
    }),
    ("a waker of another runtime", |body| {
        called_back(body, |_, _, task, body| woken(task, move || body()));
    }),
];

/// Runs the body in each construct, inside a host task and inside a kernel of the runtime that `start`
/// starts.
fn everywhere(
    start: impl Fn(usize) -> Runtime + Send + 'static,
    test: impl Fn(&Arc<Runtime>, &str) -> Body + Send + 'static,
) {
    for threads in THREADS {
        for (name, construct) in CONSTRUCTS {
            for is_kernel in [false, true] {
                let rt = Arc::new(start(threads));
                let body = test(&rt, name);
                let task = match is_kernel {
                    false => rt.task(name).once().host(move |()| construct(Arc::clone(&body))),
                    true => rt.task(name).over([2]).kernel(move |_, ()| construct(Arc::clone(&body))),
                };
                task.unwrap().wait().unwrap();
                rt.wait().unwrap();
            }
        }
    }
}

fn refused<T>(result: Result<T, Error>, name: &str) {
    assert!(matches!(result, Err(Error::WaitInsideTask { .. })), "{name}");
}

#[test]
fn a_call_that_may_wait_is_an_error_in_all_work_of_a_task() {
    let _deadline = deadline();
    everywhere(runtime, |rt, name| {
        let object = rt.host_object(0);
        let finished = rt.task("finished").once().host(|()| ()).unwrap();
        finished.wait().unwrap();
        let (inside, name, finished) = (Arc::downgrade(rt), name.to_string(), Mutex::new(finished));
        Arc::new(move || {
            let rt = inside.upgrade().unwrap();
            refused(rt.wait(), &name);
            refused(rt.idle().wait(), &name);
            refused(block_on(rt.idle()), &name);
            refused(rt.barrier().wait(), &name);
            refused(block_on(rt.barrier()), &name);
            refused(rt.fence(&object).unwrap().wait(), &name);
            refused(block_on(rt.fence(&object).unwrap()), &name);
            let later = rt.task("later").once().effect(&object, sequential()).host(|_| ()).unwrap();
            refused(later.wait(), &name);
            refused(block_on(later), &name);
            // Whether a task has finished is a question of the schedule.
            refused(finished.lock().unwrap().wait(), &name);
            refused(block_on(&mut *finished.lock().unwrap()), &name);
            let group = rt.group("group");
            refused(group.wait(), &name);
            group.task("of the group").once().effect(&object, sequential()).host(|_| ()).unwrap();
            refused(group.wait(), &name);
            refused(block_on(group.idle()), &name);
            rt.check().unwrap();
        })
    });
}

#[test]
fn submission_does_not_block_in_any_work_of_a_task() {
    let _deadline = deadline();
    let start = |threads| Runtime::builder().threads(threads).host_lanes(1).max_in_flight(2).build().unwrap();
    everywhere(start, |rt, name| {
        let (inside, name) = (Arc::downgrade(rt), name.to_string());
        let object = rt.host_object(0);
        Arc::new(move || {
            let rt = inside.upgrade().unwrap();
            for _ in 0..10 {
                rt.task(name.clone()).once().effect(&object, sequential()).host(|(n,)| *n += 1).unwrap();
                rt.task(name.clone()).over([1]).kernel(|_, ()| ()).unwrap();
            }
        })
    });
}

/// The threads of a dropped runtime end some time after its last task.
#[cfg(target_os = "linux")]
fn await_end(name: &str) {
    while testing::threads::count(name) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(not(target_os = "linux"))]
fn await_end(_: &str) {}

#[test]
fn the_last_runtime_may_be_dropped_or_drained_in_any_work_of_a_task() {
    let _deadline = deadline();
    for threads in THREADS {
        for (at, (name, construct)) in CONSTRUCTS.into_iter().enumerate() {
            for drains in [false, true] {
                let prefix = format!("in{threads}-{at}{}-", if drains { "d" } else { "" });
                let rt = Runtime::builder().threads(threads).name(prefix.clone()).build().unwrap();
                let own = Arc::new(Mutex::new(None));
                let (gate, inner) = (Gate::default(), Arc::clone(&own));
                let (pass, text) = (gate.clone(), name);
                let body: Body = Arc::new(move || {
                    let rt: Option<Runtime> = inner.lock().unwrap().take();
                    match rt {
                        Some(rt) if drains => refused(rt.drain(()), text),
                        rt => drop(rt),
                    }
                });
                let task = rt.task(name).once().host(move |()| {
                    pass.pass();
                    construct(Arc::clone(&body));
                });
                let later = rt.task("later").once().host(|()| ()).unwrap();
                *own.lock().unwrap() = Some(rt);
                gate.open();
                task.unwrap().wait().unwrap();
                later.wait().unwrap();
                await_end(&prefix);
            }
        }
    }
}

/// A detached job is inside its task also when the task has ended, and may drop the runtime then.
#[test]
fn a_job_that_outlives_its_task_is_inside_it() {
    let _deadline = deadline();
    for threads in THREADS {
        for other_pool in [false, true] {
            let prefix = format!("out{threads}{other_pool}-");
            let rt = Arc::new(Runtime::builder().threads(threads).name(prefix.clone()).build().unwrap());
            let pool = Arc::new(pool());
            let (gate, (sender, receiver)) = (Gate::default(), mpsc::channel());
            let (inside, pass, on) = (Arc::clone(&rt), gate.clone(), Arc::clone(&pool));
            let task = rt.task("ends first").once().host(move |()| {
                let job = move || {
                    pass.pass();
                    refused(inside.wait(), "a detached job");
                    for _ in 0..4 {
                        inside.task("later").once().host(|()| ()).unwrap();
                    }
                    drop(inside);
                    sender.send(()).unwrap();
                };
                drop(if other_pool { on.spawn(job) } else { spawn(job) });
            });
            task.unwrap().wait().unwrap();
            rt.wait().unwrap();
            drop(rt);
            gate.open();
            receiver.recv().unwrap();
            await_end(&prefix);
        }
    }
}

/// The participants of a loop that a detached job has opened wait for the one that drops the runtime.
#[test]
fn a_participant_of_a_detached_loop_may_drop_the_runtime() {
    let _deadline = deadline();
    for threads in THREADS {
        let prefix = format!("part{threads}-");
        let rt = Runtime::builder().threads(threads).name(prefix.clone()).build().unwrap();
        let (gate, pass) = (Gate::default(), Gate::default());
        let (open, own) = (gate.clone(), Arc::new(Mutex::new(None::<Runtime>)));
        let (inner, enter) = (Arc::clone(&own), pass.clone());
        let task = rt.task("ends first").once().host(move |()| {
            let drop_at = move |i: i32| {
                std::thread::sleep(Duration::from_micros(50));
                if i == 20 {
                    drop(inner.lock().unwrap().take());
                }
            };
            drop(spawn(move || {
                enter.pass();
                (0..32).par().chunking(false).for_each(drop_at);
                open.open();
            }));
        });
        task.unwrap().wait().unwrap();
        rt.wait().unwrap();
        *own.lock().unwrap() = Some(rt);
        pass.open();
        gate.pass();
        await_end(&prefix);
    }
}

/// A waker that polls its future at once, as some executors do, and then calls the program's code.
struct PollsInside {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl PollsInside {
    fn start(future: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Self { future: Mutex::new(Some(Box::pin(future))) }).wake();
    }
}

impl Wake for PollsInside {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let future = self.future.lock().unwrap().take();
        if let Some(mut future) = future
            && future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        {
            *self.future.lock().unwrap() = Some(future);
        }
    }
}

/// Calls `then` when it is woken for the first time.
fn woken(future: impl Future + Send + 'static, then: impl FnOnce() + Send + 'static) {
    let mut future = Box::pin(future);
    let mut then = Some(then);
    let mut polled = false;
    PollsInside::start(std::future::poll_fn(move |context| {
        if !std::mem::replace(&mut polled, true) && future.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        then.take().into_iter().for_each(|then| then());
        Poll::Ready(())
    }));
}

/// The thread that completes a task may be inside of a task of another runtime, because it helps, or not.
/// Callbacks and wakers get the same answers on both: they must not wait at all.
#[test]
fn answers_of_callbacks_do_not_depend_on_the_thread_that_calls_them() {
    let _deadline = deadline();
    for threads in THREADS {
        for blocking in [false, true] {
            let (outer, other) = (Arc::new(runtime(threads)), Arc::new(runtime(threads)));
            let (sender, receiver) = mpsc::channel();
            let inside = Arc::clone(&outer);
            let task = outer.task("outer").once().host(move |()| {
                let group = other.group("group");
                let gate = Gate::default();
                let pass = gate.clone();
                let task = group.task("inner").once();
                let task = if blocking { task.blocking() } else { task };
                let task = task.host(move |()| pass.pass()).unwrap();
                let wait = |call: &'static str| {
                    let (inside, sender) = (Arc::clone(&inside), sender.clone());
                    move || sender.send((call, inside.wait())).unwrap()
                };
                let (of_task, of_group, of_waker) = (wait("task"), wait("group"), wait("waker"));
                task.on_done(move |_| of_task());
                group.on_done(move |_| of_group());
                woken(group.idle(), of_waker);
                gate.open();
                task.wait().unwrap();
                group.wait().unwrap();
            });
            task.unwrap().wait().unwrap();
            for _ in 0..3 {
                let (call, answer) = receiver.recv_timeout(Duration::from_secs(50)).unwrap();
                refused(answer, call);
            }
        }
    }
}

/// Wakers run on the threads of the runtime. They count as inside, so they cannot hold these threads up.
#[test]
fn wakers_are_inside_tasks() {
    let _deadline = deadline();
    for threads in THREADS {
        for kind in 0..4 {
            let build =
                || Runtime::builder().threads(threads).host_lanes(1).max_in_flight(4).build().unwrap();
            let rt = Arc::new(build());
            let (gate, pass) = (Gate::default(), Gate::default());
            let enter = pass.clone();
            let task = rt.task("slow").over([1]).kernel(move |_, ()| enter.pass()).unwrap();
            let (inside, done) = (Arc::clone(&rt), gate.clone());
            let then = move || {
                let later = inside.task("later").once().host(|()| ()).unwrap();
                refused(inside.wait(), "a waker");
                refused(later.wait(), "a waker");
                refused(block_on(later), "a waker");
                refused(block_on(inside.fence(&inside.host_object(1)).unwrap()), "a waker");
                for _ in 0..10 {
                    inside.task("many").over([1]).kernel(|_, ()| ()).unwrap();
                }
                // The last owner, perhaps.
                drop(inside);
                done.open();
            };
            match kind {
                0 => woken(task, then),
                1 => woken(rt.idle(), then),
                2 => woken(rt.barrier(), then),
                _ => {
                    let (object, enter) = (rt.host_object(1), pass.clone());
                    let slow = rt.task("slow").once().effect(&object, sequential());
                    slow.host(move |_| enter.pass()).unwrap();
                    woken(rt.fence(&object).unwrap(), then);
                }
            }
            if kind == 3 {
                pass.open();
                gate.pass();
                rt.wait().unwrap();
            } else {
                drop(rt);
                pass.open();
                gate.pass();
            }
        }
    }
}

/// A thread that waits inside a task for another runtime does not run tasks that were not begun there: they
/// would count as inside.
#[test]
fn answers_do_not_depend_on_the_thread_that_helps() {
    let _deadline = deadline();
    for threads in THREADS {
        for _ in 0..20 {
            independent_tasks_have_no_mark(&runtime(threads), Arc::new(runtime(threads)));
        }
    }
}

/// Nor do the threads that wait for a seeded runtime. If there is no other thread, one of the runtime runs
/// such tasks.
#[test]
fn answers_of_seeded_runtimes_do_not_depend_on_the_thread_that_helps() {
    let _deadline = deadline();
    for seed in 0..3 {
        independent_tasks_have_no_mark(&runtime(2), Arc::new(seeded(seed)));
        let (outer, other) = (runtime(2), Arc::new(seeded(seed)));
        let done = outer.task("done").once().host(|()| ()).unwrap();
        done.wait().unwrap();
        // Most seeds do not run this task when it is submitted.
        let (gate, first) = (Gate::default(), other.host_object(()));
        let task = other.task("independent").once().effect(&first, sequential());
        let independent = task.host(move |_| done.wait()).unwrap();
        let (waits, open) = (Arc::clone(&other), gate.clone());
        let outer_task = outer.task("waits for the other").once().host(move |()| {
            open.open();
            // As a future, too.
            block_on(waits.idle())?;
            waits.wait()
        });
        gate.pass();
        outer_task.unwrap().wait().unwrap();
        independent.wait().unwrap();
    }
}

fn independent_tasks_have_no_mark(outer: &Runtime, other: Arc<Runtime>) {
    let done = outer.task("done").once().host(|()| ()).unwrap();
    done.wait().unwrap();
    let gate = Gate::default();
    let (pass, waits) = (gate.clone(), Arc::clone(&other));
    let first = outer.task("waits for the other").once().host(move |()| {
        pass.open();
        let own = waits.task("own").once().host(|()| ()).unwrap();
        own.wait().unwrap();
        waits.wait()
    });
    // Not inside a task of `outer`.
    let submitted = other.task("independent").once().host(move |()| {
        gate.pass();
        done.wait()
    });
    submitted.unwrap().wait().unwrap();
    first.unwrap().wait().unwrap();
    outer.wait().unwrap();
}

#[test]
fn a_thread_that_the_program_starts_is_outside() {
    let _deadline = deadline();
    for rt in THREADS.map(runtime) {
        let rt = Arc::new(rt);
        let inside = Arc::clone(&rt);
        let (sender, receiver) = mpsc::channel();
        let starts = move |()| {
            let thread = std::thread::spawn(move || inside.wait());
            sender.send(thread).unwrap();
        };
        rt.task("starts").once().host(starts).unwrap().wait().unwrap();
        receiver.recv().unwrap().join().unwrap().unwrap();
        // The mark is left with the task, on every thread.
        (0..64).par().for_each(|_| rt.wait().unwrap());
        block_on(rt.idle()).unwrap();
    }
}
