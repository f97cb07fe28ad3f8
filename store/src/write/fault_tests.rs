//! The promises hold on devices that fail, are full, slow or stuck.

use crate::{
    FileOptions, Reader, Stamp, StoreError, SyncLevel, Writer,
    file::{device::Device, layout::Layout},
};
use parking_lot::Mutex;
use std::{
    fs::File,
    io,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

const LEN: usize = 600;
const FRAME: usize = LEN * 4;

/// An operation of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Frame,
    Small(u64),
    Sync,
}

type Before = Box<dyn FnMut(usize) -> io::Result<()> + Send>;

/// A file that calls a function in the middle of each write of frame data, with the number of the write.
struct Faulty {
    file: File,
    state: Mutex<(usize, Before)>,
    log: Arc<Mutex<Vec<Op>>>,
}

impl Device for Faulty {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.len() < 200 {
            self.log.lock().push(Op::Small(offset));
            return Device::write_all_at(&self.file, bytes, offset);
        }
        self.log.lock().push(Op::Frame);
        let mut state = self.state.lock();
        let k = state.0;
        state.0 += 1;
        // A failing write leaves half of the bytes.
        Device::write_all_at(&self.file, &bytes[..bytes.len() / 2], offset)?;
        (state.1)(k)?;
        Device::write_all_at(&self.file, bytes, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        Device::read_exact_at(&self.file, buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.log.lock().push(Op::Sync);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Device::set_len(&self.file, len)
    }
}

struct Bench {
    _folder: tempfile::TempDir,
    options: FileOptions,
    log: Arc<Mutex<Vec<Op>>>,
    layout: Layout,
}

/// A writer for 20 frames on a device that calls `before` in the middle of each frame.
fn bench(
    adjust: impl FnOnce(FileOptions) -> FileOptions,
    before: impl FnMut(usize) -> io::Result<()> + Send + 'static,
) -> (Bench, Writer<f32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = adjust(FileOptions::new(&path).frames(20).frame_shape(&[LEN]).stamps(true));
    std::fs::write(&path, "").unwrap();
    let layout = Layout::create::<f32>(&options, &path).unwrap();
    let log = Arc::default();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let device = Faulty { file, state: Mutex::new((0, Box::new(before))), log: Arc::clone(&log) };
    let writer = Writer::new(Box::new(device), &options, &layout, 0, 0).unwrap();
    (Bench { _folder: folder, options, log, layout }, writer)
}

/// Noise, so that compressed frames are large too.
fn frame(index: u64) -> Vec<f32> {
    let mut x = index as u32 + 1;
    let mut next = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(x >> 2)
    };
    (0..LEN).map(|_| next()).collect()
}

fn stamp(index: u64) -> Stamp {
    Stamp { step: index, time: index as f64 }
}

impl Bench {
    fn assert_holds(&self, frames: u64) {
        let reader = Reader::open(&self.options.path).unwrap();
        assert_eq!(reader.stored_frames().unwrap(), frames);
        for i in 0..frames {
            assert_eq!(reader.read_frame::<f32>(i).unwrap().as_slice().unwrap(), frame(i));
            assert_eq!(reader.stamp(i).unwrap(), Some(stamp(i)));
        }
        drop(reader);
        let file = hdf5::File::open(&self.options.path).unwrap();
        assert_eq!(file.dataset("matrix").unwrap().read_raw::<f32>().unwrap().len(), 20 * LEN);
    }
}

fn full_at(frame: usize) -> impl FnMut(usize) -> io::Result<()> + Send {
    move |k| if k == frame { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

#[test]
fn a_full_disk_is_reported_with_the_frame_and_keeps_what_was_stored() {
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
    let (bench, mut writer) = bench(|o| o, full_at(1));
    writer.append(&frame(0), stamp(0)).unwrap();
    assert_eq!(writer.append(&frame(1), stamp(1)).unwrap_err().frame(), Some(1));
    assert_eq!(writer.append(&frame(1), stamp(1)).unwrap_err().frame(), Some(1));
    assert_eq!(writer.finish().unwrap_err().frame(), Some(1));
    bench.assert_holds(1);
}

#[test]
fn dropping_a_writer_after_a_failure_neither_hangs_nor_panics() {
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

#[test]
fn dropping_a_writer_waits_until_a_slow_device_has_taken_the_queued_frames() {
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
    let slow = |_| {
        std::thread::sleep(Duration::from_millis(4));
        Ok(())
    };
    let (_bench, writer) = bench(|o| o, slow);
    let mut writer = writer.queued(2).unwrap();
    let monitor = writer.monitor();
    for i in 0..10 {
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
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let mut writer = writer.queued(2).unwrap();
    for i in 0..5 {
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
            assert_eq!(progress.recv_timeout(Duration::from_secs(10)), Ok(i));
        }
        assert!(progress.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        open.send(()).unwrap();
        assert_eq!(progress.recv_timeout(Duration::from_secs(10)), Ok(queue as u64 + 1));
        assert!(progress.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        (0..7).for_each(|_| open.send(()).unwrap());
        producer.join().unwrap().finish().unwrap();
        bench.assert_holds(8);
    }
}

#[test]
fn frame_memory_is_recycled() {
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

#[test]
fn a_frame_is_counted_after_its_bytes_and_synchronised_before_and_after() {
    for compress in [None, Some(6)] {
        let (bench, mut writer) = bench(|o| o.sync(SyncLevel::Frame).compress(compress), |_| Ok(()));
        let (count, stamps) = (bench.layout.count_at, bench.layout.stamps_at.unwrap());
        for i in 0..3 {
            bench.log.lock().clear();
            writer.append(&frame(i), stamp(i)).unwrap();
            let log = bench.log.lock().clone();
            let position = |op| log.iter().rposition(|&o| o == op).unwrap();
            let counted = position(Op::Small(count));
            assert!(position(Op::Frame) < counted);
            assert!(position(Op::Small(stamps.step + 8 * i)) < counted);
            assert!(position(Op::Small(stamps.time + 8 * i)) < counted);
            assert_eq!(log[counted - 1..], [Op::Sync, Op::Small(count), Op::Sync]);
        }
    }
}

#[test]
fn without_synchronisation_only_the_end_is_synchronised() {
    for (level, syncs) in [(SyncLevel::None, 0), (SyncLevel::End, 1)] {
        let (bench, mut writer) = bench(|o| o.sync(level), |_| Ok(()));
        writer.append(&frame(0), stamp(0)).unwrap();
        writer.finish().unwrap();
        assert_eq!(bench.log.lock().iter().filter(|&&op| op == Op::Sync).count(), syncs);
    }
}

/// Uses the operating system's own full device.
#[cfg(target_os = "linux")]
#[test]
fn the_error_of_a_real_full_device_is_passed_on() {
    let (bench, writer) = bench(|o| o, |_| Ok(()));
    drop(writer);
    let full = File::options().read(true).write(true).open("/dev/full").unwrap();
    let mut writer = Writer::<f32>::new(Box::new(full), &bench.options, &bench.layout, 0, 0).unwrap();
    let error = writer.append(&frame(0), stamp(0)).unwrap_err().to_string();
    assert!(error.contains("frame 0") && error.contains("No space left on device (os error 28)"), "{error}");
}

#[test]
fn an_idle_writer_ends_at_once() {
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let writer = writer.queued(2).unwrap();
    let began = Instant::now();
    drop(writer);
    assert!(began.elapsed() < Duration::from_secs(1));
}
