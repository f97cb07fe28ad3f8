//! Recorded kernels on devices: the same bits as on the host, copies that somebody needs and no others, and
//! failures.

mod common;

use anabranch::{
    device::{Batch, Device, DeviceError, DeviceStep, Simulated, Upload},
    prelude::*,
};
use common::runtimes;
use std::{
    mem::swap,
    sync::{Arc, mpsc},
    time::Duration,
};
use testing::deadline;

const SHAPE: [usize; 2] = [23, 17];

fn start() -> Vec<f32> {
    (0..SHAPE[0] * SHAPE[1]).map(|i| ((i * i) % 97) as f32 / 7.0 - 3.0).collect()
}

fn device(simulated: &Arc<Simulated>) -> Arc<dyn Device> {
    Arc::<Simulated>::clone(simulated)
}

/// A device whose steps take a random time.
fn slow(seed: u64) -> Arc<Simulated> {
    Arc::new(Simulated::builder().delays(seed, Duration::from_micros(300)).build())
}

/// A sum of neighbours, which the host or a device computes, `steps` times.
fn stencil(rt: &Runtime, places: &[Option<Arc<dyn Device>>], steps: usize) -> Result<Vec<u32>, Error> {
    let flat = rt.buffer_from(&start())?;
    let (mut u, mut next) = (rt.buffer::<f32, 2>(SHAPE), rt.buffer::<f32, 2>(SHAPE).with_versions(2));
    rt.task("shape").over(SHAPE).read(&flat, all()).write(&u, one_to_one()).kernel(|tile, (flat, u)| {
        tile.points().for_each(|[y, x]| u.set([y, x], flat[[y * SHAPE[1] + x]]));
    })?;
    for step in 0..steps {
        let task = rt.task("step").over(SHAPE).read(&u, neighborhood([1, 1])).write(&next, one_to_one());
        let task = match &places[step % places.len()] {
            Some(device) => task.on(device),
            None => task.pieces(3),
        };
        task.each(|(u, next)| {
            let around =
                u.at_clamped([-1, 0]) + u.at_or([1, 0], 0.5) + u.at_clamped([0, -1]) + u.at_or([0, 1], 1.0);
            next.set(around * 0.25 + 0.01 * step as f32);
        })?;
        if step % 3 == 1 {
            // The host changes some rows.
            rt.task("rows").over([4, SHAPE[1]]).update(&next, one_to_one()).kernel(|tile, (next,)| {
                tile.points().for_each(|p| next[p] += 1.0);
            })?;
        }
        swap(&mut u, &mut next);
    }
    Ok(rt.fence(&u)?.wait()?.as_slice().iter().map(|value| value.to_bits()).collect())
}

#[test]
fn the_host_and_devices_take_turns_and_give_the_same_bits() {
    let _deadline = deadline();
    for rt in runtimes() {
        let expected = stencil(&rt, &[None], 20).unwrap();
        let [a, b] = [1, 2].map(|seed| Some(device(&slow(seed))));
        for places in [vec![a.clone()], vec![a.clone(), None], vec![None, a.clone(), b.clone()], vec![a, b]] {
            assert!(stencil(&rt, &places, 20).unwrap() == expected, "{places:?}");
        }
    }
}

#[test]
fn nothing_is_copied_that_nobody_needs() {
    let _deadline = deadline();
    let simulated = slow(3);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 1000]).unwrap(), rt.buffer::<f32, 1>([1000]));
    for _ in 0..10 {
        let task = rt.task("step").over([1000]).on(&on).read(&u, one_to_one()).write(&v, one_to_one());
        task.each(|(u, v)| v.set(u.here() + 1.0)).unwrap();
        let task = rt.task("back").over([1000]).on(&on).read(&v, one_to_one()).update(&u, one_to_one());
        task.each(|(v, u)| u.set(u.here() + v.here())).unwrap();
    }
    rt.wait().unwrap();
    let counts = simulated.counts();
    assert_eq!((counts.uploads, counts.downloads, counts.launches), (1, 0, 20));
    // Two readers on the host need one copy, of the part that they read.
    for _ in 0..2 {
        let part = rt.fence(&u.part(GridBox::new(10, 20))).unwrap().wait().unwrap();
        assert_eq!(part.as_slice()[0].to_bits(), 2047.0_f32.to_bits());
    }
    let counts = simulated.counts();
    assert_eq!((counts.downloads, counts.bytes_down), (1, 40));
    // The host changes a few elements: only these are copied.
    let change = rt.task("change").over([5]).update(&u, one_to_one());
    change.kernel(|tile, (u,)| tile.points().for_each(|p| u[p] = 7.0)).unwrap();
    let task = rt.task("again").over([1000]).on(&on).update(&u, one_to_one());
    task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
    rt.wait().unwrap();
    let counts = simulated.counts();
    assert_eq!((counts.uploads, counts.bytes_up), (2, 4000 + 20));
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice()[4..6], [14.0, 4094.0]);
}

