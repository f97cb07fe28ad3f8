//! What the nodes of a run decide together while it goes on: whether to stop, how long a sweep may be, and
//! when a checkpoint is due.
//!
//! All nodes submit the same tasks, so none may decide by its own clock or its own signals. Now and then each
//! node *votes*: a task that runs after the sweeps submitted so far writes what the node knows into its row
//! of a small buffer, which all nodes then read. A decision is read one vote later than it is submitted. So
//! the submission does not wait for the sweeps that it has just submitted, and the nodes never wait for each
//! other.

use super::{
    interrupt::Interrupt,
    nodes::{RowsOfNodes, own_row},
    pace,
};
use crate::error::Error;
use anabranch::{Fence, prelude::*};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The time from one vote to the next. An interruption takes effect after at most three votes.
const INTERVAL: Duration = Duration::from_millis(60);

/// The numbers of a vote: whether to stop, whether a checkpoint is due, nanoseconds for each step.
const NUMBERS: usize = 3;

/// What all nodes have decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decision {
    /// No more sweeps: a node was interrupted, or has stopped for another reason.
    pub(super) stop: bool,
    /// The clock of node 0 says that it is time for a checkpoint.
    pub(super) checkpoint: bool,
    /// The time of a step on the slowest node.
    pub(super) seconds_per_step: f64,
}

impl Decision {
    /// The decision that follows from the votes of all nodes.
    fn of(votes: &[u64]) -> Self {
        let (votes, _) = votes.as_chunks::<NUMBERS>();
        let slowest = votes.iter().map(|vote| vote[2]).max().unwrap_or(0).max(1);
        Self {
            stop: votes.iter().any(|vote| vote[0] > 0),
            checkpoint: votes.first().is_some_and(|first| first[1] > 0),
            seconds_per_step: slowest as f64 / 1e9,
        }
    }
}

/// What one node votes for.
struct Voter {
    interrupt: Interrupt,
    /// Set when this node stops for another reason than an interruption.
    stop: Arc<AtomicBool>,
    /// The time between two checkpoints, if there are any by time.
    interval: Option<Duration>,
    /// Whether a checkpoint is under way.
    is_saving: Arc<AtomicBool>,
    saved: Instant,
    last: Instant,
}

impl Voter {
    /// The vote after this number of further steps.
    fn vote(&mut self, steps: u64) -> [u64; NUMBERS] {
        let now = Instant::now();
        let nanos = now.duration_since(self.last).as_nanos() as u64 / steps.max(1);
        self.last = now;
        let is_due = self.interval.is_some_and(|interval| now.duration_since(self.saved) >= interval)
            && !self.is_saving.load(Ordering::Relaxed);
        if is_due {
            self.saved = now;
            self.is_saving.store(true, Ordering::Relaxed);
        }
        let stops = self.interrupt.requested() || self.stop.load(Ordering::Relaxed);
        [u64::from(stops), u64::from(is_due), nanos]
    }
}

/// The votes of a run.
pub(super) struct Votes {
    voter: HostObject<Voter>,
    /// The votes of all nodes: those of one vote, and those of the next.
    buffers: [Buffer<u64, 2>; 2],
    /// The vote whose decision is not known yet.
    open: Option<Fence<Snapshot<u64, 2>>>,
    /// Steps submitted since the last vote.
    steps: u64,
    /// Steps from one vote to the next.
    interval: u64,
    decided: Decision,
}

impl Votes {
    /// The votes of a run. `interval` is the time between two checkpoints.
    pub(super) fn new(
        rt: &Runtime,
        seconds_per_step: f64,
        interrupt: &Interrupt,
        stop: &Arc<AtomicBool>,
        interval: Option<Duration>,
        is_saving: &Arc<AtomicBool>,
    ) -> Self {
        let now = Instant::now();
        let voter = Voter {
            interrupt: interrupt.clone(),
            stop: Arc::clone(stop),
            interval,
            is_saving: Arc::clone(is_saving),
            saved: now,
            last: now,
        };
        Self {
            voter: rt.host_object(voter),
            buffers: [1, 2].map(|i| rt.buffer([rt.nodes().into(), NUMBERS]).named(format!("votes {i}"))),
            open: None,
            steps: 0,
            interval: 1,
            decided: Decision { stop: false, checkpoint: false, seconds_per_step },
        }
    }

    /// What was decided last. All nodes have the same decision at the same point of the program.
    pub(super) fn decided(&self) -> Decision {
        self.decided
    }

    /// The number of steps of the next sweep: at most `most`, of `left` to the next frame.
    pub(super) fn next_steps(&self, left: u64, most: u64) -> u64 {
        pace::steps(left, most, self.decided.seconds_per_step)
    }

    /// Counts submitted steps. Returns whether the nodes should vote now.
    pub(super) fn submit(&mut self, steps: u64) -> bool {
        self.steps += steps;
        self.steps >= self.interval
    }

    /// Submits a vote that follows the state `after` in these rows of each node, and waits for the vote
    /// before it.
    ///
    /// # Errors
    /// When the run has failed.
    pub(super) fn hold(
        &mut self,
        rt: &Runtime,
        after: &Buffer<f32, 2>,
        rows: RowsOfNodes,
    ) -> Result<(), Error> {
        self.buffers.swap(0, 1);
        let (votes, steps) = (&self.buffers[0], std::mem::take(&mut self.steps));
        rt.task("vote")
            .collective()
            .read(after, rows)
            .write(votes, own_row)
            .effect(&self.voter, sequential())
            .host(move |_, (_, votes, voter)| {
                let vote = voter.vote(steps);
                votes.fill_with(|[_, i]| vote[i]);
            })?;
        let before = self.open.replace(rt.fence(votes)?);
        if let Some(before) = before {
            self.decided = Decision::of(before.wait()?.as_slice());
            // Not much longer than the interval before, so that a measurement that is far too short does no
            // harm.
            let most = (INTERVAL.as_secs_f64() / self.decided.seconds_per_step) as u64;
            self.interval = most.min(4 * self.interval).max(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_stops_all_node_0_saves_and_the_slowest_sets_the_pace() {
        let decision = Decision::of(&[0, 0, 7, 1, 1, 9_000]);
        assert_eq!(decision, Decision { stop: true, checkpoint: false, seconds_per_step: 9e-6 });
        let decision = Decision::of(&[0, 1, 7, 0, 0, 0]);
        assert_eq!(decision, Decision { stop: false, checkpoint: true, seconds_per_step: 7e-9 });
        assert_eq!(Decision::of(&[0; 3]).seconds_per_step, 1e-9);
    }
}
