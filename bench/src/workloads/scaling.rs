//! A simulated scaling curve: the commands that each node of a cluster generates for the main program, on a
//! model of the cluster.
//!
//! The commands and their order are those that the nodes would execute. The model says how long each takes:
//!
//! - A node computes one command at a time, with all its threads. A cell takes [`Model::cell`].
//! - A node sends one message at a time. It takes [`Model::byte`] for each byte, and arrives
//!   [`Model::message`] later.
//! - A node generates and submits one command after the other, each in [`Model::command`], as far ahead of
//!   their execution as it gets.
//! - Everything else takes no time.

use std::{collections::HashMap, fmt::Write as _};

use anabranch::grid::{Extent, GridBox, Region, neighborhood, one_to_one};
use anabranch_graph::{
    BufferId, Mode, TaskId,
    command::{
        BufferAccess, Command, CommandGraph, CommandKind, Hints, Launch, NodeId, Target, TransferName, Work,
        erase,
    },
};

use crate::harness::Failure;

const NODES: [u16; 6] = [1, 4, 16, 64, 256, 1024];
/// The rows and the columns of the grid.
const SIDE: usize = 8192;
/// Steps before and in the simulated measurement.
const WARM: usize = 4;
const STEPS: usize = 20;

/// The speed of a cluster, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// To compute a cell.
    cell: f64,
    /// To generate and submit a command.
    command: f64,
    /// From the end of sending a message to its use.
    message: f64,
    /// To send a byte.
    byte: f64,
}

/// Nodes like the machine of the recorded figures: `bench/README.md` says where each comes from.
const MEASURED: Model = Model { cell: 0.339e-3, command: 1.0, message: 20.0, byte: 1e-4 };
/// The same with messages that take as long as a network needs.
const NETWORK: Model = Model { message: 2.0, ..MEASURED };

/// Messages on their way: by transfer and receiver, the regions and when they arrive.
type Arrivals = HashMap<(TransferName, NodeId), Vec<(Region<3>, f64)>>;

/// A command, and when it was submitted.
struct Submitted {
    command: Command,
    at: f64,
}

/// A node: its commands, when each ends, and until when its parts are busy.
struct Node {
    graph: CommandGraph,
    ends: Vec<Option<f64>>,
    submits: f64,
    sends: f64,
    computes: f64,
}

impl Node {
    fn new(node: u16, nodes: u16) -> Self {
        let mut graph = CommandGraph::new(NodeId(node), nodes);
        for buffer in 0..4 {
            graph.create_buffer(BufferId(buffer), Extent([SIDE, SIDE]).cast(), true);
        }
        // The first command is the epoch that comes before all others.
        Self { graph, ends: vec![Some(0.0)], submits: 0.0, sends: 0.0, computes: 0.0 }
    }

    /// Generates and submits the commands of a launch.
    fn submit(&mut self, launch: &Launch<'_>, model: &Model) -> Result<Vec<Submitted>, Failure> {
        let mut submitted = Vec::new();
        for command in self.graph.launch(launch)? {
            self.submits += model.command;
            self.ends.resize(command.id.0 as usize + 1, None);
            submitted.push(Submitted { command: command.clone(), at: self.submits });
        }
        Ok(submitted)
    }

    /// When the command can begin: it is submitted, and what it depends on has ended. `None` if the latter is
    /// not known yet.
    fn ready(&self, command: &Command, submitted: f64) -> Option<f64> {
        command
            .dependencies
            .iter()
            .try_fold(submitted, |ready, before| Some(ready.max((*self.ends.get(before.on.0 as usize)?)?)))
    }

