//! This node's end of the transport, and the transfers that are under way. All of it is under one lock.

use crate::error::NodeError;
use anabranch_par::discard_payload;
use anabranch_wire::{Begun, Endpoint, Event, MpiComm, Ticket, WireError};
use rustc_hash::FxHashMap;
use std::{
    any::Any,
    mem,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

/// A function that is called, outside the lock, when transfers are over, with the notes that other nodes have
/// sent in place of data, or with the reason why the transfers will never be over.
pub(crate) type Then = Box<dyn FnOnce(Result<Vec<Said>, Arc<NodeError>>) + Send>;

/// A function that is called, outside the lock, when a part of what is [expected](Endpoint::expect_parts) is
/// in place, with its number. It may still be called when the transfers are over.
pub(crate) type Each = Arc<dyn Fn(usize) + Send + Sync>;

/// What a node sends in place of data: a [note](Endpoint::send_note).
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) node: u16,
    pub(crate) note: Vec<u8>,
}

/// A message and its sender.
pub(super) type Post = (u16, Vec<u8>);

pub(super) struct Link {
    /// `None` when the run has ended.
    endpoint: Option<Endpoint>,
    /// The set that each transfer belongs to.
    transfers: FxHashMap<Ticket, u64>,
    sets: FxHashMap<u64, Set>,
    last_set: u64,
    /// A communicator that the transport has made.
    communicator: Option<MpiComm>,
    events: Vec<Event>,
    begun: Vec<Begun>,
}

/// Transfers that one step has begun together.
struct Set {
    left: usize,
    over: Over,
}

/// Transfers that are over: the callback, and the memory that they have read or written. Both are dropped
/// outside the lock.
pub(super) struct Over {
    pub(super) then: Then,
    pub(super) memory: Arc<dyn Any + Send + Sync>,
    /// The notes that have come in place of data so far.
    pub(super) said: Vec<Said>,
    /// The callback for each part; `None` if the step needs only the end of all.
    pub(super) each: Option<Each>,
}

/// What has ended: a part of what is expected, or all transfers of a step.
pub(super) enum Ended {
    Part(Each, usize),
    All(Over),
}

impl Ended {
    /// Calls the callback. The caller holds no lock.
    pub(super) fn end(self) {
        match self {
            Self::Part(each, part) => each(part),
            Self::All(over) => over.end(),
        }
    }
}

impl Over {
    pub(super) fn new(memory: Arc<dyn Any + Send + Sync>, then: Then) -> Self {
        Self { then, memory, said: Vec::new(), each: None }
    }

    /// Reports that the transfers have ended.
    pub(super) fn end(mut self) {
        let said = mem::take(&mut self.said);
        self.end_with(Ok(said));
    }

    /// Reports the result after it drops the memory: a thread that waits for the steps may then take back
    /// values that only the steps have held.
    pub(super) fn end_with(self, result: Result<Vec<Said>, Arc<NodeError>>) {
        let Self { then, memory, each, .. } = self;
        let_go((memory, each));
        then(result);
    }
}

/// Drops what steps have held. It may be the last holder of values of the program, whose destructors may
/// panic. Such a panic has printed its message, and ends nothing else.
pub(crate) fn let_go<T>(held: T) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(held))) {
        discard_payload(payload);
    }
}

/// What is left of a link that was closed. The endpoint goes first: until then the transfers use the memory.
pub(super) struct Unfinished(Vec<Set>);

impl Unfinished {
    /// The transfers.
    pub(super) fn sets(self) -> impl Iterator<Item = Over> {
        self.0.into_iter().map(|set| set.over)
    }
}

impl Link {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint: Some(endpoint),
            transfers: FxHashMap::default(),
            sets: FxHashMap::default(),
            last_set: 0,
            communicator: None,
            events: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Whether transfers are under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Begins transfers. Returns `over` if they are over already, and after an error with the reason, which
    /// is `None` if the run has ended.
    pub(super) fn begin(
        &mut self,
        over: Over,
        begin: impl FnOnce(&mut Endpoint, &mut Vec<Begun>) -> Result<(), WireError>,
    ) -> Result<Option<Over>, Box<(Over, Option<WireError>)>> {
        let Some(endpoint) = &mut self.endpoint else { return Err(Box::new((over, None))) };
        self.begun.clear();
        let outcome = begin(endpoint, &mut self.begun);
        let set = self.last_set + 1;
        let before = self.transfers.len();
        for begun in self.begun.drain(..) {
            if let Begun::Later(ticket) = begun {
                self.transfers.insert(ticket, set);
            }
        }
        let left = self.transfers.len() - before;
        if let Err(error) = outcome {
            // Those that were begun use the memory until the endpoint is gone. The caller sees to that.
            let rest = Over::new(Arc::clone(&over.memory), Box::new(|_| ()));
            self.sets.insert(set, Set { left: left + 1, over: rest });
            self.last_set = set;
            return Err(Box::new((over, Some(error))));
        }
        if left == 0 {
            return Ok(Some(over));
        }
        self.sets.insert(set, Set { left, over });
        self.last_set = set;
        Ok(None)
    }

