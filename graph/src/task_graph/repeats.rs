//! What a graph does with submissions that repeat: it memorises and recalls their dependencies.
//! [`memo`](super::memo) explains how.

use super::{
    graph::{Done, TaskGraph},
    memo::{Asked, Memo, Recalling},
};
use crate::task::{Access, BufferId, Effect, GraphError, ObjectId, Submitted, TaskId};

impl TaskGraph {
    /// Finds the dependencies of the next task: from its step, if the graph recalls it, or else by
    /// derivation.
    #[inline]
    pub(super) fn recall_or_derive(
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
        if self.memo.is_none() {
            self.derive(accesses, effects, done, submitted)?;
            self.finish_edges(&mut submitted.dependencies);
            return Ok(());
        }
        let asked = Asked { accesses, effects, is_task: true };
        if self.recall_step(asked, done, submitted) {
            return Ok(());
        }
        let takes_versions = self.takes_versions(accesses);
        self.expect(asked, takes_versions);
        let memorises = !takes_versions && self.memo.as_ref().is_some_and(Memo::is_memorising);
        let done: Done<'_> = if memorises { &|_| false } else { done };
        self.derive(accesses, effects, done, submitted)?;
        self.finish_edges(&mut submitted.dependencies);
        self.note_derived(asked, takes_versions, submitted);
        Ok(())
    }

    /// Checks the accesses of a task in pieces as a whole: not if the graph recalls them, because it has
    /// checked them in an earlier pass.
    pub(super) fn recall_or_check(
        &mut self,
        accesses: &[Access],
        done: Done<'_>,
        submitted: &mut Submitted,
    ) -> Result<(), GraphError> {
        let asked = Asked { accesses, effects: &[], is_task: false };
        if self.memo.is_some() && self.recall_step(asked, done, submitted) {
            return Ok(());
        }
        submitted.clear(self.last);
        self.check(accesses, submitted)?;
        let takes_versions = self.takes_versions(accesses);
        self.expect(asked, takes_versions);
        self.note_derived(asked, takes_versions, submitted);
        Ok(())
    }

    /// Answers with the next step, if the graph recalls a pass and the submission is this step. Otherwise the
    /// graph stops recalling.
    #[inline]
    fn recall_step(&mut self, asked: Asked<'_>, done: Done<'_>, submitted: &mut Submitted) -> bool {
        let Some(recalling) = self.memo.as_mut().and_then(Memo::recalling_mut) else { return false };
        let id = TaskId(self.last.0 + u64::from(asked.is_task));
        if !recalling.step(asked, id, submitted) {
            self.end_recall(done);
            return false;
        }
        self.last = id;
        if recalling.has_many_notes() {
            self.bring_up_to_date(done);
        }
        true
    }

    /// Whether one of the buffers may have several versions.
    fn takes_versions(&self, accesses: &[Access]) -> bool {
        self.renames && accesses.iter().any(|access| self.tracker(access.buffer).renames())
    }

    /// Begins to memorise, if the submission continues what was recalled before.
    #[inline]
    fn expect(&mut self, asked: Asked<'_>, takes_versions: bool) {
        if let Some(memo) = &mut self.memo
            && !takes_versions
        {
            memo.expect(asked);
        }
    }

    fn note_derived(&mut self, asked: Asked<'_>, takes_versions: bool, answer: &Submitted) {
        let Some(memo) = &mut self.memo else { return };
        match takes_versions {
            true => memo.interrupt(),
            false => memo.note(asked, answer),
        }
    }

    /// Ends what the graph memorises or recalls, before something else looks at its trackers or changes them.
    pub(super) fn interrupt_memo(&mut self, done: Done<'_>) {
        self.end_recall(done);
        self.memo.iter_mut().for_each(Memo::interrupt);
    }

    /// Stops recalling tasks that use the buffer.
    pub(super) fn end_recall_of_buffer(&mut self, buffer: BufferId) {
        if self.recalling().is_some_and(|recalling| recalling.pass().uses_buffer(buffer)) {
            self.end_recall(&|_| false);
        }
    }

    /// Stops recalling tasks that have effects on the object.
    pub(super) fn end_recall_of_object(&mut self, object: ObjectId) {
        if self.recalling().is_some_and(|recalling| recalling.pass().uses_object(object)) {
            self.end_recall(&|_| false);
        }
    }

    fn recalling(&self) -> Option<&Recalling> {
        self.memo.as_ref()?.recalling()
    }

    /// If the graph recalls a pass: brings the trackers up to date, and derives the tasks of the pass that
    /// has begun.
    pub(super) fn end_recall(&mut self, done: Done<'_>) {
        self.bring_up_to_date(done);
        let Some(recalling) = self.memo.as_mut().and_then(Memo::end) else { return };
        let (last, mut answer) = (self.last, Submitted::default());
        for (accesses, effects, id) in recalling.begun() {
            self.last = TaskId(id.0 - 1);
            let derived = self.derive(accesses, effects, done, &mut answer);
            derived.expect("the graph has accepted this task in earlier passes");
        }
        self.last = last;
        if let Some(memo) = &mut self.memo {
            memo.keep(*recalling);
        }
    }

    /// Brings the trackers up to date with the last pass that has ended.
    #[cold]
    fn bring_up_to_date(&mut self, done: Done<'_>) {
        let Some(recalling) = self.memo.as_mut().and_then(Memo::recalling_mut) else { return };
        let mut parts = 0;
        if let Some(repeated) = recalling.repeated() {
            for buffer in recalling.pass().buffers() {
                if let Some(tracker) = self.buffers.get_mut(buffer) {
                    tracker.repeat(&repeated, done);
                    parts += tracker.tracked();
                }
            }
            for object in recalling.pass().objects() {
                if let Some(tracker) = self.objects.get_mut(object) {
                    tracker.repeat(&repeated, done);
                    parts += tracker.tracked();
                }
            }
        }
        recalling.forget_repeated(parts);
    }
}
