//! Devices that fail, are full, slow or stuck: errors are reported, and what is stored stays.

use super::device::{FRAME, STARTING_PROCESS, bench, frame, stamp};
use crate::{StoreError, Writer, file::device::Device};
use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

fn full_at(frame: usize) -> impl FnMut(usize) -> io::Result<()> + Send {
    move |k| if k == frame { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

#[test]
fn a_full_disk_is_reported_with_the_frame_and_keeps_what_was_stored() {
    let _deadline = testing::deadline();
    for compress in [None, Some(6)] {
        let (bench, writer) = bench(|o| o.compress(compress), full_at(5));
        let mut writer = writer.queued(4).unwrap();
        let error = (0..20).find_map(|i| writer.append(&frame(i), stamp(i)).err()).unwrap();
        assert_eq!(error.frame(), Some(5));
        let text = error.to_string();
        let path = bench.options.path.display().to_string();
        for part in ["frame 5 could not", &path, "no storage space", "first 5 frames", "make room"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(matches!(writer.append(&frame(9), stamp(9)), Err(StoreError::Write { frame: 5, .. })));
        assert!(matches!(writer.frame(), Err(StoreError::Write { frame: 5, .. })));
        assert!(matches!(writer.finish(), Err(StoreError::Write { frame: 5, .. })));
        bench.assert_holds(5);

        let mut writer = bench.options.resume::<f32>(5).unwrap();
        for i in 5..20 {
            writer.append(&frame(i), stamp(i)).unwrap();
        }
        assert!(writer.finish().unwrap().is_complete());
        bench.assert_holds(20);
    }
}

#[test]
fn a_writer_without_a_queue_reports_its_own_frame_and_refuses_those_after_it() {
    let _deadline = testing::deadline();
    let (bench, mut writer) = bench(|o| o, full_at(1));
    writer.append(&frame(0), stamp(0)).unwrap();
    assert_eq!(writer.append(&frame(1), stamp(1)).unwrap_err().frame(), Some(1));
    assert_eq!(writer.append(&frame(1), stamp(1)).unwrap_err().frame(), Some(1));
    assert_eq!(writer.finish().unwrap_err().frame(), Some(1));
    bench.assert_holds(1);
}

#[test]
fn dropping_a_writer_after_a_failure_neither_hangs_nor_panics() {
    let _deadline = testing::deadline();
    for queue in [0, 1, 4] {
        for failing in 0..4 {
            let (bench, writer) = bench(|o| o, full_at(failing));
            let mut writer = writer.queued(queue).unwrap();
            for i in 0..4 {
                let _ = writer.append(&frame(i), stamp(i));
            }
            drop(writer);
            bench.assert_holds(failing as u64);
        }
    }
}

/// Set in the child: what it does.
const DROP: &str = "ANABRANCH_STORE_DROP_TASK";

/// The child: drops writers that have failed.
fn drop_failed_writers(task: &str) {
    match task {
        "frame" => {
            let (_bench, writer) = bench(|o| o, full_at(0));
            let mut writer = writer.queued(4).unwrap();
            writer.append(&frame(0), stamp(0)).unwrap();
        }
        "completion" => {
            let (bench, writer) = bench(|o| o, |_| Ok(()));
            fs::remove_file(&bench.options.path).unwrap();
            drop(writer);
        }
        "completion behind a queue" => {
            let (bench, writer) = bench(|o| o, |_| Ok(()));
            fs::remove_file(&bench.options.path).unwrap();
            drop(writer.queued(1).unwrap());
        }
        _ => {
            let (_plain, mut writer) = bench(|o| o, full_at(0));
            writer.append(&frame(0), stamp(0)).unwrap_err();
            drop(writer);
            let (_queued, writer) = bench(|o| o, full_at(0));
            let mut writer = writer.queued(4).unwrap();
            writer.append(&frame(0), stamp(0)).unwrap();
            while writer.frame().is_ok() {
                std::thread::yield_now();
            }
            drop(writer);
            let (_finished, writer) = bench(|o| o, full_at(0));
            let mut writer = writer.queued(4).unwrap();
            writer.append(&frame(0), stamp(0)).unwrap();
            writer.finish().unwrap_err();
        }
    }
}

#[test]
fn a_dropped_writer_prints_the_failure_that_no_call_has_returned() {
    let _deadline = testing::deadline();
    if let Ok(task) = std::env::var(DROP) {
        return drop_failed_writers(&task);
    }
    let this = "write::fault_tests::faults::a_dropped_writer_prints_the_failure_that_no_call_has_returned";
    let displaced = "out.h5 is no longer the file that was written";
    let tasks = [
        ("frame", Some("frame 0 could not be written")),
        ("completion", Some(displaced)),
        ("completion behind a queue", Some(displaced)),
        ("failures that were returned", None),
    ];
    for (task, failure) in tasks {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args([this, "--exact", "--nocapture"]).env(DROP, task);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
        let starting = STARTING_PROCESS.write();
        let started = child.spawn().unwrap();
        drop(starting);
        let out = started.wait_with_output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success() && stdout.contains("1 passed"), "{task}: {stdout}{stderr}");
        let printed: Vec<_> = stderr.lines().filter(|line| line.starts_with("anabranch-store: ")).collect();
        assert_eq!(printed.len(), usize::from(failure.is_some()), "{task}: {stderr}");
        for part in failure.iter().chain(&["no call has returned its failure", "call `finish` to get it"]) {
            assert!(printed.iter().all(|line| line.contains(part)), "{task}: {stderr}");
        }
    }
}

#[test]
fn dropping_a_writer_waits_until_a_slow_device_has_taken_the_queued_frames() {
    let _deadline = testing::deadline();
    let slow = |_| {
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    let (bench, writer) = bench(|o| o, slow);
    let mut writer = writer.queued(4).unwrap();
    for i in 0..6 {
        writer.append(&frame(i), stamp(i)).unwrap();
    }
    drop(writer);
    bench.assert_holds(6);
}

#[test]
fn a_slow_device_slows_the_producer_and_the_statistics_say_so() {
    let _deadline = testing::deadline();
    let begun = Arc::new(AtomicUsize::new(0));
    let appended = Arc::clone(&begun);
    // The device waits until the producer has filled the queue and comes with another frame. The producer
    // waits for most of the time that the device then takes.
    let slow = move |frame| {
        while appended.load(Ordering::Relaxed) < 10.min(frame + 4) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    };
    let (_bench, writer) = bench(|o| o, slow);
    let mut writer = writer.queued(2).unwrap();
    let monitor = writer.monitor();
    for i in 0..10 {
        begun.fetch_add(1, Ordering::Relaxed);
        writer.append(&frame(i), stamp(i)).unwrap();
    }
    let stats = writer.finish().unwrap().stats;
    let queue = stats.queue.unwrap();
    assert!(queue.producer_waited > Duration::from_millis(20), "{stats:?}");
    assert!(stats.writing > Duration::from_millis(40), "{stats:?}");
    assert!(stats.idle < stats.writing, "{stats:?}");
    assert_eq!((stats.frames, stats.bytes, queue.max_depth), (10, 10 * FRAME as u64, 2));
    assert!(queue.mean_depth > 1.0 && queue.mean_depth <= 2.0, "{stats:?}");
    assert!(stats.bytes_per_second() > 0.0);
    assert_eq!((monitor.stored_frames(), monitor.stats()), (10, stats));
}

#[test]
fn a_slow_producer_leaves_the_device_idle_and_the_statistics_say_so() {
    let _deadline = testing::deadline();
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let mut writer = writer.queued(2).unwrap();
    let monitor = writer.monitor();
    for i in 0..5 {
        while monitor.stored_frames() < i {
            std::thread::yield_now();
        }
        // The frames before are stored, so that the device is idle however fast the machine is.
        std::thread::sleep(Duration::from_millis(4));
        writer.append(&frame(i), stamp(i)).unwrap();
    }
    let stats = writer.finish().unwrap().stats;
    assert!(stats.idle > Duration::from_millis(20), "{stats:?}");
    assert!(stats.queue.unwrap().producer_waited < stats.idle, "{stats:?}");
}

/// Lets one frame through for each message.
fn gate(gate: Receiver<()>) -> impl FnMut(usize) -> io::Result<()> + Send {
    move |_| gate.recv().map_err(io::Error::other)
}

#[test]
fn the_capacity_bounds_the_frames_that_wait() {
    let _deadline = testing::deadline();
    for queue in [0, 1, 4] {
        let (open, closed) = channel();
        let (bench, writer) = bench(|o| o, gate(closed));
        let mut writer = writer.queued(queue).unwrap();
        let (queued, progress) = channel();
        let producer = std::thread::spawn(move || {
            for i in 0..8 {
                writer.append(&frame(i), stamp(i)).unwrap();
                queued.send(i).unwrap();
            }
            writer
        });
        let patience = Duration::from_millis(60);
        // One frame is being written and `queue` frames wait.
        for i in 0..=queue as u64 {
            assert_eq!(progress.recv(), Ok(i));
        }
        assert!(progress.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        open.send(()).unwrap();
        assert_eq!(progress.recv(), Ok(queue as u64 + 1));
        assert!(progress.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        (0..7).for_each(|_| open.send(()).unwrap());
        producer.join().unwrap().finish().unwrap();
        bench.assert_holds(8);
    }
}

#[test]
fn frame_memory_is_recycled() {
    let _deadline = testing::deadline();
    for queue in [0, 1, 4] {
        let (_bench, writer) = bench(|o| o, |_| Ok(()));
        let mut writer = writer.queued(queue).unwrap();
        let mut places = std::collections::HashSet::new();
        for i in 0..20 {
            let buffer = writer.frame().unwrap();
            places.insert(buffer.as_ptr() as usize);
            writer.submit(buffer, stamp(i)).unwrap();
        }
        assert!(places.len() <= queue + 2, "{} places with a queue of {queue}", places.len());
    }
}

#[test]
fn a_producer_that_keeps_frames_gets_more() {
    let _deadline = testing::deadline();
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let mut writer = writer.queued(0).unwrap();
    let kept: Vec<_> = (0..5).map(|_| writer.frame().unwrap()).collect();
    for (i, buffer) in kept.into_iter().enumerate() {
        writer.submit(buffer, stamp(i as u64)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().stored_frames, 5);
}

#[test]
fn a_panic_while_writing_is_an_error_of_its_frame() {
    let _deadline = testing::deadline();
    let bug = |k| if k == 1 { panic!("bug") } else { Ok(()) };
    let (_bench, mut writer) = bench(|o| o, bug);
    writer.append(&frame(0), stamp(0)).unwrap();
    let plain = writer.append(&frame(1), stamp(1)).unwrap_err();

    let (_bench, writer) = bench(|o| o, bug);
    let mut writer = writer.queued(0).unwrap();
    writer.append(&frame(0), stamp(0)).unwrap();
    let _ = writer.append(&frame(1), stamp(1));
    for error in [plain, writer.finish().unwrap_err()] {
        assert_eq!(error.frame(), Some(1));
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}

/// Uses the operating system's own full device.
#[cfg(target_os = "linux")]
#[test]
fn the_error_of_a_real_full_device_is_passed_on() {
    let _deadline = testing::deadline();
    let (bench, writer) = bench(|o| o, |_| Ok(()));
    drop(writer);
    let full = File::options().read(true).write(true).open("/dev/full").unwrap();
    let mut writer = Writer::<f32>::new(Box::new(full), &bench.options, &bench.layout, 0, 0).unwrap();
    let error = writer.append(&frame(0), stamp(0)).unwrap_err().to_string();
    assert!(error.contains("frame 0") && error.contains("No space left on device (os error 28)"), "{error}");
}

/// A file whose synchronisations fail.
struct FailingSync(File);

impl Device for FailingSync {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Device::write_all_at(&self.0, bytes, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        Device::read_exact_at(&self.0, buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::Error::other("the cable is loose"))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Device::set_len(&self.0, len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.0.is_at(path)
    }
}

#[test]
fn a_synchronisation_that_fails_in_the_middle_is_the_error_of_the_next_frame() {
    let _deadline = testing::deadline();
    let (bench, writer) = bench(|o| o, |_| Ok(()));
    drop(writer);
    let file = File::options().read(true).write(true).open(&bench.options.path).unwrap();
    let mut writer =
        Writer::<f32>::new(Box::new(FailingSync(file)), &bench.options, &bench.layout, 0, 0).unwrap();
    let failed = (0..20).find_map(|i| Some((i, writer.append(&frame(i), stamp(i)).err()?)));
    let (index, error) = failed.expect("there are several steps");
    assert!(index > 0 && error.frame() == Some(index) && writer.stored_frames() == index, "{error}");
    assert!(error.to_string().contains("the cable is loose"), "{error}");
    assert_eq!(writer.finish().unwrap_err().frame(), Some(index));
}

#[test]
fn an_idle_writer_ends_at_once() {
    let _deadline = testing::deadline();
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let writer = writer.queued(2).unwrap();
    let began = Instant::now();
    drop(writer);
    assert!(began.elapsed() < Duration::from_secs(1));
}
