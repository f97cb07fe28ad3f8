//! The model: the memory of a program whose tasks run one after the other on one node.

use anabranch_graph::{BufferId, TaskId};
use anabranch_grid::{Extent, GridBox, Point, Region};
use std::collections::BTreeMap;

/// An element and the task that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub value: u64,
    pub stamp: TaskId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub extent: Extent<3>,
    pub elements: Vec<Option<Element>>,
}

impl Array {
    pub fn new(extent: Extent<3>) -> Self {
        Self { extent, elements: vec![None; extent.len()] }
    }

    fn index(&self, p: Point<3>) -> usize {
        (p[0] * self.extent[1] + p[1]) * self.extent[2] + p[2]
    }

    pub fn get(&self, p: Point<3>) -> Option<Element> {
        self.elements[self.index(p)]
    }

    pub fn set(&mut self, p: Point<3>, element: Element) {
        let at = self.index(p);
        self.elements[at] = Some(element);
    }

    pub fn points(&self) -> impl Iterator<Item = Point<3>> + use<> {
        GridBox::full(self.extent).points()
    }

    pub fn written(&self) -> Region<3> {
        let one = |p: Point<3>| GridBox::new(p, p.0.map(|c| c + 1));
        self.points().filter(|&p| self.get(p).is_some()).map(one).collect()
    }
}

pub type Memory = BTreeMap<BufferId, Array>;

/// The contents of a buffer that is initialised.
pub fn initial(extent: Extent<3>, buffer: BufferId) -> Array {
    let mut array = Array::new(extent);
    for p in array.points() {
        array.set(p, Element { value: mix(&[buffer.0, at(p)]), stamp: TaskId::EPOCH });
    }
    array
}

/// The element that a task writes to a point: an overwrite if `old` is `None`, an update otherwise.
pub fn result(task: TaskId, buffer: BufferId, p: Point<3>, old: Option<Element>) -> Element {
    Element { value: mix(&[task.0, buffer.0, at(p), old.map_or(0, |e| e.value)]), stamp: task }
}

/// The contribution of a leaf to an element, from the identity.
pub fn contribution(task: TaskId, leaf: u32, p: Point<3>) -> u64 {
    mix(&[task.0, leaf as u64, at(p)])
}

/// An operator that is neither commutative nor associative, so that it reveals another tree or another order.
pub fn join(a: u64, b: u64) -> u64 {
    mix(&[a, b, 7])
}

/// The value of the tree over leaves `range`.
pub fn tree(range: std::ops::Range<u32>, leaf: &dyn Fn(u32) -> u64) -> u64 {
    if range.len() == 1 {
        return leaf(range.start);
    }
    // The largest power of two that is less than all, so that neighbours are combined first.
    let middle = range.start + (range.end - range.start).next_power_of_two() / 2;
    join(tree(range.start..middle, leaf), tree(middle..range.end, leaf))
}

fn at(p: Point<3>) -> u64 {
    ((p[0] * 1000 + p[1]) * 1000 + p[2]) as u64
}

fn mix(words: &[u64]) -> u64 {
    words.iter().fold(7, |hash, word| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23))
}
