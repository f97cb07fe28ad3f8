//! Tests of whole runs.

mod device;
mod nodes;
mod nodes_device;

use super::*;
use crate::{
    files::checkpoint,
    parameters::Parameters,
    report::{progress::Mode, statistics::RunStats},
    start::Fields,
};
use anabranch::device::Simulated;
use anabranch_store::{FileOptions, Reader, Stamp, Stats, StoreError, SyncLevel};
use std::{path::Path, sync::atomic::AtomicU64};

/// A small run.
fn parameters() -> Parameters {
    Parameters { rows: 40, cols: 33, frames: 3, steps_per_frame: 50, ..Parameters::default() }
}

pub(super) fn quiet() -> Progress {
    Progress::new(1, Mode::Quiet, |_, _| String::new())
}

pub(super) fn writer(
    path: &Path,
    p: &Parameters,
    sync: SyncLevel,
    compress: Option<u8>,
) -> Box<dyn FrameSink> {
    let options = FileOptions::new(path).frames(p.frames).frame_shape(&[p.rows, p.cols]).stamps(true);
    Box::new(options.sync(sync).compress(compress).create::<f32>().unwrap())
}

/// A run on these threads that stores nothing.
pub(super) fn unstored<'a>(
    start: Start,
    threads: usize,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    accounts: &'a Accounts,
) -> Run<'a> {
    Run {
        until: start.parameters.frames,
        start,
        threads,
        simd: Simd::detect(),
        device: None,
        queue: 2,
        check_finite: true,
        writer: None,
        frames: FrameOutput::Whole,
        checkpoints: None,
        progress,
        interrupt,
        accounts,
    }
}

/// All frames of a complete file.
pub(super) fn frames(path: &Path) -> Vec<Vec<f32>> {
    let reader = Reader::open(path).unwrap();
    assert!(reader.is_complete().unwrap());
    (0..reader.frames()).map(|i| reader.read_frame(i).unwrap().into_raw_vec_and_offset().0).collect()
}

/// Accounts whose clock goes on by a microsecond with each look at it.
fn ticking() -> (Accounts, Arc<AtomicU64>) {
    let ticks = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&ticks);
    let accounts =
        Accounts::with_clock(move || Duration::from_micros(clock.fetch_add(1, Ordering::Relaxed) + 1));
    (accounts, ticks)
}

#[test]
fn no_moment_of_a_run_is_lost_with_sync_long_frames_checkpoints_and_compression() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let small = Parameters { rows: 4, cols: 4, frames: 20, steps_per_frame: 1, ..Parameters::default() };
    let long = Parameters { frames: 4, steps_per_frame: 500, ..parameters() };
    let cases = [
        ("sync each frame", small.clone(), SyncLevel::Frame, None, 0),
        ("long frames", long, SyncLevel::None, None, 0),
        ("a checkpoint each frame", small, SyncLevel::None, None, 1),
        ("compression", parameters(), SyncLevel::None, Some(9), 2),
    ];
    for (name, p, sync, compress, every) in cases {
        for threads in [1, 3] {
            let path = folder.path().join(format!("{name} {threads}.h5"));
            let (progress, interrupt, (accounts, ticks)) = (quiet(), Interrupt::default(), ticking());
            let outcome = Run {
                writer: Some(writer(&path, &p, sync, compress)),
                checkpoints: Some(Checkpoints { path: checkpoint::path_of(&path), every, interval: None }),
                ..unstored(Start::initial(p.clone()), threads, &progress, &interrupt, &accounts)
            }
            .run()
            .unwrap();
            let times = accounts.times();
            let looks = ticks.load(Ordering::Relaxed);
            assert_eq!(times.total(), Duration::from_micros(looks), "{name}: {times:?}");
            assert_eq!((outcome.frames, outcome.steps), (p.frames, p.steps()), "{name}");
            assert_eq!(accounts.updates(), p.steps() * p.cells(), "{name}");
            // The clock has gone on during each frame, the completion of the file, and each checkpoint.
            let saved = (p.frames - 1).checked_div(every).unwrap_or(0);
            assert!(times.checkpoints >= Duration::from_micros(saved), "{name}: {times:?}");
            assert_eq!(times.checkpoints > Duration::ZERO, saved > 0, "{name}: {times:?}");
            let frames = times.storing() - times.checkpoints;
            assert!(frames > Duration::from_micros(p.frames), "{name}: {times:?}");
            assert!(times.computing() > Duration::ZERO, "{name}: {times:?}");
            assert!(outcome.summary.unwrap().stats.writing > Duration::ZERO, "{name}");
        }
    }
}

