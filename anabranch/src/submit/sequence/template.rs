//! What a task of a sequence declares, apart from the runtime that it belongs to: a replay that submits its
//! tasks begins each of them with it.

use crate::{
    error::Error,
    execute::{Core, GroupHandle, TaskHandle},
    label::TaskLabel,
    submit::task::{TaskBuilder, hints::Hints, kernel_place::KernelPlace},
};
use anabranch_grid::GridBox;
use std::{marker::PhantomData, sync::Arc};

/// Submits a recorded task as a part of a replay.
pub(super) type Submit = Box<dyn Fn(&Replay<'_>) -> Result<TaskHandle, Error> + Send + Sync>;

/// A replay that submits its tasks.
pub(super) struct Replay<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) group: Option<&'a GroupHandle>,
    pub(super) sequence: &'a TaskLabel,
    pub(super) number: u64,
}

/// What a task declares.
pub(super) struct Template<const K: usize, S, L> {
    label: TaskLabel,
    space: GridBox<K>,
    hints: Hints<K>,
    accesses: L,
    place: KernelPlace,
    _kind: PhantomData<fn() -> S>,
}

impl<const K: usize, S, L: Clone> Template<K, S, L> {
    pub(super) fn of(task: &TaskBuilder<'_, K, S, L>) -> Self {
        let TaskBuilder { label, space, hints, accesses, place, .. } = task;
        let (label, accesses, place) = (label.clone(), accesses.clone(), place.clone());
        Self { label, space: *space, hints: *hints, accesses, place, _kind: PhantomData }
    }

    /// Begins the task in a replay.
    pub(super) fn begin<'a>(&self, replay: &Replay<'a>) -> TaskBuilder<'a, K, S, L> {
        let Replay { core, group, sequence, number } = replay;
        let name = format!("{} in replay {number} of {}", self.label.name(), sequence.name());
        TaskBuilder {
            core,
            group: *group,
            label: TaskLabel { name: name.into(), location: self.label.location() },
            space: self.space,
            hints: self.hints,
            accesses: self.accesses.clone(),
            place: self.place.clone(),
            _kind: PhantomData,
        }
    }
}
