//! Submissions that repeat: their dependencies are recorded once, and replayed from then on.
//!
//! A program that iterates submits the same tasks in each iteration: the same accesses and effects, in the same order. One round of
//! them is a *pass*, and each task of a pass is a *step* of it. In a steady state a task depends on the same steps in every pass: on
//! those before it in its own pass, on the later ones of the pass before, or on a task from before all passes. So a replayed task
//! costs a comparison with its step instead of a derivation.
//!
//! # The stages
//! 1. *Watching.* Tasks are derived as usual. [`Watch`] notes the key of each one and looks for a period among them.
//! 2. *Recording.* Three passes are derived as if no task were done. The first one makes sure that each part that a pass writes holds all
//!    tasks of the last pass that use it. The other two record their dependencies. If one of these is on a task of an earlier pass, the state is
//!    not steady, and the graph goes back to 1. This is so where dependencies grow from pass to pass, for example if tasks
//!    with exclusive effects are observed and no sequential effect follows; the third pass shows it at the latest. It also is so if a task
//!    waits for many tasks from before the passes: a derivation would soon find them done.
//! 3. *Replaying.* The graph compares each task with its step, and answers with the recorded dependencies. The trackers stay
//!    as they were after the last recorded pass; the graph only notes the ids of the tasks.
//!
//! The first task that is another one ends stage 3, and so does whatever else looks at the trackers or changes them. The trackers are
//! *brought up to date* then: an id of the last pass that they know becomes that of the same step in the last replayed pass, and
//! the tasks of a pass that has begun are derived. The graph does this now and then while it replays, too, so that its
//! notes stay few.
//!
//! # Why the answers are right
//! - A part of a buffer that a pass writes holds the ids of the last pass alone, because each write forgets the
//!   readers and writers before it. So the state after each pass is that after the pass before, with the ids of that pass.
//! - A part that no pass writes keeps its writer. Its readers add up; only a task that ends the replay can depend on them, and the
//!   trackers get the readers of all passes before it is derived, without those that are done. The readers of the last pass stay in any case:
//!   by them the trackers find those of later passes.
//! - The same holds of host objects, with sequential effects as writes, and exclusive and relaxed ones as readers.
//! - An answer may name a task that is done. The caller knows of it, and does not wait.
//!
//! Tasks without accesses and effects depend on the last epoch alone. They belong to no pass, and interrupt none. A task that uses a buffer with
//! several versions is never replayed, because the version depends on what is done. A graph with horizons or conflict
//! edges does not replay either.

mod pass;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use pass::Repeated;

use super::graph::{Done, TaskGraph};
use crate::task::{Access, BufferId, Effect, GraphError, ObjectId, Submitted, TaskId};
use pass::{Pass, Recording, Replaying};
use watch::Watch;

/// What a graph knows of submissions that repeat.
#[derive(Debug, Default)]
pub(super) struct Replay {
    watch: Watch,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Watching,
    Recording(Box<Recording>),
    Replaying(Box<Replaying>),
}

/// A submission, as a pass knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    accesses: &'a [Access],
    effects: &'a [Effect],
    /// Whether it is a task, and not the check of all accesses of a task in pieces.
    is_task: bool,
}

impl Replay {
    fn is_recording(&self) -> bool {
        matches!(self.stage, Stage::Recording(_))
    }

    /// Notes a submission that was derived, with its answer, and goes on to the next stage if it is time.
    fn note(&mut self, asked: Asked<'_>, answer: &Submitted) {
        let period = self.watch.note(asked);
        match &mut self.stage {
            Stage::Watching => {
                if let Some(period) = period {
                    self.stage = Stage::Recording(Box::new(Recording::new(period)));
                }
            }
            Stage::Recording(recording) => {
                let is_steady = self.watch.has_period(recording.period()) && recording.note(asked, answer);
                if !is_steady {
                    self.watch.disappoint();
                    self.stage = Stage::Watching;
                } else if let Some(pass) = recording.take_pass() {
                    self.stage = Stage::Replaying(Box::new(Replaying::new(pass)));
                }
            }
            Stage::Replaying(_) => unreachable!("a task that was derived has ended the replay"),
        }
    }

    /// Notes a submission that cannot belong to a pass.
    fn interrupt(&mut self) {
        self.watch.interrupt();
        self.stage = Stage::Watching;
    }

    /// Whether the graph replays a pass that uses a buffer or an object.
    fn replays(&self, uses: impl Fn(&Pass) -> bool) -> bool {
        matches!(&self.stage, Stage::Replaying(replaying) if uses(replaying.pass()))
    }
}

