//! Sequential, exclusive and relaxed side effects on host objects keep their order; priorities and lanes.

mod common;

use anabranch::prelude::*;
use common::{Gate, THREADS, runtime, runtimes, seeded};
use parking_lot::{Condvar, Mutex};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use testing::deadline;

/// Blocks tasks until a given number of them have arrived.
#[derive(Clone)]
struct Rendezvous(Arc<(Mutex<usize>, Condvar, usize)>);

impl Rendezvous {
    fn of(count: usize) -> Self {
        Self(Arc::new((Mutex::new(0), Condvar::new(), count)))
    }

    fn wait(&self) {
        let (arrived, all_arrived, count) = &*self.0;
        let mut arrived = arrived.lock();
        *arrived += 1;
        all_arrived.notify_all();
        while *arrived < *count {
            all_arrived.wait(&mut arrived);
        }
    }
}

#[test]
fn exclusive_tasks_never_overlap_and_all_of_them_run() {
    let _deadline = deadline();
    for rt in runtimes() {
        let objects: Vec<_> = (0..4).map(|_| rt.host_object(0_u64)).collect();
        let inside: Arc<[AtomicUsize; 4]> = Arc::default();
        for i in 0..2000_usize {
            let (a, b) = (i % 4, (i + 1 + i / 4 % 3) % 4);
            let inside = Arc::clone(&inside);
            rt.task("both")
                .once()
                .effect(&objects[a], exclusive())
                .effect(&objects[b], exclusive())
                .host(move |(first, second)| {
                    for object in [a, b] {
                        assert_eq!(inside[object].fetch_add(1, AcqRel), 0);
                    }
                    *first += 1;
                    *second += 1;
                    for object in [a, b] {
                        inside[object].fetch_sub(1, AcqRel);
                    }
                })
                .unwrap();
        }
        rt.wait().unwrap();
        let counts: u64 = objects.iter().map(|object| rt.fence(object).unwrap().wait().unwrap()).sum();
        assert_eq!(counts, 4000);
    }
}

/// An exclusive task runs although the program keeps submitting relaxed tasks.
#[test]
fn an_exclusive_task_is_not_starved_by_relaxed_ones() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(Runtime::builder().threads(threads).max_in_flight(8).build().unwrap());
        let object = rt.host_object(AtomicUsize::new(0));
        let had_its_turn = Arc::new(AtomicUsize::new(0));
        let relaxed = || {
            let count = |(object,): (&AtomicUsize,)| _ = object.fetch_add(1, Relaxed);
            rt.task("relaxed").once().effect(&object, relaxed()).host(count).unwrap();
        };
        (0..20).for_each(|_| relaxed());
        let turn = Arc::clone(&had_its_turn);
        let note = move |(_object,): (&mut AtomicUsize,)| turn.store(1, Release);
        rt.task("exclusive").once().effect(&object, exclusive()).host(note).unwrap();
        while had_its_turn.load(Acquire) == 0 {
            relaxed();
        }
        rt.wait().unwrap();
    }
}

#[test]
fn relaxed_tasks_run_at_the_same_time() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let object = rt.host_object(Rendezvous::of(3));
        for _ in 0..3 {
            rt.task("meets")
                .once()
                .effect(&object, relaxed())
                .host(|(rendezvous,)| rendezvous.wait())
                .unwrap();
        }
        rt.wait().unwrap();
    }
}

/// Only relaxed tasks are unordered with each other. A sequential task comes after all earlier and before all
/// later tasks.
#[test]
fn the_stricter_order_decides() {
    let _deadline = deadline();
    for rt in runtimes() {
        let object = rt.host_object(Mutex::new(Vec::new()));
        let sequential_task = |name: &'static str| {
            rt.task(name)
                .once()
                .effect(&object, sequential())
                .host(move |(log,)| log.get_mut().push(name))
                .unwrap()
        };
        let relaxed_task = |name: &'static str| {
            rt.task(name).once().effect(&object, relaxed()).host(move |(log,)| log.lock().push(name)).unwrap()
        };
        let exclusive_task = |name: &'static str| {
            rt.task(name)
                .once()
                .effect(&object, exclusive())
                .host(move |(log,)| log.get_mut().push(name))
                .unwrap()
        };
        sequential_task("begin");
        relaxed_task("r1");
        exclusive_task("e1");
        relaxed_task("r2");
        exclusive_task("e2");
        sequential_task("middle");
        exclusive_task("e3");
        sequential_task("end");
        let log = rt.drain(object.capture()).unwrap().into_inner();
        assert_eq!((log[0], log[5], log[6], log[7]), ("begin", "middle", "e3", "end"));
        let mut between = log[1..5].to_vec();
        between.sort_unstable();
        assert_eq!(between, ["e1", "e2", "r1", "r2"]);
    }
}

