//! Replays of a sequence: the body of their task, and the handle to one with a condition.

use super::{owner::Limits, recorder::Whole, units::Recorded};
use crate::{
    data::host_object::HostObject,
    error::{Cause, Error, Failure},
    execute::{
        Body, Compute, TaskHandle,
        replay::{End, Parts, Run},
    },
    submit::launch::body::ONCE,
};
use anabranch_graph::{Access, BufferId};
use smallvec::SmallVec;
use std::{
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

/// A handle to [replays with a condition](super::Sequence::replay_until). The task runs whether or not the
/// handle is kept.
///
/// It is a `Future` with the result of [`wait`](Self::wait).
#[derive(Debug)]
pub struct ReplayUntil {
    task: TaskHandle,
    met: Arc<OnceLock<u64>>,
}

impl ReplayUntil {
    pub(super) fn new(task: TaskHandle, met: Arc<OnceLock<u64>>) -> Self {
        Self { task, met }
    }

    /// The handle to the task.
    pub fn task(&self) -> &TaskHandle {
        &self.task
    }

    /// Waits for the task. Returns the number of replays that have run, or `None` if none of them met the
    /// condition.
    ///
    /// # Errors
    /// As [`TaskHandle::wait`].
    pub fn wait(&self) -> Result<Option<u64>, Error> {
        self.task.wait().map(|()| self.met())
    }

    fn met(&self) -> Option<u64> {
        self.met.get().copied()
    }
}

impl Future for ReplayUntil {
    type Output = Result<Option<u64>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map_ok(|()| self.met())
    }
}

/// Some replays.
pub(super) struct Replays {
    pub(super) tasks: HostObject<Vec<Recorded>>,
    /// The task after those, which has the condition.
    pub(super) last: Option<Recorded>,
    pub(super) whole: Arc<Whole>,
    /// The version of each buffer.
    pub(super) versions: SmallVec<[(BufferId, u32); 4]>,
    pub(super) replays: u64,
    pub(super) limits: Limits,
}

/// Some replays, until they are run.
pub(super) struct ReplayBody(Option<Replays>);

impl ReplayBody {
    pub(super) fn new(replays: Replays) -> Self {
        Self(Some(replays))
    }
}

impl Body for ReplayBody {
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let Replays { tasks, mut last, whole, versions, replays, limits } = self.0.take().expect(ONCE);
        let mut tasks = tasks.inner.lock();
        let tasks = tasks.as_mut().expect("nobody takes it out");
        for task in tasks.iter_mut().chain(&mut last) {
            let version = |access: &Access| {
                let mut versions = versions.iter();
                let found = versions.find(|(buffer, _)| *buffer == access.buffer);
                found.expect("the sequence accesses the buffers of its tasks").1
            };
            task.units
                .attach(&mut task.accesses.iter().map(version))
                .map_err(|error| Cause::from(Box::new(error)))?;
        }
        match limits.reached(0) {
            None => {}
            Some(Cause::ReplaysCancelled) => return Err(Cause::Cancelled),
            Some(late) => return Err(late),
        }
        let tasks: SmallVec<[&Recorded; 8]> = tasks.iter().chain(&last).collect();
        let is_checked = compute.is_checked();
        // SAFETY: memory is attached. The plan keeps the order that the graph has derived from the accesses,
        // in which a unit runs once in each replay. No other replay of the sequence runs now, because each
        // has an effect on the tasks.
        let execute = |task: usize, parts: &Parts, replay: u64| unsafe {
            match parts {
                Parts::Chunks(chunks) => tasks[task].units.call(chunks.clone(), replay, is_checked),
                Parts::End => tasks[task].units.end().map(ControlFlow::Continue),
            }
        };
        let run = Run::new(&whole.plan, replays, execute, |replay| limits.reached(replay));
        match compute.random() {
            Some(random) => run.run_in_random_order(random),
            None => compute.run_strands(whole.plan.strands(), |strand| run.take_part(strand)),
        }
        match run.into_end() {
            None | Some(End::Met) => Ok(()),
            Some(End::Over(why)) => Err(why),
            Some(End::Failed { replay, task, why }) => {
                Err(Cause::InReplay { task: tasks[task].label.clone(), replay, cause: Box::new(why) })
            }
        }
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}
