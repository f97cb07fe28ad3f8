//! The device for tests, used through the trait: copies, launches, delays, refusals and failures.

mod common;

use anabranch::device::{
    Device, DeviceError, DeviceKind, DeviceMemory, DeviceProgram, DeviceStep, Download, Launch, Operand, Run,
    Simulated, Source, Upload,
};
use anabranch_kernel::{Number, Operator, Scalar, Tape};
use common::steps::{all, download, failed, incremented, launch, scaled, submit, upload, values};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};
use testing::deadline;

#[test]
fn a_batch_uploads_launches_and_downloads() {
    let _deadline = deadline();
    let device = Simulated::new();
    assert_eq!(device.info().kind, DeviceKind::Simulated);
    let (u, v) = (device.allocate(16).unwrap(), device.allocate(16).unwrap());
    let recording = scaled(10.0);
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let (step, result) = download::<f32>(&v, &all(&v));
    let value = submit(
        &device,
        [upload(&u, 0, &[1_f32, 2.0, 3.0, 4.0]), launch(&program, &recording, [1, 1, 4], &[&u, &v]), step],
    );
    assert_eq!(value, 1);
    device.wait().unwrap();
    assert!(device.is_idle());
    assert_eq!(result.try_recv().unwrap(), [10.0, 21.0, 32.0, 43.0]);
    let counts = device.counts();
    assert_eq!((counts.uploads, counts.launches, counts.downloads), (1, 1, 1));
    assert_eq!((counts.bytes_up, counts.bytes_down), (16, 16));
    assert_eq!((counts.allocations, counts.bytes_in_use), (2, 32));
}

#[test]
fn copies_take_runs_one_after_the_other() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(20).unwrap();
    let runs = vec![Run { offset: 12, bytes: 8 }, Run { offset: 0, bytes: 4 }];
    let new = DeviceStep::Upload(Upload {
        to: memory.clone(),
        runs,
        fill: Box::new(|put| put(bytemuck::cast_slice(&[1_u32, 2, 3]))),
    });
    let (step, some) = download::<u32>(&memory, &[Run { offset: 16, bytes: 4 }, Run { offset: 0, bytes: 8 }]);
    submit(&device, [new, step]);
    device.wait().unwrap();
    assert_eq!(some.try_recv().unwrap(), [2, 3, 0]);
    assert_eq!(values::<u32>(&device, &memory), [3, 0, 0, 1, 2]);
    assert_eq!(device.counts().bytes_down, 32);
}

#[test]
fn a_launch_computes_a_part_of_a_buffer_of_three_dimensions() {
    let _deadline = deadline();
    let device = Simulated::new();
    let tape = Tape::new(3);
    let (u, v) = (tape.input::<i64, 3>(), tape.output::<i64, 3>());
    v.set(u.at_clamped([1, -1, 0]) + 100);
    let recording = tape.finish().unwrap();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let extent = [2, 3, 2];
    let (u, v) = (device.allocate(96).unwrap(), device.allocate(96).unwrap());
    let step = DeviceStep::Launch(Launch {
        program,
        points: [[0, 1, 1], [2, 3, 2]],
        operands: [&u, &v]
            .map(|memory| Operand { memory: memory.clone(), extent, declared: Vec::new() })
            .into(),
        parameters: recording.parameters().into(),
        groups: [0; 3],
    });
    let numbers: Vec<i64> = (0..12).collect();
    submit(&device, [upload(&u, 0, &numbers), step]);
    // The row above, of the plane behind, which is the last one.
    let mut expected = [0; 12];
    for (z, y) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
        expected[(z * 3 + y) * 2 + 1] = 100 + numbers[(3 + y - 1) * 2 + 1];
    }
    assert_eq!(values::<i64>(&device, &v), expected);
}

