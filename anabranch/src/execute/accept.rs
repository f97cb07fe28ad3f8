//! Submitting a task: what happens under the lock of the runtime's state, and right before and after it.

use super::{
    core::{Core, State},
    devices::{self, Prepared, Slot},
    groups::group::Group,
    submission::{Submission, link, link_all},
    task::{
        node::{Body, Head, Node},
        place::Place,
        properties::Properties,
    },
    threads::compute::Compute,
};
use crate::{
    error::{Cause, Failure},
    label::TaskLabel,
};
use anabranch_graph::{Access, GraphError};
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use std::sync::Arc;

/// A task that the graph has accepted and that has no node yet.
///
/// The lock of the runtime's state is held until [`insert`](Self::insert), so no handle to a buffer or host
/// object may be dropped in between: the last one takes the same lock.
pub(crate) struct Accepted<'a> {
    core: &'a Arc<Core>,
    task: &'a Submission<'a>,
    state: MutexGuard<'a, State>,
    prepared: Option<Box<Prepared>>,
    /// Behind the lock, and so dropped outside it: errors are the program's own, and so are their
    /// destructors.
    forgotten: Option<Vec<Arc<Failure>>>,
}

impl Accepted<'_> {
    /// The versions of the accessed buffers, whose memory the task is to use. If the system refuses this
    /// memory, the graph has accepted the task already: then the node gets a body that fails.
    #[inline]
    pub(crate) fn versions(&self) -> &[u32] {
        &self.state.graphs.submitted().versions
    }

    /// The places of the accessed buffers on the device that the task runs on.
    pub(crate) fn slots(&mut self) -> SmallVec<[Arc<Slot>; 4]> {
        let State { graphs, residents, .. } = &mut *self.state;
        let versions = &graphs.submitted().versions;
        match (residents, self.task.device) {
            (Some(residents), Some(on)) => residents.slots(on, self.task.accesses, versions),
            _ => SmallVec::new(),
        }
    }

    /// The head of the node.
    #[inline(always)]
    pub(crate) fn head(&self) -> Head {
        self.task.head(self.state.graphs.submitted().id, self.core, None)
    }

    /// The head of the node of a task that runs on a device.
    #[inline(always)]
    pub(crate) fn head_on_device(&self) -> Head {
        let queue = self.state.residents.as_ref().map(|residents| residents.place(self.task.device));
        self.task.head(self.state.graphs.submitted().id, self.core, queue)
    }

    /// Links the node to its dependencies and lets it go.
    pub(crate) fn insert(self, node: Node) -> Node {
        let Self { core, mut state, mut prepared, forgotten, .. } = self;
        let State { graphs, tasks, barrier, .. } = &mut *state;
        let is_sample = core.warnings.is_sample(node.id);
        let is_idle = is_sample && core.in_flight.is_idle();
        let done = barrier.take_if(|barrier| barrier.is_done());
        let mut dependencies = link(core, tasks, barrier.as_ref(), &node, &graphs.submitted().dependencies);
        if let Some(prepared) = &prepared {
            dependencies += link_all(tasks, &node, &prepared.needs[0]);
        }
        drop(state);
        drop((forgotten, done));
        if let Some(prepared) = &mut prepared {
            prepared.start(core);
        }
        node.finish_submission(dependencies, core);
        core.executor.after_submission();
        // The program's code, which may wait for this task: mappers in a dry run, and a subscriber that gets
        // a warning.
        core.apply_recorded();
        if is_sample {
            core.warnings.sample(is_idle);
        }
        node
    }
}

/// A task in pieces that the graph has accepted and that has no nodes yet. See [`Accepted`].
pub(crate) struct AcceptedPieces<'a> {
    core: &'a Arc<Core>,
    task: &'a Submission<'a>,
    state: MutexGuard<'a, State>,
    prepared: Option<Box<Prepared>>,
    forgotten: Option<Vec<Arc<Failure>>>,
}

