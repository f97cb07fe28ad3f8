//! The queue of changes, and whose turn it is to apply them.

use super::{change::Change, nodes::Nodes, recording::Recording};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    mem,
    thread::{self, ThreadId},
};

/// Applies changes in the order in which they were queued, on one of the threads that queued them, and holds
/// no lock meanwhile.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Changes were applied, or the turn of a thread has ended.
    progress: Condvar,
}

struct State {
    changes: VecDeque<Change>,
    /// The number of changes that were queued.
    queued: u64,
    /// The number of changes that were applied.
    applied: u64,
    /// The thread whose turn it is.
    turn: Option<ThreadId>,
    /// The number of threads that wait for progress.
    waiting: usize,
    /// The command graphs, unless it is a thread's turn.
    nodes: Nodes,
}

/// The turn of a thread. If a change unwinds, the next thread goes on.
struct Turn<'q> {
    queue: &'q Queue,
    nodes: Nodes,
}

impl Queue {
    pub(super) fn new(nodes: u16) -> Self {
        let state = State {
            changes: VecDeque::new(),
            queued: 0,
            applied: 0,
            turn: None,
            waiting: 0,
            nodes: Nodes::new(nodes),
        };
        Self { state: Mutex::new(state), progress: Condvar::new() }
    }

    /// Queues a change.
    pub(super) fn push(&self, change: Change) {
        let mut state = self.state.lock();
        state.changes.push_back(change);
        state.queued += 1;
    }

    /// Applies the queued changes, unless it is a thread's turn: then that thread applies them, too.
    pub(super) fn apply(&self, recording: &Mutex<Recording>) {
        let Some(mut turn) = self.begin_turn() else { return };
        while let Some(change) = turn.next() {
            turn.nodes.apply(change, recording);
        }
    }

    /// Waits until at most `behind` of the changes are left that are queued now. Does not wait inside a
    /// mapper that it would wait for.
    pub(super) fn catch_up(&self, behind: u64, recording: &Mutex<Recording>) {
        let goal = self.state.lock().queued.saturating_sub(behind);
        loop {
            self.apply(recording);
            let mut state = self.state.lock();
            if state.applied >= goal || state.turn == Some(thread::current().id()) {
                return;
            }
            if state.turn.is_some() {
                state.waiting += 1;
                self.progress.wait(&mut state);
                state.waiting -= 1;
            }
        }
    }

    /// Whether the calling thread is applying changes, and runs a mapper.
    pub(super) fn is_my_turn(&self) -> bool {
        self.state.lock().turn == Some(thread::current().id())
    }

    fn begin_turn(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.turn.is_some() || state.changes.is_empty() {
            return None;
        }
        state.turn = Some(thread::current().id());
        let nodes = mem::replace(&mut state.nodes, Nodes::none());
        Some(Turn { queue: self, nodes })
    }
}

impl Turn<'_> {
    /// The next change. If there is none, the turn ends under the same lock: no change is left behind.
    fn next(&mut self) -> Option<Change> {
        let mut state = self.queue.state.lock();
        // All changes before this one were applied.
        state.applied = state.queued - state.changes.len() as u64;
        let change = state.changes.pop_front();
        if change.is_none() {
            state.end_turn(&mut self.nodes);
        }
        if state.waiting > 0 {
            self.queue.progress.notify_all();
        }
        change
    }
}

impl State {
    fn end_turn(&mut self, nodes: &mut Nodes) {
        self.turn = None;
        mem::swap(&mut self.nodes, nodes);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        // Not after the regular end, when another thread may have the turn already.
        if state.turn == Some(thread::current().id()) {
            state.end_turn(&mut self.nodes);
            self.queue.progress.notify_all();
        }
    }
}
