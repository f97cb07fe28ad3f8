//! Devices that fail, are full, slow or stuck: what is promised holds with each of them.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::layout::Layout;
use crate::{FileOptions, FrameReader, FrameWriter, Stamp, StoreError, SyncLevel};

const LEN: usize = 600;
const FRAME: usize = LEN * 4;

/// What a device was asked to do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Frame,
    Small(u64),
    Sync,
}

type Before = Box<dyn FnMut(usize) -> io::Result<()> + Send>;

/// A file, with something happening before its k-th write of frame data.
struct Faulty {
    file: File,
    state: Mutex<(usize, Before)>,
    log: Arc<Mutex<Vec<Op>>>,
}

impl Device for Faulty {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.len() < 200 {
            self.log.lock().unwrap().push(Op::Small(offset));
            return Device::write_all_at(&self.file, bytes, offset);
        }
        self.log.lock().unwrap().push(Op::Frame);
        let mut state = self.state.lock().unwrap();
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
        self.log.lock().unwrap().push(Op::Sync);
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

/// A writer for 20 frames over a device that does `before` in the middle of each frame.
fn bench(
    adjust: impl FnOnce(FileOptions) -> FileOptions,
    before: impl FnMut(usize) -> io::Result<()> + Send + 'static,
) -> (Bench, FrameWriter<f32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = adjust(FileOptions::new(&path).frames(20).frame_shape(&[LEN]).stamps(true));
    std::fs::write(&path, "").unwrap();
    let layout = Layout::create::<f32>(&options, &path).unwrap();
    let log = Arc::default();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let device = Faulty { file, state: Mutex::new((0, Box::new(before))), log: Arc::clone(&log) };
    let writer = FrameWriter::over(Box::new(device), &options, &layout, 0, 0).unwrap();
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
        let reader = FrameReader::open(&self.options.path).unwrap();
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
        let (bench, mut writer) = bench(|o| o.compress(compress).queue(4), full_at(5));
        let error = (0..20).find_map(|i| writer.append(&frame(i), stamp(i)).err()).unwrap();
        assert_eq!(error.frame(), Some(5));
        let text = error.to_string();
        let path = bench.options.path.display().to_string();
        for part in ["frame 5 could not", &path, "no storage space", "first 5 frames", "make room"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(matches!(writer.append(&frame(9), stamp(9)), Err(StoreError::Write { frame: 5, .. })));
        assert!(matches!(writer.store(&frame(9), stamp(9)), Err(StoreError::Write { frame: 5, .. })));
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
fn a_failing_store_reports_its_own_frame_at_once() {
    let (bench, mut writer) = bench(|o| o, full_at(1));
    writer.store(&frame(0), stamp(0)).unwrap();
    assert_eq!(writer.store(&frame(1), stamp(1)).unwrap_err().frame(), Some(1));
    drop(writer);
    bench.assert_holds(1);
}

#[test]
fn dropping_a_writer_after_a_failure_neither_hangs_nor_panics() {
    for queue in [0, 1, 4] {
        for failing in 0..4 {
            let (bench, mut writer) = bench(|o| o.queue(queue), full_at(failing));
            for i in 0..4 {
                let _ = writer.append(&frame(i), stamp(i));
            }
            drop(writer);
            bench.assert_holds(failing as u64);
        }
    }
}

#[test]
fn dropping_a_writer_lets_a_slow_device_take_what_is_queued() {
    let slow = |_| {
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    let (bench, mut writer) = bench(|o| o.queue(4), slow);
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
    let (_bench, mut writer) = bench(|o| o.queue(2), slow);
    let monitor = writer.monitor();
    for i in 0..10 {
        writer.append(&frame(i), stamp(i)).unwrap();
    }
    let stats = writer.finish().unwrap().stats;
    assert!(stats.producer_waited > Duration::from_millis(20), "{stats:?}");
    assert!(stats.writing > Duration::from_millis(40), "{stats:?}");
    assert!(stats.idle < stats.writing, "{stats:?}");
    assert_eq!((stats.frames, stats.bytes, stats.max_queue_depth), (10, 10 * FRAME as u64, 2));
    assert!(stats.mean_queue_depth > 1.0 && stats.mean_queue_depth <= 2.0, "{stats:?}");
    assert!(stats.bytes_per_second() > 0.0);
    assert_eq!((monitor.stored_frames(), monitor.stats()), (10, stats));
}

#[test]
fn a_slow_producer_leaves_the_device_idle_and_the_statistics_say_so() {
    let (_bench, mut writer) = bench(|o| o, |_| Ok(()));
    for i in 0..5 {
        std::thread::sleep(Duration::from_millis(4));
        writer.append(&frame(i), stamp(i)).unwrap();
    }
    let stats = writer.finish().unwrap().stats;
    assert!(stats.idle > Duration::from_millis(20), "{stats:?}");
    assert!(stats.producer_waited < stats.idle, "{stats:?}");
}

/// A device that lets one frame through for each message.
fn gate(gate: Receiver<()>) -> impl FnMut(usize) -> io::Result<()> + Send {
    move |_| gate.recv().map_err(io::Error::other)
}

#[test]
fn as_many_frames_wait_as_the_queue_has_places() {
    for queue in [0, 1, 4] {
        let (open, closed) = channel();
        let (bench, mut writer) = bench(|o| o.queue(queue), gate(closed));
        let (say, hear) = channel();
        let producer = std::thread::spawn(move || {
            for i in 0..8 {
                writer.append(&frame(i), stamp(i)).unwrap();
                say.send(i).unwrap();
            }
            writer
        });
        let patience = Duration::from_millis(60);
        // One frame is being written and `queue` frames wait.
        for i in 0..=queue as u64 {
            assert_eq!(hear.recv_timeout(Duration::from_secs(10)), Ok(i));
        }
        assert!(hear.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        open.send(()).unwrap();
        assert_eq!(hear.recv_timeout(Duration::from_secs(10)), Ok(queue as u64 + 1));
        assert!(hear.recv_timeout(patience).is_err(), "queue {queue} takes too many frames");
        (0..7).for_each(|_| open.send(()).unwrap());
        producer.join().unwrap().finish().unwrap();
        bench.assert_holds(8);
    }
}

#[test]
fn store_waits_for_what_is_queued() {
    let (open, closed) = channel();
    let (bench, mut writer) = bench(|o| o.queue(2), gate(closed));
    writer.append(&frame(0), stamp(0)).unwrap();
    writer.append(&frame(1), stamp(1)).unwrap();
    let opener = std::thread::spawn(move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(5));
            open.send(()).unwrap();
        }
    });
    writer.store(&frame(2), stamp(2)).unwrap();
    assert_eq!(writer.stored_frames(), 3);
    opener.join().unwrap();
    bench.assert_holds(3);
}

#[test]
fn frame_memory_is_recycled() {
    for queue in [0, 1, 4] {
        let (_bench, mut writer) = bench(|o| o.queue(queue), |_| Ok(()));
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
    let (_bench, mut writer) = bench(|o| o.queue(0), |_| Ok(()));
    let kept: Vec<_> = (0..5).map(|_| writer.frame().unwrap()).collect();
    for (i, buffer) in kept.into_iter().enumerate() {
        writer.submit(buffer, stamp(i as u64)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().stored_frames, 5);
}

#[test]
fn a_panic_while_writing_is_an_error_of_its_frame() {
    let (_bench, mut writer) = bench(|o| o.queue(0), |k| if k == 1 { panic!("bug") } else { Ok(()) });
    writer.append(&frame(0), stamp(0)).unwrap();
    let _ = writer.append(&frame(1), stamp(1));
    let error = writer.finish().unwrap_err();
    assert_eq!(error.frame(), Some(1));
    assert!(error.to_string().contains("panicked"), "{error}");
}

#[test]
fn a_frame_is_counted_after_its_bytes_and_synchronised_before_and_after() {
    for compress in [None, Some(6)] {
        let (bench, mut writer) = bench(|o| o.sync(SyncLevel::Frame).compress(compress), |_| Ok(()));
        let (count, stamps) = (bench.layout.count_at, bench.layout.stamps_at.unwrap());
        for i in 0..3 {
            bench.log.lock().unwrap().clear();
            writer.store(&frame(i), stamp(i)).unwrap();
            let log = bench.log.lock().unwrap().clone();
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
        assert_eq!(bench.log.lock().unwrap().iter().filter(|&&op| op == Op::Sync).count(), syncs);
    }
}

/// The operating system's own full device.
#[cfg(target_os = "linux")]
#[test]
fn the_error_of_a_real_full_device_is_passed_on() {
    let (bench, writer) = bench(|o| o, |_| Ok(()));
    drop(writer);
    let full = File::options().read(true).write(true).open("/dev/full").unwrap();
    let mut writer = FrameWriter::<f32>::over(Box::new(full), &bench.options, &bench.layout, 0, 0).unwrap();
    let error = writer.store(&frame(0), stamp(0)).unwrap_err().to_string();
    assert!(error.contains("frame 0") && error.contains("No space left on device (os error 28)"), "{error}");
}

#[test]
fn an_idle_writer_ends_at_once() {
    let (_bench, writer) = bench(|o| o, |_| Ok(()));
    let began = Instant::now();
    drop(writer);
    assert!(began.elapsed() < Duration::from_secs(1));
}