    /// Makes progress. Returns whether anything has happened and what to call, and adds the messages that
    /// have arrived.
    pub(super) fn poll(&mut self, posts: &mut Vec<Post>) -> Result<(bool, Vec<Ended>), WireError> {
        let mut ended = Vec::new();
        let Some(endpoint) = &mut self.endpoint else { return Ok((false, ended)) };
        let any = endpoint.poll(&mut self.events)?;
        for event in self.events.drain(..) {
            match event {
                Event::Post { from, message } => posts.push((from, message)),
                Event::Communicator(made) => self.communicator = Some(made),
                Event::Part { ticket, part } => {
                    let number = self.transfers.get(&ticket).expect("a transfer that was begun");
                    let each = self.sets.get(number).and_then(|set| set.over.each.clone());
                    ended.extend(each.map(|each| Ended::Part(each, part)));
                }
                Event::Note { ticket, node, note } => {
                    let number = self.transfers.get(&ticket).expect("a transfer that was begun");
                    let set = self.sets.get_mut(number).expect("the set of a transfer");
                    set.over.said.push(Said { node, note });
                }
                Event::Done(ticket) => {
                    let number = self.transfers.remove(&ticket).expect("a transfer that was begun");
                    let set = self.sets.get_mut(&number).expect("the set of a transfer");
                    set.left -= 1;
                    if set.left == 0 {
                        ended.extend(self.sets.remove(&number).map(|set| Ended::All(set.over)));
                    }
                }
            }
        }
        Ok((any, ended))
    }

    /// Begins to make a communicator. Returns whether there will be one; `None` if the run has ended.
    pub(super) fn make_communicator(&mut self) -> Result<Option<bool>, WireError> {
        self.endpoint.as_mut().map(Endpoint::make_communicator).transpose()
    }

    /// Takes the communicator, when it is made.
    pub(super) fn communicator(&mut self) -> Option<MpiComm> {
        self.communicator.take()
    }

    /// Sends a message to several nodes.
    pub(super) fn post(&mut self, to: &[u16], message: &[u8]) -> Result<(), WireError> {
        let Some(endpoint) = &mut self.endpoint else { return Ok(()) };
        to.iter().try_for_each(|&node| endpoint.post(node, message))
    }

    /// Takes the endpoint, and what is unfinished, if it is there.
    pub(super) fn close(&mut self) -> Option<(Endpoint, Unfinished)> {
        let endpoint = self.endpoint.take()?;
        self.transfers.clear();
        Some((endpoint, Unfinished(self.sets.drain().map(|(_, set)| set).collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    fn steps_hold_nothing_any_more_when_their_transfers_have_ended() {
        let object = Arc::new(());
        for fails in [false, true] {
            let seen = Arc::new(Mutex::new(None));
            let then: Then = {
                let (object, seen) = (Arc::downgrade(&object), Arc::clone(&seen));
                Box::new(move |result| *seen.lock() = Some((object.strong_count(), result.is_err())))
            };
            let over = Over::new(Arc::new(Arc::clone(&object)), then);
            match fails {
                false => over.end(),
                true => over.end_with(Err(Arc::new(NodeError::Here { why: "a test".into() }))),
            }
            assert_eq!(*seen.lock(), Some((1, fails)));
        }
    }

    #[test]
    fn steps_end_although_a_destructor_of_the_program_panics() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("a destructor");
            }
        }
        let ended = Arc::new(Mutex::new(false));
        let then: Then = {
            let ended = Arc::clone(&ended);
            Box::new(move |_| *ended.lock() = true)
        };
        let over = Over::new(Arc::new(Panics), then);
        over.end();
        assert!(*ended.lock());
    }
}
