//! The task graph.

use super::{
    ancestry::Ancestry,
    buffer::{Before, BufferTracker},
    checks::{check_bounds, check_overlap, is_overwrite, read},
    edges::{Dependencies, add, after},
    front::Front,
    memo::Memo,
    object::ObjectTracker,
    settings::Settings,
};
use crate::task::{
    Access, BufferId, Dependency, Effect, GraphError, Horizon, Kind, Mode, ObjectId, Order, Origin,
    Submitted, TaskId,
};
use anabranch_grid::{Extent, GridBox, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Derives dependencies from the accesses and effects of tasks, in the order of their submission: see the
/// [crate](crate) docs.
///
/// The graph keeps only what future tasks can depend on, not the tasks themselves. Every task, epoch and
/// horizon takes the next id.
#[derive(Debug)]
pub struct TaskGraph {
    settings: Settings,
    pub(super) buffers: FxHashMap<BufferId, BufferTracker>,
    pub(super) objects: FxHashMap<ObjectId, ObjectTracker>,
    /// The last id that was given to a buffer or an object.
    last_name: u64,
    /// `None` if the graph makes neither epochs nor horizons.
    front: Option<Front>,
    ancestry: Option<Ancestry>,
    /// `None` if the graph never recalls what repeats.
    pub(super) memo: Option<Memo>,
    /// Whether a buffer may have several versions.
    pub(super) renames: bool,
    /// The last id that was given to a task, epoch or horizon.
    pub(super) last: TaskId,
    /// The epoch or horizon that stands for everything before it.
    epoch: TaskId,
    /// The last epoch: everything submitted since comes after it.
    barrier: TaskId,
    /// The last horizon or epoch.
    horizon: TaskId,
}

/// Whether a task is known to have finished.
pub(super) type Done<'a> = &'a dyn Fn(TaskId) -> bool;

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
            buffers: FxHashMap::default(),
            objects: FxHashMap::default(),
            last_name: 0,
            front: (settings.epochs || settings.horizons.is_some()).then(|| Front::after(TaskId::EPOCH)),
            ancestry: settings.conflicts.then(Ancestry::new),
            memo: (settings.horizons.is_none() && !settings.conflicts).then(Memo::default),
            renames: false,
            last: TaskId::EPOCH,
            epoch: TaskId::EPOCH,
            barrier: TaskId::EPOCH,
            horizon: TaskId::EPOCH,
        }
    }

    /// Creates a buffer of the given extent. If it is `initialised`, its contents are there from the start.
    pub fn create_buffer(&mut self, extent: Extent<3>, initialised: bool) -> BufferId {
        self.last_name += 1;
        let id = BufferId(self.last_name);
        self.buffers.insert(id, BufferTracker::new(extent, initialised, self.epoch));
        id
    }

    /// Sets how many allocations a buffer may have at a time: at least 1, and 1 by default. A complete
    /// overwrite of a buffer whose contents are still being read goes to another allocation instead of
    /// waiting.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn set_versions(&mut self, buffer: BufferId, versions: usize) {
        self.interrupt_memo(&|_| false);
        self.renames |= versions > 1;
        self.tracker_mut(buffer).set_versions(versions);
    }

    /// Discards the contents of a buffer. A task that reads them before they are written again is an error.
    ///
    /// A discard turns several tasks that each write a part into one complete overwrite. If the contents are
    /// still being read and the buffer has versions, the next write goes to another version. Otherwise each
    /// task waits for the tasks that use the part that it writes, as it does without a discard.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn discard(&mut self, buffer: BufferId, done: Done<'_>) {
        self.interrupt_memo(done);
        let (epoch, barrier) = (self.epoch, self.barrier);
        self.tracker_mut(buffer).discard(epoch, &|task| task == barrier || done(task));
    }

    /// The version of a buffer that the next task reads: see [`Submitted::versions`].
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn current_version(&self, buffer: BufferId) -> u32 {
        self.tracker(buffer).current()
    }

    /// Checks a task as a submission does, and changes nothing.
    ///
    /// # Errors
    /// If the graph would refuse it.
    pub fn check_accesses(&self, accesses: &[Access]) -> Result<(), GraphError> {
        self.check(accesses, &mut Submitted::default())
    }

    /// The last writer of each part of a region, as the next task finds them: for contents that no task has
    /// written here, the last epoch. Parts without contents are left out.
    ///
    /// # Panics
    /// If the buffer is not (or no longer) part of the graph.
    pub fn writers(&mut self, buffer: BufferId, region: &Region<3>) -> Vec<(TaskId, GridBox<3>)> {
        self.end_recall_of_buffer(buffer);
        let mut writers = Vec::new();
        let written = |part, writer: Option<TaskId>| writers.extend(writer.map(|writer| (writer, part)));
        self.tracker(buffer).contents(region, self.epoch, written);
        writers
    }

    /// Removes a buffer. No later task can access it.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        self.end_recall_of_buffer(buffer);
        self.buffers.remove(&buffer);
    }

    /// Creates a host object.
    pub fn create_object(&mut self) -> ObjectId {
        self.last_name += 1;
        let id = ObjectId(self.last_name);
        self.objects.insert(id, ObjectTracker::new(self.epoch));
        id
    }

    /// Removes a host object. No later task can touch it.
    pub fn remove_object(&mut self, object: ObjectId) {
        self.end_recall_of_object(object);
        self.objects.remove(&object);
    }

    /// The number of tasks, epochs and horizons so far, without the root. This is the last id.
    pub fn len(&self) -> u64 {
        self.last.0
    }

    /// Whether nothing was submitted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that the graph keeps, as a measure of its memory: parts of buffers and their
    /// readers, effects on objects, recent tasks, tasks that repeat. The number stays bounded if the graph
    /// makes [horizons](Settings::horizons), or if the number of tasks in flight is bounded and `done`
    /// reports every finished task.
    pub fn tracked(&self) -> usize {
        let buffers: usize = self.buffers.values().map(BufferTracker::tracked).sum();
        let objects: usize = self.objects.values().map(ObjectTracker::tracked).sum();
        let memo = self.memo.as_ref().map_or(0, Memo::tracked);
        buffers
            + objects
            + memo
            + self.front.as_ref().map_or(0, Front::tracked)
            + self.ancestry.as_ref().map_or(0, Ancestry::tracked)
    }

    /// Whether this task has an exclusive or relaxed effect on the object that the next sequential effect
    /// comes after.
    pub fn is_unordered(&mut self, object: ObjectId, task: TaskId) -> bool {
        self.end_recall_of_object(object);
        self.objects.get(&object).is_some_and(|object| object.is_since(task))
    }

    /// Calls `f` with every task whose results or effects a later task may need. Some tasks come several
    /// times. `done` is as in [`submit`](TaskGraph::submit).
    pub fn last_writers(&mut self, done: Done<'_>, mut f: impl FnMut(TaskId)) {
        self.end_recall(done);
        self.buffers.values().for_each(|tracker| tracker.all_writers(self.epoch, &mut f));
        self.objects.values().flat_map(|object| object.users(self.epoch)).for_each(f);
    }

    /// Adds a task and derives its dependencies. `done` says whether an earlier task is known to have
    /// finished; it may say `false` of a task that has.
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

    /// Like [`submit`](TaskGraph::submit), but writes the answer over an earlier one and reuses its memory.
    ///
    /// # Errors
    /// See [`GraphError`]; the graph is then as before, and the contents of `submitted` are unspecified.
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
        self.recall_or_derive(accesses, effects, done, submitted)?;
        let horizon_is_due = self.note_in_front(submitted, done);
        if self.ancestry.is_some() {
            self.note_ancestry(submitted);
        }
        if horizon_is_due {
            submitted.horizon = Some(self.make_horizon());
        }
        Ok(())
    }

    /// Adds the pieces of a task, each of which is a task of its own for later ones. `accesses` are those of
    /// the whole task, and `pieces` those of each piece: the same accesses in the same order, with parts of
    /// their regions. Each piece has all `effects`. Calls `each` with the answer for each piece. A piece
    /// depends on no other piece of its task because of a buffer; sequential effects order the pieces.
    ///
    /// The versions in the last answer are those that all pieces use: a complete overwrite of a buffer counts
    /// as one, as if the task had no pieces.
    ///
    /// # Errors
    /// See [`GraphError`]; the graph is then as before, and `each` was not called.
    ///
    /// # Panics
    /// If a buffer or object is not (or no longer) part of the graph, or a piece accesses more than the task.
    pub fn submit_pieces(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        pieces: &[impl AsRef<[Access]>],
        done: Done<'_>,
        submitted: &mut Submitted,
        mut each: impl FnMut(&Submitted),
    ) -> Result<(), GraphError> {
        let before = self.last;
        // The caller does not know the pieces yet, and may take them for tasks of long ago.
        let done: Done<'_> = &|task| task <= before && done(task);
        self.recall_or_check(accesses, done, submitted)?;
        for access in accesses {
            if self.renames && is_overwrite(self.tracker(access.buffer), access, accesses) {
                self.discard(access.buffer, done);
            }
        }
        for piece in pieces {
            let accepted = self.submit_into(piece.as_ref(), effects, done, submitted);
            accepted.unwrap_or_else(|error| panic!("a piece accesses more than its task: {error}"));
            each(submitted);
        }
        Ok(())
    }

    /// Adds an epoch: it comes after everything before it, and everything submitted later comes after it.
    ///
    /// The epoch depends on the execution front. From then on it counts as the writer of everything that was
    /// written, so that nothing later depends on anything older. Points that were never written stay
    /// unwritten. An epoch may capture: it may read parts of buffers and have effects on host objects, whose
    /// order makes no difference here.
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
    /// If a buffer or object is not (or no longer) part of the graph, if an access writes, or if the graph
    /// was made [without epochs](Settings::epochs).
    pub fn epoch(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
    ) -> Result<Submitted, GraphError> {
        assert!(self.settings.epochs, "this graph was made without epochs: see `Settings::epochs`");
        let writes = accesses.iter().position(|access| access.mode.writes());
        assert!(writes.is_none(), "access {} of an epoch writes: it can only read", writes.unwrap_or(0));
        let effects: SmallVec<[Effect; 4]> =
            effects.iter().map(|&effect| Effect { order: Order::Sequential, ..effect }).collect();
        let mut submitted = Submitted::default();
        self.interrupt_memo(done);
        self.derive(accesses, &effects, done, &mut submitted)?;
        submitted.dependencies.extend(self.front_mut().iter().map(after));
        self.finish_edges(&mut submitted.dependencies);
        let id = submitted.id;
        (self.epoch, self.barrier, self.horizon) = (id, id, id);
        self.front_mut().reset(id);
        self.note_ancestry(&mut submitted);
        Ok(submitted)
    }

    /// Adds a task without accesses and effects, which depends on the last epoch alone.
    #[inline]
    pub(super) fn add_free(&mut self, submitted: &mut Submitted) {
        self.last.0 += 1;
        submitted.clear(self.last);
        submitted.dependencies.push(after(self.epoch));
    }

    /// Notes the accesses and effects of the next task, and finds the tasks that it depends on because of
    /// them.
    pub(super) fn derive(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        let id = TaskId(self.last.0 + 1);
        submitted.clear(id);
        // Reads before writes: a rename must not hide the contents that the same task reads, and a task whose
        // results are read needs no second edge.
        self.check(accesses, submitted)?;
        let found = &mut submitted.dependencies;
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

    /// Checks the accesses of a task, and finds the tasks that it depends on because it reads, and the
    /// versions that it reads.
    #[inline(always)]
    pub(super) fn check(&self, accesses: &[Access], submitted: &mut Submitted) -> Result<(), GraphError> {
        for (i, access) in accesses.iter().enumerate() {
            let tracker = self.tracker(access.buffer);
            check_bounds(tracker, i, access)?;
            if access.mode.reads() {
                read(tracker, self.epoch, i, access, &mut submitted.dependencies)?;
            }
            check_overlap(&accesses[..i], i, access)?;
            submitted.versions.push(tracker.current());
        }
        Ok(())
    }

    /// Notes a write of the last task and adds the dependencies. Returns the version that the write goes to.
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
        // Only readers that this task does not come after anyway cause another version.
        let renames = is_overwrite(tracker, access, accesses)
            && tracker.is_read(epoch, |r| r != barrier && !done(r) && !found.iter().any(|d| d.on == r));
        if renames {
            tracker.rename(id, epoch, done, |on| add(found, Dependency { on, kind: Kind::Anti, origin }));
        } else {
            tracker.write(&access.region, id, epoch, done, |before| {
                let (on, kind) = match before {
                    Before::Reader(on) => (on, Kind::Anti),
                    // The reads have found this writer already.
                    Before::Writer(_) if access.mode.reads() => return,
                    Before::Writer(on) => (on, Kind::Output),
                };
                add(found, Dependency { on, kind, origin });
            });
        }
        tracker.current()
    }

    /// Keeps one edge per task, the strongest, ascending. An edge to the epoch stays only if it is the only
    /// one.
    #[inline]
    pub(super) fn finish_edges(&self, found: &mut Dependencies) {
        if found.len() > 1 {
            found.sort_unstable_by_key(|d| (d.on, d.kind));
            found.dedup_by_key(|d| d.on);
            if found.len() > 1 && found[0].on == self.barrier {
                // Every later task comes after the epoch, so the other edges imply this one.
                found.remove(0);
            }
        }
        if found.is_empty() {
            found.push(after(self.epoch));
        }
    }

    /// Adds a new task to the front, if there is one. Returns whether a horizon is due.
    #[inline]
    fn note_in_front(&mut self, submitted: &Submitted, done: Done<'_>) -> bool {
        let Some(front) = &mut self.front else { return false };
        let depth = front.push(&submitted.dependencies, self.horizon);
        match self.settings.horizons {
            Some(horizons) => horizons.is_due(depth, front.len(), self.last.0 - self.horizon.0),
            None => {
                front.forget_done(done);
                false
            }
        }
    }

    /// Records the ancestry of a new task, if conflict edges are wanted.
    fn note_ancestry(&mut self, submitted: &mut Submitted) {
        if let Some(ancestry) = &mut self.ancestry {
            ancestry.push(&submitted.dependencies);
            ancestry.remove_ancestors(submitted.id, &mut submitted.conflicts);
            submitted.conflicts.sort_unstable();
            submitted.conflicts.dedup();
            if ancestry.is_long() {
                // Searches go back only as far as tasks that may still be in conflict.
                let oldest = self.objects.values().filter_map(ObjectTracker::oldest_since).min();
                ancestry.forget_before(oldest.map_or(submitted.id, |oldest| oldest.max(self.epoch)));
            }
        }
    }

    /// Makes a horizon, and applies the one before it.
    #[cold]
    fn make_horizon(&mut self) -> Horizon {
        self.last.0 += 1;
        let (id, applied) = (self.last, self.horizon);
        let front = self.front_mut();
        let dependencies: Vec<Dependency> = front.iter().map(after).collect();
        front.push_horizon();
        front.forget_before(applied);
        (self.horizon, self.epoch) = (id, applied);
        if let Some(ancestry) = &mut self.ancestry {
            ancestry.push(&dependencies);
            ancestry.forget_before(applied);
        }
        Horizon { id, dependencies, applied }
    }

    /// The front of a graph that makes epochs or horizons.
    fn front_mut(&mut self) -> &mut Front {
        self.front.as_mut().expect("a graph with epochs or horizons has a front")
    }

    pub(super) fn tracker(&self, buffer: BufferId) -> &BufferTracker {
        self.buffers.get(&buffer).expect("a buffer of this graph")
    }

    fn tracker_mut(&mut self, buffer: BufferId) -> &mut BufferTracker {
        self.buffers.get_mut(&buffer).expect("a buffer of this graph")
    }
}