#[test]
fn a_kernel_computes_with_all_types() {
    let _deadline = deadline();
    fn doubled<T>(device: &Simulated, record: impl Fn(&Tape), element: T) -> Vec<T>
    where
        T: Number + bytemuck::Pod,
    {
        let tape = Tape::new(1);
        record(&tape);
        let recording = tape.finish().unwrap();
        let program = device.compile(Source::Recording(&recording)).unwrap();
        let memory = device.allocate(3 * size_of::<T>() as u64).unwrap();
        let step = launch(&program, &recording, [1, 1, 3], &[&memory]);
        submit(device, [upload(&memory, 0, &[element; 3]), step]);
        values(device, &memory)
    }
    macro_rules! check {
        ($($number:ty),*) => {
            $({
                let record = |tape: &Tape| {
                    let u = tape.input_output::<$number, 1>();
                    u.set(u.here() + u.here());
                };
                assert_eq!(doubled(&Simulated::new(), record, 21 as $number), [42 as $number; 3]);
            })*
        };
    }
    check!(f32, f64, i32, u32, i64, u64);
}

#[test]
fn an_operand_that_is_set_as_another_one_is_read_as_it_was() {
    let _deadline = deadline();
    let device = Simulated::new();
    let recording = scaled(1.0);
    let program = device.compile(Source::Recording(&recording)).unwrap();
    // More than one block of the processor: what a block sets, the next one would read.
    let count = 3000;
    let memory = device.allocate(4 * count as u64).unwrap();
    let before: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let step = launch(&program, &recording, [1, 1, count], &[&memory, &memory]);
    submit(&device, [upload(&memory, 0, &before), step]);
    let expected: Vec<f32> = (0..count).map(|i| if i == 0 { 0.0 } else { 2.0 * i as f32 - 1.0 }).collect();
    assert_eq!(values::<f32>(&device, &memory), expected);
}

#[test]
fn a_reduction_into_memory_that_its_launch_reads_combines_what_was_there() {
    let _deadline = deadline();
    let device = Simulated::new();
    let tape = Tape::new(1);
    let (u, total) = (tape.input::<u64, 1>(), tape.accumulator::<u64>(Operator::Sum, false));
    total.combine(u.here());
    let recording = tape.finish().unwrap();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let count = 5000;
    let memory = device.allocate(8 * count as u64).unwrap();
    let before: Vec<u64> = (1..=count as u64).collect();
    let step = launch(&program, &recording, [1, 1, count], &[&memory, &memory]);
    submit(&device, [upload(&memory, 0, &before), step]);
    let after = values::<u64>(&device, &memory);
    assert_eq!((after[0], &after[1..]), (before.iter().sum(), &before[1..]));
}

#[test]
fn one_memory_that_is_set_and_reduced_into_fails_the_batch() {
    let _deadline = deadline();
    let device = Simulated::new();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<u32, 1>(), tape.output::<u32, 1>());
    let total = tape.accumulator::<u32>(Operator::Sum, false);
    v.set(u.here() + 1);
    total.combine(u.here());
    let recording = tape.finish().unwrap();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let [read, written] = [(); 2].map(|()| device.allocate(12).unwrap());
    let step = launch(&program, &recording, [1, 1, 3], &[&read, &written, &written]);
    let refused = failed(device.timeline().wait(submit(&device, [step]), || ()));
    assert_eq!(refused, "a launch writes operands 1 and 2, which are one buffer");
    assert_eq!(values::<u32>(&device, &written), [0; 3]);
}

#[test]
fn one_memory_that_is_set_as_two_operands_fails_the_batch() {
    let _deadline = deadline();
    let device = Simulated::new();
    let tape = Tape::new(1);
    let (read, [one, two]) = (tape.input::<u32, 1>(), [(); 2].map(|()| tape.output::<u32, 1>()));
    one.set(read.here() + 1);
    two.set(read.here() + 2);
    let recording = tape.finish().unwrap();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let [read, written, other] = [(); 3].map(|()| device.allocate(12).unwrap());
    let run = |operands: [&DeviceMemory; 3]| {
        device.timeline().wait(submit(&device, [launch(&program, &recording, [1, 1, 3], &operands)]), || ())
    };
    let twice = failed(run([&read, &written, &written]));
    assert_eq!(twice, "a launch writes operands 1 and 2, which are one buffer");
    assert_eq!(values::<u32>(&device, &written), [0; 3]);
    assert_eq!(run([&read, &written, &other]), Ok(()));
    assert_eq!(values::<u32>(&device, &written), [1; 3]);
}

