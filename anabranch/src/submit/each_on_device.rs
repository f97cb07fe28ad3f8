//! Tasks with a recorded kernel for devices, and another kernel for the host.

use super::{
    access::list::{AccessList, KernelAccessList},
    recorded::{access::RecordedAccessList, check_recording},
    task::{
        TaskBuilder, hints::Hints, index_space::Over, kernel_place::KernelPlace,
        on_device::RecordingOnDevice, tile::Tile,
    },
};
use crate::{error::Error, execute::TaskHandle};
use anabranch_kernel::Recording;

/// Submits a task whose shader is to run.
pub(super) type Launch<'rt, const K: usize, L> =
    Box<dyn FnOnce(TaskBuilder<'rt, K, Over, L>) -> Result<TaskHandle, Error> + 'rt>;

/// A task that has a recorded kernel for devices, and is to get the kernel that the host runs.
#[must_use = "a task is submitted by `kernel`"]
pub struct RecordedTask<'rt, const K: usize, L> {
    pub(super) task: TaskBuilder<'rt, K, Over, L>,
    /// The hints of the kernel on the host.
    pub(super) on_host: Hints<K>,
    pub(super) recording: Recording,
    /// If a device runs the shader of the task.
    shader: Option<Launch<'rt, K, L>>,
}

impl<const K: usize, L> std::fmt::Debug for RecordedTask<'_, K, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RecordedTask").field(&self.task.label).finish()
    }
}

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L>
where
    L: RecordedAccessList<K> + KernelAccessList,
{
    /// Gives the task a recorded kernel, which runs where the task runs on a device: that of
    /// [`on`](Self::on), otherwise that of the [runtime](crate::Builder::device).
    /// [`kernel`](RecordedTask::kernel) adds what the host runs, and submits the task. For a kernel that is
    /// faster on the host than a recorded one. Where one recording is good enough for both, use
    /// [`each`](Self::each).
    ///
    /// `closure` runs once, now, wherever the task is going to run, and what it takes is checked against the
    /// declaration. So mistakes in it come out on machines without a device, too; but not where a device runs
    /// a [shader](Self::shader) of the task.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?; // with `.device(&anabranch_gpu::open(None)?)` the GPU runs the recording
    /// let u = rt.buffer_from(&[1.0_f32, 2.0, 3.0])?;
    /// rt.task("double")
    ///     .over([3])
    ///     .update(&u, one_to_one())
    ///     .each_on_device(|(u,)| u.set(u.here() * 2.0))?
    ///     .kernel(|tile, (u,)| tile.points().for_each(|p| u[p] *= 2.0))?;
    /// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [2.0, 4.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn each_on_device(
        self,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
    ) -> Result<RecordedTask<'rt, K, L>, Error> {
        RecordedTask::new(self, closure, None)
    }
}

impl<'rt, const K: usize, L> RecordedTask<'rt, K, L>
where
    L: RecordedAccessList<K> + KernelAccessList,
{
    pub(super) fn new(
        mut task: TaskBuilder<'rt, K, Over, L>,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
        shader: Option<Launch<'rt, K, L>>,
    ) -> Result<Self, Error> {
        let core = task.core;
        // A dry run returns the error that several nodes would return.
        if L::REDUCES && (core.nodes() > 1 || core.several_nodes().is_some()) {
            // The places cut the index space in other ways, and the nodes would not fit together.
            let what = format!("a reduction by {} that has `each_on_device`", task.label);
            return Err(core.refuse(Error::OneNodeOnly { what }));
        }
        let on_host = task.hints;
        let recording = task.recording(closure)?;
        Ok(Self { task, on_host, recording, shader })
    }

    /// Submits the task with a kernel for the host: see [`TaskBuilder::kernel`]. A task that is
    /// [`on`](TaskBuilder::on) a device runs there, and never on the host.
    ///
    /// # Errors
    /// As [`TaskBuilder::each`].
    pub fn kernel<F>(self, kernel: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let Self { mut task, on_host, recording, shader } = self;
        if let Some(launch) = shader {
            return launch(task);
        }
        if let Some(chosen) = task.program_on_device(&recording)? {
            return task.launch_on(chosen, &RecordingOnDevice(&recording));
        }
        task.hints = on_host;
        task.place = KernelPlace::Host;
        let core = task.core;
        task.submit_kernel(kernel, |declaration, bound| {
            check_recording::<K, L>(core, &recording, declaration, bound)
        })
    }
}
