//! Shaders that the program writes itself: the task [carries](TaskBuilder::shader) one beside a kernel for
//! the host, or alone.
//!
//! [`wgsl`] has what the program says about the shader, and [`access`] what the task declares for its
//! operands. The crate `anabranch-kernel` checks and completes the text, and a device compiles it.

pub(crate) mod access;
pub(crate) mod wgsl;

pub use self::wgsl::Wgsl;

use self::access::ShaderAccessList;
use super::{
    access::list::{AccessList, KernelAccessList},
    each_on_device::{Launch, RecordedTask},
    recorded::access::RecordedAccessList,
    task::{
        TaskBuilder,
        index_space::Over,
        on_device::{Chosen, Extents, KernelOnDevice, Possible},
        tile::Tile,
    },
};
use crate::{
    device::Parameters,
    error::Error,
    execute::{TaskHandle, devices::Buffers},
};

/// A task that has a shader, and is to get what runs where the shader cannot.
#[derive(Debug)]
#[must_use = "a task is submitted by `submit`, `kernel` or `each`"]
pub struct ShaderTask<'rt, const K: usize, L> {
    task: TaskBuilder<'rt, K, Over, L>,
    shader: Wgsl,
}

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L> {
    /// Gives the task a shader, which runs where the task runs on a device that takes WGSL: the device of
    /// [`on`](Self::on), otherwise that of the [runtime](crate::Builder::device).
    /// [`kernel`](ShaderTask::kernel) or [`each`](ShaderTask::each) adds what the host runs, or a device that
    /// takes no shader, and submits the task. [`each_on_device`](ShaderTask::each_on_device) gives it both.
    /// [`submit`](ShaderTask::submit) submits it without.
    ///
    /// [`Wgsl`] says what a shader may do, and what is checked.
    pub fn shader(self, shader: Wgsl) -> ShaderTask<'rt, K, L>
    where
        L: ShaderAccessList<K> + KernelAccessList,
    {
        ShaderTask { task: self, shader }
    }
}

impl<'rt, const K: usize, L> ShaderTask<'rt, K, L>
where
    L: ShaderAccessList<K> + KernelAccessList,
{
    /// Submits the task, which runs on a device.
    ///
    /// # Errors
    /// If the declaration, the names or the text is wrong, or if there is no device that runs the shader:
    /// [`Error::NoDevice`], [`Error::Shader`], [`Error::Device`] and others of [`Error`]. With several nodes
    /// also if the shader has a fixed number of [groups](Wgsl::groups): [`Error::OneNodeOnly`]. Nothing is
    /// submitted then.
    pub fn submit(self) -> Result<TaskHandle, Error> {
        let chosen = self.task.shader_only(&self.shader)?;
        self.task.launch_on(chosen, &ShaderOnDevice::new(&self.shader))
    }

    /// Submits the task with a kernel for the host: see [`TaskBuilder::kernel`].
    ///
    /// # Errors
    /// As [`submit`](Self::submit), except that the host is a place too.
    pub fn kernel<F>(self, kernel: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        match self.task.shader_or_kernel(&self.shader)? {
            Some(chosen) => self.task.launch_on(chosen, &ShaderOnDevice::new(&self.shader)),
            None => self.task.on_host().kernel(kernel),
        }
    }

    /// Submits the task with a recorded kernel, for the host and for devices that do not run the shader: see
    /// [`TaskBuilder::each`].
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel), and if the recording is wrong where it is the one to run.
    pub fn each(self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<TaskHandle, Error>
    where
        L: RecordedAccessList<K>,
    {
        match self.task.shader_program(&self.shader, false)? {
            Some(chosen) => self.task.launch_on(chosen, &ShaderOnDevice::new(&self.shader)),
            None => self.task.each(closure),
        }
    }

    /// Gives the task a recorded kernel for devices that do not run the shader: see
    /// [`TaskBuilder::each_on_device`]. [`kernel`](RecordedTask::kernel) adds what the host runs.
    ///
    /// # Errors
    /// As [`each`](Self::each), and if the recording is wrong, wherever the task runs.
    pub fn each_on_device(
        self,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
    ) -> Result<RecordedTask<'rt, K, L>, Error>
    where
        L: RecordedAccessList<K> + 'rt,
    {
        let Self { task, shader } = self;
        let chosen = task.shader_program(&shader, false)?;
        let launch = |chosen| -> Launch<'rt, K, L> {
            Box::new(move |task| task.launch_on(chosen, &ShaderOnDevice::new(&shader)))
        };
        RecordedTask::new(task, closure, chosen.map(launch))
    }
}

