//! The buffers that have met a device, and the copies that a task needs before it runs.

use super::{
    OnDevice, Slot,
    copy::{CopyBody, Direction, End},
    on_nodes::Predecessor,
    writers::Writers,
};
use crate::{
    data::stored::Stored,
    device::Device,
    error::Error,
    execute::{
        Core, Submission,
        core::State,
        graphs::Declared,
        submission::{link, link_all},
        task::{node::Node, place::Place},
    },
    label::TaskLabel,
    observe::TaskRecord,
};
use anabranch_graph::{
    Access, BufferId, Dependency, GraphError, Kind, MemoryCopy, MemoryId, Mode, Origin, Residence, TaskId,
    command::{BufferAccess, Mapper},
};
use anabranch_grid::{GridBox, Region};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::{
    mem, ptr,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
};

/// The devices of a runtime, and the buffers that have met one of them. It is a part of the state that submissions change under the lock.
#[derive(Default)]
pub(in crate::execute) struct Residents {
    /// The memory of the first one is number 1.
    pub(super) devices: Vec<Known>,
    pub(super) buffers: FxHashMap<BufferId, Resident>,
    pub(super) ended: Arc<Ended>,
    /// With several nodes: the copies that are not known to have ended.
    pub(super) steps: FxHashMap<TaskId, Predecessor>,
    /// With several nodes: the number of copies so far.
    pub(super) copies: u64,
}

/// A device, and its name: no code of devices runs under the lock.
pub(super) struct Known {
    device: Arc<dyn Device>,
    name: String,
}

/// A buffer that has met a device.
pub(in crate::execute) struct Resident {
    pub(super) buffer: Weak<dyn Stored>,
    versions: Vec<Version>,
}

pub(super) struct Version {
    pub(super) residence: Residence<TaskId>,
    /// The places on the devices.
    slots: Vec<Option<Arc<Slot>>>,
    /// With several nodes.
    pub(super) writers: Option<Box<Writers>>,
}

/// A copy, as its body reports its end.
#[derive(Clone, Copy)]
pub(super) struct CopyOf {
    buffer: BufferId,
    version: u32,
    task: TaskId,
}

/// The copies that have ended since the last submission that asked. A copy may end on a thread that holds the lock of the state, so it leaves
/// a note here.
#[derive(Default)]
pub(super) struct Ended(Mutex<Vec<(CopyOf, bool)>>);

impl Ended {
    pub(super) fn note(&self, copy: CopyOf, well: bool) {
        self.0.lock().push((copy, well));
    }
}

/// What has been submitted for a task before the graph gets it.
#[derive(Default)]
pub(in crate::execute) struct Prepared {
    /// The copies, which are in the graph and linked, and the number of tasks that each waits for.
    copies: SmallVec<[(Node, u32); 2]>,
    /// For each piece of the task, the copies that it depends on, with their buffers: those of what the piece reads itself.
    pub(in crate::execute) needs: SmallVec<[SmallVec<[Dependency; 4]>; 1]>,
}

impl Prepared {
    /// Lets the copies go. The caller holds no lock.
    pub(in crate::execute) fn start(&mut self, core: &Arc<Core>) {
        for (node, count) in self.copies.drain(..) {
            node.finish_submission(count, core);
        }
    }
}

impl Resident {
    pub(super) fn version(&mut self, number: u32) -> Option<&mut Version> {
        let number = number as usize;
        if self.versions.len() <= number {
            let extent = self.buffer.upgrade()?.extent();
            let new = || Version { residence: Residence::new(extent), slots: Vec::new(), writers: None };
            self.versions.resize_with(number + 1, new);
        }
        self.versions.get_mut(number)
    }
}

impl Version {
    fn slot(&mut self, memory: MemoryId, device: &Arc<dyn Device>, buffer: &dyn Stored) -> Arc<Slot> {
        let place = usize::from(memory.0);
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        Arc::clone(self.slots[place].get_or_insert_with(|| Slot::new(device, buffer)))
    }
}

impl Residents {
    /// Forgets a buffer. The caller drops what this returns outside of locks: devices free its memory.
    pub(in crate::execute) fn remove(&mut self, buffer: BufferId) -> Option<Resident> {
        self.buffers.remove(&buffer)
    }

