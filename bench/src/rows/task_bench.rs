//! Task Bench: how short tasks may be.

use crate::{
    harness::{Contest, Context, Failure, Outcome},
    row::{Row, times},
    workloads::task_bench::{Graph, Kind, Pattern, Peer, Replayed, Submitted, Team, metg},
};

const WIDTHS: [usize; 2] = [4, 16];
const MPI: &str = "MPI";
const OPENMP: &str = "OpenMP tasks";

pub fn rows() -> Vec<Row> {
    let graphs = Pattern::ALL.into_iter().flat_map(|pattern| WIDTHS.map(|width| Graph { pattern, width }));
    graphs.flat_map(|graph| [replayed_row(graph), submitted_row(graph)]).collect()
}

/// Patterns that a system cannot fail at have no bar.
fn has_bar(pattern: Pattern) -> bool {
    !matches!(pattern, Pattern::Trivial | Pattern::NoComm)
}

fn row(
    Graph { pattern, width }: Graph,
    suffix: &str,
    about: &'static str,
    run: impl Fn(&Context) -> Result<Outcome, Failure> + 'static,
) -> Row {
    Row::lower(format!("taskbench/{}/{width}{suffix}", pattern.name()), "us", about, run)
}

fn replayed_row(graph: Graph) -> Row {
    let about = "METG(50 %): the mean length of the shortest tasks with which half of the time is work; a recorded sequence, replayed";
    let row = row(graph, "", about, move |context| replayed(context, graph));
    match graph {
        Graph { pattern: Pattern::Stencil, width: 4 } => row.bar(times(1.0, MPI)).better(0.35),
        Graph { pattern, .. } if has_bar(pattern) => row.bar(times(1.0, MPI)).better(times(0.7, MPI)),
        _ => row,
    }
}

fn submitted_row(graph: Graph) -> Row {
    let about = "the same with a host task for each task, submitted in each step";
    let row = row(graph, "/tasks", about, move |context| submitted(context, graph));
    if has_bar(graph.pattern) { row.bar(2.0).better(1.0) } else { row }
}

fn replayed(context: &Context, graph: Graph) -> Result<Outcome, Failure> {
    let mut ours = Replayed::new(graph, context.threads)?;
    let mut team = Team::new(graph, context.threads)?;
    Contest::ours(|| metg(context, graph, &mut ours))
        .peer("team and barrier", || metg(context, graph, &mut team))
        .peer_if(Peer::mpi(graph, context.threads), MPI, |peer| metg(context, graph, peer))
        .peer_if(Peer::openmp(graph, context.threads), OPENMP, |peer| metg(context, graph, peer))
        .run(context, context.pick(5, 1))
}

fn submitted(context: &Context, graph: Graph) -> Result<Outcome, Failure> {
    let mut tasks = Submitted::new(graph, context.threads, Kind::HostTasks)?;
    let mut batches = Submitted::new(graph, context.threads, Kind::Batches)?;
    let mut steps = Submitted::new(graph, context.threads, Kind::Steps)?;
    Contest::ours(|| metg(context, graph, &mut tasks))
        .peer("a batch per step", || metg(context, graph, &mut batches))
        .peer("a kernel per step", || metg(context, graph, &mut steps))
        .peer_if(Peer::openmp(graph, context.threads), OPENMP, |peer| metg(context, graph, peer))
        .run(context, context.pick(5, 1))
}
