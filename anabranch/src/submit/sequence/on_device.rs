//! Tasks of a sequence with a shader, and with a recorded kernel for devices beside a kernel for the host.
//! Where the task runs is decided when it is recorded.

use super::{
    builder::SequenceTask,
    recorder::Recorder,
    template::{Submit, Template},
};
use crate::{
    error::Error,
    submit::{
        access::list::{AccessList, KernelAccessList},
        each_on_device::RecordedTask,
        launch::declaration::Declaration,
        recorded::{access::RecordedAccessList, check_recording},
        shader::{ShaderOnDevice, Wgsl, access::ShaderAccessList},
        task::{
            TaskBuilder,
            index_space::Over,
            kernel_place::KernelPlace,
            on_device::{Chosen, RecordingOnDevice},
            tile::Tile,
        },
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::Chunk;
use anabranch_kernel::Recording;
use std::{cell::RefCell, fmt, slice, sync::Arc};

/// A task of a [sequence](super::Sequence) that has a shader, and is to get what runs where the shader
/// cannot. As a [`ShaderTask`](crate::interface::ShaderTask).
#[derive(Debug)]
#[must_use = "a task is recorded by `submit`, `kernel` or `each`"]
pub struct SequenceShaderTask<'r, const K: usize, L> {
    task: SequenceTask<'r, K, Over, L>,
    shader: Wgsl,
}

/// Records a task whose shader a device runs.
type RecordShader<'r, const K: usize, L> =
    Box<dyn FnOnce(SequenceTask<'r, K, Over, L>) -> Result<(), Error> + 'r>;

/// A task of a [sequence](super::Sequence) that has a recorded kernel for devices, and is to get the kernel
/// that the host runs. As a [`RecordedTask`].
#[must_use = "a task is recorded by `kernel`"]
pub struct SequenceRecordedTask<'r, const K: usize, L> {
    task: RecordedTask<'r, K, L>,
    recorder: &'r RefCell<Recorder>,
    /// If a device runs the shader of the task.
    shader: Option<RecordShader<'r, K, L>>,
}

impl<const K: usize, L> fmt::Debug for SequenceRecordedTask<'_, K, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SequenceRecordedTask").field(&self.task).finish()
    }
}

impl<'r, const K: usize, L> SequenceTask<'r, K, Over, L> {
    /// Gives the task a shader: see [`TaskBuilder::shader`](crate::interface::TaskBuilder::shader). If a
    /// device runs it, each replay submits the tasks of the sequence, as for [`on`](Self::on).
    /// [`Wgsl::replay`] gives it the number of the replay.
    ///
    /// ```
    /// use anabranch::{device::Wgsl, prelude::*};
    ///
    /// let rt = Runtime::new()?; // with `.device(&anabranch_gpu::open(None)?)` the GPU runs the shader
    /// let u = rt.buffer_from(&[1_u32, 2, 3])?;
    /// let double = Wgsl::new("fn each(x: u32) { u_set(x, 2u * u_get(x)); }").names(["u"]);
    /// let sequence = rt.record("doubles", |body| {
    ///     let task = body.task("double").over([3]).update(&u, one_to_one());
    ///     task.shader(double).kernel(|tile, (u,)| tile.points().for_each(|p| u[p] *= 2))
    /// })?;
    /// sequence.replay(4)?;
    /// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [16, 32, 48]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shader(self, shader: Wgsl) -> SequenceShaderTask<'r, K, L>
    where
        L: ShaderAccessList<K> + KernelAccessList,
    {
        SequenceShaderTask { task: self, shader }
    }

    /// Gives the task a recorded kernel that runs where the task runs on a device: see
    /// [`TaskBuilder::each_on_device`](crate::interface::TaskBuilder::each_on_device).
    /// [`kernel`](SequenceRecordedTask::kernel) adds what the host runs.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn each_on_device(
        self,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
    ) -> Result<SequenceRecordedTask<'r, K, L>, Error>
    where
        L: RecordedAccessList<K> + KernelAccessList,
    {
        let Self { task, recorder } = self;
        Ok(SequenceRecordedTask { task: RecordedTask::new(task, closure, None)?, recorder, shader: None })
    }
}

