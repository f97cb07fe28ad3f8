//! The derivation of graphs: the task graph, and the commands of one node of a cluster.

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::CELERITY,
    row::{Row, times},
    workloads::topologies::{
        Node, Topology, chain, contracting_tree, expanding_tree, jacobi, soup, wave_sim, wave_sim_on,
    },
};

/// A topology's name, its constructor, and its figures.
type Entry = (&'static str, fn() -> Topology, Figures);

/// Microseconds per task: the task graph alone, with the commands of a single node, and with those of one of 16 nodes.
/// Celerity's are medians.
struct Figures {
    celerity: [f64; 3],
    better: [f64; 3],
}

pub fn rows() -> Vec<Row> {
    let tree = || Figures { celerity: [1.4, 3.8, 21.0], better: [0.3, 0.6, 4.0] };
    let topologies: [Entry; 6] = [
        ("soup", soup, Figures { celerity: [3.5, 9.7, 19.4], better: [0.4, 0.8, 2.0] }),
        ("chain", chain, Figures { celerity: [0.94, 2.0, 32.8], better: [0.25, 0.5, 6.0] }),
        ("expanding-tree", expanding_tree, tree()),
        ("contracting-tree", contracting_tree, tree()),
        ("wave-sim", wave_sim, Figures { celerity: [1.6, 3.9, 20.5], better: [0.25, 0.5, 1.0] }),
        ("jacobi", jacobi, Figures { celerity: [1.7, 4.1, 23.4], better: [0.25, 0.5, 1.0] }),
    ];
    let stage = |stage: usize| {
        let (share, node) = [(0.5, None), (0.2, Some(1)), (0.2, Some(16))][stage];
        topologies.iter().map(move |(name, topology, figures)| {
            let (name, about) = match node {
                None => (format!("graph/{name}"), "per task: deriving the task graph"),
                Some(nodes) => (
                    format!("commands/{name}/nodes-{nodes}"),
                    "per task: the task graph and one node's commands",
                ),
            };
            generation(name, about, *topology, node.map(Node::middle))
                .bar(times(share, CELERITY))
                .better(figures.better[stage])
                .quoted(CELERITY, figures.celerity[stage])
        })
    };
    let unknown = || wave_sim().with_new_mappers();
    let about = "per task: as nodes-16, no two mappers known to be equal";
    let more = [
        generation("commands/wave-sim/nodes-16-new-mappers".into(), about, unknown, Some(Node::middle(16))),
        Row::lower(
            "commands/wave-sim/4096-over-4",
            "x",
            "time for 4,096 nodes / time for 4 nodes, on 8192²",
            scaling,
        )
        .bar(1.5)
        .better(1.1),
    ];
    (0..3).flat_map(stage).chain(more).collect()
}

fn generation(name: String, about: &'static str, topology: fn() -> Topology, node: Option<Node>) -> Row {
    Row::lower(name, "us", about, move |context: &Context| -> Result<Outcome, Failure> {
        let topology = topology();
        Contest::ours(|| per_task(context, &topology, node)).run(context, context.pick(20, 1))
    })
}

/// Microseconds per task; each sample derives a new graph.
fn per_task(context: &Context, topology: &Topology, node: Option<Node>) -> Result<Vec<f64>, Failure> {
    let load = Load::back_to_back(context.pick(100, 3), 1);
    let times = load.try_time(|| topology.generate(node))?;
    Ok(times.into_iter().map(|ns| ns / 1e3 / topology.len() as f64).collect())
}

/// Measures both numbers of nodes on the same visit, and compares the fastest graph of each.
fn scaling(context: &Context) -> Result<Outcome, Failure> {
    let topology = wave_sim_on(8192);
    let fastest = |nodes| {
        let times = per_task(context, &topology, Some(Node::middle(nodes)))?;
        Ok::<_, Failure>(times.into_iter().fold(f64::INFINITY, f64::min))
    };
    Contest::ours(|| Ok(vec![fastest(4096)? / fastest(4)?])).run(context, context.pick(20, 1))
}
