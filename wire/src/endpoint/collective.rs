//! Collective patterns, as messages that every node derives from its number.
//!
//! *Gather* (every node gets the parts of all nodes) takes as many steps as the number of nodes has binary
//! digits. In step *k* a node sends what it has, the parts of 2^*k* nodes from itself on, to the node 2^*k*
//! before it. So each byte reaches each node once, and a node sends a handful of messages instead of one to
//! every other node. Without bytes it is a barrier. If the number of nodes is a power of two, nodes exchange
//! what they have in pairs instead. That takes as many steps, and a node goes on as soon as it has the
//! message of one other: where several nodes share a processor, that saves context switches.
//!
//! A node may give a *note* in place of its part, which goes the same way.
//!
//! *Broadcast* goes down a binomial tree from its root.
//!
//! Both are named by a tag like other transfers, so that nodes may begin several of them in different orders.

use super::notes::Note;
use crate::{Layout, MemoryMut, Place, Tag};

/// Something that a node sends as soon as it has received the steps in `needs`, a set of bits.
pub(super) struct Send {
    pub to: u16,
    pub step: u8,
    pub needs: u32,
    pub layouts: Vec<Layout>,
    /// The node that each layout is from.
    owners: Vec<u16>,
    /// The nodes whose parts these are: the first, and their number. Behind the last node comes the first.
    first: u16,
    pub count: u16,
}

impl Send {
    /// Whether the part of this node belongs to it, of this number of nodes.
    fn has(&self, node: u16, nodes: u16) -> bool {
        let behind = if node < self.first { node + nodes - self.first } else { node - self.first };
        behind < self.count
    }
}

/// Something that a node receives: bytes of a step.
pub(super) struct Receive {
    pub step: u8,
    /// The bytes of all parts, and a token for each.
    pub bytes: usize,
}

pub(super) struct Collective {
    pub tag: Tag,
    pub memory: MemoryMut,
    pub sends: Vec<Send>,
    pub receives: Vec<Receive>,
    /// What this node and others have given in place of their parts.
    pub notes: Vec<Note>,
    nodes: u16,
    /// The steps that have arrived, a set of bits.
    pub arrived: u32,
    /// Messages that are not over yet.
    pub unfinished: usize,
}

impl Collective {
    fn new(nodes: u16, tag: Tag, memory: MemoryMut, sends: Vec<Send>, receives: Vec<Receive>) -> Self {
        let unfinished = sends.len() + receives.len();
        Self { tag, memory, sends, receives, notes: Vec::new(), nodes, arrived: 0, unfinished }
    }

    /// Every node gets the parts of all nodes.
    pub fn gather(place: Place, tag: Tag, memory: MemoryMut, parts: &[Vec<Layout>]) -> Self {
        let (node, nodes) = (usize::from(place.node), usize::from(place.nodes));
        let from = |first: usize, count: usize| {
            let others = (first..first + count).map(move |other| other % nodes);
            others.flat_map(|other| parts[other].iter().map(move |layout| (*layout, other as u16)))
        };
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let in_pairs = nodes.is_power_of_two();
        let (mut step, mut distance) = (0, 1);
        while distance < nodes {
            let (to, first, theirs, count) = if in_pairs {
                let first = node & !(distance - 1);
                (node ^ distance, first, first ^ distance, distance)
            } else {
                let count = distance.min(nodes - distance);
                ((node + nodes - distance) % nodes, node, node + distance, count)
            };
            let (layouts, owners) = from(first, count).unzip();
            sends.push(Send {
                to: to as u16,
                step: step + 1,
                needs: (1 << step) - 1,
                layouts,
                owners,
                first: first as u16,
                count: count as u16,
            });
            let bytes = from(theirs, count).map(|(layout, _)| layout.bytes()).sum::<usize>();
            receives.push(Receive { step: step + 1, bytes: bytes + count });
            (step, distance) = (step + 1, 2 * distance);
        }
        Self::new(place.nodes, tag, memory, sends, receives)
    }

    /// Every node gets the layouts of the root.
    pub fn broadcast(place: Place, root: u16, tag: Tag, memory: MemoryMut, layouts: &[Layout]) -> Self {
        let first = root;
        let (node, nodes, root) = (usize::from(place.node), usize::from(place.nodes), usize::from(root));
        let mine = (node + nodes - root) % nodes;
        // The root sends over all distances, the others over those that are larger than the one that they are
        // reached by.
        let nearest = if mine == 0 { 1 } else { 2 << mine.ilog2() };
        let distances = std::iter::successors(Some(nearest), |distance| Some(2 * distance));
        // The nearest of these nodes have the most to pass on.
        let sends = distances
            .take_while(|distance| mine + distance < nodes)
            .map(|distance| Send {
                to: ((node + distance) % nodes) as u16,
                step: 1,
                needs: u32::from(mine != 0),
                layouts: layouts.to_vec(),
                owners: vec![first; layouts.len()],
                first,
                count: 1,
            })
            .collect();
        let bytes = layouts.iter().map(Layout::bytes).sum::<usize>();
        let receives = if mine == 0 { Vec::new() } else { vec![Receive { step: 1, bytes: bytes + 1 }] };
        Self::new(place.nodes, tag, memory, sends, receives)
    }

