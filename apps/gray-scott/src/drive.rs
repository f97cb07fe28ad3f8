//! The run itself, as tasks of the runtime.
//!
//! A sweep takes the grid several steps further. It is one task for each band of rows, which needs as many rows around it;
//! so a band can go on as soon as its neighbours are there, and no thread waits for the slowest one. A frame is a host
//! task that writes V straight from its buffer, beside the sweeps that follow: these go to other versions of it, and how
//! many there may be is how far computation runs ahead of storage. Submission runs a few sweeps ahead of execution, no further,
//! so that an interruption is answered soon.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch::grid::split_1d;
use anabranch::prelude::*;
use anabranch_store::{Summary, Writer};
use ndarray::ArrayView2;

use crate::checkpoint;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::kernel::{Output, Simd, Stepper};
use crate::model::Edges;
use crate::output;
use crate::parameters::Parameters;
use crate::progress::Progress;
use crate::start::Start;

/// Sweeps that may be submitted and not yet done.
const LEAD: usize = 8;

/// Bands for each thread, where the grid has rows enough: so that there is something to do while a band waits.
const BANDS_PER_THREAD: usize = 3;

/// A band has at least as many times the rows that it needs around it: those are computed twice.
const ROWS_PER_ROW_AROUND: usize = 10;

/// Where checkpoints go, and when they are written.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The file.
    pub path: PathBuf,
    /// Frames between two checkpoints; 0 for one when the run is interrupted only.
    pub every: u64,
}

/// A run that is about to go.
pub struct Drive<'a> {
    /// The state to start from, and what to run.
    pub start: Start,
    /// Threads to compute with.
    pub threads: usize,
    /// Instruction set to compute with.
    pub simd: Simd,
    /// Frames that may wait for storage while the next ones are computed.
    pub queue: usize,
    /// Takes the frames; `None` when nothing is stored.
    pub writer: Option<Writer<f32>>,
    /// `None` when nothing is stored.
    pub checkpoints: Option<Checkpoints>,
    /// Told of every frame.
    pub progress: &'a Progress,
    /// Asked after every frame.
    pub interrupt: &'a Interrupt,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Driven {
    /// When the first step began.
    pub began: Instant,
    /// Frames that were computed.
    pub frames: u64,
    /// Time in which the simulation advanced.
    pub compute: Duration,
    /// Time in which it stood still for storage: a full queue, a checkpoint, the last frames.
    pub waiting: Duration,
    /// Whether it ended early, on request.
    pub interrupted: bool,
    /// What was stored; `None` when nothing was to be.
    pub summary: Option<Summary>,
}

impl Drive<'_> {
    /// Runs to the last frame, or to an interruption. The state behind an interruption is kept in a checkpoint;
    /// when the run is complete there is none left.
    ///
    /// # Errors
    /// When a frame or a checkpoint cannot be stored. What was stored before stays.
    pub fn run(self) -> Result<Driven, Error> {
        let Self { start, threads, simd, queue, writer, checkpoints, progress, interrupt } = self;
        let (parameters, first) = (start.parameters.clone(), start.first_frame);
        let (frames, steps) = (parameters.frames, parameters.steps_per_frame);
        let rt =
            Runtime::builder().threads(threads).lead(LEAD * BANDS_PER_THREAD * threads + queue).build()?;
        let mut grid = Grid::new(&rt, &start, simd, queue)?;
        drop(start);
        let due = checkpoints.clone().filter(|_| writer.is_some());
        let store = Store {
            parameters,
            writer,
            checkpoints,
            progress: progress.clone(),
            summary: None,
            busy: Duration::ZERO,
        };
        let store = rt.host_object(store);

        let began = Instant::now();
        let mut done = first;
        while done < frames && !interrupt.requested() {
            grid.advance(steps)?;
            let frame = done;
            grid.store_frame(&store, frame)?;
            done += 1;
            if done < frames && due.as_ref().is_some_and(|due| due.at(done)) {
                grid.hand_over("checkpoint", &store, move |store, u, v| store.checkpoint(done, u, v))?;
            }
            // A full disk ends the run here and not after the last frame.
            rt.check()?;
        }
        grid.hand_over("finish", &store, move |store, u, v| store.finish(done, u, v))?;
        let compute = grid.watch.clone();
        drop(grid);
        let store = rt.drain(store.capture())?;
        let compute = compute.total();
        let waiting = began.elapsed().saturating_sub(compute).min(store.busy);
        Ok(Driven {
            began,
            frames: done - first,
            compute,
            waiting,
            interrupted: done < frames,
            summary: store.summary,
        })
    }
}

