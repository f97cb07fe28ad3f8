//! Several nodes in one process, each with memory and threads of its own: to try and to test a program as it
//! runs on a cluster.

use crate::{builder::Builder, error::Error, runtime::Runtime};
use anabranch_wire::{Endpoint, local::Network};
use std::{panic::resume_unwind, thread};

/// Nodes in this process: see [`local_nodes`].
#[derive(Clone, Debug)]
#[must_use = "nodes do nothing until `run`"]
pub struct LocalNodes {
    nodes: u16,
    builder: Builder,
    seed: u64,
    delays: u32,
    lost: Option<(u16, u64)>,
}

/// Runs a program on several nodes in this process, each with memory and threads of its own.
///
/// Every node runs the whole program. It submits every task, and executes its part: the runtime splits index
/// spaces over the nodes, and sends data to the nodes that need them. See [the guide](crate::guide::nodes).
///
/// ```
/// use anabranch::{local_nodes, prelude::*};
///
/// let results = local_nodes(3).threads(1).run(|rt| {
///     let (u, v) = (rt.buffer::<u64, 1>([100]), rt.buffer::<u64, 1>([100]));
///     rt.task("fill").over([100]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill_with(|[i]| i as u64))?;
///     rt.task("add neighbours").over([100]).read(&u, neighborhood([1])).write(&v, one_to_one()).kernel(
///         |tile, (u, v)| tile.points().for_each(|[i]| v.set([i], u[[i.max(1) - 1]] + u[[(i + 1).min(99)]])),
///     )?;
///     Ok(rt.fence(&v)?.wait()?[[50]])
/// });
/// assert!(results.into_iter().all(|result| result.unwrap() == 49 + 51));
/// ```
pub fn local_nodes(nodes: u16) -> LocalNodes {
    LocalNodes { nodes, builder: Runtime::builder(), seed: 0, delays: 0, lost: None }
}

impl LocalNodes {
    /// Sets the number of compute threads of each node: see [`Builder::threads`].
    pub fn threads(mut self, threads: usize) -> Self {
        self.builder = self.builder.threads(threads);
        self
    }

    /// Sets the settings of each node's runtime.
    pub fn builder(mut self, builder: Builder) -> Self {
        self.builder = builder;
        self
    }

    /// Delays messages, so that they overtake each other: by up to this number of polls of the receiver,
    /// drawn from a seed. The seed also says up to which size data go in one message. Otherwise a program
    /// with little data would never try what it does with large data.
    pub fn delays(mut self, polls: u32, seed: u64) -> Self {
        (self.delays, self.seed) = (polls, seed);
        self
    }

    /// Loses a node when it has sent this number of messages, as if its process was stopped: nothing reaches
    /// it any more, and nothing that it sends arrives. After the [timeout](Builder::node_timeout) every call
    /// on the other nodes returns an error that names it.
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    /// use std::time::Duration;
    ///
    /// let builder = Runtime::builder().threads(1).node_timeout(Duration::from_secs(2));
    /// let results = local_nodes(3).builder(builder).lose(1, 20).run(|rt| -> Result<(), Error> {
    ///     loop {
    ///         rt.wait()?;
    ///     }
    /// });
    /// for node in [0, 2] {
    ///     assert!(results[node].as_ref().unwrap_err().to_string().contains("node 1 "));
    /// }
    /// ```
    pub fn lose(mut self, node: u16, after: u64) -> Self {
        self.lost = Some((node, after));
        self
    }

    /// Runs `program` on each node, on a thread of its own, and returns the results in the order of the
    /// nodes.
    ///
    /// # Panics
    /// If there are no nodes or more than 4,096. If the node to [lose](Self::lose) does not exist. If
    /// `program` panics on a node: when all nodes have ended.
    pub fn run<R: Send>(
        &self,
        program: impl Fn(Runtime) -> Result<R, Error> + Sync,
    ) -> Vec<Result<R, Error>> {
        let Self { nodes, lost, .. } = *self;
        assert!((1..=4096).contains(&nodes), "{nodes} nodes: there must be 1 to 4096");
        assert!(
            lost.is_none_or(|(node, _)| node < nodes),
            "{lost:?} is to be lost, but there are {nodes} nodes"
        );
        let options = match self.builder.transport() {
            Ok(options) => options,
            Err(error) => return (0..self.nodes).map(|_| Err(error.clone())).collect(),
        };
        let eager = [16 << 10, 0, 200, 2000][(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as usize];
        let options = if self.delays > 0 { options.eager(eager) } else { options };
        let network = Network::new(self.nodes).seed(self.seed).delays(self.delays).options(options);
        let network = self.lost.into_iter().fold(network, |network, (node, after)| network.lose(node, after));
        let run = |endpoint: Endpoint| program(self.builder.clone().build_on(endpoint)?);
        thread::scope(|scope| {
            let run = &run;
            let nodes: Vec<_> =
                network.endpoints().into_iter().map(|end| scope.spawn(move || run(end))).collect();
            let results: Vec<_> = nodes.into_iter().map(|node| node.join()).collect();
            results
                .into_iter()
                .map(|result| result.unwrap_or_else(|payload| resume_unwind(payload)))
                .collect()
        })
    }
}
