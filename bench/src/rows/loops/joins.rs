//! Joins: a recursion that forks at every step and does no other work.

use anabranch_par::ThreadPool;

use super::{
    ours,
    timing::{scaled, time},
};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::{chili_pool, rayon_pool},
        program::{Program, TBB_LOOPS},
    },
    row::{Row, times},
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower("loops/fib-30", "ns", "per join of the recursive Fibonacci number, inside the pool; few joins are taken by the other thread", fib)
            .bar(times(1.0, "rayon"))
            .better(times(1.0, "chili")),
    ]
}

fn fib(context: &Context) -> Result<Outcome, Failure> {
    let n = context.pick(30, 15);
    let load = Load::back_to_back(1, 1);
    let threads = context.threads;
    let (pool, rayon, chili) = (ThreadPool::new(threads)?, rayon_pool(threads)?, chili_pool(threads));
    let joins = joins_of(n) as f64;
    let per_join = |figures| Ok(scaled(figures, joins));
    Contest::ours(|| per_join(time(load, || ours::fib(&pool, n))))
        .peer("rayon", || per_join(rayon.install(|| time(load, || rayon_fib(n)))))
        .peer("chili", || {
            let mut scope = chili.scope();
            per_join(time(load, || chili_fib(&mut scope, n)))
        })
        .peer_if(TBB_LOOPS.start(), "TBB task_group", |program: &mut Program| {
            per_join(program.time("fib", n as usize, threads, load)?)
        })
        .peer_if(TBB_LOOPS.start(), "TBB parallel_invoke", |program: &mut Program| {
            per_join(program.time("fib-invoke", n as usize, threads, load)?)
        })
        .run(context, context.pick(8, 1))
}

/// The number of joins that compute Fibonacci number `n`.
fn joins_of(n: u64) -> u64 {
    if n < 2 { 0 } else { 1 + joins_of(n - 1) + joins_of(n - 2) }
}

fn rayon_fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| rayon_fib(n - 1), || rayon_fib(n - 2));
    a + b
}

fn chili_fib(scope: &mut chili::Scope<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = scope.join(|scope| chili_fib(scope, n - 1), |scope| chili_fib(scope, n - 2));
    a + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contenders_compute_the_same_number() {
        let _deadline = testing::deadline();
        let pool = ThreadPool::new(2).unwrap();
        assert_eq!([joins_of(1), joins_of(2), joins_of(15)], [0, 1, 986]);
        assert_eq!(ours::fib(&pool, 15), 610);
        assert_eq!(rayon_pool(2).unwrap().install(|| rayon_fib(15)), 610);
        assert_eq!(chili_fib(&mut chili_pool(2).scope(), 15), 610);
    }
}
