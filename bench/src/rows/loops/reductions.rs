//! Reductions of arrays of ten million numbers.

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{
    ours,
    serial::{dot_of, min_of, smaller, sum_of},
    timing::{MS, scaled, time},
    work::fraction,
};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{OPENMP_LOOPS, Program, TBB_LOOPS},
    },
    row::{Row, times},
};

/// OpenMP's `parallel for simd`.
const OPENMP_SIMD: &str = "OpenMP simd";

pub fn rows() -> Vec<Row> {
    let row = |name, about, run: fn(&Context) -> Result<Outcome, Failure>| {
        Row::lower(name, "ms", about, run).bar(times(1.1, OPENMP_SIMD)).better(times(1.0, OPENMP_SIMD))
    };
    vec![
        row("loops/sum-1e7", "the sum of 10,000,000 `f64`, with the same bits on any number of threads", sum),
        row("loops/dot-1e7", "the scalar product of two such arrays, likewise", dot),
        row("loops/min-1e7", "the smallest of 10,000,000 `f64`", min),
    ]
}

/// Elements of a chunk, for rayon's `par_chunks`.
const CHUNK: usize = 1 << 14;

/// The arrays, pools and settings that all three reductions use.
struct Setup {
    x: Vec<f64>,
    y: Vec<f64>,
    threads: usize,
    pool: ThreadPool,
    rayon: rayon::ThreadPool,
    load: Load,
    rounds: usize,
}

impl Setup {
    fn new(context: &Context) -> Result<Self, Failure> {
        let x: Vec<f64> = (0..context.pick(10_000_000, 100_000)).map(fraction).collect();
        Ok(Self {
            y: x.iter().rev().copied().collect(),
            x,
            threads: context.threads,
            pool: ThreadPool::new(context.threads)?,
            rayon: rayon_pool(context.threads)?,
            load: Load::back_to_back(context.pick(5, 2), 1),
            rounds: context.pick(10, 1),
        })
    }

    fn ms(&self, reduce: impl Fn() -> f64) -> Result<Vec<f64>, Failure> {
        Ok(scaled(time(self.load, reduce), MS))
    }

    fn rayon_ms(&self, reduce: impl Fn() -> f64 + Send) -> Result<Vec<f64>, Failure> {
        self.rayon.install(|| self.ms(reduce))
    }

    fn program(&self, benchmark: &str) -> impl FnMut(&mut Program) -> Result<Vec<f64>, Failure> {
        move |program| Ok(scaled(program.time(benchmark, self.x.len(), self.threads, self.load)?, MS))
    }
}

fn sum(context: &Context) -> Result<Outcome, Failure> {
    let setup = Setup::new(context)?;
    let x = &setup.x;
    Contest::ours(|| setup.ms(|| ours::sum(&setup.pool, x)))
        .peer("rayon", || setup.rayon_ms(|| x.par_iter().sum()))
        .peer("rayon par_chunks", || setup.rayon_ms(|| x.par_chunks(CHUNK).map(sum_of).sum()))
        .peer_if(TBB_LOOPS.start(), TBB_LOOPS.name, setup.program("sum"))
        .peer_if(OPENMP_LOOPS.start(), OPENMP_SIMD, setup.program("sum"))
        .run(context, setup.rounds)
}

fn dot(context: &Context) -> Result<Outcome, Failure> {
    let setup = Setup::new(context)?;
    let (x, y) = (&setup.x, &setup.y);
    let chunks = || {
        let pairs = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK));
        pairs.map(|(x, y)| dot_of(x, y)).sum()
    };
    Contest::ours(|| setup.ms(|| ours::dot(&setup.pool, x, y)))
        .peer("rayon", || setup.rayon_ms(|| x.par_iter().zip(y).map(|(x, y)| x * y).sum()))
        .peer("rayon par_chunks", || setup.rayon_ms(chunks))
        .peer_if(OPENMP_LOOPS.start(), OPENMP_SIMD, setup.program("dot"))
        .run(context, setup.rounds)
}

fn min(context: &Context) -> Result<Outcome, Failure> {
    let setup = Setup::new(context)?;
    let x = &setup.x;
    let plain = || x.par_iter().copied().reduce(|| f64::INFINITY, smaller);
    let chunks = || x.par_chunks(CHUNK).map(min_of).reduce(|| f64::INFINITY, smaller);
    Contest::ours(|| setup.ms(|| ours::min(&setup.pool, x)))
        .peer("rayon", || setup.rayon_ms(plain))
        .peer("rayon par_chunks", || setup.rayon_ms(chunks))
        .peer_if(OPENMP_LOOPS.start(), OPENMP_SIMD, setup.program("min"))
        .run(context, setup.rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_reductions_agree_with_serial_ones() {
        let _deadline = testing::deadline();
        let pool = ThreadPool::new(3).unwrap();
        for n in [0, 1, 1000, 100_003] {
            let x: Vec<f64> = (0..n).map(fraction).collect();
            let y: Vec<f64> = x.iter().rev().copied().collect();
            let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b, "{a} and {b}, {n} elements");
            near(ours::sum(&pool, &x), x.iter().sum());
            near(ours::dot(&pool, &x, &y), x.iter().zip(&y).map(|(x, y)| x * y).sum());
            assert_eq!(ours::min(&pool, &x), x.iter().copied().fold(f64::INFINITY, f64::min));
        }
    }
}
