//! The task graph.

use crate::{
    ancestry::Ancestry,
    front::Front,
    horizon::Settings,
    names::Named,
    object::Object,
    task::{
        Access, BufferId, Dependency, Effect, GraphError, Horizon, Kind, Mode, ObjectId, Order, Origin,
        Submitted, TaskId,
    },
    tracker::{Before, Tracker},
};
use anabranch_grid::{Extent, GridBox, Region};
use smallvec::SmallVec;

/// Derives dependencies from the accesses and effects of tasks, in the order of their submission: see the
/// [crate](crate) docs.
///
/// Only what future tasks can depend on is kept; tasks themselves are not. Every task, epoch and horizon takes the
/// next id.
#[derive(Debug)]
pub struct TaskGraph {
    settings: Settings,
    buffers: Named<BufferId, Tracker>,
    objects: Named<ObjectId, Object>,
    /// The last name that a buffer or object was given.
    names: u64,
    front: Front,
    ancestry: Option<Ancestry>,
    /// The last id that was given away.
    last: TaskId,
    /// The epoch or horizon that stands for everything before it.
    epoch: TaskId,
    /// The last epoch: everything submitted since comes after it.
    barrier: TaskId,
    /// The last horizon or epoch.
    horizon: TaskId,
}

type Dependencies = SmallVec<[Dependency; 4]>;
type Done<'a> = &'a dyn Fn(TaskId) -> bool;

impl Default for TaskGraph {
    fn default() -> Self {
        Self::with(Settings::default())
    }
}

impl TaskGraph {
    /// A graph with nothing but its root epoch, without horizons and conflict edges.
    pub fn new() -> Self {
        Self::default()
    }

    /// A graph with nothing but its root epoch.
    pub fn with(settings: Settings) -> Self {
        Self {
            settings,
            buffers: Named::default(),
            objects: Named::default(),
            names: 0,
            front: Front::after(TaskId::EPOCH),
            ancestry: settings.conflicts.then(Ancestry::new),
            last: TaskId::EPOCH,
            epoch: TaskId::EPOCH,
            barrier: TaskId::EPOCH,
            horizon: TaskId::EPOCH,
        }
    }

    /// A buffer of the given extent. `initialised`: its contents are there from the start.
    pub fn create_buffer(&mut self, extent: Extent<3>, initialised: bool) -> BufferId {
        self.names += 1;
        let id = BufferId(self.names);
        self.buffers.insert(id, Tracker::new(extent, initialised, self.epoch));
        id
    }

