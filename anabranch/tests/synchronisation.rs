//! Any thread may wait, fence and drain, blocking or with futures, and a waiting thread runs only tasks that
//! it waits for.

mod common;

use anabranch::prelude::*;
use common::{Gate, THREADS, block_on, runtime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    time::Duration,
};
use testing::deadline;

#[test]
fn wait_returns_when_all_tasks_are_done() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        rt.wait().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for round in 1..=20 {
            for _ in 0..10 {
                let (kernel, host) = (Arc::clone(&done), Arc::clone(&done));
                rt.task("kernel")
                    .over([7])
                    .chunks(7)
                    .kernel(move |_, ()| {
                        kernel.fetch_add(1, Relaxed);
                    })
                    .unwrap();
                rt.task("host")
                    .once()
                    .host(move |()| {
                        host.fetch_add(1, Relaxed);
                    })
                    .unwrap();
            }
            rt.wait().unwrap();
            assert_eq!(done.load(Relaxed), round * 80);
        }
    }
}

#[test]
fn a_fence_returns_the_contents_at_its_point_of_the_stream() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer_from(&ndarray::Array2::<u64>::zeros((5, 3))).unwrap();
        let mut fences = Vec::new();
        for _ in 0..50 {
            rt.task("count")
                .over([5, 3])
                .update(&u, one_to_one())
                .kernel(|tile, (u,)| tile.points().for_each(|p| u[p] += 1))
                .unwrap();
            fences.push(rt.fence(&u).unwrap());
        }
        for (i, fence) in fences.into_iter().enumerate() {
            assert_eq!(fence.wait().unwrap().as_slice(), [i as u64 + 1; 15]);
        }
    }
}

#[test]
fn a_snapshot_of_a_part_is_indexed_by_the_buffers_coordinates() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer_from(&ndarray::Array2::from_shape_fn((4, 5), |(y, x)| 10 * y + x)).unwrap();
    let part = rt.fence(&u.part(GridBox::new([1, 2], [3, 5]))).unwrap().wait().unwrap();
    assert_eq!(part.as_slice(), [12, 13, 14, 22, 23, 24]);
    assert_eq!(part[[2, 4]], 24);
    assert_eq!(part.into_array(), ndarray::arr2(&[[12, 13, 14], [22, 23, 24]]));
    let cube =
        rt.buffer_from(&ndarray::Array3::from_shape_fn((3, 3, 3), |(z, y, x)| 100 * z + 10 * y + x)).unwrap();
    let part = rt.fence(&cube.part(GridBox::new([1, 0, 1], [3, 2, 2]))).unwrap().wait().unwrap();
    assert_eq!(part.as_slice(), [101, 111, 201, 211]);
    let scalar = rt.buffer_from(&ndarray::arr0(42)).unwrap();
    assert_eq!(rt.fence(&scalar).unwrap().wait().unwrap()[[]], 42);
}

#[test]
fn a_large_fence_copies_all_elements() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer::<u64, 1>([1 << 16]);
    rt.task("fill")
        .over([1 << 16])
        .write(&u, one_to_one())
        .kernel(|tile, (u,)| tile.points().for_each(|[i]| u.set([i], i as u64)))
        .unwrap();
    let snapshot = rt.fence(&u).unwrap().wait().unwrap();
    assert!(snapshot.as_slice().iter().enumerate().all(|(i, &x)| x == i as u64));
}

#[test]
fn fences_and_waits_are_futures() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer::<u32, 1>([4]);
        let log = rt.host_object(Vec::new());
        rt.task("slow")
            .once()
            .write(&u, all())
            .effect(&log, sequential())
            .host(|(u, log)| {
                std::thread::sleep(Duration::from_millis(10));
                u.fill(5);
                log.push("slow");
            })
            .unwrap();
        let (fence, object, idle) = (rt.fence(&u).unwrap(), rt.fence(&log).unwrap(), rt.idle());
        assert!(!fence.is_ready());
        block_on(async {
            assert_eq!(fence.await.unwrap().as_slice(), [5; 4]);
            assert_eq!(object.await.unwrap(), ["slow"]);
            idle.await.unwrap();
        });
        block_on(rt.idle()).unwrap();
    }
}

#[test]
fn a_fence_may_be_dropped_without_waiting() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer_from(&[1, 2, 3]).unwrap();
    drop(rt.fence(&u));
    rt.wait().unwrap();
}

