//! Tests of whole runs on a simulated device.

use super::*;
use crate::error::describe;

fn parameters() -> Parameters {
    Parameters { rows: 23, cols: 17, frames: 6, steps_per_frame: 37, noise: Some(5), ..Parameters::default() }
}

/// A run that is stored at `path`, on a device or on the host.
fn stored(path: &Path, device: Option<Simulated>, threads: usize, queue: usize) -> Result<RunOutcome, Error> {
    stored_with(path, device, threads, queue, &Accounts::default())
}

fn stored_with(
    path: &Path,
    device: Option<Simulated>,
    threads: usize,
    queue: usize,
    accounts: &Accounts,
) -> Result<RunOutcome, Error> {
    let (progress, interrupt) = (quiet(), Interrupt::default());
    let p = parameters();
    let outcome = Run {
        device: device.map(|device| Arc::new(device) as Arc<dyn Device>),
        queue,
        writer: Some(writer(path, &p, SyncLevel::None, None)),
        checkpoints: Some(Checkpoints { path: checkpoint::path_of(path), every: 2, interval: None }),
        ..unstored(Start::initial(p), threads, &progress, &interrupt, accounts)
    }
    .run()?;
    assert_eq!(accounts.updates(), outcome.steps * parameters().cells());
    Ok(outcome)
}

#[test]
fn the_bits_of_a_device_depend_on_no_schedule_and_are_near_those_of_the_host() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    stored(&path("host"), None, 1, 2).unwrap();
    let on_host = frames(&path("host"));
    let mut first = None;
    for (seed, threads, queue) in [(1, 1, 0), (2, 2, 1), (3, 3, 2), (4, 1, 6)] {
        let device = Simulated::builder().delays(seed, Duration::from_micros(200)).build();
        let name = seed.to_string();
        let outcome = stored(&path(&name), Some(device), threads, queue).unwrap();
        assert_eq!((outcome.frames, outcome.steps, outcome.interrupted), (6, 6 * 37, false));
        let on_device = frames(&path(&name));
        let first = first.get_or_insert_with(|| on_device.clone());
        assert!(*first == on_device, "{threads} threads, {queue} frames in the queue");
        let pairs = on_host.iter().zip(&on_device).flat_map(|(a, b)| a.iter().zip(b));
        let most = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most > 0.0 && most < 2e-6, "{most}");
        // The last checkpoint holds the state after 4 frames.
        let state = checkpoint::load(&checkpoint::path_of(&path(&name))).unwrap().unwrap();
        assert_eq!(state.step, 4 * 37);
        assert!(matches!(&state.fields, Fields::Given { v, .. } if *v == on_device[3]));
    }
}

#[test]
fn a_device_that_is_lost_ends_the_run_and_the_frames_before_stay() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    stored(&path, Some(Simulated::new()), 1, 2).unwrap();
    let whole = frames(&path);
    let mut kept = Vec::new();
    for batches in [0, 40, 120, 200] {
        let path = folder.path().join(batches.to_string());
        let device = Simulated::builder().named("a GPU").lose_after(batches).build();
        let accounts = Accounts::default();
        let error = describe(&stored_with(&path, Some(device), 2, 2, &accounts).unwrap_err());
        assert!(error.contains("the device a GPU is lost"), "{error}");
        // Steps that were submitted and not done do not count.
        let steps = accounts.updates() / parameters().cells();
        assert!(
            steps < parameters().steps() && (batches > 0 || steps == 0),
            "{steps} after {batches} batches"
        );
        let reader = Reader::open(&path).unwrap();
        let frames = reader.stored_frames().unwrap();
        for (i, frame) in (0..frames).zip(&whole) {
            assert!(reader.read_frame::<f32>(i).unwrap().as_slice() == Some(frame), "frame {i}");
        }
        kept.push(frames);
    }
    assert!(kept.is_sorted() && kept[0] == 0 && (1..6).contains(&kept[3]), "{kept:?}");
}

#[test]
fn a_device_without_memory_ends_the_run_with_the_buffer_and_the_bytes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let device = Simulated::builder().named("a GPU").memory(3 * parameters().frame_bytes()).build();
    let error = describe(&stored(&folder.path().join("output"), Some(device), 2, 2).unwrap_err());
    let bytes = parameters().frame_bytes().to_string();
    for part in ["buffer \"", "the device a GPU has no memory left", &bytes] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn frames_that_are_not_stored_stay_on_the_device() {
    let _deadline = testing::deadline();
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let (p, device) = (parameters(), Arc::new(Simulated::new()));
    let run = Run {
        device: Some(Arc::clone(&device) as Arc<dyn Device>),
        frames: FrameOutput::Nowhere,
        ..unstored(Start::initial(p.clone()), 2, &progress, &interrupt, &accounts)
    };
    assert_eq!(run.run().unwrap().frames, p.frames);
    // U and V at the end, and of each frame the first cell that is not finite.
    assert_eq!(device.counts().bytes_down, 2 * p.frame_bytes() + 4 * p.frames);
}

#[test]
fn an_interrupted_run_saves_the_state_of_the_device() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole"), folder.path().join("output"));
    stored(&whole, Some(Simulated::new()), 1, 2).unwrap();
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let p = parameters();
    let device: Arc<dyn Device> = Arc::new(Simulated::new());
    let run = Run {
        device: Some(Arc::clone(&device)),
        // The task that stores the second frame interrupts the run.
        writer: Some(Box::new(Interrupting {
            writer: writer(&path, &p, SyncLevel::None, None),
            interrupt: interrupt.clone(),
        })),
        queue: 0,
        checkpoints: Some(Checkpoints::on_interruption(checkpoint::path_of(&path))),
        ..unstored(Start::initial(p.clone()), 2, &progress, &interrupt, &accounts)
    };
    let outcome = run.run().unwrap();
    assert!(outcome.interrupted && (2..6).contains(&outcome.frames));
    let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
    assert_eq!((state.step, state.frames()), (outcome.steps, outcome.frames));
    let (accounts, interrupt) = (Accounts::default(), Interrupt::default());
    let rest = Run { device: Some(device), ..unstored(state, 1, &progress, &interrupt, &accounts) };
    let last = folder.path().join("last");
    let checkpoints = Some(Checkpoints::on_interruption(last.clone()));
    // One frame less than the whole run, so that the state is saved.
    Run { until: 5, checkpoints, ..rest }.run().unwrap();
    let state = checkpoint::load(&last).unwrap().unwrap();
    assert!(matches!(state.fields, Fields::Given { v, .. } if v == frames(&whole)[4]));
}

/// A store that interrupts the run when it has the second frame.
struct Interrupting {
    writer: Box<dyn FrameSink>,
    interrupt: Interrupt,
}

impl FrameSink for Interrupting {
    fn next_frame(&self) -> u64 {
        self.writer.next_frame()
    }

    fn append(&mut self, frame: &[f32], stamp: Stamp) -> Result<(), StoreError> {
        self.writer.append(frame, stamp)?;
        if self.next_frame() == 2 {
            self.interrupt.request();
        }
        Ok(())
    }

    fn append_parts(&mut self, _: Stamp) -> Result<(), StoreError> {
        unreachable!("one node stores whole frames")
    }

    fn finish(self: Box<Self>) -> Result<Summary, StoreError> {
        self.writer.finish()
    }
}