    /// The memory of a device.
    fn memory_of(&self, device: &Arc<dyn Device>) -> Option<MemoryId> {
        let place = self
            .devices
            .iter()
            .position(|known| ptr::addr_eq(Arc::as_ptr(&known.device), Arc::as_ptr(device)))?;
        Some(MemoryId(place as u16 + 1))
    }

    /// The memory where a task runs.
    pub(in crate::execute) fn place(&self, device: Option<OnDevice<'_>>) -> MemoryId {
        let on = device.map(|on| self.memory_of(on.device).expect("the runtime has met the device"));
        on.unwrap_or(MemoryId::HOST)
    }

    /// Notes the buffers of a task on a device.
    pub(super) fn meet(&mut self, task: &Submission<'_>) {
        let Some(on) = task.device else { return };
        for (access, buffer) in task.accesses.iter().zip(on.buffers) {
            let resident = || Resident { buffer: Arc::downgrade(buffer), versions: Vec::new() };
            self.buffers.entry(access.buffer).or_insert_with(resident);
        }
    }

    /// Learns how copies have ended.
    pub(super) fn learn(&mut self) {
        for (copy, well) in mem::take(&mut *self.ended.0.lock()) {
            self.steps.remove(&copy.task);
            let Some(resident) = self.buffers.get_mut(&copy.buffer) else { continue };
            let Some(Version { residence, .. }) = resident.versions.get_mut(copy.version as usize) else {
                continue;
            };
            match well {
                true => residence.done(&copy.task),
                false => residence.failed(&copy.task),
            }
        }
    }
}

/// Submits the copies that a task in these pieces needs, if buffers of it have met a device. A task without pieces is one. The caller holds the lock of
/// the state.
#[inline]
pub(in crate::execute) fn prepare(
    core: &Arc<Core>,
    state: &mut State,
    task: &Submission<'_>,
    pieces: &[impl AsRef<[Access]>],
) -> Option<Box<Prepared>> {
    match state.residents {
        None => None,
        Some(_) => prepare_for_device(core, state, task, pieces),
    }
}

#[cold]
fn prepare_for_device(
    core: &Arc<Core>,
    state: &mut State,
    task: &Submission<'_>,
    pieces: &[impl AsRef<[Access]>],
) -> Option<Box<Prepared>> {
    // No copies for a task that the graph refuses.
    state.graphs.live().check_accesses(task.accesses).ok()?;
    let mut residents = state.residents.take().expect("the caller has looked");
    residents.meet(task);
    residents.learn();
    let memory = residents.place(task.device);
    let mut prepared = Prepared::default();
    for access in task.accesses.iter().filter(|access| access.mode.reads()) {
        let copied = residents.bring(core, state, task, access, memory, &mut prepared.copies);
        debug_assert!(
            copied.is_ok(),
            "the graph has checked the task, which reads more than its copies: {copied:?}"
        );
    }
    prepared.needs = pieces.iter().map(|piece| residents.needs(state, memory, piece.as_ref())).collect();
    state.residents = Some(residents);
    let is_needed = !prepared.copies.is_empty() || prepared.needs.iter().any(|needs| !needs.is_empty());
    is_needed.then(|| Box::new(prepared))
}

impl Residents {
    /// Submits the copies that a memory needs for a region to be read there.
    fn bring(
        &mut self,
        core: &Arc<Core>,
        state: &mut State,
        task: &Submission<'_>,
        access: &Access,
        memory: MemoryId,
        submitted: &mut SmallVec<[(Node, u32); 2]>,
    ) -> Result<(), GraphError> {
        let Some(resident) = self.buffers.get_mut(&access.buffer) else { return Ok(()) };
        let Some(buffer) = resident.buffer.upgrade() else { return Ok(()) };
        let number = state.graphs.live().current_version(access.buffer);
        let Some(version) = resident.version(number) else { return Ok(()) };
        let missing = version.residence.missing(memory, &access.region);
        let copies: Vec<_> =
            missing.into_iter().flat_map(|copy| by_writers(state, access.buffer, copy)).collect();
        for copy in copies {
            let needs = version.residence.made_by(copy.from, &copy.region);
            let needs: SmallVec<_> = needs.map(|&on| on_copy(on, access.buffer)).collect();
            let what = What::new(&self.devices, (&buffer, number), version, &copy);
            let (id, node) = what.submit(core, state, task, needs, &self.ended)?;
            version.residence.copied(&copy, id);
            submitted.push(node);
        }
        Ok(())
    }

