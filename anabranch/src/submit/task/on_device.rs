//! Submitting recorded kernels and shaders to devices.

use super::{TaskBuilder, hints::Hints, index_space::Over, kernel_place::KernelPlace};
use crate::{
    device::{Device, DeviceError, DeviceProgram, Parameters},
    error::Error,
    execute::{
        Core, Node, Place, Submission, TaskHandle,
        devices::{
            Buffers, LaunchBody, LaunchOperand, LaunchOperands, LaunchParts, LeavesOnHost, OnDevice, Slot,
        },
    },
    submit::{
        access::list::{AccessList, KernelAccessList},
        launch::{
            body::{Chunks, DeviceLeaves},
            declaration::{Declaration, Piece},
            launch_on_nodes,
        },
        recorded::{
            Declared,
            access::{RecordedAccessList, padded},
        },
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, GridBox};
use anabranch_kernel::Recording;
use smallvec::{SmallVec, smallvec};
use std::{slice, sync::Arc};

/// A device, and a program that it has prepared. With several nodes perhaps the error of a device that is
/// lost, with which the task fails.
pub(in crate::submit) type Chosen = (Arc<dyn Device>, Result<DeviceProgram, DeviceError>);

impl<const K: usize, L: RecordedAccessList<K> + KernelAccessList> TaskBuilder<'_, K, Over, L> {
    /// The device that the recorded kernel runs on, and its program there; `None` for the host.
    ///
    /// # Errors
    /// If the task says that it runs on a device which cannot run it.
    pub(in crate::submit) fn program_on_device(
        &self,
        recording: &Recording,
    ) -> Result<Option<Chosen>, Error> {
        let Some((device, must)) = self.device() else { return Ok(None) };
        self.choose(device, must, self.core.programs.on(device, recording))
    }
}

/// A recorded kernel, as devices run it.
pub(in crate::submit) struct RecordingOnDevice<'a>(pub(in crate::submit) &'a Recording);

impl<const K: usize, L: RecordedAccessList<K>> KernelOnDevice<K, L> for RecordingOnDevice<'_> {
    fn check(&self, declaration: &Declaration<'_, K>, bound: &L::Bound) -> Result<(), Error> {
        let declared = Declared::<K, L> { task: declaration.task, recording: self.0, bound };
        declared.check_whole(declaration.whole.range, &declaration.accesses)
    }

    fn check_chunks(&self, declaration: &Declaration<'_, K>, bound: &L::Bound) -> Result<(), Error> {
        let declared = Declared::<K, L> { task: declaration.task, recording: self.0, bound };
        declared.check_chunks(declaration.chunks)
    }

    fn buffers(&self, bound: &L::Bound) -> Buffers {
        L::stored(bound)
    }

    fn operands(&self, bound: &L::Bound, _: usize, mut f: impl FnMut(Extents)) {
        (0..L::RANKS.len()).for_each(|operand| f((L::extent_of(bound, operand), Vec::new())));
    }

    fn parameters(&self) -> Parameters {
        Parameters::from_slice(self.0.parameters())
    }

    fn leaves(&self, bound: &Arc<L::Bound>, flush_denormals: bool) -> Option<Box<dyn LeavesOnHost>> {
        let leaves = || DeviceLeaves::<K, L> { bound: Arc::clone(bound), flush_denormals };
        L::REDUCES.then(|| Box::new(leaves()) as _)
    }
}

/// The extent of a buffer, and for a shader the boxes of it that the task declares, padded at the front.
pub(in crate::submit) type Extents = ([usize; 3], Vec<[[usize; 3]; 2]>);

/// A device that a task runs on if it can, and whether it must.
pub(in crate::submit) type Possible<'a> = (&'a Arc<dyn Device>, bool);

/// What a device runs for a task.
pub(in crate::submit) trait KernelOnDevice<const K: usize, L: AccessList<K>> {
    /// Checks what the task declares. A shader is checked while it runs.
    fn check(&self, _: &Declaration<'_, K>, _: &L::Bound) -> Result<(), Error> {
        Ok(())
    }

