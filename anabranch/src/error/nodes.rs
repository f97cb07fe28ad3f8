//! Why a run on several nodes has ended.

use anabranch_wire::WireError;

/// Why a run on several nodes has ended on all of them.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Something has failed on this node.
    #[error("the run has ended on all nodes, because this node has failed: {why}")]
    Here {
        /// What has failed.
        why: String,
    },
    /// Something has failed on another node.
    #[error("the run has ended on all nodes, because node {node} has failed: {why}")]
    Other {
        /// The other node.
        node: u16,
        /// What has failed there.
        why: String,
    },
    /// The nodes run different programs.
    #[error(
        "the run has ended on all nodes, because {}: every node must submit the same tasks, in the same order, and \
         make the calls that concern all nodes (`wait`, `check`, `agree`, `set_weights`, `communicator`, `drain`) \
         at the same points",
        different(*.nodes, *.number, .here)
    )]
    Different {
        /// The node that has noticed it, and the one that differs from it.
        nodes: [u16; 2],
        /// The first submission that differs: all tasks count, and all calls that concern all
        /// nodes, from 1.
        number: u64,
        /// The submission on the first of the two nodes.
        here: String,
    },
    /// The transport has failed.
    #[error("the run has ended on all nodes: {0}")]
    Transport(#[source] WireError),
}

fn different(nodes: [u16; 2], number: u64, here: &str) -> String {
    format!(
        "submission {number} of the program is {here} on node {}, and something else on node {}",
        nodes[0], nodes[1]
    )
}

impl NodeError {
    /// The reason that the transport of node `me` gives.
    pub(crate) fn from_wire(error: WireError, me: u16) -> Self {
        match error {
            WireError::Aborted { node, why } if node != me => Self::Other { node, why },
            other => Self::Transport(other),
        }
    }

    /// The message for the other nodes, unless they know it.
    pub(crate) fn to_others(&self) -> Option<String> {
        match self {
            Self::Here { why } => Some(why.clone()),
            Self::Different { nodes, number, here } => Some(different(*nodes, *number, here)),
            Self::Other { .. } | Self::Transport(_) => None,
        }
    }
}
