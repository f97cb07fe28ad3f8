//! Waiting for tasks.
//!
//! A thread that waits for all tasks helps with host tasks that it waits for. A thread that waits for one
//! task runs that task or none: a task that it does not wait for must not delay it. In a seeded runtime,
//! where waiting threads run all tasks, they run whatever the seed says. A thread that finds nothing to do
//! spins, yields and parks (see [`Patience`]), and looks around now and then (see
//! [`Warnings`](crate::observe::Warnings)).
//!
//! Waiting inside a task of the same runtime is an error, because the task would wait for itself: see
//! [`current_task`](super::current_task). The check comes first in every function that may wait, also if
//! there is nothing to wait for, so that the error does not depend on the schedule.

use super::{
    core::{Core, State},
    groups::group::Group,
    task::node::{DeadLatches, Node},
};
use crate::{
    events::{event::Event, latch::Latch, patience_for_devices},
    observe::{Progress, wait_span},
};
use anabranch_graph::TaskId;
use anabranch_par::Patience;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};

impl Core {
    /// Waits for a latch, in a span for the function `call`. Meanwhile runs host tasks that the latch waits
    /// for and that no thread has claimed.
    pub(crate) fn wait_for(&self, latch: &Latch, call: &'static str) {
        let _span = wait_span(call);
        self.wait_without_span(latch);
    }

    /// Waits for a latch as [`wait_for`](Self::wait_for) does, but never calls a subscriber of spans, which
    /// may panic.
    pub(crate) fn wait_without_span(&self, latch: &Latch) {
        let mut helps = true;
        self.post_before_waiting();
        latch.event.wait(
            self.patience(),
            || {
                self.poll_nodes()
                    || helps && self.executor.help_with_any(|node| node.id <= latch.last, &mut helps)
            },
            self.watch_interval(),
            || self.look_around(),
        );
    }

    /// Waits until no task of this group is in flight. Meanwhile runs its host tasks that no thread has
    /// claimed.
    pub(crate) fn wait_for_group(&self, group: &Group, latch: &Latch, call: &'static str) {
        let _span = wait_span(call);
        let mut helps = true;
        self.post_before_waiting();
        latch.event.wait(
            self.patience(),
            || {
                self.poll_nodes()
                    || helps && self.executor.help_with_any(|node| node.is_within(group), &mut helps)
            },
            self.watch_interval(),
            || self.look_around(),
        );
    }

    /// Waits for an event that a task with these pieces sets. The calling thread runs the pieces that can
    /// start, and no other task.
    pub(crate) fn wait_for_task(&self, pieces: &[Node], event: &Event, call: &'static str) {
        let _span = wait_span(call);
        self.post_before_waiting();
        // There may be many. Those in front that are done are not looked at again.
        let mut left = pieces;
        event.wait(
            self.patience(),
            || {
                while let [first, others @ ..] = left
                    && !others.is_empty()
                    && first.is_done()
                {
                    left = others;
                }
                self.poll_nodes() || left.iter().any(|piece| self.executor.help_with(piece))
            },
            self.watch_interval(),
            || self.look_around(),
        );
    }

    /// The patience of a thread that waits for tasks: longer if they may run on a device.
    fn patience(&self) -> Patience {
        // Relaxed: a thread that waits has no use for what comes with it.
        if self.meets_devices.load(Relaxed) { patience_for_devices() } else { Patience::new() }
    }

    /// With several nodes: says to the neighbours what was submitted so far, so that nodes that run different
    /// programs do not wait for each other for ever.
    fn post_before_waiting(&self) {
        self.cluster().into_iter().for_each(|cluster| cluster.post());
    }

    /// With several nodes: makes progress in the transport, and returns whether there was any.
    fn poll_nodes(&self) -> bool {
        self.cluster().is_some_and(|cluster| cluster.poll())
    }

    /// Polls an event for a future. A future never blocks, but in a seeded runtime it runs tasks.
    pub(crate) fn poll(&self, event: &Event, context: &mut Context<'_>) -> Poll<()> {
        self.executor.poll(event, context)
    }

    /// A latch for all tasks submitted so far.
    pub(crate) fn latch(&self) -> Arc<Latch> {
        let state = self.state.lock();
        // With several nodes, one thread submits: all tasks in flight are before this call.
        let last = self.several.as_ref().map_or_else(|| state.graphs.live().len(), |_| u64::MAX);
        let latch = Latch::new(TaskId(last));
        let mut dead = DeadLatches::new();
        state.tasks.iter().for_each(|node| node.add_latch_if_last(&latch, &mut dead));
        drop(state);
        // Outside the lock: wakers are the program's own, and so are their destructors.
        drop(dead);
        latch.release();
        latch
    }

    /// Forgets completed tasks and frees their memory.
    pub(crate) fn forget_completed(&self) {
        let State { graphs, tasks, .. } = &mut *self.state.lock();
        tasks.forget_completed(graphs.live_mut());
    }

    /// Notes that the program waits for all tasks, for the warning about programs that do that often.
    pub(crate) fn count_wait(&self) {
        self.warnings.count_wait(self.in_flight.submitted());
    }

    /// Looks for tasks to run and for reasons to warn, on a thread that has been blocked for a while.
    pub(super) fn look_around(&self) {
        // Another thread, which ran the task that this one waits for, may have left ready tasks behind.
        self.executor.run_while(|| true);
        self.apply_recorded();
        let live: Vec<Node> = self.state.lock().tasks.iter().cloned().collect();
        let progress = live.iter().filter(|node| !node.is_done()).map(|node| Progress {
            id: node.id,
            label: &node.label,
            is_running: node.is_claimed(),
        });
        self.warnings.look(self.in_flight.completed(), self.conflicts.waiting(), progress);
    }

    /// How often a blocked thread does that.
    pub(super) fn watch_interval(&self) -> Duration {
        self.executor.watch_interval(self.warnings.interval())
    }
}
