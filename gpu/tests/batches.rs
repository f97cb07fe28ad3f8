//! Batches on a GPU: copies, memory, what is wrong with them, and a device that is dropped.

mod support;

use anabranch::device::{
    Batch, Device, DeviceError, DeviceStep, Download, Launch, Operand, Run, Source, Upload,
};
use anabranch_gpu::{GpuError, Settings};
use anabranch_kernel::{Recording, Tape};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use support::{download, got, gpu, gpu_with, upload};
use testing::deadline;

fn increment() -> Recording {
    let tape = Tape::new(1);
    let changed = tape.input_output::<u32, 1>();
    changed.set(changed.here() + 1);
    tape.finish().expect("the kernel is right")
}

/// Each element gets the sum of its neighbours.
fn neighbours() -> Recording {
    let tape = Tape::new(1);
    let (from, to) = (tape.input::<u32, 1>(), tape.output::<u32, 1>());
    to.set(from.at_periodic([-1]) + from.at_periodic([1]));
    tape.finish().expect("the kernel is right")
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn copies_have_their_runs() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let memory = gpu.allocate(40).expect("it is small");
    let runs = [(4, 8), (16, 0), (24, 4)].map(|(offset, bytes)| Run { offset, bytes }).to_vec();
    let fill = Box::new(|put: &mut dyn FnMut(&[u8])| put(&bytes(&[1, 2, 3])));
    let (all, whole) = download(&memory);
    let part = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&part);
    let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| *to.lock() = words(&got(get, 12)));
    let runs_back = [(24, 8), (4, 4)].map(|(offset, bytes)| Run { offset, bytes }).to_vec();
    let steps = vec![
        upload(&memory, vec![0; 40]),
        DeviceStep::Upload(Upload { to: memory.clone(), runs, fill }),
        all,
        DeviceStep::Download(Download { from: memory.clone(), runs: runs_back, take }),
    ];
    gpu.submit(steps.into_iter().collect());
    gpu.wait().expect("the batch is right");
    assert_eq!(words(whole.lock().as_ref().expect("it is done")), [0, 1, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(*part.lock(), [3, 0, 1]);
}

#[test]
fn many_batches_are_done_in_their_order() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let program = gpu.compile(Source::Recording(&increment())).expect("the device has it");
    let memory = gpu.allocate(400).expect("it is small");
    let operands = vec![Operand { memory: memory.clone(), extent: [1, 1, 100], declared: Vec::new() }];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let begin = Instant::now();
    for _ in 0..300 {
        let launch = Launch {
            program: program.clone(),
            points: [[0; 3], [1, 1, 100]],
            operands: operands.clone().into(),
            parameters: increment().parameters().into(),
            groups: [0; 3],
        };
        let to = Arc::clone(&seen);
        let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| to.lock().push(words(&got(get, 400))[99]));
        let runs = vec![Run { offset: 0, bytes: 400 }];
        let back = DeviceStep::Download(Download { from: memory.clone(), runs, take });
        gpu.submit(Batch::from([DeviceStep::Launch(launch), back]));
    }
    gpu.wait().expect("the batches are right");
    println!("300 batches: {:?}", begin.elapsed());
    assert_eq!(*seen.lock(), (1..=300).collect::<Vec<_>>());
    assert!(gpu.is_idle());
}

/// The name of the thread that hands over a download of this number of bytes.
fn thread_of_download(gpu: &Arc<dyn Device>, bytes: u64) -> Option<String> {
    let memory = gpu.allocate(bytes).expect("it is small");
    let name = Arc::new(Mutex::new(None));
    let to = Arc::clone(&name);
    let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| {
        got(get, bytes as usize);
        *to.lock() = thread::current().name().map(str::to_string);
    });
    let from = DeviceStep::Download(Download { from: memory, runs: vec![Run { offset: 0, bytes }], take });
    gpu.submit(Batch::from([from]));
    gpu.wait().expect("the batch is right");
    name.lock().take()
}

#[test]
fn the_device_thread_hands_over_small_downloads_only() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let mut names = (0..1000).map(|_| thread_of_download(&gpu, 4));
    // The device thread may lose its processor now and then. Then the completion thread hands the download
    // over.
    assert!(names.any(|name| name.as_deref() == Some("gpu")), "the device thread never does it");
    for _ in 0..10 {
        assert_eq!(thread_of_download(&gpu, 1 << 20).as_deref(), Some("gpu completion"));
    }
}

