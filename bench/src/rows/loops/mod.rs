//! Parallel loops: items, joins, reductions, scratch memory and sorting.
//!
//! Our side is in [`ours`], a short function per benchmark. The other modules are the peers' side and the shared work.
//! Rayon is called from inside its pool, where it is fastest. Our side and all other peers are called from a foreign
//! thread, which takes part in the work.

mod idle;
mod items;
mod joins;
mod matmulsums;
mod ours;
mod product;
mod reductions;
mod serial;
mod sorting;
mod work;

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

/// A pool of chili's; the calling thread is one of its threads.
fn chili_pool(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..Default::default()
    })
}

/// Times an operation in nanoseconds. The compiler must compute its result.
fn time<R>(load: Load, mut operation: impl FnMut() -> R) -> Vec<f64> {
    load.time(|| {
        black_box(operation());
    })
}

/// Converts figures to a unit that is `unit` times as large.
fn scaled(figures: Vec<f64>, unit: f64) -> Vec<f64> {
    figures.into_iter().map(|figure| figure / unit).collect()
}

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;