#[test]
fn memory_is_allocated_at_first_use_and_freed_with_the_buffer() {
    let _deadline = deadline();
    let simulated = slow(4);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    for _ in 0..3 {
        let u = rt.buffer_from(&[1.0_f64; 100]).unwrap();
        let unused = rt.buffer_from(&[1.0_f64; 100]).unwrap();
        let task = rt.task("double").over([100]).on(&on).update(&u, one_to_one());
        task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice()[0], 2.0);
        assert_eq!(simulated.counts().allocations, 1);
        drop((u, unused));
        rt.wait().unwrap();
        assert_eq!(simulated.counts().allocations, 0);
    }
}

#[test]
fn memory_that_a_device_refuses_fails_the_task_with_buffer_bytes_and_device() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::builder().memory(5000).build());
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f64; 500]).unwrap().named("u");
    let v = rt.buffer_from(&[1.0_f64; 500]).unwrap().named("v");
    let double = |buffer: &Buffer<f64, 1>| {
        let task = rt.task("double").over([500]).on(&on).update(buffer, one_to_one());
        task.each(|(u,)| u.set(u.here() * 2.0)).unwrap()
    };
    double(&u).wait().unwrap();
    let error = double(&v).wait().unwrap_err().to_string();
    for part in [
        "double",
        "copy of buffer \"v\"",
        "no memory for buffer \"v\"",
        "4000",
        "5000",
        &simulated.info().name,
        "; use smaller buffers, fewer versions or a larger budget",
    ] {
        assert!(error.contains(part), "{error}: {part}");
    }
    assert!(rt.wait().is_err());
    // The other buffer is as it was, and the memory of the first one is there for it afterwards.
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice()[0], 2.0);
    drop(u);
    let fill = rt.task("fill").over([500]).write(&v, one_to_one());
    fill.kernel(|tile, (v,)| tile.points().for_each(|p| v.set(p, 3.0))).unwrap();
    double(&v).wait().unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice()[499], 6.0);
}

#[test]
fn a_buffer_that_is_too_large_for_a_device_fails_the_task_with_what_to_do() {
    let _deadline = deadline();
    let on = device(&Arc::new(Simulated::builder().largest_buffer(1000).build()));
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f64; 500]).unwrap().named("u");
    let task = rt.task("double").over([500]).on(&on).update(&u, one_to_one());
    let error = task.each(|(u,)| u.set(u.here() * 2.0)).unwrap().wait().unwrap_err().to_string();
    for part in ["no memory for buffer \"u\"", "4000", "at most 1000 bytes; use several smaller buffers"] {
        assert!(error.contains(part), "{error}: {part}");
    }
    assert!(!error.contains("budget"), "{error}");
    assert!(rt.wait().is_err());
}

#[test]
fn a_copy_that_fails_is_made_again() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::builder().refuse_allocation(1).build());
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8]).unwrap(), rt.buffer::<f32, 1>([8]));
    let copy = || {
        let task = rt.task("copy").over([8]).on(&on).read(&u, one_to_one()).write(&v, one_to_one());
        task.each(|(u, v)| v.set(u.here())).unwrap()
    };
    assert!(copy().wait().is_err());
    assert!(rt.wait().is_err());
    copy().wait().unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [1.0; 8]);
}