#[test]
fn batches_are_done_in_their_order_with_any_delays() {
    let _deadline = deadline();
    for seed in 0..4 {
        let device = Simulated::builder().delays(seed, Duration::from_micros(300)).build();
        let recording = incremented();
        let program = device.compile(Source::Recording(&recording)).unwrap();
        let memory = device.allocate(8).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..20 {
            let value = submit(&device, [launch(&program, &recording, [1, 1, 2], &[&memory])]);
            let order = Arc::clone(&order);
            device.timeline().on_complete(value, move |result| order.lock().unwrap().push((value, result)));
        }
        assert_eq!(values::<u32>(&device, &memory), [20, 20]);
        // The callbacks of the batches before the last one were called before it was begun.
        let expected: Vec<_> = (1..=20).map(|value| (value, Ok(()))).collect();
        assert_eq!(*order.lock().unwrap(), expected);
    }
}

#[test]
fn a_submission_does_not_block() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(4).unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let slow = DeviceStep::Upload(Upload {
        to: memory.clone(),
        runs: Vec::new(),
        fill: Box::new(move |_| gate.recv().unwrap()),
    });
    assert_eq!(submit(&device, [slow]), 1);
    assert_eq!(submit(&device, [upload(&memory, 0, &[7_u32])]), 2);
    assert_eq!((device.timeline().completed(), device.is_idle()), (0, false));
    go.send(()).unwrap();
    assert_eq!(values::<u32>(&device, &memory), [7]);
}

#[test]
fn memory_is_limited_and_allocations_are_refused() {
    let _deadline = deadline();
    let device = Simulated::builder().memory(100).largest_buffer(64).refuse_allocation(4).build();
    assert_eq!((device.info().memory, device.info().largest_buffer), (Some(100), 64));
    let first = device.allocate(60).unwrap();
    let name = || "simulated".to_string();
    let full = DeviceError::OutOfMemory { device: name(), bytes: 41, used: 60, budget: 100 };
    assert_eq!(device.allocate(41).unwrap_err(), full);
    let second = device.allocate(40).unwrap();
    drop((first, second));
    let refused = DeviceError::OutOfMemory { device: name(), bytes: 8, used: 0, budget: 100 };
    assert_eq!(device.allocate(8).unwrap_err(), refused);
    assert!(device.allocate(8).is_ok());
    let large = DeviceError::TooLarge { device: name(), bytes: 65, most: 64 };
    assert_eq!(device.allocate(65).unwrap_err(), large);
    let counts = device.counts();
    assert_eq!((counts.allocations, counts.bytes_in_use, counts.most_bytes), (0, 0, 100));
}

#[test]
fn a_host_without_so_much_memory_refuses_it() {
    let _deadline = deadline();
    let device = Simulated::new();
    let bytes = isize::MAX as u64;
    let error = device.allocate(bytes).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { used: 0, .. }), "{error}");
    assert_eq!(device.counts().bytes_in_use, 0);
    assert!(device.allocate(8).is_ok());
}

#[test]
fn a_recording_is_refused() {
    let _deadline = deadline();
    let device = Simulated::builder().named("old").refuse_program(2).build();
    assert!(device.compile(Source::Recording(&incremented())).is_ok());
    let error = device.compile(Source::Recording(&incremented())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the device old cannot run this kernel or shader: it is to refuse program 2"
    );
    assert!(device.compile(Source::Recording(&incremented())).is_ok());
}

#[test]
fn memory_that_comes_back_is_zero() {
    let _deadline = deadline();
    let device = Simulated::builder().memory(4096).build();
    for _ in 0..10 {
        let memory = device.allocate(4096).unwrap();
        assert!(values::<u32>(&device, &memory).iter().all(|&value| value == 0));
        let value = submit(&device, [upload(&memory, 0, &[u32::MAX; 1024])]);
        device.timeline().wait(value, || ()).unwrap();
    }
}

