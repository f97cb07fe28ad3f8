//! A barrier comes after all earlier tasks and before all later ones, and captures values at its point of the
//! stream. A runtime that ends runs every task submitted to it.

mod common;

use anabranch::{Error, prelude::*};
use common::{Gate, THREADS, block_on, runtime, runtimes, seeded};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use testing::deadline;

#[test]
fn a_barrier_comes_after_everything_before_it_and_before_everything_after_it() {
    let _deadline = deadline();
    for rt in runtimes() {
        let done = Arc::new(AtomicUsize::new(0));
        for round in 1..=20 {
            for i in 0..10 {
                let done = Arc::clone(&done);
                let count = move || {
                    let before = done.fetch_add(1, AcqRel);
                    assert!(before >= 20 * (round - 1) && before < 20 * round, "{before} in round {round}");
                };
                match i % 2 {
                    0 => rt.task("host").once().host(move |()| count()).unwrap(),
                    // Two chunks, and each of them counts.
                    _ => rt.task("kernel").over([3]).chunks(3).kernel(move |_, ()| count()).unwrap(),
                };
            }
            // A barrier orders tasks even if no thread waits for it.
            drop(rt.barrier());
        }
        rt.wait().unwrap();
        assert_eq!(done.load(Relaxed), 400);
    }
}

#[test]
fn a_barrier_orders_tasks_submitted_by_other_threads() {
    let _deadline = deadline();
    /// Three threads submit tasks that increment `count` and check that `others` is at least `at_least`.
    fn submit(rt: &Arc<Runtime>, count: &Arc<AtomicUsize>, others: &Arc<AtomicUsize>, at_least: usize) {
        let thread = |_| {
            let (rt, count, others) = (Arc::clone(rt), Arc::clone(count), Arc::clone(others));
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let (count, others) = (Arc::clone(&count), Arc::clone(&others));
                    let counts = move || {
                        assert!(others.load(Acquire) >= at_least);
                        count.fetch_add(1, AcqRel);
                    };
                    rt.task("count").once().host(move |()| counts()).unwrap();
                }
            })
        };
        let threads: Vec<_> = (0..3).map(thread).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    for threads in THREADS {
        let rt = Arc::new(runtime(threads));
        let (before, after) = (Arc::default(), Arc::default());
        submit(&rt, &before, &after, 0);
        let barrier = rt.barrier();
        submit(&rt, &after, &before, 150);
        barrier.wait().unwrap();
        assert_eq!(before.load(Acquire), 150);
        rt.wait().unwrap();
        assert_eq!(after.load(Acquire), 150);
    }
}

#[test]
fn a_barrier_of_an_idle_runtime_is_done_at_once() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let barrier = rt.barrier();
        assert!(barrier.is_ready());
        barrier.wait().unwrap();
        block_on(rt.barrier()).unwrap();
        rt.wait().unwrap();
    }
}

#[test]
fn failures_propagate_through_barriers() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, good) = (rt.buffer::<u8, 1>([4]), rt.buffer_from(&[1_u8]).unwrap());
        rt.task("bad").once().write(&u, all()).host(|_| Err::<(), _>("no luck")).unwrap();
        let barrier = rt.barrier();
        let late = rt.task("late").once().read(&u, all()).host(|_| ()).unwrap();
        let fine = rt.task("fine").once().read(&good, all()).host(|_| ()).unwrap();
        let error = barrier.wait().unwrap_err().to_string();
        assert!(error.contains("task \"bad\"") && error.contains("no luck"), "{error}");
        fine.wait().unwrap();
        assert!(late.wait().is_err());
        assert_eq!(late.status(), Status::Skipped);
        // The same holds after the failure was reported and the runtime has forgotten the task.
        let _ = rt.wait();
        for _ in 0..3 {
            rt.barrier().wait().unwrap();
            let late = rt.task("later").once().read(&u, all()).host(|_| ()).unwrap();
            assert!(late.wait().unwrap_err().to_string().contains("no luck"));
            assert!(rt.wait().is_err());
        }
        rt.task("heal").once().write(&u, all()).host(|(u,)| u.fill(3)).unwrap();
        assert_eq!(rt.barrier_with(u.capture()).unwrap().wait().unwrap().as_slice(), [3; 4]);
    }
}

