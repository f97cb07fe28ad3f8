//! Submitting recorded kernels to devices.

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
    device::{Device, DeviceError, DeviceProgram},
    error::Error,
    execute::{
        Node, Place, Submission, TaskHandle,
        devices::{LaunchBody, OnDevice},
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::Chunk;
use anabranch_kernel::Recording;
use smallvec::smallvec;
use std::{slice, sync::Arc};

/// A device, and a program that it has prepared.
type Chosen = (Arc<dyn Device>, DeviceProgram);

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
        let core = self.core;
        let (device, must) = match (self.place, &core.device) {
            (KernelPlace::Device(device), _) => (device, true),
            (KernelPlace::Default, Some(device)) if core.several_nodes().is_none() => (device, false),
            _ => return Ok(None),
        };
        if core.several_nodes().is_some() {
            let what = format!("{} is to run on a device", self.label);
            return Err(core.refuse(Error::OneNodeOnly { what }));
        }
        match core.programs.on(device, recording) {
            Ok(program) => Ok(Some((Arc::clone(device), program))),
            Err(DeviceError::Unsupported { .. }) if !must => Ok(None),
            Err(error) => Err(Error::Device { task: self.label.clone(), error }),
        }
    }

    /// Submits a recorded kernel that runs on a device, for the whole index space.
    pub(super) fn launch_on(
        self,
        device: &Arc<dyn Device>,
        program: DeviceProgram,
        recording: &Recording,
    ) -> Result<TaskHandle, Error> {
        let Self { core, group, label, space, hints, accesses, .. } = self;
        core.id().check_process("submit")?;
        core.meet_device(device)?;
        let whole = Chunk::whole(space);
        let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
        hints.record(&mut declaration, Work::Kernel { space: space.cast() });
        let bound = accesses.declare(&mut declaration)?;
        Declared::<K, L> { task: &label, recording, bound: &bound }
            .check_whole(space, &declaration.accesses)?;
        let buffers = L::stored(&bound);
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
        let extents = (0..buffers.len()).map(|operand| L::extent_of(&bound, operand));
        let operands = accepted.slots().into_iter().zip(extents).collect();
        let points = [padded(space.min().0, 0), padded(space.max().0, 1)];
        let parameters = recording.parameters().to_vec();
        let body = LaunchBody::new(program, points, operands, parameters, buffers.clone());
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
            range: "no device, or `each`: devices run recorded kernels only",
        })
    }
}
