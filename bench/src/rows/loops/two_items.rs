//! Loops of two items, each of which takes between half a microsecond and twenty: is it worth while to wake
//! another thread?

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{ours, timing::scaled, work::work};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome, Samples},
    peers::{
        pools::{chili_pool, rayon_pool},
        program::{OPENMP_LOOPS, Program, TBB_LOOPS},
    },
    row::{Row, times_best},
};

pub fn rows() -> Vec<Row> {
    let row = |name, about, ns: f64| {
        Row::lower(name, "us", about, move |context: &Context| two_items(context, ns))
            .bar(times_best(1.1))
            .better(times_best(1.0))
    };
    vec![
        row("loops/two-items-500ns", "per loop of 2 items of 0.5 µs, back to back; all threads awake", 500.0),
        row("loops/two-items-2us", "the same with 2 items of 2 µs", 2_000.0),
        row("loops/two-items-5us", "the same with 2 items of 5 µs", 5_000.0),
        row("loops/two-items-20us", "the same with 2 items of 20 µs", 20_000.0),
    ]
}

/// Microseconds of a loop whose items take `ns` nanoseconds each on this machine.
fn two_items(context: &Context, ns: f64) -> Result<Outcome, Failure> {
    let steps = steps(ns)?;
    let load = Load::back_to_back(context.pick(20, 2), context.pick((2e6 / ns) as usize, 10));
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

/// The number of steps that take `ns` nanoseconds on this machine.
///
/// # Errors
/// If the clock does not tell.
fn steps(ns: f64) -> Result<usize, Failure> {
    const MANY: usize = 10_000;
    let times = Load::back_to_back(21, 1).time(|| work(0, MANY));
    let time = Samples::new(times).ok_or("the clock does not run")?.median();
    let steps = ns * MANY as f64 / time;
    if !(1.0..1e9).contains(&steps) {
        return Err(format!("{MANY} steps took {time} ns").into());
    }
    Ok(steps as usize)
}