    /// How many allocations a buffer may have at a time (1 to begin with, and at least): a complete overwrite of a buffer
    /// whose former contents are still being read goes to another one instead of waiting.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn set_versions(&mut self, buffer: BufferId, versions: usize) {
        self.tracker_mut(buffer).set_versions(versions);
    }

    /// Says that the contents of a buffer are not needed any more: what reads them before they are written again is
    /// an error.
    ///
    /// This makes several tasks that each write a part into one complete overwrite. Where the contents are still being
    /// read and the buffer has versions, what is written next goes to another version. Otherwise each task waits for
    /// those that use exactly the part that it writes, as it does without this.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn discard(&mut self, buffer: BufferId, done: Done<'_>) {
        let (epoch, barrier) = (self.epoch, self.barrier);
        self.tracker_mut(buffer).discard(epoch, &|task| task == barrier || done(task));
    }

    /// Forgets a buffer. No later task can access it.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    /// A host object.
    pub fn create_object(&mut self) -> ObjectId {
        self.names += 1;
        let id = ObjectId(self.names);
        self.objects.insert(id, Object::new(self.epoch));
        id
    }

    /// Forgets a host object. No later task can touch it.
    pub fn remove_object(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// The number of tasks, epochs and horizons so far, without the root: the last id.
    pub fn len(&self) -> u64 {
        self.last.0
    }

    /// Whether nothing was submitted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that the graph keeps, as a measure of its memory: parts of buffers and who reads them,
    /// effects on objects, recent tasks. It stays bounded for ever if there are [horizons](Settings::horizons), or if
    /// `done` is told the truth and what is in flight is bounded.
    pub fn tracked(&self) -> usize {
        let buffers: usize = self.buffers.values().map(Tracker::tracked).sum();
        let objects: usize = self.objects.values().map(Object::tracked).sum();
        buffers + objects + self.front.tracked() + self.ancestry.as_ref().map_or(0, Ancestry::tracked)
    }

    /// Calls `f` with every task whose results or effects a later task may need, some several times.
    pub fn last_writers(&self, mut f: impl FnMut(TaskId)) {
        self.buffers.values().for_each(|tracker| tracker.all_writers(self.epoch, &mut f));
        self.objects.values().flat_map(|object| object.users(self.epoch)).for_each(f);
    }

    /// Adds a task and derives its dependencies. `done` tells which earlier tasks are known to have finished; no
    /// dependency is lost if it says `false` too often.
    ///
    /// # Errors
    /// See [`GraphError`]; the graph is then as before.
    ///
    /// # Panics
    /// If a buffer or object is not (or no longer) part of the graph.
    pub fn submit(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
    ) -> Result<Submitted, GraphError> {
        let mut submitted = Submitted::default();
        self.submit_into(accesses, effects, done, &mut submitted)?;
        Ok(submitted)
    }

    /// Like [`submit`](TaskGraph::submit), with the answer in the place of an earlier one, which saves some time.
    ///
    /// # Errors
    /// See [`GraphError`]; the graph is then as before, and `submitted` means nothing.
    ///
    /// # Panics
    /// If a buffer or object is not (or no longer) part of the graph.
    pub fn submit_into(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        self.derive(accesses, effects, done, submitted)?;
        self.settle(&mut submitted.dependencies);
        let depth = self.front.push(&submitted.dependencies, self.horizon);
        self.conclude(submitted, done);
        if let Some(horizons) = self.settings.horizons
            && horizons.is_due(depth, self.front.len(), self.last.0 - self.horizon.0)
        {
            submitted.horizon = Some(self.make_horizon());
        }
        Ok(())
    }

    /// Adds an epoch: it comes after everything before it, and everything submitted later comes after it.
    ///
    /// It depends on the execution front, and is from then on regarded as the producer of all that was written, so
    /// that nothing later depends on anything older. What was never written stays so. The epoch may capture: read
    /// parts of buffers, and have effects on host objects (whose order makes no difference here).
    ///
    /// ```
    /// # use anabranch_graph::{Access, Kind, TaskGraph, TaskId};
    /// # use anabranch_grid::{Extent, GridBox};
    /// let mut graph = TaskGraph::new();
    /// let whole = GridBox::full([8, 1, 1]);
    /// let u = graph.create_buffer(Extent([8, 1, 1]), false);
    /// let writer = graph.submit(&[Access::write(u, whole)], &[], &|_| false)?;
    /// let epoch = graph.epoch(&[Access::read(u, whole)], &[], &|_| false)?;
    /// assert_eq!((epoch.dependencies[0].on, epoch.dependencies[0].kind), (writer.id, Kind::True));
    /// let reader = graph.submit(&[Access::read(u, whole)], &[], &|_| false)?;
    /// assert_eq!(reader.dependencies[0].on, epoch.id);
    /// # Ok::<(), anabranch_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// See [`GraphError`]; the graph is then as before.
    ///
    /// # Panics
    /// If a buffer or object is not (or no longer) part of the graph, or an access writes.
    pub fn epoch(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
    ) -> Result<Submitted, GraphError> {
        let writes = accesses.iter().position(|access| access.mode.writes());
        assert!(writes.is_none(), "access {} of an epoch writes: it can only read", writes.unwrap_or(0));
        let effects: SmallVec<[Effect; 4]> =
            effects.iter().map(|&effect| Effect { order: Order::Sequential, ..effect }).collect();
        let mut submitted = Submitted::default();
        self.derive(accesses, &effects, done, &mut submitted)?;
        submitted.dependencies.extend(self.front.iter().map(after));
        self.settle(&mut submitted.dependencies);
        let id = submitted.id;
        (self.epoch, self.barrier, self.horizon) = (id, id, id);
        self.front.reset(id);
        self.conclude(&mut submitted, done);
        Ok(submitted)
    }

    /// What the next task depends on by its accesses and effects, which are noted.
    fn derive(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        let id = TaskId(self.last.0 + 1);
        submitted.clear(id);
        let found = &mut submitted.dependencies;

        // First what is read, then what is written: a rename must not hide the contents that the same task reads,
        // and whoever produced something that is read needs no second edge.
        for (i, access) in accesses.iter().enumerate() {
            let tracker = self.tracker(access.buffer);
            check_bounds(tracker, i, access)?;
            if access.mode.reads() {
                read(tracker, self.epoch, i, access, found)?;
            }
            check_overlap(&accesses[..i], i, access)?;
            submitted.versions.push(tracker.current());
        }
        self.last = id;
        for (access, version) in accesses.iter().zip(&mut submitted.versions) {
            if access.mode.writes() {
                *version = self.write(access, accesses, done, found);
            }
        }
        let epoch = self.epoch;
        for access in accesses.iter().filter(|a| a.mode == Mode::Read) {
            self.tracker_mut(access.buffer).read(&access.region, id, epoch, done);
        }
        for effect in effects {
            let object = self.objects.get_mut(&effect.object).expect("an object of this graph");
            if self.settings.conflicts {
                object.conflicts(effect.order, epoch, |other| submitted.conflicts.push(other));
            }
            let origin = Origin::Object(effect.object);
            object.touch(id, effect.order, epoch, done, |on, kind| {
                // Several effects of one task on one object need no order.
                if on != id {
                    add(found, Dependency { on, kind, origin });
                }
            });
        }
        Ok(())
    }

    /// Notes a write of the last task and its dependencies; the version that it goes to.
    fn write(
        &mut self,
        access: &Access,
        accesses: &[Access],
        done: Done<'_>,
        found: &mut Dependencies,
    ) -> u32 {
        let (id, epoch, barrier) = (self.last, self.epoch, self.barrier);
        let origin = Origin::Buffer(access.buffer);
        let tracker = self.tracker_mut(access.buffer);
        // A reader that this task comes after anyway holds nothing up; others are worth another version.
        let renames = tracker.renames()
            && access.mode == Mode::Write
            && accesses.iter().filter(|other| other.buffer == access.buffer).count() == 1
            && access.region.contains_box(&tracker.whole())
            && tracker.is_read(epoch, |r| r != barrier && !done(r) && !found.iter().any(|d| d.on == r));
        if renames {
            tracker.rename(id, epoch, done, |on| add(found, Dependency { on, kind: Kind::Anti, origin }));
        } else {
            tracker.write(&access.region, id, epoch, done, |before| {
                let (on, kind) = match before {
                    Before::Reader(on) => (on, Kind::Anti),
                    // Found as the one whose results are read.
                    Before::Writer(_) if access.mode.reads() => return,
                    Before::Writer(on) => (on, Kind::Output),
                };
                add(found, Dependency { on, kind, origin });
            });
        }
        tracker.current()
    }

    /// One edge per task, the strongest, ascending; one to the epoch only where there is no other.
    #[inline]
    fn settle(&self, found: &mut Dependencies) {
        if found.len() > 1 {
            found.sort_unstable_by_key(|d| (d.on, d.kind));
            found.dedup_by_key(|d| d.on);
            if found.len() > 1 && found[0].on == self.barrier {
                // Whoever depends on any later task comes after the epoch anyway.
                found.remove(0);
            }
        }
        if found.is_empty() {
            found.push(after(self.epoch));
        }
    }

    /// Notes a new task: its ancestry, if that is wanted; forgets what nobody needs.
    #[inline]
    fn conclude(&mut self, submitted: &mut Submitted, done: Done<'_>) {
        if self.settings.horizons.is_none() {
            self.front.forget_done(done);
        }
        if let Some(ancestry) = &mut self.ancestry {
            ancestry.push(&submitted.dependencies);
            ancestry.remove_ancestors(submitted.id, &mut submitted.conflicts);
            submitted.conflicts.sort_unstable();
            submitted.conflicts.dedup();
            if ancestry.is_long() {
                // Only the way to tasks that may still be in conflict is ever searched.
                let oldest = self.objects.values().filter_map(Object::oldest_since).min();
                ancestry.forget_before(oldest.map_or(submitted.id, |oldest| oldest.max(self.epoch)));
            }
        }
    }

    /// Makes a horizon, and lets the one before it take the place of all that is older.
    #[cold]
    fn make_horizon(&mut self) -> Horizon {
        self.last.0 += 1;
        let (id, applied) = (self.last, self.horizon);
        let dependencies: Vec<Dependency> = self.front.iter().map(after).collect();
        (self.horizon, self.epoch) = (id, applied);
        self.front.push_horizon();
        self.front.forget_before(applied);
        if let Some(ancestry) = &mut self.ancestry {
            ancestry.push(&dependencies);
            ancestry.forget_before(applied);
        }
        Horizon { id, dependencies, applied }
    }

    fn tracker(&self, buffer: BufferId) -> &Tracker {
        self.buffers.get(&buffer).expect("a buffer of this graph")
    }

    fn tracker_mut(&mut self, buffer: BufferId) -> &mut Tracker {
        self.buffers.get_mut(&buffer).expect("a buffer of this graph")
    }
}

