//! Submissions that repeat: their dependencies are recorded once, and replayed from then on.
//!
//! A program that iterates submits the same tasks in each iteration: the same accesses and effects, in the
//! same order. One round of them is a *pass*, and each task of a pass is a *step* of it. In a steady state a
//! task depends on the same steps in every pass: on those before it in its own pass, on the later ones of the
//! pass before, or on a task from before all passes. So a replayed task costs a comparison with its step
//! instead of a derivation.
//!
//! # The stages
//! 1. *Watching.* Tasks are derived as usual. [`Watch`] notes the key of each one and looks for a period
//!    among them. The first step of the pass that was replayed last is enough, too: often a program does
//!    something else for a moment and goes on.
//! 2. *Recording.* Three passes are derived as if no task were done. The first one makes sure that each part
//!    that a pass writes holds all tasks of the last pass that use it. The other two record their
//!    dependencies. If one of these is on a task of an earlier pass, the state is not steady, and the graph
//!    goes back to 1. This is so where dependencies grow from pass to pass, for example if tasks with
//!    exclusive effects are observed and no sequential effect follows; the third pass shows it at the latest.
//!    It also is so if a task waits for many tasks from before the passes: a derivation would soon find them
//!    done. At the end, dependencies are removed that only say what comes first and that a path of others
//!    implies ([`paths`]).
//! 3. *Replaying.* The graph compares each task with its step, and answers with the recorded dependencies.
//!    The trackers stay as they were after the last recorded pass; the graph only notes the ids of the tasks.
//!
//! The first task that is another one ends stage 3, and so does whatever else looks at the trackers or
//! changes them. The trackers are *brought up to date* then: an id of the last pass that they know becomes
//! that of the same step in the last replayed pass, and the tasks of a pass that has begun are derived. The
//! graph does this now and then while it replays, too, so that its notes stay few.
//!
//! # Why the answers are right
//! - A part of a buffer that a pass writes holds the ids of the last pass alone, because each write forgets
//!   the readers and writers before it. So the state after each pass is that after the pass before, with the
//!   ids of that pass.
//! - A part that no pass writes keeps its writer. Its readers add up; only a task that ends the replay can
//!   depend on them, and the trackers get the readers of all passes before it is derived, without those that
//!   are done. The readers of the last pass stay in any case: by them the trackers find those of later
//!   passes.
//! - The same holds of host objects, with sequential effects as writes, and exclusive and relaxed ones as
//!   readers.
//! - An answer may name a task that is done. The caller does not wait for such a task.
//! - A task that is missing in an answer comes before one that is named, by the recorded dependencies of the
//!   tasks between them: of those that were removed, too, others say the same. The third recorded pass had
//!   all of them. No failure is handed on along a removed edge, so nothing but the order would come of it.
//!
//! Tasks without accesses and effects depend on the last epoch alone. They belong to no pass, and interrupt
//! none. A task that uses a buffer with several versions is never replayed, because the version depends on
//! what is done. A graph with horizons or conflict edges does not replay either.

mod pass;
mod paths;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use pass::{Asked, Repeated, Replaying};

use crate::task::Submitted;
use pass::{Pass, Recording};
use watch::Watch;

/// The record of submissions that repeat.
#[derive(Debug, Default)]
pub(super) struct Replay {
    watch: Watch,
    stage: Stage,
    /// The last pass whose replay was worth its cost, unless it is being recorded.
    last: Option<Pass>,
    /// How often in sequence something else began like that pass.
    misses: u32,
}

/// The number of such misses after which the pass is forgotten.
const MISSES: u32 = 3;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Watching,
    Recording(Box<Recording>),
    Replaying(Box<Replaying>),
}

impl Replay {
    pub(super) fn is_recording(&self) -> bool {
        matches!(self.stage, Stage::Recording(_))
    }

    /// The pass that is replayed, if one is.
    #[inline]
    pub(super) fn replaying(&self) -> Option<&Replaying> {
        if let Stage::Replaying(replaying) = &self.stage { Some(replaying) } else { None }
    }

    #[inline]
    pub(super) fn replaying_mut(&mut self) -> Option<&mut Replaying> {
        if let Stage::Replaying(replaying) = &mut self.stage { Some(replaying) } else { None }
    }

    /// The number of steps and notes, as a measure of its memory.
    pub(super) fn tracked(&self) -> usize {
        self.replaying().map_or(0, Replaying::tracked) + self.last.as_ref().map_or(0, Pass::len)
    }

    /// Begins to record if the submission that is to be derived is the first step of the pass that was
    /// replayed last.
    #[inline]
    pub(super) fn expect(&mut self, asked: Asked<'_>) {
        if matches!(self.stage, Stage::Watching)
            && let Some(pass) = self.last.take_if(|pass| pass.begins_with(asked))
        {
            self.stage = Stage::Recording(Box::new(Recording::again(pass)));
        }
    }

    /// Notes a submission that was derived, with its answer, and goes on to the next stage if it is time.
    pub(super) fn note(&mut self, asked: Asked<'_>, answer: &Submitted) {
        let period = self.watch.note(asked);
        match &mut self.stage {
            Stage::Watching => {
                if let Some(period) = period {
                    self.stage = Stage::Recording(Box::new(Recording::new(period)));
                }
            }
            Stage::Recording(recording) => {
                let is_expected = recording.is_known() || self.watch.has_period(recording.period());
                if !(is_expected && recording.note(asked, answer)) {
                    self.give_up();
                } else if let Some(pass) = recording.take_pass() {
                    self.misses = 0;
                    self.stage = Stage::Replaying(Box::new(Replaying::new(pass)));
                }
            }
            Stage::Replaying(_) => unreachable!("a task that was derived has ended the replay"),
        }
    }

    /// Ends a recording of what turned out not to be steady. What only begins like the last pass is no reason
    /// to wait for longer the next time. But if that happens again and again, the pass is forgotten: its
    /// recordings keep the graph from finding another one.
    fn give_up(&mut self) {
        match self.stop_recording() {
            Some(pass) => {
                self.misses += 1;
                self.last = Some(pass).filter(|_| self.misses < MISSES);
            }
            None => self.watch.disappoint(),
        }
    }

    /// Goes back to watching. Returns the pass of a recording that has just begun, if it was replayed before.
    fn stop_recording(&mut self) -> Option<Pass> {
        match std::mem::take(&mut self.stage) {
            Stage::Recording(recording) => recording.into_known(),
            _ => None,
        }
    }

    /// Notes that what comes does not continue what was before.
    pub(super) fn interrupt(&mut self) {
        self.watch.interrupt();
        if let Some(pass) = self.stop_recording() {
            self.last = Some(pass);
        }
    }

    /// Ends the replay, if there is one. The caller [keeps](Self::keep) it in the end.
    pub(super) fn end(&mut self) -> Option<Box<Replaying>> {
        match std::mem::take(&mut self.stage) {
            Stage::Replaying(replaying) => Some(replaying),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Keeps the pass of a replay that has ended, if the replay was worth its cost.
    pub(super) fn keep(&mut self, ended: Replaying) {
        if ended.was_worthwhile() {
            self.watch.satisfy();
            (self.last, self.misses) = (Some(ended.into_pass()), 0);
        } else {
            self.watch.disappoint();
        }
    }
}
