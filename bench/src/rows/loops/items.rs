//! Loops whose items are so small that handing them out to threads is the main cost.

use std::ops::Range;

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{
    ours,
    timing::scaled,
    work::{small, tiny},
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
    vec![
        Row::lower(
            "loops/nested-1000x1000",
            "ns",
            "per item: 1,000 parallel loops, one after the other, of 1,000 inlined multiply-adds each; all threads awake",
            nested,
        )
        .bar(times(1.0, "serial"))
        .better(0.25),
        Row::lower(
            "loops/items-1ns",
            "ns",
            "per item of about 1 ns, inlined, of 1,000,000; no chunk size given on our side",
            items,
        )
        .bar(times_best(1.2))
        .better(times_best(1.0)),
    ]
}

/// Items of a chunk, for the peers that take a chunk size.
const CHUNK: usize = 1024;

/// The sequential outer loop is the batch: every contender opens one parallel loop after another.
fn nested(context: &Context) -> Result<Outcome, Failure> {
    const ITEMS: usize = 1000;
    let load = Load::back_to_back(context.pick(5, 2), context.pick(1000, 10));
    let threads = context.threads;
    let (pool, rayon, chili) = (ThreadPool::new(threads)?, rayon_pool(threads)?, chili_pool(threads));
    let per_item = |figures| Ok(scaled(figures, ITEMS as f64));
    let program = |benchmark: &'static str| {
        move |program: &mut Program| per_item(program.time(benchmark, ITEMS, threads, load)?)
    };
    Contest::ours(|| per_item(load.time(|| ours::nested(&pool, ITEMS))))
        .peer("rayon", || per_item(rayon.install(|| load.time(|| (0..ITEMS).into_par_iter().for_each(tiny)))))
        .peer("rayon with_min_len", || {
            let all = || (0..ITEMS).into_par_iter().with_min_len(CHUNK).for_each(tiny);
            per_item(rayon.install(|| load.time(all)))
        })
        .peer_if(TBB_LOOPS.start(), "TBB", program("nested"))
        .peer_if(TBB_LOOPS.start(), "TBB static", program("nested-static"))
        .peer_if(TBB_LOOPS.start(), "TBB simple", program("nested-simple"))
        .peer_if(OPENMP_LOOPS.start(), "OpenMP static", program("nested"))
        .peer("chili", || {
            let mut scope = chili.scope();
            per_item(load.time(|| halve(&mut scope, 0..ITEMS, ITEMS / 8, &tiny)))
        })
        .peer("serial", || per_item(load.time(|| (0..ITEMS).for_each(tiny))))
        .run(context, context.pick(10, 1))
}

fn items(context: &Context) -> Result<Outcome, Failure> {
    let items = context.pick(1_000_000, 10_000);
    let load = Load::back_to_back(context.pick(5, 2), 2);
    let threads = context.threads;
    let (pool, rayon, chili) = (ThreadPool::new(threads)?, rayon_pool(threads)?, chili_pool(threads));
    let per_item = |figures| Ok(scaled(figures, items as f64));
    let program = |benchmark: &'static str| {
        move |program: &mut Program| per_item(program.time(benchmark, items, threads, load)?)
    };
    Contest::ours(|| per_item(load.time(|| ours::items(&pool, items))))
        .peer("rayon", || {
            per_item(rayon.install(|| load.time(|| (0..items).into_par_iter().for_each(small))))
        })
        .peer("rayon with_min_len", || {
            let all = || (0..items).into_par_iter().with_min_len(CHUNK).for_each(small);
            per_item(rayon.install(|| load.time(all)))
        })
        .peer("rayon by chunks", || {
            let chunk = |c: usize| (c * CHUNK..items.min((c + 1) * CHUNK)).for_each(small);
            let all = || (0..items.div_ceil(CHUNK)).into_par_iter().for_each(chunk);
            per_item(rayon.install(|| load.time(all)))
        })
        .peer_if(TBB_LOOPS.start(), "TBB", program("items"))
        .peer_if(TBB_LOOPS.start(), "TBB static", program("items-static"))
        .peer_if(TBB_LOOPS.start(), "TBB simple", program("items-simple"))
        .peer_if(OPENMP_LOOPS.start(), "OpenMP static", program("items"))
        .peer_if(OPENMP_LOOPS.start(), "OpenMP dynamic", program("items-dynamic"))
        .peer("chili", || {
            let mut scope = chili.scope();
            per_item(load.time(|| halve(&mut scope, 0..items, CHUNK, &small)))
        })
        .peer("serial", || per_item(load.time(|| (0..items).for_each(small))))
        .run(context, context.pick(20, 1))
}

/// Runs a loop with chili, which only has joins: halves the range until it has at most `chunk` items.
fn halve(scope: &mut chili::Scope<'_>, range: Range<usize>, chunk: usize, item: &(impl Fn(usize) + Sync)) {
    if range.len() <= chunk {
        return range.for_each(item);
    }
    let middle = range.start.midpoint(range.end);
    scope.join(
        |scope| halve(scope, range.start..middle, chunk, item),
        |scope| halve(scope, middle..range.end, chunk, item),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn halving_visits_every_item_once() {
        let _deadline = testing::deadline();
        let visits: Vec<_> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
        let chili = chili_pool(2);
        let visit = |i: usize| {
            visits[i].fetch_add(1, Relaxed);
        };
        halve(&mut chili.scope(), 0..visits.len(), 7, &visit);
        assert!(visits.iter().all(|count| count.load(Relaxed) == 1));
    }
}