#[test]
fn memory_is_free_when_its_last_batch_is_done() {
    let _deadline = deadline();
    let device = Simulated::builder().memory(64).build();
    let (go, gate) = mpsc::channel::<()>();
    let memory = device.allocate(64).unwrap();
    let slow = DeviceStep::Upload(Upload {
        to: memory.clone(),
        runs: Vec::new(),
        fill: Box::new(move |_| gate.recv().unwrap()),
    });
    let value = submit(&device, [slow]);
    drop(memory);
    assert!(device.allocate(64).is_err(), "the batch uses it");
    go.send(()).unwrap();
    device.timeline().wait(value, || ()).unwrap();
    assert!(device.allocate(64).is_ok(), "nothing uses it behind the timeline");
}

#[test]
fn a_failed_batch_does_nothing_and_others_are_done() {
    let _deadline = deadline();
    let device = Simulated::builder().fail_batch(2).build();
    let memory = device.allocate(4).unwrap();
    let taken = Arc::new(());
    let kept = Arc::clone(&taken);
    submit(&device, [upload(&memory, 0, &[1_u32])]);
    let never = DeviceStep::Download(Download {
        from: memory.clone(),
        runs: all(&memory).to_vec(),
        take: Box::new(move |_| panic!("nothing is downloaded: {kept:?}")),
    });
    let second = submit(&device, [upload(&memory, 0, &[2_u32]), never]);
    assert_eq!(failed(device.timeline().wait(second, || ())), "batch 2 is to fail");
    assert_eq!(Arc::strong_count(&taken), 1, "its functions are gone when it is done");
    assert_eq!(values::<u32>(&device, &memory), [1]);
    assert_eq!(device.wait(), Ok(()), "the error was taken");
}

#[test]
fn an_error_that_nobody_has_taken_comes_out_of_the_wait() {
    let _deadline = deadline();
    let device = Simulated::builder().fail_batch(1).build();
    submit(&device, []);
    submit(&device, []);
    assert_eq!(failed(device.wait()), "batch 1 is to fail");
    assert_eq!(device.wait(), Ok(()));
}

#[test]
fn a_function_that_panics_fails_its_batch_and_not_the_device() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(4).unwrap();
    let (runs, to, from) = (all(&memory).to_vec(), memory.clone(), memory.clone());
    let up =
        Upload { to, runs: runs.clone(), fill: Box::new(|_| panic!("no {} to upload", "numbers of a test")) };
    let down = Download { from, runs, take: Box::new(|_| panic!("a test takes nothing")) };
    let up = submit(&device, [DeviceStep::Upload(up), upload(&memory, 0, &[1_u32])]);
    let down = submit(&device, [DeviceStep::Download(down)]);
    let result = |value| failed(device.timeline().wait(value, || ()));
    assert_eq!(result(up), "it has panicked: no numbers of a test to upload");
    assert_eq!(result(down), "it has panicked: a test takes nothing");
    assert_eq!(values::<u32>(&device, &memory), [0], "the steps after the panic are not done");
}

#[test]
fn functions_that_give_or_take_other_bytes_fail_their_batch() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(8).unwrap();
    let runs = || all(&memory).to_vec();
    let up = |given: usize| {
        let fill = Box::new(move |put: &mut dyn FnMut(&[u8])| (0..given).for_each(|_| put(&[1; 4])));
        DeviceStep::Upload(Upload { to: memory.clone(), runs: runs(), fill })
    };
    let down = |taken: usize| {
        let take = Box::new(move |get: &mut dyn FnMut(&mut [u8])| (0..taken).for_each(|_| get(&mut [0; 4])));
        DeviceStep::Download(Download { from: memory.clone(), runs: runs(), take })
    };
    let result = |step| {
        let value = submit(&device, [step]);
        device.timeline().wait(value, || ())
    };
    assert_eq!(failed(result(up(1))), "a copy of 8 bytes was given 4");
    assert_eq!(failed(result(up(3))), "a copy of 8 bytes was given 12");
    assert_eq!(failed(result(down(3))), "12 bytes were taken of a copy of 8");
    assert_eq!(values::<u32>(&device, &memory), [0, 0]);
    assert_eq!((result(up(2)), result(down(2)), result(down(1))), (Ok(()), Ok(()), Ok(())));
    assert_eq!(values::<u32>(&device, &memory), [0x0101_0101; 2]);
}