#[test]
fn a_lost_device_fails_what_needs_it_and_the_rest_goes_on() {
    let _deadline = deadline();
    let (lost, other) = (Arc::new(Simulated::builder().lose_after(2).build()), slow(5));
    let (on, beside) = (device(&lost), device(&other));
    let rt = Runtime::new().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8]).unwrap(), rt.buffer_from(&[1.0_f32; 8]).unwrap());
    // A copy and a launch.
    let task = rt.task("first").over([8]).on(&on).update(&u, one_to_one());
    task.each(|(u,)| u.set(u.here() * 2.0)).unwrap().wait().unwrap();
    let task = rt.task("second").over([8]).on(&on).update(&u, one_to_one());
    let second = task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
    let task = rt.task("beside").over([8]).on(&beside).update(&v, one_to_one());
    task.each(|(v,)| v.set(v.here() * 3.0)).unwrap();
    let error = second.wait().unwrap_err().to_string();
    assert!(error.contains("lost"), "{error}");
    assert!(rt.fence(&u).unwrap().wait().is_err());
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [3.0; 8]);
    assert!(rt.wait().is_err());
    // A complete overwrite heals the buffer.
    rt.task("fill").over([8]).write(&u, one_to_one()).each(|(u,)| u.set(5.0)).unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [5.0; 8]);
    assert!(matches!(on.timeline().is_lost(), Some(DeviceError::Lost { .. })));
}

#[test]
fn a_failure_on_the_host_is_the_cause_of_what_a_device_skips() {
    let _deadline = deadline();
    let simulated = slow(6);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let fails = rt.task("fails").over([8]).update(&u, one_to_one());
    fails.kernel(|_, (_,)| std::panic::resume_unwind(Box::new("as the test says"))).unwrap();
    let task = rt.task("needs it").over([8]).on(&on).update(&u, one_to_one());
    let error = task.each(|(u,)| u.set(u.here() * 2.0)).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("fails") && error.contains("as the test says"), "{error}");
    assert!(rt.wait().is_err());
    assert_eq!(simulated.counts().launches, 0);
}

#[test]
fn a_cancelled_task_does_not_reach_its_device() {
    let _deadline = deadline();
    let simulated = slow(7);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let (release, held) = mpsc::channel::<()>();
    let hold = rt.task("hold").once().update(&u, all());
    hold.host(move |(_,)| held.recv_timeout(Duration::from_secs(60)).unwrap()).unwrap();
    let task = rt.task("cancelled").over([8]).on(&on).update(&u, one_to_one());
    let task = task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
    assert!(task.cancel());
    release.send(()).unwrap();
    assert!(task.wait().is_err());
    let _ = rt.wait();
    assert_eq!(simulated.counts().launches, 0);
}

#[test]
fn no_thread_waits_while_a_device_is_busy() {
    let _deadline = deadline();
    // One thread computes, and the device takes its time.
    let simulated = Arc::new(Simulated::builder().delays(8, Duration::from_millis(200)).build());
    let on = device(&simulated);
    let rt = Runtime::builder().threads(1).build().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8]).unwrap(), rt.buffer_from(&[1.0_f32; 8]).unwrap());
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let task = rt.task("on the device").over([8]).on(&on).update(&u, one_to_one());
        tasks.push(task.each(|(u,)| u.set(u.here() * 2.0)).unwrap());
    }
    let task = rt.task("on the host").over([8]).update(&v, one_to_one());
    task.each(|(v,)| v.set(v.here() * 3.0)).unwrap().wait().unwrap();
    assert!(tasks.iter().any(|task| task.status() != Status::Done), "the host did not wait for the device");
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [32.0; 8]);
}

#[test]
fn a_runtime_that_is_dropped_ends_what_its_devices_do() {
    let _deadline = deadline();
    let simulated = slow(9);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    for _ in 0..20 {
        let task = rt.task("double").over([8]).on(&on).update(&u, one_to_one());
        task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
    }
    drop((rt, u));
    on.wait().unwrap();
    assert_eq!((simulated.counts().launches, simulated.counts().allocations), (20, 0));
}

