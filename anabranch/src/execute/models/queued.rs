//! Models of two tasks that go to one queue of a device.

use super::{NoBody, label, model};
use crate::{
    error::{Cause, Failure},
    execute::{
        core::Core,
        current_task::RuntimeId,
        task::{
            links::Completed,
            node::{Head, Node},
            place::Place,
            properties::{Needs, Properties},
            queued::Next,
        },
    },
};
use anabranch_graph::{MemoryId, TaskId};
use loom::{
    sync::atomic::{AtomicUsize, Ordering::*},
    thread,
};
use std::{ptr::NonNull, sync::Arc};

/// Two tasks of one queue. The device ends the first one badly and the second one well, in any order with the
/// threads that begin them.
#[derive(Clone)]
struct Queued {
    first: Node,
    second: Node,
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Queued {
    fn new() -> Self {
        let [first, second] = [1, 2].map(|id| {
            let (place, observes) = (Place::Inline, false);
            let queue = Some(MemoryId(1));
            let properties =
                Properties { label: label(), place, observes, group: None, contention: None, queue };
            let head =
                Head::new(TaskId(id), properties, NonNull::<Core>::dangling(), RuntimeId::new().unwrap());
            Node::new(|| head, || NoBody)
        });
        let (begun, ended) = Default::default();
        Self { first, second, begun, ended }
    }

    /// Begins a claimed task, and hands it over.
    fn begin(&self, node: &Node) {
        assert!(node.is_ready() && node.claim());
        node.defer_end();
        if node.id == self.second.id {
            self.begun.fetch_add(1, Release);
        }
        node.hand_over(|next| self.begin(&next));
        if node.body_has_returned() && node.work_has_ended() {
            self.end(node);
        }
    }

    /// The device has done what it got for the task.
    fn finish(&self, node: &Node) {
        if node.id == self.first.id {
            node.keep_outcome(Cause::Cancelled);
        }
        if node.completion_is_finished() && node.work_has_ended() {
            self.end(node);
        }
    }

    /// Ends a task as `Node::retire` does.
    fn end(&self, node: &Node) {
        assert_eq!(self.ended.fetch_add(1, AcqRel), usize::from(node.id == self.second.id));
        match node.take_outcome() {
            Some(cause) => node.fail(Arc::new(Failure::new(node.id, label(), cause))),
            None => assert!(node.is_poisoned(), "the failure of the first task is lost"),
        }
        let Completed { successors, poison, .. } = node.complete(|_| unreachable!());
        node.release_successors(successors, poison, |next| match next {
            Next::Ready(node) => self.skip(&node),
            Next::Ended(node) => self.end(&node),
        });
    }

    /// Skips the second task, which has the poison of the first one. That may be about to end only now, if it
    /// was handed over.
    fn skip(&self, node: &Node) {
        assert!(node.is_ready() && node.claim() && node.is_poisoned());
        self.begun.fetch_add(1, Release);
        if node.body_has_returned() && node.work_has_ended() {
            self.end(node);
        }
    }
}

/// A task is handed over while its work ends with an error. The task of the same queue that needs it ends
/// after it, once, with its poison.
#[test]
fn a_task_of_a_queue_begins_when_its_dependency_is_handed_over_and_ends_after_it() {
    model(|| {
        let tasks = Queued::new();
        assert!(tasks.first.wait_for_dependencies(0));
        assert!(tasks.first.add_successor(&tasks.second, Needs::Contents));
        assert!(!tasks.second.wait_for_dependencies(1));
        assert!(tasks.first.is_ready() && tasks.first.claim());
        tasks.first.defer_end();
        let device = {
            let tasks = tasks.clone();
            thread::spawn(move || tasks.finish(&tasks.first))
        };
        let begun = tasks.clone();
        tasks.first.hand_over(|next| begun.begin(&next));
        if tasks.first.body_has_returned() && tasks.first.work_has_ended() {
            tasks.end(&tasks.first);
        }
        // The device has the second task, behind the first one.
        tasks.finish(&tasks.second);
        device.join().unwrap();
        assert_eq!(tasks.ended.load(Acquire), 2);
    });
}

/// A task is submitted while the one that it needs, of the same queue, is handed over and ends with an error.
#[test]
fn a_task_of_a_queue_is_submitted_while_its_dependency_is_handed_over_and_ends() {
    model(|| {
        let tasks = Queued::new();
        assert!(tasks.first.wait_for_dependencies(0) && tasks.first.claim());
        tasks.first.defer_end();
        let [runner, device] = [true, false].map(|is_runner| {
            let tasks = tasks.clone();
            thread::spawn(move || match is_runner {
                true => {
                    tasks.first.hand_over(|next| tasks.begin(&next));
                    if tasks.first.body_has_returned() && tasks.first.work_has_ended() {
                        tasks.end(&tasks.first);
                    }
                }
                false => tasks.finish(&tasks.first),
            })
        });
        let waits = tasks.first.add_successor(&tasks.second, Needs::Contents);
        if tasks.second.wait_for_dependencies(u32::from(waits)) {
            match tasks.second.is_poisoned() {
                true => tasks.skip(&tasks.second),
                false => tasks.begin(&tasks.second),
            }
        }
        runner.join().unwrap();
        device.join().unwrap();
        if !tasks.second.is_done() {
            tasks.finish(&tasks.second);
        }
        assert_eq!((tasks.begun.load(Acquire), tasks.ended.load(Acquire)), (1, 2));
    });
}
