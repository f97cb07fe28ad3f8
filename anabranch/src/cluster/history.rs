//! The submissions of this node, and their comparison with those of its neighbours.
//!
//! The nodes are a tree: node `n` has the neighbours `(n - 1) / 2`, `2n + 1` and `2n + 2`. If two nodes
//! differ, then some two neighbours do. Submissions are kept until all neighbours have confirmed that theirs
//! are the same, or until all nodes have met: the name of a meeting has the hash of all submissions before
//! it.

use crate::{error::NodeError, label::TaskLabel};
use anabranch_graph::RollingHash;
use anabranch_wire::Place;
use smallvec::SmallVec;
use std::{collections::VecDeque, fmt};

/// The number of submissions that a node may be ahead of the last post of a neighbour.
pub(super) const AHEAD: u64 = 512;

/// A node posts its hashes after this number of submissions.
const POST: u64 = 64;

/// A submission: a task, one that was refused, or a call that all nodes make.
#[derive(Clone, Debug)]
pub(super) enum What {
    Task(TaskLabel),
    /// The reason.
    Refused(String),
    Call(&'static str),
}

impl From<TaskLabel> for What {
    fn from(label: TaskLabel) -> Self {
        Self::Task(label)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(label) => label.fmt(f),
            Self::Refused(why) => write!(f, "a call that was refused, because {why},"),
            Self::Call(call) => write!(f, "the call of {call}"),
        }
    }
}

/// The first submission that is not the same on this node and a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Divergence {
    /// This node and the neighbour.
    pub(super) nodes: [u16; 2],
    /// The number of the submission, from 1.
    pub(super) number: u64,
    /// The submission here.
    pub(super) here: String,
}

struct Neighbour {
    node: u16,
    /// The number of submissions that are the same here and there.
    same: u64,
    /// The hashes of its next submissions, which this node has not made yet.
    ahead: VecDeque<u64>,
}

impl Neighbour {
    /// Notes that the first submissions are the same here and there, up to this number.
    fn is_same_up_to(&mut self, number: u64) {
        let new = number.saturating_sub(self.same);
        self.ahead.drain(..self.ahead.len().min(new as usize));
        self.same += new;
    }
}

pub(super) struct History {
    node: u16,
    hash: RollingHash,
    /// The number of submissions.
    count: u64,
    /// The latest submissions, with the hash after each.
    recent: VecDeque<(u64, What)>,
    neighbours: SmallVec<[Neighbour; 3]>,
    /// The number of submissions that were posted.
    posted: u64,
}

impl History {
    pub(super) fn new(Place { node, nodes }: Place) -> Self {
        let parent = node.checked_sub(1).map(|above| u32::from(above) / 2);
        let children = [2 * u32::from(node) + 1, 2 * u32::from(node) + 2];
        let all = parent.into_iter().chain(children).filter(|&other| other < nodes.into());
        let neighbour = |other: u32| Neighbour { node: other as u16, same: 0, ahead: VecDeque::new() };
        Self {
            node,
            hash: RollingHash::default(),
            count: 0,
            recent: VecDeque::new(),
            neighbours: all.map(neighbour).collect(),
            posted: 0,
        }
    }

    /// Adds a submission, after which the whole program so far has this hash. Returns its number and a hash
    /// that includes the calls.
    pub(super) fn add(&mut self, hash: u64, what: What) -> Result<(u64, u64), Divergence> {
        self.hash.add(hash);
        self.hash.add(self.count);
        self.count += 1;
        let hash = self.hash.value();
        self.recent.push_back((hash, what));
        for at in 0..self.neighbours.len() {
            self.compare(at)?;
        }
        if self.neighbours.is_empty() {
            self.posted = self.count;
            self.forget();
        }
        Ok((self.count, hash))
    }

    /// Adds a call at which all nodes meet.
    pub(super) fn add_call(&mut self, call: &'static str) -> Result<(u64, u64), Divergence> {
        self.add(hash_of(call), What::Call(call))
    }

    /// Adds a submission that was refused for this reason. `kind` is the part of the reason that is the same
    /// on all nodes.
    pub(super) fn add_refused(&mut self, kind: &str, why: String) -> Result<(u64, u64), Divergence> {
        self.add(hash_of(kind), What::Refused(why))
    }

    /// Whether enough submissions were made for a post.
    pub(super) fn is_post_due(&self) -> bool {
        self.count - self.posted >= POST
    }

    /// Whether this node is far ahead of a neighbour, as far as it knows.
    pub(super) fn is_ahead(&self) -> bool {
        self.neighbours.iter().any(|other| self.count > other.same + other.ahead.len() as u64 + AHEAD)
    }

    /// The neighbours and the message to them, if there is anything new.
    pub(super) fn post(&mut self) -> Option<(SmallVec<[u16; 3]>, Vec<u8>)> {
        let new = (self.count - self.posted) as usize;
        if new == 0 || self.neighbours.is_empty() {
            return None;
        }
        let hashes = self.recent.range(self.recent.len() - new..).map(|(hash, _)| *hash);
        let words = std::iter::once(self.posted).chain(hashes);
        let post = words.flat_map(u64::to_le_bytes).collect();
        self.posted = self.count;
        self.forget();
        Some((self.neighbours.iter().map(|other| other.node).collect(), post))
    }

    /// Reads the message of a neighbour.
    pub(super) fn heard(&mut self, from: u16, post: &[u8]) -> Result<(), Divergence> {
        let Some(at) = self.neighbours.iter().position(|other| other.node == from) else { return Ok(()) };
        let (words, _) = post.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let Some(first) = words.next() else { return Ok(()) };
        let other = &mut self.neighbours[at];
        let known = other.same + other.ahead.len() as u64;
        if first > known {
            // Messages of one node come in order, so between the last one and this one the nodes have met.
            debug_assert!(first <= self.count, "this node has entered the meeting, too");
            other.is_same_up_to(first);
        }
        // A message from before a meeting may come after it.
        other.ahead.extend(words.skip(known.saturating_sub(first) as usize));
        self.compare(at)?;
        self.forget();
        Ok(())
    }

