//! Thread pools of the peers from crates.

use std::{num::NonZero, thread};

use anabranch_par::flush_denormals;

use crate::harness::Failure;

/// A pool of rayon's with this number of threads.
///
/// # Errors
/// If the system refuses the threads.
pub fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// As [`rayon_pool`]; all its threads treat denormal numbers as zero, all the time.
///
/// # Errors
/// If the system refuses the threads.
pub fn flushing_rayon_pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    let spawn = |worker: rayon::ThreadBuilder| {
        thread::Builder::new().spawn(|| flush_denormals(|| worker.run())).map(drop)
    };
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()?)
}

/// A pool of chili's with this number of threads, the calling thread included.
pub fn chili_pool(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn every_thread_of_a_flushing_pool_flushes() {
        let _deadline = testing::deadline();
        let half_of_smallest_normal =
            |_: rayon::BroadcastContext| black_box(f32::MIN_POSITIVE) * black_box(0.5);
        assert_eq!(flushing_rayon_pool(3).unwrap().broadcast(half_of_smallest_normal), [0.0; 3]);
        assert!(rayon_pool(3).unwrap().broadcast(half_of_smallest_normal).iter().all(|&x| x > 0.0));
    }
}
