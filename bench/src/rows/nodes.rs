//! Several nodes: processes that `mpirun` starts on this machine, beside the same by hand with MPI.

use std::{path::PathBuf, time::Instant};

use super::gray_scott;
use crate::{
    harness::{Contest, Context, Failure, LeftOut, Outcome},
    peers::program::MPI,
    row::{Row, plus, times},
    workloads::nodes::{Visit, check_mpirun},
};

const BY_HAND: &str = "MPI by hand";
const BARRIER: &str = "MPI_Barrier";
const ALL_GATHER: &str = "MPI_Allgather";
const RECEIVE: &str = "MPI_Recv";
const INIT: &str = "MPI_Init";
const ONE_PROCESS: &str = "1 process, 2 threads";

pub fn rows() -> Vec<Row> {
    [
        row(
            "nodes/barrier/2p",
            "us",
            "`wait()` with nothing in flight, back to back",
            "barrier",
            2,
            1000,
            Some(BARRIER),
        )
        .bar(plus(5.0, BARRIER))
        .better(plus(1.0, BARRIER)),
        row("nodes/barrier/4p", "us", "the same, on 4 processes", "barrier", 4, 200, Some(BARRIER))
            .bar(plus(15.0, BARRIER))
            .better(plus(5.0, BARRIER)),
        row(
            "nodes/effects/2p",
            "us",
            "per task: host tasks on all nodes with a sequential effect, in a chain",
            "effects",
            2,
            1000,
            None,
        ),
        row(
            "nodes/barriers/2p",
            "us",
            "per task: the same host tasks without the effect, each followed by `wait()`",
            "barriers",
            2,
            1000,
            None,
        ),
        row(
            "nodes/stencil-1024/2p",
            "us",
            "a step of three points on 1,024 floats",
            "stencil-1024",
            2,
            1000,
            Some(BY_HAND),
        )
        .bar(10.0)
        .better(4.0),
        row(
            "nodes/stencil-1048576/2p",
            "us",
            "the same on 2^20 floats",
            "stencil-1048576",
            2,
            100,
            Some(BY_HAND),
        )
        .bar(times(1.0 / 0.9, BY_HAND))
        .better(times(1.0, BY_HAND)),
        row(
            "nodes/all-gather/4p",
            "us",
            "each of 4 processes writes its part of 8 MB and then reads all of it",
            "all-gather",
            4,
            10,
            Some(ALL_GATHER),
        )
        .bar(times(1.3, ALL_GATHER))
        .better(times(1.1, ALL_GATHER)),
        row(
            "nodes/waiting-cpu/2p",
            "s",
            "processor time of a node that waits for a second for data of another one",
            "waiting-cpu",
            2,
            1,
            Some(RECEIVE),
        )
        .bar(0.1)
        .better(0.01),
        row(
            "nodes/waiting-late/2p",
            "ms",
            "how much later than the other node is done such a node goes on",
            "waiting-late",
            2,
            1,
            Some(RECEIVE),
        )
        .bar(2.0)
        .better(0.1),
        Row::lower("nodes/start/2p", "ms", "a program that does nothing, from `mpirun` to its end", start)
            .bar(plus(50.0, INIT))
            .better(plus(5.0, INIT)),
        Row::lower(
            "nodes/gray-scott-1080x1920/2p",
            "ns",
            "wall time per cell and step, as `gray-scott/1080x1920/2t`, on 2 processes with a thread each",
            |context| gray_scott::on_two_processes(context, ONE_PROCESS),
        )
        .bar(times(1.1, ONE_PROCESS))
        .better(times(1.0, ONE_PROCESS)),
    ]
    .into_iter()
    .map(|row| row.if_available(check_mpirun))
    .collect()
}

/// A row of which `peer` is the same by hand.
fn row(
    name: &str,
    unit: &'static str,
    about: &'static str,
    workload: &'static str,
    processes: u16,
    batch: usize,
    peer: Option<&'static str>,
) -> Row {
    Row::lower(name, unit, about, move |context: &Context| {
        let samples = if batch == 1 { 1 } else { context.pick(20, 1) };
        let visit = Visit { workload, processes, samples, batch: context.pick(batch, 1) };
        let contest = Contest::ours(|| visit.ours());
        let contest = match peer {
            Some(peer) => contest.peer_if(by_hand(), peer, |program: &mut PathBuf| visit.by_hand(program)),
            None => contest,
        };
        contest.run(context, context.pick(7, 1))
    })
}

fn by_hand() -> Result<PathBuf, LeftOut> {
    MPI.path()
}

/// Milliseconds from the start of `mpirun` to its end.
fn start(context: &Context) -> Result<Outcome, Failure> {
    let visit = Visit { workload: "start", processes: 2, samples: 1, batch: 1 };
    let time = |run: &dyn Fn() -> Result<Vec<f64>, Failure>| {
        let begin = Instant::now();
        run().map(|_| vec![begin.elapsed().as_secs_f64() * 1e3])
    };
    Contest::ours(|| time(&|| visit.ours()))
        .peer_if(by_hand(), INIT, |program: &mut PathBuf| time(&|| visit.by_hand(program)))
        .run(context, context.pick(20, 1))
}