#[test]
fn drain_returns_all_captures() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let u = rt.buffer::<usize, 1>([100]);
        let log = rt.host_object(Vec::new());
        for step in 0..10 {
            rt.task("fill").over([100]).write(&u, one_to_one()).kernel(move |_, (u,)| u.fill(step)).unwrap();
            rt.task("note")
                .once()
                .read(&u, all())
                .effect(&log, sequential())
                .host(|(u, log)| log.push(u.as_slice().unwrap().iter().sum::<usize>()))
                .unwrap();
        }
        let (last, part, log) = rt.drain((u.capture(), u.part(GridBox::new(3, 5)), log.capture())).unwrap();
        assert_eq!(last.into_vec(), [9; 100]);
        assert_eq!(part.into_vec(), [9; 2]);
        assert_eq!(log, (0..10).map(|s| 100 * s).collect::<Vec<_>>());
    }
}

#[test]
fn capturing_an_object_twice_is_an_error() {
    let _deadline = deadline();
    let rt = runtime(1);
    let object = rt.host_object(1);
    let error = rt.drain((object.capture(), object.capture())).unwrap_err().to_string();
    assert!(error.contains("declares two effects on host object 1 (i32)"), "{error}");
}

#[test]
fn host_objects_are_dropped_after_their_last_task() {
    let _deadline = deadline();
    struct ReportsDrop(mpsc::Sender<&'static str>);
    impl Drop for ReportsDrop {
        fn drop(&mut self) {
            self.0.send("dropped").unwrap();
        }
    }
    let (sender, receiver) = mpsc::channel();
    let rt = runtime(2);
    let object = rt.host_object(ReportsDrop(sender));
    rt.task("use")
        .once()
        .effect(&object, sequential())
        .host(|(object,)| {
            std::thread::sleep(Duration::from_millis(5));
            object.0.send("used").unwrap();
        })
        .unwrap();
    drop(object);
    rt.wait().unwrap();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["used", "dropped"]);
}

#[test]
fn dropping_the_runtime_waits_for_its_tasks() {
    let _deadline = deadline();
    for threads in THREADS {
        let count = Arc::new(AtomicUsize::new(0));
        let rt = runtime(threads);
        for _ in 0..100 {
            let (kernel, host) = (Arc::clone(&count), Arc::clone(&count));
            rt.task("kernel")
                .over([1])
                .kernel(move |_, ()| {
                    kernel.fetch_add(1, Relaxed);
                })
                .unwrap();
            rt.task("host")
                .once()
                .host(move |()| {
                    host.fetch_add(1, Relaxed);
                })
                .unwrap();
        }
        drop(rt);
        assert_eq!(count.load(Relaxed), 200);
    }
}

/// No thread of a runtime outlives it.
#[test]
#[cfg(target_os = "linux")]
fn dropping_the_runtime_ends_its_threads() {
    let _deadline = deadline();
    for _ in 0..3 {
        let rt = Runtime::builder().threads(3).name("mortal-").build().unwrap();
        let u = rt.buffer_from(&[0; 10]).unwrap();
        rt.task("kernel").over([10]).update(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
        rt.task("host").once().read(&u, all()).host(|(_u,)| ()).unwrap();
        rt.wait().unwrap();
        assert!(testing::threads::count("mortal-") > 0);
        drop(rt.fence(&u));
        drop(rt);
        // A thread that was joined is listed until the kernel has cleaned up after it.
        while testing::threads::count("mortal-") > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_task_may_drop_the_runtime() {
    let _deadline = deadline();
    let (sender, receiver) = mpsc::channel();
    let rt = Arc::new(runtime(2));
    let inside = Arc::clone(&rt);
    rt.task("last owner")
        .once()
        .host(move |()| {
            std::thread::sleep(Duration::from_millis(10));
            drop(inside);
            sender.send(()).unwrap();
        })
        .unwrap();
    drop(rt);
    receiver.recv().unwrap();
    // The closure of a kernel, which is dropped after the kernel has run, may drop the runtime, too.
    let rt = Arc::new(runtime(2));
    let (inside, (sender, receiver)) = (Arc::clone(&rt), mpsc::channel());
    rt.task("last owner")
        .over([1])
        .kernel(move |_, ()| {
            std::thread::sleep(Duration::from_millis(10));
            let _ = &inside;
            sender.send(()).unwrap();
        })
        .unwrap();
    drop(rt);
    receiver.recv().unwrap();
}

#[test]
fn several_threads_may_submit_and_wait() {
    let _deadline = deadline();
    let rt = runtime(3);
    let total = rt.host_object(0_u64);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let u = rt.buffer_from(&[0_u64; 16]).unwrap();
                for _ in 0..100 {
                    rt.task("count")
                        .over([16])
                        .update(&u, one_to_one())
                        .kernel(|t, (u,)| t.points().for_each(|p| u[p] += 1))
                        .unwrap();
                    rt.task("total")
                        .once()
                        .effect(&total, sequential())
                        .host(|(total,)| *total += 1)
                        .unwrap();
                    rt.wait().unwrap();
                }
                assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [100; 16]);
            });
        }
    });
    assert_eq!(rt.drain(total.capture()).unwrap(), 400);
}

