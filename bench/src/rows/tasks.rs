//! Empty tasks through the whole runtime: their time is the cost of the runtime.

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::program::{OPENMP, Program, Source, TBB},
    row::Row,
    workloads::{
        empty_tasks::{EmptyTasks, Kind, SIDE, Shape},
        memory,
    },
};

pub fn rows() -> Vec<Row> {
    use {Kind::*, Shape::*};
    let row = |name, about, shape, kind| {
        let run = move |context: &Context| measure(context, &[TBB, OPENMP], shape, kind);
        let (bar, better, taskflow, starpu) = match shape {
            Independent | Exclusive => (600.0, 300.0, 212.0, 2094.0),
            Chain => (300.0, 200.0, 100.0, 4640.0),
            Wavefront | WavefrontEffects => (500.0, 250.0, 115.0, 4577.0),
        };
        let row = Row::lower(name, "ns", about, run).median().bar(bar).better(better);
        row.quoted("Taskflow 3.9", taskflow).quoted("StarPU", starpu)
    };
    vec![
        row("runtime/independent", "per empty host task, of 100,000", Independent, Host),
        row("runtime/independent-kernels", "per empty kernel of one chunk", Independent, Kernel),
        row("runtime/chain", "per host task; a sequential effect chains them", Chain, Host),
        row("runtime/chain-kernels", "per kernel; one element chains them", Chain, Kernel),
        row("runtime/wavefront", "host task (i, j) changes element j, reads j - 1", Wavefront, Host),
        row("runtime/wavefront-effects", "host task (i, j) touches objects i and j", WavefrontEffects, Host),
        row(
            "runtime/wavefront-kernels",
            "the wavefront by elements, kernels of one chunk",
            Wavefront,
            Kernel,
        ),
        Row::lower(
            "runtime/memory-million",
            "MiB",
            "added by 1,000,000 tasks without a wait",
            memory_million,
        )
        .median()
        .bar(64.0)
        .better(16.0),
    ]
}

/// Measures the nanoseconds per task, beside these peers with tasks of the same shape.
pub fn measure(context: &Context, peers: &[Source], shape: Shape, kind: Kind) -> Result<Outcome, Failure> {
    let count = context.pick(SIDE * SIDE, 10 * SIDE);
    let (threads, load) = (context.threads, Load::back_to_back(context.pick(3, 1), 1));
    let per_task = |times: Vec<f64>| times.into_iter().map(|ns| ns / count as f64).collect();
    let tasks = EmptyTasks::new(threads)?;
    let mut contest = Contest::ours(|| Ok(per_task(load.try_time(|| tasks.run(shape, kind, count))?)));
    for peer in peers {
        contest = contest.peer_if(peer.start(), peer.name, |program: &mut Program| {
            Ok(per_task(program.time(shape.name(), count, threads, load)?))
        });
    }
    contest.run(context, context.pick(10, 1))
}

fn memory_million(context: &Context) -> Result<Outcome, Failure> {
    let tasks = context.pick(1_000_000, 10_000);
    Contest::ours(|| Ok(vec![memory::added_by(tasks, context.threads)? / f64::from(1 << 20)]))
        .run(context, context.pick(2, 1))
}
