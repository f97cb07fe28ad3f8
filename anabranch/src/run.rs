//! Running a task, and what follows from it: its successors are released, and one of them may go on here and now.

use crate::{
    core::Core,
    error::{Cause, Failure},
    inside::Inside,
    node::{Latch, Node, Place, Successor},
};
use anabranch_par::keep_denormals;
use smallvec::SmallVec;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Which kind of thread runs a task: it decides what that thread may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A compute worker.
    Worker,
    /// A host lane.
    Lane,
    /// A thread of the program, which waits for this task or has just submitted it: it must not be kept by others.
    Program,
}

impl Runner {
    /// Whether a task for `place` may be run on this thread.
    fn takes(self, place: Place) -> bool {
        match place {
            Place::Inline => true,
            Place::Compute => self == Self::Worker,
            Place::Host => self == Self::Lane,
        }
    }
}

/// After so many tasks that each made the next one ready, a thread looks at its queue again: a chain without end must
/// not keep others waiting.
const FOLLOWED: usize = 64;

impl Node {
    /// What a worker or lane does with it.
    pub(crate) fn run_as_job(self) {
        let runner = if self.place == Place::Host { Runner::Lane } else { Runner::Worker };
        if self.claim() {
            self.run_on(runner);
        }
    }

    /// Runs the claimed task here, then whatever it made ready that belongs on this thread.
    pub(crate) fn run_on(self, runner: Runner) {
        // SAFETY: whoever has claimed a task counts it as completed, in `retire`; until then it is not.
        let core = unsafe { self.core() };
        let mut next = Some(self);
        let mut followed = 0;
        while let Some(node) = next {
            node.execute(core);
            next = node.retire(core, runner);
            followed += 1;
            if followed == FOLLOWED
                && let Some(node) = next.take()
            {
                node.unclaim();
                core.enqueue(node);
            }
        }
    }

    /// Does the work, or skips it.
    fn execute(&self, core: &Core) {
        let _inside = Inside::enter(core);
        // A thread of the program may be in another mode; results must not depend on who runs a task.
        let outcome = keep_denormals(|| catch_unwind(AssertUnwindSafe(|| self.work(core))));
        let cause = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(cause)) => cause,
            Err(payload) => Cause::from_panic(payload, None),
        };
        let failure = Arc::new(Failure::new(self.id, self.label.clone(), cause));
        if failure.cause.is_news() {
            core.failed(&failure);
        }
        self.fail(failure);
    }

    fn work(&self, core: &Core) -> Result<(), Cause> {
        let cause = match self.poison() {
            Some(failure) => Cause::skipped(&failure),
            None if self.is_cancelled() => Cause::Cancelled,
            // Loops inside it run on the runtime's threads.
            None => return core.pool().install(|| self.task().run_body(core)),
        };
        let why = Arc::new(Failure::new(self.id, self.label.clone(), cause.clone()));
        self.task().skip_body(core, &why);
        Err(cause)
    }

    /// The task is done: tells everyone who waits for it. What became ready is queued, but for one task that may follow
    /// here and now.
    fn retire(self, core: &Core, runner: Runner) -> Option<Self> {
        let mut next = None;
        let mut latches = SmallVec::<[Arc<Latch>; 2]>::new();
        let mut replaced = SmallVec::<[Arc<Failure>; 1]>::new();
        self.done(|successor, poison| match successor {
            Successor::Latch(latch) => latches.push(latch),
            Successor::Task { node, needs } => {
                if let Some(failure) = poison.filter(|failure| needs.suffers(failure)) {
                    replaced.extend(node.poison_with(failure));
                }
                if node.release() {
                    next = node.ready(next.take(), core, runner);
                }
            }
        });
        if self.contends() {
            for node in core.conflicts().finished(&self) {
                next = node.follow(next, core, runner);
            }
        }
        // Errors are the program's own, and so are their destructors: not under a lock.
        drop(replaced);
        // Wakers are the program's, too, and may take long, or run what waits for the task in hand.
        if !latches.is_empty()
            && let Some(node) = next.take()
        {
            node.unclaim();
            core.enqueue(node);
        }
        // From here on the task is done with the runtime, which may be gone if nothing else is under way.
        let last = core.completed();
        // Last: whoever waits for the latch may find everything else settled.
        latches.iter().for_each(|latch| latch.release());
        drop(last);
        next
    }

    /// Everything that this task depends on is done, which was found by a thread that may go on with one task, `next` so
    /// far.
    fn ready(self, next: Option<Self>, core: &Core, runner: Runner) -> Option<Self> {
        if !self.contends() {
            return self.follow(next, core, runner);
        }
        let start = core.conflicts().eligible(&self);
        start.into_iter().fold(next, |next, node| node.follow(next, core, runner))
    }

    /// This task can be started. It follows here, or it is queued, or the one that was to follow is.
    fn follow(self, next: Option<Self>, core: &Core, runner: Runner) -> Option<Self> {
        let preferred = next.is_none() || self.place == Place::Inline;
        if core.is_seeded() || !preferred || !runner.takes(self.place) {
            core.enqueue(self);
            return next;
        }
        if !self.claim() {
            // A waiting thread was faster.
            return next;
        }
        if let Some(other) = next {
            other.unclaim();
            core.enqueue(other);
        }
        Some(self)
    }

    /// The submission is complete, with so many tasks to wait for: runs or queues the task if it is ready.
    pub(crate) fn submitted(&self, waits_for: u32, core: &Core) {
        if self.waits_for(waits_for)
            && let Some(node) = self.clone().ready(None, core, Runner::Program)
        {
            node.run_on(Runner::Program);
        }
    }
}