#[test]
fn tasks_may_submit_tasks() {
    let _deadline = deadline();
    let rt = Arc::new(Runtime::builder().threads(2).max_in_flight(4).build().unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let (inside, done) = (Arc::clone(&rt), Arc::clone(&done));
        rt.task("outer")
            .once()
            .host(move |()| {
                for _ in 0..10 {
                    let done = Arc::clone(&done);
                    inside.task("inner").once().host(move |()| {
                        done.fetch_add(1, Relaxed);
                    })?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    while done.load(Relaxed) < 100 {
        rt.wait().unwrap();
    }
}

#[test]
fn submission_waits_at_the_limit_of_tasks_in_flight() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).max_in_flight(10).build().unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    for submitted in 0..200 {
        let done = Arc::clone(&done);
        let seen = done.load(Relaxed);
        assert!(submitted - seen <= 10, "{submitted} submitted, {seen} done");
        rt.task("slow")
            .over([1])
            .kernel(move |_, ()| {
                std::thread::sleep(Duration::from_micros(200));
                done.fetch_add(1, Relaxed);
            })
            .unwrap();
    }
    rt.wait().unwrap();
}

/// A waiting thread runs no unrelated task, because such a task may itself wait for that thread.
#[test]
fn a_waiting_thread_runs_only_what_it_waits_for() {
    let _deadline = deadline();
    for _ in 0..50 {
        let rt = runtime(2);
        let object = rt.host_object(0);
        let (sender, receiver) = mpsc::channel();
        let fence = rt.fence(&object).unwrap();
        rt.task("later")
            .once()
            .effect(&object, sequential())
            .host(move |(_o,)| receiver.recv().unwrap())
            .unwrap();
        assert_eq!(fence.wait().unwrap(), 0);
        sender.send(()).unwrap();
        rt.wait().unwrap();
    }
}

/// A thread that waits for the limit of tasks in flight runs no host task, because the task may wait for that
/// thread.
#[test]
fn a_waiting_submitter_runs_no_host_task() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).max_in_flight(4).host_lanes(1).build().unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    rt.task("waits for the program").once().host(move |()| receiver.recv().unwrap()).unwrap();
    for _ in 0..50 {
        rt.task("kernel").over([4]).kernel(|_, ()| ()).unwrap();
    }
    sender.send(()).unwrap();
    rt.wait().unwrap();
}

/// A waiting thread that runs tasks does not pass its floating-point mode on to them.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn results_do_not_depend_on_the_waiting_threads_mode() {
    let _deadline = deadline();
    use std::hint::black_box;
    let rt = runtime(1);
    anabranch::par::flush_denormals(|| {
        for _ in 0..200 {
            rt.task("denormal")
                .once()
                .host(|()| assert!(black_box(f32::MIN_POSITIVE) * black_box(0.5) > 0.0))
                .unwrap();
            rt.wait().unwrap();
        }
    });
}

#[test]
fn polling_inside_a_task_is_an_error() {
    let _deadline = deadline();
    let rt = Arc::new(runtime(2));
    let inside = Arc::clone(&rt);
    rt.task("polls")
        .once()
        .host(move |()| assert!(matches!(block_on(inside.idle()), Err(Error::WaitInsideTask { .. }))))
        .unwrap();
    rt.wait().unwrap();
}

/// A long chain of tasks does not delay an independent task.
#[test]
fn a_chain_does_not_starve_an_independent_task() {
    let _deadline = deadline();
    let rt = runtime(1);
    let u = rt.buffer_from(&[0_u64]).unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    for i in 0..20_000 {
        rt.task("link").over([1]).update(&u, one_to_one()).kernel(|_, (u,)| u[[0]] += 1).unwrap();
        if i == 100 {
            let ran = Arc::clone(&ran);
            rt.task("other")
                .over([1])
                .kernel(move |_, ()| {
                    ran.fetch_add(1, Relaxed);
                })
                .unwrap();
        }
    }
    // At most 4,096 tasks are in flight, so the other task has run long ago.
    assert_eq!(ran.load(Relaxed), 1);
    rt.wait().unwrap();
}

