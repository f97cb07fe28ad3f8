//! Loops of two items, each of which takes between half a microsecond and twenty, back to back and after
//! pauses: is it worth while to wake another thread?

use std::time::Duration;

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{
    ours,
    timing::scaled,
    work::{steps, work},
};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::{chili_pool, rayon_pool},
        program::{OPENMP_LOOPS, Program, TBB_LOOPS},
    },
    row::{Row, times, times_best},
};

pub fn rows() -> Vec<Row> {
    let row = |name, about, ns: f64| row(name, about, ns, Duration::ZERO);
    let back_to_back = [
        row("loops/two-items-500ns", "per loop of 2 items of 0.5 µs, back to back; all threads awake", 500.0),
        row("loops/two-items-2us", "the same with 2 items of 2 µs", 2_000.0),
        row("loops/two-items-5us", "the same with 2 items of 5 µs", 5_000.0),
        row("loops/two-items-20us", "the same with 2 items of 20 µs", 20_000.0),
    ];
    back_to_back.into_iter().chain(after_pauses()).collect()
}

/// The same loops, one at a time, after the calling thread was busy for a while.
fn after_pauses() -> impl Iterator<Item = Row> {
    let works = [("500ns", 500.0), ("2us", 2e3), ("5us", 5e3), ("20us", 2e4)];
    let pauses = [
        ("10us", "one loop, after the calling thread was busy for 10 µs", 10),
        ("100us", "the same after 100 µs: other threads may have fallen asleep", 100),
        ("1ms", "the same after 1 ms", 1000),
    ];
    works.into_iter().flat_map(move |(work, ns)| {
        pauses.into_iter().map(move |(pause, about, length)| {
            let name = format!("loops/two-items-{work}-after-{pause}");
            row(name, about, ns, Duration::from_micros(length))
        })
    })
}

fn row(name: impl Into<String>, about: &'static str, ns: f64, pause: Duration) -> Row {
    let row = Row::lower(name, "us", about, move |context: &Context| two_items(context, ns, pause));
    let peers = ["serial", "TBB static", "TBB simple", "TBB parallel_invoke", "OpenMP static"];
    peers.into_iter().fold(row, |row, peer| row.bar(times(1.0, peer))).better(times_best(1.0))
}

/// How many loops a visit times. After a pause each of them is a sample. A visit lasts long enough
/// for the system to give each thread a processor of its own, for which a virtual machine may need some
/// milliseconds.
fn load(context: &Context, ns: f64, pause: Duration) -> Load {
    match pause.is_zero() {
        true => Load::back_to_back(context.pick(20, 2), context.pick((2e6 / ns) as usize, 10)),
        false => {
            let samples = 60_000_000 / (pause.as_nanos() as usize + 2 * ns as usize);
            Load { samples: context.pick(samples.min(2000), 3), batch: 1, pause }
        }
    }
}

/// Microseconds of a loop whose items take `ns` nanoseconds each on this machine.
fn two_items(context: &Context, ns: f64, pause: Duration) -> Result<Outcome, Failure> {
    let steps = steps(ns)?;
    let load = load(context, ns, pause);
    let threads = context.threads;
    let (pool, rayon, chili) = (ThreadPool::new(threads)?, rayon_pool(threads)?, chili_pool(threads));
    let us = |figures| Ok(scaled(figures, 1e3));
    let program = |benchmark: &'static str| {
        move |program: &mut Program| us(program.time(benchmark, steps, threads, load)?)
    };
    Contest::ours(|| us(load.time(|| ours::two_items(&pool, steps))))
        .peer("rayon", || {
            let both = || (0..2).into_par_iter().for_each(|item| work(item, steps));
            us(rayon.install(|| load.time(both)))
        })
        .peer("rayon join", || {
            let both = || {
                rayon::join(|| work(0, steps), || work(1, steps));
            };
            us(rayon.install(|| load.time(both)))
        })
        .peer_if(TBB_LOOPS.start(), "TBB static", program("two-items-static"))
        .peer_if(TBB_LOOPS.start(), "TBB simple", program("two-items-simple"))
        .peer_if(TBB_LOOPS.start(), "TBB parallel_invoke", program("two-items-invoke"))
        .peer_if(OPENMP_LOOPS.start(), "OpenMP static", program("two-items"))
        .peer("chili join", || {
            let mut scope = chili.scope();
            us(load.time(|| {
                scope.join(|_| work(0, steps), |_| work(1, steps));
            }))
        })
        .peer("serial", || us(load.time(|| (0..2).for_each(|item| work(item, steps)))))
        .run(context, context.pick(10, 1))
}
