//! Posts.

use super::node::Node;
use anabranch_wire::{Endpoint, POST};

pub fn posts_stay_in_order(wire: Endpoint) {
    let mut node = Node::new(wire);
    let count = 50_u32;
    for i in 0..count {
        for other in node.others() {
            node.wire.post(other, &i.to_le_bytes()).unwrap();
        }
        node.poll().unwrap();
    }
    let mut next = vec![0_u32; node.nodes().into()];
    let all = count as usize * (usize::from(node.nodes()) - 1);
    node.until("all posts", |node| node.posts.len() == all);
    for (from, message) in std::mem::take(&mut node.posts) {
        let next = &mut next[usize::from(from)];
        assert_eq!(message, next.to_le_bytes(), "from node {from}");
        *next += 1;
    }
    node.finish();
}

pub fn posts_of_all_sizes(wire: Endpoint) {
    let mut node = Node::new(wire);
    let sizes = [0, 1, 100, 5_000, POST - 1, POST];
    for other in node.others() {
        for size in sizes {
            node.wire.post(other, &vec![size as u8; size]).unwrap();
        }
    }
    for other in node.others() {
        for size in sizes {
            node.until("a post", |node| node.posts.iter().any(|(from, _)| *from == other));
            let next = node.posts.iter().position(|(from, _)| *from == other).unwrap();
            assert_eq!(node.posts.remove(next).unwrap().1, vec![size as u8; size]);
        }
    }
    node.finish();
}
