//! Transfers of boxes.

use super::node::{Block, Node, Random};
use anabranch_wire::{Begun, Endpoint, Layout, POST, Tag, WireError};

/// A transfer that both sides derive from the same seed.
struct Transfer {
    tag: Tag,
    from: u16,
    to: u16,
    len: usize,
    layouts: Vec<Layout>,
}

fn seed_of(tag: Tag) -> u64 {
    tag.task * 7 + u64::from(tag.kind)
}

/// Begins this node's sides of the transfers in an order of its own, waits, and checks what has come.
fn run(node: &mut Node, transfers: &[Transfer]) {
    let me = node.me();
    let mut sides: Vec<_> = (0..transfers.len()).flat_map(|i| [(i, true), (i, false)]).collect();
    Random(u64::from(me) + 1).shuffle(&mut sides);
    let mut blocks = Vec::new();
    let mut begun = Vec::new();
    for (i, sends) in sides {
        let Transfer { tag, from, to, len, layouts } = &transfers[i];
        if sends && *from == me {
            let block = Block::pattern(*len, seed_of(*tag));
            begun.push(node.wire.send(*to, *tag, block.memory(), layouts).unwrap());
            blocks.push((block, None));
        } else if !sends && *to == me {
            let block = Block::zeros(*len);
            let bytes = layouts.iter().map(Layout::bytes).sum();
            begun.push(node.wire.expect(*tag, block.memory_mut(), bytes).unwrap());
            blocks.push((block, Some(i)));
        }
        if i % 16 == 0 {
            node.poll().unwrap();
        }
    }
    node.wait_all(&begun);
    for (block, transfer) in &blocks {
        if let Some(i) = transfer {
            block.check(&transfers[*i].layouts, seed_of(transfers[*i].tag));
        }
    }
}

