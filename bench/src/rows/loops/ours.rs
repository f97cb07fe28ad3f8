//! Our side of the loops: one short function per benchmark.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use anabranch_par::{Schedule, ThreadPool};

use super::{
    items::{small, tiny},
    matmulsums::{Pair, Scratch},
    reductions::{dot_of, min_of, sum_of},
};

/// Elements that are summed in one go.
const BLOCK: usize = 1 << 14;

/// The inner loop of two: tiny items.
pub fn nested(pool: &ThreadPool, items: usize) {
    pool.region(items).schedule(Schedule::Static).grain(items.div_ceil(pool.threads())).run(tiny);
}

/// Items of about a nanosecond, with no word about how to deal them out.
pub fn items(pool: &ThreadPool, items: usize) {
    pool.region(items).run(small);
}

/// The Fibonacci number, with two branches at a time.
pub fn fib(pool: &ThreadPool, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let branches = [AtomicU64::new(0), AtomicU64::new(0)];
    pool.region(2).run(|i| branches[i].store(fib(pool, n - 1 - i as u64), Relaxed));
    branches.into_iter().map(AtomicU64::into_inner).sum()
}

/// The sum of all elements.
pub fn sum(pool: &ThreadPool, x: &[f64]) -> f64 {
    map(pool, x.len().div_ceil(BLOCK), |i| sum_of(block(x, i))).into_iter().sum()
}

/// The scalar product.
pub fn dot(pool: &ThreadPool, x: &[f64], y: &[f64]) -> f64 {
    map(pool, x.len().div_ceil(BLOCK), |i| dot_of(block(x, i), block(y, i))).into_iter().sum()
}

/// The smallest element.
pub fn min(pool: &ThreadPool, x: &[f64]) -> f64 {
    map(pool, x.len().div_ceil(BLOCK), |i| min_of(block(x, i))).into_iter().fold(f64::INFINITY, f64::min)
}

/// The sum of each pair's product, and how many buffers were made for that.
pub fn matmulsums(pool: &ThreadPool, pairs: &[Pair]) -> (Vec<f64>, usize) {
    let made = AtomicUsize::new(0);
    let init = || {
        made.fetch_add(1, Relaxed);
        Scratch::new()
    };
    let sums: Vec<AtomicU64> = pairs.iter().map(|_| AtomicU64::new(0)).collect();
    pool.region(pairs.len())
        .run_with(init, |c, i| sums[i].store(pairs[i].sum(c.elements()).to_bits(), Relaxed));
    (sums.into_iter().map(|sum| f64::from_bits(sum.into_inner())).collect(), made.into_inner())
}

/// Sorts.
pub fn sort(pool: &ThreadPool, data: &mut [u64]) {
    let part = data.len().div_ceil(pool.threads()).max(1);
    let parts: Vec<_> = data.chunks_mut(part).map(Mutex::new).collect();
    pool.region(parts.len()).run(|i| parts[i].lock().expect("taken once").sort_unstable());
    drop(parts);
    // A stable sort finds the sorted parts and merges them.
    data.sort();
}

fn map(pool: &ThreadPool, items: usize, f: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let results: Vec<AtomicU64> = (0..items).map(|_| AtomicU64::new(0)).collect();
    pool.region(items).run(|i| results[i].store(f(i).to_bits(), Relaxed));
    results.into_iter().map(|result| f64::from_bits(result.into_inner())).collect()
}

fn block(x: &[f64], i: usize) -> &[f64] {
    &x[i * BLOCK..x.len().min((i + 1) * BLOCK)]
}
