//! Notes in place of bytes.

use super::node::{Block, Node, Random};
use anabranch_wire::{Begun, Endpoint, Layout, MemoryMut, NOTE, Tag, WireError};

/// What a node says about a part.
fn note(node: u16, part: usize) -> Vec<u8> {
    format!("part {part} of node {node} does not come").into_bytes()
}

/// Every node awaits parts of all others under one tag. Some send them, small or large, and some give notes.
pub fn some_send_and_some_give_notes(wire: Endpoint) {
    const PARTS: usize = 3;
    let mut node = Node::new(wire);
    let (me, nodes) = (node.me(), usize::from(node.nodes()));
    for (round, size) in [1, 700, 40_000].into_iter().enumerate() {
        let gives_note = |node: u16, part: usize| (usize::from(node) + part + round).is_multiple_of(3);
        let layout =
            |node: u16, part: usize| Layout::contiguous((usize::from(node) * PARTS + part) * size, size);
        let len = nodes * PARTS * size;
        let (source, block) = (Block::pattern(len, 5), Block::zeros(len));
        let tag = |to: u16| Tag::new(round as u64, to.into(), 0);
        let bytes = node.others().count() * PARTS * size;
        let mut sends = Vec::new();
        let mut expected = None;
        // Some nodes hear of everything before they expect it.
        let mut order: Vec<_> = node.others().map(Some).chain([None]).collect();
        Random(u64::from(me) + round as u64).shuffle(&mut order);
        for to in order {
            let Some(to) = to else {
                expected = Some(node.wire.expect(tag(me), block.memory_mut(), bytes).unwrap());
                continue;
            };
            for part in 0..PARTS {
                if gives_note(me, part) {
                    node.wire.send_note(to, tag(to), size, &note(me, part)).unwrap();
                } else {
                    sends.push(node.wire.send(to, tag(to), source.memory(), &[layout(me, part)]).unwrap());
                }
            }
            node.poll().unwrap();
        }
        let all = node.others().flat_map(|other| (0..PARTS).map(move |part| (other, part)));
        let (absent, come): (Vec<_>, Vec<_>) = all.partition(|&(other, part)| gives_note(other, part));
        let mut notes: Vec<_> = absent.into_iter().map(|(other, part)| (other, note(other, part))).collect();
        notes.sort_unstable();
        assert_eq!(node.notes_of(expected.unwrap()), notes);
        let come: Vec<_> = come.into_iter().map(|(other, part)| layout(other, part)).collect();
        block.check(&come, 5);
        node.wait_all(&sends);
    }
    node.finish();
}

/// A note is reported, and does not complete anything by itself, also if all of it has come before it is
/// expected.
pub fn a_note_that_is_there_already_is_reported(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (me, block) = (node.me(), Block::zeros(8));
    for to in node.others() {
        node.wire.send_note(to, Tag::new(1, 0, me), 8, b"nothing").unwrap();
    }
    node.barrier(1);
    for from in node.others() {
        let begun = node.wire.expect(Tag::new(1, 0, from), block.memory_mut(), 8).unwrap();
        assert_eq!(node.notes_of(begun), [(from, b"nothing".to_vec())]);
    }
    block.check(&[], 0);
    node.finish();
}

/// In a gather, any set of nodes gives notes in place of their parts, which may be large or without bytes.
pub fn gather_with_notes(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (me, nodes) = (node.me(), node.nodes());
    for round in 0..6_usize {
        let gives_note = |node: u16| Random(u64::from(node) * 31 + round as u64).below(6) < round;
        let size = [0, 9, 30_000][round % 3];
        let parts: Vec<_> =
            (0..nodes).map(|n| vec![Layout::contiguous(usize::from(n) * size, size)]).collect();
        let len = usize::from(nodes) * size;
        let (source, block) = (Block::pattern(len, 3), Block::zeros(len));
        let tag = Tag::new(round as u64, 9, 9);
        let text = vec![me as u8; if round == 5 { NOTE } else { 100 }];
        let begun = if gives_note(me) {
            node.wire.gather_note(tag, block.memory_mut(), &parts, &text).unwrap()
        } else {
            let own = Tag { buffer: 10, ..tag };
            let sent = node.wire.send(me, own, source.memory(), &parts[usize::from(me)]).unwrap();
            let got = node.wire.expect(own, block.memory_mut(), size).unwrap();
            node.wait_all(&[sent, got]);
            node.wire.gather(tag, block.memory_mut(), &parts).unwrap()
        };
        let notes: Vec<_> =
            node.others().filter(|&n| gives_note(n)).map(|n| (n, vec![n as u8; text.len()])).collect();
        assert_eq!(node.notes_of(begun), notes);
        let come: Vec<_> =
            (0..nodes).filter(|&n| !gives_note(n)).flat_map(|n| parts[usize::from(n)].clone()).collect();
        block.check(&come, 3);
    }
    node.finish();
}

/// The root of a broadcast gives a note in place of its bytes, of which there may be many or none.
pub fn broadcast_with_notes(wire: Endpoint) {
    let mut node = Node::new(wire);
    for root in 0..node.nodes() {
        for size in [0, 9, 30_000] {
            let (tag, layout) = (Tag::new(root.into(), size as u64, 9), Layout::contiguous(0, size));
            let block = Block::zeros(size);
            let text = vec![root as u8; if size == 9 { NOTE } else { 100 }];
            if node.me() == root {
                let begun = node.wire.broadcast_note(tag, block.memory_mut(), &[layout], &text).unwrap();
                assert_eq!(node.notes_of(begun), []);
            } else {
                let begun = node.wire.broadcast(root, tag, block.memory_mut(), &[layout]).unwrap();
                assert_eq!(node.notes_of(begun), [(root, text)]);
            }
        }
    }
    node.finish();
}

pub fn wrong_notes_are_refused(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (nodes, long) = (node.nodes(), vec![0; NOTE + 1]);
    let too_long = WireError::LongNote { bytes: NOTE + 1, limit: NOTE };
    let tag = Tag::new(0, 0, 0);
    assert_eq!(node.wire.send_note(0, tag, 1, &long), Err(too_long.clone()));
    assert_eq!(node.wire.send_note(nodes, tag, 1, &[]), Err(WireError::NoSuchNode { node: nodes, nodes }));
    let parts = vec![Vec::new(); nodes.into()];
    assert_eq!(node.wire.gather_note(tag, MemoryMut::empty(), &parts, &long), Err(too_long.clone()));
    assert_eq!(node.wire.broadcast_note(tag, MemoryMut::empty(), &[], &long), Err(too_long));
    // A note in place of nothing says nothing.
    node.wire.send_note(0, tag, 0, b"nothing").unwrap();
    assert_eq!(node.wire.expect(tag, MemoryMut::empty(), 0), Ok(Begun::Done));
    node.finish();
}
