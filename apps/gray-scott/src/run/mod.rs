//! A run of the simulation, as tasks of the runtime.
//!
//! # Sweeps
//!
//! A sweep advances the grid by several steps. It is a kernel in pieces, bands of rows, each of which reads
//! its band and as many rows around it as it has steps. So a band can go on as soon as its neighbours are
//! done, and no thread waits for the slowest one.
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
//! interruption soon, also within a long frame. It then stops submitting, and the last host task completes
//! the file and saves a checkpoint. The same happens, without a checkpoint, when a frame is not finite.
//!
//! # Devices
//!
//! On a device a sweep is launches of a shader or of a recorded kernel (`on_device/mod.rs`). Buffers, frames
//! and host tasks are the same. The device checks whether a frame is finite. The runtime copies it to the
//! host if it is stored, while the device computes on.
//!
//! # Several nodes
//!
//! Each node computes as many rows as any other, in bands, and needs only the rows next to them of its
//! neighbours. Each node stores its rows of a frame (`part.rs`), and node 0 counts the frame when all have:
//! these are tasks, and the next sweeps run beside them. Only the frames of a compressed file are gathered on
//! node 0. All nodes submit the same tasks, so they vote on everything that depends on time or on signals
//! (`votes.rs`). With devices each node has one, which computes its rows.

mod around;
mod fill;
mod finite;
mod grid;
mod interrupt;
mod nodes;
mod on_device;
mod pace;
mod part;
mod saving;
mod storage;
mod times;
mod votes;

pub(crate) use grid::memory;
pub use interrupt::Interrupt;
pub use storage::{Checkpoints, FrameOutput, FramePart, FrameSink};
pub use times::{Accounts, Computing, Stored, Storing, Times};

use crate::{error::Error, kernel::Simd, not_finite::NotFinite, report::progress::Progress, start::Start};
use anabranch::{Builder, device::Device, prelude::*};
use anabranch_store::Summary;
use grid::{BANDS_PER_THREAD, Grid, Stores};
use on_device::STEPS_IN_FLIGHT;
use pace::Pace;
use part::Part;
use saving::Saving;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use storage::Storage;
use votes::Votes;

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
    /// The device that computes instead; `None` for the threads. On several nodes all have one, or none has.
    pub device: Option<Arc<dyn Device>>,
    /// Frames that may wait for storage while the next ones are computed.
    pub queue: usize,
    /// Whether the first frame that is not finite ends the run.
    pub check_finite: bool,
    /// The writer of the output file; `None` to store nothing. It holds the frames before the start and may
    /// hold more, which are not written again.
    pub writer: Option<Box<dyn FrameSink>>,
    /// What becomes of the frames on this node: the same on all nodes.
    pub frames: FrameOutput,
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
    /// Runs to the last frame, to an interruption, or to the first frame that is not finite. An interrupted
    /// run saves its state in a checkpoint.
    ///
    /// # Errors
    /// When a frame or a checkpoint cannot be stored. The frames stored before stay.
    pub fn run(self) -> Result<RunOutcome, Error> {
        let rt = self.builder().build()?;
        self.run_on(rt)
    }

    /// The runtime that the run needs.
    fn builder(&self) -> Builder {
        let pieces = match self.device {
            Some(_) => STEPS_IN_FLIGHT,
            None => SWEEPS_IN_FLIGHT * BANDS_PER_THREAD * self.threads,
        };
        let in_flight = pieces + self.queue;
        Runtime::builder().threads(self.threads).max_in_flight(in_flight)
    }

    fn run_on(self, rt: Runtime) -> Result<RunOutcome, Error> {
        let Self { start, accounts, .. } = self;
        let (first, parameters) = (start.step, start.parameters.clone());
        let grid = Grid::new(&rt, start, self.simd, self.device, self.queue, self.check_finite, accounts)?;
        let (last, steps_per_frame) = (self.until * parameters.steps_per_frame, parameters.steps_per_frame);
        let end = parameters.steps();
        let stop = Arc::new(AtomicBool::new(false));
        let is_saving = Arc::<AtomicBool>::default();
        let several_nodes = grid.is_on_several_nodes();
        let saving = self.checkpoints.as_ref().filter(|_| several_nodes).map(|checkpoints| Saving {
            path: checkpoints.path.clone(),
            check_finite: self.check_finite,
            accounts: accounts.clone(),
            is_saving: Arc::clone(&is_saving),
        });
        let checkpoints = self.checkpoints.clone().filter(|_| !matches!(self.frames, FrameOutput::Nowhere));
        let storage = rt.host_object(Storage::new(
            parameters,
            self.writer,
            self.checkpoints,
            self.progress.clone(),
            accounts.clone(),
            self.check_finite,
            Arc::clone(&stop),
        ));
        let is_whole = matches!(self.frames, FrameOutput::Whole);
        let output = if let FrameOutput::Parts(part) = self.frames { Some(part) } else { None };
        let in_parts = output.is_some();
        let part = rt.host_object(Part::new(output, accounts.clone(), Arc::clone(&stop)));
        let votes = several_nodes.then(|| {
            accounts.on_several_nodes();
            let expected = grid.expected_seconds();
            let interval = checkpoints.as_ref().and_then(|checkpoints| checkpoints.interval);
            Votes::new(&rt, expected, self.interrupt, &stop, interval, &is_saving)
        });

        accounts.begin();
        let mut submission = Submission {
            rt: &rt,
            pace: Pace::new(accounts, grid.own_cells().max(1), grid.is_on_device()),
            grid,
            stores: Stores { storage: &storage, part: &part, in_parts, is_whole },
            votes,
            interrupt: self.interrupt,
            stop: &stop,
            saving,
            checkpoints,
            checkpoint: None,
            checkpointed: Instant::now(),
            progress: self.progress,
            first,
            step: first,
            last,
            end,
            steps_per_frame,
        };
        while submission.step < last && !submission.is_stopped() {
            if !submission.advance()? {
                // With a device, the end of a task that stores a frame wakes this thread.
                thread::park_timeout(LOOK);
            }
        }
        let step = submission.finish()?;
        let (storage, part) = rt.drain((storage.capture(), part.capture()))?;
        let not_finite = storage.not_finite.or(part.not_finite);
        Ok(RunOutcome {
            steps: step - first,
            frames: storage.frames,
            interrupted: step < last && not_finite.is_none(),
            not_finite,
            summary: storage.summary,
        })
    }
}

