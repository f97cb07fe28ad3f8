//! Parallel loops: items, joins, reductions, scratch and sorting, beside those who do it too.
//!
//! What ours does is in [`ours`], a short function per benchmark; everything else here is the peers' side. A benchmark
//! of a pool calls rayon from inside rayon's pool, where it is at its best; ours and the others are called from a
//! thread that is not theirs, and take it along.

mod idle;
mod items;
mod joins;
mod matmulsums;
mod ours;
mod random;
mod reductions;
mod sorting;

use std::{hint::black_box, num::NonZero};

use crate::{
    harness::{Failure, Load},
    row::Row,
};

pub fn rows() -> Vec<Row> {
    [items::rows(), joins::rows(), reductions::rows(), matmulsums::rows(), sorting::rows(), idle::rows()]
        .into_iter()
        .flatten()
        .collect()
}

fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// The calling thread is one of them.
fn chili_pool(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..Default::default()
    })
}

/// The nanoseconds of an operation whose result must be found.
fn time<R>(load: Load, mut operation: impl FnMut() -> R) -> Vec<f64> {
    load.time(|| {
        black_box(operation());
    })
}

/// Figures in a larger unit, of which one is `unit` of theirs.
fn scaled(figures: Vec<f64>, unit: f64) -> Vec<f64> {
    figures.into_iter().map(|figure| figure / unit).collect()
}

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;