    /// Checks what the chunks of this node declare.
    fn check_chunks(&self, _: &Declaration<'_, K>, _: &L::Bound) -> Result<(), Error> {
        Ok(())
    }

    fn buffers(&self, bound: &L::Bound) -> Buffers;

    /// Calls a function with the operands of the launch for a chunk, in their order.
    fn operands(&self, bound: &L::Bound, chunk: usize, f: impl FnMut(Extents));

    fn parameters(&self) -> Parameters;

    /// For a shader with groups: how many there are for the points of a launch.
    fn groups(&self, _: [[usize; 3]; 2]) -> [usize; 3] {
        [0; 3]
    }

    /// For a shader: the ranks of the buffers.
    fn ranks(&self) -> Option<Vec<usize>> {
        None
    }

    /// With several nodes: what gets the leaves of the reductions, if there are any. `flush_denormals` says
    /// whether it flushes denormal numbers.
    fn leaves(&self, _: &Arc<L::Bound>, _flush_denormals: bool) -> Option<Box<dyn LeavesOnHost>> {
        None
    }
}

impl<const K: usize, L> TaskBuilder<'_, K, Over, L> {
    /// The device that the task runs on if it can, and whether it must; `None` for the host.
    pub(in crate::submit) fn device(&self) -> Option<Possible<'_>> {
        match (&self.place, &self.core.device) {
            (KernelPlace::Device(device), _) => Some((device, true)),
            (KernelPlace::Default, Some(device)) => Some((device, false)),
            _ => None,
        }
    }

    /// The device, if it has prepared the program or if the task fails with its error; `None` if it cannot
    /// run it and does not have to.
    ///
    /// # Errors
    /// If the task cannot be submitted.
    pub(in crate::submit) fn choose(
        &self,
        device: &Arc<dyn Device>,
        must: bool,
        program: Result<DeviceProgram, DeviceError>,
    ) -> Result<Option<Chosen>, Error> {
        let core = self.core;
        match program {
            Err(DeviceError::Unsupported { .. }) if !must => Ok(None),
            // The other nodes submit the task, and get the failure in place of the data.
            Err(DeviceError::Lost { .. } | DeviceError::Failed { .. }) if core.several_nodes().is_some() => {
                Ok(Some((Arc::clone(device), program)))
            }
            Err(error) => Err(core.refuse(Error::Device { task: self.label.clone(), error })),
            Ok(_) => Ok(Some((Arc::clone(device), program))),
        }
    }

    /// Submits a task that runs on a device: on one node for the whole index space, on several for the pieces
    /// of this node.
    pub(in crate::submit) fn launch_on(
        self,
        (device, program): Chosen,
        what: &impl KernelOnDevice<K, L>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
    {
        if self.core.several_nodes().is_some() {
            return self.launch_pieces_on(&device, &program, what);
        }
        let Self { core, group, label, space, hints, accesses, .. } = self;
        core.id().check_process("submit")?;
        core.meet_device(&device)?;
        let whole = Chunk::whole(space);
        let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
        hints.record(&mut declaration, Work::Kernel { space: space.cast() });
        let bound = accesses.declare(&mut declaration)?;
        what.check(&declaration, &bound)?;
        let buffers = what.buffers(&bound);
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
            device: Some(OnDevice { device: &device, buffers: &buffers }),
        };
        let accepted = core.accept(&task);
        let mut accepted = accepted.map_err(|error| declaration.explain(*error, &L::labels(&bound)))?;
        let slots = accepted.slots();
        let launch = || LaunchParts {
            reduces: L::REDUCES,
            ..parts(what, &bound, (0, space), program, &slots, &buffers)
        };
        let node = Node::new(|| accepted.head_on_device(), || LaunchBody::new(launch()));
        Ok(TaskHandle::new(smallvec![accepted.insert(node)]))
    }

    /// Submits a task whose pieces on this node run on a device.
    #[cold]
    fn launch_pieces_on(
        self,
        device: &Arc<dyn Device>,
        program: &Result<DeviceProgram, DeviceError>,
        what: &impl KernelOnDevice<K, L>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
    {
        let Self { core, group, label, space, hints, accesses, .. } = self;
        core.id().check_process("submit")?;
        core.meet_device(device).map_err(|error| core.refuse(error))?;
        let work = Work::Kernel { space: space.cast() };
        let chunks = chunks_on_nodes(core, &work, &hints, space, L::REDUCES);
        let mut declaration = Declaration::new(core, group, &label, Chunk::whole(space), &chunks);
        declaration.has_leaves = L::REDUCES;
        if !L::REDUCES {
            declaration.pieces = (0..chunks.len()).map(|at| Piece::new(at..at + 1)).collect();
        }
        hints.record(&mut declaration, work);
        let bound = accesses.declare(&mut declaration).map_err(|error| core.refuse(error))?;
        what.check(&declaration, &bound).map_err(|error| core.refuse(error))?;
        // As on the host: perhaps only this node finds a mistake in its pieces.
        what.check_chunks(&declaration, &bound).map_err(|error| core.give_up(error))?;
        let buffers = what.buffers(&bound);
        let bodies = |bound: L::Bound, slots: SmallVec<[Arc<Slot>; 4]>| {
            let (bound, chunks, buffers) = (Arc::new(bound), &chunks, &buffers);
            chunks.iter().enumerate().map(move |(at, chunk)| {
                let leaves = what.leaves(&bound, hints.flush_denormals);
                let parts = parts(what, &bound, (at, chunk.range), program.clone(), &slots, buffers);
                LaunchBody::new(LaunchParts { leaves, ..parts })
            })
        };
        let on = Some(OnDevice { device, buffers: &buffers });
        let nodes = launch_on_nodes::<K, L, _, _>(&mut declaration, bound, Place::Inline, false, on, bodies)?;
        Ok(TaskHandle::new(nodes))
    }
}

