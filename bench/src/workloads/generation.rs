//! What the commands of a cluster cost each node, against the number of nodes: the time to generate them, and
//! the messages.

use std::{fmt::Write as _, time::Instant};

use anabranch::grid::{Chunk, Extent, GridBox, all, mapper, neighborhood, one_to_one};
use anabranch_graph::{
    BufferId, Mode, TaskId,
    command::{BufferAccess, CommandGraph, CommandKind, Launch, Mapper, NodeId, Reduction, Work, erase},
};

use crate::harness::Failure;

const NODES: [u16; 6] = [4, 16, 64, 256, 1024, 4096];
/// The rows of each index space: at least two for each node.
const ROWS: usize = 1 << 13;

/// A launch of a kernel over rows.
struct Kernel {
    rows: usize,
    accesses: Vec<BufferAccess>,
    reductions: Vec<Reduction>,
}

/// Launches that are repeated, and the extents of their buffers.
struct Cycle {
    name: &'static str,
    buffers: Vec<Extent<3>>,
    kernels: Vec<Kernel>,
}

fn read(buffer: usize, mapper: Mapper) -> BufferAccess {
    BufferAccess { buffer: BufferId(buffer as u64), mode: Mode::Read, mapper }
}

fn write(buffer: usize, extent: Extent<1>) -> BufferAccess {
    BufferAccess {
        buffer: BufferId(buffer as u64),
        mode: Mode::Write,
        mapper: erase::<1, 1>(one_to_one(), extent),
    }
}

/// Two buffers that take turns, the next one computed from what `from` says of the last one.
fn turns(name: &'static str, from: impl Fn() -> Mapper) -> Cycle {
    let extent = Extent([ROWS]);
    let kernel = |last: usize, next: usize| Kernel {
        rows: ROWS,
        accesses: vec![read(last, from()), write(next, extent)],
        reductions: Vec::new(),
    };
    Cycle { name, buffers: vec![extent.cast(); 2], kernels: vec![kernel(0, 1), kernel(1, 0)] }
}

/// Each level adds pairs of the level before, down to one value, which all rows of the first level then read.
fn tree() -> Cycle {
    let sizes: Vec<usize> = std::iter::successors(Some(ROWS), |rows| (*rows > 1).then(|| rows / 2)).collect();
    let extent = |level: usize| Extent([sizes[level]]);
    let pairs = || {
        mapper(|chunk: &Chunk<1>, _: Extent<1>| {
            GridBox::new([2 * chunk.range.min()[0]], [2 * chunk.range.max()[0]])
        })
    };
    let kernel = |level: usize| {
        let before = (level + sizes.len() - 1) % sizes.len();
        let mapper = match level {
            0 => erase::<1, 1>(all(), extent(before)),
            _ => erase::<1, 1>(pairs(), extent(before)),
        };
        let accesses = vec![read(before, mapper), write(level, extent(level))];
        Kernel { rows: sizes[level], accesses, reductions: Vec::new() }
    };
    Cycle {
        name: "tree",
        buffers: sizes.iter().map(|&rows| Extent([rows]).cast()).collect(),
        kernels: (0..sizes.len()).map(kernel).collect(),
    }
}

/// A sum over all rows, which all rows then read.
fn reduction() -> Cycle {
    let (rows, one) = (Extent([ROWS]), Extent([1]));
    let sum = Kernel {
        rows: ROWS,
        accesses: vec![read(0, erase::<1, 1>(one_to_one(), rows))],
        reductions: vec![Reduction { buffer: BufferId(1), include_current: false }],
    };
    let scale = Kernel {
        rows: ROWS,
        accesses: vec![read(1, erase::<1, 1>(all(), one)), write(0, rows)],
        reductions: Vec::new(),
    };
    Cycle { name: "reduction", buffers: vec![rows.cast(), one.cast()], kernels: vec![sum, scale] }
}

fn cycles() -> [Cycle; 4] {
    [
        turns("stencil", || erase::<1, 1>(neighborhood([1]), Extent([ROWS]))),
        turns("all-to-all", || erase::<1, 1>(all(), Extent([ROWS]))),
        tree(),
        reduction(),
    ]
}

/// What one node does for a launch, on average.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Messages that the command graph lists by receiver.
    sent: f64,
    /// Exchanges of data or of partial results in which all nodes take part: the transport chooses their
    /// messages.
    exchanges: f64,
    /// Microseconds, for launches that are repeated, and for the first ones.
    repeated: f64,
    first: f64,
}

