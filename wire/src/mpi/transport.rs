//! The network of an MPI program.
//!
//! Small messages have the tag 0. Receives for them are posted ahead, from any node; the oldest one is looked
//! at first, so that each of them is copied at most once and none is probed for. Transfers in place have tags
//! of their own, by number, and go as *synchronous* sends: they are over only when they have met their
//! receive, so that a tag is free then. Layouts with several rows have types of their own, which are kept for
//! the next transfer of the same shape.
//!
//! A process has one connection. An endpoint borrows it; the next endpoint of the process gets it when all
//! nodes have finished with the one before. Each message says for which of these it is, so that late ones are
//! dropped and early ones kept.

use super::{
    interface::{Comm, Handle},
    slot::{self, Idle, Slot},
};
use crate::{
    Layout, Memory, Pace, Place, Transport, WireError,
    mpi_ffi::{Failure, Flight, Library, Peer, Scratch, Shape, Vector, shape},
    transport::{Arrival, EPOCH, Get, MESSAGE},
};
use rustc_hash::FxHashMap;
use std::{
    collections::VecDeque,
    ffi::c_int,
    io::{self, Write as _},
    mem,
};

/// The number of receives that are posted ahead.
const AHEAD: usize = 16;
/// The number of MPI datatypes that are kept.
const VECTORS: usize = 64;
/// The number of messages whose memory is kept.
const SPARE: usize = 64;

/// The connection of this process to the others.
pub(super) struct Connection<H: Handle> {
    library: Library<H>,
    /// The name or path of the library.
    name: String,
    /// Whether MPI permits calls by several threads at the same time.
    is_multiple: bool,
    comm: Comm<H>,
    place: Place,
    largest_tag: c_int,
    /// Receives of small messages, the oldest first.
    ahead: VecDeque<Flight<H>>,
    vectors: FxHashMap<Shape, Vector<H>>,
    spare: Vec<Vec<u8>>,
    /// Which of the endpoints of this process has the connection, modulo 256.
    epoch: u8,
    /// Messages to the next endpoint.
    early: Vec<Vec<u8>>,
    /// Messages sent to each node, and received from all.
    sent: Vec<u64>,
    received: u64,
    scratch: Scratch<H>,
}

impl<H: Handle> Connection<H> {
    /// The connection by the library of this name, which was initialised with this level of threads.
    pub fn new(
        library: Library<H>,
        name: &str,
        level: c_int,
        nodes: impl FnOnce(usize) -> Result<u16, WireError>,
    ) -> Result<Self, WireError> {
        let fail = |failure| error(u16::MAX, failure);
        let comm = library.communicator().map_err(fail)?;
        let (rank, size) = library.place(comm).map_err(fail)?;
        let place = Place { node: rank as u16, nodes: nodes(size as usize)? };
        let largest_tag = library.largest_tag().map_err(fail)?;
        let mut connection = Self {
            is_multiple: library.is_multiple(level),
            library,
            name: name.to_owned(),
            comm,
            place,
            largest_tag,
            ahead: VecDeque::new(),
            vectors: FxHashMap::default(),
            spare: Vec::new(),
            epoch: 0,
            early: Vec::new(),
            sent: vec![0; place.nodes.into()],
            received: 0,
            scratch: Scratch::default(),
        };
        for _ in 0..AHEAD {
            connection.receive_ahead(vec![0; MESSAGE]).map_err(fail)?;
        }
        Ok(connection)
    }

    fn peer(&self, node: u16, tag: u32) -> Peer<H> {
        Peer { comm: self.comm, node: node.into(), tag: tag as c_int }
    }

    fn receive_ahead(&mut self, message: Vec<u8>) -> Result<(), Failure> {
        let from = Peer { comm: self.comm, node: self.library.any(), tag: 0 };
        self.ahead.push_back(self.library.receive(from, message)?);
        Ok(())
    }

    /// The type of a layout, unless its bytes lie side by side.
    fn vector(&mut self, layout: &Layout) -> Result<Option<Shape>, Failure> {
        if layout.is_contiguous() {
            return Ok(None);
        }
        let shape = shape(layout);
        if !self.vectors.contains_key(&shape) {
            if self.vectors.len() == VECTORS {
                for (_, vector) in self.vectors.drain() {
                    self.library.free(vector)?;
                }
            }
            let vector = self.library.vector(layout)?;
            self.vectors.insert(shape, vector);
        }
        Ok(Some(shape))
    }

