//! A node of a test: an endpoint, what it has reported, and memory.

use anabranch_wire::{
    Begun, Endpoint, Event, Layout, Memory, MemoryMut, MpiComm, Pace, Place, Tag, Ticket, WireError,
};
use std::{
    cell::UnsafeCell,
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

/// After how long a test that waits has failed.
const DEADLINE: Duration = Duration::from_secs(120);

pub struct Node {
    pub wire: Endpoint,
    done: HashSet<Ticket>,
    pub posts: VecDeque<(u16, Vec<u8>)>,
    /// The parts that are in place of what is not done.
    pub parts: HashSet<(Ticket, usize)>,
    /// The notes in place of what was begun, and who gave them.
    pub notes: Vec<(Ticket, u16, Vec<u8>)>,
    /// The communicators that were made.
    pub communicators: Vec<MpiComm>,
    events: Vec<Event>,
}

impl Node {
    pub fn new(wire: Endpoint) -> Self {
        Self {
            wire,
            done: HashSet::new(),
            posts: VecDeque::new(),
            parts: HashSet::new(),
            notes: Vec::new(),
            communicators: Vec::new(),
            events: Vec::new(),
        }
    }

    pub fn place(&self) -> Place {
        self.wire.place()
    }

    pub fn me(&self) -> u16 {
        self.place().node
    }

    pub fn nodes(&self) -> u16 {
        self.place().nodes
    }

    /// All nodes but this one.
    pub fn others(&self) -> impl Iterator<Item = u16> + use<> {
        let Place { node, nodes } = self.place();
        (0..nodes).filter(move |&other| other != node)
    }

    pub fn poll(&mut self) -> Result<bool, WireError> {
        let any = self.wire.poll(&mut self.events)?;
        for event in self.events.drain(..) {
            match event {
                Event::Done(ticket) => assert!(self.done.insert(ticket), "{ticket:?} is done twice"),
                Event::Part { ticket, part } => {
                    assert!(!self.done.contains(&ticket), "{ticket:?} is done before part {part}");
                    assert!(self.parts.insert((ticket, part)), "part {part} of {ticket:?} is in place twice");
                }
                Event::Note { ticket, node, note } => {
                    assert!(!self.done.contains(&ticket), "{ticket:?} is done before its note");
                    self.notes.push((ticket, node, note));
                }
                Event::Post { from, message } => self.posts.push_back((from, message)),
                Event::Communicator(comm) => self.communicators.push(comm),
            }
        }
        Ok(any)
    }

    /// Polls until the condition holds.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        self.try_until(what, |node| Ok(holds(node))).unwrap();
    }

    pub fn try_until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> Result<bool, WireError>,
    ) -> Result<(), WireError> {
        let (start, mut pace) = (Instant::now(), Pace::new());
        while !holds(self)? {
            assert!(start.elapsed() < DEADLINE, "{}: {what} has not come", self.place());
            pace.after(self.poll()?);
        }
        Ok(())
    }

    pub fn is_done(&self, begun: Begun) -> bool {
        match begun {
            Begun::Done => true,
            Begun::Later(ticket) => self.done.contains(&ticket),
        }
    }

    pub fn wait(&mut self, begun: Begun) {
        self.until("the end of a transfer", |node| node.is_done(begun));
    }

    pub fn wait_all(&mut self, all: &[Begun]) {
        for &begun in all {
            self.wait(begun);
        }
    }

    /// Waits, and returns the notes, by node.
    pub fn notes_of(&mut self, begun: Begun) -> Vec<(u16, Vec<u8>)> {
        self.wait(begun);
        let Begun::Later(ticket) = begun else { return Vec::new() };
        let notes = self.notes.extract_if(.., |(of, ..)| *of == ticket);
        let mut notes: Vec<_> = notes.map(|(_, node, note)| (node, note)).collect();
        notes.sort_unstable();
        notes
    }

    pub fn barrier(&mut self, number: u64) {
        let parts = vec![Vec::new(); self.nodes().into()];
        let begun = self.wire.gather(Tag::new(number, u64::MAX - 1, 0), MemoryMut::empty(), &parts).unwrap();
        self.wait(begun);
    }

    /// Polls until the communication has failed.
    pub fn failure(&mut self) -> WireError {
        let error = self.try_until("an error", |_| Ok(false)).unwrap_err();
        assert_eq!(self.poll(), Err(error.clone()), "an error stays");
        error
    }

    pub fn finish(self) {
        let place = self.place();
        assert!(self.posts.is_empty(), "{place} has posts left");
        assert!(self.parts.is_empty(), "{place} has parts left");
        assert!(self.notes.is_empty(), "{place} has notes left");
        self.wire.finish().unwrap_or_else(|error| panic!("{place}: {error}"));
    }
}

/// Memory that transfers use.
pub struct Block {
    bytes: UnsafeCell<Box<[u8]>>,
    first: usize,
}

impl Block {
    pub fn zeros(len: usize) -> Self {
        Self { bytes: UnsafeCell::new(vec![0; len].into()), first: 0 }
    }

    /// Bytes that depend on their offsets and on a seed.
    pub fn pattern(len: usize, seed: u64) -> Self {
        Self { bytes: UnsafeCell::new((0..len).map(|i| byte(i, seed)).collect()), first: 0 }
    }

    /// The window that begins at this byte.
    pub fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }

    pub fn memory(&self) -> Memory {
        // SAFETY: the tests keep the block until its transfers are done, and write it only before.
        unsafe {
            let bytes = &mut *self.bytes.get();
            Memory::new(bytes.as_ptr(), bytes.len()).at(self.first)
        }
    }

    pub fn memory_mut(&self) -> MemoryMut {
        // SAFETY: the tests keep the block until its transfers are done, and read it only afterwards.
        unsafe {
            let bytes = &mut *self.bytes.get();
            MemoryMut::new(bytes.as_mut_ptr(), bytes.len()).at(self.first)
        }
    }

    /// The bytes, after all transfers.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { &*self.bytes.get() }
    }

    /// Whether exactly the bytes of these layouts have come from a block of this pattern.
    pub fn check(&self, layouts: &[Layout], seed: u64) {
        let bytes = self.bytes();
        for (offset, len) in layouts.iter().flat_map(Layout::rows) {
            let first = offset - self.first;
            let wrong = (first..first + len).find(|&i| bytes[i] != byte(i, seed));
            assert_eq!(wrong, None, "a byte of {layouts:?} is wrong");
        }
        // No byte of a pattern is 0.
        let come = bytes.iter().filter(|&&byte| byte != 0).count();
        assert_eq!(
            come,
            layouts.iter().map(Layout::bytes).sum::<usize>(),
            "bytes outside of {layouts:?} have changed"
        );
    }
}

/// Never 0, which stands for a byte that has not come.
fn byte(i: usize, seed: u64) -> u8 {
    let mixed = (i ^ (i >> 8) ^ (i >> 16)) as u8;
    mixed.wrapping_mul(31).wrapping_add(seed as u8) | 1
}

/// Numbers that follow from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
