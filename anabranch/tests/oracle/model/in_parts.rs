//! Host tasks in parts: what they declare, and what they compute.

use super::{Model, Part, Task, observation::Observation};
use crate::program::{OnCluster, Parts, Runs, mix};
use anabranch::grid::{Chunk, Extent, GridBox, RangeMapper, Region, even_split};

/// An index space of one dimension, and the nodes that have a part of it, and which.
struct Shares {
    space: GridBox<1>,
    parts: Vec<(usize, GridBox<1>)>,
}

impl Shares {
    /// The elements of a buffer of this size that belong to a part of the index space.
    fn target(&self, range: GridBox<1>, len: usize) -> Region<1> {
        even_split().map(&Chunk { range, global: self.space }, Extent([len]))
    }
}

impl Model<'_> {
    /// A collective task has a part of one point on each node.
    fn one_each(&self) -> Shares {
        let nodes = self.objects.len();
        let parts = (0..nodes).map(|node| (node, GridBox::new(node, node + 1)));
        Shares { space: GridBox::full([nodes]), parts: parts.collect() }
    }

    fn shares(&self, rows: usize) -> Shares {
        let parts = self.weights.runs(rows).into_iter();
        let parts = parts.map(|(node, run)| (node, GridBox::new(run.start, run.end)));
        Shares { space: GridBox::full([rows]), parts: parts.collect() }
    }

    /// What a task declares that reads all of a buffer, and writes or updates another one, of which each part
    /// has its share.
    fn in_parts<'t>(&self, from: usize, to: usize, update: bool, shares: &Shares) -> Task<'t> {
        let whole = |slot: usize| (slot, Region::from(self.buffers[slot].shape.whole()));
        let (reads, writes) = (vec![whole(from)], vec![whole(to)]);
        let part = |&(node, range): &(usize, GridBox<1>)| {
            let writes = shares.target(range, self.buffers[to].cells.len()).cast();
            let read = reads.iter().cloned().chain(update.then(|| (to, writes.clone())));
            Part { node, reads: read.collect(), writes, pieces: vec![] }
        };
        Task {
            parts: shares.parts.iter().map(part).collect(),
            // Other nodes do not touch their objects.
            nodes: shares.parts.iter().map(|(node, _)| *node).collect(),
            reads,
            writes,
            update,
            effects: &[],
            on_cluster: vec![],
            fails: false,
            device: None,
        }
    }

    /// Executes the parts that are done. `touch` is what the part of a node does to its hash.
    fn execute_parts(
        &mut self,
        i: usize,
        [from, to]: [usize; 2],
        update: bool,
        shares: &Shares,
        touch: impl Fn(&mut Self, usize, &mut u64),
    ) {
        let before = self.buffers[from].cells.iter().fold(i as u64, |hash, cell| mix(hash, cell.value));
        for &(node, range) in &shares.parts {
            if !self.has_done(i, node) {
                continue;
            }
            let mut hash = before;
            touch(self, node, &mut hash);
            let cells = &mut self.buffers[to].cells;
            for [at] in
                shares.target(range, cells.len()).boxes().iter().flat_map(|part| part.points()).map(|p| p.0)
            {
                let cell = &mut cells[at];
                cell.value = mix(hash, if update { cell.value } else { at as u64 });
            }
        }
    }

    /// A host task with a part for each node.
    pub(super) fn parts(&mut self, i: usize, step: &Parts) -> Observation {
        let Parts { from, to, rows, update, ref effect, slow: _ } = *step;
        let shares = rows.map_or_else(|| self.one_each(), |rows| self.shares(rows));
        let task = Task { effects: effect.as_slice(), ..self.in_parts(from, to, update, &shares) };
        let result = self.begin(i, &task);
        if !matches!(result, Observation::Refused(_)) {
            self.execute_parts(i, [from, to], update, &shares, |model, node, hash| {
                effect.iter().for_each(|effect| model.objects[node][effect.0].touch(effect.1, hash));
            });
        }
        result
    }

    /// A task with effects on objects of the whole cluster. Its part on the home of an object touches it.
    pub(super) fn on_cluster(&mut self, i: usize, step: &OnCluster) -> Observation {
        let &OnCluster { from, to, update, runs, object, fail, .. } = step;
        let nodes = self.objects.len();
        let on = |node: usize, rows| Shares {
            space: GridBox::full([rows]),
            parts: vec![(node, GridBox::full([rows]))],
        };
        let shares = match runs {
            Runs::Once(_) => on(self.cluster[object].1, 1),
            Runs::Collective => self.one_each(),
            Runs::Over { rows, node: None } => self.shares(rows),
            Runs::Over { rows, node: Some(node) } => on(usize::from(node) % nodes, rows),
        };
        let (objects, order) = (step.objects(), step.order());
        let has_part = |node: u16| shares.parts.iter().any(|(of, _)| *of == usize::from(node) % nodes);
        let task = Task {
            nodes: vec![],
            on_cluster: objects.iter().map(|&object| (object, order)).collect(),
            fails: fail.is_some_and(|node| step.is_once() || has_part(node)),
            ..self.in_parts(from, to, update, &shares)
        };
        let result = self.begin(i, &task);
        if !matches!(result, Observation::Refused(_)) {
            self.execute_parts(i, [from, to], update, &shares, |model, node, hash| {
                for &object in &objects {
                    let (object, home) = &mut model.cluster[object];
                    if *home == node {
                        object.touch(order, hash);
                    }
                }
            });
        }
        result
    }
}