    /// Receives what is still on the way, which has no meaning any more, and ends MPI.
    fn wind_up(&mut self) -> Result<(), Failure> {
        let expected: u64 = self.library.exchange(self.comm, &self.sent)?.iter().sum();
        let mut pace = Pace::new();
        while self.received < expected {
            let message = self.next_message()?;
            pace.after(message.is_some());
        }
        for mut receive in mem::take(&mut self.ahead) {
            self.library.cancel(&mut receive)?;
        }
        for (_, vector) in self.vectors.drain() {
            self.library.free(vector)?;
        }
        self.library.finalize()
    }

    /// The next message, if one has come.
    fn next_message(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let oldest = self.ahead.front_mut().expect("receives are posted");
        if !self.library.test(oldest)? {
            return Ok(None);
        }
        let message = self.ahead.pop_front().expect("it is there").into_message();
        self.received += 1;
        let spare = self.spare.pop().unwrap_or_else(|| vec![0; MESSAGE]);
        self.receive_ahead(spare)?;
        Ok(Some(message))
    }
}

impl<H: Handle> Idle for Connection<H> {
    fn check_threads(&self) -> Result<(), WireError> {
        if self.is_multiple {
            return Ok(());
        }
        Err(WireError::OneThreadAtATime { library: self.name.clone() })
    }

    fn open(mut self: Box<Self>) -> Box<dyn Transport> {
        self.epoch = self.epoch.wrapping_add(1);
        let early = mem::take(&mut self.early);
        let connection = Some(*self);
        Box::new(Mpi {
            connection,
            early,
            flights: Vec::new(),
            partial_polls: 0,
            sent: Vec::new(),
            duplicates: VecDeque::new(),
            communicators: Vec::new(),
        })
    }

    fn end(mut self: Box<Self>) {
        // The process ends: there is no place to report an error to.
        let _ = self.wind_up();
    }
}

fn error(node: u16, Failure(function, message): Failure) -> WireError {
    WireError::Mpi { function, node, message }
}

/// What a request belongs to.
enum Purpose {
    Message,
    Put(u32),
    Get(u64),
}

/// The most polls in a row that receive one message each. The next one receives all that there are, so that a
/// node keeps up with those that send to it.
const PARTIAL_POLLS: u32 = 4;

/// The connection while an endpoint has it.
struct Mpi<H: Handle> {
    /// Is there until `close`.
    connection: Option<Connection<H>>,
    early: Vec<Vec<u8>>,
    flights: Vec<(Purpose, Flight<H>)>,
    /// The polls since the last one that has received all messages that were there.
    partial_polls: u32,
    /// Memory of messages that have been sent.
    sent: Vec<Vec<u8>>,
    /// Communicators for the program that are being made, the oldest first, and those that are made.
    duplicates: VecDeque<Flight<H, Comm<H>>>,
    communicators: Vec<Comm<H>>,
}

/// A request is over.
fn report<H: Handle>(
    purpose: Purpose,
    flight: Flight<H>,
    sent: &mut Vec<Vec<u8>>,
    arrivals: &mut Vec<Arrival>,
) {
    match purpose {
        Purpose::Message if sent.len() < SPARE => sent.push(flight.into_message()),
        Purpose::Message => {}
        Purpose::Put(number) => arrivals.push(Arrival::Put(number)),
        Purpose::Get(name) => arrivals.push(Arrival::Got(name)),
    }
}

impl<H: Handle> Mpi<H> {
    fn connection(&mut self) -> &mut Connection<H> {
        self.connection.as_mut().expect("the transport is open")
    }

    /// Notes a request.
    fn begun(&mut self, purpose: Purpose, flight: Result<Flight<H>, Failure>) -> Result<(), Failure> {
        self.flights.push((purpose, flight?));
        Ok(())
    }

    fn poll_all(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), Failure> {
        arrivals.extend(self.early.drain(..).map(Arrival::Message));
        let connection = self.connection.as_mut().expect("the transport is open");
        while let Some(message) = connection.next_message()? {
            match message[EPOCH].wrapping_sub(connection.epoch) {
                0 => arrivals.push(Arrival::Message(message)),
                1..=127 => connection.early.push(message),
                _ => connection.spare.push(message),
            }
            // One message may be all that this node needs. Where processes share processors, another call of
            // MPI, which finds nothing, would offer the processor to another process.
            if self.partial_polls < PARTIAL_POLLS {
                self.partial_polls += 1;
                return Ok(());
            }
        }
        self.partial_polls = 0;
        if let Some(oldest) = self.duplicates.front_mut()
            && connection.library.test(oldest)?
        {
            let made = self.duplicates.pop_front().expect("it is there");
            let comm = connection.library.duplicated(made)?;
            self.communicators.push(comm);
            arrivals.push(Arrival::Communicator(connection.library.for_program(comm)));
        }
        if self.flights.is_empty() {
            return Ok(());
        }
        let over = connection.library.test_some(&mut self.flights, &mut connection.scratch)?;
        // From the last to the first, because each leaves its place to the last one.
        over.sort_unstable();
        for &place in over.iter().rev() {
            let (purpose, flight) = self.flights.swap_remove(place as usize);
            report(purpose, flight, &mut self.sent, arrivals);
        }
        Ok(())
    }

