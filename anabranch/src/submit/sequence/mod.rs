//! Sequences: tasks that are recorded once and replayed.
//!
//! [`Runtime::record`](crate::Runtime::record) gives its closure a [`SequenceBody`], whose tasks are built as those of the runtime ([`builder`]).
//! Each becomes [`units`] without its types. When the closure returns, the graph derives the order of the units, once. A
//! [`replay`](Sequence::replay) is one task with the accesses of all, whose body executes the units: see
//! [`replay`](crate::execute::replay).

pub(crate) mod builder;
mod units;

use self::{
    builder::NewSequenceTask,
    units::{Recorded, Units},
};
use super::{
    declaration::{Declaration, explain},
    task::NewTask,
};
use crate::{
    data::host_object::HostObject,
    error::{Cause, Error, Failure},
    execute::{
        Body, Compute, Core, GroupHandle, Node, Place, Running, Submission, TaskHandle,
        replay::{Part, Plan, PlannedUnit, Run},
    },
    label::{Label, TaskLabel},
    observe::TaskRecord,
};
use anabranch_graph::{
    Access, BufferId, Effect, Mode, ObjectId, Order,
    command::{BufferAccess, erase},
    repeat::{Repeat, Unit, check},
};
use anabranch_grid::{Extent, fixed};
use anabranch_par::CancellationToken;
use smallvec::{SmallVec, smallvec};
use std::{borrow::Cow, cell::RefCell, fmt, panic::Location, sync::Arc};

/// What the closure of [`Runtime::record`](crate::Runtime::record) records tasks with.
#[derive(Debug)]
pub struct SequenceBody<'r> {
    core: &'r Arc<Core>,
    group: Option<&'r GroupHandle>,
    recorder: &'r RefCell<Recorder>,
}

impl<'r> SequenceBody<'r> {
    /// Begins a task of the sequence. The name is for messages.
    #[track_caller]
    pub fn task(&self, name: impl Into<Cow<'static, str>>) -> NewSequenceTask<'r> {
        let task = NewTask::new(self.core, self.group, name, Location::caller());
        NewSequenceTask { task, recorder: self.recorder }
    }
}

/// The tasks of a sequence, while they are recorded.
#[derive(Default)]
pub(crate) struct Recorder {
    tasks: Vec<Recorded>,
    repeat: Repeat,
    units: Vec<PlannedUnit>,
    /// For recorded runtimes: the labels of host objects.
    objects: Vec<(ObjectId, String)>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Adds a task with its units.
    fn add<const K: usize>(
        &mut self,
        declaration: &Declaration<'_, K>,
        labels: Vec<(Label, usize)>,
        units: Box<dyn Units>,
    ) -> Result<(), Error> {
        check(&declaration.accesses).map_err(|error| declaration.explain(error, &labels))?;
        let (task, chunks) = (self.tasks.len(), declaration.pieces.len());
        let in_pieces = |access: &&Access| {
            declaration
                .pieces
                .iter()
                .any(|piece| piece.accesses.iter().any(|other| other.buffer == access.buffer))
        };
        // What no chunk accesses by itself: the buffers of reductions.
        let reduced: SmallVec<[Access; 2]> =
            declaration.accesses.iter().filter(|access| !in_pieces(access)).cloned().collect();
        let mut after = Vec::with_capacity(chunks);
        for (chunk, piece) in declaration.pieces.iter().enumerate() {
            let mut accesses = piece.accesses.clone();
            if chunk == 0 {
                // It begins with the current contents, if these are included.
                let current = reduced.iter().filter(|access| access.mode.reads());
                accesses.extend(current.map(|access| Access { mode: Mode::Read, ..access.clone() }));
            }
            let effects = SmallVec::from_slice(&declaration.effects);
            after.push(self.repeat.push(Unit { accesses, effects, ..Unit::default() }));
            self.units.push(PlannedUnit { task, part: Part::Chunk(chunk), chunks });
        }
        if !reduced.is_empty() {
            // It takes the results of the chunks, so they must not run again before.
            self.repeat.push(Unit { accesses: reduced, after, holds_back: true, ..Unit::default() });
            self.units.push(PlannedUnit { task, part: Part::End, chunks });
        }
        let labels_of_objects = declaration.record.iter().flat_map(|record| &record.objects).cloned();
        self.objects.extend(declaration.effects.iter().map(|effect| effect.object).zip(labels_of_objects));
        let (label, accesses) = (declaration.task.clone(), declaration.accesses.to_vec());
        self.tasks.push(Recorded { label, accesses, labels, units });
        Ok(())
    }
}

/// Tasks that were recorded once, to be replayed: see [`Runtime::record`](crate::Runtime::record).
///
/// Clones are handles to the same sequence.
#[derive(Clone)]
pub struct Sequence {
    /// It keeps the runtime running, as a group does.
    running: Arc<Running>,
    group: Option<GroupHandle>,
    label: TaskLabel,
    /// What a replay accesses, with the label and rank of each buffer.
    accesses: Arc<[(Access, Label, usize)]>,
    effects: Arc<[Effect]>,
    /// For recorded runtimes: the labels of the objects of these effects.
    objects: Arc<[String]>,
    /// A replay has an effect on it, so two replays never run at once.
    recording: HostObject<Recording>,
    is_empty: bool,
}

/// The recorded tasks, and the order of their units.
struct Recording {
    tasks: Vec<Recorded>,
    plan: Plan,
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({})", self.label)
    }
}

