//! What the nodes of a run have in common: their number, the settings that node 0 has chosen for all, and the rows of each.

use crate::{error::Error, kernel::Stepper};
use anabranch::{
    grid::{Chunk, MapperValue, RangeMapper},
    prelude::*,
};
use anabranch_store::checkpoint::Checksum;
use std::{ops::Range, sync::Arc};

/// The nodes of a run, one or several. All nodes have the same values, so that they submit the same tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes {
    count: u16,
    /// This node.
    own: u16,
    /// The threads of all nodes.
    pub(super) threads: usize,
    /// The largest number of steps that a sweep should have.
    pub(super) steps: usize,
}

impl Nodes {
    /// The nodes of the runtime. With several, the first one decides for all.
    pub(super) fn new(rt: &Runtime, stepper: &Stepper) -> Result<Self, Error> {
        let (count, mut values) = (rt.nodes(), [rt.threads(), stepper.preferred_steps()]);
        if count > 1 {
            let own = values.map(|value| value as u64);
            let decided = rt.buffer::<u64, 1>([own.len()]).named("decided");
            let task = rt.task("decide").once().write(&decided, all());
            task.host(move |(decided,)| decided.fill_with(|[i]| own[i]))?;
            let decided = rt.fence(&decided)?.wait()?;
            values = [0, 1].map(|i| decided[[i]] as usize);
        }
        let [threads, steps] = values;
        Ok(Self { count, own: rt.node(), threads: threads * usize::from(count), steps })
    }

    pub(super) fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        self.count.into()
    }

    /// The node of a band: consecutive bands are on the same node.
    pub(super) fn of_band(&self, band: usize, bands: usize) -> u16 {
        (band * self.count() / bands) as u16
    }

    /// The rows of each node: those of its bands, which follow each other.
    pub(super) fn rows(&self, bands: &[GridBox<2>]) -> RowsOfNodes {
        let rows = bands.last().map_or(0, |last| last.max()[0]);
        let bound = |node: usize| {
            let first = (node * bands.len()).div_ceil(self.count());
            bands.get(first).map_or(rows, |band| band.min()[0])
        };
        RowsOfNodes { bounds: (0..=self.count()).map(bound).collect(), own: self.own.into() }
    }
}

/// The rows of each node. As a range mapper it maps each node, a point of the index space of a collective task, to its rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowsOfNodes {
    /// The first row of each node, and then the number of rows.
    bounds: Arc<[usize]>,
    /// This node.
    own: usize,
}

impl RowsOfNodes {
    /// The rows of a node.
    pub(super) fn of(&self, node: usize) -> Range<usize> {
        self.bounds[node]..self.bounds[node + 1]
    }

    /// The rows of this node.
    pub(super) fn own(&self) -> Range<usize> {
        self.of(self.own)
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The checksum of all rows, from those of each node's, of a field with this many columns.
    pub(super) fn combine(&self, cols: usize, of: impl Fn(usize) -> u32) -> Checksum {
        let sums = (0..self.nodes()).map(|node| Checksum::new(of(node), (self.of(node).len() * cols) as u64));
        sums.reduce(Checksum::followed_by).expect("there is a node")
    }

    /// No rows on any node: for a task that needs the values of none.
    pub(super) fn none(&self) -> Self {
        Self { bounds: self.bounds.iter().map(|_| 0).collect(), own: self.own }
    }
}

impl RangeMapper<1, 2> for RowsOfNodes {
    fn map(&self, chunk: &Chunk<1>, buffer: Extent<2>) -> Region<2> {
        let [first, end] = [chunk.range.min()[0], chunk.range.max()[0]].map(|node| self.bounds[node]);
        GridBox::new([first, 0], [end, buffer[1]]).into()
    }

    fn describe(&self) -> String {
        "the rows of each node".into()
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

/// A range mapper for numbers of all nodes, a row for each: maps each node to its row.
pub(super) fn own_row(node: &Chunk<1>, buffer: Extent<2>) -> GridBox<2> {
    GridBox::new([node.range.min()[0], 0], [node.range.max()[0], buffer[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::grid::split_1d;

    #[test]
    fn the_rows_of_all_nodes_are_those_of_their_bands() {
        for (count, bands, rows) in [(1, 1, 5), (4, 12, 13), (4, 3, 3), (7, 2, 9), (3, 7, 100), (5, 5, 5)] {
            let nodes = Nodes { count, own: 0, threads: 1, steps: 1 };
            let bands = split_1d(&GridBox::full([rows, 8]), bands, 1);
            let parts = nodes.rows(&bands);
            let mut end = 0;
            for node in 0..count {
                let own = parts.of(node.into());
                assert_eq!(own.start, end);
                end = own.end;
                for (number, band) in bands.iter().enumerate() {
                    let inside = nodes.of_band(number, bands.len()) == node;
                    let contains = own.start <= band.min()[0] && band.max()[0] <= own.end;
                    assert_eq!(
                        inside,
                        contains,
                        "band {number} of {} on node {node} of {count}",
                        bands.len()
                    );
                }
                let chunk = Chunk {
                    range: GridBox::new(usize::from(node), usize::from(node) + 1),
                    global: GridBox::full(usize::from(count)),
                };
                let region = parts.map(&chunk, Extent([rows, 8]));
                assert_eq!(region, GridBox::new([own.start, 0], [own.end, 8]).into());
            }
            assert_eq!(end, rows);
        }
    }
}
