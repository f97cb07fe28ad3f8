//! Running a task and what follows from it: its successors are released, and the thread may go on with some
//! of them.

use super::{
    claimed_tasks::ClaimedTasks,
    core::Core,
    groups::group::{Callback as GroupCallback, Due, Group},
    shutdown::LastReference,
    task::{
        links::Completed,
        node::{Callback, Head, Later, Node, Successor, Successors, TaskRuntime},
        place::{Place, Runner},
        queued::Next,
    },
};
use crate::{
    error::{Cause, Failure, NodeError},
    events::{event::Event, latch::Latches},
    label::TaskLabel,
    observe::task_span,
};
use anabranch_par::{discard_payload, keep_denormals};
use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};
use tracing::span::EnteredSpan;

/// After this many tasks, of which each was made ready by one before it, a thread looks at its queue again:
/// an endless chain must not starve the queued tasks.
const MAX_CHAIN: usize = 64;

impl Node {
    /// Runs or skips the body, and keeps the failure if there is one. Hands a task of a queue over. Returns
    /// whether this thread retires the task.
    fn execute(&self, claimed: &mut ClaimedTasks, core: &Core, runner: Runner) -> bool {
        let head: &Head = self;
        head.marks.enter(|| head.runtime.inside_task(|| self.execute_here(head, core)));
        if head.is_queued() {
            return self.hand_over_to_queue(claimed, core, runner);
        }
        head.body_has_returned()
    }

    /// Hands a task whose body has returned to its queue. Returns whether this thread retires the task.
    #[cold]
    fn hand_over_to_queue(&self, claimed: &mut ClaimedTasks, core: &Core, runner: Runner) -> bool {
        self.hand_over(|node| node.become_ready(claimed, core, runner));
        self.body_has_returned() && self.work_has_ended()
    }

    fn execute_here(&self, head: &Head, core: &Core) {
        let run = || {
            let _span = self.open_span(head)?;
            self.run_or_skip(head, core)
        };
        // A thread of the program may be in another mode. Results must not depend on the thread that runs a
        // task.
        let outcome = keep_denormals(|| catch_unwind(AssertUnwindSafe(run)));
        match (outcome, &head.part) {
            (Ok(Ok(())), None) => {}
            (Ok(Ok(())), Some(part)) => core.part_is_done(part),
            (Ok(Err(cause)), _) => self.work_has_failed(*cause, core),
            (Err(payload), _) => self.body_has_panicked(payload, core),
        }
    }

    #[cold]
    fn body_has_panicked(&self, payload: Box<dyn Any + Send>, core: &Core) {
        self.work_has_failed(Cause::from_panic(payload, None), core);
    }

    /// Keeps why the body of the task, or the work that it has begun, has failed. How a task of a queue ends
    /// is decided later.
    #[cold]
    fn work_has_failed(&self, cause: Cause, core: &Core) {
        if self.is_queued() { self.keep_outcome(cause) } else { self.fail_with(cause, core) }
    }

    /// Opens the span of the task. What a node does around its part of a task has none: it is no run of the
    /// task. A subscriber is the program's code, and may panic: then the task fails, and its body is skipped.
    fn open_span(&self, head: &Head) -> Result<Option<Box<EnteredSpan>>, Box<Cause>> {
        if !head.has_span() {
            return Ok(None);
        }
        catch_unwind(AssertUnwindSafe(|| head.span())).map_err(|payload| {
            let cause = Cause::from_panic(payload, None);
            self.task().skip_body(&Arc::new(self.failure(self.label.clone(), cause.clone())));
            Box::new(cause)
        })
    }

    /// Keeps the failure of the task, for tasks that need its results and for the next report.
    #[cold]
    fn fail_with(&self, cause: Cause, core: &Core) {
        if self.place == Place::Transfer
            && let Some(cluster) = core.cluster()
            && let Cause::Panic { .. } = cause
        {
            // Other nodes wait for this step.
            cluster
                .stop(NodeError::Here { why: format!("a transfer for {} has failed: {cause}", self.label) });
        }
        let failure = Arc::new(self.failure(self.label.clone(), cause));
        if failure.cause.is_reported() {
            core.failures_of(self.group.as_deref()).add(&failure);
        }
        self.part.iter().for_each(|part| core.part_has_failed(part, &failure));
        self.fail(failure);
    }

    fn run_or_skip(&self, head: &Head, core: &Core) -> Result<(), Box<Cause>> {
        if let Some(part) = &head.part
            && let Some(failure) = core.poison_of(part)
        {
            drop(self.poison_with(&failure));
        }
        if head.is_poisoned() || head.is_cancelled() {
            return Err(self.skip(core));
        }
        let compute = core.executor.compute();
        // Parallel loops inside the task run on the threads of the runtime.
        compute.pool().install(|| self.task().begin_body(compute, Later::of(self)))
    }

