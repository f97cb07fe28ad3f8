//! Sequences with several nodes, on devices, or with tasks that block: each replay submits the tasks.

use super::{
    needs::Needs,
    owner::{DeadlineExceeded, Owner},
    replays::ReplayUntil,
    template::{Replay, Submit},
};
use crate::{
    data::{buffer::Buffer, element::Element, view::ReadView},
    error::Error,
    execute::{Core, Node, TaskHandle},
    submit::task::NewTask,
};
use anabranch_grid::all;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::{
    ops::ControlFlow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// A sequence whose tasks are submitted.
pub(super) struct Submitted {
    /// In the order of the sequence.
    tasks: Vec<Submit>,
    needs: Needs,
    /// Held by a thread of the program that submits replays, so that those of two threads follow each other.
    turn: Mutex<()>,
}

impl Submitted {
    pub(super) fn new(tasks: Vec<Submit>, needs: Needs) -> Self {
        Self { tasks, needs, turn: Mutex::default() }
    }

    /// Takes the lock, if the program calls. A task, a callback or a condition does not take it, because the
    /// thread that holds it may wait for this one.
    fn take_turn(&self, core: &Core) -> Option<MutexGuard<'_, ()>> {
        (!core.id().is_inside_task()).then(|| self.turn.lock())
    }

    pub(super) fn replay(&self, owner: &Owner, replays: u64) -> Result<TaskHandle, Error> {
        let core = owner.running.core();
        let _turn = self.take_turn(core);
        if replays > 0 {
            self.needs.check(owner)?;
        }
        let mut submitted = Tasks::default();
        for number in 0..replays {
            if self.ends_late(owner, number, &mut submitted)? {
                break;
            }
            // The handle gets the cancellation from the tasks of this replay. With several nodes, all submit
            // the same tasks.
            let is_last = owner.is_cancelled() && core.several_nodes().is_none();
            self.submit(owner, number, &mut submitted)?;
            if is_last {
                break;
            }
        }
        Ok(submitted.into_handle())
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
        let core = owner.running.core();
        core.id().check_outside(CALL)?;
        let _turn = self.take_turn(core);
        if most > 0 {
            self.needs.check_until(owner, buffer)?;
        }
        let (condition, met) = (Arc::new(Mutex::new(condition)), Arc::new(OnceLock::new()));
        let mut submitted = Tasks::default();
        for number in 0..most {
            if self.ends_late(owner, number, &mut submitted)? {
                break;
            }
            self.submit(owner, number, &mut submitted)?;
            let (condition, holds) = (Arc::clone(&condition), Arc::new(AtomicBool::new(false)));
            let by_task = Arc::clone(&holds);
            let check = task.clone().collective().read(buffer, all()).host(move |_, (buffer,)| {
                by_task.store((condition.lock())(buffer), Relaxed);
            })?;
            let failed = check.wait().is_err();
            submitted.add(check);
            if let ControlFlow::Break(holds) = decide(core, failed, holds.load(Relaxed))? {
                if holds {
                    let first = met.set(number + 1);
                    debug_assert!(first.is_ok(), "no replay is submitted after that");
                }
                break;
            }
        }
        Ok(ReplayUntil::new(submitted.into_handle(), met))
    }

    /// If the deadline has passed before this replay, submits a task that fails with it.
    fn ends_late(&self, owner: &Owner, number: u64, submitted: &mut Tasks) -> Result<bool, Error> {
        let Some(late) = DeadlineExceeded::before(number, owner.deadline) else { return Ok(false) };
        let Owner { running, group, label, .. } = owner;
        let name = format!("end of {}", label.name());
        let task = NewTask::new(running.core(), group.as_ref(), name, label.location());
        submitted.add(task.once().host(move |()| Err::<(), _>(late))?);
        Ok(true)
    }

    /// Submits the tasks of a replay.
    fn submit(&self, owner: &Owner, number: u64, submitted: &mut Tasks) -> Result<(), Error> {
        let Owner { running, group, label, .. } = owner;
        let replay = Replay { core: running.core(), group: group.as_ref(), sequence: label, number };
        self.tasks.iter().try_for_each(|submit| submit(&replay).map(|task| submitted.add(task)))
    }
}

const CALL: &str = "Sequence::replay_until";

/// Whether the replays end here, and whether the condition holds then: all nodes decide alike.
fn decide(core: &Core, failed: bool, holds: bool) -> Result<ControlFlow<bool>, Error> {
    let all = core.tell(CALL, Some(vec![u8::from(failed), u8::from(holds)]))?;
    Ok(if all.iter().any(|said| said.note.first() == Some(&1)) {
        ControlFlow::Break(false)
    } else if all.iter().all(|said| said.note.get(1) == Some(&1)) {
        ControlFlow::Break(true)
    } else {
        ControlFlow::Continue(())
    })
}

/// The submitted tasks, without most of those that are done, except for the first that has failed.
#[derive(Default)]
struct Tasks {
    pieces: Vec<Node>,
    /// How many there may be before they are looked through.
    limit: usize,
}

impl Tasks {
    fn add(&mut self, task: TaskHandle) {
        self.pieces.extend(task.into_pieces());
        if self.pieces.len() <= self.limit {
            return;
        }
        // The handle keeps the last one, so that it knows its runtime.
        let last = self.pieces.pop();
        let failed = |piece: &Node| piece.poison().map(|failure| (failure.age(), piece.clone()));
        let failures = self.pieces.iter().filter(|piece| piece.is_done()).filter_map(failed);
        let first = failures.min_by(|a, b| a.0.cmp(&b.0)).map(|(_, piece)| piece);
        self.pieces.retain(|piece| !piece.is_done());
        self.pieces.extend(first);
        self.pieces.extend(last);
        self.limit = 64 + 2 * self.pieces.len();
    }

    fn into_handle(self) -> TaskHandle {
        TaskHandle::new(SmallVec::from_vec(self.pieces))
    }
}