/// An edge of the graph's own.
fn after(on: TaskId) -> Dependency {
    Dependency { on, kind: Kind::Serial, origin: Origin::Graph }
}

/// Adds an edge. What is found several times in a row (a neighbour's boxes, say) is kept once; the rest is for `settle`.
#[inline]
fn add(found: &mut Dependencies, new: Dependency) {
    if found.last() != Some(&new) {
        found.push(new);
    }
}

fn check_bounds(tracker: &Tracker, i: usize, access: &Access) -> Result<(), GraphError> {
    let whole = tracker.whole();
    match access.region.boxes().iter().all(|range| whole.contains(range)) {
        true => Ok(()),
        false => Err(GraphError::Outside { access: i }),
    }
}

/// Adds the dependencies on those who wrote what is read.
fn read(
    tracker: &Tracker,
    epoch: TaskId,
    i: usize,
    access: &Access,
    found: &mut Dependencies,
) -> Result<(), GraphError> {
    let mut missing = SmallVec::<[GridBox<3>; 1]>::new();
    let origin = Origin::Buffer(access.buffer);
    tracker.contents(&access.region, epoch, |part, writer| match writer {
        Some(on) => add(found, Dependency { on, kind: Kind::True, origin }),
        None => missing.push(part),
    });
    match missing.is_empty() {
        true => Ok(()),
        false => Err(GraphError::NeverWritten { access: i, missing: Region::from_boxes(missing) }),
    }
}

/// Two accesses of one task to one buffer can only overlap if both read.
fn check_overlap(others: &[Access], i: usize, access: &Access) -> Result<(), GraphError> {
    for (j, other) in others.iter().enumerate() {
        let shared = other.buffer == access.buffer && (other.mode.writes() || access.mode.writes());
        if shared && other.region.intersects(&access.region) {
            let common = other.region.intersection(&access.region);
            return Err(GraphError::Overlap { accesses: [j, i], common });
        }
    }
    Ok(())
}