impl<'r, const K: usize, L> SequenceShaderTask<'r, K, L>
where
    L: ShaderAccessList<K> + KernelAccessList + Clone + Send + Sync,
{
    /// Records the task, which runs on a device.
    ///
    /// # Errors
    /// As [`ShaderTask::submit`](crate::interface::ShaderTask::submit).
    pub fn submit(self) -> Result<(), Error> {
        let chosen = self.task.task.shader_only(&self.shader)?;
        self.record(chosen)
    }

    /// Records the task with a kernel for the host: see [`SequenceTask::kernel`].
    ///
    /// # Errors
    /// As [`submit`](Self::submit), except that the host is a place too.
    pub fn kernel<F>(self, kernel: F) -> Result<(), Error>
    where
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        match self.task.task.shader_or_kernel(&self.shader)? {
            Some(chosen) => self.record(chosen),
            None => self.task.on_host().kernel(kernel),
        }
    }

    /// Records the task with a recorded kernel, for the host and for devices that do not run the shader: see
    /// [`SequenceTask::each`].
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel), and if the recording is wrong where it is the one to run.
    pub fn each(self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<(), Error>
    where
        L: RecordedAccessList<K>,
    {
        match self.task.task.shader_program(&self.shader, false)? {
            Some(chosen) => self.record(chosen),
            None => self.task.each(closure),
        }
    }

    /// Gives the task a recorded kernel for devices that do not run the shader: see
    /// [`SequenceTask::each_on_device`].
    ///
    /// # Errors
    /// As [`each`](Self::each), and if the recording is wrong, wherever the task runs.
    pub fn each_on_device(
        self,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
    ) -> Result<SequenceRecordedTask<'r, K, L>, Error>
    where
        L: RecordedAccessList<K> + 'r,
    {
        let Self { task, shader } = self;
        let chosen = task.task.shader_program(&shader, false)?;
        let record =
            |chosen| -> RecordShader<'r, K, L> { Box::new(|task| Self { task, shader }.record(chosen)) };
        Ok(SequenceRecordedTask { shader: chosen.map(record), ..task.each_on_device(closure)? })
    }

    /// Records the shader, which this device runs.
    fn record(self, chosen: Chosen) -> Result<(), Error> {
        let Self { task, shader } = self;
        let template = Template::of(&task.task);
        let submit: Submit = Box::new(move |replay| {
            let shader = ShaderOnDevice::new(&shader).in_replay(replay.number);
            template.begin(replay).launch_on(chosen.clone(), &shader)
        });
        task.record_submitted(submit, |_, _| Ok(()))
    }
}

impl<const K: usize, L> SequenceRecordedTask<'_, K, L>
where
    L: RecordedAccessList<K> + KernelAccessList + Clone + Send + Sync,
{
    /// Records the task with a kernel for the host: see [`SequenceTask::kernel`]. A task that is
    /// [`on`](SequenceTask::on) a device runs there, and never on the host.
    ///
    /// # Errors
    /// As [`SequenceTask::each`].
    pub fn kernel<F>(self, kernel: F) -> Result<(), Error>
    where
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let Self { task: RecordedTask { task, on_host, recording, .. }, recorder, shader } = self;
        let mut task = SequenceTask { task, recorder };
        if let Some(record) = shader {
            return record(task);
        }
        if let Some(chosen) = task.task.program_on_device(&recording)? {
            return task.record_on_device(chosen, recording);
        }
        (task.task.hints, task.task.place) = (on_host, KernelPlace::Host);
        let core = task.task.core;
        task.record_kernel(kernel, |declaration, bound| {
            check_recording::<K, L>(core, &recording, declaration, bound)
        })
    }
}

impl<const K: usize, L> SequenceTask<'_, K, Over, L> {
    /// Records a recorded kernel, which this device runs.
    pub(super) fn record_on_device(self, chosen: Chosen, recording: Recording) -> Result<(), Error>
    where
        L: RecordedAccessList<K> + KernelAccessList + Clone + Send + Sync,
    {
        let core = self.task.core;
        let recording = Arc::new(recording);
        let (template, by_submission) = (Template::of(&self.task), Arc::clone(&recording));
        let submit: Submit = Box::new(move |replay| {
            let recording = by_submission.in_replay(replay.number);
            template.begin(replay).launch_on(chosen.clone(), &RecordingOnDevice(&recording))
        });
        self.record_submitted(submit, |declaration, bound| {
            check_recording::<K, L>(core, &recording, declaration, bound)
        })
    }

    /// Records a task that a device runs, the whole index space at once. Each replay submits it.
    fn record_submitted(
        self,
        submit: Submit,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        L: AccessList<K>,
    {
        let Self { task, recorder } = self;
        let TaskBuilder { core, group, label, space, hints, accesses, .. } = task;
        let whole = Chunk::whole(space);
        let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
        hints.record(&mut declaration, Work::Kernel { space: space.cast() });
        let bound = accesses.declare(&mut declaration).map_err(|error| core.refuse(error))?;
        check(&declaration, &bound)?;
        let added = recorder.borrow_mut().add_submitted(&declaration, &L::labels(&bound), submit);
        added.map_err(|error| core.refuse(error))
    }
}
