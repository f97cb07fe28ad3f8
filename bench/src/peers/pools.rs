//! Thread pools of the peers from crates.

use std::num::NonZero;

use crate::harness::Failure;

/// A pool of rayon's with this number of threads.
///
/// # Errors
/// If the system refuses the threads.
pub fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// A pool of chili's with this number of threads, the calling thread included.
pub fn chili_pool(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..Default::default()
    })
}
