//! Sequences on the host of one node: their units are ordered once, and a replay is one task.

use super::{
    builder::NewSequenceTask,
    owner::Owner,
    recorder::{Parts, Recorder, Whole},
    replays::{ReplayBody, ReplayUntil, Replays},
    units::Recorded,
};
use crate::{
    data::{buffer::Buffer, element::Element, host_object::HostObject, view::ReadView},
    error::Error,
    execute::{Core, Node, Place, Submission, TaskHandle},
    label::TaskLabel,
    submit::{launch::declaration::explain, task::NewTask},
};
use anabranch_graph::{Access, BufferId, Effect, Order};
use anabranch_grid::all;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::{
    cell::RefCell,
    sync::{Arc, OnceLock},
};

/// A sequence that is planned. Clones are handles to it.
#[derive(Clone)]
pub(super) struct Planned {
    /// The recorded tasks. A replay has this effect on them, so two replays never run at once.
    tasks: HostObject<Vec<Recorded>>,
    effect: Effect,
    parts: Arc<Parts>,
    whole: Arc<Whole>,
    /// The same with a condition on one of these buffers.
    until: Arc<Mutex<FxHashMap<BufferId, Arc<Whole>>>>,
}

impl Planned {
    pub(super) fn new(core: &Arc<Core>, label: &TaskLabel, tasks: Vec<Recorded>, parts: Parts) -> Self {
        let (id, number) = core.create_object(None);
        let effect = Effect { object: id, order: Order::Observe };
        let whole = Arc::new(parts.whole(label, effect, core.threads()));
        let tasks = HostObject::new(id, number, tasks, core.owner());
        Self { tasks, effect, parts: Arc::new(parts), whole, until: Arc::default() }
    }

    pub(super) fn replay(&self, owner: &Owner, replays: u64) -> Result<TaskHandle, Error> {
        if replays == 0 || self.parts.is_empty() {
            return Ok(TaskHandle::new(SmallVec::new()));
        }
        self.submit(owner, &self.whole, replays, None)
    }

    /// `task` is the task of the condition.
    pub(super) fn replay_until<T: Element, const D: usize>(
        &self,
        owner: &Owner,
        most: u64,
        task: NewTask<'_>,
        buffer: &Buffer<T, D>,
        condition: impl FnMut(&ReadView<T, D>) -> bool + Send + 'static,
    ) -> Result<ReplayUntil, Error> {
        let recorder = RefCell::default();
        let (condition, met) = (Mutex::new(condition), Arc::new(OnceLock::new()));
        let by_task = Arc::clone(&met);
        NewSequenceTask { task, recorder: &recorder }.once().read(buffer, all()).ends_when(
            move |replay, (buffer,): (&ReadView<T, D>,)| {
                let is_met = (condition.lock())(buffer);
                if is_met {
                    let first = by_task.set(replay + 1);
                    debug_assert!(first.is_ok(), "no replay runs after that");
                }
                is_met
            },
        )?;
        let Recorder { mut tasks, parts: of, .. } = recorder.into_inner();
        let condition = tasks.pop().expect("it was recorded");
        let task = if most > 0 {
            let whole = self.whole_until(owner, buffer.inner.id, &condition, &of);
            self.submit(owner, &whole, most, Some(condition))?
        } else {
            TaskHandle::new(SmallVec::new())
        };
        Ok(ReplayUntil::new(task, met))
    }

    /// What the tasks are together with a condition on this buffer, which is derived once. `of` has the label
    /// of the buffer.
    fn whole_until(&self, owner: &Owner, buffer: BufferId, condition: &Recorded, of: &Parts) -> Arc<Whole> {
        let whole = || {
            let parts = self.parts.with_condition(condition, of);
            Arc::new(parts.whole(&owner.label, self.effect, owner.running.core().threads()))
        };
        Arc::clone(self.until.lock().entry(buffer).or_insert_with(whole))
    }

    /// Submits replays as one task. `last` is the condition, if there is one.
    fn submit(
        &self,
        owner: &Owner,
        whole: &Arc<Whole>,
        replays: u64,
        last: Option<Recorded>,
    ) -> Result<TaskHandle, Error> {
        let Owner { running, group, label, .. } = owner;
        let core = running.core();
        core.id().check_process("submit")?;
        let record = core.needs_records().then(|| Arc::new(whole.task_record(replays)));
        let accesses: SmallVec<[Access; 4]> =
            whole.accesses.iter().map(|(access, ..)| access.clone()).collect();
        let task = Submission {
            label,
            group: group.as_deref(),
            accesses: &accesses,
            effects: &whole.effects,
            priority: 0,
            place: Place::Compute,
            observes: false,
            record: record.as_ref(),
            device: None,
        };
        let labels: Vec<_> = whole.accesses.iter().map(|(_, label, rank)| (label.clone(), *rank)).collect();
        let accepted = core.accept(&task).map_err(|error| explain(label, *error, &labels))?;
        let versions = accesses.iter().map(|access| access.buffer).zip(accepted.versions().iter().copied());
        let replays = Replays {
            tasks: self.tasks.clone(),
            last,
            whole: Arc::clone(whole),
            versions: versions.collect(),
            replays,
            limits: owner.limits(),
        };
        let node = Node::new(|| accepted.head(), || ReplayBody::new(replays));
        Ok(TaskHandle::new(smallvec![accepted.insert(node)]))
    }
}
