//! A run of the simulation, as tasks of the runtime.
//!
//! # Sweeps
//!
//! A sweep advances the grid by several steps. It is one task for each band of rows, which reads its band and
//! as many rows around it as it has steps. So a band can go on as soon as its neighbours are done, and no
//! thread waits for the slowest one.
//!
//! # Frames
//!
//! A frame is a host task that writes V straight from its buffer to the file, beside the sweeps that follow.
//! Those write other versions of the buffer, so a frame is never copied. The bound of the versions is the
//! output queue: it limits how far the computation runs ahead of storage.
//!
//! # Interruption
//!
//! The main thread submits a few sweeps ahead of their execution and no further, so it sees an interruption
//! soon. It then stops submitting, and the last host task completes the file and saves a checkpoint.

mod grid;
mod interrupt;
mod start;
mod stopwatch;
mod storage;

pub use interrupt::Interrupt;
pub use start::Start;
pub use storage::Checkpoints;

use crate::{error::Error, kernel::Simd, report::progress::Progress};
use anabranch::prelude::*;
use anabranch_store::{Summary, Writer};
use grid::{BANDS_PER_THREAD, Grid};
use std::time::{Duration, Instant};
use storage::Storage;

/// Sweeps that may be submitted and not yet done.
const SWEEPS_IN_FLIGHT: usize = 8;

/// A run of the simulation, ready to start.
pub struct Run<'a> {
    /// The state to start from, and the parameters.
    pub start: Start,
    /// Threads to compute with.
    pub threads: usize,
    /// Instruction set to compute with.
    pub simd: Simd,
    /// Frames that may wait for storage while the next ones are computed.
    pub queue: usize,
    /// The writer of the output file; `None` to store nothing.
    pub writer: Option<Writer<f32>>,
    /// The checkpoint of the run; `None` to save none.
    pub checkpoints: Option<Checkpoints>,
    /// Shows every stored frame.
    pub progress: &'a Progress,
    /// Stops the run after the current frame when it is requested.
    pub interrupt: &'a Interrupt,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The time at which the first step began.
    pub began: Instant,
    /// Frames that this run computed.
    pub frames: u64,
    /// Time in which the simulation advanced.
    pub compute: Duration,
    /// Time in which it waited for storage: a full queue, a checkpoint, the last frames.
    pub waiting: Duration,
    /// Whether the run ended early, on request.
    pub interrupted: bool,
    /// The result of the writer; `None` without one.
    pub summary: Option<Summary>,
}

impl Run<'_> {
    /// Runs to the last frame, or to an interruption. An interrupted run saves its state in a checkpoint; a
    /// complete run removes the checkpoint.
    ///
    /// # Errors
    /// When a frame or a checkpoint cannot be stored. The frames stored before stay.
    pub fn run(self) -> Result<RunOutcome, Error> {
        let Self { start, threads, simd, queue, writer, checkpoints, progress, interrupt } = self;
        let (parameters, first) = (start.parameters.clone(), start.first_frame);
        let (frames, steps) = (parameters.frames, parameters.steps_per_frame);
        let rt = Runtime::builder()
            .threads(threads)
            .max_in_flight(SWEEPS_IN_FLIGHT * BANDS_PER_THREAD * threads + queue)
            .build()?;
        let mut grid = Grid::new(&rt, &start, simd, queue)?;
        drop(start);
        let due = checkpoints.clone().filter(|_| writer.is_some());
        let storage = rt.host_object(Storage::new(parameters, writer, checkpoints, progress.clone()));

        let began = Instant::now();
        let mut done = first;
        while done < frames && !interrupt.requested() {
            grid.advance(steps)?;
            let frame = done;
            grid.store_frame(&storage, frame)?;
            done += 1;
            if done < frames && due.as_ref().is_some_and(|due| due.is_due(done)) {
                grid.with_state("checkpoint", &storage, move |storage, u, v| storage.checkpoint(done, u, v))?;
            }
            // An error of a task, such as a full disk, ends the run here and not after the last frame.
            rt.check()?;
        }
        grid.with_state("finish", &storage, move |storage, u, v| storage.finish(done, u, v))?;
        let compute = grid.watch.clone();
        drop(grid);
        let storage = rt.drain(storage.capture())?;
        let compute = compute.total();
        let waiting = began.elapsed().saturating_sub(compute).min(storage.busy);
        Ok(RunOutcome {
            began,
            frames: done - first,
            compute,
            waiting,
            interrupted: done < frames,
            summary: storage.summary,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parameters::Parameters, report::progress::Mode};
    use anabranch_store::{FileOptions, SyncLevel};

    #[test]
    fn time_in_which_storage_alone_is_at_work_counts_as_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let parameters = Parameters { rows: 4, cols: 4, frames: 20, ..Parameters::default() };
        let options = FileOptions::new(folder.path().join("run.h5"))
            .frames(20)
            .frame_shape(&[4, 4])
            .sync(SyncLevel::Frame);
        let run = Run {
            start: Start::initial(parameters),
            threads: 1,
            simd: Simd::detect(),
            queue: 0,
            writer: Some(options.create().unwrap()),
            checkpoints: None,
            progress: &Progress::new(20, Mode::Quiet, |_, _| String::new()),
            interrupt: &Interrupt::default(),
        };
        let RunOutcome { waiting, compute, summary, .. } = run.run().unwrap();
        let writing = summary.unwrap().stats.writing;
        assert!(waiting + compute >= writing, "{waiting:?} + {compute:?} < {writing:?}");
    }
}