impl Cycle {
    /// The cost of a node after `warm` repetitions, over `rounds` more.
    fn cost(&self, node: NodeId, nodes: u16, rounds: usize) -> Result<Cost, Failure> {
        let mut graph = CommandGraph::new(node, nodes);
        for (buffer, extent) in self.buffers.iter().enumerate() {
            graph.create_buffer(BufferId(buffer as u64), *extent, true);
        }
        let (mut task, mut cost) = (0, Cost::default());
        let mut repeat = |times: usize, cost: &mut Cost| -> Result<f64, Failure> {
            let begin = Instant::now();
            for Kernel { rows, accesses, reductions } in (0..times).flat_map(|_| &self.kernels) {
                task += 1;
                let space = GridBox::full([*rows, 1, 1]);
                let launch = Launch::new(TaskId(task), Work::Kernel { space });
                for command in graph.launch(&Launch { accesses, reductions, ..launch })? {
                    match &command.kind {
                        CommandKind::Push { exchange: Some(_), .. } => cost.exchanges += 1.0,
                        CommandKind::Push { targets, .. } => cost.sent += targets.len() as f64,
                        CommandKind::PushPartials { everywhere: true, .. } => cost.exchanges += 1.0,
                        CommandKind::PushPartials { targets, .. } => cost.sent += targets.len() as f64,
                        _ => {}
                    }
                }
            }
            Ok(begin.elapsed().as_secs_f64() * 1e6 / (times * self.kernels.len()) as f64)
        };
        cost.first = repeat(1, &mut Cost::default())?;
        // The first repetitions move the initial contents.
        repeat(3, &mut Cost::default())?;
        let mut seen = Cost::default();
        cost.repeated = repeat(rounds, &mut seen)?;
        let launches = (rounds * self.kernels.len()) as f64;
        (cost.sent, cost.exchanges) = (seen.sent / launches, seen.exchanges / launches);
        Ok(cost)
    }

    /// The cost of the node that sends most, of the first, the middle and the last one.
    fn busiest(&self, nodes: u16, rounds: usize) -> Result<(NodeId, Cost), Failure> {
        let mut busiest: Option<(NodeId, Cost)> = None;
        for node in [nodes / 2, 0, nodes - 1].map(NodeId) {
            let cost = self.cost(node, nodes, rounds)?;
            if busiest.is_none_or(|(_, known)| cost.sent > known.sent) {
                busiest = Some((node, cost));
            }
        }
        Ok(busiest.expect("there are three nodes"))
    }
}

/// Tabulates messages and generation time of the busiest node against the number of nodes.
///
/// # Errors
/// If the command graph refuses a launch.
pub fn nodes_table(smoke: bool) -> Result<String, Failure> {
    let rounds = if smoke { 2 } else { 200 };
    let mut text = format!(
        "Commands of one launch over {ROWS} rows, on the node that sends most (of the first, the middle and the last one)\n\n\
         {:>10} {:>6} {:>6} {:>10} {:>10} {:>12} {:>10}\n",
        "cycle", "nodes", "node", "sent", "exchanges", "repeated us", "first us"
    );
    for cycle in cycles() {
        for nodes in NODES {
            let (node, cost) = cycle.busiest(nodes, rounds)?;
            let Cost { sent, exchanges, repeated, first } = cost;
            let _ = writeln!(
                text,
                "{:>10} {nodes:>6} {:>6} {sent:>10.2} {exchanges:>10.2} {repeated:>12.2} {first:>10.2}",
                cycle.name, node.0
            );
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_per_launch_are_those_of_the_pattern() {
        let _deadline = testing::deadline();
        let [stencil, all_to_all, tree, reduction] = cycles();
        for nodes in [4, 64, 4096] {
            let cost = |cycle: &Cycle| cycle.busiest(nodes, 2).unwrap().1;
            assert_eq!(cost(&stencil).sent, 2.0, "{nodes} nodes");
            let Cost { sent, exchanges, .. } = cost(&all_to_all);
            assert_eq!((sent, exchanges), (0.0, 1.0), "{nodes} nodes");
            assert!(cost(&tree).sent < 2.0 * f64::from(nodes), "{nodes} nodes");
            // One exchange for the two launches, of all nodes, or of those that have leaves with the others.
            let Cost { sent, exchanges, .. } = cost(&reduction);
            assert_eq!(sent + exchanges, 0.5, "{nodes} nodes");
        }
    }
}
