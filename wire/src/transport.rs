//! What carries messages and boxes from node to node.
//!
//! A [`Transport`] is small on purpose. Everything that all networks have in common is in the
//! [`Endpoint`](crate::Endpoint): names of transfers, either side first, bounds on memory, order of posts,
//! collective patterns, liveness. So each network is tested by the same tests, and a local network with
//! delays tests what runs over MPI.

use crate::{Layout, Memory, MemoryMut, MpiComm, WireError};
use std::fmt;

/// Which node this is, and of how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The number of this node, from 0.
    pub node: u16,
    /// The number of nodes, at least 1.
    pub nodes: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}", self.node, self.nodes)
    }
}

/// What a transport has to report.
#[derive(Debug)]
pub enum Arrival {
    /// A message. Bytes that follow its contents have no meaning.
    Message(Vec<u8>),
    /// The [`put`](Transport::put) with this number is done: its memory is not used any more.
    Put(u32),
    /// The [`get`](Transport::get) with this name is done: its bytes are in place.
    Got(u64),
    /// A [communicator](Transport::make_communicator) is made.
    Communicator(MpiComm),
}

/// What [`Transport::get`] takes.
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// The node that puts.
    pub from: u16,
    /// The number of its put.
    pub number: u32,
    /// How this node names the transfer; each has another name.
    pub name: u64,
    /// Where the bytes go.
    pub memory: MemoryMut,
    /// The layout of the put.
    pub layout: Layout,
}

/// A network between nodes, as one of them sees it.
///
/// Messages and transfers reach their node exactly once, in any order. No call waits for another node.
pub trait Transport: Send {
    /// Which node this is.
    fn place(&self) -> Place;

    /// An empty message, possibly with the memory of an earlier one.
    fn message(&mut self) -> Vec<u8>;

    /// Takes back the memory of a message that has arrived.
    fn recycle(&mut self, message: Vec<u8>);

    /// Sends a message of at most [`MESSAGE`] bytes.
    ///
    /// # Errors
    /// If the network has failed.
    fn send(&mut self, to: u16, message: Vec<u8>) -> Result<(), WireError>;

    /// How many numbers there are for transfers from one node: they count from 0 to below this. At least
    /// 32,000.
    fn numbers(&self) -> u32;

    /// Offers bytes to the `get` of the node `to` that has the same number and the same layout.
    ///
    /// The node does not use a number again before [`Arrival::Put`], which must not come before the `get` has
    /// begun.
    ///
    /// # Errors
    /// If the network has failed.
    fn put(&mut self, to: u16, number: u32, memory: Memory, layout: Layout) -> Result<(), WireError>;

    /// Takes the bytes of the `put` of a node that has the same number.
    ///
    /// # Errors
    /// If the network has failed.
    fn get(&mut self, get: Get) -> Result<(), WireError>;

    /// Begins to make a communicator of all nodes for MPI calls of the program. Returns whether there will be
    /// one: `false` if the transport is not MPI. All nodes begin this in the same order.
    ///
    /// # Errors
    /// If the network has failed, or MPI does not permit calls by several threads at the same time.
    fn make_communicator(&mut self) -> Result<bool, WireError> {
        Ok(false)
    }

    /// Makes progress, and appends what there is to report.
    ///
    /// # Errors
    /// If the network has failed.
    fn poll(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), WireError>;

    /// Whether everything that was sent has left this node.
    fn is_flushed(&self) -> bool;

    /// The communication of this node is over: with success, or because something has failed. Afterwards no
    /// memory of transfers is used any more.
    fn close(&mut self, failure: Option<&WireError>);
}

/// The place in a message of a byte that belongs to the transport.
pub(crate) const EPOCH: usize = 3;

/// The largest message, in bytes.
pub const MESSAGE: usize = 17 * 1024;

/// The largest [`put`](Transport::put), in bytes.
pub const TRANSFER: usize = 1 << 30;
