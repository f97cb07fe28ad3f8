//! Queues of waiting tasks. Their nodes are the tasks' own slots, so that a task can be in one queue at a
//! time and no queue ever allocates.
//!
//! Most tasks come in the order in which they leave. These form a list: adding, taking the first and leaving
//! take constant time. Tasks that come before the last one of the list form a pairing heap: adding costs one
//! comparison, taking the first costs an amortised logarithm. The first of a queue is that of the list or
//! that of the heap. Pairing heaps are described in M. Fredman, R. Sedgewick, D. Sleator, R. Tarjan, "The
//! Pairing Heap: A New Form of Self-Adjusting Heap", 1986.

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The smallest level of tasks that are not due.
const NOT_DUE: u64 = 1 << 63;

/// The level of a task that is not due: a higher priority has a smaller level. The level of a due task is its
/// rank, which is below all of these.
pub(super) fn level(priority: i32) -> u64 {
    NOT_DUE + (i64::from(i32::MAX) - i64::from(priority)) as u64
}

/// The order in queues: smaller is first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// See [`level`].
    pub(super) level: u64,
    /// The task's id: its age.
    pub(super) age: u64,
}

/// A node of a list or of a heap. In a heap, `previous` is the sibling before, or the parent of a first
/// child.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    /// The first child in a heap; [`LISTED`] in a list.
    child: u32,
    next: u32,
    previous: u32,
}

/// Marks a node of a list, in place of a child.
const LISTED: u32 = NONE - 1;

/// A queue. All parts are slots, or [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    /// The ends of the list.
    first: u32,
    last: u32,
    /// The root of the heap.
    root: u32,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE, root: NONE };

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE && self.root == NONE
    }
}

/// The nodes of all queues, by slot.
#[derive(Debug, Default)]
pub(super) struct Queues {
    nodes: Vec<Node>,
}

impl Queues {
    /// Adds `slot`, which is in no queue.
    pub(super) fn push(&mut self, queue: &mut Queue, slot: u32, key: Key) {
        let is_last = queue.last == NONE || self.key(queue.last) <= key;
        let child = if is_last { LISTED } else { NONE };
        let fresh = Node { key, child, next: NONE, previous: NONE };
        if self.nodes.len() <= slot as usize {
            self.nodes.resize(slot as usize + 1, fresh);
        }
        self.nodes[slot as usize] = fresh;
        if is_last { self.append(queue, slot) } else { queue.root = self.merge(queue.root, slot) }
    }

    fn append(&mut self, queue: &mut Queue, slot: u32) {
        let last = std::mem::replace(&mut queue.last, slot);
        self.nodes[slot as usize].previous = last;
        match last {
            NONE => queue.first = slot,
            last => self.nodes[last as usize].next = slot,
        }
    }

    fn key(&self, slot: u32) -> Key {
        self.nodes[slot as usize].key
    }

    /// The first slot of the queue and its key.
    pub(super) fn first(&self, queue: &Queue) -> Option<(Key, u32)> {
        let Queue { first, root, .. } = *queue;
        if first == NONE && root == NONE {
            return None;
        }
        let is_listed = root == NONE || first != NONE && self.key(first) <= self.key(root);
        let slot = if is_listed { first } else { root };
        Some((self.key(slot), slot))
    }

    /// Takes `slot` out of its queue.
    pub(super) fn remove(&mut self, queue: &mut Queue, slot: u32) {
        let Node { child, next, previous, .. } = self.nodes[slot as usize];
        if child == LISTED {
            return self.unlink(queue, next, previous);
        }
        let rest = self.merge_all(child);
        if slot == queue.root {
            queue.root = rest;
            return;
        }
        let before = &mut self.nodes[previous as usize];
        if before.child == slot {
            before.child = next;
        } else {
            before.next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        queue.root = self.merge(queue.root, rest);
    }

    /// Takes the node between these two out of the list.
    fn unlink(&mut self, queue: &mut Queue, next: u32, previous: u32) {
        match previous {
            NONE => queue.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => queue.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
    }

    /// Makes one heap of two. Takes two roots and returns one.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NONE || b == NONE {
            return if a == NONE { b } else { a };
        }
        let (parent, child) = if self.key(a) <= self.key(b) { (a, b) } else { (b, a) };
        let sibling = std::mem::replace(&mut self.nodes[parent as usize].child, child);
        if sibling != NONE {
            self.nodes[sibling as usize].previous = child;
        }
        let node = &mut self.nodes[child as usize];
        (node.next, node.previous) = (sibling, parent);
        parent
    }

    /// Makes one heap of a list of siblings: in pairs from the left, then all from the right. The logarithm
    /// comes from that order.
    fn merge_all(&mut self, mut first: u32) -> u32 {
        let mut pairs = NONE;
        while first != NONE {
            let a = first;
            let b = self.detach(a);
            first = if b == NONE { NONE } else { self.detach(b) };
            let pair = self.merge(a, b);
            self.nodes[pair as usize].next = pairs;
            pairs = pair;
        }
        let mut root = NONE;
        while pairs != NONE {
            let next = self.detach(pairs);
            root = self.merge(root, pairs);
            pairs = next;
        }
        root
    }

    /// Makes `slot` a root. Returns its former next sibling.
    fn detach(&mut self, slot: u32) -> u32 {
        let node = &mut self.nodes[slot as usize];
        node.previous = NONE;
        std::mem::replace(&mut node.next, NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_queue_is_a_sorted_map(steps in proptest::collection::vec((0..3u8, 0..40u32, 0..6u64), 1..300)) {
            let (mut queues, mut queue, mut model) = (Queues::default(), Queue::EMPTY, BTreeMap::new());
            for (what, slot, level) in steps {
                let held = model.iter().find(|&(_, &s)| s == slot).map(|(&key, _)| key);
                match (what, held) {
                    (0 | 1, None) => {
                        let key = Key { level, age: u64::from(slot) };
                        queues.push(&mut queue, slot, key);
                        model.insert(key, slot);
                    }
                    (1, Some(key)) => {
                        queues.remove(&mut queue, slot);
                        model.remove(&key);
                    }
                    (2, _) => {
                        let first = queues.first(&queue);
                        prop_assert_eq!(first, model.pop_first());
                        first.into_iter().for_each(|(_, slot)| queues.remove(&mut queue, slot));
                    }
                    _ => {}
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
            while let Some((key, slot)) = queues.first(&queue) {
                queues.remove(&mut queue, slot);
                prop_assert_eq!(Some((key, slot)), model.pop_first());
            }
            prop_assert!(model.is_empty());
        }
    }
}
