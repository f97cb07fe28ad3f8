//! The transport together with what every message to another node carries.

use super::{
    flow_control::FlowControl,
    header::{Header, Kind},
    transfers_in_place::TransfersInPlace,
};
use crate::{Layout, Place, Transport, WireError, tag::Key};
use std::time::Instant;

pub(super) struct Link {
    pub transport: Box<dyn Transport>,
    pub place: Place,
    pub flow_control: FlowControl,
    pub in_place: TransfersInPlace,
}

impl Link {
    pub fn new(transport: Box<dyn Transport>) -> Self {
        let place = transport.place();
        Self {
            transport,
            place,
            flow_control: FlowControl::new(place.nodes),
            in_place: TransfersInPlace::default(),
        }
    }

    /// Sends a message; `payload` appends its bytes, as many as the header says.
    pub fn send(
        &mut self,
        to: u16,
        mut header: Header,
        layouts: &[Layout],
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), WireError> {
        header.layouts = layouts.len() as u16;
        header.credit = self.flow_control.take(to);
        let mut message = self.transport.message();
        header.write(layouts, &mut message);
        payload(&mut message);
        debug_assert_eq!(message.len(), header.len());
        self.transport.send(to, message)
    }

    /// Sends a message that belongs to no transfer.
    pub fn control(&mut self, to: u16, kind: Kind, number: u32, payload: &[u8]) -> Result<(), WireError> {
        let header =
            Header { number, payload: payload.len() as u32, ..Header::control(kind, self.place.node) };
        self.send(to, header, &[], |message| message.extend_from_slice(payload))
    }

    /// Notes that a data message has been placed, and reports it to its sender from time to time.
    pub fn placed(&mut self, from: u16, bytes: usize) -> Result<(), WireError> {
        if self.flow_control.placed(from, bytes) { self.control(from, Kind::Credit, 0, &[]) } else { Ok(()) }
    }

    /// Notes that announced transfers move from now on, and reports it to their sender.
    pub fn taking(&mut self, from: u16, bytes: usize) -> Result<(), WireError> {
        self.in_place.begin(bytes as u64, Instant::now());
        self.control(from, Kind::Taking, 0, &(bytes as u64).to_le_bytes())
    }

    pub fn header(&self, kind: Kind, key: Key) -> Header {
        Header::new(kind, self.place.node, key)
    }

    /// A message from another node that this node cannot understand or place.
    pub fn malformed(from: u16, what: impl Into<String>) -> WireError {
        WireError::Malformed { from, what: what.into() }
    }
}
