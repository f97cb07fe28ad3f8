//! What devices need at a submission: the runtime registers a device, submits the copies that a task needs,
//! and notes what the task writes.

use super::{
    ended_copies::Ended,
    planned_copy::PlannedCopy,
    residents::{Known, Residents},
};
use crate::{
    data::stored::Stored,
    device::Device,
    error::Error,
    execute::{
        core::{Core, State},
        graphs::Declared,
        submission::{Submission, link, link_all},
        task::{node::Node, place::Place},
    },
    observe::{RecordedPlace, TaskRecord},
};
use anabranch_graph::{
    Access, BufferId, Dependency, GraphError, Kind, MemoryCopy, MemoryId, Mode, Origin, TaskId,
    command::{BufferAccess, Mapper},
};
use anabranch_grid::{GridBox, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// The copies that a task depends on.
type Needed = SmallVec<[Dependency; 2]>;

/// What has been submitted for a task before the graph gets it.
#[derive(Default)]
pub(in crate::execute) struct Prepared {
    /// The copies, which are in the graph and linked, and the number of tasks that each waits for.
    copies: SmallVec<[(Node, u32); 2]>,
    /// For each piece of the task, the copies that it depends on, with their buffers: those of what the piece
    /// reads itself.
    pub(in crate::execute) needs: SmallVec<[Needed; 1]>,
}

impl Prepared {
    /// Lets the copies go. The caller holds no lock.
    pub(in crate::execute) fn start(&mut self, core: &Arc<Core>) {
        for (node, count) in self.copies.drain(..) {
            node.finish_submission(count, core);
        }
    }
}

/// Submits the copies that a task in these pieces needs, if buffers of it have met a device. A task without
/// pieces is one. The caller holds the lock of the state.
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
    let mut residents = state.residents.take().expect("the caller has looked");
    task.device.into_iter().for_each(|on| residents.meet(on, task.accesses));
    residents.learn();
    let memory = residents.place(task.device);
    let mut prepared = Prepared::default();
    let mut reads = task.accesses.iter().filter(|access| access.mode.reads());
    let copied =
        reads.try_for_each(|read| residents.bring(core, state, task, read, memory, &mut prepared.copies));
    // The accesses have been checked before the first copy is submitted, so that none is left without its task.
    debug_assert!(copied.is_ok() || prepared.copies.is_empty());
    if copied.is_ok() {
        for piece in pieces {
            prepared.needs.push(residents.needs(state, memory, piece.as_ref()));
        }
    }
    state.residents = Some(residents);
    state.graphs.place_next(RecordedPlace::In(memory));
    let is_needed = !prepared.copies.is_empty() || prepared.needs.iter().any(|needs| !needs.is_empty());
    is_needed.then(|| Box::new(prepared))
}

impl Residents {
    /// Submits the copies that a memory needs for a region to be read there.
    ///
    /// # Errors
    /// If it needs some, and the graph refuses the task. Nothing is submitted then.
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
        if missing.is_empty() {
            return Ok(());
        }
        if submitted.is_empty() {
            state.graphs.live().check_accesses(task.accesses)?;
        }
        let copies: Vec<_> =
            missing.into_iter().flat_map(|copy| by_writers(state, access.buffer, copy)).collect();
        for copy in copies {
            let needs = version.residence.made_by(copy.from, &copy.region);
            let needs: SmallVec<_> = needs.map(|&on| on_copy(on, access.buffer)).collect();
            let planned = PlannedCopy::new(&self.devices, (&buffer, number), version, &copy);
            let (id, node) = planned.submit(core, state, task, needs, &self.ended)?;
            version.residence.copied(&copy, id);
            submitted.push(node);
        }
        Ok(())
    }

    /// The copies to a memory that what reads there comes after.
    fn needs(&mut self, state: &State, memory: MemoryId, accesses: &[Access]) -> Needed {
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
}

/// Notes what a task writes that the graph has accepted. The caller holds the lock of the state.
#[inline]
pub(in crate::execute) fn note_writes(state: &mut State, task: &Submission<'_>) {
    let State { graphs, residents, .. } = state;
    if let Some(residents) = residents {
        residents.written(residents.place(task.device), task.accesses, &graphs.submitted().versions);
    }
}

/// Cuts a copy into one for each task that has not written its part yet, or has failed to, and one for the
/// rest. Nothing waits for a task, or is skipped because of it, only because its data is copied together with
/// other data.
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

impl PlannedCopy<'_> {
    /// Submits the copy: the graph orders it like a task that reads the region. It also comes after the
    /// copies that its source `needs`.
    fn submit(
        self,
        core: &Arc<Core>,
        state: &mut State,
        of: &Submission<'_>,
        needs: Needed,
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
        graphs.place_next(RecordedPlace::Copies { from: copy.from, to: copy.to });
        graphs.submit(&task, &|task| tasks.is_forgettable(task))?;
        let submitted = graphs.submitted();
        let id = submitted.id;
        let queue = self.queue;
        let body = self.body(id, ended).on_queue();
        let node = Node::new(|| submission.head(id, core, Some(queue)), || body);
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
