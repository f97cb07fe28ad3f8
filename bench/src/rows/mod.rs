//! All benchmarks, a file per topic.
//!
//! A row is an entry in its file's `rows()`, with a function from a [`Context`](crate::harness::Context) to
//! an [`Outcome`](crate::harness::Outcome).

mod arrays;
mod devices;
mod foreign;
#[cfg(feature = "gpu")]
mod gpu;
mod graph;
mod gray_scott;
mod kernels;
mod loops;
mod nodes;
mod region;
mod runtime;
mod schedule;
mod store;
mod task_bench;
mod tasks;
mod views;

use crate::row::Row;

/// Every benchmark, in the order of the report.
pub fn all() -> Vec<Row> {
    [
        region::rows(),
        loops::rows(),
        foreign::rows(),
        graph::rows(),
        schedule::rows(),
        tasks::rows(),
        task_bench::rows(),
        runtime::rows(),
        kernels::rows(),
        views::rows(),
        devices::rows(),
        #[cfg(feature = "gpu")]
        gpu::rows(),
        arrays::rows(),
        gray_scott::rows(),
        nodes::rows(),
        store::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
