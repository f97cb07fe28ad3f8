//! The run itself, as tasks of the runtime.
//!
//! A sweep is a task: it takes the grid several steps further, in bands of rows that each need as many rows around them. A
//! frame is a host task that hands V to the writer, beside the sweeps that follow. Submission runs a few sweeps ahead
//! of execution, no further, so that an interruption is answered soon.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch::Idle;
use anabranch::prelude::*;
use anabranch_store::{FrameWriter, Summary};
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
    /// Takes the frames; `None` when nothing is stored.
    pub writer: Option<FrameWriter<f32>>,
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
        let Self { start, threads, simd, writer, checkpoints, progress, interrupt } = self;
        let (parameters, first) = (start.parameters.clone(), start.first_frame);
        let (frames, steps) = (parameters.frames, parameters.steps_per_frame);
        let rt = Runtime::builder().threads(threads).build()?;
        let mut grid = Grid::new(&rt, &start, simd)?;
        drop(start);
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
            grid.hand_over("store frame", &store, move |store, u, v| store.frame(frame, u, v))?;
            done += 1;
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

/// The state as buffers, and a second one into which the next sweep goes.
struct Grid<'rt> {
    rt: &'rt Runtime,
    stepper: Stepper,
    edges: Edges,
    now: [Buffer<f32, 2>; 2],
    next: [Buffer<f32, 2>; 2],
    in_flight: VecDeque<Idle>,
    watch: Stopwatch,
}

impl<'rt> Grid<'rt> {
    fn new(rt: &'rt Runtime, start: &Start, simd: Simd) -> Result<Self, Error> {
        let p = &start.parameters;
        let shape = [p.rows, p.cols];
        let filled =
            |field: &[f32]| rt.buffer_from(&ArrayView2::from_shape(shape, field).expect("a field is a grid"));
        Ok(Self {
            rt,
            stepper: Stepper::new(simd, p.constants(), p.edges, shape),
            edges: p.edges,
            now: [filled(&start.u)?.named("u"), filled(&start.v)?.named("v")],
            next: [rt.buffer(shape).named("next u"), rt.buffer(shape).named("next v")],
            in_flight: VecDeque::new(),
            watch: Stopwatch::default(),
        })
    }

    fn advance(&mut self, mut steps: u64) -> Result<(), Error> {
        while steps > 0 {
            let sweep = steps.min(self.stepper.preferred_steps() as u64);
            self.sweep(sweep as usize)?;
            steps -= sweep;
        }
        Ok(())
    }

    /// A few steps at once. Each thread has one band of rows: the more bands, the more rows around them are computed
    /// twice.
    fn sweep(&mut self, steps: usize) -> Result<(), Error> {
        let ([u, v], [next_u, next_v]) = (&self.now, &self.next);
        let around = match self.edges {
            Edges::Periodic => neighborhood([steps, 0]).periodic(),
            Edges::Absorbing | Edges::Clamped => neighborhood([steps, 0]),
        };
        let (stepper, watch) = (self.stepper, self.watch.clone());
        self.rt
            .task("advance")
            .over(u.extent())
            .chunks(self.rt.threads())
            .flush_denormals()
            .read(u, around)
            .read(v, around)
            .write(next_u, one_to_one())
            .write(next_v, one_to_one())
            .kernel(move |tile, (u, v, next_u, next_v)| {
                let _running = watch.start();
                tile.scratch(|scope| {
                    let scratch = scope.slice(stepper.scratch_len(steps));
                    let input = |row: usize| (u.row(row), v.row(row));
                    stepper.advance(tile.rows(), steps, input, &mut Band { u: next_u, v: next_v }, scratch);
                });
            })?;
        std::mem::swap(&mut self.now, &mut self.next);
        self.in_flight.push_back(self.rt.idle());
        if self.in_flight.len() > LEAD
            && let Some(oldest) = self.in_flight.pop_front()
        {
            oldest.wait()?;
        }
        Ok(())
    }

    /// A host task that gets the store and the state as it is now.
    fn hand_over(
        &self,
        name: &'static str,
        store: &HostObject<Store>,
        act: impl FnOnce(&mut Store, &[f32], &[f32]) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let [u, v] = &self.now;
        let whole = "all of a buffer is one slice";
        let task = self.rt.task(name).once().read(u, all()).read(v, all()).effect(store, sequential());
        task.host(|(u, v, store)| {
            store.timed(|store| act(store, u.as_slice().expect(whole), v.as_slice().expect(whole)))
        })?;
        Ok(())
    }
}

/// The rows of the next state that one call of the kernel makes.
struct Band<'a> {
    u: &'a mut WriteView<f32, 2>,
    v: &'a mut WriteView<f32, 2>,
}

impl Output for Band<'_> {
    fn rows_mut(&mut self, row: usize) -> (&mut [f32], &mut [f32]) {
        (self.u.row_mut(row), self.v.row_mut(row))
    }
}

/// Where frames and checkpoints go.
struct Store {
    parameters: Parameters,
    writer: Option<FrameWriter<f32>>,
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

    /// Stores a frame, and where one is due a checkpoint behind it.
    fn frame(&mut self, frame: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        let done = frame + 1;
        if let (Some(writer), Some(checkpoints)) = (&mut self.writer, &self.checkpoints) {
            let stamp = output::stamp(&self.parameters, frame);
            if checkpoints.are_due(done) && done < self.parameters.frames {
                // The frame has to be in the file before the checkpoint says that it is.
                writer.store(v, stamp)?;
                checkpoint::save(&checkpoints.path, &self.parameters, done, u, v)?;
            } else {
                writer.append(v, stamp)?;
            }
        }
        self.progress.done(done);
        Ok(())
    }

    /// Completes the file, and leaves a checkpoint if there is more to come.
    fn finish(&mut self, done: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
        let (Some(writer), Some(checkpoints)) = (self.writer.take(), &self.checkpoints) else {
            return Ok(());
        };
        self.summary = Some(writer.finish()?);
        match done == self.parameters.frames {
            true => checkpoint::remove(&checkpoints.path),
            false => checkpoint::save(&checkpoints.path, &self.parameters, done, u, v),
        }
    }
}

impl Checkpoints {
    fn are_due(&self, done: u64) -> bool {
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