    /// Gives up what can be given up. The answer is whether a transfer in place is left.
    fn keeps_memory(&mut self, connection: &Connection<H>) -> bool {
        self.flights.iter_mut().any(|(purpose, flight)| match purpose {
            Purpose::Message => false,
            Purpose::Put(_) => true,
            Purpose::Get(_) => !connection.library.give_up(flight).unwrap_or(false),
        })
    }

    fn transfer(
        &mut self,
        layout: &Layout,
        begin: impl FnOnce(&Connection<H>, Option<&Vector<H>>) -> Result<Flight<H>, Failure>,
    ) -> Result<Flight<H>, Failure> {
        let connection = self.connection();
        let shape = connection.vector(layout)?;
        let vector = shape.and_then(|shape| connection.vectors.get(&shape));
        begin(connection, vector)
    }
}

impl<H: Handle> Transport for Mpi<H> {
    fn place(&self) -> Place {
        self.connection.as_ref().expect("the transport is open").place
    }

    fn message(&mut self) -> Vec<u8> {
        self.sent.pop().unwrap_or_default()
    }

    fn recycle(&mut self, message: Vec<u8>) {
        let spare = &mut self.connection().spare;
        if spare.len() < SPARE {
            spare.push(message);
        }
    }

    fn send(&mut self, to: u16, mut message: Vec<u8>) -> Result<(), WireError> {
        let connection = self.connection();
        message[EPOCH] = connection.epoch;
        connection.sent[usize::from(to)] += 1;
        let node = connection.place.node;
        let mut flight = connection
            .library
            .send(connection.peer(to, 0), message)
            .map_err(|failure| error(node, failure))?;
        // A small message is over at once, mostly.
        if connection.library.test(&mut flight).map_err(|failure| error(node, failure))? {
            report(Purpose::Message, flight, &mut self.sent, &mut Vec::new());
        } else {
            self.flights.push((Purpose::Message, flight));
        }
        Ok(())
    }

    fn numbers(&self) -> u32 {
        self.connection.as_ref().map_or(0, |connection| connection.largest_tag as u32)
    }

    fn put(&mut self, to: u16, number: u32, memory: Memory, layout: Layout) -> Result<(), WireError> {
        let node = self.place().node;
        let flight = self.transfer(&layout, |connection, vector| {
            connection.library.put(connection.peer(to, number + 1), &memory, &layout, vector)
        });
        self.begun(Purpose::Put(number), flight).map_err(|failure| error(node, failure))
    }

    fn get(&mut self, get: Get) -> Result<(), WireError> {
        let Get { from, number, name, memory, layout } = get;
        let node = self.place().node;
        let flight = self.transfer(&layout, |connection, vector| {
            connection.library.get(connection.peer(from, number + 1), &memory, &layout, vector)
        });
        self.begun(Purpose::Get(name), flight).map_err(|failure| error(node, failure))
    }

    fn make_communicator(&mut self) -> Result<bool, WireError> {
        let connection = self.connection();
        connection.check_threads()?;
        let (comm, node) = (connection.comm, connection.place.node);
        let begun = connection.library.duplicate(comm).map_err(|failure| error(node, failure))?;
        self.duplicates.push_back(begun);
        Ok(true)
    }

    fn poll(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), WireError> {
        let node = self.place().node;
        self.poll_all(arrivals).map_err(|failure| error(node, failure))
    }

    fn is_flushed(&self) -> bool {
        self.flights.iter().all(|(purpose, _)| matches!(purpose, Purpose::Get(_)))
    }

    fn close(&mut self, failure: Option<&WireError>) {
        let Some(connection) = self.connection.take() else { return };
        let Some(failure) = failure else {
            for comm in self.communicators.drain(..) {
                // What cannot be freed stays until the process ends.
                let _ = connection.library.free_communicator(comm);
            }
            return slot::put(Slot::Idle(Box::new(connection)));
        };
        if self.keeps_memory(&connection) {
            // The program is about to reuse memory that MPI still reads or writes: only the end of all
            // processes is safe. In one piece: `mpirun` mixes what several processes write.
            let message = format!("anabranch: {} ends all processes: {failure}\n", connection.place);
            // If this fails, the process still ends: standard error may be closed.
            let _ = io::stderr().write_all(message.as_bytes());
            connection.library.abort(connection.comm);
        }
        // MPI keeps what it has, and the process cannot connect again.
        mem::forget(connection);
        slot::put(Slot::Failed);
    }
}
