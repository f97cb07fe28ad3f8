//! Empty tasks through the whole runtime: their time is the cost of the runtime.

use super::loops::work::{steps, work};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::program::{OPENMP, Program, Source, TBB},
    row::{Row, times},
    workloads::{
        empty_tasks::{EmptyTasks, Kind, SIDE, Shape},
        memory,
    },
};

pub fn rows() -> Vec<Row> {
    use {Kind::*, Shape::*};
    let row = |name, about, shape, kind| {
        let run = move |context: &Context| measure(context, &[TBB, OPENMP], shape, kind);
        let (bar, better) = match (shape, kind) {
            (Independent, Host) => (250.0, 150.0),
            (Independent, Kernel) => (300.0, 200.0),
            (Chain, Host) => (200.0, 80.0),
            (Chain, Kernel) => (250.0, 120.0),
            (Wavefront | WavefrontEffects, Host) => (350.0, 150.0),
            (Wavefront | WavefrontEffects, Kernel) => (400.0, 200.0),
            (Exclusive, _) => (600.0, 250.0),
        };
        Row::lower(name, "ns", about, run).bar(bar).better(better)
    };
    vec![
        row(
            "runtime/independent",
            "per empty host task of 100,000: submitted one by one, then `wait()`; TBB's graphs are built before",
            Independent,
            Host,
        ),
        row("runtime/independent-kernels", "the same with kernels of one chunk", Independent, Kernel),
        row(
            "runtime/chain",
            "per host task; a sequential effect orders each after the one before",
            Chain,
            Host,
        ),
        row("runtime/chain-kernels", "per kernel; an update of one element orders them", Chain, Kernel),
        row(
            "runtime/wavefront",
            "per host task (i, j), which changes element j of a buffer and reads element j - 1",
            Wavefront,
            Host,
        ),
        row(
            "runtime/wavefront-effects",
            "per host task (i, j), with sequential effects on the objects of row i and column j",
            WavefrontEffects,
            Host,
        ),
        row(
            "runtime/wavefront-kernels",
            "the wavefront over elements, with kernels of one chunk",
            Wavefront,
            Kernel,
        ),
        Row::lower(
            "runtime/chain-replayed",
            "ns",
            "per empty kernel of one chunk, which updates one element; recorded once and replayed 100,000 times; TBB's graph is built before",
            |context| replayed(context, Chain),
        )
        .bar(times(1.0, "TBB"))
        .better(40.0),
        Row::lower(
            "runtime/wavefront-replayed",
            "ns",
            "the wavefront over elements, with kernels of one chunk: one row is recorded and replayed once for each row",
            |context| replayed(context, Wavefront),
        )
        .bar(times(1.0, "TBB"))
        .better(40.0),
        Row::lower(
            "runtime/wavefront-replayed-1us",
            "ns",
            "the same with 1 µs of work in each task: rows are executed at the same time",
            wavefront_with_work,
        )
        .bar(times(1.0, "TBB"))
        .better(times(0.525, "one thread")),
        Row::lower(
            "runtime/memory-million",
            "MiB",
            "resident memory that 1,000,000 host tasks without a `wait()` add; every 100,000th sleeps",
            memory_million,
        )
        .bar(64.0)
        .better(16.0),
    ]
}

/// Measures the nanoseconds per task, beside these peers with tasks of the same shape. Host tasks that can be
/// batches are so, too.
pub fn measure(context: &Context, peers: &[Source], shape: Shape, kind: Kind) -> Result<Outcome, Failure> {
    let count = tasks_of(context);
    let load = Load::back_to_back(context.pick(3, 1), 1);
    let tasks = EmptyTasks::new(context.threads)?;
    let mut contest = Contest::ours(|| Ok(per_task(count, load.try_time(|| tasks.run(shape, kind, count))?)));
    if kind == Kind::Host && shape.is_batch() {
        contest = contest.peer("in batches of 316", || {
            Ok(per_task(count, load.try_time(|| tasks.run_batches(shape, count))?))
        });
    }
    beside(contest, context, peers, shape, load)
}

/// Measures the nanoseconds per task of replays, beside TBB with a graph of the same shape.
fn replayed(context: &Context, shape: Shape) -> Result<Outcome, Failure> {
    let count = tasks_of(context);
    let load = Load::back_to_back(context.pick(10, 1), 1);
    let tasks = EmptyTasks::new(context.threads)?;
    let (sequence, length) = tasks.record(shape, || ())?;
    let replays = (count / length) as u64;
    let ours = Contest::ours(|| Ok(per_task(count, load.try_time(|| sequence.replay(replays)?.wait())?)));
    beside(ours, context, &[TBB], shape, load)
}

/// Measures the nanoseconds per task of replays of a wavefront whose tasks compute for 1 µs each.
fn wavefront_with_work(context: &Context) -> Result<Outcome, Failure> {
    let (count, threads, steps) = (tasks_of(context), context.threads, steps(1000.0)?);
    let load = Load::back_to_back(context.pick(2, 1), 1);
    let tasks = EmptyTasks::new(threads)?;
    let (sequence, length) = tasks.record(Shape::Wavefront, move || work(0, steps))?;
    let replays = (count / length) as u64;
    Contest::ours(|| Ok(per_task(count, load.try_time(|| sequence.replay(replays)?.wait())?)))
        .peer("one thread", || {
            Ok(per_task(count, load.time(|| (0..count).for_each(|task| work(task, steps)))))
        })
        .peer_if(TBB.start(), TBB.name, |program: &mut Program| {
            Ok(per_task(count, program.time_grid("tasks-wavefront-steps", [count, steps], threads, load)?))
        })
        .run(context, context.pick(5, 1))
}

/// How many tasks a run has.
fn tasks_of(context: &Context) -> usize {
    context.pick(SIDE * SIDE, 10 * SIDE)
}

/// The nanoseconds of a task, from those of runs.
fn per_task(count: usize, runs: Vec<f64>) -> Vec<f64> {
    runs.into_iter().map(|ns| ns / count as f64).collect()
}

/// Adds these peers with tasks of the same shape to a contest, and runs it.
fn beside(
    mut contest: Contest<'_>,
    context: &Context,
    peers: &[Source],
    shape: Shape,
    load: Load,
) -> Result<Outcome, Failure> {
    let (count, threads) = (tasks_of(context), context.threads);
    for peer in peers {
        contest = contest.peer_if(peer.start(), peer.name, move |program: &mut Program| {
            Ok(per_task(count, program.time(shape.name(), count, threads, load)?))
        });
    }
    contest.run(context, context.pick(10, 1))
}

fn memory_million(context: &Context) -> Result<Outcome, Failure> {
    let tasks = context.pick(1_000_000, 10_000);
    Contest::ours(|| Ok(vec![memory::added_by(tasks, context.threads)? / f64::from(1 << 20)]))
        .run(context, context.pick(2, 1))
}
