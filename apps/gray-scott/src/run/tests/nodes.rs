//! Tests of whole runs on several nodes, in this process.

use super::*;
use anabranch::{Error as RuntimeError, local_nodes};
use anabranch_store::{PartWriter, Writer};
use parking_lot::Mutex;
use std::fs;

pub(super) fn parameters(rows: usize) -> Parameters {
    Parameters { rows, cols: 17, frames: 5, steps_per_frame: 11, noise: Some(3), ..Parameters::default() }
}

pub(super) fn options(path: &Path, p: &Parameters, sync: SyncLevel, compress: Option<u8>) -> FileOptions {
    let options = FileOptions::new(path).frames(p.frames).frame_shape(&[p.rows, p.cols]).stamps(true);
    options.sync(sync).compress(compress)
}

/// A run on each of these nodes, with 2 frames in the queue.
#[derive(Clone)]
pub(super) struct Nodes {
    pub(super) count: u16,
    pub(super) threads: usize,
    pub(super) start: Start,
    /// The device of a node.
    pub(super) device: fn(u16) -> Option<Arc<dyn Device>>,
    /// Polls by which messages are delayed, and a seed.
    pub(super) delays: (u32, u64),
    /// The node that is interrupted before it starts.
    pub(super) interrupted: Option<u16>,
    /// The frames to reach.
    pub(super) until: u64,
    pub(super) checkpoints: Option<Checkpoints>,
    pub(super) check_finite: bool,
}

impl Nodes {
    /// Nodes of one thread each.
    pub(super) fn new(count: u16, p: &Parameters) -> Self {
        Self {
            count,
            threads: 1,
            start: Start::initial(p.clone()),
            device: |_| None,
            delays: (0, 0),
            interrupted: None,
            until: p.frames,
            checkpoints: None,
            check_finite: true,
        }
    }

    /// Stores the run with the writer, or nowhere. `open` opens the part of a node.
    fn run(
        &self,
        writer: Option<Writer<f32>>,
        open: impl Fn(u16) -> FrameOutput + Sync,
    ) -> Vec<Result<RunOutcome, Error>> {
        let writer = Mutex::new(writer);
        let (progress, accounts) = (quiet(), Accounts::default());
        let interrupt = Interrupt::default();
        let builder = self.prepare(0, &progress, &interrupt, &accounts).builder();
        let nodes = local_nodes(self.count).builder(builder).delays(self.delays.0, self.delays.1);
        let results = nodes.run(|rt| {
            let (accounts, interrupt) = (Accounts::default(), Interrupt::default());
            if self.interrupted == Some(rt.node()) {
                interrupt.request();
            }
            let writer = if rt.node() == 0 { writer.lock().take() } else { None };
            let writer = writer.map(|writer| Box::new(writer) as Box<dyn FrameSink>);
            let prepared = self.prepare(rt.node(), &progress, &interrupt, &accounts);
            let run = Run { writer, frames: open(rt.node()), ..prepared };
            let outcome = run.run_on(rt);
            Ok::<_, RuntimeError>((outcome, accounts.updates()))
        });
        let (outcomes, updates): (Vec<_>, Vec<_>) = results.into_iter().map(|result| result.unwrap()).unzip();
        if let Ok(outcome) = &outcomes[0] {
            let cells = self.start.parameters.cells();
            assert_eq!(updates.iter().sum::<u64>(), outcome.steps * cells, "each node counts its cells");
        }
        outcomes
    }

    fn prepare<'a>(
        &self,
        node: u16,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
        accounts: &'a Accounts,
    ) -> Run<'a> {
        Run {
            start: self.start.clone(),
            until: self.until,
            threads: self.threads,
            simd: Simd::detect(),
            device: (self.device)(node),
            queue: 2,
            check_finite: self.check_finite,
            writer: None,
            frames: FrameOutput::Nowhere,
            checkpoints: self.checkpoints.clone(),
            progress,
            interrupt,
            accounts,
        }
    }

    /// Stores the run of one process in a new file.
    pub(super) fn store_alone(&self, path: &Path, compress: Option<u8>) -> Result<RunOutcome, Error> {
        let (progress, interrupt, accounts) = (quiet(), Interrupt::default(), Accounts::default());
        let writer = options(path, &self.start.parameters, SyncLevel::None, compress);
        let writer = writer.force(true).create::<f32>().unwrap();
        let run = self.prepare(0, &progress, &interrupt, &accounts);
        Run { writer: Some(Box::new(writer)), frames: FrameOutput::Whole, ..run }.run()
    }

    /// Stores the run in a new file.
    pub(super) fn store(
        &self,
        path: &Path,
        sync: SyncLevel,
        compress: Option<u8>,
    ) -> Vec<Result<RunOutcome, Error>> {
        let options = options(path, &self.start.parameters, sync, compress);
        self.store_in(path, options.create::<f32>().unwrap())
    }

    /// Stores the run with a writer to the file at this path.
    pub(super) fn store_in(&self, path: &Path, writer: Writer<f32>) -> Vec<Result<RunOutcome, Error>> {
        let (announcement, first) = (writer.announce(), writer.next_frame());
        self.run(Some(writer), |_| match &announcement {
            None => FrameOutput::Whole,
            Some(announcement) => {
                let writer = PartWriter::open(path, announcement).unwrap();
                FrameOutput::Parts(FramePart { writer, first })
            }
        })
    }
}

