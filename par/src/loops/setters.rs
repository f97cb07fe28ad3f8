//! The methods of loops that change their settings.

use super::{
    Loop, Progress, ScratchLoop, SharedIter, Statistics, control::progress::Reporter, settings::Chunking,
    source::Source,
};
use crate::{CancellationToken, Schedule, ThreadPool};
use std::time::{Duration, Instant};

/// The settings of all loops.
macro_rules! common_setters {
    ($($settings:ident).+) => {
        /// Runs the loop on `pool`. Without this setting a loop inside a loop runs on the pool of the outer
        /// one, and any other loop runs on the [global](ThreadPool::global) pool.
        pub fn on(mut self, pool: &'a ThreadPool) -> Self {
            self.$($settings).+.pool = Some(pool);
            self
        }

        /// Lets at most this many threads take part, the caller included (all threads of the pool by default;
        /// at least 1).
        pub fn threads(mut self, threads: usize) -> Self {
            self.$($settings).+.threads = threads.max(1);
            self
        }

        /// Treats denormal floating-point numbers as zero on every participant while it works in this loop,
        /// and restores each thread's mode afterwards: see [`flush_denormals`](crate::flush_denormals()). If
        /// the calling thread is in that mode already, all participants are, because results must not depend
        /// on which threads take part.
        pub fn flush_denormals(mut self, flush: bool) -> Self {
            self.$($settings).+.flush = flush;
            self
        }

        /// Begins no further chunk once `token` is cancelled. `try_` forms then return
        /// [`Cancelled`](crate::LoopError::Cancelled); the other methods panic.
        pub fn cancel_with(mut self, token: &'a CancellationToken) -> Self {
            self.$($settings).+.hooks.token = Some(token);
            self
        }

        /// Begins no further chunk from this moment on. `try_` forms then return
        /// [`DeadlineExceeded`](crate::LoopError::DeadlineExceeded); the other methods panic.
        pub fn deadline(mut self, deadline: Instant) -> Self {
            self.$($settings).+.hooks.deadline = Some(deadline);
            self
        }

        /// Writes statistics of the loop to `statistics`.
        pub fn statistics(mut self, statistics: &'a Statistics) -> Self {
            self.$($settings).+.hooks.statistics = Some(statistics);
            self
        }
    };
}

/// The settings of loops over sources.
macro_rules! source_setters {
    ($($settings:ident).+) => {
        /// Chooses how participants claim the items ([`Schedule::Guided`] by default). Results do not depend
        /// on it.
        pub fn schedule(mut self, schedule: Schedule) -> Self {
            self.$($settings).+.schedule = schedule;
            self
        }

        /// Cuts the items into chunks of this size (at least 1), which are claimed one by one. A reduction
        /// folds each chunk and then combines: its result may depend on this number, in the last bits, and on
        /// nothing else.
        pub fn chunk_size(mut self, size: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Size(size.max(1));
            self
        }

        /// Cuts the items into this many chunks (at least 1), which are claimed one by one. For reductions
        /// see [`chunk_size`](Self::chunk_size).
        pub fn chunks(mut self, count: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Count(count.max(1));
            self
        }

        /// Claims at least this many items at a time, unless [`chunking`](Self::chunking) is off. For
        /// reductions see [`chunk_size`](Self::chunk_size).
        pub fn min_chunk_size(mut self, size: usize) -> Self {
            self.$($settings).+.min_chunk = size.max(1);
            self
        }

        /// With `false`, items are claimed one by one: for a few items that are whole tasks. With `true`, the
        /// schedule decides how many are claimed at a time, and a chunk size that was set before does not
        /// count.
        pub fn chunking(mut self, chunking: bool) -> Self {
            self.$($settings).+.chunking = if chunking { Chunking::Auto } else { Chunking::Off };
            self
        }

        /// Lets a reduction combine partial results in the order in which they arrive, for operators that
        /// allow any order. Its results may differ from run to run.
        pub fn unordered(mut self) -> Self {
            self.$($settings).+.unordered = true;
            self
        }

        /// Calls `report` between chunks, at most once in `every` and from one participant at a time, and
        /// when the last item is done.
        ///
        /// ```
        /// use anabranch_par::prelude::*;
        /// use std::{sync::atomic::{AtomicUsize, Ordering::Relaxed}, time::Duration};
        ///
        /// let last = AtomicUsize::new(0);
        /// let report = |progress: anabranch_par::Progress| last.store(progress.done, Relaxed);
        /// (0..1000).par().progress(Duration::from_millis(100), &report).for_each(|_| ());
        /// assert_eq!(last.into_inner(), 1000);
        /// ```
        pub fn progress(mut self, every: Duration, report: &'a (dyn Fn(Progress) + Sync)) -> Self {
            self.$($settings).+.hooks.progress = Some((every, Reporter::Call(report)));
            self
        }

        /// Shows the loop's progress in a bar: sets its length and its position.
        #[cfg(feature = "indicatif")]
        pub fn progress_bar(mut self, bar: &'a indicatif::ProgressBar) -> Self {
            self.$($settings).+.hooks.progress = Some((Duration::from_millis(50), Reporter::Bar(bar)));
            self
        }
    };
}

/// The settings of streams.
macro_rules! stream_setters {
    ($($settings:ident).+) => {
        /// Takes this many items at a time from the iterator (at least 1). By default a participant takes as
        /// many as it works on for some microseconds; a reduction takes 64, because its result may depend on
        /// this number, in the last bits (and on nothing else). Choose 1 for a reduction of few items that
        /// are whole tasks, and for an iterator that waits for its items.
        pub fn batch(mut self, size: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Size(size.max(1));
            self
        }
    };
}

impl<'a, S, Q> Loop<'a, S, Q> {
    common_setters!(settings);
}

impl<'a, S, P> ScratchLoop<'a, S, P> {
    common_setters!(inner.settings);
}

impl<'a, S: Source, Q> Loop<'a, S, Q> {
    source_setters!(settings);
}

impl<'a, S: Source, P> ScratchLoop<'a, S, P> {
    source_setters!(inner.settings);
}

impl<I, Q> Loop<'_, SharedIter<I>, Q> {
    stream_setters!(settings);
}

impl<I, P> ScratchLoop<'_, SharedIter<I>, P> {
    stream_setters!(inner.settings);
}
