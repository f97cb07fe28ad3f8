//! A network of nodes in one process, for tests and for users who try their program.
//!
//! Each node has memory of its own, as far as the program gives it such; what it sends is copied. Messages
//! can be late and overtake each other ([`Network::delays`]), and a node can fall silent
//! ([`Network::silence`], [`Network::lose`]). Delays follow from a seed: they are counted in polls of the
//! receiver and depend on the sender, the receiver and the number of the message, but not on the time. A
//! program whose nodes are polled in a fixed order runs the same way each time.
//!
//! ```
//! use anabranch_wire::{Event, Pace, WireError, local::Network};
//!
//! // Each node greets the next one.
//! let greeted = Network::new(3).seed(1).delays(4).run(|mut wire| {
//!     let place = wire.place();
//!     wire.post((place.node + 1) % place.nodes, b"hello")?;
//!     let (mut events, mut pace) = (Vec::new(), Pace::new());
//!     while events.is_empty() {
//!         pace.after(wire.poll(&mut events)?);
//!     }
//!     wire.finish()?;
//!     let Event::Post { from, .. } = events[0] else { unreachable!() };
//!     Ok::<_, WireError>(from)
//! });
//! assert_eq!(greeted, [Ok(2), Ok(0), Ok(1)]);
//! ```