impl TaskGraph {
    /// Finds the dependencies of the next task: from its step, if the graph replays, or else by derivation.
    #[inline]
    pub(super) fn replay_or_derive(
        &mut self,
        accesses: &[Access],
        effects: &[Effect],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        if self.replay.is_none() || (accesses.is_empty() && effects.is_empty()) {
            self.derive(accesses, effects, done, submitted)?;
            self.finish_edges(&mut submitted.dependencies);
            return Ok(());
        }
        let asked = Asked { accesses, effects, is_task: true };
        if self.replay_step(asked, done, submitted) {
            return Ok(());
        }
        let takes_versions = self.takes_versions(accesses);
        let records = !takes_versions && self.replay.as_ref().is_some_and(Replay::is_recording);
        let done: Done<'_> = if records { &|_| false } else { done };
        self.derive(accesses, effects, done, submitted)?;
        self.finish_edges(&mut submitted.dependencies);
        self.note_derived(asked, takes_versions, submitted);
        Ok(())
    }

    /// Checks the accesses of a task in pieces as a whole: not if the graph replays, because it has checked them in an earlier pass.
    pub(super) fn replay_or_check(
        &mut self,
        accesses: &[Access],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        let asked = Asked { accesses, effects: &[], is_task: false };
        if self.replay.is_some() && self.replay_step(asked, done, submitted) {
            return Ok(());
        }
        submitted.clear(self.last);
        self.check(accesses, submitted)?;
        if self.replay.is_some() {
            self.note_derived(asked, self.takes_versions(accesses), submitted);
        }
        Ok(())
    }

    /// Answers with the next step, if the graph replays and the submission is this step. Otherwise the replay ends.
    #[inline]
    fn replay_step(&mut self, asked: Asked<'_>, done: Done<'_>, submitted: &mut Submitted) -> bool {
        let Some(Replay { stage: Stage::Replaying(replaying), .. }) = &mut self.replay else { return false };
        let id = TaskId(self.last.0 + u64::from(asked.is_task));
        if !replaying.step(asked, id, submitted) {
            self.end_replay(done);
            return false;
        }
        self.last = id;
        if replaying.has_many_notes() {
            self.bring_up_to_date(done);
        }
        true
    }

    /// Whether one of the buffers may have several versions.
    fn takes_versions(&self, accesses: &[Access]) -> bool {
        self.renames && accesses.iter().any(|access| self.tracker(access.buffer).renames())
    }

    fn note_derived(&mut self, asked: Asked<'_>, takes_versions: bool, answer: &Submitted) {
        let Some(replay) = &mut self.replay else { return };
        match takes_versions {
            true => replay.interrupt(),
            false => replay.note(asked, answer),
        }
    }

    /// Ends what the graph records or replays, before something else looks at its trackers or changes them.
    pub(super) fn interrupt_replay(&mut self, done: Done<'_>) {
        self.end_replay(done);
        self.replay.iter_mut().for_each(Replay::interrupt);
    }

    /// Ends a replay of tasks that use the buffer.
    pub(super) fn end_replay_of_buffer(&mut self, buffer: BufferId) {
        if self.replay.as_ref().is_some_and(|replay| replay.replays(|pass| pass.uses_buffer(buffer))) {
            self.end_replay(&|_| false);
        }
    }

    /// Ends a replay of tasks that have effects on the object.
    pub(super) fn end_replay_of_object(&mut self, object: ObjectId) {
        if self.replay.as_ref().is_some_and(|replay| replay.replays(|pass| pass.uses_object(object))) {
            self.end_replay(&|_| false);
        }
    }

    /// If the graph replays: brings the trackers up to date, and derives the tasks of the pass that has begun.
    pub(super) fn end_replay(&mut self, done: Done<'_>) {
        if !self.replay.as_ref().is_some_and(|replay| replay.replays(|_| true)) {
            return;
        }
        self.bring_up_to_date(done);
        let Some(replay) = &mut self.replay else { return };
        let Stage::Replaying(replaying) = std::mem::take(&mut replay.stage) else { return };
        match replaying.was_worthwhile() {
            true => replay.watch.satisfy(),
            false => replay.watch.disappoint(),
        }
        let (last, mut answer) = (self.last, Submitted::default());
        for (accesses, effects, id) in replaying.begun() {
            self.last = TaskId(id.0 - 1);
            let derived = self.derive(accesses, effects, done, &mut answer);
            derived.expect("the graph has accepted this task in earlier passes");
        }
        self.last = last;
    }

    /// Brings the trackers up to date with the last pass that has ended.
    #[cold]
    fn bring_up_to_date(&mut self, done: Done<'_>) {
        let Some(Replay { stage: Stage::Replaying(replaying), .. }) = &mut self.replay else { return };
        let mut parts = 0;
        if let Some(repeated) = replaying.repeated() {
            for buffer in replaying.pass().buffers() {
                if let Some(tracker) = self.buffers.get_mut(buffer) {
                    tracker.repeat(&repeated, done);
                    parts += tracker.tracked();
                }
            }
            for object in replaying.pass().objects() {
                if let Some(tracker) = self.objects.get_mut(object) {
                    tracker.repeat(&repeated, done);
                    parts += tracker.tracked();
                }
            }
        }
        replaying.forget_repeated(parts);
    }
}