#[test]
fn what_cannot_run_on_a_device_is_refused() {
    let _deadline = deadline();
    let on = device(&slow(10));
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let task = rt.task("kernel").over([8]).on(&on).update(&u, one_to_one());
    let error = task.kernel(|_, (_,)| ()).unwrap_err().to_string();
    assert!(error.contains("each"), "{error}");
    let task = rt.task("offset").over([8]).on(&on).read(&u, one_to_one());
    let v = rt.buffer::<f32, 1>([8]);
    let error = task.write(&v, one_to_one()).each(|(u, v)| v.set(u.at([1]))).unwrap_err().to_string();
    assert!(error.contains("devices.rs"), "{error}");
    rt.wait().unwrap();
    let unwritten = rt.buffer::<f32, 1>([8]);
    let task = rt.task("unwritten").over([8]).on(&on).read(&unwritten, one_to_one()).write(&v, one_to_one());
    let error = task.each(|(u, v)| v.set(u.here())).unwrap_err().to_string();
    assert!(error.contains("written"), "{error}");
    rt.wait().unwrap();
}

#[test]
fn nothing_is_copied_for_a_task_that_is_refused() {
    let _deadline = deadline();
    let simulated = slow(17);
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let [v, w, unwritten] = [(); 3].map(|()| rt.buffer::<f32, 1>([8]));
    rt.task("starts").over([8]).on(&on).write(&v, one_to_one()).each(|(v,)| v.set(2.0)).unwrap();
    rt.wait().unwrap();
    let sum = |on: Option<&Arc<dyn Device>>, third| {
        let task = rt.task("sum").over([8]);
        let task = on.into_iter().fold(task, |task, on| task.on(on));
        let task = task.read(&u, one_to_one()).read(&v, one_to_one()).read(third, one_to_one());
        task.write(&w, one_to_one()).each(|(u, v, third, w)| w.set(u.here() + v.here() + third.here()))
    };
    let copies = || (simulated.counts().uploads, simulated.counts().downloads);
    // The sum needs `u` on the device, or `v` on the host.
    for on in [Some(&on), None] {
        let error = sum(on, &unwritten).unwrap_err().to_string();
        assert!(error.contains("written"), "{error}");
        rt.wait().unwrap();
        assert_eq!(copies(), (0, 0));
    }
    sum(Some(&on), &v).unwrap();
    rt.wait().unwrap();
    assert_eq!(copies(), (1, 0));
}

/// A task on the host that writes the second half of a buffer when the test says so, and fails then if
/// `fails`.
fn held_half(rt: &Runtime, u: &Buffer<f32, 1>, fails: bool) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let task = rt.task("held").once().blocking().update(u, fixed(GridBox::new(4, 8)));
    let wait = move |(_,): (&mut UpdateView<'_, f32, 1>,)| {
        held.recv_timeout(Duration::from_secs(60)).unwrap();
        if fails { Err("as the test says") } else { Ok(()) }
    };
    task.host(wait).unwrap();
    release
}

#[test]
fn a_task_waits_only_for_the_parts_that_it_reads() {
    let _deadline = deadline();
    let on = device(&slow(11));
    let rt = Runtime::new().unwrap();
    let (u, v) = (rt.buffer_from(&[1.0_f32; 8]).unwrap(), rt.buffer::<f32, 1>([8]));
    let release = held_half(&rt, &u, false);
    let all = rt.task("all").over([8]).on(&on).read(&u, one_to_one()).write(&v, one_to_one());
    all.each(|(u, v)| v.set(u.here() * 2.0)).unwrap();
    let half = rt.buffer::<f32, 1>([4]);
    let task = rt.task("half").over([4]).on(&on).read(&u, one_to_one()).write(&half, one_to_one());
    task.each(|(u, half)| half.set(u.here() * 3.0)).unwrap();
    // The other task, whose data comes with copies of all of the buffer, still waits.
    assert_eq!(rt.fence(&half).unwrap().wait().unwrap().as_slice(), [3.0; 4]);
    release.send(()).unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [2.0; 8]);
}

