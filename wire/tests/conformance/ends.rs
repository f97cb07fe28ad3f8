//! How the communication ends when one node does not go on.

use super::node::{Block, Node};
use anabranch_wire::{Endpoint, Layout, Tag, WireError};

pub fn a_node_leaves(wire: Endpoint) {
    let mut node = Node::new(wire);
    if node.me() == 1 {
        return;
    }
    let block = Block::zeros(8);
    let _ = node.wire.expect(Tag::new(0, 0, 0), block.memory_mut(), 8).unwrap();
    assert_eq!(node.failure(), WireError::Left { node: 1, panicked: false });
    let error = node.wire.post(0, b"").unwrap_err();
    assert_eq!(error.to_string(), "node 1 left before the others had finished: its own output says why");
}

pub fn a_node_aborts(wire: Endpoint) {
    let mut node = Node::new(wire);
    if node.me() == 1 {
        return node.wire.abort("its reactor melted");
    }
    let error = node.failure();
    assert_eq!(error.to_string(), "node 1 gave up: its reactor melted");
    assert_eq!(node.wire.finish(), Err(error));
}

pub fn a_node_sends_too_much(wire: Endpoint) {
    let mut node = Node::new(wire);
    let tag = Tag::new(0, 0, 0);
    if node.me() == 1 {
        let block = Block::pattern(100, 0);
        let _ = node.wire.send(0, tag, block.memory(), &[Layout::contiguous(0, 100)]);
        let _ = node.wire.post(0, b"the program of node 1");
    }
    if node.me() == 0 {
        let (block, halves) = (Block::zeros(100), [0, 25].map(|at| vec![Layout::contiguous(at, 25)]));
        let _ = node.wire.expect_parts(tag, block.memory_mut(), &halves);
        // For a second, node 0 still receives posts.
        node.until("a post", |node| node.posts.pop_front().is_some());
        let WireError::Malformed { from: 1, what } = node.failure() else { panic!("another error") };
        assert!(what.ends_with("more bytes than were expected"), "{what}");
        assert!(node.parts.is_empty(), "no part is in place");
        block.check(&[], 0);
        return;
    }
    let WireError::Aborted { node: 0, why } = node.failure() else { panic!("another error") };
    assert!(why.contains("do all nodes run the same program?"), "{why}");
}

pub fn a_node_leaves_with_transfers_under_way(wire: Endpoint) {
    let mut node = Node::new(wire);
    let size = 1 << 20;
    let block = Block::pattern(size, 0);
    let tag = Tag::new(0, 0, 0);
    if node.me() == 1 {
        // Nobody expects it: the bytes stay here.
        let _ = node.wire.send(0, tag, block.memory(), &[Layout::contiguous(0, size)]).unwrap();
        return;
    }
    assert_eq!(node.failure(), WireError::Left { node: 1, panicked: false });
}
