//! The tasks of the model: what they declare, and what they compute.

use super::{
    Model, Part, Piece, Task, done,
    groups::Failed,
    observation::{Observation, Observed},
};
use crate::program::{
    Compute, Fail, Host, NEST, Order, Place, ReadPattern, Reduction, Shape, computed, mix, reduced_into,
    wrong_element,
};
use anabranch::{
    Operator,
    grid::{Chunk, Extent, GridBox, Point, RangeMapper, Region},
};
use std::ops::Range;

impl Model<'_> {
    pub(super) fn compute(&mut self, i: usize, step: &Compute) -> Observation {
        let Compute { from, read_pattern, to, target, write_pattern, update, split, node, fail, .. } = *step;
        let (source, goal) = (self.buffers[from].shape, self.buffers[to].shape);
        let space = write_pattern.index_space(goal.rank, &target);
        let read = |range: GridBox<3>| mapped(&read_pattern, goal.rank, range, space, source);
        let on_one = |node: u16| usize::from(node) % self.objects.len();
        let chunks = match node {
            Some(node) => vec![(on_one(node), space)],
            None => self.weights.chunks(&split, goal.rank, &space),
        };
        let fails = !space.is_empty() && self.notices(fail);
        let accesses = |range: GridBox<3>| {
            let writes = Region::from(write_pattern.target(goal.rank, &range));
            let mut reads = vec![(from, read(range))];
            reads.extend(update.then(|| (to, writes.clone())));
            (reads, writes)
        };
        let wrong = match fail {
            Some(Fail::Panic) => Some(write_pattern.target(goal.rank, &first_point(&space)).min()),
            _ => wrong_element(&target).map(Point),
        };
        let piece = |range: GridBox<3>| {
            let (reads, writes) = accesses(range);
            let fails = fails && wrong.is_some_and(|p| writes.boxes().iter().any(|b| b.contains_point(p)));
            Piece { reads, writes, fails }
        };
        let nodes = if node.is_some() { 1 } else { self.objects.len() };
        let part = |(node, chunk): (usize, GridBox<3>)| {
            let (reads, writes) = accesses(chunk);
            let pieces = split.pieces_of(goal.rank, &chunk, nodes).into_iter().map(piece).collect();
            Part { node, reads, writes, pieces }
        };
        let chunks = chunks.into_iter().filter(|(_, chunk)| !chunk.is_empty());
        let task = Task {
            parts: chunks.map(part).collect(),
            nodes: vec![0],
            reads: vec![(from, read(space))],
            writes: vec![(to, Region::from(target))],
            update,
            effects: &[],
            on_cluster: vec![],
            fails,
            device: step
                .place_recorded(&self.program.setup, self.node as u16, &source.whole())
                .and_then(Place::device),
        };
        let result = self.begin(i, &task);
        if matches!(result, Observation::Refused(_)) {
            return result;
        }
        self.apply(i, step);
        result
    }

    /// Computes what a kernel writes. The seed tells its values from those of other kernels.
    pub(super) fn apply(&mut self, seed: usize, step: &Compute) {
        let Compute { from, read_pattern, to, target, write_pattern, update, .. } = *step;
        let (source, goal) = (self.buffers[from].shape, self.buffers[to].shape);
        let space = write_pattern.index_space(goal.rank, &target);
        for p in target.points() {
            let at = self.buffers[to].at(p.0);
            if self.buffers[to].cells[at].lost {
                continue;
            }
            let before = if update { self.buffers[to].cells[at].value } else { 0 };
            let q = write_pattern.index_space(goal.rank, &GridBox::new(p, p.0.map(|i| i + 1)));
            let region = mapped(&read_pattern, goal.rank, q, space, source);
            let source = &self.buffers[from];
            let value = computed(seed, p.0, before, &region, |p| source.cells[source.at(p)].value);
            self.buffers[to].cells[at].value = value;
        }
    }

    pub(super) fn reduce(&mut self, i: usize, step: &Reduction) -> Observation {
        let Reduction { from, space, to, include, split, node, fail, .. } = *step;
        let source = self.buffers[from].shape;
        let is_recorded =
            step.place_recorded(&self.program.setup, self.node as u16, &source.whole()).is_some();
        let chunks = match is_recorded {
            // No space has more points than a leaf.
            true => vec![space].into_iter().filter(|space| !space.is_empty()).collect(),
            false => split.chunks(source.rank, &space),
        };
        let task = Task {
            parts: self.parts_of_reduction(step, &chunks, node),
            nodes: vec![0],
            reads: vec![(from, Region::from(space))],
            writes: vec![(to, Region::from(self.buffers[to].shape.whole()))],
            update: include,
            effects: &[],
            on_cluster: vec![],
            fails: fail && !space.is_empty(),
            device: None,
        };
        let result = self.begin(i, &task);
        if matches!(result, Observation::Refused(_)) || self.buffers[to].cells.iter().any(|cell| cell.lost) {
            return result;
        }
        self.apply_reduction(i, step, chunks);
        result
    }

    /// Computes the values of a reduction whose index space has these chunks.
    pub(super) fn apply_reduction(&mut self, seed: usize, step: &Reduction, chunks: Vec<GridBox<3>>) {
        let Reduction { from, to, op, include, .. } = *step;
        let (source, len) = (&self.buffers[from], self.buffers[to].cells.len());
        let current = || self.buffers[to].cells.iter().map(|cell| cell.value).collect();
        let partial = |(chunk_index, chunk): (usize, GridBox<3>)| {
            // The first chunk includes the previous contents.
            let mut partial: Vec<u64> =
                if include && chunk_index == 0 { current() } else { vec![op.identity(); len] };
            for p in chunk.points().filter(|_| len > 0) {
                let slot = &mut partial[reduced_into(p.0, len)];
                *slot = op.combine(*slot, op.value(seed, source.cells[source.at(p.0)].value));
            }
            partial
        };
        let mut partials: Vec<_> = chunks.into_iter().enumerate().map(partial).collect();
        // Combines neighbours, then neighbouring results, and so on.
        while partials.len() > 1 {
            let pair = |pair: &[Vec<u64>]| match pair {
                [a, b] => a.iter().zip(b).map(|(a, b)| op.combine(*a, *b)).collect(),
                _ => pair[0].clone(),
            };
            partials = partials.chunks(2).map(pair).collect();
        }
        let nothing = || if include { current() } else { vec![op.identity(); len] };
        let total = partials.pop().unwrap_or_else(nothing);
        for (cell, value) in self.buffers[to].cells.iter_mut().zip(total) {
            cell.value = value;
        }
    }

    /// The parts of a reduction with these chunks: each node has some of them, next to each other. All write
    /// the whole result.
    fn parts_of_reduction(&self, step: &Reduction, chunks: &[GridBox<3>], node: Option<u16>) -> Vec<Part> {
        let &Reduction { from, to, include, .. } = step;
        let runs = match node {
            Some(node) => vec![(usize::from(node) % self.objects.len(), 0..chunks.len())],
            None => self.weights.runs(chunks.len()),
        };
        let whole = Region::from(self.buffers[to].shape.whole());
        let part = |(node, run): (usize, Range<usize>)| {
            let read = chunks[run.clone()].iter().fold(GridBox::EMPTY, |read, chunk| read.bounding(chunk));
            let mut reads = vec![(from, Region::from(read))];
            reads.extend((include && run.start == 0).then(|| (to, whole.clone())));
            Part { node, reads, writes: whole.clone(), pieces: vec![] }
        };
        runs.into_iter().filter(|(_, run)| !run.is_empty()).map(part).collect()
    }

    pub(super) fn host(&mut self, i: usize, step: &Host) -> Observation {
        let observation = self.host_task(i, step);
        let Observed { passed_on, .. } = self.seen[i];
        if step.callback_panics && !passed_on && matches!(observation, Observation::Task(..)) {
            self.groups.add_failure(i, Failed { step: i, is_callback: true }, false);
        }
        observation
    }

    fn host_task(&mut self, i: usize, step: &Host) -> Observation {
        let Host { from, to, part: [min, max], update, ref effects, fail, .. } = *step;
        let target = step.target();
        let fails = fail.is_some_and(|fail| !fail.is_wrong_write() || !target.is_empty());
        let node = usize::from(step.node) % self.objects.len();
        let reads = vec![(from, Region::from(self.buffers[from].shape.whole()))];
        let writes = Region::from(target);
        let read = reads.iter().cloned().chain(update.then(|| (to, writes.clone())));
        let task = Task {
            parts: vec![Part { node, reads: read.collect(), writes: writes.clone(), pieces: vec![] }],
            nodes: vec![node],
            reads,
            writes: vec![(to, writes)],
            update,
            effects,
            on_cluster: vec![],
            fails: fails && self.notices(fail),
            device: None,
        };
        let result = self.begin(i, &task);
        if matches!(result, Observation::Refused(_)) || !self.has_done(i, node) {
            return result;
        }
        let mut hash = self.buffers[from].cells.iter().fold(i as u64, |hash, cell| mix(hash, cell.value));
        effects.iter().for_each(|effect| self.objects[node][effect.0].touch(effect.1, &mut hash));
        for at in min..max {
            let cell = &mut self.buffers[to].cells[at];
            cell.value = mix(hash, if update { cell.value } else { at as u64 });
        }
        result
    }

    pub(super) fn nest(&mut self, i: usize, children: usize) -> Observation {
        let task = Task {
            parts: vec![],
            nodes: vec![0],
            reads: vec![],
            writes: vec![],
            update: false,
            effects: &[(NEST, Order::Sequential)],
            on_cluster: vec![],
            fails: false,
            device: None,
        };
        let result = self.begin(i, &task);
        if result != done() {
            return result;
        }
        for child in 0..children {
            let slot = &mut self.nest[child % 4];
            *slot = mix(*slot, (8 * i + child) as u64);
        }
        result
    }

    /// Every answer is an error, so the task ends well.
    pub(super) fn inner_wait(&mut self, i: usize) -> Observation {
        let task = Task {
            parts: vec![],
            nodes: vec![0],
            reads: vec![],
            writes: vec![],
            update: false,
            effects: &[],
            on_cluster: vec![],
            fails: false,
            device: None,
        };
        self.begin(i, &task)
    }
}