use crate::{
    Endpoint, Layout, Memory, Options, Place, Transport, WireError,
    transport::{Arrival, Get},
};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};
use std::{
    hash::{Hash, Hasher},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// A network of nodes in this process.
pub struct Network {
    nodes: u16,
    weather: Weather,
    options: Options,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
struct Weather {
    seed: u64,
    delays: u64,
    /// The node that falls silent, and after how many messages and offers.
    lost: Option<(u16, u64)>,
}

struct Shared {
    mailboxes: Vec<Mailbox>,
}

#[derive(Default)]
struct Mailbox {
    /// Is looked at without the lock.
    count: AtomicUsize,
    packets: Mutex<Vec<Packet>>,
    silent: AtomicBool,
}

/// What goes from node to node.
struct Packet {
    from: u16,
    /// The place of the packet among those from this sender to this receiver.
    place: u64,
    contents: Contents,
}

enum Contents {
    Message(Vec<u8>),
    Offer { number: u32, offer: Offer },
    Taken { number: u32 },
}

/// Memory that its sender can withdraw. The lock is held while the receiver copies.
type Offer = Arc<Mutex<Option<Memory>>>;

impl Network {
    /// A network of this number of nodes, at least one. Everything arrives at once and in order.
    pub fn new(nodes: u16) -> Self {
        let nodes = nodes.max(1);
        let mailboxes = (0..nodes).map(|_| Mailbox::default()).collect();
        Self {
            nodes,
            weather: Weather { seed: 0, delays: 0, lost: None },
            options: Options::default(),
            shared: Arc::new(Shared { mailboxes }),
        }
    }

    /// What the delays follow from.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.weather.seed = seed;
        self
    }

    /// The longest delay of a message, in polls of its receiver. Messages with different delays overtake each
    /// other.
    #[must_use]
    pub fn delays(mut self, polls: u32) -> Self {
        self.weather.delays = polls.into();
        self
    }

    /// Lets a node fall [silent](Self::silence) when it has sent this number of messages and transfers.
    #[must_use]
    pub fn lose(mut self, node: u16, after: u64) -> Self {
        self.weather.lost = Some((node, after));
        self
    }

    /// The options of the endpoints.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The ends of all nodes, in order.
    ///
    /// # Panics
    /// If the ends of this network exist already.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        assert_eq!(Arc::strong_count(&self.shared), 1, "the ends of a network are made once");
        let end = |node| Local {
            place: Place { node, nodes: self.nodes },
            weather: self.weather,
            shared: Arc::clone(&self.shared),
            sent: vec![0; self.nodes.into()],
            polls: 0,
            late: Vec::new(),
            offers: FxHashMap::default(),
            offered: FxHashMap::default(),
            wanted: FxHashMap::default(),
            done: Vec::new(),
            spare: Vec::new(),
        };
        (0..self.nodes).map(|node| Endpoint::new(end(node), &self.options)).collect()
    }

    /// Runs a program on a thread for each node, and returns the results in the order of the nodes.
    ///
    /// # Panics
    /// If a node panics, after all nodes have ended.
    pub fn run<R: Send>(&self, program: impl Fn(Endpoint) -> R + Sync) -> Vec<R> {
        let program = &program;
        thread::scope(|scope| {
            let threads: Vec<_> =
                self.endpoints().into_iter().map(|end| scope.spawn(move || program(end))).collect();
            let results: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
            results
                .into_iter()
                .map(|result| result.unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
                .collect()
        })
    }

    /// From now on nothing reaches this node, and nothing that it sends reaches another: as if its process
    /// was stopped.
    pub fn silence(&self, node: u16) {
        self.shared.mailboxes[usize::from(node)].silent.store(true, Ordering::Release);
    }
}

/// One node's end of a local network.
struct Local {
    place: Place,
    weather: Weather,
    shared: Arc<Shared>,
    /// Packets sent to each node.
    sent: Vec<u64>,
    polls: u64,
    /// Packets that have arrived, and when they are reported.
    late: Vec<(u64, Packet)>,
    /// What this node offers to others.
    offers: FxHashMap<u32, Offer>,
    /// The puts of other nodes whose gets this node has not begun.
    offered: FxHashMap<(u16, u32), Offer>,
    /// The gets of this node whose puts other nodes have not begun.
    wanted: FxHashMap<(u16, u32), Get>,
    done: Vec<Arrival>,
    spare: Vec<Vec<u8>>,
}

impl Local {
    fn mailbox(&self, node: u16) -> &Mailbox {
        &self.shared.mailboxes[usize::from(node)]
    }

    fn deliver(&mut self, to: u16, contents: Contents) {
        let me = self.place.node;
        if self.weather.lost.is_some_and(|(node, after)| node == me && self.sent.iter().sum::<u64>() >= after)
        {
            self.mailbox(me).silent.store(true, Ordering::Release);
        }
        let place = &mut self.sent[usize::from(to)];
        *place += 1;
        let packet = Packet { from: self.place.node, place: *place, contents };
        if self.is_silent() || self.mailbox(to).silent.load(Ordering::Acquire) {
            return;
        }
        let mailbox = self.mailbox(to);
        let mut packets = mailbox.packets.lock();
        packets.push(packet);
        mailbox.count.store(packets.len(), Ordering::Release);
    }

    fn is_silent(&self) -> bool {
        self.mailbox(self.place.node).silent.load(Ordering::Acquire)
    }

    /// The poll in which a packet that has arrived is reported.
    fn due(&self, packet: &Packet) -> u64 {
        let Weather { seed, delays, .. } = self.weather;
        if delays == 0 {
            return self.polls;
        }
        let mut hasher = FxHasher::default();
        (seed, packet.from, self.place.node, packet.place).hash(&mut hasher);
        // The upper bits of this hash are the better ones.
        self.polls + (hasher.finish() >> 32) % (delays + 1)
    }

    fn report(&mut self, packet: Packet, arrivals: &mut Vec<Arrival>) {
        let from = packet.from;
        match packet.contents {
            Contents::Message(message) => arrivals.push(Arrival::Message(message)),
            Contents::Taken { number } => {
                self.offers.remove(&number);
                arrivals.push(Arrival::Put(number));
            }
            Contents::Offer { number, offer } => match self.wanted.remove(&(from, number)) {
                Some(get) => self.take(get, &offer),
                None => {
                    self.offered.insert((from, number), offer);
                }
            },
        }
    }

    fn take(&mut self, get: Get, offer: &Offer) {
        let Get { from, number, name, memory, layout } = get;
        {
            // The lock is held so that the sender's memory stays. Nothing but the copy runs under it.
            let offer = offer.lock();
            let Some(theirs) = &*offer else { return };
            memory.copy(theirs, &layout);
        }
        self.deliver(from, Contents::Taken { number });
        self.done.push(Arrival::Got(name));
    }
}

impl Transport for Local {
    fn place(&self) -> Place {
        self.place
    }

    fn message(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn recycle(&mut self, message: Vec<u8>) {
        if self.spare.len() < 64 {
            self.spare.push(message);
        }
    }

    fn send(&mut self, to: u16, message: Vec<u8>) -> Result<(), WireError> {
        self.deliver(to, Contents::Message(message));
        Ok(())
    }

    fn numbers(&self) -> u32 {
        u32::MAX
    }

    fn put(&mut self, to: u16, number: u32, memory: Memory, _: Layout) -> Result<(), WireError> {
        let offer = Arc::new(Mutex::new(Some(memory)));
        self.offers.insert(number, Arc::clone(&offer));
        self.deliver(to, Contents::Offer { number, offer });
        Ok(())
    }

    fn get(&mut self, get: Get) -> Result<(), WireError> {
        match self.offered.remove(&(get.from, get.number)) {
            Some(offer) => self.take(get, &offer),
            None => {
                self.wanted.insert((get.from, get.number), get);
            }
        }
        Ok(())
    }

    fn poll(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), WireError> {
        if self.is_silent() {
            return Ok(());
        }
        self.polls += 1;
        let mailbox = self.mailbox(self.place.node);
        if mailbox.count.load(Ordering::Acquire) > 0 {
            let packets = {
                let mut packets = mailbox.packets.lock();
                mailbox.count.store(0, Ordering::Release);
                mem::take(&mut *packets)
            };
            for packet in packets {
                self.late.push((self.due(&packet), packet));
            }
        }
        let polls = self.polls;
        for (due, packet) in mem::take(&mut self.late) {
            if due <= polls {
                self.report(packet, arrivals);
            } else {
                self.late.push((due, packet));
            }
        }
        arrivals.append(&mut self.done);
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn close(&mut self, _: Option<&WireError>) {
        for (_, offer) in self.offers.drain() {
            *offer.lock() = None;
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.close(None);
    }
}
