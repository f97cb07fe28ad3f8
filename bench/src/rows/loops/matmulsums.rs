//! Scratch memory: the sum of each of 768 matrix products. Every item needs a buffer for its product.
//!
//! All contenders multiply with the same function: `general_mat_mul` of ndarray, which calls the crate
//! `matrixmultiply`. Their buffers begin at a cache line; at any other address a product takes a third
//! longer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{
    ours,
    product::{Pair, Scratch},
    timing::{MS, scaled, time},
};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{Program, TBB_LOOPS},
    },
    row::{Row, times_best},
};

pub fn rows() -> Vec<Row> {
    let uniform = |context: &Context| sums(context, |_| INNER);
    let nonuniform = |context: &Context| sums(context, |i| (i + 1).isqrt().pow(2));
    vec![
        Row::lower("loops/matmulsums", "ms", "768 products of 256 × 16 by 16 × 256, each summed", uniform)
            .bar(times_best(1.0))
            .better(14.5),
        Row::lower(
            "loops/matmulsums-nonuniform",
            "ms",
            "768 such products with inner dimensions `isqrt(i)²`, i from 1 to 768",
            nonuniform,
        )
        .bar(times_best(1.0))
        .better(300.0),
        Row::lower(
            "loops/scratch-initialisations",
            "count",
            "buffers allocated for these 768 products",
            initialisations,
        )
        .bar(2.0),
    ]
}

/// Columns of the first matrix and rows of the second, where all pairs are alike.
const INNER: usize = 16;

/// The pairs to be multiplied; fewer in a smoke run.
fn pairs(context: &Context, inner: impl Fn(usize) -> usize) -> Vec<Pair> {
    (0..context.pick(768, 32)).map(|i| Pair::new(inner(i))).collect()
}

fn sums(context: &Context, inner: impl Fn(usize) -> usize) -> Result<Outcome, Failure> {
    let pairs = &pairs(context, inner);
    let pool = ThreadPool::new(context.threads)?;
    let rayon = rayon_pool(context.threads)?;
    let load = Load::back_to_back(context.pick(2, 1), 1);
    let expected = sequential(pairs);
    let ms = |sums: &(dyn Fn() -> Vec<f64> + Sync)| {
        assert_eq!(sums(), expected);
        Ok(scaled(time(load, sums), MS))
    };
    Contest::ours(|| ms(&|| ours::matmulsums(&pool, pairs).0))
        .peer("rayon map_init", || rayon.install(|| ms(&|| map_init(pairs).0)))
        .peer("rayon static chunks", || rayon.install(|| ms(&|| static_chunks(pairs))))
        .peer("rayon, own cursor", || ms(&|| own_cursor(&rayon, pairs)))
        .peer("allocation per item", || rayon.install(|| ms(&|| allocation_per_item(pairs))))
        .peer("sequential", || ms(&|| sequential(pairs)))
        .run(context, context.pick(8, 1))
}

/// Counts the buffers that our side allocates, beside the peers that allocate as they see fit.
fn initialisations(context: &Context) -> Result<Outcome, Failure> {
    let pairs = &pairs(context, |_| INNER);
    let threads = context.threads;
    let pool = ThreadPool::new(threads)?;
    let rayon = rayon_pool(threads)?;
    Contest::ours(|| Ok(vec![ours::matmulsums(&pool, pairs).1 as f64]))
        .peer("rayon map_init", || Ok(vec![rayon.install(|| map_init(pairs)).1 as f64]))
        .peer_if(TBB_LOOPS.start(), TBB_LOOPS.name, |program: &mut Program| {
            program.time("scratch-initialisations", pairs.len(), threads, Load::back_to_back(1, 1))
        })
        .run(context, context.pick(20, 1))
}

fn sequential(pairs: &[Pair]) -> Vec<f64> {
    let mut c = Scratch::new();
    pairs.iter().map(|pair| pair.sum(c.elements())).collect()
}

fn allocation_per_item(pairs: &[Pair]) -> Vec<f64> {
    pairs.par_iter().map(|pair| pair.sum(Scratch::new().elements())).collect()
}

/// Returns the sums and the number of buffers that were allocated.
fn map_init(pairs: &[Pair]) -> (Vec<f64>, usize) {
    let made = AtomicUsize::new(0);
    let init = || {
        made.fetch_add(1, Relaxed);
        Scratch::new()
    };
    let sums = pairs.par_iter().map_init(init, |c, pair| pair.sum(c.elements())).collect();
    (sums, made.into_inner())
}

/// Splits the pairs into one chunk per thread, each with a buffer.
fn static_chunks(pairs: &[Pair]) -> Vec<f64> {
    let chunk = pairs.len().div_ceil(rayon::current_num_threads()).max(1);
    pairs.par_chunks(chunk).flat_map_iter(sequential).collect()
}

/// A loop by hand: every thread has a buffer and takes the next pair until none is left.
fn own_cursor(rayon: &rayon::ThreadPool, pairs: &[Pair]) -> Vec<f64> {
    let next = AtomicUsize::new(0);
    let sums: Vec<AtomicU64> = pairs.iter().map(|_| AtomicU64::new(0)).collect();
    rayon.broadcast(|_| {
        let mut c = Scratch::new();
        while let Some(i) = Some(next.fetch_add(1, Relaxed)).filter(|&i| i < pairs.len()) {
            sums[i].store(pairs[i].sum(c.elements()).to_bits(), Relaxed);
        }
    });
    sums.into_iter().map(|sum| f64::from_bits(sum.into_inner())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contenders_compute_the_same_sums() {
        let _deadline = testing::deadline();
        let pairs: Vec<Pair> = (0..20).map(Pair::new).collect();
        let expected = sequential(&pairs);
        let (pool, rayon) = (ThreadPool::new(3).unwrap(), rayon_pool(3).unwrap());
        assert_eq!(ours::matmulsums(&pool, &pairs).0, expected);
        assert_eq!(rayon.install(|| map_init(&pairs)).0, expected);
        assert_eq!(rayon.install(|| static_chunks(&pairs)), expected);
        assert_eq!(rayon.install(|| allocation_per_item(&pairs)), expected);
        assert_eq!(own_cursor(&rayon, &pairs), expected);
    }
}
