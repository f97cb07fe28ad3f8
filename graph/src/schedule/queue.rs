//! Queues of waiting tasks: pairing heaps whose nodes are the tasks' own slots, so that a task can be in one queue at a time
//! and no queue ever allocates.
//!
//! A queue is its root slot, or [`NONE`] if it is empty. Adding costs one comparison, taking the first costs an amortised
//! logarithm, and a task may leave from anywhere. Pairing heaps are described in M. Fredman, R. Sedgewick, D. Sleator,
//! R. Tarjan, "The Pairing Heap: A New Form of Self-Adjusting Heap", 1986.

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The smallest level of tasks that are not due.
const NOT_DUE: u64 = 1 << 63;

/// The level of a task that is not due: a higher priority has a smaller level. The level of a due task is its rank, which is
/// below all of these.
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

/// A node of a heap. `previous` is the sibling before, or the parent of a first child.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    child: u32,
    next: u32,
    previous: u32,
}

/// The nodes of all queues, by slot.
#[derive(Debug, Default)]
pub(super) struct Queues {
    nodes: Vec<Node>,
}

impl Queues {
    /// Adds `slot`, which is in no queue, to the queue `root`.
    pub(super) fn push(&mut self, root: &mut u32, slot: u32, key: Key) {
        let fresh = Node { key, child: NONE, next: NONE, previous: NONE };
        if self.nodes.len() <= slot as usize {
            self.nodes.resize(slot as usize + 1, fresh);
        }
        self.nodes[slot as usize] = fresh;
        *root = self.merge(*root, slot);
    }

    /// The key of a slot that is in a queue.
    pub(super) fn key(&self, slot: u32) -> Key {
        self.nodes[slot as usize].key
    }

    /// Takes the first slot out of the queue `root`, which is not empty.
    pub(super) fn pop(&mut self, root: &mut u32) -> u32 {
        let first = *root;
        *root = self.merge_all(self.nodes[first as usize].child);
        first
    }

    /// Takes `slot` out of its queue, `root`.
    pub(super) fn remove(&mut self, root: &mut u32, slot: u32) {
        if slot == *root {
            self.pop(root);
            return;
        }
        let Node { child, next, previous, .. } = self.nodes[slot as usize];
        let before = &mut self.nodes[previous as usize];
        if before.child == slot {
            before.child = next;
        } else {
            before.next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        let rest = self.merge_all(child);
        *root = self.merge(*root, rest);
    }

    /// Makes one queue of two. Takes two roots and returns one.
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

    /// Makes one queue of a list of siblings: in pairs from the left, then all from the right. The logarithm comes from that
    /// order.
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
            let (mut queues, mut root, mut model) = (Queues::default(), NONE, BTreeMap::new());
            for (what, slot, level) in steps {
                let held = model.iter().find(|&(_, &s)| s == slot).map(|(&key, _)| key);
                match (what, held) {
                    (0 | 1, None) => {
                        let key = Key { level, age: u64::from(slot) };
                        queues.push(&mut root, slot, key);
                        model.insert(key, slot);
                    }
                    (1, Some(key)) => {
                        queues.remove(&mut root, slot);
                        model.remove(&key);
                    }
                    (2, _) if root != NONE => {
                        prop_assert_eq!(Some(queues.pop(&mut root)), model.pop_first().map(|(_, s)| s));
                    }
                    _ => {}
                }
                prop_assert_eq!(root == NONE, model.is_empty());
            }
            while root != NONE {
                prop_assert_eq!(Some(queues.pop(&mut root)), model.pop_first().map(|(_, s)| s));
            }
            prop_assert!(model.is_empty());
        }
    }
}
