//! Posts: small messages of the program, which come in the order in which their sender posted them.

use crate::tag::Event;
use std::collections::BTreeMap;

pub(super) struct Posts {
    /// The number of the next post to each node.
    next_out: Vec<u32>,
    /// The number of the next post from each node.
    next_in: Vec<u32>,
    /// Posts that have overtaken others.
    early: BTreeMap<(u16, u32), Vec<u8>>,
}

impl Posts {
    pub fn new(nodes: u16) -> Self {
        let zeros = vec![0; usize::from(nodes)];
        Self { next_out: zeros.clone(), next_in: zeros, early: BTreeMap::new() }
    }

    pub fn number(&mut self, to: u16) -> u32 {
        let next = &mut self.next_out[usize::from(to)];
        let number = *next;
        *next = next.wrapping_add(1);
        number
    }

    /// Reports the post, and those that it has held back; or keeps it.
    pub fn arrived(&mut self, from: u16, number: u32, message: Vec<u8>, events: &mut Vec<Event>) {
        let next = &mut self.next_in[usize::from(from)];
        if number != *next {
            self.early.insert((from, number), message);
            return;
        }
        *next = next.wrapping_add(1);
        events.push(Event::Post { from, message });
        while let Some(message) = self.early.remove(&(from, *next)) {
            *next = next.wrapping_add(1);
            events.push(Event::Post { from, message });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_of_one_node_are_reported_in_order() {
        let mut posts = Posts::new(2);
        let mut events = Vec::new();
        for number in [2, 1, 3, 0, 5, 4] {
            posts.arrived(1, number, vec![number as u8], &mut events);
        }
        posts.arrived(0, 0, vec![9], &mut events);
        let got: Vec<_> = events
            .into_iter()
            .map(|event| match event {
                Event::Post { from, message } => (from, message[0]),
                other => unreachable!("{other:?}"),
            })
            .collect();
        assert_eq!(got, [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (0, 9)]);
    }
}