    /// A step has arrived, with these notes.
    pub fn arrived(&mut self, step: u8, notes: Vec<Note>) {
        self.arrived |= 1 << (step - 1);
        self.unfinished -= 1;
        self.notes.extend(notes);
    }

    /// The next message that can be sent, and the notes in place of parts of it.
    pub fn next_send(&mut self) -> Option<(Send, Vec<Note>)> {
        let ready = self.sends.iter().position(|send| send.needs & !self.arrived == 0)?;
        let mut send = self.sends.remove(ready);
        if self.notes.is_empty() {
            return Some((send, Vec::new()));
        }
        let notes: Vec<_> =
            self.notes.iter().filter(|note| send.has(note.node, self.nodes)).cloned().collect();
        let has_note = |owner: u16| notes.iter().any(|note| note.node == owner);
        let mut owners = std::mem::take(&mut send.owners).into_iter();
        send.layouts.retain(|_| owners.next().is_some_and(|owner| !has_note(owner)));
        send.count -= notes.len() as u16;
        Some((send, notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, VecDeque};

    /// Runs the patterns of all nodes; the layouts are single bytes. Returns what each node has, and the most
    /// messages of one.
    fn run(mut all: Vec<Collective>, mut has: Vec<BTreeSet<usize>>) -> (Vec<BTreeSet<usize>>, usize) {
        let mut sent = vec![0; all.len()];
        let mut queue: VecDeque<usize> = (0..all.len()).collect();
        while let Some(node) = queue.pop_front() {
            while let Some((send, notes)) = all[node].next_send() {
                sent[node] += 1;
                let bytes: BTreeSet<_> = send.layouts.iter().map(Layout::offset).collect();
                assert!(bytes.is_subset(&has[node]), "node {node} sends what it does not have");
                let to = usize::from(send.to);
                let expected = all[to].receives.iter().find(|receive| receive.step == send.step);
                let parts = usize::from(send.count) + notes.len();
                assert_eq!(expected.expect("it is expected").bytes, bytes.len() + notes.len() + parts);
                assert!(bytes.is_disjoint(&has[to]), "node {to} gets a byte twice");
                has[to].extend(bytes);
                all[to].arrived(send.step, notes);
                all[node].unfinished -= 1;
                queue.push_back(to);
            }
        }
        assert!(all.iter().all(|collective| collective.unfinished == 0));
        (has, sent.into_iter().max().unwrap_or(0))
    }

    const TAG: Tag = Tag::new(1, 2, 3);

    #[test]
    fn gather_brings_every_part_to_every_node_in_few_messages() {
        for nodes in [1_u16, 2, 3, 4, 5, 7, 8, 16, 100, 256] {
            let parts: Vec<_> = (0..nodes).map(|i| vec![Layout::contiguous(i.into(), 1)]).collect();
            let all = (0..nodes)
                .map(|node| Collective::gather(Place { node, nodes }, TAG, MemoryMut::empty(), &parts));
            let has = (0..nodes).map(|node| [usize::from(node)].into()).collect();
            let (has, sent) = run(all.collect(), has);
            assert!(has.iter().all(|has| has.len() == usize::from(nodes)));
            assert_eq!(sent, nodes.next_power_of_two().ilog2() as usize, "of {nodes} nodes");
        }
    }

    #[test]
    fn notes_go_the_way_of_the_parts_that_they_replace() {
        for nodes in [1_u16, 2, 3, 4, 7, 16, 100] {
            let parts: Vec<_> = (0..nodes).map(|i| vec![Layout::contiguous(i.into(), 1)]).collect();
            let all = (0..nodes).map(|node| {
                let place = Place { node, nodes };
                let mut gather = Collective::gather(place, TAG, MemoryMut::empty(), &parts);
                let text = vec![node as u8];
                gather.notes.extend((node % 3 == 1).then_some(Note { node, bytes: 1, text }));
                gather
            });
            let has = (0..nodes).map(|node| [usize::from(node)].into()).collect();
            let (has, _) = run(all.collect(), has);
            let gives = |node: &usize| node % 3 != 1;
            for (node, has) in has.iter().enumerate() {
                let expected = (0..usize::from(nodes)).filter(|part| gives(part) || *part == node);
                assert!(has.iter().copied().eq(expected), "node {node} of {nodes}");
            }
        }
    }

    #[test]
    fn broadcast_reaches_every_node_in_few_messages() {
        for nodes in [1_u16, 2, 3, 4, 7, 8, 16, 100] {
            for root in [0, nodes / 2, nodes - 1] {
                let layouts = [Layout::contiguous(7, 1)];
                let all = (0..nodes).map(|node| {
                    Collective::broadcast(Place { node, nodes }, root, TAG, MemoryMut::empty(), &layouts)
                });
                let mut has = vec![BTreeSet::new(); nodes.into()];
                has[usize::from(root)].insert(7);
                let (has, sent) = run(all.collect(), has);
                assert!(has.iter().all(|has| has.len() == 1));
                assert!(sent <= nodes.next_power_of_two().ilog2() as usize);
            }
        }
    }
}