    /// Skips the body of a task that is poisoned or cancelled. Returns the reason.
    #[cold]
    fn skip(&self, core: &Core) -> Box<Cause> {
        let cause = self.poison().map_or(Cause::Cancelled, |failure| Cause::skipped(&failure));
        let why = Arc::new(self.failure(self.label.clone(), cause.clone()));
        // How a task of a queue ends is not decided yet.
        if !self.observes && !self.is_queued() {
            self.count_skipped(&why, core);
        }
        self.task().skip_body(&why);
        Box::new(cause)
    }

    /// Counts a skipped task for the next report, unless the program has cancelled the task at the root.
    fn count_skipped(&self, failure: &Arc<Failure>, core: &Core) {
        let root = failure.root();
        if root.cause.is_reported() {
            core.failures_of(self.group.as_deref()).add_skipped(root);
        }
    }

    /// Decides how a task of a queue has ended, when all that it depends on has ended, too. It is no part of
    /// a task of several nodes: these have no queues.
    #[cold]
    fn conclude(&self, core: &Core) {
        debug_assert!(self.part.is_none(), "a task of several nodes goes to no queue");
        let outcome = self.take_outcome();
        let cause = self.poison().map(|failure| Cause::skipped(&failure)).or(outcome);
        self.task().end_body(cause.is_none());
        let Some(cause) = cause else { return };
        if let Cause::Skipped { root, .. } = &cause
            && !self.observes
        {
            self.count_skipped(root, core);
        }
        self.fail_with(cause, core);
    }

    /// Completes the task, and the tasks of queues that end with it.
    fn retire(self, claimed: &mut ClaimedTasks, core: &Core, runner: Runner) {
        // Most tasks end no others, and then this needs no destructor.
        let mut ended = None;
        self.retire_alone(claimed, core, runner, &mut ended);
        // They are retired in the order in which they ended.
        while let Some(node) = ended.as_mut().and_then(VecDeque::pop_front) {
            node.retire_alone(claimed, core, runner, &mut ended);
        }
    }

    /// Completes the task: releases its successors and latches. Tasks that become ready are queued, except
    /// for those that may follow on this thread. Tasks of queues that end with this one are added to `ended`.
    fn retire_alone(
        self,
        claimed: &mut ClaimedTasks,
        core: &Core,
        runner: Runner,
        ended: &mut Option<VecDeque<Self>>,
    ) {
        let head: &Head = &self;
        if head.is_queued() {
            self.conclude(core);
        }
        let completed = head.complete(|callback| {
            claimed.give_back(core);
            self.call(callback, core);
        });
        let Completed { successors, mut latches, poison } = completed;
        head.release_successors(successors, poison, |next| match next {
            Next::Ready(node) => node.become_ready(claimed, core, runner),
            Next::Ended(node) => ended.get_or_insert_default().push_back(node),
        });
        if head.contends() {
            for node in core.conflicts.finished(&self) {
                node.start(claimed, core, runner);
            }
        }
        if let Some(group) = &head.group {
            latches = self.complete_in(group, claimed, core);
        }
        // A waker is the program's code. It may take long.
        if latches.is_some() {
            claimed.give_back(core);
        }
        // After this the task must not use the runtime, which may be gone if no other task is in flight.
        let last_reference = core.complete_task();
        // After that: a thread that waits for the latch must find the task counted as completed.
        if let Some(latches) = latches {
            latches.release();
        }
        last_reference.into_iter().for_each(LastReference::shut_down);
    }

    /// Counts the task as completed for its group: calls the functions that waited for the group, and then
    /// closes the task. Returns the latches of the task and of the group.
    fn complete_in(&self, group: &Group, claimed: &mut ClaimedTasks, core: &Core) -> Option<Latches> {
        let mut released = Vec::new();
        // A group that the program has dropped prints its failures, whose messages are the program's code.
        let mut due = self.runtime.inside_task(|| group.complete(&mut released));
        while let Some(Due { group, callbacks }) = due {
            // A callback may take long.
            claimed.give_back(core);
            for GroupCallback { call: callback, label } in callbacks {
                if let Some(cause) = call(|| callback(group), core) {
                    group.failures.add(&Arc::new(self.failure(label, cause)));
                }
            }
            due = self.runtime.inside_task(|| group.complete(&mut released));
        }
        let mut latches = self.close();
        Latches::extend(&mut latches, released);
        latches
    }

    /// Calls a function that the program has given for the end of this task.
    #[cold]
    fn call(&self, callback: Callback, core: &Core) {
        if let Some(cause) = call(|| callback(self), core) {
            let failure = Arc::new(self.failure(self.label.clone(), cause));
            core.failures_of(self.group.as_deref()).add(&failure);
        }
    }

    /// All dependencies of this task are done. The thread that found this may go on with it.
    fn become_ready(self, claimed: &mut ClaimedTasks, core: &Core, runner: Runner) {
        if !self.contends() {
            return self.start(claimed, core, runner);
        }
        for node in core.conflicts.eligible(&self) {
            node.start(claimed, core, runner);
        }
    }

