//! Submitting recorded kernels and shaders to devices.

use super::{
    access_list::{AccessList, KernelAccessList},
    body::Chunks,
    declaration::{Declaration, Piece},
    index_space::Over,
    launch::launch_on_nodes,
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
        devices::{LaunchBody, LaunchOperand, OnDevice, Slot},
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::Chunk;
use anabranch_kernel::{Recording, Scalar};
use smallvec::smallvec;
use std::{slice, sync::Arc};

/// A device, and a program that it has prepared.
pub(super) type Chosen = (Arc<dyn Device>, DeviceProgram);

/// The same of a recorded kernel. With several nodes perhaps the error of a device that is lost, with which the task fails.
type ChosenForRecording = (Arc<dyn Device>, Result<DeviceProgram, DeviceError>);

/// Where a kernel runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum KernelPlace<'rt> {
    /// On the device of the runtime if it has one and the kernel is recorded, otherwise on the host.
    Default,
    Host,
    Device(&'rt Arc<dyn Device>),
}

impl<const K: usize, L: RecordedAccessList<K> + KernelAccessList> TaskBuilder<'_, K, Over, L> {
    /// The device that the recorded kernel runs on, and its program there; `None` for the host. With several nodes a kernel with a reduction
    /// runs on the host, because a launch gives the result of all its leaves and not those of single ones, which the nodes exchange.
    ///
    /// # Errors
    /// If the task says that it runs on a device which cannot run it.
    pub(super) fn program_on_device(
        &self,
        recording: &Recording,
    ) -> Result<Option<ChosenForRecording>, Error> {
        let (core, Some((device, must))) = (self.core, self.device()) else { return Ok(None) };
        if L::REDUCES && core.several_nodes().is_some() {
            let what = || format!("the reduction of {} is to run on a device", self.label);
            return if must { Err(core.refuse(Error::OneNodeOnly { what: what() })) } else { Ok(None) };
        }
        match core.programs.on(device, recording) {
            Ok(program) => Ok(Some((Arc::clone(device), Ok(program)))),
            Err(DeviceError::Unsupported { .. }) if !must => Ok(None),
            // The other nodes submit the task, and get the failure in place of the data.
            Err(error @ (DeviceError::Lost { .. } | DeviceError::Failed { .. }))
                if core.several_nodes().is_some() =>
            {
                Ok(Some((Arc::clone(device), Err(error))))
            }
            Err(error) => Err(core.refuse(Error::Device { task: self.label.clone(), error })),
        }
    }

    /// Submits a recorded kernel that runs on a device: on one node for the whole index space, on several for the pieces of this node.
    pub(super) fn launch_recording(
        self,
        (device, program): ChosenForRecording,
        recording: &Recording,
    ) -> Result<TaskHandle, Error> {
        if self.core.several_nodes().is_some() {
            return self.launch_recording_on_nodes(&device, &program, recording);
        }
        let program = program.map_err(|error| Error::Device { task: self.label.clone(), error })?;
        self.launch_on(&device, program, |declaration, bound| {
            Declared::<K, L> { task: declaration.task, recording, bound }
                .check_whole(declaration.whole.range, &declaration.accesses)?;
            let buffers = L::stored(bound);
            let operand = |operand| (L::extent_of(bound, operand), Vec::new());
            let operands = (0..buffers.len()).map(operand).collect();
            let parameters = recording.parameters().to_vec();
            Ok(Launched { buffers, operands, parameters, groups: [0; 3], ranks: None })
        })
    }

    /// Submits a recorded kernel whose pieces on this node run on a device.
    #[cold]
    fn launch_recording_on_nodes(
        self,
        device: &Arc<dyn Device>,
        program: &Result<DeviceProgram, DeviceError>,
        recording: &Recording,
    ) -> Result<TaskHandle, Error> {
        let Self { core, group, label, space, hints, accesses, .. } = self;
        core.id().check_process("submit")?;
        core.meet_device(device).map_err(|error| core.refuse(error))?;
        let work = Work::Kernel { space: space.cast() };
        let nodes = core.several_nodes().into_iter();
        let pieces = nodes.flat_map(|nodes| nodes.pieces(&work, &hints.for_nodes(core.nodes())));
        let chunks: Chunks<K> = pieces.map(|range| Chunk { range: range.cast(), global: space }).collect();
        let mut declaration = Declaration::new(core, group, &label, Chunk::whole(space), &chunks);
        declaration.pieces = (0..chunks.len()).map(|at| Piece::new(at..at + 1)).collect();
        hints.record(&mut declaration, work);
        let bound = accesses.declare(&mut declaration).map_err(|error| core.refuse(error))?;
        let declared = Declared::<K, L> { task: &label, recording, bound: &bound };
        let checked = declared.check_whole(space, &declaration.accesses);
        checked.map_err(|error| core.refuse(error))?;
        // As on the host: perhaps only this node finds a mistake in its pieces.
        declared.check_chunks(&chunks).map_err(|error| core.give_up(error))?;
        let buffers = L::stored(&bound);
        let extents: Vec<_> = (0..buffers.len()).map(|operand| L::extent_of(&bound, operand)).collect();
        let body = |chunk: &Chunk<K>, slots: &[Arc<Slot>]| {
            let points = [padded(chunk.range.min().0, 0), padded(chunk.range.max().0, 1)];
            let operand = |(slot, extent): (&Arc<Slot>, &[usize; 3])| LaunchOperand {
                slot: Arc::clone(slot),
                extent: *extent,
                declared: Vec::new(),
            };
            let operands = slots.iter().zip(&extents).map(operand).collect();
            let parameters = recording.parameters().to_vec();
            LaunchBody::new(program.clone(), points, operands, parameters, [0; 3], None, buffers.clone())
        };
        let bodies = |_, slots: Vec<Arc<Slot>>| {
            let (chunks, body) = (&chunks, &body);
            chunks.iter().map(move |chunk| body(chunk, &slots))
        };
        let on = Some(OnDevice { device, buffers: &buffers });
        let nodes = launch_on_nodes::<K, L, _, _>(&mut declaration, bound, Place::Inline, false, on, bodies)?;
        Ok(TaskHandle::new(nodes))
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
    fn device(&self) -> Option<Possible<'rt>> {
        match (self.place, &self.core.device) {
            (KernelPlace::Device(device), _) => Some((device, true)),
            (KernelPlace::Default, Some(device)) => Some((device, false)),
            _ => None,
        }
    }

    /// The same of a task with a shader.
    ///
    /// # Errors
    /// If it is to run on a device and there are several nodes.
    pub(super) fn device_of_shader(&self) -> Result<Option<Possible<'rt>>, Error> {
        let (core, device) = (self.core, self.device());
        match device {
            Some((_, true)) if core.several_nodes().is_some() => {
                let what = format!("the shader of {} is to run on a device", self.label);
                Err(core.refuse(Error::OneNodeOnly { what }))
            }
            _ => Ok(device.filter(|_| core.several_nodes().is_none())),
        }
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
        let body = LaunchBody::new(Ok(program), points, operands, parameters, groups, ranks, buffers.clone())
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