#[test]
fn a_task_fails_only_with_the_parts_that_it_reads() {
    let _deadline = deadline();
    let on = device(&slow(12));
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let release = held_half(&rt, &u, true);
    let task = rt.task("on the device").over([8]).on(&on).read(&u, one_to_one());
    let v = rt.buffer::<f32, 1>([8]);
    let whole = task.write(&v, one_to_one()).each(|(u, v)| v.set(u.here())).unwrap();
    let half = rt.buffer::<f32, 1>([4]);
    let task = rt.task("half").over([4]).on(&on).read(&u, one_to_one()).write(&half, one_to_one());
    task.each(|(u, half)| half.set(u.here() * 3.0)).unwrap();
    let (all, part) = (rt.fence(&u).unwrap(), rt.fence(&u.part(GridBox::new(0, 4))).unwrap());
    release.send(()).unwrap();
    assert!(all.wait().is_err() && whole.wait().is_err());
    assert_eq!(part.wait().unwrap().as_slice(), [1.0; 4]);
    assert_eq!(rt.fence(&half).unwrap().wait().unwrap().as_slice(), [3.0; 4]);
    assert!(rt.wait().is_err());
}

#[test]
fn a_program_that_advances_a_timeline_too_early_reaches_no_memory_in_use() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::builder().delays(13, Duration::from_millis(100)).build());
    let on = device(&simulated);
    let rt = Runtime::new().unwrap();
    let u = rt.buffer_from(&[1.0_f32; 1 << 16]).unwrap();
    let task = rt.task("double").over([1 << 16]).on(&on).update(&u, one_to_one());
    task.each(|(u,)| u.set(u.here() * 2.0)).unwrap();
    let fence = rt.fence(&u).unwrap();
    on.timeline().lose("the test says so");
    assert!(fence.wait().is_err());
    // The device still has the closure of the copy, which keeps the memory.
    drop((u, rt));
}

#[test]
fn a_seeded_runtime_keeps_its_limit_of_tasks_in_flight() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::builder().delays(14, Duration::from_millis(2)).build());
    let on = device(&simulated);
    let rt = Runtime::builder().seeded(1).max_in_flight(4).build().unwrap();
    let buffers: Vec<_> = (0..40).map(|_| rt.buffer::<u32, 1>([8])).collect();
    for u in &buffers {
        let task = rt.task("fill").over([8]).on(&on).write(u, one_to_one());
        task.each(|(u,)| u.set(u.index(0))).unwrap();
        let completed = on.timeline().completed();
        assert!(on.timeline().submitted() - completed <= 5, "more tasks are in flight than the limit");
    }
    assert_eq!(rt.fence(&buffers[39]).unwrap().wait().unwrap().as_slice()[7], 7);
}

/// Makes a device wait in its first batch until the test says so.
fn hold(on: &Arc<dyn Device>) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let fill = Box::new(move |_: &mut dyn FnMut(&[u8])| _ = held.recv_timeout(Duration::from_secs(60)));
    let (to, runs) = (on.allocate(4).unwrap(), Vec::new());
    on.submit(Batch::from([DeviceStep::Upload(Upload { to, runs, fill })]));
    release
}

/// Waits until this many batches were handed to the device.
fn wait_until_submitted(on: &Arc<dyn Device>, batches: u64) {
    while on.timeline().submitted() < batches {
        std::thread::yield_now();
    }
}

fn double(rt: &Runtime, on: &Arc<dyn Device>, u: &Buffer<f32, 1>) -> TaskHandle {
    let task = rt.task("double").over([8]).on(on).update(u, one_to_one());
    task.each(|(u,)| u.set(u.here() * 2.0)).unwrap()
}

#[test]
fn tasks_of_one_device_are_handed_over_without_waiting_for_each_other() {
    let _deadline = deadline();
    for rt in runtimes() {
        let on = device(&Arc::new(Simulated::new()));
        let release = hold(&on);
        let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
        let tasks: Vec<_> = (0..5).map(|_| double(&rt, &on, &u)).collect();
        let fence = rt.fence(&u).unwrap();
        // The device has done nothing yet, and has a copy, five launches and a copy back.
        wait_until_submitted(&on, 1 + 7);
        assert_eq!(on.timeline().completed(), 0);
        assert!(tasks.iter().all(|task| task.status() == Status::Running && !task.cancel()));
        release.send(()).unwrap();
        assert_eq!(fence.wait().unwrap().as_slice(), [32.0; 8]);
        rt.wait().unwrap();
    }
}

