//! The sweeps of a run on a device.
//!
//! Each launch is several steps of a shader, or one step of a recorded kernel on a device that takes no
//! shaders. The device gets the launches one after the other. It checks whether each frame is finite, and the
//! runtime copies a frame that is stored to the host, beside the steps that follow. The kernels are in
//! `kernel/several_steps.rs` and `kernel/recorded.rs`; how many steps one launch makes is known here alone.
//!
//! On several nodes each device gets the rows of its node, and before each launch the rows next to them,
//! which the runtime fetches.

mod first;

pub(super) use first::FirstCell;

use super::{around::around, times::Accounts};
use crate::{
    error::Error,
    kernel::{RecordedStep, SeveralSteps},
    model::Edges,
    parameters::Parameters,
};
use anabranch::{
    device::{Device, DeviceError},
    prelude::*,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// The most steps that are submitted and not done. The threads of a device need some in advance, and an
/// interruption waits for all of them.
pub(super) const STEPS_IN_FLIGHT: usize = 1024;

/// The most steps of a sweep, which is the unit that progress counts.
pub(super) const STEPS_PER_SWEEP: u64 = 16;

/// A device that computes a run. Clones share the counts of frames.
#[derive(Clone)]
pub(super) struct OnDevice {
    device: Arc<dyn Device>,
    shape: [usize; 2],
    /// The cells that the device of this node computes.
    own_cells: u64,
    edges: Edges,
    kernels: Kernels,
    /// Whether the last step to a frame marks V where U is not finite.
    marks: bool,
    accounts: Accounts,
    /// Frames that may be computed and not yet stored.
    most_frames: u64,
    /// Frames that are submitted.
    frames: Arc<AtomicU64>,
    /// Frames whose storing has ended.
    stored: Arc<AtomicU64>,
}

/// What the device runs. All launches of a run are of one sort, so that its bits do not depend on how its
/// steps are cut into launches.
#[derive(Clone, Copy)]
enum Kernels {
    Shader(SeveralSteps),
    Recorded { between_frames: RecordedStep, to_frame: RecordedStep },
}

/// The state before a launch, and the buffers for the state after it.
pub(super) struct Launch<'a> {
    pub(super) u: &'a Buffer<f32, 2>,
    pub(super) v: &'a Buffer<f32, 2>,
    pub(super) next_u: &'a Buffer<f32, 2>,
    pub(super) next_v: &'a Buffer<f32, 2>,
    pub(super) steps: u64,
    /// Whether the state after it is a frame.
    pub(super) to_frame: bool,
}

impl OnDevice {
    /// A run of which `most_frames` frames may be computed and not yet stored. With `check_finite`, V of a
    /// frame is not finite where U is not. `launch` has the buffers of the run.
    #[expect(clippy::too_many_arguments, reason = "all that a run on a device needs")]
    pub(super) fn new(
        rt: &Runtime,
        device: Arc<dyn Device>,
        parameters: &Parameters,
        own_cells: u64,
        most_frames: u64,
        check_finite: bool,
        accounts: &Accounts,
        launch: &Launch<'_>,
    ) -> Result<Self, Error> {
        let (constants, edges) = (parameters.constants(), parameters.edges);
        let on_device = Self {
            device,
            shape: [parameters.rows, parameters.cols],
            own_cells,
            edges,
            kernels: Kernels::Shader(SeveralSteps::new(constants, edges, own_cells)),
            marks: check_finite,
            accounts: accounts.clone(),
            most_frames,
            frames: Arc::default(),
            stored: Arc::default(),
        };
        // A launch for no cells is compiled, and does nothing. There is a shader for each number of steps.
        let nothing = Self { shape: [0, 0], ..on_device.clone() };
        let most = SeveralSteps::MOST as u64;
        let compiled =
            (1..=most).try_for_each(|steps| nothing.submit(rt, &Launch { steps, ..*launch }).map(drop));
        match compiled {
            Ok(()) => Ok(on_device),
            Err(anabranch::Error::Device { error: DeviceError::Unsupported { .. }, .. }) => {
                let step = |marks| RecordedStep::new(constants, edges, marks);
                let kernels = Kernels::Recorded { between_frames: step(false), to_frame: step(check_finite) };
                Ok(Self { kernels, ..on_device })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the buffers of frames have room for one more. Without it a sweep to a frame would wait for
    /// storage in the runtime, and that time would count as computing.
    pub(super) fn has_room(&self) -> bool {
        // Relaxed: the runtime orders the tasks. These numbers only say when to submit.
        self.frames.load(Ordering::Relaxed) - self.stored.load(Ordering::Relaxed) < self.most_frames
    }

    /// Counts the frame that this task stores. The end of the task unparks this thread, because there is room
    /// for another frame then.
    pub(super) fn stores(&self, task: &TaskHandle) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let (stored, submitting) = (Arc::clone(&self.stored), thread::current());
        task.on_done(move |_| {
            stored.fetch_add(1, Ordering::Relaxed);
            submitting.unpark();
        });
    }

    /// The steps of the next launch, of those that are left in a sweep.
    pub(super) fn steps_of_launch(&self, left: u64) -> u64 {
        match self.kernels {
            Kernels::Shader(_) => left.min(SeveralSteps::MOST as u64),
            Kernels::Recorded { .. } => left.min(1),
        }
    }

    /// Submits a launch.
    pub(super) fn launch(&self, rt: &Runtime, launch: &Launch<'_>) -> Result<TaskHandle, Error> {
        Ok(self.submit(rt, launch)?)
    }

    fn submit(&self, rt: &Runtime, launch: &Launch<'_>) -> Result<TaskHandle, anabranch::Error> {
        let &Launch { u, v, next_u, next_v, steps, to_frame } = launch;
        let reach = around(self.edges, [steps as usize; 2]);
        let task = rt
            .task("steps")
            .over(self.shape)
            .on(&self.device)
            .read(u, reach)
            .read(v, reach)
            .write(next_u, one_to_one())
            .write(next_v, one_to_one());
        match self.kernels {
            Kernels::Shader(several) => {
                task.shader(several.shader(steps as usize, to_frame && self.marks)).submit()
            }
            Kernels::Recorded { between_frames, to_frame: last } => {
                let kernel = if to_frame { last } else { between_frames };
                task.each(move |(u, v, next_u, next_v)| kernel.record(u, v, next_u, next_v))
            }
        }
    }

    /// Submits the tasks that look for the first cell of a frame that is not finite, and write it to the
    /// first element of `found`.
    pub(super) fn look(
        &self,
        rt: &Runtime,
        v: &Buffer<f32, 2>,
        first: &FirstCell,
        found: &Buffer<u64, 1>,
    ) -> Result<(), Error> {
        first.look(rt, &self.device, v, found)
    }

    /// Counts the time until the last step of a sweep is done as computing. To be called before the sweep is
    /// submitted; the answer takes its last task. A sweep that cannot be submitted, or that fails, counts no
    /// steps.
    pub(super) fn computing(&self, steps: u64) -> impl FnOnce(&TaskHandle) + use<> {
        let computing = self.accounts.computing(self.own_cells * steps);
        move |last| {
            last.on_done(move |status| {
                if status == Status::Done {
                    computing.done();
                }
            });
        }
    }
}
