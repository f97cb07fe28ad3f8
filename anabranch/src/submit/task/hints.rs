//! The settings of a task: how it is split, and how it is run.

use crate::{error::Error, label::TaskLabel, submit::launch::declaration::Declaration};
use anabranch_graph::command::{self, NodeId, Tiling, Work};
use anabranch_grid::{GridBox, split_1d};
use anabranch_kernel::Leaves;

/// Splits a box into a number of chunks, with a granularity along the first two dimensions.
pub(in crate::submit) type Split<const K: usize> = fn(&GridBox<K>, usize, [usize; 2]) -> Vec<GridBox<K>>;

/// The settings of a task.
#[derive(Clone, Copy, Debug)]
pub(in crate::submit) struct Hints<const K: usize> {
    pub(in crate::submit) chunks: Option<usize>,
    /// The number of pieces, on all nodes.
    pub(in crate::submit) pieces: usize,
    pub(in crate::submit) granularity: [usize; 2],
    pub(in crate::submit) split: Split<K>,
    pub(in crate::submit) flush_denormals: bool,
    /// Of a recorded kernel: whether a device rounds each product by itself.
    pub(in crate::submit) precise: bool,
    pub(in crate::submit) priority: i32,
    /// Whether the split is into tiles, for the recorder.
    pub(in crate::submit) tiles: bool,
    pub(in crate::submit) node: Option<u16>,
    /// Of a recorded kernel with reductions: the number of bands of its index space, which are the leaves for
    /// the command graph.
    bands: Option<usize>,
    /// The homes of the host objects of the whole cluster that a task which runs once has effects on: of
    /// several different ones two.
    homes: [Option<u16>; 2],
    /// Whether the function blocks.
    pub(in crate::submit) blocking: bool,
}

impl<const K: usize> Default for Hints<K> {
    fn default() -> Self {
        let rows: Split<K> = |range, count, granularity| split_1d(range, count, granularity[0]);
        Self {
            chunks: None,
            pieces: 1,
            granularity: [1; 2],
            split: rows,
            flush_denormals: false,
            precise: false,
            priority: 0,
            tiles: false,
            node: None,
            bands: None,
            homes: [None; 2],
            blocking: false,
        }
    }
}

impl<const K: usize> Hints<K> {
    /// Notes the settings for the command graph, if the task has a record.
    pub(in crate::submit) fn record(&self, declaration: &mut Declaration<'_, K>, work: Work) {
        let Some(record) = &mut declaration.record else { return };
        record.work = work;
        record.hints = self.for_nodes(declaration.core.nodes());
        record.flush_denormals = self.flush_denormals;
    }

    /// Cuts the index space at the bands of the leaves of a recorded reduction only, whatever else was set.
    ///
    /// # Errors
    /// If there are too many leaves to count.
    pub(in crate::submit) fn cut_at_bands(&mut self, task: &TaskLabel, leaves: Leaves) -> Result<(), Error> {
        if u32::try_from(leaves.count()).is_err() {
            let setting = "the index space of its reduction";
            let value = format!("{} leaves of 4096 points", leaves.count());
            return Err(Error::of_setting(task, setting, value, "fewer than 2^32 leaves"));
        }
        (self.granularity, self.tiles, self.pieces) = ([leaves.rows_of_band(), 1], false, 1);
        self.bands = Some((leaves.count() / leaves.per_band()).max(1));
        Ok(())
    }

    /// Whether the index space is cut at the bands of a recorded reduction.
    pub(in crate::submit) fn has_bands(&self) -> bool {
        self.bands.is_some()
    }

    /// Notes the home of an object that the task has an effect on.
    pub(in crate::submit) fn add_home(&mut self, home: u16) {
        match self.homes {
            [None, _] => self.homes[0] = Some(home),
            [Some(first), _] if first == home => {}
            _ => self.homes[1] = Some(home),
        }
    }

    /// Places a task that runs once on the home of its objects.
    pub(in crate::submit) fn go_home(&mut self, task: &TaskLabel) -> Result<(), Error> {
        let setting = "its node";
        match (self.homes, self.node) {
            ([None, _], _) => return Ok(()),
            ([Some(first), Some(second)], _) => {
                let value = format!("{first} and {second}, the homes of two of its host objects");
                return Err(Error::of_setting(task, setting, value, "objects with one home, or two tasks"));
            }
            ([Some(home), None], Some(node)) if node != home => {
                let value = format!("{node}, but the home of its host object is node {home}");
                return Err(Error::of_setting(task, setting, value, "the home, or no `on_node`"));
            }
            ([home, None], _) => self.node = home,
        }
        Ok(())
    }

    /// How the task is distributed over this number of nodes.
    pub(in crate::submit) fn for_nodes(&self, nodes: u16) -> command::Hints {
        let nodes = if self.node.is_some() { 1 } else { nodes };
        command::Hints {
            pieces: self.pieces.div_ceil(nodes.into()),
            granularity: self.granularity,
            tiling: if self.tiles { Tiling::Tiles } else { Tiling::Rows },
            node: self.node.map(NodeId),
            leaves: self.bands.or(self.chunks),
            own_regions: None,
        }
    }
}
