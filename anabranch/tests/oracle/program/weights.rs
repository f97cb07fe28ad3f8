//! Weights of the nodes: the shares of the index spaces that they divide.

use super::{Split, mix};
use anabranch::grid::{GridBox, split_1d, split_2d};
use std::ops::Range;

/// The weights of all nodes. They are small whole numbers, so that shares are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<usize>);

impl Weights {
    /// Those that hold at first.
    pub fn equal(nodes: usize) -> Self {
        Self(vec![1; nodes])
    }

    /// Those that follow from a number: about a third of the nodes have none, or all have the same again.
    pub fn drawn(number: u8, nodes: usize) -> Self {
        if number.is_multiple_of(5) {
            return Self::equal(nodes);
        }
        let weight = |node: usize| (mix(number.into(), node as u64) % 6).saturating_sub(1) as usize;
        let mut weights: Vec<_> = (0..nodes).map(weight).collect();
        weights[usize::from(number) % nodes] = 3;
        Self(weights)
    }

    /// What the runtime gets. Only the ratios count.
    pub fn numbers(&self) -> Vec<f64> {
        self.0.iter().map(|&weight| weight as f64 / 32.0).collect()
    }

    fn are_equal(&self) -> bool {
        self.0.iter().all(|weight| *weight == self.0[0])
    }

    fn sum(&self, nodes: Range<usize>) -> usize {
        self.0[nodes].iter().sum()
    }

    /// The share of the nodes `run` in things that the nodes `among` divide. A border is rounded to the
    /// nearest thing, up at a tie.
    fn share(&self, things: usize, among: Range<usize>, run: Range<usize>) -> Range<usize> {
        let all = self.sum(among.clone()).max(1);
        let border = |node: usize| (2 * things * self.sum(among.start..node) + all) / (2 * all);
        border(run.start)..border(run.end)
    }

    /// The nodes that have any of these things, and which ones each has.
    pub fn runs(&self, things: usize) -> Vec<(usize, Range<usize>)> {
        let nodes = self.0.len();
        let run = |(node, run): (usize, GridBox<1>)| (node, run.min()[0]..run.max()[0]);
        let runs: Vec<_> = match self.are_equal() {
            true => (0..).zip(split_1d(&GridBox::full([things]), nodes, 1)).map(run).collect(),
            false => (0..nodes).map(|node| (node, self.share(things, 0..nodes, node..node + 1))).collect(),
        };
        runs.into_iter().filter(|(_, run)| !run.is_empty()).collect()
    }

    /// The nodes that have a chunk of an index space of this rank, and which.
    pub fn chunks(&self, split: &Split, rank: usize, space: &GridBox<3>) -> Vec<(usize, GridBox<3>)> {
        if space.is_empty() {
            return Vec::new();
        }
        let (tiles, nodes) = (split.tiles.filter(|_| rank >= 2), self.0.len());
        if let Some(granularity) = tiles {
            let chunks = split_2d(space, nodes, granularity);
            if self.are_equal() {
                return (0..).zip(chunks).collect();
            }
            let width = chunks.iter().filter(|chunk| chunk.min()[0] == space.min()[0]).count();
            // If the tiles are fewer than the nodes, the chunks are rows.
            if chunks.len() == nodes {
                return self.tiles(space, granularity, width);
            }
        }
        let granularity = tiles.map_or(split.granularity, |[rows, _]| rows);
        let rows = self.runs(units(space, 0, granularity));
        rows.into_iter().map(|(node, rows)| (node, cut(space, 0, granularity, rows))).collect()
    }

    /// Rows of tiles in proportion to the weights of their nodes together, and columns in proportion within a
    /// row.
    fn tiles(&self, space: &GridBox<3>, [high, wide]: [usize; 2], width: usize) -> Vec<(usize, GridBox<3>)> {
        let nodes = self.0.len();
        let tile = |node: usize| {
            let row = node / width * width..node / width * width + width;
            let rows = self.share(units(space, 0, high), 0..nodes, row.clone());
            let columns = match self.sum(row.clone()) {
                0 => 0..0,
                _ => self.share(units(space, 1, wide), row, node..node + 1),
            };
            (node, cut(&cut(space, 0, high, rows), 1, wide, columns))
        };
        (0..nodes).map(tile).filter(|(_, tile)| !tile.is_empty()).collect()
    }
}

/// The number of units of this size along an axis.
fn units(space: &GridBox<3>, axis: usize, granularity: usize) -> usize {
    (space.max()[axis] - space.min()[axis]).div_ceil(granularity)
}

/// These units of an axis.
fn cut(space: &GridBox<3>, axis: usize, granularity: usize, units: Range<usize>) -> GridBox<3> {
    let (mut min, mut max) = (space.min().0, space.max().0);
    let at = |unit: usize| (space.min()[axis] + unit * granularity).min(space.max()[axis]);
    (min[axis], max[axis]) = (at(units.start), at(units.end));
    GridBox::new(min, max)
}
