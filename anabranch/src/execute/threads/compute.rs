//! The compute threads of a runtime, as kernels use them.

use crate::random::Random;
use anabranch_par::{IntoParallel, LoopError, Schedule, Split, ThreadPool, flush_denormals};
use std::{
    any::Any,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The compute threads: a pool, or in a seeded runtime the calling thread and the order of the chunks.
pub(crate) struct Compute {
    pool: ThreadPool,
    threads: usize,
    /// Shuffles the chunks of kernels in a seeded runtime.
    random: Option<Arc<Random>>,
    checked: bool,
}

/// The panic of a kernel, and the chunk in which it happened.
pub(crate) struct ChunkPanic {
    pub(crate) chunk: usize,
    pub(crate) payload: Box<dyn Any + Send>,
}

impl Compute {
    pub(crate) fn new(pool: ThreadPool, threads: usize, random: Option<Arc<Random>>, checked: bool) -> Self {
        Self { pool, threads, random, checked }
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether tasks are checked for elements that they declared to write and did not.
    #[inline]
    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    /// Calls `kernel` once for each chunk, on all compute threads. Of several chunks that panic, the first
    /// counts.
    pub(crate) fn run_chunks(
        &self,
        chunks: usize,
        flush_denormals: bool,
        kernel: impl Fn(usize) + Sync,
    ) -> Result<(), ChunkPanic> {
        if chunks == 1 {
            return self.run_chunk(flush_denormals, || kernel(0));
        }
        let order = self.random.as_ref().map(|random| random.shuffled(chunks));
        let chunk_of = |item: usize| order.as_ref().map_or(item, |order| order[item]);
        let done = (0..chunks)
            .par()
            .on(&self.pool)
            .schedule(Schedule::Static(Split::Consecutive))
            .chunking(false)
            .threads(self.threads)
            .flush_denormals(flush_denormals)
            .try_for_each(|item| {
                kernel(chunk_of(item));
                Ok::<(), Infallible>(())
            });
        done.map_err(|error| match error {
            LoopError::Panic(panic) => {
                let item = panic.index().expect("a panic of a loop has an item");
                ChunkPanic { chunk: chunk_of(item), payload: panic.into_payload() }
            }
            other => unreachable!("nothing else ends this loop: {other}"),
        })
    }

    /// The order of a seeded runtime.
    pub(crate) fn random(&self) -> Option<&Random> {
        self.random.as_deref()
    }

    /// Calls `take_part` with each number below `count`, on as many threads as there are, of which this is
    /// one. A thread may get several numbers, one after the other. `take_part` does not panic.
    pub(crate) fn run_strands(&self, count: usize, take_part: impl Fn(usize) + Sync) {
        if count == 1 {
            return self.pool.run_one(self.threads, || take_part(0));
        }
        let strands = (0..count).par().on(&self.pool).schedule(Schedule::Static(Split::Consecutive));
        strands.chunking(false).threads(self.threads).for_each(take_part);
    }

    /// Calls `kernel`, which is the only chunk, on this thread.
    fn run_chunk(&self, flush: bool, kernel: impl FnOnce()) -> Result<(), ChunkPanic> {
        let kernel = || if flush { flush_denormals(kernel) } else { kernel() };
        catch_unwind(AssertUnwindSafe(|| self.pool.run_one(self.threads, kernel)))
            .map_err(|payload| ChunkPanic { chunk: 0, payload })
    }
}