    /// This task can start: it follows on this thread, or it is queued.
    fn start(self, claimed: &mut ClaimedTasks, core: &Core, runner: Runner) {
        if !claimed.prefers(self.place) || !core.executor.may_follow(runner, self.place) {
            return core.executor.enqueue(self);
        }
        // Otherwise a thread that waits was faster.
        if self.claim() {
            claimed.add(self, core);
        }
    }

    /// Ends the submission of a task with this many unfinished dependencies. Runs or queues the task if it is
    /// ready.
    pub(super) fn finish_submission(&self, dependencies: u32, core: &Core) {
        if self.wait_for_dependencies(dependencies) {
            // Most tasks do not run on a thread that submits.
            if !self.contends() && !Runner::Program.takes(self.place) {
                return core.executor.enqueue(self.clone());
            }
            let mut claimed = ClaimedTasks::default();
            self.clone().become_ready(&mut claimed, core, Runner::Program);
            claimed.run_on(core, Runner::Program);
        }
    }
}

impl TaskRuntime for Core {
    fn run(&self, node: Node, runner: Runner) {
        ClaimedTasks::only(node).run_on(self, runner);
    }

    fn end_later(&self, node: Node, result: Result<(), Cause>, is_last: bool) {
        if let Err(cause) = result {
            node.work_has_failed(cause, self);
        }
        // A worker that polls has no other work. It goes on with kernels, too.
        let is_worker = || self.executor.compute().pool().worker_index().is_some();
        let is_free = is_last && is_worker() && !node.runtime.is_inside_task();
        let runner = if is_free { Runner::Worker } else { Runner::Program };
        if node.completion_is_finished() && (!node.is_queued() || node.work_has_ended()) {
            let mut claimed = ClaimedTasks::default();
            node.retire(&mut claimed, self, runner);
            claimed.run_on(self, runner);
        }
    }

    fn share(&self) -> Option<Arc<dyn TaskRuntime>> {
        let core = Self::share(self)?;
        Some(core)
    }

    fn wait_for_task(&self, pieces: &[Node], event: &Event, call: &'static str) {
        Self::wait_for_task(self, pieces, event, call);
    }

    fn poll(&self, event: &Event, context: &mut Context<'_>) -> Poll<()> {
        Self::poll(self, event, context)
    }
}

impl ClaimedTasks {
    /// Runs these tasks on this thread, and then tasks that they made ready and that may run here. The
    /// runtime may be gone afterwards.
    fn run_on(mut self, core: &Core, runner: Runner) {
        let mut done = 0;
        while let Some(node) = self.take() {
            // Otherwise another thread retires the task.
            if node.execute(&mut self, core, runner) {
                node.retire(&mut self, core, runner);
            }
            done += 1;
            if done == MAX_CHAIN {
                self.give_back(core);
            }
        }
    }
}

impl Head {
    /// The span of a task, if there is a subscriber.
    fn span(&self) -> Option<Box<EnteredSpan>> {
        match self.is_permitted() {
            // It must run. A panic of a subscriber has printed its message.
            true => {
                let open = AssertUnwindSafe(|| task_span(&self.label));
                catch_unwind(open).unwrap_or_else(discard)
            }
            false => task_span(&self.label),
        }
    }

    /// A failure of this task, or of this node's part of it. `task` is the label for messages.
    #[cold]
    fn failure(&self, task: TaskLabel, cause: Cause) -> Failure {
        let (id, node) = self.part.as_ref().map_or((self.id, None), |part| (part.task, Some(part.node)));
        Failure::new(id, task, cause).on(node)
    }

    /// Hands the poison on to the successors that need the results of this task, and releases all successors.
    /// Calls `next` with each task whose dependencies are all done, and with each that has begun before and
    /// ends with this one.
    #[inline]
    pub(super) fn release_successors(
        &self,
        mut successors: Successors,
        poison: Option<Arc<Failure>>,
        mut next: impl FnMut(Next),
    ) {
        if successors.is_empty() {
            return;
        }
        let mut replaced = Vec::new();
        for Successor { node, needs, is_handed } in successors.drain(..) {
            if let Some(failure) = poison.as_ref().filter(|failure| needs.is_broken_by(failure)) {
                replaced.extend(node.poison_with(failure));
            }
            if is_handed {
                if node.dependency_has_ended() {
                    next(Next::Ended(node));
                }
            } else if node.release() {
                next(Next::Ready(node));
            }
        }
        self.keep_memory(successors);
        // Not under a lock: errors are the program's own, and so are their destructors.
        if !replaced.is_empty() {
            self.runtime.inside_task(|| drop(replaced));
        }
    }
}

fn discard<T>(payload: Box<dyn Any + Send>) -> Option<T> {
    discard_payload(payload);
    None
}

/// Calls a function that the program has given for the end of a task or group. Returns why it failed, if it
/// did.
#[cold]
fn call(callback: impl FnOnce(), core: &Core) -> Option<Cause> {
    let call = || core.executor.compute().pool().install(callback);
    keep_denormals(|| catch_unwind(AssertUnwindSafe(call))).err().map(Cause::from_callback)
}