impl Sequence {
    /// Records the tasks of a closure.
    pub(crate) fn record<E: From<Error>>(
        running: &Arc<Running>,
        group: Option<&GroupHandle>,
        label: TaskLabel,
        body: impl FnOnce(&SequenceBody<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let core = running.core();
        if core.several_nodes().is_some() {
            let what = format!("the replay of {label}");
            return Err(core.refuse(Error::OneNodeOnly { what }).into());
        }
        let recorder = RefCell::default();
        body(&SequenceBody { core, group, recorder: &recorder })?;
        let Recorder { tasks, repeat, units, objects } = recorder.into_inner();
        let named = |access: Access| {
            let mut known = tasks.iter().flat_map(|task| task.accesses.iter().zip(&task.labels));
            let (_, (label, rank)) =
                known.find(|(other, _)| other.buffer == access.buffer).expect("a task accesses it");
            (access, label.clone(), *rank)
        };
        let accesses = repeat.accesses().into_iter().map(named).collect();
        let (id, number) = core.create_object(None);
        let mut effects = repeat.effects();
        let label_of = |effect: &Effect| {
            objects.iter().find(|(object, _)| *object == effect.object).map(|(_, label)| label.clone())
        };
        let mut labels: Vec<String> = effects.iter().filter_map(label_of).collect();
        effects.push(Effect { object: id, order: Order::Observe });
        labels.push(format!("the sequence \"{}\"", label.name()));
        let plan = Plan::new(&units, &repeat.orders(), core.threads());
        let (is_empty, recording) = (units.is_empty(), Recording { tasks, plan });
        let recording = HostObject::new(id, number, recording, core.owner());
        Ok(Self {
            running: Arc::clone(running),
            group: group.cloned(),
            label,
            accesses,
            effects: effects.into(),
            objects: labels.into(),
            recording,
            is_empty,
        })
    }

    /// Submits this number of replays, as one task. The handle is that of the task.
    ///
    /// To other tasks a replay is a task with the accesses and effects of all tasks of the sequence: it comes after all tasks before it whose results it
    /// needs, and tasks after it see the state after its last replay. Inside, a unit of work begins as soon as what it needs is done, in
    /// its replay and in the one before: there is no barrier between two replays. The results are those of the same tasks, submitted
    /// again and again.
    ///
    /// If a task fails, the replays end, and the handle and the next synchronisation report the first failure, with the task and the number of the
    /// replay: the same in every schedule. What the sequence writes is poisoned then. A cancelled [group](crate::TaskGroup) ends its replays, too.
    ///
    /// With 0 replays nothing is submitted.
    ///
    /// # Errors
    /// If the sequence reads what was never written: see [`Error`]. Nothing is submitted then.
    pub fn replay(&self, replays: u64) -> Result<TaskHandle, Error> {
        if replays == 0 || self.is_empty {
            return Ok(TaskHandle::new(SmallVec::new()));
        }
        let (core, label) = (self.running.core(), &self.label);
        core.id().check_process("submit")?;
        let record = core.needs_records().then(|| Arc::new(self.task_record()));
        let accesses: SmallVec<[Access; 4]> =
            self.accesses.iter().map(|(access, ..)| access.clone()).collect();
        let task = Submission {
            label,
            group: self.group.as_deref(),
            accesses: &accesses,
            effects: &self.effects,
            priority: 0,
            place: Place::Compute,
            observes: false,
            record: record.as_ref(),
            device: None,
        };
        let labels: Vec<_> = self.accesses.iter().map(|(_, label, rank)| (label.clone(), *rank)).collect();
        let accepted = core.accept(&task).map_err(|error| explain(label, *error, &labels))?;
        let versions =
            accesses.iter().map(|access| access.buffer).zip(accepted.versions().iter().copied()).collect();
        let (recording, token) =
            (self.recording.clone(), self.group.as_ref().map(|group| group.token().clone()));
        let body = ReplayBody(Some(Replay { recording, versions, replays, token }));
        let node = Node::new(|| accepted.head(), || body);
        Ok(TaskHandle::new(smallvec![accepted.insert(node)]))
    }

    /// For recorded runtimes: a replay as a host task.
    fn task_record(&self) -> TaskRecord {
        let accesses = self.accesses.iter().map(|(Access { buffer, region, mode }, ..)| BufferAccess {
            buffer: *buffer,
            mode: *mode,
            mapper: erase::<0, 3>(fixed(region.clone()), Extent(region.bounding_box().max().0)),
        });
        TaskRecord {
            accesses: accesses.collect(),
            buffers: self.accesses.iter().map(|(_, label, _)| label.to_string()).collect(),
            objects: self.objects.to_vec(),
            ..TaskRecord::default()
        }
    }
}

/// Some replays, until they are run.
struct ReplayBody(Option<Replay>);

struct Replay {
    recording: HostObject<Recording>,
    /// The version of each buffer.
    versions: SmallVec<[(BufferId, u32); 4]>,
    replays: u64,
    token: Option<CancellationToken>,
}

impl Body for ReplayBody {
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let Replay { recording, versions, replays, token } = self.0.take().expect(super::body::ONCE);
        let mut recording = recording.inner.lock();
        let Recording { tasks, plan } = recording.as_mut().expect("nobody takes it out");
        for task in &mut *tasks {
            let version = |access: &Access| {
                versions.iter().find(|(buffer, _)| *buffer == access.buffer).map(|(_, version)| *version)
            };
            task.units
                .attach(&mut task.accesses.iter().filter_map(version))
                .map_err(|error| Cause::from(Box::new(error)))?;
        }
        let (tasks, is_checked) = (&*tasks, compute.is_checked());
        // SAFETY: memory is attached. The plan keeps the order that the graph has derived from the accesses, in which a unit
        // runs once in each replay. No other replay of the sequence runs now, because each has an effect on the recording.
        let execute = |task: usize, part: Part, replay: u64| unsafe {
            match part {
                Part::Chunk(chunk) => tasks[task].units.call(chunk, replay, is_checked),
                Part::End => tasks[task].units.end(),
            }
        };
        let is_over = || token.as_ref().is_some_and(CancellationToken::is_cancelled);
        let run = Run::new(plan, replays, execute, is_over);
        match compute.draw() {
            Some(draw) => run.take_drawn_turns(draw),
            None => compute.run_strands(plan.strands(), |strand| run.take_part(strand)),
        }
        match run.into_result() {
            (_, Some(ended)) => Err(Cause::InReplay {
                task: tasks[ended.task].label.clone(),
                replay: ended.replay,
                cause: Box::new(ended.why),
            }),
            (true, None) => Err(Cause::Cancelled),
            (false, None) => Ok(()),
        }
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
