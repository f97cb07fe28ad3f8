//! Batches: a host task for each point of an index space, declared and submitted at once.

mod common;

use anabranch::{
    Mistake,
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use common::{Gate, THREADS, block_on, runtime, runtimes};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use testing::deadline;

/// The function of a batch that must not be called.
fn unreachable(what: &str) {
    panic!("the batch was {what}");
}

#[test]
fn the_function_is_called_once_for_each_point() {
    let _deadline = deadline();
    for rt in runtimes() {
        let calls: Arc<Mutex<Vec<[usize; 2]>>> = Arc::default();
        let called = Arc::clone(&calls);
        let box_of_points = GridBox::new([2, 1], [5, 4]);
        rt.tasks("point").each(box_of_points).host(move |point, ()| called.lock().push(point)).unwrap();
        rt.wait().unwrap();
        let mut calls = calls.lock().clone();
        calls.sort_unstable();
        assert_eq!(calls, box_of_points.points().map(|point| point.0).collect::<Vec<_>>(), "{rt:?}");
    }
}

#[test]
fn points_read_and_write_their_own_elements() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, v) = (rt.buffer::<usize, 1>([100]), rt.buffer::<usize, 1>([100]));
        rt.tasks("write").each(0..100).write(&u, one_to_one()).host(|[i], (u,)| u.set([i], i)).unwrap();
        let sum = rt.tasks("sum").each(0..100).read(&u, neighborhood([1])).write(&v, one_to_one());
        sum.host(|[i], (u, v)| v.set([i], u.region().boxes()[0].points().map(|j| u[j.0]).sum())).unwrap();
        let expected = |i: usize| (i.saturating_sub(1)..(i + 2).min(100)).sum::<usize>();
        let results = rt.fence(&v).unwrap().wait().unwrap();
        assert_eq!(results.as_slice(), (0..100).map(expected).collect::<Vec<_>>());
    }
}

#[test]
fn sequential_effects_order_the_points() {
    let _deadline = deadline();
    for rt in runtimes() {
        let log = rt.host_object(Vec::new());
        for round in 0..3 {
            let tasks = rt.tasks("log").each([2, 20]).effect(&log, sequential());
            tasks.host(move |[i, j], (log,)| log.push((round, i, j))).unwrap();
        }
        let log = rt.fence(&log).unwrap().wait().unwrap();
        let all = |round| (0..2).flat_map(move |i| (0..20).map(move |j| (round, i, j)));
        assert_eq!(log, (0..3).flat_map(all).collect::<Vec<_>>());
    }
}

#[test]
fn exclusive_and_relaxed_effects_of_points_reach_the_object() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (sum, names) = (rt.host_object(0), rt.host_object(AtomicUsize::new(0)));
        let tasks = rt.tasks("add").each([200]).effect(&sum, exclusive()).effect(&names, relaxed());
        tasks
            .host(|[i], (sum, names)| {
                *sum += i;
                names.fetch_add(1, Relaxed);
            })
            .unwrap();
        assert_eq!(rt.fence(&sum).unwrap().wait().unwrap(), 199 * 100);
        assert_eq!(rt.drain(names.capture()).unwrap().into_inner(), 200);
    }
}

/// A later task waits only for the points that it needs.
#[test]
fn a_point_waits_only_for_the_points_that_it_needs() {
    let _deadline = deadline();
    for threads in [2, 3, 4, 8] {
        let rt = runtime(threads);
        let u = rt.buffer::<usize, 1>([3]);
        let gate = Gate::default();
        let closed = gate.clone();
        let tasks = rt.tasks("write").each([3]).blocking().write(&u, one_to_one());
        tasks
            .host(move |[i], (u,)| {
                if i == 1 {
                    closed.pass();
                }
                u.set([i], i);
            })
            .unwrap();
        let reader =
            rt.task("read").once().read(&u, fixed(GridBox::new(2, 3))).host(|(u,)| assert_eq!(u[[2]], 2));
        block_on(reader.unwrap()).unwrap();
        gate.open();
        rt.wait().unwrap();
    }
}

#[test]
fn a_point_fails_alone() {
    let _deadline = deadline();
    for rt in runtimes() {
        let u = rt.buffer::<usize, 1>([10]);
        let tasks = rt.tasks("odd").each([10]).write(&u, one_to_one());
        let handle = tasks
            .host(|[i], (u,)| {
                u.set([i], i);
                assert_ne!(i, 3, "no luck");
                if i == 5 { Err("five is right out") } else { Ok(()) }
            })
            .unwrap();
        handle.wait().unwrap_err();
        assert_eq!(handle.status(), Status::Failed);
        let Err(Error::Failed(failures)) = rt.wait() else { panic!("two points have failed") };
        let mut messages: Vec<_> = failures.iter().map(ToString::to_string).collect();
        messages.sort();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages.iter().any(|m| m.contains("[3..4]") && m.contains("no luck")), "{messages:?}");
        assert!(messages.iter().any(|m| m.contains("five is right out")), "{messages:?}");
        let part = |begin, end| rt.fence(&u.part(GridBox::new(begin, end))).unwrap().wait();
        assert_eq!(part(6, 10).unwrap().as_slice(), [6, 7, 8, 9]);
        assert_eq!(part(4, 5).unwrap().as_slice(), [4]);
        part(3, 4).unwrap_err();
        part(5, 6).unwrap_err();
    }
}

