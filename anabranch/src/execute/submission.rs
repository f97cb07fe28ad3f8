//! A task as the program declared it, the head of its node, and the links of the node to its dependencies.

use super::{
    core::Core,
    devices::OnDevice,
    graphs::Declared,
    groups::group::Group,
    live_tasks::LiveTasks,
    task::{
        node::{Head, Node},
        place::Place,
        properties::{Contention, Needs, Properties},
    },
};
use crate::{label::TaskLabel, observe::TaskRecord};
use anabranch_graph::{Access, Dependency, Effect, MemoryId, TaskId};
use std::{
    ptr::NonNull,
    sync::{Arc, atomic::AtomicU32},
};

/// A task as the program declared it, without the types of its accesses and of its function.
pub(crate) struct Submission<'a> {
    pub(crate) label: &'a TaskLabel,
    /// The group that the task belongs to.
    pub(crate) group: Option<&'a Arc<Group>>,
    pub(crate) accesses: &'a [Access],
    pub(crate) effects: &'a [Effect],
    pub(crate) priority: i32,
    pub(crate) place: Place,
    /// Whether the task only looks at data, as a fence does. The cancellation of its group does not cancel
    /// such a task, and the next report does not count it if it is skipped.
    pub(crate) observes: bool,
    /// Further facts for the recorder, in a recorded runtime.
    pub(crate) record: Option<&'a Arc<TaskRecord>>,
    /// `None` if the task runs on the host.
    pub(crate) device: Option<OnDevice<'a>>,
}

impl Submission<'_> {
    #[inline]
    pub(super) fn declared(&self) -> Declared<'_> {
        let Self { label, accesses, effects, record, .. } = self;
        Declared { label, accesses, effects, record: *record }
    }

    /// What the scheduler of conflicts must know, if the task may conflict with others: be in no order with
    /// them, and yet not run at the same time.
    #[inline]
    fn contention(&self) -> Option<Box<Contention>> {
        let contends = self.effects.iter().any(|effect| !effect.order.is_in_order());
        contends.then(|| {
            let (effects, priority) = (self.effects.into(), self.priority);
            Box::new(Contention { effects, priority, slot: AtomicU32::new(u32::MAX) })
        })
    }

    /// The head of the node of this task. `queue` is the memory of the device that it goes to.
    #[inline(always)]
    pub(super) fn head(&self, id: TaskId, core: &Core, queue: Option<MemoryId>) -> Head {
        // Before the label is cloned, for the same reason as the marks in `Head::new`.
        let (contention, group) = (self.contention(), self.group.cloned());
        let Self { place, observes, .. } = *self;
        core.head(id, Properties { label: self.label.clone(), place, observes, group, contention, queue })
    }
}

impl Core {
    /// The head of a node of this runtime.
    #[inline(always)]
    pub(super) fn head(&self, id: TaskId, properties: Properties) -> Head {
        Head::new(id, properties, NonNull::from_ref(self), self.id())
    }
}

/// Links a node to its dependencies, inserts it and counts it as submitted, under the lock of the state.
/// Returns how many of the dependencies it has to wait for.
#[inline]
pub(super) fn link(
    core: &Core,
    tasks: &mut LiveTasks,
    barrier: Option<&Node>,
    node: &Node,
    dependencies: &[Dependency],
) -> u32 {
    let mut count = link_all(tasks, node, dependencies);
    if let Some(barrier) = barrier {
        count += u32::from(barrier.add_successor(node, Needs::End));
    }
    tasks.insert(node.clone());
    core.count_submitted(node);
    count
}

/// Makes a node wait for tasks. Returns how many of them it has to wait for.
#[inline]
pub(super) fn link_all(tasks: &LiveTasks, node: &Node, dependencies: &[Dependency]) -> u32 {
    dependencies.iter().map(|dependency| u32::from(tasks.link(node, dependency))).sum()
}
