//! The tasks of a sequence while they are recorded, and what they amount to together.

use super::{
    template::Submit,
    units::{Recorded, Units},
};
use crate::{
    error::Error,
    execute::replay::{Part, Plan, PlannedUnit},
    label::{Label, TaskLabel},
    observe::TaskRecord,
    submit::launch::declaration::Declaration,
};
use anabranch_graph::{
    Access, BufferId, Effect, Mode, ObjectId,
    command::{BufferAccess, erase},
    repeat::{Repeat, Unit, check},
};
use anabranch_grid::{Extent, fixed};
use smallvec::SmallVec;
use std::fmt;

/// The tasks of a sequence, while they are recorded.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(super) tasks: Vec<Recorded>,
    pub(super) parts: Parts,
    /// How a replay submits each task, if it does.
    pub(super) submits: Vec<Submit>,
    /// Whether a replay submits the tasks. Then they need no units.
    pub(super) is_submitted: bool,
}

/// The units of recorded tasks, without their functions.
#[derive(Clone, Default)]
pub(super) struct Parts {
    /// What the units access. A task without units is one unit here, and none in `units`.
    repeat: Repeat,
    units: Vec<PlannedUnit>,
    /// The number of tasks.
    tasks: usize,
    buffers: Named,
    /// For recorded runtimes: the labels of host objects.
    objects: Vec<(ObjectId, String)>,
}

/// The label and rank of each buffer that tasks access.
#[derive(Clone, Default)]
struct Named(Vec<(BufferId, (Label, usize))>);

impl Named {
    fn add(&mut self, buffer: BufferId, label: &(Label, usize)) {
        if self.0.iter().all(|(known, _)| *known != buffer) {
            self.0.push((buffer, label.clone()));
        }
    }

    /// The access, with the label and rank of its buffer.
    fn name(&self, access: Access) -> (Access, Label, usize) {
        let found = self.0.iter().find(|(known, _)| *known == access.buffer);
        let (label, rank) = found.expect("a task accesses it").1.clone();
        (access, label, rank)
    }
}

/// What the tasks of a sequence are together: a task to others, and a plan inside.
pub(super) struct Whole {
    /// The accesses, with the label and rank of each buffer.
    pub(super) accesses: Vec<(Access, Label, usize)>,
    pub(super) effects: Vec<Effect>,
    /// For recorded runtimes: the labels of the objects of these effects.
    pub(super) objects: Vec<String>,
    pub(super) plan: Plan,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Adds a task with its units.
    pub(super) fn add<const K: usize>(
        &mut self,
        declaration: &Declaration<'_, K>,
        labels: &[(Label, usize)],
        units: Box<dyn Units>,
        submit: Submit,
    ) -> Result<(), Error> {
        if self.is_submitted {
            return self.add_submitted(declaration, labels, submit);
        }
        check(&declaration.accesses).map_err(|error| declaration.explain(error, labels))?;
        self.submits.push(submit);
        // Only a batch has several chunks and effects, which order its points one after the other.
        let chunks = if declaration.effects.is_empty() { declaration.pieces.len() } else { 1 };
        let task = self.parts.tasks;
        // What no chunk accesses by itself: the buffers of reductions, or all if there are no chunks. (A
        // chunk may access the same buffer, if only an empty part of it.)
        let is_reduced = |at: usize| declaration.pieces.is_empty() || declaration.reductions.contains(&at);
        let accesses = declaration.accesses.iter().enumerate();
        let reduced: SmallVec<[Access; 2]> =
            accesses.filter(|(at, _)| is_reduced(*at)).map(|(_, access)| access.clone()).collect();
        let mut after = Vec::with_capacity(declaration.pieces.len());
        for (chunk, piece) in declaration.pieces.iter().enumerate() {
            let mut accesses = piece.accesses.clone();
            if chunk == 0 {
                // It begins with the current contents, if these are included.
                let current = reduced.iter().filter(|access| access.mode.reads());
                accesses.extend(current.map(|access| Access { mode: Mode::Read, ..access.clone() }));
            }
            let effects = SmallVec::from_slice(&declaration.effects);
            after.push(self.parts.repeat.push(Unit { accesses, effects, ..Unit::default() }));
            self.parts.units.push(PlannedUnit { task, part: Part::Chunk(chunk), chunks });
        }
        if !reduced.is_empty() {
            // It takes the results of the chunks, so they must not run again before.
            self.parts.repeat.push(Unit { accesses: reduced, after, holds_back: true, ..Unit::default() });
            self.parts.units.push(PlannedUnit { task, part: Part::End, chunks });
        }
        self.keep(declaration, labels, units);
        Ok(())
    }

