//! All configurations of a loop: pools of 1, 2, 3, 4 and 8 threads, all schedules, all settings of chunks.
#![allow(dead_code, reason = "each test program uses some of the helpers")]

use anabranch_par::{Loop, Source, prelude::*};
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicUsize, Ordering::*},
    time::Duration,
};

pub const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

pub const SCHEDULES: [Schedule; 6] = [
    Schedule::Serial,
    Schedule::Static(Split::Consecutive),
    Schedule::Static(Split::RoundRobin),
    Schedule::Dynamic,
    Schedule::Guided,
    Schedule::Greedy,
];

/// How items are cut into chunks.
#[derive(Clone, Copy, Debug)]
pub enum Chunks {
    Auto,
    Size(usize),
    Count(usize),
    AtLeast(usize),
    OneByOne,
}

pub const CHUNKS: [Chunks; 6] =
    [Chunks::Auto, Chunks::Size(1), Chunks::Size(7), Chunks::Count(5), Chunks::AtLeast(3), Chunks::OneByOne];

/// A pool for tests of what happens between threads: it shares also loops as short as those of tests.
pub fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().threads(threads).share_short_loops(true).build().unwrap()
}

/// The pools, started once for all tests of a program.
pub fn pools() -> &'static [ThreadPool] {
    // Not a `LazyLock`, because ThreadSanitizer does not see how the standard library synchronises.
    static POOLS: Mutex<Option<&[ThreadPool]>> = Mutex::new(None);
    let start = || {
        let pools = THREADS.map(pool);
        &*Box::leak(Box::new(pools))
    };
    POOLS.lock().get_or_insert_with(|| start())
}

/// One configuration of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub threads: usize,
    pub schedule: Schedule,
    pub chunks: Chunks,
    /// The maximum number of threads.
    pub limit: usize,
}

impl Config {
    pub fn pool(&self) -> &'static ThreadPool {
        pools().iter().find(|pool| pool.workers() + 1 == self.threads).unwrap()
    }

    /// The loop `l` with this configuration.
    pub fn apply<'a, S: Source, Q>(&self, l: Loop<'a, S, Q>) -> Loop<'a, S, Q> {
        let l = l.on(self.pool()).schedule(self.schedule).threads(self.limit);
        match self.chunks {
            Chunks::Auto => l,
            Chunks::Size(size) => l.chunk_size(size),
            Chunks::Count(count) => l.chunks(count),
            Chunks::AtLeast(size) => l.min_chunk_size(size),
            Chunks::OneByOne => l.chunking(false),
        }
    }
}

/// Every schedule and every setting of chunks on every pool.
pub fn all_configs() -> impl Iterator<Item = Config> {
    all_schedules().flat_map(|config| CHUNKS.map(|chunks| Config { chunks, ..config }))
}

/// Every schedule on every pool, and some with fewer threads than the pool has.
pub fn all_schedules() -> impl Iterator<Item = Config> {
    let on =
        |threads, limit| SCHEDULES.map(|schedule| Config { threads, schedule, chunks: Chunks::Auto, limit });
    [(1, 1), (2, 8), (3, 8), (4, 8), (8, 8), (8, 2)]
        .into_iter()
        .flat_map(move |(threads, limit)| on(threads, limit))
}

/// Gives other threads time to join, so that loops really are shared, on a busy machine too.
pub fn linger() {
    std::thread::sleep(Duration::from_micros(20));
}

/// Lingers at every 16th item.
pub fn linger_at_some(i: usize) {
    if i % 16 == 3 {
        linger();
    }
}

/// Counts the values that were made and dropped.
#[derive(Debug, Default)]
pub struct DropCounter {
    pub made: AtomicUsize,
    pub dropped: AtomicUsize,
}

impl DropCounter {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&self, value: usize) -> Counted<'_> {
        self.made.fetch_add(1, Relaxed);
        Counted { drops: self, value, alive: true }
    }

    /// Whether every value that was made has been dropped.
    pub fn all_dropped(&self) -> bool {
        self.made.load(Relaxed) == self.dropped.load(Relaxed)
    }
}

/// A value that detects a second drop.
#[derive(Debug)]
pub struct Counted<'c> {
    drops: &'c DropCounter,
    pub value: usize,
    alive: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        assert!(std::mem::replace(&mut self.alive, false), "dropped twice");
        self.drops.dropped.fetch_add(1, Relaxed);
    }
}
