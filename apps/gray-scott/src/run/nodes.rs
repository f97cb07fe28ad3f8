//! What the nodes of a run have in common: their number, the settings that node 0 has chosen for all, and the
//! rows of each.

use crate::{error::Error, kernel::Stepper};
use anabranch::{
    grid::{Chunk, MapperValue, RangeMapper, split_1d},
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

    /// Whether this is the first node, which counts frames.
    pub(super) fn is_first(&self) -> bool {
        self.own == 0
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        self.count.into()
    }

    /// The rows of each node: those that the runtime gives it of a kernel over all rows.
    pub(super) fn rows(&self, rows: usize) -> RowsOfNodes {
        let parts = split_1d(&GridBox::full(rows), self.count(), 1);
        let bound = |node: usize| parts.get(node).map_or(rows, |part| part.min()[0]);
        RowsOfNodes { bounds: (0..=self.count()).map(bound).collect(), own: self.own.into(), most: rows }
    }
}

/// The rows of each node. As a range mapper it maps each node, a point of the index space of a collective
/// task, to its rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowsOfNodes {
    /// The first row of each node, and then the number of rows.
    bounds: Arc<[usize]>,
    /// This node.
    own: usize,
    /// The most rows of each node, its first ones.
    most: usize,
}

impl RowsOfNodes {
    /// The rows of a node.
    pub(super) fn of(&self, node: usize) -> Range<usize> {
        let [first, end] = [self.bounds[node], self.bounds[node + 1]];
        first..end.min(first.saturating_add(self.most))
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

    /// The first rows of each node, at most this many: for a task that needs the values of few or none.
    pub(super) fn at_most(&self, most: usize) -> Self {
        Self { most, ..self.clone() }
    }
}

impl RangeMapper<1, 2> for RowsOfNodes {
    type Shape = AnyBoxes<2>;

    fn map(&self, chunk: &Chunk<1>, buffer: Extent<2>) -> Region<2> {
        // In a dry run there are more nodes than the program runs on: these have no rows.
        let [first, end] = [chunk.range.min()[0], chunk.range.max()[0]].map(|node| node.min(self.nodes()));
        let rows = (first..end).map(|node| self.of(node));
        rows.map(|rows| GridBox::new([rows.start, 0], [rows.end, buffer[1]])).collect()
    }

    fn describe(&self) -> String {
        "the rows of each node".into()
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

/// A range mapper for numbers of all nodes, a row for each: maps each node to its row. Other nodes, of a dry
/// run, have none.
pub(super) fn own_row(node: &Chunk<1>, buffer: Extent<2>) -> GridBox<2> {
    GridBox::new([node.range.min()[0], 0], [node.range.max()[0].min(buffer[0]), buffer[1]])
}

/// The same for a number of each node.
pub(super) fn own_element(node: &Chunk<1>, buffer: Extent<1>) -> GridBox<1> {
    GridBox::new(node.range.min()[0], node.range.max()[0].min(buffer[0]))
}

/// Maps each tile of a kernel to its rows, in a buffer with one element for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowsOfTile;

impl RangeMapper<2, 1> for RowsOfTile {
    type Shape = OneBox<1>;

    fn map(&self, tile: &Chunk<2>, _: Extent<1>) -> Region<1> {
        GridBox::new(tile.range.min()[0], tile.range.max()[0]).into()
    }

    fn describe(&self) -> String {
        "the rows of each tile".into()
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::local_nodes;

    #[test]
    fn the_first_rows_of_nodes_are_a_part_of_those_that_each_has() {
        let _deadline = testing::deadline();
        // Rows 0 to 2, 3 to 4 and 5 to 6. A dry run has more nodes than the program.
        let nodes = Nodes { count: 3, own: 1, threads: 1, steps: 1 }.rows(7);
        let mapped = |most, first, end| {
            let (range, global) = (GridBox::new(first, end), GridBox::new(0, 5));
            nodes.at_most(most).map(&Chunk { range, global }, Extent::from([7, 2]))
        };
        let rows = |first, end| GridBox::new([first, 0], [end, 2]);
        assert_eq!(mapped(7, 0, 5), rows(0, 7).into());
        assert_eq!(mapped(1, 0, 5), [rows(0, 1), rows(3, 4), rows(5, 6)].into_iter().collect());
        assert_eq!([mapped(1, 1, 2), mapped(7, 1, 2)], [rows(3, 4), rows(3, 5)].map(Region::from));
        assert_eq!([mapped(0, 0, 5), mapped(1, 3, 5)], [Region::empty(), Region::empty()]);
        assert_eq!(nodes.at_most(1).own(), 3..4);
    }

    /// Each node stores the rows that it computes.
    #[test]
    fn the_rows_of_a_node_are_those_that_the_runtime_gives_it() {
        let _deadline = testing::deadline();
        for (count, rows) in [(1, 5), (2, 9), (4, 13), (4, 3), (7, 9), (3, 100)] {
            let computed = local_nodes(count).threads(1).run(move |rt| {
                let (owner, own) = (rt.buffer::<u64, 1>([rows]), u64::from(rt.node()));
                let task = rt.task("rows").over([rows, 4]).pieces(6).write(&owner, RowsOfTile);
                task.kernel(move |_, (owner,)| owner.fill(own))?;
                Ok::<_, anabranch::Error>(rt.fence(&owner)?.wait()?.into_vec())
            });
            let owners = computed.into_iter().next().expect("there is a node").expect("no task fails");
            for node in 0..count {
                let nodes = Nodes { count, own: node, threads: 1, steps: 1 };
                let own = nodes.rows(rows).own();
                let expected: Vec<_> = (0..rows).filter(|&row| owners[row] == u64::from(node)).collect();
                assert_eq!(Vec::from_iter(own), expected, "node {node} of {count}, {rows} rows");
            }
        }
    }
}