#[test]
fn batches_are_done_in_their_order_whichever_thread_completes_them() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let memory = gpu.allocate(4).expect("it is small");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut submitted = 0;
    for round in 0..200 {
        for _ in 0..=round % 4 {
            let (to, number) = (Arc::clone(&seen), submitted);
            let take = Box::new(move |_: &mut dyn FnMut(&mut [u8])| to.lock().push(number));
            let runs = vec![Run { offset: 0, bytes: 4 }];
            gpu.submit(Batch::from([DeviceStep::Download(Download { from: memory.clone(), runs, take })]));
            submitted += 1;
        }
        match round % 3 {
            0 => gpu.wait().expect("the batches are right"),
            1 => thread::sleep(Duration::from_micros(50 * (round % 7))),
            _ => (),
        }
    }
    gpu.wait().expect("the batches are right");
    assert_eq!(*seen.lock(), (0..submitted).collect::<Vec<_>>());
}

#[test]
fn a_program_is_launched_on_many_buffers_in_turn() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let program = gpu.compile(Source::Recording(&increment())).expect("the device has it");
    let memories = (0..80).map(|_| gpu.allocate(8).expect("it is small")).collect::<Vec<_>>();
    let start = (0..).zip(&memories).map(|(at, memory)| upload(memory, bytes(&[at, 0]))).collect();
    gpu.submit(start);
    for memory in [&memories[..], &memories[40..], &memories[70..]].concat() {
        let launch = Launch {
            program: program.clone(),
            points: [[0; 3], [1, 1, 2]],
            operands: vec![Operand { memory, extent: [1, 1, 2], declared: Vec::new() }].into(),
            parameters: increment().parameters().into(),
            groups: [0; 3],
        };
        gpu.submit(Batch::from([DeviceStep::Launch(launch)]));
    }
    let (steps, results): (Vec<_>, Vec<_>) = memories.iter().map(download).unzip();
    gpu.submit(steps.into_iter().collect());
    gpu.wait().expect("the batches are right");
    for (at, result) in (0..).zip(results) {
        let launches = 1 + u32::from(at >= 40) + u32::from(at >= 70);
        assert_eq!(words(result.lock().as_ref().expect("it is done")), [at + launches, launches]);
    }
}

#[test]
fn a_launch_may_read_the_buffer_that_it_writes() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let program = gpu.compile(Source::Recording(&neighbours())).expect("the device has it");
    let memory = gpu.allocate(20).expect("it is small");
    let operand = Operand { memory: memory.clone(), extent: [1, 1, 5], declared: Vec::new() };
    let launch = Launch {
        program,
        points: [[0; 3], [1, 1, 5]],
        operands: vec![operand.clone(), operand].into(),
        parameters: Default::default(),
        groups: [0; 3],
    };
    let (back, taken) = download(&memory);
    let steps = vec![upload(&memory, bytes(&[1, 2, 3, 4, 5])), DeviceStep::Launch(launch), back];
    gpu.submit(steps.into_iter().collect());
    gpu.wait().expect("the batch is right");
    assert_eq!(words(taken.lock().as_ref().expect("it is done")), [7, 4, 6, 8, 5]);
}

#[test]
fn a_batch_with_a_wrong_step_fails_alone_and_does_nothing() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let memory = gpu.allocate(16).expect("it is small");
    let outside = |offset, bytes| {
        let runs = vec![Run { offset, bytes }];
        DeviceStep::Download(Download { from: memory.clone(), runs, take: Box::new(|_| panic!("it fails")) })
    };
    let small = Launch {
        program: gpu.compile(Source::Recording(&increment())).expect("the device has it"),
        points: [[0; 3], [1, 1, 5]],
        operands: vec![Operand { memory: memory.clone(), extent: [1, 1, 5], declared: Vec::new() }].into(),
        parameters: increment().parameters().into(),
        groups: [0; 3],
    };
    let wrong = [
        (outside(8, 12), "12 bytes from 8 on are no run"),
        (outside(2, 4), "multiples of 4"),
        (DeviceStep::Launch(small), "operand 0 has 20 bytes, and its memory has 16"),
    ];
    for (step, expected) in wrong {
        let (back, taken) = download(&memory);
        let failing = gpu.submit(Batch::from([upload(&memory, vec![9; 16]), step]));
        let next = gpu.submit(Batch::from([back]));
        let error = gpu.timeline().wait(failing, || ()).expect_err("a step is wrong").to_string();
        assert!(error.contains(expected), "{error}");
        gpu.timeline().wait(next, || ()).expect("the next batch is right");
        assert_eq!(taken.lock().as_ref().expect("it is done"), &[0; 16]);
    }
}

