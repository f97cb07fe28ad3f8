//! The derivation of graphs: the task graph, and the commands of one node of a cluster.

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome, Quantities},
    row::Row,
    workloads::topologies::{
        Node, Topology, chain, contracting_tree, expanding_tree, jacobi, soup, wave_sim, wave_sim_on,
    },
};

/// A topology's name, its constructor, and its bars.
type Entry = (&'static str, fn() -> Topology, Bars);

/// Microseconds per task: the task graph alone, with the commands of a single node, and with those of one of
/// 16 nodes.
struct Bars {
    bar: [f64; 3],
    better: [f64; 3],
}

pub fn rows() -> Vec<Row> {
    let tree = || Bars { bar: [0.7, 0.76, 4.2], better: [0.3, 0.6, 2.0] };
    let topologies: [Entry; 6] = [
        ("soup", soup, Bars { bar: [1.75, 1.94, 3.88], better: [0.4, 0.8, 2.0] }),
        ("chain", chain, Bars { bar: [0.47, 0.4, 6.56], better: [0.25, 0.3, 6.0] }),
        ("expanding-tree", expanding_tree, tree()),
        ("contracting-tree", contracting_tree, tree()),
        ("wave-sim", wave_sim, Bars { bar: [0.8, 0.78, 4.1], better: [0.25, 0.5, 1.0] }),
        ("jacobi", jacobi, Bars { bar: [0.85, 0.82, 4.68], better: [0.25, 0.5, 1.0] }),
    ];
    let stage = |stage: usize| {
        let node = [None, Some(1), Some(16)][stage];
        topologies.iter().map(move |(name, topology, bars)| {
            let (name, about) = match node {
                None => (format!("graph/{name}"), "per task: deriving a new task graph, on one thread"),
                Some(nodes) => (
                    format!("commands/{name}/nodes-{nodes}"),
                    "per task: a new task graph and the commands of its middle node, on one thread",
                ),
            };
            generation(name, about, *topology, node.map(Node::middle))
                .bar(bars.bar[stage])
                .better(bars.better[stage])
        })
    };
    let new_mappers = || wave_sim().with_new_mappers();
    let about = "per task: as `nodes-16`, with a new mapper for each access, as each submission to a runtime makes them";
    let more = [
        generation(
            "commands/wave-sim/nodes-16-new-mappers".into(),
            about,
            new_mappers,
            Some(Node::middle(16)),
        ),
        Row::lower(
            "commands/wave-sim/4096-over-4",
            "x",
            "time per task with 4,096 nodes / with 4 nodes, of the wave equation on 8192²",
            scaling,
        )
        .bar(1.5)
        .better(1.1),
    ];
    let epochs = [
        epoch_over_none("soup", soup),
        epoch_over_none("chain", chain),
        epoch_over_none("wave-sim", wave_sim),
        epoch_over_none("jacobi", jacobi),
    ];
    (0..3).flat_map(stage).chain(more).chain(epochs).collect()
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

/// What an epoch at the end of a program costs: figure 7 of the paper on declarative data flow.
fn epoch_over_none(name: &str, topology: fn() -> Topology) -> Row {
    Row::lower(
        format!("commands/{name}/epoch-over-none"),
        "x",
        "time of `nodes-16` for a program that ends with an epoch / for one that does not",
        move |context: &Context| {
            let (with, without) = (topology().with_epoch(), topology());
            let time = |topology| per_task(context, topology, Some(Node::middle(16)));
            Quantities::new()
                .quantity("an epoch (us)", || time(&with))
                .quantity("none (us)", || time(&without))
                .run(context.pick(20, 1), |medians| medians[0] / medians[1])
        },
    )
}

fn scaling(context: &Context) -> Result<Outcome, Failure> {
    let topology = wave_sim_on(8192);
    let with = |nodes| per_task(context, &topology, Some(Node::middle(nodes)));
    Quantities::new()
        .quantity("4,096 nodes (us)", || with(4096))
        .quantity("4 nodes (us)", || with(4))
        .run(context.pick(20, 1), |medians| medians[0] / medians[1])
}
