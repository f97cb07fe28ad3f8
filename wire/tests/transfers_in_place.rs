//! What `poll` answers while a network moves a large transfer, of which it says nothing until the end.

use anabranch_wire::{
    Arrival, Begun, Endpoint, Get, Layout, Memory, MemoryMut, Options, Place, Tag, Transport, WireError,
};
use std::{
    mem,
    sync::{Arc, Mutex},
};

/// The messages to each of two nodes.
type Mail = Arc<[Mutex<Vec<Vec<u8>>>; 2]>;

/// A network of two nodes whose messages arrive at once and whose transfers in place never end.
struct Endless {
    node: u16,
    mail: Mail,
}

impl Transport for Endless {
    fn place(&self) -> Place {
        Place { node: self.node, nodes: 2 }
    }

    fn message(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn recycle(&mut self, _: Vec<u8>) {}

    fn send(&mut self, to: u16, message: Vec<u8>) -> Result<(), WireError> {
        self.mail[usize::from(to)].lock().unwrap().push(message);
        Ok(())
    }

    fn numbers(&self) -> u32 {
        32_000
    }

    fn put(&mut self, _: u16, _: u32, _: Memory, _: Layout) -> Result<(), WireError> {
        Ok(())
    }

    fn get(&mut self, _: Get) -> Result<(), WireError> {
        Ok(())
    }

    fn poll(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), WireError> {
        let messages = mem::take(&mut *self.mail[usize::from(self.node)].lock().unwrap());
        arrivals.extend(messages.into_iter().map(Arrival::Message));
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn close(&mut self, _: Option<&WireError>) {}
}

fn polls(wire: &mut Endpoint) -> [bool; 3] {
    let mut events = Vec::new();
    let polled = [(); 3].map(|()| wire.poll(&mut events).unwrap());
    assert_eq!(events, []);
    polled
}

#[test]
fn a_thread_does_not_rest_while_a_large_transfer_moves() {
    let _deadline = testing::deadline();
    let mail = Mail::default();
    let options = Options::new().timeout(None);
    let [mut from, mut to] =
        [0, 1].map(|node| Endpoint::new(Endless { node, mail: Arc::clone(&mail) }, &options));
    let (mine, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    // SAFETY: the memory is never read or written: this network moves nothing, and the endpoints only place
    // messages with data.
    let (memory, into) = unsafe {
        (Memory::new(mine.as_ptr(), mine.len()), MemoryMut::new(theirs.as_mut_ptr(), theirs.len()))
    };
    // The same MiB again and again: for these 1 GiB each, the threads do not rest for two seconds.
    let layouts = [Layout::strided(0, 1 << 20, [1024, 1], [0, 0]); 16];
    let tag = Tag::new(1, 2, 3);
    assert!(matches!(from.send(1, tag, memory, &layouts), Ok(Begun::Later(_))));
    assert_eq!(polls(&mut from), [false; 3], "nothing moves before the receiver takes it");
    assert_eq!(polls(&mut to), [true, false, false], "it has come early");
    assert!(matches!(to.expect(tag, into, 16 << 30), Ok(Begun::Later(_))));
    assert_eq!(polls(&mut to), [true; 3]);
    assert_eq!(polls(&mut from), [true; 3]);
}
