//! The sweeps of a run on a device.
//!
//! Each step is a recorded kernel. The device gets the steps one after the other, and the runtime copies each frame to the host when its step
//! is done, beside the steps that follow. The step's kernel is in `kernel/recorded.rs`; how many steps one launch makes is known here alone.

use super::times::Accounts;
use crate::{error::Error, kernel::RecordedStep, parameters::Parameters};
use anabranch::{device::Device, grid::Neighborhood, prelude::*};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The most steps that are submitted and not done. The threads of a device need some in advance, and an interruption waits for all of them.
pub(super) const STEPS_IN_FLIGHT: usize = 1024;

/// The most steps of a sweep, which is the unit that progress counts.
pub(super) const STEPS_PER_SWEEP: u64 = 16;

/// A device that computes a run. Clones share the counts of frames.
#[derive(Clone)]
pub(super) struct OnDevice {
    device: Arc<dyn Device>,
    shape: [usize; 2],
    between_frames: RecordedStep,
    to_frame: RecordedStep,
    around: Neighborhood<2>,
    accounts: Accounts,
    /// Frames that may be computed and not yet stored.
    most_frames: u64,
    /// Frames that are submitted.
    frames: Arc<AtomicU64>,
    /// Frames whose storing has ended.
    stored: Arc<AtomicU64>,
}

/// The state before a step, and the buffers for the state after it.
pub(super) struct Step<'a> {
    pub(super) u: &'a Buffer<f32, 2>,
    pub(super) v: &'a Buffer<f32, 2>,
    pub(super) next_u: &'a Buffer<f32, 2>,
    pub(super) next_v: &'a Buffer<f32, 2>,
    /// Whether the state after it is a frame.
    pub(super) to_frame: bool,
}

impl OnDevice {
    /// A run of which `most_frames` frames may be computed and not yet stored. With `check_finite`, V of a frame is not finite where U is not.
    pub(super) fn new(
        device: Arc<dyn Device>,
        parameters: &Parameters,
        around: Neighborhood<2>,
        most_frames: usize,
        check_finite: bool,
        accounts: &Accounts,
    ) -> Self {
        let step = |marks| RecordedStep::new(parameters.constants(), parameters.edges, marks);
        Self {
            device,
            shape: [parameters.rows, parameters.cols],
            between_frames: step(false),
            to_frame: step(check_finite),
            around,
            accounts: accounts.clone(),
            most_frames: most_frames as u64,
            frames: Arc::default(),
            stored: Arc::default(),
        }
    }

    /// Whether the buffers of frames have room for one more. Without it a sweep to a frame would wait for storage in the runtime, and that time would
    /// count as computing.
    pub(super) fn has_room(&self) -> bool {
        // Relaxed: the runtime orders the tasks. These numbers only say when to submit.
        self.frames.load(Ordering::Relaxed) - self.stored.load(Ordering::Relaxed) < self.most_frames
    }

    /// Counts the frame that this task stores.
    pub(super) fn stores(&self, task: &TaskHandle) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let stored = Arc::clone(&self.stored);
        task.on_done(move |_| {
            stored.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Submits a step.
    pub(super) fn step(&self, rt: &Runtime, step: &Step<'_>) -> Result<TaskHandle, Error> {
        let kernel = if step.to_frame { self.to_frame } else { self.between_frames };
        Ok(rt
            .task("step")
            .over(self.shape)
            .on(&self.device)
            .read(step.u, self.around)
            .read(step.v, self.around)
            .write(step.next_u, one_to_one())
            .write(step.next_v, one_to_one())
            .each(move |(u, v, next_u, next_v)| kernel.record(u, v, next_u, next_v))?)
    }

    /// Counts the time until the last step of a sweep is done as computing. To be called before the sweep is submitted; the answer takes its last task.
    pub(super) fn computing(&self, steps: u64) -> impl FnOnce(&TaskHandle) + use<> {
        let cells = self.shape.iter().map(|&extent| extent as u64).product::<u64>();
        let computing = self.accounts.computing(cells * steps);
        move |last| {
            last.on_done(move |status| match status {
                Status::Done => drop(computing),
                _ => computing.fail(),
            });
        }
    }
}