/// Every pair of different nodes; a node alone has none.
fn pairs(nodes: u16) -> impl Iterator<Item = (u16, u16)> {
    (0..nodes).flat_map(move |from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

pub fn boxes_of_all_dimensions(wire: Endpoint) {
    let mut node = Node::new(wire);
    let mut random = Random(5);
    let mut transfers = Vec::new();
    for (from, to) in pairs(node.nodes()) {
        for i in 0..8_u64 {
            let dimensions = i % 4;
            let element = [1, 4, 8, 16][random.below(4)];
            let mut extent = [1; 3];
            for size in extent.iter_mut().take(dimensions as usize) {
                *size = 1 + random.below(if i < 4 { 12 } else { 50 });
            }
            let (mut min, mut max) = ([0; 3], [1; 3]);
            for d in 0..3 {
                let (a, b) = (random.below(extent[d] + 1), random.below(extent[d] + 1));
                // Some boxes are empty.
                (min[d], max[d]) = if dimensions == 0 { (0, 1) } else { (a.min(b), a.max(b)) };
            }
            let layout = Layout::of_box(extent, element, min, max);
            transfers.push(Transfer {
                tag: Tag::new(i, from.into(), 3),
                from,
                to,
                len: extent.iter().product::<usize>() * element,
                layouts: vec![layout],
            });
        }
    }
    run(&mut node, &transfers);
    node.finish();
}

pub fn sizes_around_every_limit(wire: Endpoint) {
    let mut node = Node::new(wire);
    let mib = 1 << 20;
    let mut sizes = vec![0, 1, 8, 4_095, 16_383, 16_384, 16_385, 100_000, mib];
    if node.nodes() == 2 {
        sizes.push(20 * mib);
    }
    // To the next node only: the large ones take memory.
    let mut transfers = Vec::new();
    for (from, to) in pairs(node.nodes()).filter(|(from, to)| (from + 1) % node.nodes() == *to) {
        for (i, &size) in sizes.iter().enumerate() {
            let tag = Tag::new(i as u64, from.into(), 0);
            transfers.push(Transfer { tag, from, to, len: size, layouts: vec![Layout::contiguous(0, size)] });
            // Every second row of columns: short rows are packed, long ones are not.
            let row = [4, 200, 2_000][i % 3];
            let rows = size / row;
            transfers.push(Transfer {
                tag: Tag { kind: 1, ..tag },
                from,
                to,
                len: 2 * size + row,
                layouts: vec![Layout::strided(
                    1,
                    row,
                    [rows.div_ceil(2), 2],
                    [2 * row, rows.div_ceil(2) * 2 * row],
                )]
                .into_iter()
                .filter(|layout| layout.end() <= 2 * size + row)
                .collect(),
            });
        }
    }
    run(&mut node, &transfers);
    node.finish();
}

/// More bytes than a number of type `int` counts, side by side and in rows.
pub fn more_bytes_than_an_int_counts(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (row, rows) = (1 << 20, 2_100);
    let together = Layout::contiguous(5, row * rows + 77);
    let apart = Layout::strided(5, row, [rows, 1], [row + 4_096, 0]);
    for (i, layout) in [together, apart].into_iter().enumerate() {
        assert!(layout.bytes() > 1 << 31);
        let (tag, layouts) = (Tag::new(i as u64, 0, 0), vec![layout]);
        run(&mut node, &[Transfer { tag, from: 0, to: 1, len: layout.end() + 9, layouts }]);
    }
    node.finish();
}

pub fn thousands_outstanding(wire: Endpoint) {
    let mut node = Node::new(wire);
    let count = if node.nodes() == 2 { 3_000 } else { 300 };
    let mut transfers = Vec::new();
    for (from, to) in pairs(node.nodes()).filter(|(from, to)| (from + 1) % node.nodes() == *to) {
        for i in 0..count {
            // One in twenty goes from place to place.
            let len = if i % 20 == 0 { 20_000 } else { 40 };
            let tag = Tag::new(i, from.into(), 9);
            transfers.push(Transfer { tag, from, to, len, layouts: vec![Layout::contiguous(0, len)] });
        }
    }
    run(&mut node, &transfers);
    node.finish();
}

pub fn several_senders_and_boxes(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (me, nodes) = (usize::from(node.me()), usize::from(node.nodes()));
    // Node 0 gets rows of an array from all others, in one transfer; small and large boxes alternate.
    for (round, width) in [(0, 10), (1, 6_000)] {
        let tag = Tag::new(round, 0, 0);
        let extent = [50 * nodes, width, 1];
        let rows = |n: usize| {
            (0..25).map(move |i| {
                let row = 50 * n + 2 * i;
                Layout::of_box(extent, 4, [row, i % 3, 0], [row + 1, width, 1])
            })
        };
        let len = 50 * nodes * width * 4;
        if me == 0 {
            let expected: Vec<_> = (1..nodes).flat_map(rows).collect();
            let block = Block::zeros(len);
            let bytes = expected.iter().map(Layout::bytes).sum();
            let begun = node.wire.expect(tag, block.memory_mut(), bytes).unwrap();
            node.wait(begun);
            block.check(&expected, round);
        } else {
            let block = Block::pattern(len, round);
            let layouts: Vec<_> = rows(me).collect();
            let begun = node.wire.send(0, tag, block.memory(), &layouts).unwrap();
            node.wait(begun);
        }
    }
    node.finish();
}

pub fn windows_of_a_block(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (me, nodes) = (node.me(), node.nodes());
    // Each node holds a window of its own, and passes on the end of it, which is the beginning of the next
    // one.
    for (round, size) in [100, 40_000].into_iter().enumerate() {
        let mine = Block::pattern(2 * size, 0).at(usize::from(me) * size);
        let next = Block::zeros(2 * size).at((usize::from(me)) * size);
        let tag = |to: u16| Tag::new(round as u64, to.into(), 2);
        let mut begun = Vec::new();
        if me > 0 {
            begun.push(node.wire.expect(tag(me), next.memory_mut(), size).unwrap());
        }
        if me + 1 < nodes {
            let layout = Layout::contiguous(usize::from(me + 1) * size, size);
            begun.push(node.wire.send(me + 1, tag(me + 1), mine.memory(), &[layout]).unwrap());
        }
        node.wait_all(&begun);
        if me > 0 {
            assert_eq!(next.bytes()[..size], mine_of_the_one_before(size), "round {round}");
            assert!(next.bytes()[size..].iter().all(|&byte| byte == 0));
        }
    }
    node.finish();
}

fn mine_of_the_one_before(size: usize) -> Vec<u8> {
    Block::pattern(2 * size, 0).bytes()[size..].to_vec()
}

pub fn a_flood_stays_with_its_sender(wire: Endpoint) {
    let mut node = Node::new(wire);
    let (count, bytes) = (2_000, 1_000);
    if node.me() == 1 {
        let block = Block::pattern(bytes, 1);
        let layouts = [Layout::contiguous(0, bytes)];
        let begun: Vec<_> = (0..count)
            .map(|i| node.wire.send(0, Tag::new(i, 0, 0), block.memory(), &layouts).unwrap())
            .collect();
        // Node 0 has placed nothing, so at most a window of messages has left.
        let gone = begun.iter().filter(|&&begun| begun == Begun::Done).count();
        assert!(
            (500..=1_100).contains(&gone),
            "{gone} transfers of {bytes} bytes are out of reach of the sender"
        );
        node.wire.post(0, b"go on").unwrap();
        node.wait_all(&begun);
    } else if node.me() == 0 && node.nodes() > 1 {
        node.until("a post", |node| node.posts.pop_front().is_some());
        // The last ones first.
        for i in (0..count).rev() {
            let block = Block::zeros(bytes);
            let begun = node.wire.expect(Tag::new(i, 0, 0), block.memory_mut(), bytes).unwrap();
            node.wait(begun);
            block.check(&[Layout::contiguous(0, bytes)], 1);
        }
    }
    node.finish();
}

pub fn wrong_arguments_are_refused(wire: Endpoint) {
    let mut node = Node::new(wire);
    let nodes = node.nodes();
    let block = Block::zeros(10);
    let tag = Tag::new(1, 2, 3);
    assert_eq!(node.wire.post(nodes, b""), Err(WireError::NoSuchNode { node: nodes, nodes }));
    let error = node.wire.send(nodes, tag, block.memory(), &[]).unwrap_err();
    assert_eq!(error, WireError::NoSuchNode { node: nodes, nodes });
    let error = node.wire.send(0, tag, block.memory(), &[Layout::contiguous(4, 7)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the layout (bytes 4..11) of the transfer of kind 3 of buffer 2 for task 1 is outside of its memory"
    );
    let error = node.wire.post(0, &vec![0; POST + 1]).unwrap_err();
    assert_eq!(error, WireError::LongPost { bytes: POST + 1, limit: POST });
    // What is refused changes nothing, and an empty transfer is over at once.
    assert_eq!(node.wire.expect(tag, block.memory_mut(), 0), Ok(Begun::Done));
    assert_eq!(node.wire.send(0, tag, block.memory(), &[]), Ok(Begun::Done));
    if node.me() == 0 && nodes > 1 {
        let begun = node.wire.expect(tag, block.memory_mut(), 1).unwrap();
        let error = node.wire.expect(tag, block.memory_mut(), 1).unwrap_err();
        assert_eq!(error, WireError::Repeated { tag });
        node.wire.post(1, b"now").unwrap();
        node.wait(begun);
    } else if node.me() == 1 {
        node.until("a post", |node| node.posts.pop_front().is_some());
        let begun = node.wire.send(0, tag, block.memory(), &[Layout::contiguous(3, 1)]).unwrap();
        node.wait(begun);
    }
    node.finish();
}

pub fn to_oneself(wire: Endpoint) {
    let mut node = Node::new(wire);
    let me = node.me();
    for (round, size) in [100, 100_000].into_iter().enumerate() {
        let (from, to) = (Block::pattern(size, 3), Block::zeros(size));
        let layout = Layout::contiguous(0, size);
        let tag = Tag::new(round as u64, 0, 0);
        let sent = node.wire.send(me, tag, from.memory(), &[layout]).unwrap();
        let got = node.wire.expect(tag, to.memory_mut(), size).unwrap();
        node.wait_all(&[sent, got]);
        to.check(&[layout], 3);
    }
    node.finish();
}

/// What is expected is cut into halves of columns, and the second half comes only when the receiver has
/// reported the first one.
pub fn a_part_is_reported_before_the_others_come(wire: Endpoint) {
    let mut node = Node::new(wire);
    let nodes = node.nodes();
    let (from, to) = ((node.me() + nodes - 1) % nodes, (node.me() + 1) % nodes);
    for (round, columns) in [2, 300, 4000, 2, 4000].into_iter().enumerate() {
        let len = 10 * columns * 4;
        let half = |at: usize| {
            Layout::of_box([10, columns, 1], 4, [0, at * columns / 2, 0], [10, (at + 1) * columns / 2, 1])
        };
        let (source, block) = (Block::pattern(len, round as u64), Block::zeros(len));
        let tag = Tag::new(round as u64, 7, 7);
        let first = node.wire.send(to, tag, source.memory(), &[half(1)]).unwrap();
        if round > 2 {
            // Perhaps it has come by now.
            node.barrier(round as u64);
        }
        let begun = node.wire.expect_parts(tag, block.memory_mut(), &[vec![half(0)], vec![half(1)]]).unwrap();
        let Begun::Later(ticket) = begun else { panic!("the other half has not been sent") };
        node.until("a part", |node| node.parts.remove(&(ticket, 1)));
        block.check(&[half(1)], round as u64);
        // The other node may go on.
        node.wire.post(from, b"the other half").unwrap();
        node.until("the other node", |node| node.posts.pop_front().is_some());
        let second = match round {
            1 => {
                node.wire.send_note(to, tag, half(0).bytes(), b"no").unwrap();
                assert_eq!(node.notes_of(begun), [(from, b"no".to_vec())]);
                Begun::Done
            }
            _ => node.wire.send(to, tag, source.memory(), &[half(0)]).unwrap(),
        };
        node.wait_all(&[first, second, begun]);
        if round != 1 {
            block.check(&[half(0), half(1)], round as u64);
        }
    }
    node.finish();
}