/// What this node executes of a kernel: its pieces, or of a kernel with reductions the points of its leaves.
fn chunks_on_nodes<const K: usize>(
    core: &Core,
    work: &Work,
    hints: &Hints<K>,
    space: GridBox<K>,
    reduces: bool,
) -> Chunks<K> {
    let Some(nodes) = core.several_nodes() else { return Chunks::new() };
    let hints = hints.for_nodes(core.nodes());
    let boxes = match reduces {
        true => nodes.part(work, &hints, true).chunk.into_iter().collect(),
        false => nodes.pieces(work, &hints),
    };
    boxes.into_iter().map(|range| Chunk { range: range.cast(), global: space }).collect()
}

/// The launch for a chunk: its number, and its points.
#[inline(always)]
fn parts<const K: usize, L: AccessList<K>>(
    what: &impl KernelOnDevice<K, L>,
    bound: &L::Bound,
    (chunk, range): (usize, GridBox<K>),
    program: Result<DeviceProgram, DeviceError>,
    slots: &[Arc<Slot>],
    buffers: &Buffers,
) -> LaunchParts {
    let points = [padded(range.min().0, 0), padded(range.max().0, 1)];
    let (mut slots, mut operands) = (slots.iter(), LaunchOperands::new());
    what.operands(bound, chunk, |(extent, declared)| {
        let slot = slots.next().map(Arc::clone);
        operands.extend(slot.map(|slot| LaunchOperand { slot, extent, declared }));
    });
    LaunchParts {
        program,
        points,
        operands,
        parameters: what.parameters(),
        groups: what.groups(points),
        ranks: what.ranks(),
        reduces: false,
        leaves: None,
        buffers: buffers.clone(),
    }
}

impl<const K: usize, S, L: AccessList<K>> TaskBuilder<'_, K, S, L> {
    /// Checks that a task which is not a recorded kernel is not to run on a device.
    pub(in crate::submit) fn check_is_on_host(&self) -> Result<(), Error> {
        let KernelPlace::Device(device) = &self.place else { return Ok(()) };
        let range = "no device, or `each` or `shader`: devices run recorded kernels and shaders only";
        Err(Error::of_setting(&self.label, "its device", device.info().name.clone(), range))
    }
}
