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
//! The main thread submits a few sweeps ahead of their execution and no further (`pace.rs`), so it sees an
//! interruption soon, also within a long frame. It then stops submitting, and the last host task completes the
//! file and saves a checkpoint. The same happens, without a checkpoint, when a frame is not finite.
//!
//! # Several nodes
//!
//! Each band is on one node, and neighbouring bands mostly are on the same. Node 0 stores the frames. Nothing that
//! the nodes submit depends on time, so sweeps are not cut, and there are neither interruptions nor checkpoints. The
//! first frame that is not finite fails its task, which ends the run on all nodes.

mod finite;
mod grid;
mod interrupt;
mod nodes;
mod pace;
mod storage;
mod times;

pub(crate) use grid::memory;
pub use interrupt::Interrupt;
pub use storage::{Checkpoints, FrameSink};
pub use times::{Accounts, Computing, Stored, Storing, Times};

use crate::{error::Error, kernel::Simd, not_finite::NotFinite, report::progress::Progress, start::Start};
use anabranch::prelude::*;
use anabranch_store::Summary;
use grid::{BANDS_PER_THREAD, Grid};
use pace::Pace;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use storage::Storage;

/// Sweeps that may be submitted and not yet done.
const SWEEPS_IN_FLIGHT: usize = 8;

/// The time between two looks at the work in flight when there is enough of it.
const LOOK: Duration = Duration::from_millis(1);

/// A run of the simulation, ready to start.
pub struct Run<'a> {
    /// The state to start from, and the parameters.
    pub start: Start,
    /// The number of frames to reach, of those in the parameters.
    pub until: u64,
    /// Threads to compute with.
    pub threads: usize,
    /// Instruction set to compute with.
    pub simd: Simd,
    /// Frames that may wait for storage while the next ones are computed.
    pub queue: usize,
    /// Whether the first frame that is not finite ends the run.
    pub check_finite: bool,
    /// The writer of the output file; `None` to store nothing. It holds the frames before the start and may hold
    /// more, which are not written again.
    pub writer: Option<Box<dyn FrameSink>>,
    /// The checkpoint of the run; `None` to save none.
    pub checkpoints: Option<Checkpoints>,
    /// Shows the steps that are computed and the frames that are stored.
    pub progress: &'a Progress,
    /// Stops the run after the sweeps that are in flight.
    pub interrupt: &'a Interrupt,
    /// Keeps the accounts of the run's time.
    pub accounts: &'a Accounts,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Steps that this run computed.
    pub steps: u64,
    /// Frames that this run completed.
    pub frames: u64,
    /// Whether the run ended early, on request.
    pub interrupted: bool,
    /// The value that ended the run early because it is not finite.
    pub not_finite: Option<NotFinite>,
    /// The result of the writer; `None` without one.
    pub summary: Option<Summary>,
}

impl Run<'_> {
    /// Runs to the last frame, to an interruption, or to the first frame that is not finite. An interrupted run
    /// saves its state in a checkpoint.
    ///
    /// # Errors
    /// When a frame or a checkpoint cannot be stored. The frames stored before stay.
    pub fn run(self) -> Result<RunOutcome, Error> {
        let Self { start, threads, accounts, .. } = self;
        let (first, cells) = (start.step, start.parameters.cells());
        let rt = Runtime::builder()
            .threads(threads)
            .max_in_flight(SWEEPS_IN_FLIGHT * BANDS_PER_THREAD * threads + self.queue)
            .build()?;
        let grid = Grid::new(&rt, &start, self.simd, self.queue, self.check_finite, accounts)?;
        let parameters = start.parameters.clone();
        // The fields are in buffers now.
        drop(start);
        let (last, steps_per_frame) = (self.until * parameters.steps_per_frame, parameters.steps_per_frame);
        let stop = Arc::new(AtomicBool::new(false));
        let checkpoints = self.checkpoints.clone().filter(|_| self.writer.is_some());
        let storage = rt.host_object(Storage::new(
            parameters,
            self.writer,
            self.checkpoints,
            self.progress.clone(),
            accounts.clone(),
            self.check_finite,
            (!grid.is_on_several_nodes()).then(|| Arc::clone(&stop)),
        ));

        accounts.begin();
        let mut submission = Submission {
            rt: &rt,
            grid,
            storage: &storage,
            checkpoints,
            checkpoint: None,
            checkpointed: Instant::now(),
            pace: Pace::new(accounts, cells),
            progress: self.progress,
            first,
            step: first,
            last,
            steps_per_frame,
        };
        while submission.step < last && !self.interrupt.requested() && !stop.load(Ordering::Relaxed) {
            if !submission.advance()? {
                std::thread::sleep(LOOK);
            }
        }
        let step = submission.finish()?;
        let storage = rt.drain(storage.capture())?;
        Ok(RunOutcome {
            steps: step - first,
            frames: storage.frames,
            interrupted: step < last && storage.not_finite.is_none(),
            not_finite: storage.not_finite,
            summary: storage.summary,
        })
    }
}