#[test]
fn a_barrier_captures_values_at_its_point_of_the_stream() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, scalar) =
            (rt.buffer_from(&[1_u32, 2, 3]).unwrap(), rt.buffer_from(&ndarray::arr0(0.5)).unwrap());
        let (log, count) = (rt.host_object(vec!["begin"]), rt.host_object(1));
        let change = |by: u32| {
            rt.task("change")
                .over([3])
                .update(&u, one_to_one())
                .kernel(move |t, (u,)| t.points().for_each(|p| u[p] += by))
                .unwrap();
            rt.task("log").once().effect(&log, sequential()).host(|(log,)| log.push("more")).unwrap();
            rt.task("count").once().effect(&count, exclusive()).host(|(count,)| *count *= 2).unwrap();
        };
        change(10);
        let all = (u.capture(), u.part(GridBox::new(1, 2)), scalar.capture(), log.capture(), count.capture());
        let barrier = rt.barrier_with(all).unwrap();
        change(100);
        let (whole, part, scalar, seen, doubled) = barrier.wait().unwrap();
        assert_eq!((whole.as_slice(), part.as_slice(), scalar[[]]), (&[11, 12, 13][..], &[12][..], 0.5));
        assert_eq!((&seen[..], doubled), (&["begin", "more"][..], 2));
        let one = rt.barrier_with(count.capture()).unwrap();
        assert_eq!(block_on(one).unwrap(), 4);
        // `drain` moves objects out, so they need not be `Clone`.
        struct NoClone(u8);
        let moved = rt.host_object(NoClone(9));
        let (u, NoClone(nine), log) = rt.drain((u.capture(), moved.capture(), log.capture())).unwrap();
        assert_eq!((u.into_vec(), nine, log.len()), (vec![111, 112, 113], 9, 3));
    }
}

#[test]
fn a_barrier_with_a_wrong_capture_is_an_error() {
    let _deadline = deadline();
    let rt = runtime(2);
    let never = rt.buffer::<u8, 1>([4]).named("never");
    let error = rt.barrier_with(never.capture()).unwrap_err().to_string();
    assert!(error.contains("buffer \"never\"") && error.contains("never written"), "{error}");
    let error = rt.barrier_with(never.part(GridBox::new(3, 9))).unwrap_err();
    assert!(matches!(error, Error::NoSuchPart { .. }), "{error}");
    rt.wait().unwrap();
}

#[test]
fn a_fence_captures_several_values_at_one_point() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, count) = (rt.buffer_from(&[0_u64; 4]).unwrap(), rt.host_object(0));
        let fences: Vec<_> = (0..100)
            .map(|_| {
                rt.task("both")
                    .once()
                    .update(&u, all())
                    .effect(&count, sequential())
                    .host(|(u, count)| {
                        *count += 1;
                        u.fill(*count);
                    })
                    .unwrap();
                rt.fence((&u, &count, &u.part(GridBox::new(2, 3)))).unwrap()
            })
            .collect();
        for (i, fence) in (1..).zip(fences) {
            let (u, count, part) = fence.wait().unwrap();
            assert_eq!((u.as_slice(), count, part.as_slice()), (&[i; 4][..], i, &[i][..]));
        }
    }
}

#[test]
fn a_clone_that_panics_fails_the_fence() {
    let _deadline = deadline();
    #[derive(Debug)]
    struct Stubborn;
    impl Clone for Stubborn {
        fn clone(&self) -> Self {
            std::panic::resume_unwind(Box::new("no copies"))
        }
    }
    for rt in runtimes() {
        let object = rt.host_object(Stubborn);
        assert!(matches!(rt.fence(&object).unwrap().wait(), Err(Error::FenceLost)));
        assert!(rt.wait().unwrap_err().to_string().contains("no copies"));
        // The object is unchanged.
        rt.task("after").once().effect(&object, sequential()).host(|_| ()).unwrap().wait().unwrap();
        rt.drain(object.capture()).unwrap();
    }
}