#[test]
fn a_point_that_fails_ends_the_sequential_effects() {
    let _deadline = deadline();
    for rt in runtimes() {
        let log = rt.host_object(Vec::new());
        let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
        let points = Arc::clone(&seen);
        let tasks = rt.tasks("log").each([10]).effect(&log, sequential());
        tasks
            .host(move |[i], (log,)| {
                log.push(i);
                points.lock().push(i);
                if i == 4 { Err("no more") } else { Ok(()) }
            })
            .unwrap();
        let error = rt.wait().unwrap_err().to_string();
        assert!(
            error.contains("no more") && error.contains("5 tasks that depend on failed tasks were skipped"),
            "{error}"
        );
        assert_eq!(*seen.lock(), [0, 1, 2, 3, 4]);
        rt.fence(&log).unwrap().wait().unwrap_err();
    }
}

#[test]
fn a_wrong_declaration_submits_nothing() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, v) = (rt.buffer_from(&[1; 10]).unwrap(), rt.buffer::<i32, 1>([10]));
        let mistake = |error| match error {
            Error::Declaration(error) => error.mistake,
            other => panic!("{other}"),
        };
        let two = rt.tasks("two write one element").each([10]).write(&u, neighborhood([1]));
        let error = mistake(two.host(|_, _| unreachable("submitted")).unwrap_err());
        assert!(matches!(error, Mistake::OverlappingWrites { .. }), "{error:?}");
        let around = rt.tasks("reads what another writes").each([10]);
        let around = around.read(&u, neighborhood([1])).update(&u, one_to_one());
        let error = mistake(around.host(|_, _| unreachable("submitted")).unwrap_err());
        assert!(matches!(error, Mistake::OverlappingAccesses { .. }), "{error:?}");
        let never = rt.tasks("reads what nobody wrote").each([10]).read(&v, one_to_one());
        let error = mistake(never.host(|_, _| unreachable("submitted")).unwrap_err());
        assert!(matches!(error, Mistake::NeverWritten { .. }), "{error:?}");
        let outside = rt.tasks("outside").each([11]).read(&u, one_to_one());
        outside.host(|_, _| unreachable("submitted")).unwrap_err();
        let total = rt.buffer::<i32, 0>([]);
        let reduces = rt.task("reduce").over([10]).reduce(&total, sum());
        reduces.kernel(|_, (total,)| total.combine([], 1)).unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 10);
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [1; 10]);
    }
}

#[test]
fn a_batch_without_points_is_done() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (u, log) = (rt.buffer_from(&[1; 3]).unwrap(), rt.host_object(0));
        let tasks = rt.tasks("none").each(3..3).update(&u, one_to_one()).effect(&log, sequential());
        let handle = tasks.host(|_, _| unreachable("called")).unwrap();
        handle.wait().unwrap();
        assert_eq!(handle.status(), Status::Done);
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [1; 3]);
    }
}

#[test]
fn a_cancelled_batch_runs_no_further_points() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let (gate, object) = (Gate::default(), rt.host_object(0));
        let closed = gate.clone();
        rt.task("gate").once().blocking().effect(&object, sequential()).host(move |_| closed.pass()).unwrap();
        let tasks = rt.tasks("count").each([50]).effect(&object, sequential());
        let handle = tasks.host(|_, (count,)| *count += 1).unwrap();
        assert_eq!(handle.status(), Status::Waiting);
        assert!(handle.cancel());
        gate.open();
        handle.wait().unwrap_err();
        assert_eq!(handle.status(), Status::Cancelled);
        rt.wait().unwrap();
        assert_eq!(rt.fence(&object).unwrap().wait().unwrap(), 0);
    }
}

/// The function is the program's code, and so is its destructor.
#[test]
fn the_function_is_dropped_before_the_batch_is_done() {
    let _deadline = deadline();
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    for rt in runtimes() {
        let drops = Arc::new(AtomicUsize::new(0));
        let held = Dropped(Arc::clone(&drops));
        rt.tasks("hold").each([20]).host(move |_, ()| assert_eq!(held.0.load(Relaxed), 0)).unwrap();
        rt.wait().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
        let held = Dropped(Arc::clone(&drops));
        let never = rt.buffer::<u8, 1>([20]);
        let refused = rt.tasks("refused").each([20]).read(&never, one_to_one());
        refused.host(move |_, _| assert_eq!(held.0.load(Relaxed), 1)).unwrap_err();
        assert_eq!(drops.load(Relaxed), 2);
    }
}

