//! The device for tests is lost, is dropped, and has callbacks that use it.

mod common;

use anabranch::device::{Device, DeviceMemory, DeviceStep, Download, Simulated, Source, Upload};
use common::steps::{all, download, incremented, is_lost, submit, upload};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};
use testing::deadline;

#[test]
fn a_lost_device_fails_what_it_has_and_refuses_what_comes() {
    let _deadline = deadline();
    let device = Simulated::builder().lose_after(2).build();
    let memory = device.allocate(4).unwrap();
    let (step, taken) = download::<u32>(&memory, &all(&memory));
    // The second batch takes until the next ones are there with their callbacks.
    let (go, gate) = mpsc::channel::<()>();
    let runs = all(&memory).to_vec();
    let slow = Box::new(move |_: &mut dyn FnMut(&mut [u8])| gate.recv().unwrap());
    submit(&device, [upload(&memory, 0, &[5_u32])]);
    let slow = DeviceStep::Download(Download { from: memory.clone(), runs, take: slow });
    let second = submit(&device, [step, slow]);

    let (results, from) = mpsc::channel();
    for _ in 0..3 {
        let (step, taken) = download::<u32>(&memory, &all(&memory));
        let value = submit(&device, [step]);
        let results = results.clone();
        device.timeline().on_complete(value, move |result| {
            // The functions of a batch that fails are gone when it is done.
            let is_gone = matches!(taken.try_recv(), Err(mpsc::TryRecvError::Disconnected));
            results.send((value, is_lost(result), is_gone)).unwrap();
        });
    }
    go.send(()).unwrap();
    assert_eq!(device.timeline().wait(second, || ()), Ok(()));
    assert_eq!(taken.try_recv().unwrap(), [5]);
    for value in 3..=5 {
        assert!(is_lost(device.timeline().wait(value, || ())));
    }
    drop(results);
    let mut calls: Vec<_> = from.iter().collect();
    calls.sort();
    assert_eq!(calls, [(3, true, true), (4, true, true), (5, true, true)]);
    assert!(device.timeline().is_lost().is_some() && device.is_idle());
    assert!(is_lost(device.allocate(4)));
    assert!(is_lost(device.compile(Source::Recording(&incremented()))));
    assert_eq!(device.timeline().wait(second, || ()), Ok(()));
}

#[test]
fn a_callback_submits_the_next_batch() {
    let _deadline = deadline();
    let device = Arc::new(Simulated::new());
    let memory = device.allocate(4).unwrap();
    let (end, ended) = mpsc::channel();

    /// Submits one batch after the other, each when the one before is done.
    fn chain(device: &Arc<Simulated>, memory: DeviceMemory, left: u32, end: mpsc::Sender<()>) {
        let value = submit(&**device, [upload(&memory, 0, &[left])]);
        let next = Arc::clone(device);
        device.timeline().on_complete(value, move |result| {
            result.unwrap();
            match left {
                0 => end.send(()).unwrap(),
                _ => chain(&next, memory, left - 1, end),
            }
        });
    }
    chain(&device, memory, 100, end);
    ended.recv().unwrap();
    assert_eq!(device.counts().uploads, 101);
}

#[test]
fn a_device_that_is_dropped_does_what_it_has_without_delays() {
    let _deadline = deadline();
    let device = Simulated::builder().delays(1, Duration::from_secs(1000)).build();
    let memory = device.allocate(4).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    for i in 0..10 {
        let value = submit(&device, [upload(&memory, 0, &[i])]);
        let calls = Arc::clone(&calls);
        device.timeline().on_complete(value, move |result| {
            assert_eq!(result, Ok(()));
            calls.fetch_add(1, SeqCst);
        });
    }
    let begin = Instant::now();
    drop(device);
    assert!(begin.elapsed() < Duration::from_secs(100));
    assert_eq!(calls.load(SeqCst), 10);
}

#[test]
fn a_lost_device_can_be_dropped() {
    let _deadline = deadline();
    let device = Simulated::builder().lose_after(0).build();
    for _ in 0..10 {
        submit(&device, []);
    }
    drop(device);
}

#[test]
fn a_callback_may_have_the_last_handle() {
    let _deadline = deadline();
    let device = Arc::new(Simulated::new());
    let memory = device.allocate(4).unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel();
    let slow = DeviceStep::Upload(Upload {
        to: memory.clone(),
        runs: Vec::new(),
        fill: Box::new(move |_| gate.recv().unwrap()),
    });
    let value = submit(&*device, [slow]);
    let last = Arc::clone(&device);
    device.timeline().on_complete(value, move |_| {
        assert!(Arc::into_inner(last).is_some(), "it is dropped here");
        end.send(()).unwrap();
    });
    drop(device);
    go.send(()).unwrap();
    ended.recv().unwrap();
}

#[test]
fn memory_may_outlive_its_device() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(4).unwrap();
    drop(device);
    assert_eq!(memory.bytes(), 4);
}