#[test]
fn several_nodes_write_the_file_of_one_process() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (one, on_nodes) = (folder.path().join("one.h5"), folder.path().join("nodes.h5"));
    let levels = [SyncLevel::None, SyncLevel::End, SyncLevel::Frame];
    // 13 rows on 4 nodes, and more nodes than rows.
    for (case, (rows, compress)) in [(13, None), (3, None), (40, None), (13, Some(4))].into_iter().enumerate()
    {
        let p = parameters(rows);
        Nodes::new(1, &p).store_alone(&one, compress).unwrap();
        for count in [1, 2, 3, 4, 7] {
            let threads = 1 + usize::from(count) % 2;
            let nodes = Nodes { threads, delays: (3, case as u64), ..Nodes::new(count, &p) };
            let sync = levels[usize::from(count) % 3];
            for outcome in nodes.store(&on_nodes, sync, compress) {
                let outcome = outcome.unwrap();
                assert_eq!((outcome.steps, outcome.interrupted), (p.steps(), false));
            }
            assert!(
                fs::read(&one).unwrap() == fs::read(&on_nodes).unwrap(),
                "{rows} rows, {compress:?}, {count} nodes"
            );
            fs::remove_file(&on_nodes).unwrap();
        }
        assert_eq!(frames(&one).len(), 5);
    }
}

#[test]
fn one_node_that_is_interrupted_stops_all_behind_the_same_sweep() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let p = Parameters { frames: 20_000, ..parameters(13) };
    for (count, interrupted) in [(2, 1), (3, 0), (4, 2)] {
        let path = folder.path().join(format!("{count}.h5"));
        let nodes = Nodes { interrupted: Some(interrupted), ..Nodes::new(count, &p) };
        let outcomes = nodes.store(&path, SyncLevel::None, None);
        let outcomes: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
        let steps = outcomes[0].steps;
        assert!(outcomes.iter().all(|outcome| outcome.interrupted && outcome.steps == steps), "{outcomes:?}");
        let stored = Reader::open(&path).unwrap().stored_frames().unwrap();
        assert_eq!((stored, outcomes[0].frames), (steps / 11, stored));
    }
}

#[test]
fn a_frame_that_is_not_finite_stops_all_nodes_with_the_same_place() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    for (count, compress) in [(1, None), (2, None), (4, None), (3, Some(1))] {
        let path = folder.path().join(format!("{count}.h5"));
        let p = Parameters { frames: 40, ..parameters(13) };
        let mut nodes = Nodes::new(count, &p);
        // Row 6 of the state after 2 steps; it spreads by a cell with every step.
        let (mut u, v) = nodes.start.whole().unwrap();
        u[6 * 17 + 8] = f32::NAN;
        nodes.start.fields = Fields::Given { u, v };
        let outcomes = nodes.store(&path, SyncLevel::None, compress);
        let places: Vec<_> =
            outcomes.into_iter().map(|outcome| outcome.unwrap().not_finite.unwrap()).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        assert_eq!((places[0].frame, places[0].step), (0, 11));
        assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 0);
    }
}

