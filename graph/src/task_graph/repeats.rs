//! What a graph does with submissions that repeat: it records and replays them. [`replay`](super::replay)
//! explains how.

use super::{
    graph::{Done, TaskGraph},
    replay::{Asked, Replay, Replaying},
};
use crate::task::{Access, BufferId, Effect, GraphError, ObjectId, Submitted, TaskId};

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
        if accesses.is_empty() && effects.is_empty() {
            self.add_free(submitted);
            return Ok(());
        }
        if self.replay.is_none() {
            self.derive(accesses, effects, done, submitted)?;
            self.finish_edges(&mut submitted.dependencies);
            return Ok(());
        }
        let asked = Asked { accesses, effects, is_task: true };
        if self.replay_step(asked, done, submitted) {
            return Ok(());
        }
        let takes_versions = self.takes_versions(accesses);
        self.expect(asked, takes_versions);
        let records = !takes_versions && self.replay.as_ref().is_some_and(Replay::is_recording);
        let done: Done<'_> = if records { &|_| false } else { done };
        self.derive(accesses, effects, done, submitted)?;
        self.finish_edges(&mut submitted.dependencies);
        self.note_derived(asked, takes_versions, submitted);
        Ok(())
    }

    /// Checks the accesses of a task in pieces as a whole: not if the graph replays, because it has checked
    /// them in an earlier pass.
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
        let takes_versions = self.takes_versions(accesses);
        self.expect(asked, takes_versions);
        self.note_derived(asked, takes_versions, submitted);
        Ok(())
    }

    /// Answers with the next step, if the graph replays and the submission is this step. Otherwise the replay
    /// ends.
    #[inline]
    fn replay_step(&mut self, asked: Asked<'_>, done: Done<'_>, submitted: &mut Submitted) -> bool {
        let Some(replaying) = self.replay.as_mut().and_then(Replay::replaying_mut) else { return false };
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

    /// Begins to record, if the submission continues what was replayed before.
    #[inline]
    fn expect(&mut self, asked: Asked<'_>, takes_versions: bool) {
        if let Some(replay) = &mut self.replay
            && !takes_versions
        {
            replay.expect(asked);
        }
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
        if self.replaying().is_some_and(|replaying| replaying.pass().uses_buffer(buffer)) {
            self.end_replay(&|_| false);
        }
    }

    /// Ends a replay of tasks that have effects on the object.
    pub(super) fn end_replay_of_object(&mut self, object: ObjectId) {
        if self.replaying().is_some_and(|replaying| replaying.pass().uses_object(object)) {
            self.end_replay(&|_| false);
        }
    }

    fn replaying(&self) -> Option<&Replaying> {
        self.replay.as_ref()?.replaying()
    }

    /// If the graph replays: brings the trackers up to date, and derives the tasks of the pass that has
    /// begun.
    pub(super) fn end_replay(&mut self, done: Done<'_>) {
        self.bring_up_to_date(done);
        let Some(replaying) = self.replay.as_mut().and_then(Replay::end) else { return };
        let (last, mut answer) = (self.last, Submitted::default());
        for (accesses, effects, id) in replaying.begun() {
            self.last = TaskId(id.0 - 1);
            let derived = self.derive(accesses, effects, done, &mut answer);
            derived.expect("the graph has accepted this task in earlier passes");
        }
        self.last = last;
        if let Some(replay) = &mut self.replay {
            replay.keep(*replaying);
        }
    }

    /// Brings the trackers up to date with the last pass that has ended.
    #[cold]
    fn bring_up_to_date(&mut self, done: Done<'_>) {
        let Some(replaying) = self.replay.as_mut().and_then(Replay::replaying_mut) else { return };
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