    /// The copies to a memory that what reads there comes after.
    fn needs(&mut self, state: &State, memory: MemoryId, accesses: &[Access]) -> SmallVec<[Dependency; 4]> {
        let mut needs = SmallVec::new();
        for access in accesses.iter().filter(|access| access.mode.reads()) {
            let number = state.graphs.live().current_version(access.buffer);
            let resident = self.buffers.get_mut(&access.buffer);
            let Some(version) = resident.and_then(|resident| resident.version(number)) else { continue };
            let made_by = version.residence.made_by(memory, &access.region);
            needs.extend(made_by.map(|&on| on_copy(on, access.buffer)));
        }
        needs
    }

    /// Notes what a task writes, which the graph has accepted with these versions.
    fn written(&mut self, task: &Submission<'_>, versions: &[u32]) {
        let memory = self.place(task.device);
        for (access, &version) in
            task.accesses.iter().zip(versions).filter(|(access, _)| access.mode.writes())
        {
            let resident = self.buffers.get_mut(&access.buffer);
            if let Some(Version { residence, .. }) = resident.and_then(|resident| resident.version(version)) {
                residence.written(memory, &access.region);
            }
        }
    }

    /// The places on its device of what a task accesses, in these versions.
    pub(in crate::execute) fn slots(
        &mut self,
        task: &Submission<'_>,
        versions: &[u32],
    ) -> SmallVec<[Arc<Slot>; 4]> {
        let Some(on) = task.device else { return SmallVec::new() };
        let memory = self.place(task.device);
        let accesses = task.accesses.iter().zip(on.buffers).zip(versions);
        let slot = |((access, buffer), &version): ((&Access, &Arc<dyn Stored>), &u32)| {
            let resident = self.buffers.get_mut(&access.buffer)?;
            Some(resident.version(version)?.slot(memory, on.device, &**buffer))
        };
        accesses.filter_map(slot).collect()
    }
}

/// Notes what a task writes that the graph has accepted. The caller holds the lock of the state.
#[inline]
pub(in crate::execute) fn note_writes(state: &mut State, task: &Submission<'_>) {
    let State { graphs, residents, .. } = state;
    if let Some(residents) = residents {
        residents.written(task, &graphs.submitted().versions);
    }
}

/// Cuts a copy into one for each task that has not written its part yet, or has failed to, and one for the rest. Nothing waits for a task, or
/// is skipped because of it, only because its data is copied together with other data.
fn by_writers(state: &mut State, buffer: BufferId, copy: MemoryCopy) -> Vec<MemoryCopy> {
    let State { graphs, tasks, .. } = state;
    // In the order of their first parts.
    let (mut parts, mut place_of) = (Vec::<Vec<GridBox<3>>>::new(), FxHashMap::default());
    for (writer, part) in graphs.live_mut().writers(buffer, &copy.region) {
        let writer = Some(writer).filter(|&writer| !tasks.has_ended_well(writer));
        let place = *place_of.entry(writer).or_insert(parts.len());
        if place == parts.len() {
            parts.push(Vec::new());
        }
        parts[place].push(part);
    }
    if parts.len() <= 1 {
        return vec![copy];
    }
    let part = |boxes| MemoryCopy { region: Region::from_boxes(boxes), ..copy };
    parts.into_iter().map(part).collect()
}

/// The dependency of what needs a copy.
fn on_copy(on: TaskId, buffer: BufferId) -> Dependency {
    Dependency { on, kind: Kind::True, origin: Origin::Buffer(buffer) }
}

/// A copy that is about to be submitted.
pub(super) struct What<'a> {
    buffer: &'a Arc<dyn Stored>,
    version: u32,
    copy: &'a MemoryCopy,
    pub(super) direction: Direction,
    /// The name of the device.
    name: &'a str,
    slot: Arc<Slot>,
    /// The memory of the device.
    queue: MemoryId,
}