    /// Adds a task without units: each replay submits it, and so all tasks of the sequence.
    pub(super) fn add_submitted<const K: usize>(
        &mut self,
        declaration: &Declaration<'_, K>,
        labels: &[(Label, usize)],
        submit: Submit,
    ) -> Result<(), Error> {
        check(&declaration.accesses).map_err(|error| declaration.explain(error, labels))?;
        self.is_submitted = true;
        self.submits.push(submit);
        self.parts.name_buffers(&declaration.accesses, labels);
        self.parts.repeat.push(Unit::of(declaration.accesses.iter().cloned()));
        Ok(())
    }

    /// Adds a task whose units, if it has any, have been added.
    pub(super) fn keep<const K: usize>(
        &mut self,
        declaration: &Declaration<'_, K>,
        labels: &[(Label, usize)],
        units: Box<dyn Units>,
    ) {
        let parts = &mut self.parts;
        parts.name_buffers(&declaration.accesses, labels);
        let labels_of_objects = declaration.record.iter().flat_map(|record| &record.objects).cloned();
        let objects = declaration.effects.iter().map(|effect| effect.object).zip(labels_of_objects);
        parts.objects.extend(objects);
        parts.tasks += 1;
        let (label, accesses) = (declaration.task.clone(), declaration.accesses.to_vec());
        self.tasks.push(Recorded { label, accesses, units });
    }
}

impl Parts {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// These parts and a condition, with its buffers. The condition comes after all units, and before all
    /// units of the next replay.
    pub(super) fn with_condition(&self, condition: &Recorded, of: &Self) -> Self {
        let mut parts = self.clone();
        parts.repeat.push_barrier(condition.accesses.iter().cloned());
        parts.units.push(PlannedUnit { task: parts.tasks, part: Part::Chunk(0), chunks: 1 });
        of.buffers.0.iter().for_each(|(buffer, label)| parts.buffers.add(*buffer, label));
        parts.tasks += 1;
        parts
    }

    fn name_buffers(&mut self, accesses: &[Access], labels: &[(Label, usize)]) {
        accesses.iter().zip(labels).for_each(|(access, label)| self.buffers.add(access.buffer, label));
    }

    /// What all units access together, with the label and rank of each buffer.
    pub(super) fn accesses(&self) -> Vec<(Access, Label, usize)> {
        self.repeat.accesses().into_iter().map(|access| self.buffers.name(access)).collect()
    }

    /// What all units are together, on at most this many threads. `own` is an effect that each replay has.
    pub(super) fn whole(&self, label: &TaskLabel, own: Effect, threads: usize) -> Whole {
        let accesses = self.accesses();
        let mut effects = self.repeat.effects();
        let label_of = |effect: &Effect| {
            let mut objects = self.objects.iter();
            objects.find(|(object, _)| *object == effect.object).map(|(_, label)| label.clone())
        };
        let mut objects: Vec<String> = effects.iter().filter_map(label_of).collect();
        effects.push(own);
        objects.push(format!("the sequence \"{}\"", label.name()));
        Whole { accesses, effects, objects, plan: Plan::new(&self.units, &self.repeat.orders(), threads) }
    }
}

impl Whole {
    /// For recorded runtimes: this number of replays as a host task.
    pub(super) fn task_record(&self, replays: u64) -> TaskRecord {
        let accesses = self.accesses.iter().map(|(Access { buffer, region, mode }, ..)| BufferAccess {
            buffer: *buffer,
            mode: *mode,
            mapper: erase::<0, 3>(fixed(region.clone()), Extent(region.bounding_box().max().0)),
        });
        TaskRecord {
            accesses: accesses.collect(),
            buffers: self.accesses.iter().map(|(_, label, _)| label.to_string()).collect(),
            objects: self.objects.clone(),
            times: replays,
            ..TaskRecord::default()
        }
    }
}
