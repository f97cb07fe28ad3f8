//! This node's end of the transport, and the transfers that are under way. All of it is under one lock.

use crate::error::NodeError;
use anabranch_wire::{Begun, Endpoint, Event, Ticket, WireError};
use rustc_hash::FxHashMap;
use std::{any::Any, sync::Arc};

/// A function that is called, outside the lock, when transfers are over, with what other nodes have said in place of data, or with the
/// reason why they will never be.
pub(crate) type Then = Box<dyn FnOnce(Result<Vec<Said>, Arc<NodeError>>) + Send>;

/// What a node says in place of data: a [note](Endpoint::send_note).
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
    events: Vec<Event>,
    begun: Vec<Begun>,
}

/// Transfers that one step has begun together.
struct Set {
    left: usize,
    over: Over,
}

/// Transfers that are over: what to call, and what they have read or written. Both are dropped outside the lock.
pub(super) struct Over {
    pub(super) then: Then,
    pub(super) memory: Arc<dyn Any + Send + Sync>,
    /// What was said in place of data so far.
    pub(super) said: Vec<Said>,
}

impl Over {
    pub(super) fn new(memory: Arc<dyn Any + Send + Sync>, then: Then) -> Self {
        Self { then, memory, said: Vec::new() }
    }

    /// Says that the transfers have ended.
    pub(super) fn end(self) {
        let Self { then, memory, said } = self;
        then(Ok(said));
        drop(memory);
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
            events: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Whether transfers are under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Begins transfers. Returns `over` if they are over already, and after an error with the reason, which is `None` if the run
    /// has ended.
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

    /// Makes progress. Returns whether anything has happened and what to call, and adds the messages that have arrived.
    pub(super) fn poll(&mut self, posts: &mut Vec<Post>) -> Result<(bool, Vec<Over>), WireError> {
        let mut over = Vec::new();
        let Some(endpoint) = &mut self.endpoint else { return Ok((false, over)) };
        let any = endpoint.poll(&mut self.events)?;
        for event in self.events.drain(..) {
            match event {
                Event::Post { from, message } => posts.push((from, message)),
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
                        over.extend(self.sets.remove(&number).map(|set| set.over));
                    }
                }
            }
        }
        Ok((any, over))
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
