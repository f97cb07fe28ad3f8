//! Memoization: submissions that repeat are recognised. Their dependencies are memorised once, and recalled
//! from then on.
//!
//! A program that iterates submits the same tasks in each iteration: the same accesses and effects, in the
//! same order. One round of them is a *pass*, and each task of a pass is a *step* of it. In a steady state a
//! task depends on the same steps in every pass: on those before it in its own pass, on the later ones of the
//! pass before, or on a task from before all passes. So a task whose dependencies are recalled costs a
//! comparison with its step instead of a derivation. (Replays of a sequence are something else: see
//! [`repeat`](crate::repeat).)
//!
//! # The stages
//! 1. *Watching.* Tasks are derived as usual. [`Watch`] notes the key of each one and looks for a period
//!    among them. The first step of the pass that was recalled last is enough, too: often a program does
//!    something else for a moment and goes on.
//! 2. *Memorising.* Three passes are derived as if no task were done. The first one makes sure that each part
//!    that a pass writes holds all tasks of the last pass that use it. The dependencies of the other two are
//!    memorised. If one of these is on a task of an earlier pass, the state is not steady, and the graph goes
//!    back to 1. This is so where dependencies grow from pass to pass, for example if tasks with exclusive
//!    effects are observed and no sequential effect follows; the third pass shows it at the latest. It also
//!    is so if a task waits for many tasks from before the passes: a derivation would soon find them done. At
//!    the end, dependencies are removed that only say what comes first and that a path of others implies
//!    ([`paths`]).
//! 3. *Recalling.* The graph compares each task with its step, and answers with the memorised dependencies.
//!    The trackers stay as they were after the last memorised pass; the graph only notes the ids of the
//!    tasks.
//!
//! The first task that is another one ends stage 3, and so does whatever else looks at the trackers or
//! changes them. The trackers are *brought up to date* then: an id of the last pass that they know becomes
//! that of the same step in the last recalled pass, and the tasks of a pass that has begun are derived. The
//! graph does this now and then while it recalls, too, so that its notes stay few.
//!
//! # Why the answers are right
//! - A part of a buffer that a pass writes holds the ids of the last pass alone, because each write forgets
//!   the readers and writers before it. So the state after each pass is that after the pass before, with the
//!   ids of that pass.
//! - A part that no pass writes keeps its writer. Its readers add up; only a task that ends stage 3 can
//!   depend on them, and the trackers get the readers of all passes before it is derived, without those that
//!   are done. The readers of the last pass stay in any case: by them the trackers find those of later
//!   passes.
//! - The same holds of host objects, with sequential effects as writes, and exclusive and relaxed ones as
//!   readers.
//! - An answer may name a task that is done. The caller does not wait for such a task.
//! - A task that is missing in an answer comes before one that is named, by the memorised dependencies of the
//!   tasks between them: of those that were removed, too, others say the same. The third memorised pass had
//!   all of them. No failure is handed on along a removed edge, so nothing but the order would come of it.
//!
//! Tasks without accesses and effects depend on the last epoch alone. They belong to no pass, and interrupt
//! none. The dependencies of a task that uses a buffer with several versions are never recalled, because the
//! version depends on what is done. A graph with horizons or conflict edges recalls nothing either.

mod pass;
mod paths;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use pass::{Asked, Recalling, Repeated};

use crate::task::Submitted;
use pass::{Memorising, Pass};
use watch::Watch;

/// The record of submissions that repeat.
#[derive(Debug, Default)]
pub(super) struct Memo {
    watch: Watch,
    stage: Stage,
    /// The last pass that was worth its cost, unless the graph memorises it again.
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
    Memorising(Box<Memorising>),
    Recalling(Box<Recalling>),
}

impl Memo {
    pub(super) fn is_memorising(&self) -> bool {
        matches!(self.stage, Stage::Memorising(_))
    }

    /// The pass that is recalled, if one is.
    #[inline]
    pub(super) fn recalling(&self) -> Option<&Recalling> {
        if let Stage::Recalling(recalling) = &self.stage { Some(recalling) } else { None }
    }

    #[inline]
    pub(super) fn recalling_mut(&mut self) -> Option<&mut Recalling> {
        if let Stage::Recalling(recalling) = &mut self.stage { Some(recalling) } else { None }
    }

    /// The number of steps and notes, as a measure of its memory.
    pub(super) fn tracked(&self) -> usize {
        self.recalling().map_or(0, Recalling::tracked) + self.last.as_ref().map_or(0, Pass::len)
    }

    /// Begins to memorise if the submission that is to be derived is the first step of the pass that was
    /// recalled last.
    #[inline]
    pub(super) fn expect(&mut self, asked: Asked<'_>) {
        if matches!(self.stage, Stage::Watching)
            && let Some(pass) = self.last.take_if(|pass| pass.begins_with(asked))
        {
            self.stage = Stage::Memorising(Box::new(Memorising::again(pass)));
        }
    }

    /// Notes a submission that was derived, with its answer, and goes on to the next stage if it is time.
    pub(super) fn note(&mut self, asked: Asked<'_>, answer: &Submitted) {
        let period = self.watch.note(asked);
        match &mut self.stage {
            Stage::Watching => {
                if let Some(period) = period {
                    self.stage = Stage::Memorising(Box::new(Memorising::new(period)));
                }
            }
            Stage::Memorising(memorising) => {
                let is_expected = memorising.is_known() || self.watch.has_period(memorising.period());
                if !(is_expected && memorising.note(asked, answer)) {
                    self.give_up();
                } else if let Some(pass) = memorising.take_pass() {
                    self.misses = 0;
                    self.stage = Stage::Recalling(Box::new(Recalling::new(pass)));
                }
            }
            Stage::Recalling(_) => unreachable!("a graph that derives a task has stopped recalling"),
        }
    }

    /// Stops memorising what turned out not to be steady. What only begins like the last pass is no reason
    /// to wait for longer the next time. But if that happens again and again, the pass is forgotten: its
    /// attempts keep the graph from finding another one.
    fn give_up(&mut self) {
        match self.stop_memorising() {
            Some(pass) => {
                self.misses += 1;
                self.last = Some(pass).filter(|_| self.misses < MISSES);
            }
            None => self.watch.disappoint(),
        }
    }

    /// Goes back to watching. Returns the pass that the graph has just begun to memorise, if it was recalled
    /// before.
    fn stop_memorising(&mut self) -> Option<Pass> {
        match std::mem::take(&mut self.stage) {
            Stage::Memorising(memorising) => memorising.into_known(),
            _ => None,
        }
    }

    /// Notes that what comes does not continue what was before.
    pub(super) fn interrupt(&mut self) {
        self.watch.interrupt();
        if let Some(pass) = self.stop_memorising() {
            self.last = Some(pass);
        }
    }

    /// Stops recalling, if the graph does. The caller [keeps](Self::keep) it in the end.
    pub(super) fn end(&mut self) -> Option<Box<Recalling>> {
        match std::mem::take(&mut self.stage) {
            Stage::Recalling(recalling) => Some(recalling),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Keeps a pass that is no longer recalled, if it was worth its cost.
    pub(super) fn keep(&mut self, ended: Recalling) {
        if ended.was_worthwhile() {
            self.watch.satisfy();
            (self.last, self.misses) = (Some(ended.into_pass()), 0);
        } else {
            self.watch.disappoint();
        }
    }
}