/// The first point of an index space, as a box; nothing if it is empty.
fn first_point(space: &GridBox<3>) -> GridBox<3> {
    if space.is_empty() { *space } else { GridBox::new(space.min(), space.min().0.map(|i| i + 1)) }
}

/// What a kernel reads of its source.
pub(super) fn read_by(step: &Compute, source: Shape, rank: usize) -> Region<3> {
    let space = step.write_pattern.index_space(rank, &step.target);
    mapped(&step.read_pattern, rank, space, space, source)
}

/// The region of a buffer that a kernel, with an index space of `rank` dimensions, reads for a part of its
/// index space.
fn mapped(
    read_pattern: &ReadPattern,
    rank: usize,
    range: GridBox<3>,
    global: GridBox<3>,
    shape: Shape,
) -> Region<3> {
    fn map<const K: usize, const B: usize>(
        read_pattern: &ReadPattern,
        range: GridBox<3>,
        global: GridBox<3>,
        extent: [usize; 3],
    ) -> Region<3> {
        let chunk = Chunk::<K> { range: range.cast(), global: global.cast() };
        RangeMapper::<K, B>::map(read_pattern, &chunk, Extent(extent).cast::<B>()).cast()
    }
    let map = match (rank, shape.rank) {
        (0, 0) => map::<0, 0>,
        (0, 1) => map::<0, 1>,
        (0, 2) => map::<0, 2>,
        (0, _) => map::<0, 3>,
        (1, 0) => map::<1, 0>,
        (1, 1) => map::<1, 1>,
        (1, 2) => map::<1, 2>,
        (1, _) => map::<1, 3>,
        (2, 0) => map::<2, 0>,
        (2, 1) => map::<2, 1>,
        (2, 2) => map::<2, 2>,
        (2, _) => map::<2, 3>,
        (_, 0) => map::<3, 0>,
        (_, 1) => map::<3, 1>,
        (_, 2) => map::<3, 2>,
        (_, _) => map::<3, 3>,
    };
    map(read_pattern, range, global, shape.extent)
}