/// The batch may have done some steps.
#[test]
fn a_batch_whose_function_is_wrong_fails_alone() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let memory = gpu.allocate(16).expect("it is small");
    type Fill = fn(&mut dyn FnMut(&[u8]));
    let fills: [(Fill, &str); 4] = [
        (|_| panic!("on purpose"), "has panicked"),
        (|_| (), "an upload lacks 16 bytes"),
        (|put| put(&[1; 12]), "an upload lacks 4 bytes"),
        (|put| (0..2).for_each(|_| put(&[1; 10])), "an upload has 4 bytes too many"),
    ];
    type Take = fn(&mut dyn FnMut(&mut [u8]));
    let takes: [(Take, &str); 2] = [
        (|_| panic!("on purpose"), "has panicked"),
        (|get| get(&mut [0; 17]), "a download has 1 bytes too few"),
    ];
    let (runs, of) = (support::whole(&memory), &memory);
    let uploads = fills.map(|(fill, expected)| {
        let (to, runs) = (of.clone(), runs.clone());
        (DeviceStep::Upload(Upload { to, runs, fill: Box::new(fill) }), expected)
    });
    let downloads = takes.map(|(take, expected)| {
        let (from, runs) = (of.clone(), runs.clone());
        (DeviceStep::Download(Download { from, runs, take: Box::new(take) }), expected)
    });
    for (step, expected) in uploads.into_iter().chain(downloads) {
        let failing = gpu.submit(Batch::from([step]));
        let (back, taken) = download(&memory);
        let next = gpu.submit(Batch::from([upload(&memory, vec![9; 16]), back]));
        let error = gpu.timeline().wait(failing, || ()).expect_err("a step is wrong").to_string();
        assert!(error.contains(expected), "{error}");
        gpu.timeline().wait(next, || ()).expect("the next batch is right");
        assert_eq!(taken.lock().as_ref().expect("it is done"), &[9; 16]);
    }
}

/// Such copies go in pieces of 4 MiB.
#[test]
fn large_copies_are_done_in_their_order() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let words_of = 3 << 20;
    let memory = gpu.allocate(4 * words_of).expect("it is small");
    let program = gpu.compile(Source::Recording(&increment())).expect("the device has it");
    let launch = || {
        let extent = [1, 1, words_of as usize];
        let operand = Operand { memory: memory.clone(), extent, declared: Vec::new() };
        DeviceStep::Launch(Launch {
            program: program.clone(),
            points: [[0; 3], extent],
            operands: vec![operand].into(),
            parameters: increment().parameters().into(),
            groups: [0; 3],
        })
    };
    // The places of two runs, the second of which comes first.
    let half = 2 * words_of;
    let runs = || [(half, half), (0, half)].map(|(offset, bytes)| Run { offset, bytes }).to_vec();
    let (seen, rounds) = (Arc::new(Mutex::new(Vec::new())), 4);
    for round in 0..rounds {
        let fill = Box::new(move |put: &mut dyn FnMut(&[u8])| {
            // Slices that do not end where pieces do.
            let all = bytes(&(0..words_of as u32).map(|at| at + round).collect::<Vec<_>>());
            all.chunks(1_000_003).for_each(put);
        });
        let to = Arc::clone(&seen);
        let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| {
            let parts = [1, 5_000_000, 4 * words_of as usize - 5_000_001].map(|bytes| got(get, bytes));
            to.lock().push(words(&parts.concat()));
        });
        let up = DeviceStep::Upload(Upload { to: memory.clone(), runs: runs(), fill });
        let back = DeviceStep::Download(Download { from: memory.clone(), runs: runs(), take });
        if round % 2 == 0 {
            gpu.submit(Batch::from([up, launch(), back, launch()]));
        } else {
            [up, launch(), back].into_iter().for_each(|step| {
                gpu.submit(Batch::from([step]));
            });
        }
    }
    gpu.wait().expect("the batches are right");
    let seen = seen.lock();
    assert_eq!(seen.len(), rounds as usize);
    for (round, seen) in (0..).zip(seen.iter()) {
        let wrong = (0_u32..).zip(seen).find(|&(at, &seen)| seen != at + round + 1);
        assert!(seen.len() == words_of as usize && wrong.is_none(), "{wrong:?} in round {round}");
    }
}