impl<const K: usize, L> TaskBuilder<'_, K, Over, L>
where
    L: ShaderAccessList<K> + KernelAccessList,
{
    /// The device that runs the shader of a task without a kernel, and the program there.
    pub(super) fn shader_only(&self, shader: &Wgsl) -> Result<Chosen, Error> {
        let no_device = || self.core.refuse(Error::NoDevice { task: self.label.clone() });
        self.shader_program(shader, true)?.ok_or_else(no_device)
    }

    /// As [`shader_program`](Self::shader_program), of a task with a kernel for the host: a device that the
    /// task names must run the shader.
    pub(super) fn shader_or_kernel(&self, shader: &Wgsl) -> Result<Option<Chosen>, Error> {
        let must = matches!(self.shader_device(shader)?, Some((_, true)));
        self.shader_program(shader, must)
    }

    /// The device that runs the shader, and the program there; `None` if the task runs on the host, or if it
    /// is not the shader that `must` run and the device takes none.
    pub(super) fn shader_program(&self, shader: &Wgsl, must: bool) -> Result<Option<Chosen>, Error> {
        let (core, label) = (self.core, &self.label);
        let source = shader.source::<K>(L::OPERANDS);
        let refused = |error| core.refuse(Error::Shader { task: label.clone(), error: Box::new(error) });
        let checked = source.and_then(|source| core.programs.shader(source)).map_err(refused)?;
        match self.shader_device(shader)? {
            Some((device, _)) => self.choose(device, must, core.programs.shader_on(device, &checked)),
            None => Ok(None),
        }
    }

    /// The device that the shader runs on if it can, and whether it must; `None` for the host.
    ///
    /// # Errors
    /// If it is to run on a device and there are several nodes, with a number of groups for one.
    fn shader_device(&self, shader: &Wgsl) -> Result<Option<Possible<'_>>, Error> {
        match self.device() {
            Some((_, must)) if shader.has_fixed_groups() && self.core.several_nodes().is_some() => match must
            {
                true => {
                    let what = format!("the shader of {} has `groups` and not `tiles`", self.label);
                    Err(self.core.refuse(Error::OneNodeOnly { what }))
                }
                false => Ok(None),
            },
            device => Ok(device),
        }
    }
}

/// A shader, as devices run it.
pub(super) struct ShaderOnDevice<'a> {
    shader: &'a Wgsl,
    /// The number of the replay; 0 outside of sequences.
    replay: u64,
}

impl<'a> ShaderOnDevice<'a> {
    pub(super) fn new(shader: &'a Wgsl) -> Self {
        Self { shader, replay: 0 }
    }

    pub(super) fn in_replay(self, number: u64) -> Self {
        Self { replay: number, ..self }
    }
}

impl<const K: usize, L: ShaderAccessList<K>> KernelOnDevice<K, L> for ShaderOnDevice<'_> {
    fn buffers(&self, bound: &L::Bound) -> Buffers {
        L::stored(bound)
    }

    fn operands(&self, bound: &L::Bound, chunk: usize, f: impl FnMut(Extents)) {
        L::declared(bound, chunk).into_iter().for_each(f);
    }

    fn parameters(&self) -> Parameters {
        self.shader.parameters(self.replay)
    }

    fn groups(&self, points: [[usize; 3]; 2]) -> [usize; 3] {
        self.shader.count(points)
    }

    fn ranks(&self) -> Option<Vec<usize>> {
        Some(L::OPERANDS.iter().map(|operand| operand.dimensions).collect())
    }
}