    /// Notes that all nodes have met: each has made this number of submissions, the same ones.
    pub(super) fn met(&mut self, number: u64) {
        self.neighbours.iter_mut().for_each(|other| other.is_same_up_to(number));
        self.posted = self.posted.max(number);
        self.forget();
    }

    /// Compares what this node and a neighbour have both submitted.
    fn compare(&mut self, at: usize) -> Result<(), Divergence> {
        let first = self.count - self.recent.len() as u64;
        let other = &mut self.neighbours[at];
        while other.same < self.count
            && let Some(theirs) = other.ahead.pop_front()
        {
            let (ours, what) = &self.recent[(other.same - first) as usize];
            if *ours != theirs {
                let (nodes, here) = ([self.node, other.node], what.to_string());
                return Err(Divergence { nodes, number: other.same + 1, here });
            }
            other.same += 1;
        }
        Ok(())
    }

    /// Forgets submissions that all neighbours have made and that were posted.
    fn forget(&mut self) {
        let same = self.neighbours.iter().map(|other| other.same).min().unwrap_or(self.count);
        let first = self.count - self.recent.len() as u64;
        let known = same.min(self.posted).saturating_sub(first);
        self.recent.drain(..known as usize);
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hash = RollingHash::default();
    text.bytes().for_each(|byte| hash.add(u64::from(byte)));
    hash.value()
}

impl From<Divergence> for NodeError {
    fn from(Divergence { nodes, number, here }: Divergence) -> Self {
        Self::Different { nodes, number, here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histories(nodes: u16) -> Vec<History> {
        (0..nodes).map(|node| History::new(Place { node, nodes })).collect()
    }

    /// Delivers all messages at once.
    fn exchange(all: &mut [History]) -> Result<(), Divergence> {
        for from in 0..all.len() {
            if let Some((to, post)) = all[from].post() {
                to.iter().try_for_each(|&to| all[usize::from(to)].heard(from as u16, &post))?;
            }
        }
        Ok(())
    }

    #[test]
    fn equal_programs_are_equal_whoever_is_ahead() {
        for nodes in [1, 2, 3, 4, 7, 16] {
            let mut all = histories(nodes);
            for round in 0..100_u64 {
                for (node, history) in all.iter_mut().enumerate() {
                    // Node n lags behind by n rounds.
                    if let Some(round) = round.checked_sub(node as u64) {
                        history.add(round, What::Call("one")).unwrap();
                        history.add_call("two").unwrap();
                    }
                }
                exchange(&mut all).unwrap();
            }
            assert!(all.iter().all(|history| history.recent.len() <= 4 * usize::from(nodes)), "{nodes}");
        }
    }

    #[test]
    fn the_first_different_submission_is_named() {
        for nodes in [2, 3, 4, 7] {
            for odd in 0..nodes {
                let mut all = histories(nodes);
                for submission in 1..=20_u64 {
                    for (node, history) in all.iter_mut().enumerate() {
                        let differs = node == usize::from(odd) && submission >= 13;
                        let call = if differs { "something else" } else { "the same" };
                        history.add_call(call).unwrap();
                    }
                }
                let divergence = exchange(&mut all).unwrap_err();
                assert_eq!(divergence.number, 13);
                assert!(divergence.nodes.contains(&odd));
            }
        }
    }

    #[test]
    fn after_a_meeting_only_later_submissions_are_posted() {
        for nodes in [2, 3, 4, 7] {
            let mut all = histories(nodes);
            let mut late = Vec::new();
            for round in 0..50_u64 {
                for (node, history) in all.iter_mut().enumerate() {
                    history.add(round, What::Call("one")).unwrap();
                    if round % 3 == node as u64 % 3 {
                        // On the way while the nodes meet.
                        late.extend(history.post().map(|(to, post)| (node as u16, to, post)));
                    }
                    history.add_call("a meeting").unwrap();
                }
                // Node 0 goes on first, and its next message overtakes the end of the meeting on the others.
                let number = all[0].count;
                all[0].met(number);
                assert!(all[0].post().is_none(), "a meeting is a comparison");
                for (from, to, post) in late.drain(..) {
                    to.iter().for_each(|&to| all[usize::from(to)].heard(from, &post).unwrap());
                }
                all[0].add(round, What::Call("two")).unwrap();
                let (to, post) = all[0].post().unwrap();
                to.iter().for_each(|&to| all[usize::from(to)].heard(0, &post).unwrap());
                for history in &mut all[1..] {
                    history.met(number);
                    history.add(round, What::Call("two")).unwrap();
                }
                exchange(&mut all).unwrap();
                assert!(all.iter().all(|history| history.recent.is_empty()), "{nodes} nodes");
            }
            // What comes after a meeting is still compared.
            all[0].add_call("something else").unwrap();
            for history in &mut all[1..] {
                history.add_call("the same").unwrap();
            }
            assert_eq!(exchange(&mut all).unwrap_err().number, all[0].count);
        }
    }

    #[test]
    fn a_node_far_ahead_waits() {
        let mut all = histories(2);
        for submission in 0..=AHEAD {
            assert!(!all[0].is_ahead());
            all[0].add(submission, What::Call("task")).unwrap();
        }
        assert!(all[0].is_ahead());
        all[1].add(0, What::Call("task")).unwrap();
        exchange(&mut all).unwrap();
        assert!(!all[0].is_ahead());
    }
}
