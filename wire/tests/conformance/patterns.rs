//! Patterns of all nodes.

use super::node::{Block, Node, Random};
use anabranch_wire::{Begun, Endpoint, Layout, MemoryMut, Tag};

/// A block in which this node has its own part, and then all parts.
fn gather(node: &mut Node, tag: Tag, len: usize, parts: &[Vec<Layout>]) {
    let (block, mine) = own_part(node, len, parts);
    let begun = node.wire.gather(tag, block.memory_mut(), parts).unwrap();
    node.wait(begun);
    block.check(&parts.concat(), tag.task);
    drop(mine);
}

/// A block of zeros, but for the bytes of this node's part.
fn own_part(node: &mut Node, len: usize, parts: &[Vec<Layout>]) -> (Block, Block) {
    let me = node.me();
    let (block, source) = (Block::zeros(len), Block::pattern(len, parts_seed(parts)));
    // A transfer to oneself brings the part into place.
    let mine = &parts[usize::from(me)];
    let tag = Tag::new(u64::from(me), 77, 7);
    let sent = node.wire.send(me, tag, source.memory(), mine).unwrap();
    let bytes = mine.iter().map(Layout::bytes).sum();
    let got = node.wire.expect(tag, block.memory_mut(), bytes).unwrap();
    node.wait_all(&[sent, got]);
    (block, source)
}

fn parts_seed(parts: &[Vec<Layout>]) -> u64 {
    parts.len() as u64
}

pub fn gather_is_like_all_pairs(wire: Endpoint) {
    let mut node = Node::new(wire);
    let nodes = usize::from(node.nodes());
    let mut random = Random(9);
    for round in 0..4 {
        // Bands of rows of different heights, some empty; in some rounds without their first column.
        let heights: Vec<_> = (0..nodes).map(|_| random.below(4) * random.below(8)).collect();
        let (rows, width) = (heights.iter().sum::<usize>().max(1), 1 + random.below(300));
        let left = (round % 2) * (width > 1) as usize;
        let mut top = 0;
        let mut parts = Vec::new();
        for height in heights {
            let part = Layout::of_box([rows, width, 1], 8, [top, left, 0], [top + height, width, 1]);
            parts.push(if height == 0 { Vec::new() } else { vec![part] });
            top += height;
        }
        // The tag is the seed of the pattern, so that the parts of different rounds differ in their names
        // only.
        let len = rows * width * 8;
        let by_pattern = Tag::new(parts_seed(&parts), round as u64, 1);
        gather(&mut node, by_pattern, len, &parts);

        // The same by messages between all pairs.
        let (block, source) = own_part(&mut node, len, &parts);
        let tag = |to: u16| Tag::new(to.into(), 1_000 + round as u64, 2);
        let me = node.me();
        let bytes = node
            .others()
            .map(|other| parts[usize::from(other)].iter().map(Layout::bytes).sum::<usize>())
            .sum();
        let mut begun: Vec<Begun> = vec![node.wire.expect(tag(me), block.memory_mut(), bytes).unwrap()];
        for other in node.others() {
            begun.push(node.wire.send(other, tag(other), source.memory(), &parts[usize::from(me)]).unwrap());
        }
        node.wait_all(&begun);
        block.check(&parts.concat(), parts_seed(&parts));
    }
    node.finish();
}

pub fn gather_of_large_parts(wire: Endpoint) {
    let mut node = Node::new(wire);
    let nodes = usize::from(node.nodes());
    let size = 200_000;
    let parts: Vec<_> = (0..nodes).map(|n| vec![Layout::contiguous(n * size, size)]).collect();
    gather(&mut node, Tag::new(parts_seed(&parts), 0, 0), nodes * size, &parts);
    node.finish();
}

pub fn broadcast_from_several_roots(wire: Endpoint) {
    let mut node = Node::new(wire);
    for root in (0..node.nodes()).step_by(3) {
        for size in [0, 8, 40_000] {
            let tag = Tag::new(root.into(), size as u64, 0);
            let is_root = node.me() == root;
            let block = if is_root { Block::pattern(size, 4) } else { Block::zeros(size) };
            let layout = Layout::contiguous(0, size);
            let begun = node.wire.broadcast(root, tag, block.memory_mut(), &[layout]).unwrap();
            node.wait(begun);
            block.check(&[layout], 4);
        }
    }
    node.finish();
}

/// After each barrier every node has had the posts that the others sent before it.
pub fn barriers(wire: Endpoint) {
    let mut node = Node::new(wire);
    let others = node.others().count();
    for round in 0..8 {
        node.barrier(round);
        for other in node.others() {
            node.wire.post(other, &round.to_le_bytes()).unwrap();
        }
        node.until("the posts of this round", |node| node.posts.len() >= others);
        // No node can be in the next round before this one has been in it.
        assert!(node.posts.drain(..).all(|(_, message)| message == round.to_le_bytes()));
    }
    node.finish();
}

pub fn patterns_in_different_orders(wire: Endpoint) {
    let mut node = Node::new(wire);
    let parts = vec![Vec::new(); node.nodes().into()];
    let mut order: Vec<u64> = (0..16).collect();
    Random(node.me().into()).shuffle(&mut order);
    let begun: Vec<_> = order
        .into_iter()
        .map(|i| {
            if i % 2 == 0 {
                node.wire.gather(Tag::new(i, 0, 0), MemoryMut::empty(), &parts).unwrap()
            } else {
                let root = (i % u64::from(node.nodes())) as u16;
                node.wire.broadcast(root, Tag::new(i, 0, 0), MemoryMut::empty(), &[]).unwrap()
            }
        })
        .collect();
    node.wait_all(&begun);
    node.finish();
}