impl AcceptedPieces<'_> {
    /// The versions of the accessed buffers, whose memory all pieces are to use: see [`Accepted::versions`].
    pub(crate) fn versions(&self) -> &[u32] {
        &self.state.graphs.submitted().versions
    }

    /// The head of the node of a piece, which is made now. Some nodes are forgotten here, so that the next
    /// new ones get their memory.
    pub(crate) fn head(&mut self, piece: usize) -> Head {
        let State { graphs, tasks, .. } = &mut *self.state;
        tasks.forget_first_ones(graphs.live_mut());
        self.task.head(graphs.pieces().id(piece), self.core, None)
    }

    /// Links the nodes of the pieces to their dependencies and lets them go.
    pub(crate) fn insert(self, nodes: &[Node]) {
        let Self { core, mut state, mut prepared, forgotten, .. } = self;
        let State { graphs, tasks, barrier, .. } = &mut *state;
        let is_sample = nodes.iter().any(|node| core.warnings.is_sample(node.id));
        let is_idle = is_sample && core.in_flight.is_idle();
        let done = barrier.take_if(|barrier| barrier.is_done());
        let mut counts = SmallVec::<[u32; 8]>::with_capacity(nodes.len());
        for (at, (node, dependencies)) in nodes.iter().zip(graphs.pieces().dependencies()).enumerate() {
            let copies = prepared.as_ref().map_or(0, |prepared| link_all(tasks, node, &prepared.needs[at]));
            counts.push(copies + link(core, tasks, barrier.as_ref(), node, dependencies));
        }
        let large = graphs.take_large_pieces();
        drop(state);
        drop((forgotten, done, large));
        if let Some(prepared) = &mut prepared {
            prepared.start(core);
        }
        for (node, count) in nodes.iter().zip(counts) {
            node.finish_submission(count, core);
        }
        core.executor.after_submission();
        // As in `Accepted::insert`.
        core.apply_recorded();
        if is_sample {
            core.warnings.sample(is_idle);
        }
    }
}