const WHOLE: &str = "all of a buffer is one slice";

/// The number of bands of rows. A thread alone never waits for another.
fn bands(rows: usize, stepper: &Stepper, threads: usize) -> usize {
    if threads == 1 {
        return 1;
    }
    (rows / (ROWS_PER_ROW_AROUND * stepper.preferred_steps())).clamp(threads, BANDS_PER_THREAD * threads)
}

/// The state as buffers, and those into which the next sweeps go.
struct Grid<'rt> {
    rt: &'rt Runtime,
    stepper: Stepper,
    edges: Edges,
    bands: Vec<GridBox<2>>,
    u: Buffer<f32, 2>,
    v: Buffer<f32, 2>,
    next_u: Buffer<f32, 2>,
    /// V between frames; the two take turns.
    next_v: [Buffer<f32, 2>; 2],
    /// V as frames; the two take turns, since a sweep may go from one frame straight to the next. Their versions are the
    /// output queue: one frame is computed and one is stored while the others wait.
    frames: [Buffer<f32, 2>; 2],
    watch: Stopwatch,
}

impl<'rt> Grid<'rt> {
    fn new(rt: &'rt Runtime, start: &Start, simd: Simd, queue: usize) -> Result<Self, Error> {
        let p = &start.parameters;
        let shape = [p.rows, p.cols];
        let stepper = Stepper::new(simd, p.constants(), p.edges, shape);
        let filled =
            |field: &[f32]| rt.buffer_from(&ArrayView2::from_shape(shape, field).expect("a field is a grid"));
        let empty = |name: String| rt.buffer(shape).named(name);
        Ok(Self {
            rt,
            stepper,
            edges: p.edges,
            bands: split_1d(&GridBox::full(shape), bands(p.rows, &stepper, rt.threads()), 1),
            u: filled(&start.u)?.named("u"),
            v: filled(&start.v)?.named("v"),
            next_u: empty("next u".into()),
            next_v: [1, 2].map(|i| empty(format!("next v {i}"))),
            frames: [1, 2].map(|i| empty(format!("frames {i}")).with_versions((queue + 2).div_ceil(2))),
            watch: Stopwatch::default(),
        })
    }

    /// To the next frame.
    fn advance(&mut self, mut steps: u64) -> Result<(), Error> {
        while steps > 0 {
            // Sweeps as equal as possible: of 17 steps, 9 and 8 and not 16 and 1.
            let sweeps = steps.div_ceil(self.stepper.preferred_steps() as u64);
            let sweep = steps.div_ceil(sweeps);
            steps -= sweep;
            let to = if steps == 0 {
                self.frames.swap(0, 1);
                // All bands together overwrite it; where its last frame is still being stored, they go elsewhere.
                self.frames[0].discard();
                self.frames[0].clone()
            } else {
                self.next_v.swap(0, 1);
                self.next_v[0].clone()
            };
            self.sweep(sweep as usize, to)?;
        }
        Ok(())
    }

    /// A few steps at once, with V going to `next_v`.
    fn sweep(&mut self, steps: usize, next_v: Buffer<f32, 2>) -> Result<(), Error> {
        let around = match self.edges {
            Edges::Periodic => neighborhood([steps, 0]).periodic(),
            Edges::Absorbing | Edges::Clamped => neighborhood([steps, 0]),
        };
        for &band in &self.bands {
            let (stepper, watch) = (self.stepper, self.watch.clone());
            self.rt
                .task("advance")
                .over(band)
                .chunks(1)
                .flush_denormals()
                .read(&self.u, around)
                .read(&self.v, around)
                .write(&self.next_u, one_to_one())
                .write(&next_v, one_to_one())
                .kernel(move |tile, (u, v, next_u, next_v)| {
                    let _running = watch.start();
                    tile.scratch(|scope| {
                        let scratch = scope.slice(stepper.scratch_len(steps));
                        let input = |row: usize| (u.row(row), v.row(row));
                        stepper.advance(
                            tile.rows(),
                            steps,
                            input,
                            &mut Band { u: next_u, v: next_v },
                            scratch,
                        );
                    });
                })?;
        }
        std::mem::swap(&mut self.u, &mut self.next_u);
        self.v = next_v;
        Ok(())
    }