#[test]
fn host_tasks_run_beside_kernels_and_each_other() {
    let _deadline = deadline();
    let rt = runtime(2);
    let (a, b) = (mpsc::channel(), mpsc::channel());
    // Each task waits for the other one, so both end only if they run at the same time.
    rt.task("ping")
        .once()
        .host(move |()| {
            a.0.send(()).unwrap();
            b.1.recv().unwrap();
        })
        .unwrap();
    rt.task("pong")
        .once()
        .host(move |()| {
            b.0.send(()).unwrap();
            a.1.recv().unwrap();
        })
        .unwrap();
    rt.wait().unwrap();
}

/// Neither the threads of the runtime nor the thread that waits spin.
#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_waits_for_a_sleeping_task_uses_no_processor_time() {
    let _deadline = deadline();
    type Wait = fn(&Runtime, TaskHandle, &HostObject<()>);
    let calls: [Wait; 4] = [
        |rt, _, _| rt.wait().unwrap(),
        |_, task, _| task.wait().unwrap(),
        |rt, _, object| rt.fence(object).unwrap().wait().unwrap(),
        |rt, _, object| block_on(rt.fence(object).unwrap()).unwrap(),
    ];
    for wait in calls {
        let rt = Runtime::builder().threads(4).name("sleepy-").build().unwrap();
        rt.task("warm up").over([100]).kernel(|_, ()| ()).unwrap();
        rt.wait().unwrap();
        let gate = Gate::default();
        let closed = gate.clone();
        let (waits, begins) = mpsc::channel();
        let program = std::thread::Builder::new().name("sleepy-program".into()).spawn(move || {
            let object = rt.host_object(());
            let (begun, has_begun) = mpsc::channel();
            let sleep = move |((),): (&mut (),)| {
                begun.send(()).unwrap();
                closed.pass();
            };
            let task = rt.task("sleep").once().effect(&object, sequential()).host(sleep).unwrap();
            // A lane runs the task, so this thread cannot help with it.
            has_begun.recv().unwrap();
            waits.send(()).unwrap();
            wait(&rt, task, &object);
        });
        begins.recv().unwrap();
        // Three workers, the lane and the thread of the program.
        testing::threads::wait_until_asleep("sleepy-", 5);
        gate.open();
        program.unwrap().join().unwrap();
    }
}

#[test]
fn a_slow_reader_does_not_stop_writers_of_a_buffer_with_versions() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer::<u64, 1>([64]).with_versions(2);
    let fill = |value| {
        rt.task("fill").over([64]).write(&u, one_to_one()).kernel(move |_, (u,)| u.fill(value)).unwrap()
    };
    let (release, held) = mpsc::channel::<()>();
    fill(1);
    let seen = rt.host_object(Vec::new());
    rt.task("slow reader")
        .once()
        .read(&u, all())
        .effect(&seen, sequential())
        .host(move |(u, seen)| {
            held.recv().unwrap();
            seen.extend_from_slice(u.as_slice().unwrap());
        })
        .unwrap();
    fill(2);
    // The overwrite goes on although the reader still holds the former contents.
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [2; 64]);
    release.send(()).unwrap();
    assert_eq!(rt.drain(seen.capture()).unwrap(), [1; 64]);
}

#[test]
fn a_runtime_says_when_it_is_idle_and_calls_back_then() {
    let _deadline = deadline();
    for rt in THREADS.map(runtime) {
        let (to, calls) = mpsc::channel();
        let call = |number: i32| {
            let to = to.clone();
            move |status| to.send((number, status)).unwrap()
        };
        assert!(rt.is_idle());
        // No task is in flight: the callback is called at once.
        rt.on_done(call(0));
        let (release, held) = mpsc::channel::<()>();
        let group = rt.group("in a group");
        group.task("held").once().blocking().host(move |()| held.recv().unwrap()).unwrap();
        rt.on_done(call(1));
        assert!(!rt.is_idle() && !group.is_idle());
        // A later task does not wait for the callback.
        rt.task("later").once().host(|()| Err::<(), _>("as the test says")).unwrap().wait().unwrap_err();
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [(0, Status::Done)]);
        release.send(()).unwrap();
        // The later task has failed by now, and no wait has reported it.
        assert_eq!(calls.recv().unwrap(), (1, Status::Failed));
        assert!(rt.wait().is_err());
        rt.on_done(call(2));
        rt.wait().unwrap();
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [(2, Status::Done)]);
        assert!(rt.is_idle() && group.is_idle());
    }
}