#[test]
fn a_task_of_another_device_waits_for_the_end() {
    let _deadline = deadline();
    let [a, b] = [(); 2].map(|()| device(&Arc::new(Simulated::new())));
    let rt = Runtime::new().unwrap();
    let release = hold(&a);
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    double(&rt, &a, &u);
    let other = double(&rt, &b, &u);
    // The first device has its copy, its launch and the copy back.
    wait_until_submitted(&a, 1 + 3);
    assert_eq!((other.status(), b.timeline().submitted()), (Status::Waiting, 0));
    release.send(()).unwrap();
    other.wait().unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [4.0; 8]);
}

#[test]
fn what_was_handed_over_behind_a_launch_that_fails_counts_as_skipped() {
    let _deadline = deadline();
    for rt in runtimes() {
        // Of the batches behind the one that holds, the third fails: the second launch.
        let on = device(&Arc::new(Simulated::builder().fail_batch(4).build()));
        let release = hold(&on);
        let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
        let tasks: Vec<_> = (0..4).map(|_| double(&rt, &on, &u)).collect();
        let fence = rt.fence(&u).unwrap();
        wait_until_submitted(&on, 1 + 6);
        release.send(()).unwrap();
        let failed = rt.wait().unwrap_err();
        let Error::Failed(failures) = &failed else { panic!("{failed}") };
        assert_eq!((failures.iter().count(), failures.skipped()), (1, 2), "{failed}");
        let statuses: Vec<_> = tasks.iter().map(TaskHandle::status).collect();
        assert_eq!(statuses, [Status::Done, Status::Failed, Status::Skipped, Status::Skipped]);
        // The device has done all the rest, and the copy back, but their values are not those of the buffer.
        assert!(fence.wait().unwrap_err().to_string().contains("batch 4 is to fail"));
        assert!(rt.fence(&u).unwrap().wait().is_err());
        let task = rt.task("fill").over([8]).on(&on).write(&u, one_to_one());
        task.each(|(u,)| u.set(3.0)).unwrap();
        double(&rt, &on, &u).wait().unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [6.0; 8]);
        rt.wait().unwrap();
    }
}

#[test]
fn a_copy_that_fails_behind_its_task_is_made_again() {
    let _deadline = deadline();
    for rt in runtimes() {
        // The copy, with a launch behind it that the device has got, too.
        let on = device(&Arc::new(Simulated::builder().fail_batch(2).build()));
        let release = hold(&on);
        let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
        let v = rt.buffer_from(&[0.0_f32; 8]).unwrap();
        let copy = || {
            let task = rt.task("copy").over([8]).on(&on).read(&u, one_to_one()).write(&v, one_to_one());
            task.each(|(u, v)| v.set(u.here())).unwrap()
        };
        let first = copy();
        wait_until_submitted(&on, 1 + 2);
        release.send(()).unwrap();
        let error = first.wait().unwrap_err().to_string();
        assert!(error.contains("copy of buffer") && error.contains("batch 2"), "{error}");
        assert!(rt.wait().is_err());
        copy().wait().unwrap();
        assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [1.0; 8]);
    }
}

#[test]
fn a_lost_device_skips_what_it_has_got_behind_the_task_that_fails() {
    let _deadline = deadline();
    let on = device(&Arc::new(Simulated::builder().lose_after(2).build()));
    let rt = Runtime::new().unwrap();
    let release = hold(&on);
    let u = rt.buffer_from(&[1.0_f32; 8]).unwrap();
    let tasks: Vec<_> = (0..50).map(|_| double(&rt, &on, &u)).collect();
    wait_until_submitted(&on, 1 + 51);
    release.send(()).unwrap();
    assert!(rt.wait().is_err());
    assert_eq!(tasks[0].status(), Status::Failed);
    assert!(tasks[1..].iter().all(|task| task.status() == Status::Skipped));
}
