//! Weights of the nodes: how a program shares uneven work, or work among uneven nodes.

use crate::{error::Error, runtime::Runtime};

impl Runtime {
    /// Sets the weight of each node: its share of the index spaces of kernels and host tasks that are
    /// submitted from here on. At first all weights are equal.
    ///
    /// A node gets a number of rows in proportion to its weight, in multiples of the
    /// [granularity](crate::interface::TaskBuilder::granularity), and with weight 0 none. Only the ratios of
    /// the weights matter. The data follows: what a node needs for its new rows is sent to it when a task
    /// uses it. No result changes. Those of reductions have the same bits, too, because their chunks stay as
    /// they are: each node has a run of whole chunks.
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    ///
    /// let rows = local_nodes(3).threads(1).run(|rt| {
    ///     let count = rt.host_object(0);
    ///     rt.set_weights(&[1.0, 0.0, 2.0])?;
    ///     rt.task("count").over([90]).effect(&count, sequential()).host(|tile, (count,)| *count = tile.points().count())?;
    ///     rt.drain(count.capture())
    /// });
    /// assert_eq!(rows.into_iter().collect::<Result<Vec<_>, _>>()?, [30, 0, 60]);
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// A program that measures how long each node computes [balances
    /// itself](crate::guide::nodes#uneven-load). If a task has `tiles`, each row of tiles gets a height in
    /// proportion to the sum of its nodes' weights, and each node in the row a width in proportion to its own.
    /// Weights have no effect on tasks that run once, on every node or
    /// [on one node](crate::interface::TaskBuilder::on_node).
    ///
    /// All nodes must call it with the same weights at the same point of the program; weights that differ are
    /// the [error](crate::NodeError::Different) of programs that differ. The nodes do not meet. On one node
    /// it changes nothing. In a [dry run](crate::Builder::dry_run) on one node there may be a weight for each
    /// node of the dry run.
    ///
    /// # Errors
    /// [`Error::Setting`] unless there is a weight for each node, a finite number that is at least 0, and one
    /// that is larger. With [several nodes](crate::guide::nodes), if the run has ended or if this thread may
    /// not submit.
    pub fn set_weights(&self, weights: &[f64]) -> Result<(), Error> {
        self.core.set_weights(weights)
    }
}
