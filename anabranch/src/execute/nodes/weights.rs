//! The weights of the nodes: their shares in the index spaces of later tasks.

use super::{super::core::Core, plan::SET_WEIGHTS};
use crate::error::Error;
use anabranch_graph::command::Weights;
use std::sync::atomic::Ordering::Relaxed;

impl Core {
    /// Sets the weights of the nodes for tasks that are submitted later.
    ///
    /// # Errors
    /// [`Error::Setting`]. With several nodes: if the calling thread may not submit, or the run has ended.
    pub(crate) fn set_weights(&self, given: &[f64]) -> Result<(), Error> {
        self.id().check_process(SET_WEIGHTS)?;
        self.check_submitter(|| SET_WEIGHTS.into())?;
        let nodes = self.cluster().map_or(1, |cluster| cluster.nodes());
        // In a dry run on one node, those of the dry run, too.
        let is_one_each = [nodes, self.nodes()].map(usize::from).contains(&given.len());
        let weights = Weights::new(given).filter(|_| is_one_each);
        let Some(weights) = weights else {
            let value = format!("{given:?}, with {nodes} node{}", if nodes == 1 { "" } else { "s" });
            let range = "one finite number for each node, at least 0, and larger for one of them";
            return Err(self.refuse(Error::Setting { setting: "the list of weights", value, range }));
        };
        if let Some(nodes) = self.several_nodes() {
            let mut turn = nodes.begin_turn(|| SET_WEIGHTS.into())?;
            turn.graph().set_weights(&weights);
            let hash = turn.graph().program_hash();
            drop(turn);
            nodes.times_weighted.fetch_add(1, Relaxed);
            nodes.cluster().called(SET_WEIGHTS, hash)?;
        }
        self.record_weights(&weights);
        Ok(())
    }
}