#[test]
fn the_checked_mode_names_the_point_that_writes_nothing() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = Runtime::builder().threads(threads).checked(true).build().unwrap();
        let u = rt.buffer::<f64, 1>([8]);
        let tasks = rt.tasks("write").each([8]).write(&u, one_to_one());
        tasks
            .host(|[i], (u,)| {
                if i != 6 {
                    u.set([i], 1.0)
                }
            })
            .unwrap();
        let error = rt.wait().unwrap_err().to_string();
        assert!(error.contains("unwritten in chunk [6..7]"), "{error}");
    }
}

#[test]
fn a_batch_belongs_to_its_group() {
    let _deadline = deadline();
    for rt in runtimes() {
        let group = rt.group("batches");
        group.tasks("fail").each([4]).host(|[i], ()| if i == 2 { Err("two") } else { Ok(()) }).unwrap();
        let error = group.wait().unwrap_err().to_string();
        assert!(error.contains("two"), "{error}");
        rt.wait().unwrap();
    }
}

#[test]
fn a_batch_reads_what_a_device_has_computed() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let device: Arc<dyn Device> = Arc::new(Simulated::new());
        let u = rt.buffer_from(&[1.0_f32, 2.0, 3.0]).unwrap();
        let double = rt.task("double").over([3]).on(&device).update(&u, one_to_one());
        double.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
        let tasks = rt.tasks("increment").each([3]).update(&u, one_to_one());
        tasks.host(|[i], (u,)| u[[i]] += 1.0).unwrap();
        let double = rt.task("double").over([3]).on(&device).update(&u, one_to_one());
        double.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [6.0, 10.0, 14.0]);
    }
}

/// The copies of what a device computes are of each task that computes, so a point waits only for those that
/// it needs.
#[test]
fn a_point_waits_only_for_the_copies_that_it_needs() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = runtime(threads);
        let device: Arc<dyn Device> = Arc::new(Simulated::new());
        let u = rt.buffer_from(&[1.0_f32, 2.0, 3.0]).unwrap();
        let (v, late) = (rt.buffer::<f32, 1>([3]), rt.buffer::<f32, 1>([3]));
        let gate = Gate::default();
        let closed = gate.clone();
        let task = rt.task("late").once().blocking().write(&late, all());
        task.host(move |(late,)| {
            closed.pass();
            late.fill(10.0);
        })
        .unwrap();
        let double = rt.task("double").over(0..1).on(&device).update(&u, one_to_one());
        double.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
        let add = rt.task("add").over(1..2).on(&device).read(&late, one_to_one()).update(&u, one_to_one());
        add.each(|(late, u)| u.set(u.here() + late.here())).unwrap();
        let lost = rt.task("lost").over(2..3).on(&device).read(&late, one_to_one()).update(&u, one_to_one());
        let lost = lost.each(|(late, u)| u.set(u.here() + late.here())).unwrap();
        assert!(lost.cancel());
        let tasks = rt.tasks("copy").each([3]).blocking().read(&u, one_to_one()).write(&v, one_to_one());
        let batch = tasks.host(move |[i], (u, v)| {
            v.set([i], u[[i]]);
            if i == 0 {
                gate.open();
            }
        });
        let batch = batch.unwrap();
        batch.wait().unwrap_err();
        assert_eq!(batch.status(), Status::Skipped);
        rt.wait().unwrap();
        let good = rt.fence(&v.part(GridBox::new(0, 2))).unwrap().wait().unwrap();
        assert_eq!(good.as_slice(), [2.0, 12.0]);
        rt.fence(&v.part(GridBox::new(2, 3))).unwrap().wait().unwrap_err();
    }
}

#[test]
fn each_node_runs_its_points_in_order() {
    let _deadline = deadline();
    for nodes in [1, 2, 3, 4] {
        let results = local_nodes(nodes).threads(2).delays(3, u64::from(nodes)).run(|rt| {
            let (u, v) = (rt.buffer::<usize, 1>([10]), rt.buffer::<usize, 1>([10]));
            let log = rt.host_object(Vec::new());
            rt.tasks("write").each(0..10).write(&u, one_to_one()).effect(&log, sequential()).host(
                |[i], (u, log)| {
                    u.set([i], i);
                    log.push(i);
                },
            )?;
            let sum = rt.tasks("sum").each(0..10).read(&u, neighborhood([1])).write(&v, one_to_one());
            sum.host(|[i], (u, v)| v.set([i], u.region().boxes()[0].points().map(|j| u[j.0]).sum()))?;
            let (v, log) = (rt.fence(&v)?.wait()?.into_vec(), rt.fence(&log)?.wait()?);
            Ok::<_, Error>((v, log))
        });
        let mut all = Vec::new();
        for result in results {
            let (v, log) = result.unwrap();
            let expected = |i: usize| (i.saturating_sub(1)..(i + 2).min(10)).sum::<usize>();
            assert_eq!(v, (0..10).map(expected).collect::<Vec<_>>());
            all.extend(log);
        }
        assert_eq!(all, (0..10).collect::<Vec<_>>(), "{nodes} nodes");
    }
}