impl Core {
    /// Begins the submission of a task: derives its dependencies. The caller attaches memory, makes the node
    /// and [inserts](Accepted::insert) it.
    ///
    /// # Errors
    /// If the graph refuses the task. Nothing is submitted then.
    pub(crate) fn accept<'a>(
        self: &'a Arc<Self>,
        task: &'a Submission<'a>,
    ) -> Result<Accepted<'a>, Box<GraphError>> {
        self.wait_for_room();
        // Declared before the guard, and so dropped outside the lock, also after an error.
        let forgotten;
        let mut state = self.state.lock();
        let State { graphs, tasks, .. } = &mut *state;
        forgotten = tasks.forget_some(graphs.live_mut(), || self.in_flight.count());
        let prepared = devices::prepare(self, &mut state, task, &[task.accesses]);
        let State { graphs, tasks, .. } = &mut *state;
        let is_done = |task| tasks.is_forgettable(task);
        let refused = graphs.submit(&task.declared(), &is_done);
        if let Err(error) = refused {
            drop(state);
            self.start_copies(prepared);
            return Err(error.into());
        }
        devices::note_writes(&mut state, task);
        Ok(Accepted { core: self, task, state, prepared, forgotten })
    }

    /// Begins the submission of a task in pieces: derives the dependencies of each piece. `task` has the
    /// accesses of the whole task, and the effects of each piece. The caller attaches memory, makes the nodes
    /// and [inserts](AcceptedPieces::insert) them.
    ///
    /// # Errors
    /// If the graph refuses the task. Nothing is submitted then.
    pub(crate) fn accept_pieces<'a>(
        self: &'a Arc<Self>,
        task: &'a Submission<'a>,
        pieces: &[impl AsRef<[Access]>],
    ) -> Result<AcceptedPieces<'a>, Box<GraphError>> {
        self.wait_for_room();
        // As in `accept`.
        let forgotten;
        let mut state = self.state.lock();
        let State { graphs, tasks, .. } = &mut *state;
        forgotten = tasks.forget_some(graphs.live_mut(), || self.in_flight.count());
        let prepared = devices::prepare(self, &mut state, task, pieces);
        let State { graphs, tasks, .. } = &mut *state;
        let is_done = |task| tasks.is_forgettable(task);
        let refused = graphs.submit_pieces(&task.declared(), pieces, &is_done);
        if let Err(error) = refused {
            drop(state);
            self.start_copies(prepared);
            return Err(error.into());
        }
        devices::note_writes(&mut state, task);
        Ok(AcceptedPieces { core: self, task, state, prepared, forgotten })
    }

    /// Lets the copies of a task go that the graph has refused: later tasks find what they have copied.
    #[cold]
    fn start_copies(self: &Arc<Self>, prepared: Option<Box<Prepared>>) {
        if let Some(mut prepared) = prepared {
            prepared.start(self);
        }
    }

    /// Submits a barrier, an epoch that the program asks for: it comes after every live task, and every task
    /// that is submitted before it completes comes after it.
    ///
    /// Unlike an epoch of the graph, a barrier is known to the live tasks only. In the graph it would become
    /// the last writer of everything, and a later reader could not find the failure of the task that really
    /// wrote its data. Recorded graphs do have an epoch: the captures of the barrier, which are a fence right
    /// before it.
    pub(crate) fn submit_barrier(self: &Arc<Self>, label: TaskLabel, group: Option<&Arc<Group>>) -> Node {
        self.submit_after_all(label, group, |barrier, node| barrier.replace(node.clone()))
    }

    /// Submits a task that does nothing and comes after every live task. No task comes after it.
    pub(crate) fn submit_behind_all(self: &Arc<Self>, label: TaskLabel) -> Node {
        self.submit_after_all(label, None, |_, _| None)
    }

    fn submit_after_all(
        self: &Arc<Self>,
        label: TaskLabel,
        group: Option<&Arc<Group>>,
        replace: impl FnOnce(&mut Option<Node>, &Node) -> Option<Node>,
    ) -> Node {
        let (node, dependencies, _before) = {
            let mut state = self.state.lock();
            let State { graphs, tasks, barrier, .. } = &mut *state;
            let (place, observes, group) = (Place::Inline, true, group.cloned());
            let properties = Properties { label, place, observes, group, contention: None, queue: None };
            let node = Node::new(|| self.head(graphs.barrier_id(), properties), || BarrierBody);
            let dependencies =
                tasks.iter().map(|before| u32::from(before.add_successor_if_last(&node))).sum();
            let before = replace(barrier, &node);
            tasks.insert(node.clone());
            self.count_submitted(&node);
            (node, dependencies, before)
        };
        node.finish_submission(dependencies, self);
        node
    }

    /// Blocks while the limit of tasks in flight is reached, so that an endless stream of tasks needs bounded
    /// memory. Never blocks a task that submits tasks: it may be one of those in flight. Runs no host task
    /// meanwhile, which may wait for this thread, unless the program allows it.
    #[inline]
    pub(super) fn wait_for_room(&self) {
        if self.in_flight.is_full() && !self.id().is_inside_task() {
            while self.in_flight.is_full() {
                // In a seeded runtime this thread runs tasks. If none can start, all of them wait for
                // devices.
                if self.executor.run_while(|| self.in_flight.is_full()) && !self.in_flight.is_full() {
                    return;
                }
                let mut helps = self.executor.helps_to_submit();
                self.in_flight.block(
                    || helps && self.executor.help_with_any(|_| true, &mut helps),
                    self.watch_interval(),
                    || self.look_around(),
                );
            }
        }
    }
}

/// The body of a barrier, which only has its place in the order.
struct BarrierBody;

impl Body for BarrierBody {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {}
}