#[test]
fn dropping_the_runtime_runs_all_submitted_tasks() {
    let _deadline = deadline();
    for rt in runtimes() {
        let done = Arc::new(AtomicUsize::new(0));
        let object = rt.host_object(());
        for i in 0..100 {
            let done = Arc::clone(&done);
            let count = move || _ = done.fetch_add(1, AcqRel);
            match i % 3 {
                0 => rt.task("host").once().host(move |()| count()).unwrap(),
                1 => rt.task("exclusive").once().effect(&object, exclusive()).host(move |_| count()).unwrap(),
                _ => rt.task("kernel").over([1]).kernel(move |_, ()| count()).unwrap(),
            };
            if i % 10 == 0 {
                drop(rt.barrier());
            }
        }
        drop(rt);
        assert_eq!(done.load(Acquire), 100);
    }
}

#[test]
fn a_task_may_drop_the_runtime_while_other_tasks_are_pending() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(runtime(threads));
        let (done, gate) = (Arc::new(AtomicUsize::new(0)), Gate::default());
        let (inside, held) = (Arc::clone(&rt), gate.clone());
        let last_owner = move || {
            held.pass();
            drop(inside);
        };
        rt.task("last owner").once().host(move |()| last_owner()).unwrap();
        let mut last = None;
        for _ in 0..50 {
            let done = Arc::clone(&done);
            let count = move || _ = done.fetch_add(1, AcqRel);
            last = Some(rt.task("count").once().host(move |()| count()).unwrap());
        }
        let idle = rt.idle();
        drop(rt);
        gate.open();
        idle.wait().unwrap();
        assert_eq!(done.load(Acquire), 50);
        last.unwrap().wait().unwrap();
    }
    // In a seeded runtime, tasks run on the thread that waits.
    for seed in 0..5 {
        let rt = Arc::new(seeded(seed));
        let inside = Arc::clone(&rt);
        rt.task("last owner").once().host(move |()| drop(inside)).unwrap();
        let tasks: Vec<_> = (0..20).map(|_| rt.task("task").once().host(|()| ()).unwrap()).collect();
        let idle = rt.idle();
        drop(rt);
        idle.wait().unwrap();
        assert!(tasks.iter().all(|task| task.status() == Status::Done));
    }
}

/// The limit of tasks in flight does not block a thread that is inside a task.
#[test]
fn submission_inside_a_task_never_blocks() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Arc::new(Runtime::builder().threads(threads).max_in_flight(2).build().unwrap());
        let order = rt.host_object(Vec::new());
        for i in 0..20 {
            let (inside, log) = (Arc::clone(&rt), order.clone());
            rt.task("outer")
                .once()
                .host(move |()| {
                    for j in 0..5 {
                        inside
                            .task("inner")
                            .once()
                            .effect(&log, exclusive())
                            .host(move |(log,)| log.push(5 * i + j))?;
                    }
                    // A task may create a fence, as long as it does not wait for it.
                    drop(inside.fence(&log)?);
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        rt.wait().unwrap();
        rt.wait().unwrap();
        let mut all = rt.fence(&order).unwrap().wait().unwrap();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn a_failed_allocation_names_the_buffer() {
    let _deadline = deadline();
    for rt in runtimes() {
        let huge = rt.buffer::<u64, 2>([1 << 30, 1 << 28]).named("huge");
        let fine = rt.buffer::<u8, 1>([4]);
        let write = rt
            .task("write")
            .once()
            .write(&huge, fixed(GridBox::new([0, 0], [1, 1])))
            .write(&fine, all())
            .host(|_| ())
            .unwrap();
        let error = write.wait().unwrap_err().to_string();
        assert!(error.contains("no memory for buffer \"huge\": 2305843009213693952 bytes"), "{error}");
        assert_eq!(write.status(), Status::Failed);
        let skipped = rt.task("reads").once().read(&fine, all()).host(|_| ()).unwrap();
        assert!(skipped.wait().is_err());
        let fence = rt.fence(&huge.part(GridBox::new([0, 0], [1, 1]))).unwrap();
        assert!(fence.wait().unwrap_err().to_string().contains("\"huge\""));
        assert!(rt.wait().is_err());
        // The runtime goes on.
        rt.task("heals").once().write(&fine, all()).host(|(fine,)| fine.fill(1)).unwrap();
        assert_eq!(rt.fence(&fine).unwrap().wait().unwrap().as_slice(), [1; 4]);
    }
}