#[test]
fn memory_is_limited_and_free_again() {
    let _deadline = deadline();
    let Some(gpu) = gpu_with(Settings::default().memory(1000)) else { return };
    let first = gpu.allocate(600).expect("there is room");
    let error = gpu.allocate(600).expect_err("there is no room");
    assert!(matches!(error, DeviceError::OutOfMemory { bytes: 600, used: 600, budget: 1000, .. }), "{error}");
    gpu.submit(Batch::from([upload(&first, vec![1; 600])]));
    drop(first);
    gpu.wait().expect("the batch is right");
    gpu.allocate(1000).expect("the memory is free");
    let most = gpu.info().largest_buffer;
    assert!(matches!(gpu.allocate(most + 4), Err(DeviceError::TooLarge { .. })));
}

#[test]
fn a_device_that_is_dropped_does_what_it_got() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let memory = gpu.allocate(1 << 20).expect("it is small");
    let done = Arc::new(AtomicU32::new(0));
    for _ in 0..50 {
        let to = Arc::clone(&done);
        let take = Box::new(move |_: &mut dyn FnMut(&mut [u8])| {
            to.fetch_add(1, Ordering::Relaxed);
        });
        let back = Download { from: memory.clone(), runs: support::whole(&memory), take };
        gpu.submit(Batch::from([DeviceStep::Download(back)]));
    }
    drop(gpu);
    assert_eq!(done.load(Ordering::Relaxed), 50);
}

/// On the device thread, and on the completion thread.
#[test]
fn the_last_handle_may_be_dropped_by_a_batch() {
    let _deadline = deadline();
    for bytes in [4, 1 << 20] {
        let Some(gpu) = gpu() else { return };
        drop_by_a_batch(gpu, bytes);
    }
}

/// Drops the last handle in the function of a download of this number of bytes.
fn drop_by_a_batch(gpu: Arc<dyn Device>, bytes: u64) {
    let memory = gpu.allocate(bytes).expect("it is small");
    let (send, dropped) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let held = Arc::clone(&gpu);
    let take = Box::new(move |_: &mut dyn FnMut(&mut [u8])| {
        let _ = wait.recv();
        drop(held);
        send.send(()).expect("the test waits");
    });
    let back = Download { from: memory.clone(), runs: support::whole(&memory), take };
    gpu.submit(Batch::from([DeviceStep::Download(back)]));
    drop(gpu);
    go.send(()).expect("the batch waits");
    dropped.recv().expect("the device has ended");
}

#[test]
fn memory_of_another_handle_is_refused_and_both_handles_work() {
    let _deadline = deadline();
    let (Some(one), Some(other)) = (gpu(), gpu()) else { return };
    let (mine, theirs) = (one.allocate(4).expect("it is small"), other.allocate(4).expect("it is small"));
    let failing = one.submit(Batch::from([upload(&theirs, vec![1; 4])]));
    let error = one.timeline().wait(failing, || ()).expect_err("it is of another handle").to_string();
    assert!(error.contains("memory of another device"), "{error}");
    for (gpu, memory) in [(&one, &mine), (&other, &theirs)] {
        let (back, taken) = download(memory);
        gpu.submit(Batch::from([upload(memory, vec![2; 4]), back]));
        gpu.wait().expect("the batch is right");
        assert_eq!(taken.lock().as_deref(), Some(&[2; 4][..]));
    }
}

#[test]
fn devices_are_opened_used_and_dropped_by_several_threads() {
    let _deadline = deadline();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..10 {
                    let Some(gpu) = gpu() else { return };
                    let memory = gpu.allocate(4).expect("it is small");
                    let (back, taken) = download(&memory);
                    gpu.submit(Batch::from([upload(&memory, vec![round; 4]), back]));
                    gpu.wait().expect("the batch is right");
                    assert_eq!(taken.lock().as_deref(), Some(&[round; 4][..]));
                }
            });
        }
    });
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let _deadline = deadline();
    let error = anabranch_gpu::open(Some("abacus")).expect_err("there is none");
    assert!(matches!(error, GpuError::NoSuchDevice { .. } | GpuError::None { .. }), "{error}");
    let is_software =
        |gpu: Arc<dyn anabranch::device::Device>| gpu.info().kind == anabranch::device::DeviceKind::Software;
    assert!(!anabranch_gpu::open(None).is_ok_and(is_software));
}