/// Submits the tasks of a run, in order.
struct Submission<'a> {
    rt: &'a Runtime,
    grid: Grid<'a>,
    storage: &'a HostObject<Storage>,
    checkpoints: Option<Checkpoints>,
    /// The last checkpoint, and when it was submitted.
    checkpoint: Option<TaskHandle>,
    checkpointed: Instant,
    pace: Pace,
    progress: &'a Progress,
    first: u64,
    /// The steps to the state after all submitted sweeps.
    step: u64,
    last: u64,
    steps_per_frame: u64,
}

impl Submission<'_> {
    /// Submits the next sweep, and what is due after it, if the sweeps in flight are few enough.
    fn advance(&mut self) -> Result<bool, Error> {
        // An error of a task, such as a full disk, ends the run here and not after the last frame.
        self.rt.check()?;
        self.progress.steps(self.first + self.pace.done());
        let left = self.steps_per_frame - self.step % self.steps_per_frame;
        let most = self.grid.preferred_steps();
        let several_nodes = self.grid.is_on_several_nodes();
        let steps = if several_nodes { pace::equal(left, most) } else { self.pace.steps(left, most) };
        // With several nodes, the limit of tasks in flight is the only one.
        if !several_nodes && !self.pace.allows(steps) {
            return Ok(false);
        }
        self.grid.sweep(steps, steps == left)?;
        self.pace.submit(steps);
        self.step += steps;
        if steps == left {
            let frame = self.step / self.steps_per_frame - 1;
            self.grid.store_frame(self.storage, frame, self.step)?;
        }
        if self.checkpoint_is_due() {
            self.submit_checkpoint()?;
        }
        Ok(true)
    }

    fn checkpoint_is_due(&self) -> bool {
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| self.step < self.last) else {
            return false;
        };
        let (frames, rest) = (self.step / self.steps_per_frame, self.step % self.steps_per_frame);
        if rest == 0 && checkpoints.is_due_at(frames) {
            return true;
        }
        // A checkpoint that takes longer than the time between two is not joined by another one.
        let idle = || self.checkpoint.as_ref().is_none_or(|last| last.status() == Status::Done);
        checkpoints.interval.is_some_and(|interval| self.checkpointed.elapsed() >= interval && idle())
    }

    fn submit_checkpoint(&mut self) -> Result<(), Error> {
        let step = self.step;
        let save = move |storage: &mut Storage, u: &[f32], v: &[f32]| storage.checkpoint(step, u, v);
        self.checkpoint = Some(self.grid.with_state("checkpoint", self.storage, save)?);
        self.checkpointed = Instant::now();
        Ok(())
    }

    /// Submits the last task, and returns the steps to the final state.
    fn finish(self) -> Result<u64, Error> {
        let step = self.step;
        if self.grid.is_on_several_nodes() {
            self.grid.finish_on_nodes(self.storage, step)?;
            return Ok(step);
        }
        self.grid.with_state("finish", self.storage, move |storage, u, v| storage.finish(step, u, v))?;
        Ok(step)
    }
}

#[cfg(test)]
mod tests;