/// Submits the tasks of a run, in order.
struct Submission<'a> {
    rt: &'a Runtime,
    grid: Grid<'a>,
    stores: Stores<'a>,
    /// With several nodes: what they decide together.
    votes: Option<Votes>,
    interrupt: &'a Interrupt,
    stop: &'a AtomicBool,
    /// With several nodes: how they save checkpoints.
    saving: Option<Saving>,
    /// When checkpoints are due.
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
    /// The steps of the whole run, of which this may be a part.
    end: u64,
    steps_per_frame: u64,
}

impl Submission<'_> {
    /// Whether no more sweeps are submitted.
    fn is_stopped(&self) -> bool {
        match &self.votes {
            Some(votes) => votes.decided().stop,
            None => self.interrupt.requested() || self.stop.load(Ordering::Relaxed),
        }
    }

    /// Submits the next sweep, and what is due after it, if the sweeps in flight are few enough.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.votes.is_none() {
            // An error of a task, such as a full disk, ends the run here and not after the last frame.
            // Several nodes vote to stop.
            self.rt.check()?;
        }
        self.progress.steps(self.first + self.pace.done());
        let left = self.steps_per_frame - self.step % self.steps_per_frame;
        let most = self.grid.preferred_steps();
        let steps = match &self.votes {
            Some(votes) => votes.next_steps(left, most),
            None => self.pace.steps(left, most),
        };
        // With several nodes, the votes limit the sweeps in flight.
        if self.votes.is_none() && !self.pace.allows(steps) {
            return Ok(false);
        }
        if steps == left && !self.grid.has_room() {
            return Ok(false);
        }
        self.grid.sweep(steps, steps == left)?;
        self.pace.submit(steps);
        self.step += steps;
        if steps == left {
            let frame = self.step / self.steps_per_frame - 1;
            self.grid.store_frame(self.stores, frame, self.step)?;
        }
        if self.checkpoint_is_due(steps)? {
            self.submit_checkpoint()?;
        }
        Ok(true)
    }

    /// Whether a checkpoint is due after a sweep of this number of steps.
    fn checkpoint_is_due(&mut self, steps: u64) -> Result<bool, Error> {
        let by_time = match &mut self.votes {
            Some(votes) => {
                let is_due = votes.submit(steps);
                if is_due {
                    votes.hold(self.rt, self.grid.u(), self.grid.rows_swept())?;
                }
                is_due && votes.decided().checkpoint
            }
            None => self.is_due_by_time(),
        };
        let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| self.step < self.last) else {
            return Ok(false);
        };
        let (frames, rest) = (self.step / self.steps_per_frame, self.step % self.steps_per_frame);
        Ok(by_time || rest == 0 && checkpoints.is_due_at(frames))
    }

    fn is_due_by_time(&self) -> bool {
        // A checkpoint that takes longer than the time between two is not joined by another one.
        let idle = || self.checkpoint.as_ref().is_none_or(|last| last.status() == Status::Done);
        let interval = self.checkpoints.as_ref().and_then(|checkpoints| checkpoints.interval);
        interval.is_some_and(|interval| self.checkpointed.elapsed() >= interval && idle())
    }

    fn submit_checkpoint(&mut self) -> Result<(), Error> {
        let step = self.step;
        if let Some(saving) = &self.saving {
            return saving.submit(self.rt, &self.grid, self.stores, step);
        }
        let save = move |storage: &mut Storage, u: &[f32], v: &[f32]| storage.checkpoint(step, u, v);
        self.checkpoint = Some(self.grid.with_state("checkpoint", self.stores.storage, save)?);
        self.checkpointed = Instant::now();
        Ok(())
    }

    /// Submits the last task, and returns the steps to the final state.
    fn finish(self) -> Result<u64, Error> {
        let step = self.step;
        if self.votes.is_some() {
            self.grid.finish_on_nodes(self.stores)?;
            if let Some(saving) = self.saving.as_ref().filter(|_| step < self.end) {
                saving.submit(self.rt, &self.grid, self.stores, step)?;
            }
            return Ok(step);
        }
        self.grid
            .with_state("finish", self.stores.storage, move |storage, u, v| storage.finish(step, u, v))?;
        Ok(step)
    }
}

#[cfg(test)]
mod tests;
