//! Why tasks did not succeed: failures, cancellations, and the chains of tasks that need them.

use super::groups::Failed;

/// The maximum number of links of a chain of causes. Of a longer chain the runtime keeps the first links and
/// the root.
const CHAIN: u32 = 16;

/// How a task ended that did not succeed.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotDone {
    Failed,
    Cancelled,
    /// Its replays had begun.
    ReplaysCancelled,
    Skipped {
        needs: usize,
        links: u32,
    },
    /// Its device has failed.
    OnDevice,
    /// It needs a copy that a device has not made. `links` is the length of the chain of the copy.
    Copy {
        links: u32,
    },
}

/// How each step ended, if it did not succeed.
pub(super) struct Causes(Vec<Option<NotDone>>);

impl Causes {
    pub(super) fn new(steps: usize) -> Self {
        Self(vec![None; steps])
    }

    pub(super) fn set(&mut self, step: usize, not_done: Option<NotDone>) {
        self.0[step] = not_done;
    }

    /// How a step ends that needs the results of these steps, if one of them did not succeed: see
    /// [`age`](Self::age).
    pub(super) fn skipped(&self, needs: &[usize]) -> Option<NotDone> {
        self.oldest(needs).map(|needs| match self.0[needs] {
            Some(NotDone::Skipped { needs, links }) if links >= CHAIN => {
                NotDone::Skipped { needs, links: links + 1 }
            }
            Some(NotDone::Skipped { links, .. } | NotDone::Copy { links }) => {
                NotDone::Skipped { needs, links: links + 1 }
            }
            _ => NotDone::Skipped { needs, links: 1 },
        })
    }

    /// The step that counts, of these.
    pub(super) fn oldest(&self, needs: &[usize]) -> Option<usize> {
        needs.iter().copied().min_by_key(|&step| self.age(step))
    }

    /// The order in which causes take precedence: failures, then cancellations after a step had begun, then
    /// others; then the oldest root, then the oldest step.
    fn age(&self, step: usize) -> (bool, bool, usize, usize) {
        (self.is_cancelled(step), self.leaves_objects(step), self.root(step), step)
    }

    fn root(&self, mut step: usize) -> usize {
        while let Some(NotDone::Skipped { needs, .. }) = self.0[step] {
            step = needs;
        }
        step
    }

    /// Whether the root of the step's chain is a cancellation.
    pub(super) fn is_cancelled(&self, step: usize) -> bool {
        matches!(self.0[self.root(step)], Some(NotDone::Cancelled | NotDone::ReplaysCancelled))
    }

    /// Whether the step leaves its objects as they are: the root of its chain was cancelled before it began.
    pub(super) fn leaves_objects(&self, step: usize) -> bool {
        matches!(self.0[self.root(step)], Some(NotDone::Cancelled))
    }

    /// Whether the replays of the step were cancelled after they had begun.
    pub(super) fn has_begun(&self, step: usize) -> bool {
        matches!(self.0[step], Some(NotDone::ReplaysCancelled))
    }

    /// Whether the step succeeded.
    pub(super) fn is_done(&self, step: usize) -> bool {
        self.0[step].is_none()
    }

    /// Whether the step failed by itself.
    pub(super) fn has_failed(&self, step: usize) -> bool {
        matches!(self.0[step], Some(NotDone::Failed | NotDone::OnDevice))
    }

    /// Whether the device of the step has failed.
    pub(super) fn is_on_device(&self, step: usize) -> bool {
        matches!(self.0[step], Some(NotDone::OnDevice))
    }

    /// Whether the root of the step's chain is a copy.
    pub(super) fn is_by_copy(&self, step: usize) -> bool {
        matches!(self.0[self.root(step)], Some(NotDone::Copy { .. }))
    }

    /// The failure that the next wait reports because of this step, and whether the step was skipped: if the
    /// root is a failure.
    pub(super) fn reported(&self, step: usize) -> Option<(Failed, bool)> {
        let not_done = self.0[step]?;
        let root = self.root(step);
        let is_skipped = matches!(not_done, NotDone::Skipped { .. });
        self.has_failed(root).then_some((Failed { step: root, is_callback: false }, is_skipped))
    }

    /// The step, then the step that it needed, and so on.
    pub(super) fn chain(&self, step: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(step), |step| match self.0[*step] {
            Some(NotDone::Skipped { needs, .. }) => Some(needs),
            _ => None,
        })
    }
}