#[test]
fn a_token_object_orders_tasks() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (token, order) = (rt.host_object(()), Arc::new(Mutex::new(Vec::new())));
        for i in 0..100 {
            let order = Arc::clone(&order);
            rt.task("in order")
                .once()
                .effect(&token, sequential())
                .host(move |((),)| order.lock().push(i))
                .unwrap();
        }
        rt.wait().unwrap();
        assert_eq!(*order.lock(), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn conflicting_tasks_run_in_the_order_of_their_priorities() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (log, gate) = (rt.host_object(Vec::new()), Gate::default());
        let held = gate.clone();
        rt.task("holds").once().effect(&log, exclusive()).host(move |_| held.pass()).unwrap();
        for priority in [-1, 0, 5, 0] {
            rt.task("next")
                .once()
                .priority(priority)
                .effect(&log, exclusive())
                .host(move |(log,)| log.push(priority))
                .unwrap();
        }
        gate.open();
        assert_eq!(rt.fence(&log).unwrap().wait().unwrap(), [5, 0, 0, -1]);
    }
}

/// A failed exclusive task poisons the object for a later sequential one, however many tasks ran in between.
#[test]
fn a_failed_exclusive_task_is_not_forgotten() {
    let _deadline = deadline();
    for rt in runtimes() {
        let object = rt.host_object(0);
        rt.task("bad").once().effect(&object, exclusive()).host(|_| Err::<(), _>("no luck")).unwrap();
        assert!(rt.wait().is_err());
        for _ in 0..300 {
            rt.task("good").once().effect(&object, exclusive()).host(|(object,)| *object += 1).unwrap();
        }
        rt.wait().unwrap();
        let after = rt.task("after").once().effect(&object, sequential()).host(|_| ()).unwrap();
        assert!(after.wait().unwrap_err().to_string().ends_with("no luck"));
        assert_eq!(after.status(), Status::Skipped);
    }
}

/// A fence that fails leaves its objects as they are.
#[test]
fn a_fence_poisons_no_object() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, object) = (rt.buffer::<u8, 1>([4]), rt.host_object(0));
        rt.task("bad").once().write(&u, all()).host(|_| Err::<(), _>("no luck")).unwrap();
        for order in 0..3 {
            let fence = rt.fence((&u, &object)).unwrap();
            let task = rt.task("after").once();
            match order {
                0 => task.effect(&object, sequential()).host(|(object,)| *object += 1).unwrap(),
                1 => task.effect(&object, exclusive()).host(|(object,)| *object += 1).unwrap(),
                _ => task.effect(&object, relaxed()).host(|(_object,)| ()).unwrap(),
            };
            assert!(fence.wait().is_err());
        }
        assert!(rt.wait().is_err());
        assert_eq!(rt.fence(&object).unwrap().wait().unwrap(), 2);
    }
}

/// Tasks submitted after a fence do not change the value that it returns.
#[test]
fn a_fence_shows_an_object_before_later_tasks() {
    let _deadline = deadline();
    for rt in runtimes() {
        let object = rt.host_object(0);
        let add = || {
            rt.task("exclusive").once().effect(&object, exclusive()).host(|(object,)| *object += 1).unwrap();
        };
        let fences: Vec<_> = (0..300)
            .map(|i| {
                add();
                let fence = rt.fence(&object).unwrap();
                if i % 3 == 0 {
                    add();
                    drop(rt.fence(&object).unwrap());
                    rt.task("back")
                        .once()
                        .effect(&object, sequential())
                        .host(|(object,)| *object -= 1)
                        .unwrap();
                }
                fence
            })
            .collect();
        for (i, fence) in fences.into_iter().enumerate() {
            assert_eq!(fence.wait().unwrap(), i + 1);
        }
    }
}

#[test]
fn as_many_host_tasks_as_there_are_lanes_may_wait_for_each_other() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let rendezvous = Rendezvous::of(16);
        for _ in 0..16 {
            let rendezvous = rendezvous.clone();
            rt.task("meets").once().host(move |()| rendezvous.wait()).unwrap();
        }
        rt.wait().unwrap();
    }
}

#[test]
fn each_seed_repeats_its_order_and_different_seeds_differ() {
    let _deadline = deadline();
    let order = |seed| {
        let rt = seeded(seed);
        let log = rt.host_object(Mutex::new(Vec::new()));
        for i in 0..50 {
            rt.task("note").once().effect(&log, relaxed()).host(move |(log,)| log.lock().push(i)).unwrap();
        }
        rt.drain(log.capture()).unwrap().into_inner()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