impl<'a> What<'a> {
    /// A copy of a part of this version.
    pub(super) fn new(
        devices: &'a [Known],
        (buffer, number): (&'a Arc<dyn Stored>, u32),
        version: &mut Version,
        copy: &'a MemoryCopy,
    ) -> Self {
        let (direction, other) = match copy.to {
            MemoryId::HOST => (Direction::ToHost, copy.from),
            device => (Direction::ToDevice, device),
        };
        let Known { device, name } = &devices[usize::from(other.0) - 1];
        let slot = version.slot(other, device, &**buffer);
        Self { buffer, version: number, copy, direction, name, slot, queue: other }
    }

    /// The name of the copy, for the task that needs it.
    pub(super) fn label(&self, of: &TaskLabel) -> TaskLabel {
        let to = match self.direction {
            Direction::ToHost => "the host",
            Direction::ToDevice => self.name,
        };
        TaskLabel { name: format!("copy of {} to {to}", self.buffer.label()).into(), location: of.location }
    }

    /// The body of the copy, whose end is noted for this task.
    pub(super) fn body(self, task: TaskId, ended: &Arc<Ended>) -> CopyBody {
        let Self { buffer, version, copy, direction, slot, .. } = self;
        let end = End::new(ended, CopyOf { buffer: buffer.id(), version, task });
        CopyBody::new(direction, (Arc::clone(buffer), version), copy.region.clone(), slot, end)
    }

    /// Submits the copy: the graph orders it like a task that reads the region. It also comes after the copies that its source `needs`.
    fn submit(
        self,
        core: &Arc<Core>,
        state: &mut State,
        of: &Submission<'_>,
        needs: SmallVec<[Dependency; 4]>,
        ended: &Arc<Ended>,
    ) -> Result<(TaskId, (Node, u32)), GraphError> {
        let Self { buffer, copy, .. } = self;
        let label = self.label(of.label);
        let accesses = [Access { buffer: buffer.id(), region: copy.region.clone(), mode: Mode::Read }];
        let submission = Submission {
            label: &label,
            group: of.group,
            accesses: &accesses,
            effects: &[],
            priority: 0,
            place: Place::Inline,
            observes: true,
            record: None,
            device: None,
        };
        let record = core.needs_records().then(|| record(&**buffer, &copy.region));
        let State { graphs, tasks, barrier, .. } = state;
        let task = Declared { label: &label, accesses: &accesses, effects: &[], record: record.as_ref() };
        graphs.submit(&task, &|task| tasks.is_forgettable(task))?;
        let submitted = graphs.submitted();
        let id = submitted.id;
        let queue = self.queue;
        let body = self.body(id, ended).on_queue();
        let node = Node::new(|| submission.head(id, core).on_queue(queue), || body);
        let mut count = link(core, tasks, barrier.as_ref(), &node, &submitted.dependencies);
        count += link_all(tasks, &node, &needs);
        Ok((id, (node, count)))
    }
}

/// What the recorder needs to draw a copy.
fn record(buffer: &dyn Stored, region: &Region<3>) -> Arc<TaskRecord> {
    let region = region.clone();
    let mapper = Mapper::new(move |_| region.clone());
    Arc::new(TaskRecord {
        accesses: vec![BufferAccess { buffer: buffer.id(), mode: Mode::Read, mapper }],
        buffers: vec![buffer.label().to_string()],
        ..TaskRecord::default()
    })
}

impl Core {
    /// Makes a device known, before the first task runs on it.
    ///
    /// # Errors
    /// [`Error::Setting`] if there are too many.
    pub(crate) fn meet_device(&self, device: &Arc<dyn Device>) -> Result<(), Error> {
        let is_known = |residents: &Residents| residents.memory_of(device).is_some();
        if self.state.lock().residents.as_ref().is_some_and(|residents| is_known(residents)) {
            return Ok(());
        }
        let name = device.info().name.clone();
        let mut state = self.state.lock();
        let residents = state.residents.get_or_insert_default();
        // Another thread may have been faster.
        if is_known(residents) {
            return Ok(());
        }
        let most = usize::from(MemoryId::COUNT) - 1;
        if residents.devices.len() == most {
            let (setting, value) = ("the number of devices of a runtime", (most + 1).to_string());
            return Err(Error::Setting { setting, value, range: "63 or fewer" });
        }
        residents.devices.push(Known { device: Arc::clone(device), name });
        self.meets_devices.store(true, Relaxed);
        Ok(())
    }
}