    /// Does what the commands of a launch do beside computing, as far as is known when what they depend on
    /// ends. They await nothing before all nodes have sent (`sent`).
    fn transfer(&mut self, launch: &[Submitted], model: &Model, arrivals: &mut Arrivals, sent: bool) {
        for Submitted { command, at } in launch {
            if self.ends[command.id.0 as usize].is_some() {
                continue;
            }
            let Some(ready) = self.ready(command, *at) else { continue };
            let end = match &command.kind {
                CommandKind::Push { targets, .. } => {
                    let name = command.transfer().expect("a push has a name");
                    for Target { node, region } in targets.iter() {
                        let bytes = region.len() * size_of::<f32>();
                        self.sends = self.sends.max(ready) + bytes as f64 * model.byte;
                        let arrival = (region.clone(), self.sends + model.message);
                        arrivals.entry((name, *node)).or_default().push(arrival);
                    }
                    self.sends
                }
                CommandKind::AwaitPush { region, .. } if sent => {
                    let name = command.transfer().expect("an await has a name");
                    let messages = arrivals.get(&(name, self.graph.node())).into_iter().flatten();
                    let mine = messages.filter(|(part, _)| part.intersects(region));
                    mine.fold(ready, |end, (_, arrival)| end.max(*arrival))
                }
                CommandKind::AwaitPush { .. } | CommandKind::Execute { .. } => continue,
                _ => ready,
            };
            self.ends[command.id.0 as usize] = Some(end);
        }
    }

    /// Computes the chunk or the pieces of a launch, in the order in which they become ready.
    fn compute(&mut self, launch: &[Submitted], model: &Model) {
        let mut chunks = Vec::new();
        for Submitted { command, at } in launch {
            if let CommandKind::Execute { chunk, .. } = &command.kind {
                let ready = self.ready(command, *at).expect("what a chunk reads is on its way");
                chunks.push((ready, chunk.range.len(), command.id));
            }
        }
        chunks.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        for (ready, cells, id) in chunks {
            self.computes = self.computes.max(ready) + cells as f64 * model.cell;
            self.ends[id.0 as usize] = Some(self.computes);
        }
    }
}

/// The accesses of a step: both fields are read with their neighbours, and written where the next step reads
/// them.
fn accesses(step: usize) -> Vec<BufferAccess> {
    let extent = Extent([SIDE, SIDE]);
    let (last, next) = if step.is_multiple_of(2) { ([0, 1], [2, 3]) } else { ([2, 3], [0, 1]) };
    let reads = last.map(|buffer| (buffer, Mode::Read, erase::<2, 2>(neighborhood([1, 1]), extent)));
    let writes = next.map(|buffer| (buffer, Mode::Write, erase::<2, 2>(one_to_one(), extent)));
    let access = |(buffer, mode, mapper)| BufferAccess { buffer: BufferId(buffer), mode, mapper };
    reads.into_iter().chain(writes).map(access).collect()
}

/// The time of a step of the main program, in microseconds, on this many nodes with this many pieces each.
fn step_time(nodes: u16, pieces: usize, model: &Model) -> Result<f64, Failure> {
    let mut cluster: Vec<Node> = (0..nodes).map(|node| Node::new(node, nodes)).collect();
    let steps = [accesses(0), accesses(1)];
    let mut ends = Vec::new();
    for step in 0..WARM + STEPS {
        let space = GridBox::full([SIDE, SIDE, 1]);
        let launch = Launch {
            hints: Hints { pieces, ..Hints::default() },
            accesses: &steps[step % 2],
            ..Launch::new(TaskId(step as u64 + 1), Work::Kernel { space })
        };
        let mut commands = Vec::with_capacity(cluster.len());
        for node in &mut cluster {
            commands.push(node.submit(&launch, model)?);
        }
        let mut arrivals = Arrivals::new();
        let mut each = |f: &mut dyn FnMut(&mut Node, &[Submitted])| {
            cluster.iter_mut().zip(&commands).for_each(|(node, commands)| f(node, commands));
        };
        // What a launch sends depends on earlier launches only.
        each(&mut |node, commands| node.transfer(commands, model, &mut arrivals, false));
        each(&mut |node, commands| {
            node.transfer(commands, model, &mut arrivals, true);
            node.compute(commands, model);
            node.transfer(commands, model, &mut arrivals, true);
        });
        ends.push(cluster.iter().map(|node| node.computes).fold(0.0, f64::max));
    }
    Ok((ends[WARM + STEPS - 1] - ends[WARM - 1]) / STEPS as f64)
}

