//! Patterns of all nodes: how they begin, and what they send as they go on.

use super::{
    Endpoint, check_layouts, check_note,
    collective::Collective,
    notes::{self, Note},
    outbox::Parcel,
};
use crate::{
    Layout, MemoryMut, Tag, WireError,
    tag::{Begun, Key, Owner, Ticket},
};

impl Endpoint {
    /// Brings the parts of all nodes to every node: `parts[n]` are the layouts that node `n` has. All nodes
    /// call this with the same tag and the same parts.
    ///
    /// It takes few messages: with 256 nodes each one sends 8. Parts without bytes make it a barrier: it is
    /// done when all nodes have begun it. A sum over all nodes is a gather of partial results, which each
    /// node then combines in a fixed order: so all nodes get the same bits.
    ///
    /// # Errors
    /// An argument that is wrong is refused. Otherwise the communication has failed.
    ///
    /// # Panics
    /// If there are not as many parts as nodes.
    pub fn gather(&mut self, tag: Tag, memory: MemoryMut, parts: &[Vec<Layout>]) -> Result<Begun, WireError> {
        self.gather_with(tag, memory, parts, None)
    }

    /// Takes part in a [`gather`](Self::gather) with a note of at most [`NOTE`](crate::NOTE) bytes in place
    /// of this node's part. All other nodes get it as an [`Event::Note`](crate::Event::Note).
    ///
    /// # Errors
    /// See [`gather`](Self::gather).
    ///
    /// # Panics
    /// See [`gather`](Self::gather).
    pub fn gather_note(
        &mut self,
        tag: Tag,
        memory: MemoryMut,
        parts: &[Vec<Layout>],
        note: &[u8],
    ) -> Result<Begun, WireError> {
        check_note(note)?;
        self.gather_with(tag, memory, parts, Some(note))
    }

    fn gather_with(
        &mut self,
        tag: Tag,
        memory: MemoryMut,
        parts: &[Vec<Layout>],
        note: Option<&[u8]>,
    ) -> Result<Begun, WireError> {
        let place = self.place();
        assert_eq!(parts.len(), usize::from(place.nodes), "a gather has a part of every node");
        for layouts in parts {
            check_layouts(tag, layouts, |layout| memory.holds(layout))?;
        }
        let mut gather = Collective::gather(place, tag, memory, parts);
        if let Some(note) = note {
            let bytes = parts[usize::from(place.node)].iter().map(|layout| layout.bytes() as u64).sum();
            gather.notes.push(Note { node: place.node, bytes, text: note.to_vec() });
        }
        self.begin(gather)
    }

    /// Brings the bytes of the layouts from the node `root` to every node. All nodes call this with the same
    /// arguments.
    ///
    /// # Errors
    /// An argument that is wrong is refused. Otherwise the communication has failed.
    pub fn broadcast(
        &mut self,
        root: u16,
        tag: Tag,
        memory: MemoryMut,
        layouts: &[Layout],
    ) -> Result<Begun, WireError> {
        self.check_node(root)?;
        check_layouts(tag, layouts, |layout| memory.holds(layout))?;
        self.begin(Collective::broadcast(self.place(), root, tag, memory, layouts))
    }

    /// Takes part in a [`broadcast`](Self::broadcast) as its root, with a note of at most
    /// [`NOTE`](crate::NOTE) bytes in place of the bytes of the layouts. All other nodes get it as an
    /// [`Event::Note`](crate::Event::Note).
    ///
    /// # Errors
    /// See [`broadcast`](Self::broadcast).
    pub fn broadcast_note(
        &mut self,
        tag: Tag,
        memory: MemoryMut,
        layouts: &[Layout],
        note: &[u8],
    ) -> Result<Begun, WireError> {
        check_note(note)?;
        check_layouts(tag, layouts, |layout| memory.holds(layout))?;
        let place = self.place();
        let mut broadcast = Collective::broadcast(place, place.node, tag, memory, layouts);
        let bytes = layouts.iter().map(|layout| layout.bytes() as u64).sum();
        broadcast.notes.push(Note { node: place.node, bytes, text: note.to_vec() });
        self.begin(broadcast)
    }

    fn begin(&mut self, collective: Collective) -> Result<Begun, WireError> {
        self.check_open()?;
        if self.inbox.expects(&Key { tag: collective.tag, step: 1 }) {
            return Err(WireError::Repeated { tag: collective.tag });
        }
        let ticket = self.ticket();
        let over = self.begin_steps(ticket, collective).map_err(|error| self.fail(error))?;
        Ok(over.map_or(Begun::Later(ticket), |notes| self.begun_with(notes, ticket)))
    }

    /// Begins a collective pattern. The answer is the notes of the other nodes if it is over already.
    fn begin_steps(
        &mut self,
        ticket: Ticket,
        mut collective: Collective,
    ) -> Result<Option<Vec<Note>>, WireError> {
        for receive in std::mem::take(&mut collective.receives) {
            let key = Key { tag: collective.tag, step: receive.step };
            let owner = Owner::Step(ticket, receive.step);
            match self.inbox.expect(&mut self.link, key, receive.bytes, collective.memory, None, owner) {
                Ok(Some(notes)) => collective.arrived(receive.step, notes),
                Ok(None) => {}
                Err(error) => self.is_wrong(error)?,
            }
        }
        self.send_steps(ticket, &mut collective)?;
        if collective.unfinished == 0 {
            return Ok(Some(self.notes_of_others(collective)));
        }
        self.collectives.insert(ticket, collective);
        Ok(None)
    }

    /// What other nodes have given in place of their parts.
    pub(super) fn notes_of_others(&self, collective: Collective) -> Vec<Note> {
        let (me, mut notes) = (self.place().node, collective.notes);
        notes.retain(|note| note.node != me);
        notes
    }

    /// Sends what a collective pattern can send by now.
    pub(super) fn send_steps(
        &mut self,
        ticket: Ticket,
        collective: &mut Collective,
    ) -> Result<(), WireError> {
        while let Some((send, notes)) = collective.next_send() {
            let key = Key { tag: collective.tag, step: send.step };
            notes::send(&mut self.link, send.to, key, 1, &notes)?;
            let parcel = Parcel {
                to: send.to,
                key,
                tokens: send.count,
                memory: collective.memory.to_read(),
                owner: Owner::Sent(ticket),
            };
            // Without tokens there are no bytes either: only notes.
            if send.count == 0 || self.outbox.send(&mut self.link, parcel, &send.layouts)? {
                collective.unfinished -= 1;
            }
        }
        Ok(())
    }
}
