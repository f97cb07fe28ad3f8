//! Parallel regions: the cost of a loop without work, and of opening a region and waiting for its threads at
//! the end.

use std::{hint::black_box, time::Duration};

use anabranch_par::{IntoParallel, PoolError, ThreadPool};
use rayon::prelude::*;

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{OPENMP, Program, TBB},
    },
    row::{Row, times},
};

pub fn rows() -> Vec<Row> {
    let hot = |context: &Context| Load { samples: context.pick(20, 3), batch: 200, pause: Duration::ZERO };
    let cold = |context: &Context| Load {
        samples: context.pick(50, 3),
        batch: 1,
        pause: Duration::from_micros(300),
    };
    vec![
        Row::lower(
            "region/empty-hot",
            "ns",
            "a loop of as many empty items as threads, from outside the pool, back to back: all threads are awake; ours does so short a loop on the calling thread",
            move |context| empty(context, hot(context)),
        )
        .bar(times(1.0, "TBB"))
        .bar(times(1.0, "TBB static"))
        .bar(times(1.0, "TBB simple"))
        .bar(times(1.0, "TBB parallel_invoke (2)"))
        .better(60.0),
        Row::lower(
            "region/empty-cold",
            "ns",
            "the same after the calling thread was busy for 300 µs: other threads may have fallen asleep",
            move |context| empty(context, cold(context)),
        ),
        Row::lower("region/empty-inside", "ns", "as `empty-hot`, opened by a thread of the pool", move |context| {
            inside(context, hot(context))
        })
        .bar(times(1.0, "TBB"))
        .bar(times(1.0, "rayon"))
        .better(times(1.0, "rayon join (2)")),
    ]
}

/// Our pool that opens a region also for a loop that was short before.
const SHARED: &str = "shared all the same";

fn sharing_pool(threads: usize) -> Result<ThreadPool, PoolError> {
    ThreadPool::builder().threads(threads).share_short_loops(true).build()
}

/// A region with as many empty items as threads, opened by a thread outside the pool.
fn empty(context: &Context, load: Load) -> Result<Outcome, Failure> {
    let threads = context.threads;
    let (ours, sharing) = (ThreadPool::new(threads)?, sharing_pool(threads)?);
    let rayon = rayon_pool(threads)?;
    let program = |benchmark: &'static str| {
        move |program: &mut Program| program.time(benchmark, threads, threads, load)
    };
    Contest::ours(|| Ok(load.time(|| (0..threads).par().on(&ours).for_each(item))))
        .peer(SHARED, || Ok(load.time(|| (0..threads).par().on(&sharing).for_each(item))))
        .peer("rayon install", || {
            Ok(load.time(|| rayon.install(|| (0..threads).into_par_iter().for_each(item))))
        })
        .peer("rayon in_place_scope", || {
            Ok(load.time(|| {
                rayon.in_place_scope(|scope| {
                    (1..threads).for_each(|i| scope.spawn(move |_| item(i)));
                    item(0);
                });
            }))
        })
        .peer_if(TBB.start(), "TBB", program("empty-region"))
        .peer_if(TBB.start(), "TBB static", program("empty-region-static"))
        .peer_if(TBB.start(), "TBB simple", program("empty-region-simple"))
        .peer_if(TBB.start(), "TBB parallel_invoke (2)", program("empty-invoke"))
        .peer_if(OPENMP.start(), "OpenMP static", program("empty-region"))
        .run(context, context.pick(20, 1))
}

/// The same region, opened by a thread of the pool. A thread of TBB's is the one that calls.
fn inside(context: &Context, load: Load) -> Result<Outcome, Failure> {
    let threads = context.threads;
    let (ours, sharing) = (ThreadPool::new(threads)?, sharing_pool(threads)?);
    let rayon = rayon_pool(threads)?;
    Contest::ours(|| Ok(ours.install(|| load.time(|| (0..threads).par().for_each(item)))))
        .peer(SHARED, || Ok(sharing.install(|| load.time(|| (0..threads).par().for_each(item)))))
        .peer("rayon", || Ok(rayon.install(|| load.time(|| (0..threads).into_par_iter().for_each(item)))))
        .peer("rayon join (2)", || {
            Ok(rayon.install(|| {
                load.time(|| {
                    rayon::join(|| item(0), || item(1));
                })
            }))
        })
        .peer_if(TBB.start(), "TBB", |program: &mut Program| {
            program.time("empty-region", threads, threads, load)
        })
        .run(context, context.pick(20, 1))
}

fn item(i: usize) {
    black_box(i);
}