/// Tabulates the simulated time of a step, and the efficiency, against the number of nodes.
///
/// # Errors
/// If the command graph refuses a launch.
pub fn scaling_table(smoke: bool) -> Result<String, Failure> {
    let mut text = format!(
        "Simulated step of the main program on {SIDE} x {SIDE} cells, and the efficiency; 1 or 4 pieces for each node\n{MEASURED:?}; us\n\n\
         {:>6} {:>10} {:>10} {:>10} {:>10} {:>16}\n",
        "nodes", "1 piece us", "efficiency", "4 pieces", "efficiency", "message of 2 us"
    );
    let alone = step_time(1, 1, &MEASURED)?;
    for nodes in NODES.into_iter().filter(|nodes| !smoke || *nodes <= 16) {
        let time = |pieces, model| step_time(nodes, pieces, model);
        let efficiency = |time: f64| alone / (f64::from(nodes) * time);
        let (whole, pieces, network) = (time(1, &MEASURED)?, time(4, &MEASURED)?, time(4, &NETWORK)?);
        let _ = writeln!(
            text,
            "{nodes:>6} {whole:>10.1} {:>10.2} {pieces:>10.1} {:>10.2} {:>16.2}",
            efficiency(whole),
            efficiency(pieces),
            efficiency(network)
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: f64 = (SIDE * SIDE) as f64;
    const IDEAL: Model = Model { cell: 1e-3, command: 0.0, message: 0.0, byte: 0.0 };

    fn time(nodes: u16, pieces: usize, model: &Model) -> f64 {
        step_time(nodes, pieces, model).unwrap()
    }

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b, "{a} instead of {b}");
    }

    #[test]
    fn an_ideal_cluster_scales_perfectly() {
        let _deadline = testing::deadline();
        for nodes in [1, 2, 8, 64] {
            for pieces in [1, 4] {
                assert_near(time(nodes, pieces, &IDEAL), CELLS * 1e-3 / f64::from(nodes));
            }
        }
    }

    #[test]
    fn a_step_without_pieces_waits_for_its_messages() {
        let _deadline = testing::deadline();
        let row = SIDE as f64 * 4.0;
        let model = Model { message: 50.0, byte: 1e-3, ..IDEAL };
        let messages =
            |nodes: u16| (time(nodes, 1, &model) - CELLS / f64::from(nodes) * 1e-3 - 50.0) / (row * 1e-3);
        // A row of each field goes to the neighbour.
        assert_near(messages(2), 2.0);
        // A node in the middle has two neighbours. One waits for the last of its four messages, the other for
        // the one before.
        assert!((3.5..=4.0).contains(&messages(8)), "{}", messages(8));
        assert_near(time(1, 1, &model), CELLS * 1e-3);
    }

    #[test]
    fn pieces_hide_messages_that_take_less_time_than_a_piece() {
        let _deadline = testing::deadline();
        let model = Model { message: 1000.0, ..IDEAL };
        for nodes in [2, 8] {
            assert_near(time(nodes, 4, &model), CELLS * 1e-3 / f64::from(nodes));
            assert_near(time(nodes, 1, &model), CELLS * 1e-3 / f64::from(nodes) + 1000.0);
        }
    }

    #[test]
    fn a_node_that_submits_too_slowly_is_the_limit() {
        let _deadline = testing::deadline();
        let model = Model { command: 1e6, ..IDEAL };
        let step = time(8, 1, &model);
        assert!(step >= 3e6, "a node has an execution and transfers in each step: {step}");
    }
}
