//! Submitting recorded kernels and shaders to devices.

use super::{
    access_list::{AccessList, KernelAccessList},
    declaration::Declaration,
    index_space::Over,
    recorded::{
        Declared,
        access::{RecordedAccessList, padded},
    },
    task::TaskBuilder,
};
use crate::{
    data::stored::Stored,
    device::{Device, DeviceError, DeviceProgram},
    error::Error,
    execute::{
        Node, Place, Submission, TaskHandle,
        devices::{LaunchBody, LaunchOperand, OnDevice},
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::Chunk;
use anabranch_kernel::{Recording, Scalar};
use smallvec::smallvec;
use std::{slice, sync::Arc};

/// A device, and a program that it has prepared.
pub(super) type Chosen = (Arc<dyn Device>, DeviceProgram);

/// Where a kernel runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum KernelPlace<'rt> {
    /// On the device of the runtime if it has one and the kernel is recorded, otherwise on the host.
    Default,
    Host,
    Device(&'rt Arc<dyn Device>),
}

impl<const K: usize, L: RecordedAccessList<K> + KernelAccessList> TaskBuilder<'_, K, Over, L> {
    /// The device that the recorded kernel runs on, and its program there; `None` for the host.
    ///
    /// # Errors
    /// If the task says that it runs on a device which cannot run it.
    pub(super) fn program_on_device(&self, recording: &Recording) -> Result<Option<Chosen>, Error> {
        let Some((device, must)) = self.device()? else { return Ok(None) };
        match self.core.programs.on(device, recording) {
            Ok(program) => Ok(Some((Arc::clone(device), program))),
            Err(DeviceError::Unsupported { .. }) if !must => Ok(None),
            Err(error) => Err(Error::Device { task: self.label.clone(), error }),
        }
    }

    /// Submits a recorded kernel that runs on a device, for the whole index space.
    pub(super) fn launch_recording(
        self,
        device: &Arc<dyn Device>,
        program: DeviceProgram,
        recording: &Recording,
    ) -> Result<TaskHandle, Error> {
        self.launch_on(device, program, |declaration, bound| {
            Declared::<K, L> { task: declaration.task, recording, bound }
                .check_whole(declaration.whole.range, &declaration.accesses)?;
            let buffers = L::stored(bound);
            let operand = |operand| (padded(L::extent_of(bound, operand).0, 1), Vec::new());
            let operands = (0..buffers.len()).map(operand).collect();
            let parameters = recording.parameters().to_vec();
            Ok(Launched { buffers, operands, parameters, groups: [0; 3], ranks: None })
        })
    }
}

/// The extent of a buffer, and for a shader the boxes of it that the task declares, padded at the front.
pub(super) type Extents = ([usize; 3], Vec<[[usize; 3]; 2]>);

/// A device that a task runs on if it can, and whether it must.
type Possible<'rt> = (&'rt Arc<dyn Device>, bool);

/// What a launch takes of its task.
pub(super) struct Launched {
    pub(super) buffers: Vec<Arc<dyn Stored>>,
    pub(super) operands: Vec<Extents>,
    pub(super) parameters: Vec<Scalar>,
    /// The groups of a shader.
    pub(super) groups: [usize; 3],
    /// For a shader: the ranks of the buffers.
    pub(super) ranks: Option<Vec<usize>>,
}

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L> {
    /// The device that the task runs on if it can, and whether it must; `None` for the host.
    ///
    /// # Errors
    /// With several nodes no task runs on a device.
    pub(super) fn device(&self) -> Result<Option<Possible<'rt>>, Error> {
        let core = self.core;
        let chosen = match (self.place, &core.device) {
            (KernelPlace::Device(device), _) => (device, true),
            (KernelPlace::Default, Some(device)) if core.several_nodes().is_none() => (device, false),
            _ => return Ok(None),
        };
        if core.several_nodes().is_some() {
            let what = format!("{} is to run on a device", self.label);
            return Err(core.refuse(Error::OneNodeOnly { what }));
        }
        Ok(Some(chosen))
    }

    /// Submits a task that runs on a device, for the whole index space. `launched` gets its declared accesses, and checks them.
    pub(super) fn launch_on(
        self,
        device: &Arc<dyn Device>,
        program: DeviceProgram,
        launched: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<Launched, Error>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
    {
        let Self { core, group, label, space, hints, accesses, .. } = self;
        core.id().check_process("submit")?;
        core.meet_device(device)?;
        let whole = Chunk::whole(space);
        let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
        hints.record(&mut declaration, Work::Kernel { space: space.cast() });
        let bound = accesses.declare(&mut declaration)?;
        let Launched { buffers, operands, parameters, groups, ranks } = launched(&declaration, &bound)?;
        let record = declaration.record.take().map(Arc::from);
        let task = Submission {
            label: &label,
            group: group.map(|group| &**group),
            accesses: &declaration.accesses,
            effects: &declaration.effects,
            priority: declaration.priority,
            place: Place::Inline,
            observes: false,
            record: record.as_ref(),
            device: Some(OnDevice { device, buffers: &buffers }),
        };
        let accepted = core.accept(&task);
        let mut accepted = accepted.map_err(|error| declaration.explain(*error, &L::labels(&bound)))?;
        let operands = accepted.slots().into_iter().zip(operands);
        let operands =
            operands.map(|(slot, (extent, declared))| LaunchOperand { slot, extent, declared }).collect();
        let points = [padded(space.min().0, 0), padded(space.max().0, 1)];
        let body = LaunchBody::new(program, points, operands, parameters, groups, ranks, buffers.clone())
            .with_reductions(L::REDUCES);
        let node = Node::new(|| accepted.head(), || body);
        Ok(TaskHandle::new(smallvec![accepted.insert(node)]))
    }
}

impl<const K: usize, S, L: AccessList<K>> TaskBuilder<'_, K, S, L> {
    /// Checks that a task which is not a recorded kernel is not to run on a device.
    pub(super) fn check_is_on_host(&self) -> Result<(), Error> {
        let KernelPlace::Device(device) = self.place else { return Ok(()) };
        let (setting, value) = ("the device of a task", device.info().name.clone());
        Err(Error::Setting {
            setting,
            value,
            range: "no device, or `each` or `shader`: devices run recorded kernels and shaders only",
        })
    }
}