/// A store that takes ten seconds for each frame, by a clock of its own. It waits with that until the
/// computation has run ahead as far as it may, so that nothing is computed meanwhile.
pub(super) struct SlowStore {
    parameters: Parameters,
    /// The cells whose computation `accounts` count.
    cells: u64,
    /// Frames that the computation may be ahead.
    ahead: u64,
    accounts: Accounts,
    clock: Arc<AtomicU64>,
    next: u64,
}

impl SlowStore {
    /// A store for a run with this many frames in its queue, and accounts of its node, which has some of the
    /// cells.
    pub(super) fn new(p: &Parameters, cells: u64, queue: usize) -> (Self, Accounts) {
        let clock = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&clock);
        let accounts = Accounts::with_clock(move || Duration::from_secs(now.load(Ordering::Relaxed)));
        let (parameters, ahead) = (p.clone(), queue as u64 + 1);
        (Self { parameters, cells, ahead, accounts: accounts.clone(), clock, next: 0 }, accounts)
    }

    /// The times of a run that computes in no time.
    pub(super) fn times(p: &Parameters) -> Times {
        Times { only_storing: Duration::from_secs(p.frames * 10 + 7), ..Times::default() }
    }
}

impl FrameSink for SlowStore {
    fn next_frame(&self) -> u64 {
        self.next
    }

    fn append(&mut self, _: &[f32], _: Stamp) -> Result<(), StoreError> {
        let p = &self.parameters;
        let computed = (self.next + 1 + self.ahead).min(p.frames) * p.steps_per_frame * self.cells;
        while self.accounts.updates() < computed {
            std::thread::yield_now();
        }
        self.clock.fetch_add(10, Ordering::Relaxed);
        self.next += 1;
        Ok(())
    }

    fn append_parts(&mut self, _: Stamp) -> Result<(), StoreError> {
        unreachable!("one node stores whole frames")
    }

    fn finish(self: Box<Self>) -> Result<Summary, StoreError> {
        self.clock.fetch_add(7, Ordering::Relaxed);
        let path = "nowhere".into();
        Ok(Summary { path, stored_frames: self.next, frames: self.next, stats: Stats::default() })
    }
}

#[test]
fn the_time_of_a_slow_store_is_waiting_for_storage_and_nothing_else() {
    let _deadline = testing::deadline();
    let places = [false, true]
        .into_iter()
        .flat_map(|is_device| [(1, 0), (1, 1), (2, 2), (3, 0)].map(|(t, q)| (is_device, t, q)));
    for (is_device, threads, queue) in places {
        let device = is_device.then(|| Arc::new(Simulated::new()) as Arc<dyn Device>);
        let parameters = Parameters { frames: 8, steps_per_frame: 1, ..parameters() };
        let (progress, interrupt) = (quiet(), Interrupt::default());
        let (store, accounts) = SlowStore::new(&parameters, parameters.cells(), queue);
        let expected = SlowStore::times(&parameters);
        let run = unstored(Start::initial(parameters), threads, &progress, &interrupt, &accounts);
        let outcome = Run { writer: Some(Box::new(store)), queue, device, ..run }.run().unwrap();
        assert_eq!(accounts.times(), expected, "{is_device}, {threads}, {queue}");
        let stats =
            RunStats::default().with_times(&accounts.times(), outcome.summary.map(|s| s.stats).as_ref());
        let verdict = stats.verdict(None);
        assert!(verdict.contains("waiting for storage 1 min 27 s (100 %)"), "{verdict}");
        assert!(verdict.contains("Storage was the limit") && !verdict.contains("other"), "{verdict}");
    }
}