#[test]
fn a_node_that_cannot_store_its_rows_fails_the_run_on_all_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let p = parameters(40);
    let writer = options(&path, &p, SyncLevel::None, None).create::<f32>().unwrap();
    let announcement = writer.announce().unwrap();
    let other = folder.path().join("other.h5");
    // Node 1 has the layout of a file of two frames.
    let two = options(&other, &Parameters { frames: 2, ..p.clone() }, SyncLevel::None, None);
    let two = two.create::<f32>().unwrap();
    let short = two.announce().unwrap();
    let outcomes = Nodes::new(3, &p).run(Some(writer), |node| {
        let (path, announcement) = if node == 1 { (&other, &short) } else { (&path, &announcement) };
        FrameOutput::Parts(FramePart { writer: PartWriter::open(path, announcement).unwrap(), first: 0 })
    });
    for (node, outcome) in outcomes.into_iter().enumerate() {
        let error = crate::error::describe(&outcome.unwrap_err());
        assert!(error.contains("was created for 2 frames"), "node {node}: {error}");
    }
    // What counts is complete.
    assert!(Reader::open(&path).unwrap().stored_frames().unwrap() <= 2);
}

#[test]
fn a_checkpoint_of_several_nodes_is_that_of_one_process_and_goes_on_with_another_number_of_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let [whole, one, path] = ["whole.h5", "one.h5", "run.h5"].map(|name| folder.path().join(name));
    let [saved_by_one, saved] = ["one.checkpoint", "run.checkpoint"].map(|name| folder.path().join(name));
    let p = parameters(13);
    let at = |path: &Path| Some(Checkpoints { path: path.into(), every: 2, interval: None });
    Nodes::new(1, &p).store(&whole, SyncLevel::None, None);
    let alone = Nodes { until: 3, checkpoints: at(&saved_by_one), ..Nodes::new(1, &p) };
    alone.store(&one, SyncLevel::None, None);
    for (count, others) in [(2, 1), (1, 4), (4, 3), (3, 7)] {
        let nodes = Nodes { until: 3, checkpoints: at(&saved), delays: (2, 5), ..Nodes::new(count, &p) };
        nodes.store(&path, SyncLevel::None, None).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        // After the third frame, because the run is not complete.
        assert!(fs::read(&saved).unwrap() == fs::read(&saved_by_one).unwrap(), "{count} nodes");

        let start = Start { parameters: p.clone(), step: 33, fields: Fields::Saved(saved.clone()) };
        let nodes = Nodes { start, checkpoints: at(&saved), ..Nodes::new(others, &p) };
        let writer = options(&path, &p, SyncLevel::None, None).resume::<f32>(3).unwrap();
        nodes.store_in(&path, writer).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap(), "{count} nodes, then {others}");
        fs::remove_file(&path).unwrap();
        // Nothing is left beside the files.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}

#[test]
fn a_damaged_checkpoint_is_an_error_on_all_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (path, saved) = (folder.path().join("run.h5"), folder.path().join("run.checkpoint"));
    let p = parameters(13);
    let (u, v) = Start::initial(p.clone()).whole().unwrap();
    crate::files::checkpoint::save(&saved, &p, 11, &u, &v).unwrap();
    let mut bytes = fs::read(&saved).unwrap();
    let row: Vec<u8> = v[17..34].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let second = bytes.windows(row.len()).position(|window| window == row).unwrap();
    bytes[second] ^= 1;
    fs::write(&saved, bytes).unwrap();
    for count in [1, 3] {
        let start = Start { parameters: p.clone(), step: 11, fields: Fields::Saved(saved.clone()) };
        for outcome in (Nodes { start, ..Nodes::new(count, &p) }).store(&path, SyncLevel::None, None) {
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains("the checkpoint's array \"v\" is damaged"), "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_frame_that_counts_has_the_rows_of_all_nodes() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.h5"), folder.path().join("run.h5"));
    let p = Parameters { rows: 300, cols: 900, frames: 30, steps_per_frame: 1, ..parameters(0) };
    Nodes::new(1, &p).store(&whole, SyncLevel::None, None);
    let expected = frames(&whole);
    let writer = options(&path, &p, SyncLevel::None, None).create::<f32>().unwrap();
    std::thread::scope(|scope| {
        // Looks at each frame as soon as it counts.
        scope.spawn(|| {
            let reader = Reader::open(&path).unwrap();
            for (frame, expected) in expected.iter().enumerate() {
                while reader.stored_frames().unwrap() <= frame as u64 {
                    std::thread::yield_now();
                }
                let found = reader.read_frame::<f32>(frame as u64).unwrap();
                assert!(found.as_slice().unwrap() == expected, "frame {frame} counts and is not complete");
            }
        });
        let nodes = Nodes { delays: (3, 1), ..Nodes::new(3, &p) };
        nodes.store_in(&path, writer).into_iter().for_each(|outcome| drop(outcome.unwrap()));
    });
}