    /// A host task that stores V as it is now.
    fn store_frame(&self, store: &HostObject<Store>, frame: u64) -> Result<(), Error> {
        let task = self.rt.task("store frame").once().read(&self.v, all()).effect(store, sequential());
        task.host(move |(v, store)| store.frame(frame, v.as_slice().expect(WHOLE)))?;
        Ok(())
    }

    /// A host task that gets the store and the state as it is now.
    fn hand_over(
        &self,
        name: &'static str,
        store: &HostObject<Store>,
        act: impl FnOnce(&mut Store, &[f32], &[f32]) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let task =
            self.rt.task(name).once().read(&self.u, all()).read(&self.v, all()).effect(store, sequential());
        task.host(|(u, v, store)| {
            store.timed(|store| act(store, u.as_slice().expect(WHOLE), v.as_slice().expect(WHOLE)))
        })?;
        Ok(())
    }
}

/// The rows of the next state that one call of the kernel makes.
struct Band<'a> {
    u: &'a mut WriteView<'a, f32, 2>,
    v: &'a mut WriteView<'a, f32, 2>,
}

impl Output for Band<'_> {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        (self.u.row_mut(row), self.v.row_mut(row))
    }
}

/// Where frames and checkpoints go.
struct Store {
    parameters: Parameters,
    writer: Option<Writer<f32>>,
    checkpoints: Option<Checkpoints>,
    progress: Progress,
    summary: Option<Summary>,
    /// Time spent on frames and checkpoints: where nothing is computed meanwhile, the run waits for storage.
    busy: Duration,
}

impl Store {
    fn timed<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let result = act(self);
        self.busy += began.elapsed();
        result
    }

    /// Stores a frame, from the buffer itself.
    fn frame(&mut self, frame: u64, v: &[f32]) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.append(v, output::stamp(&self.parameters, frame))?;
        }
        self.progress.done(frame + 1);
        Ok(())
    }

    /// Saves the state behind the first `done` frames, which are stored.
    fn checkpoint(&mut self, done: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        match &self.checkpoints {
            Some(checkpoints) => checkpoint::save(&checkpoints.path, &self.parameters, done, u, v),
            None => Ok(()),
        }
    }

    /// Completes the file, and leaves a checkpoint if there is more to come.
    fn finish(&mut self, done: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.summary = Some(writer.finish()?);
        match &self.checkpoints {
            Some(checkpoints) if done == self.parameters.frames => checkpoint::remove(&checkpoints.path),
            _ => self.checkpoint(done, u, v),
        }
    }
}

impl Checkpoints {
    /// Whether one is due behind the first `done` frames.
    fn at(&self, done: u64) -> bool {
        self.every > 0 && done.is_multiple_of(self.every)
    }
}

/// Measures for how long something ran, on whichever and however many threads.
#[derive(Clone, Debug, Default)]
struct Stopwatch(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    threads: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    /// The watch runs until the guard is dropped, and the others that exist then.
    fn start(&self) -> impl Drop + use<> {
        struct Guard(Stopwatch);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.count(|running| running.threads -= 1);
            }
        }
        self.count(|running| running.threads += 1);
        Guard(self.clone())
    }

    fn count(&self, change: impl FnOnce(&mut Running)) {
        let mut running = self.0.lock().expect("counting does not panic");
        change(&mut running);
        match (running.threads, running.since) {
            (0, Some(since)) => {
                running.total += since.elapsed();
                running.since = None;
            }
            (1.., None) => running.since = Some(Instant::now()),
            _ => {}
        }
    }

    fn total(&self) -> Duration {
        self.0.lock().expect("counting does not panic").total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watch_runs_while_anyone_is_at_work() {
        let watch = Stopwatch::default();
        let (first, second) = (watch.start(), watch.start());
        drop(first);
        assert_eq!(watch.total(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        drop(second);
        let total = watch.total();
        assert!(total >= Duration::from_millis(2));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(watch.total(), total);
    }
}