#[test]
fn a_run_that_starts_between_two_frames_gives_the_same_bits() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let p = parameters();
    let whole = folder.path().join("whole.h5");
    let run = unstored(Start::initial(p.clone()), 2, &progress, &interrupt, &accounts);
    Run { writer: Some(writer(&whole, &p, SyncLevel::None, None)), ..run }.run().unwrap();

    for threads in [1, 2, 3] {
        // The state after 73 steps: 50 to the first frame, and 23 of the second.
        let path = folder.path().join(format!("{threads}.h5"));
        let short = Parameters { frames: 1000, steps_per_frame: 73, ..p.clone() };
        let save = Some(Checkpoints::on_interruption(checkpoint::path_of(&path)));
        let run = unstored(Start::initial(short), threads, &progress, &interrupt, &accounts);
        Run { until: 1, checkpoints: save, ..run }.run().unwrap();
        let start = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
        assert_eq!(start.step, 73);

        let start = Start { parameters: p.clone(), ..start };
        assert_eq!(start.frames(), 1);
        let mut file = writer(&path, &p, SyncLevel::None, None);
        file.append(&frames(&whole)[0], Stamp::default()).unwrap();
        let run = unstored(start, threads, &progress, &interrupt, &accounts);
        let outcome = Run { writer: Some(file), ..run }.run().unwrap();
        assert_eq!((outcome.steps, outcome.frames), (77, 2));
        assert_eq!(frames(&path), frames(&whole));
    }
}

#[test]
fn frames_that_are_stored_already_are_computed_and_not_stored_again() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let p = parameters();
    let mut file = writer(&path, &p, SyncLevel::None, None);
    file.append(&vec![7.0; 40 * 33], Stamp::default()).unwrap();
    let run = unstored(Start::initial(p), 2, &progress, &interrupt, &accounts);
    let outcome = Run { writer: Some(file), ..run }.run().unwrap();
    assert_eq!((outcome.frames, outcome.summary.unwrap().stats.frames), (3, 3));
    assert!(frames(&path)[0].iter().all(|&v| v == 7.0));
}

#[test]
fn checkpoints_by_time_are_saved_within_a_frame() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let p = Parameters { steps_per_frame: 1 << 40, ..parameters() };
    let saved = checkpoint::path_of(&path);
    let interrupt = Interrupt::default();
    let (request, checkpoints) = (interrupt.clone(), saved.clone());
    let running = std::thread::spawn(move || {
        let (progress, accounts) = (quiet(), Accounts::default());
        let run = Run {
            writer: Some(writer(&path, &p, SyncLevel::None, None)),
            checkpoints: Some(Checkpoints { path: checkpoints, every: 1, interval: Some(Duration::ZERO) }),
            ..unstored(Start::initial(p), 2, &progress, &interrupt, &accounts)
        };
        run.run().unwrap()
    });
    // The first frame is never complete, so this checkpoint lies within it.
    while !saved.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    request.request();
    let outcome = running.join().unwrap();
    assert!(outcome.interrupted && outcome.frames == 0 && outcome.steps > 0);
    assert_eq!(checkpoint::load(&saved).unwrap().unwrap().step, outcome.steps);
}

#[test]
fn the_first_frame_that_is_not_finite_ends_the_run_and_is_not_stored() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    for (threads, bad) in [(1, f32::NAN), (2, f32::INFINITY), (3, f32::NAN)] {
        let path = folder.path().join(format!("{threads}.h5"));
        let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
        let p = Parameters { steps_per_frame: 2, ..parameters() };
        // The file holds the first frame. The state after it has a bad value in row 20, column 30, and the
        // bad values spread by a cell with every step.
        let (mut u, v) = Start::initial(p.clone()).whole().unwrap();
        u[20 * 33 + 30] = bad;
        let start = Start { parameters: p.clone(), step: 2, fields: Fields::Given { u, v: v.clone() } };
        let mut file = writer(&path, &p, SyncLevel::None, None);
        file.append(&v, Stamp::default()).unwrap();
        let run = unstored(start, threads, &progress, &interrupt, &accounts);
        let outcome = Run { writer: Some(file), ..run }.run().unwrap();
        let NotFinite { frame, step, row, col, .. } = outcome.not_finite.unwrap();
        assert_eq!((frame, step, row, col), (1, 4, 18, 28));
        assert!(!outcome.interrupted && outcome.frames == 0);
        assert_eq!(outcome.summary.unwrap().stored_frames, 1);
    }
}

#[test]
fn frames_that_are_not_finite_are_stored_if_they_are_not_checked() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
    let (mut u, v) = Start::initial(parameters()).whole().unwrap();
    u[7] = f32::NAN;
    let start = Start { parameters: parameters(), step: 0, fields: Fields::Given { u, v } };
    let file = writer(&path, &start.parameters, SyncLevel::None, None);
    let run = unstored(start, 2, &progress, &interrupt, &accounts);
    let outcome = Run { writer: Some(file), check_finite: false, ..run }.run().unwrap();
    assert_eq!((outcome.not_finite, outcome.frames), (None, 3));
    assert!(frames(&path)[2].iter().any(|v| v.is_nan()));
}
