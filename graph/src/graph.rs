//! The task graph.

use crate::{
    task::{
        Access, BufferId, Dependency, Effect, GraphError, Kind, Mode, ObjectId, Origin, Submitted, TaskId,
    },
    tracker::{Before, Tracker},
};
use anabranch_grid::Extent;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Derives dependencies from the accesses of tasks, in the order of their submission: see the [crate](crate) docs.
///
/// Only what future tasks can depend on is kept; tasks themselves are not.
#[derive(Debug, Default)]
pub struct TaskGraph {
    tasks: u64,
    buffers: HashMap<BufferId, Tracker>,
    /// The last task with a sequential effect on each object.
    objects: HashMap<ObjectId, TaskId>,
    names: u64,
}

type Dependencies = SmallVec<[Dependency; 4]>;

impl TaskGraph {
    /// A graph with nothing but its root epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of the given extent. `initialised`: its contents are there from the start.
    pub fn create_buffer(&mut self, extent: Extent<3>, initialised: bool) -> BufferId {
        self.names += 1;
        let id = BufferId(self.names);
        self.buffers.insert(id, Tracker::new(extent, initialised));
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

    /// Forgets a buffer. No later task can access it.
    pub fn remove_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    /// A host object.
    pub fn create_object(&mut self) -> ObjectId {
        self.names += 1;
        let id = ObjectId(self.names);
        self.objects.insert(id, TaskId::EPOCH);
        id
    }

    /// Forgets a host object. No later task can touch it.
    pub fn remove_object(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// The number of tasks submitted so far.
    pub fn len(&self) -> u64 {
        self.tasks
    }

    /// Whether no task was submitted yet.
    pub fn is_empty(&self) -> bool {
        self.tasks == 0
    }

    /// Calls `f` with every task whose results or effects a later task may need, some several times.
    pub fn last_writers(&self, mut f: impl FnMut(TaskId)) {
        self.buffers.values().for_each(|tracker| tracker.all_writers(&mut f));
        self.objects.values().for_each(|&task| f(task));
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
        done: &dyn Fn(TaskId) -> bool,
    ) -> Result<Submitted, GraphError> {
        self.check(accesses)?;
        self.tasks += 1;
        let id = TaskId(self.tasks);
        let mut found = Dependencies::new();
        let mut versions = SmallVec::from_elem(0, accesses.len());

        // First what is read, then what is written: a rename must not hide the contents that the same task reads,
        // and whoever produced something that is read needs no second edge.
        for (access, version) in accesses.iter().zip(&mut versions) {
            let tracker = self.tracker(access.buffer);
            let origin = Origin::Buffer(access.buffer);
            *version = tracker.current();
            if access.mode.reads() {
                tracker.writers(&access.region, |on| {
                    add(&mut found, Dependency { on, kind: Kind::True, origin })
                });
            }
        }
        for (access, version) in accesses.iter().zip(&mut versions).filter(|(a, _)| a.mode.writes()) {
            let alone = accesses.iter().filter(|a| a.buffer == access.buffer).count() == 1;
            *version = self.write(access, alone, id, done, &mut found);
        }
        for access in accesses.iter().filter(|a| a.mode == Mode::Read) {
            self.tracker_mut(access.buffer).read(&access.region, id, done);
        }
        for effect in effects {
            let last = self.objects.get_mut(&effect.object).expect("an object of this graph");
            let on = std::mem::replace(last, id);
            add(&mut found, Dependency { on, kind: Kind::Serial, origin: Origin::Object(effect.object) });
        }
        settle(&mut found);
        Ok(Submitted { id, dependencies: found, versions })
    }

    /// Notes a write and its dependencies; the version that it goes to.
    fn write(
        &mut self,
        access: &Access,
        alone: bool,
        id: TaskId,
        done: &dyn Fn(TaskId) -> bool,
        found: &mut Dependencies,
    ) -> u32 {
        let origin = Origin::Buffer(access.buffer);
        let tracker = self.buffers.get_mut(&access.buffer).expect("a buffer of this graph");
        let whole = access.mode == Mode::Write && alone && access.region.contains_box(&tracker.whole());
        let mut waits = SmallVec::<[Before; 4]>::new();
        tracker.before_write(&access.region, |before| waits.push(before));
        // A reader that this task depends on anyway holds nothing up; others are worth another version.
        let held_up = waits.iter().any(|before| match *before {
            Before::Reader(r) => r != id && !done(r) && !found.iter().any(|d| d.on == r),
            Before::Writer(_) => false,
        });
        if whole && held_up && tracker.renames() {
            tracker.rename(id, done, |on| add(found, Dependency { on, kind: Kind::Anti, origin }));
        } else {
            for before in waits {
                let (on, kind) = match before {
                    Before::Reader(on) => (on, Kind::Anti),
                    Before::Writer(on) => (on, Kind::Output),
                };
                add(found, Dependency { on, kind, origin });
            }
            tracker.write(&access.region, id);
        }
        tracker.current()
    }

    fn check(&self, accesses: &[Access]) -> Result<(), GraphError> {
        for (i, access) in accesses.iter().enumerate() {
            let tracker = self.tracker(access.buffer);
            if !access.region.boxes().iter().all(|range| tracker.whole().contains(range)) {
                return Err(GraphError::Outside { access: i });
            }
            if access.mode.reads() {
                let missing = tracker.unwritten(&access.region);
                if !missing.is_empty() {
                    return Err(GraphError::NeverWritten { access: i, missing });
                }
            }
            for (j, other) in accesses[..i].iter().enumerate() {
                let shared = other.buffer == access.buffer && (other.mode.writes() || access.mode.writes());
                if shared && other.region.intersects(&access.region) {
                    let common = other.region.intersection(&access.region);
                    return Err(GraphError::Overlap { accesses: [j, i], common });
                }
            }
        }
        Ok(())
    }

    fn tracker(&self, buffer: BufferId) -> &Tracker {
        self.buffers.get(&buffer).expect("a buffer of this graph")
    }

    fn tracker_mut(&mut self, buffer: BufferId) -> &mut Tracker {
        self.buffers.get_mut(&buffer).expect("a buffer of this graph")
    }
}

/// Adds an edge. What is found several times in a row (a neighbour's boxes, say) is kept once; the rest is for `settle`.
fn add(found: &mut Dependencies, new: Dependency) {
    if found.last() != Some(&new) {
        found.push(new);
    }
}

/// One edge per task, the strongest, ascending; the root only where there is no other.
fn settle(found: &mut Dependencies) {
    found.sort_unstable_by_key(|d| (d.on, d.kind));
    found.dedup_by_key(|d| d.on);
    if found.len() > 1 && found[0].on == TaskId::EPOCH {
        // Whoever depends on any task comes after the root anyway.
        found.remove(0);
    }
    if found.is_empty() {
        found.push(Dependency { on: TaskId::EPOCH, kind: Kind::Serial, origin: Origin::Graph });
    }
}
