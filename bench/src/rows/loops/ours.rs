//! Our side of the loops: one short function per benchmark.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anabranch_par::{join, prelude::*};

use super::{
    product::{Pair, Scratch},
    work::{small, tiny, work},
};

/// The inner loop of `loops/nested-1000x1000`: tiny items.
pub fn nested(pool: &ThreadPool, items: usize) {
    (0..items).par().on(pool).for_each(tiny);
}

/// Items of about a nanosecond, with default settings.
pub fn items(pool: &ThreadPool, items: usize) {
    (0..items).par().on(pool).for_each(small);
}

/// Two items of many steps each, with default settings.
pub fn two_items(pool: &ThreadPool, steps: usize) {
    (0..2).par().on(pool).for_each(|item| work(item, steps));
}

/// Fibonacci number `n`, with a join for each pair of branches.
pub fn fib(pool: &ThreadPool, n: u64) -> u64 {
    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = join(|| fib(n - 1), || fib(n - 2));
        a + b
    }
    pool.install(|| fib(n))
}

/// The sum of all elements.
pub fn sum(pool: &ThreadPool, x: &[f64]) -> f64 {
    x.par().on(pool).sum()
}

/// The scalar product.
pub fn dot(pool: &ThreadPool, x: &[f64], y: &[f64]) -> f64 {
    x.par().on(pool).dot(y).expect("both have the same length")
}

/// The smallest element; infinity if there is none.
pub fn min(pool: &ThreadPool, x: &[f64]) -> f64 {
    x.par().on(pool).min().unwrap_or(f64::INFINITY)
}

/// The sum of each pair's product, and the number of buffers that were allocated.
pub fn matmulsums(pool: &ThreadPool, pairs: &[Pair]) -> (Vec<f64>, usize) {
    let made = AtomicUsize::new(0);
    let init = || {
        made.fetch_add(1, Relaxed);
        Scratch::new()
    };
    let sums = pairs.par().on(pool).scratch(init).map(|c, pair| pair.sum(c.elements())).collect();
    (sums, made.into_inner())
}

/// Sorts the numbers.
pub fn sort(pool: &ThreadPool, data: &mut [u64]) {
    pool.install(|| data.par_sort_unstable());
}