#[test]
fn what_belongs_to_another_device_fails_a_batch() {
    let _deadline = deadline();
    let (device, other) = (Simulated::new(), Simulated::new());
    let (own, foreign) = (device.allocate(8).unwrap(), other.allocate(8).unwrap());
    let unknown = DeviceMemory::new(8, "memory of a driver");
    let recording = incremented();
    let (program, of_other) = (
        device.compile(Source::Recording(&recording)).unwrap(),
        other.compile(Source::Recording(&recording)).unwrap(),
    );
    let run = |step| failed(device.timeline().wait(submit(&device, [step]), || ()));
    let extent = [1, 1, 2];
    for memory in [&foreign, &unknown] {
        let why = "a batch uses memory of another device";
        assert_eq!(run(upload(memory, 0, &[1_u32])), why);
        assert_eq!(run(download::<u32>(memory, &all(memory)).0), why);
        assert_eq!(run(launch(&program, &recording, extent, &[memory])), why);
    }
    let why = "a batch launches a program of another device";
    for program in [of_other, DeviceProgram::new("program of a driver")] {
        assert_eq!(run(launch(&program, &recording, extent, &[&own])), why);
    }
    assert_eq!(values::<u32>(&device, &own), [0, 0]);
    assert_eq!(device.wait(), Ok(()));
}

#[test]
fn a_wrong_step_fails_its_batch() {
    let _deadline = deadline();
    let device = Simulated::new();
    let memory = device.allocate(12).unwrap();
    let recording = incremented();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let run = |step| failed(device.timeline().wait(submit(&device, [step]), || ()));
    let copy = |offset, bytes| run(download::<u32>(&memory, &[Run { offset, bytes }]).0);
    assert_eq!(copy(8, 8), "a copy has 8 bytes from 8, but the memory has 12");
    assert_eq!(
        copy(u64::MAX - 3, 8),
        format!("a copy has 8 bytes from {}, but the memory has 12", u64::MAX - 3)
    );
    assert_eq!(copy(2, 4), "a copy has 4 bytes from 2, which are no multiples of 4");
    assert_eq!(copy(4, 2), "a copy has 2 bytes from 4, which are no multiples of 4");

    let launch = |extent, count, points| {
        let operand = Operand { memory: memory.clone(), extent, declared: Vec::new() };
        run(DeviceStep::Launch(Launch {
            program: program.clone(),
            points,
            operands: vec![operand; count].into(),
            parameters: [Scalar::U32(1)].into_iter().collect(),
            groups: [0; 3],
        }))
    };
    let point = [[0; 3], [1; 3]];
    assert_eq!(launch([1, 1, 3], 2, point), "a launch has 2 operands, and its program 1");
    assert_eq!(launch([1, 1, 4], 1, point), "an operand has the extent [1, 1, 4] of u32, but 12 bytes");
    let huge = launch([usize::MAX; 3], 1, point);
    assert!(huge.ends_with("but 12 bytes"), "{huge}");
    let outside = launch([1, 3, 1], 1, [[0; 3], [1, 1, 2]]);
    assert!(outside.contains("outside an operand"), "{outside}");
    assert_eq!(device.counts().launches, 0);
}

#[test]
fn many_threads_submit() {
    let _deadline = deadline();
    let device = Simulated::builder().delays(3, Duration::from_micros(20)).build();
    let recording = incremented();
    let program = device.compile(Source::Recording(&recording)).unwrap();
    let memory = device.allocate(4).unwrap();
    let is_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let value = submit(&device, [launch(&program, &recording, [1, 1, 1], &[&memory])]);
                        if value.is_multiple_of(7) {
                            device.timeline().wait(value, || ()).unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_ended.load(SeqCst) {
                let (completed, submitted) = (device.timeline().completed(), device.timeline().submitted());
                assert!(completed <= submitted);
                thread::yield_now();
            }
        });
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        is_ended.store(true, SeqCst);
    });
    device.wait().unwrap();
    assert_eq!(values::<u32>(&device, &memory), [300]);
}
