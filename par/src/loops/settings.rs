//! How a loop is run: where, on how many threads, in which chunks, and what is watched.

use super::{
    Loop, LoopError, ScratchLoop, ScratchStream, Source, Step, Stream,
    drive::{At, Drive, Oversight, Run},
    watch::{Meter, Progress, Reporter, Statistics, Watch},
};
use crate::{
    CancellationToken, Consecutive, Schedule, Split, ThreadPool,
    current::with_pool,
    flush_denormals,
    region::{
        Plan,
        claims::{Kind, Partition},
    },
    thread_pool::Shared,
};
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// How many items a reduction folds before it combines, where nothing else is said: few enough for all threads, and always
/// the same, because the tree depends on it.
const LEAF: Range<usize> = 1..8192;

/// Into how many runs a watched loop is cut at least, so that it is looked at often enough.
const WATCHED_RUNS: usize = 256;

/// The most items that a watched loop does between two looks: however many there are, it must be possible to cancel it.
const UNWATCHED: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
enum Chunking {
    #[default]
    Auto,
    Size(usize),
    Count(usize),
    Off,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a> {
    pool: Option<&'a ThreadPool>,
    threads: usize,
    pub(super) schedule: Schedule,
    chunking: Chunking,
    min: usize,
    flush: bool,
    pub(super) unordered: bool,
    watch: Watch<'a>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            pool: None,
            threads: usize::MAX,
            schedule: Schedule::default(),
            chunking: Chunking::Auto,
            min: 1,
            flush: false,
            unordered: false,
            watch: Watch::default(),
        }
    }
}

impl Settings<'_> {
    /// The chunks that are dealt out, in a loop over `len` items.
    pub(super) fn chunks(&self, len: usize) -> Consecutive {
        match self.chunking {
            Chunking::Auto => Consecutive::by_size(len, self.min),
            Chunking::Size(size) => Consecutive::by_size(len, size.max(self.min)),
            Chunking::Count(count) => Consecutive::by_count(len, count.min(len / self.min)),
            Chunking::Off => Consecutive::by_size(len, 1),
        }
    }

    /// The parts that a reduction folds one by one: they follow from the length and the chunk size alone.
    fn leaves(&self, len: usize) -> Consecutive {
        match self.chunking {
            Chunking::Auto => {
                Consecutive::by_size(len, (len / 256).clamp(LEAF.start, LEAF.end).max(self.min))
            }
            _ => self.chunks(len),
        }
    }

    /// The same for reductions of numbers, which cost next to nothing each.
    pub(super) fn leaves_of_numbers(&self, len: usize) -> Consecutive {
        match self.chunking {
            Chunking::Auto => Consecutive::by_size(len, (len / 256).clamp(16, LEAF.end).max(self.min)),
            _ => self.chunks(len),
        }
    }

    /// For a loop over parts of the items.
    pub(super) fn of_parts(self) -> Self {
        Self { chunking: Chunking::Auto, min: 1, watch: Watch::default(), ..self }
    }

    /// The number of items in a chunk, where the program has chosen it.
    pub(super) fn chunk_size(&self) -> Option<usize> {
        match self.chunking {
            Chunking::Size(size) => Some(size),
            _ => None,
        }
    }

    /// Calls `f` with the pool to run on.
    pub(super) fn with_pool<R>(&self, f: impl FnOnce(&Shared) -> R) -> R {
        match self.pool {
            Some(pool) => f(pool.shared()),
            None => with_pool(f),
        }
    }

    /// For a loop over `items` items; `interrupted` is called when something has failed or the loop is cut short.
    pub(super) fn oversight<'l, E>(
        &'l self,
        items: usize,
        interrupted: Option<&'l (dyn Fn() + Sync)>,
    ) -> Oversight<'l, E> {
        Oversight::new(&self.watch, self.watch.is_awake().then(|| Meter::new(items)), interrupted)
    }

    /// For work that cannot be counted beforehand: whoever comes takes part until there is nothing left.
    pub(super) fn uncounted_plan(&self, pool: &Shared) -> Plan {
        let participants = self.threads.clamp(1, pool.threads());
        // Nobody takes these units. They stand for what is still to come.
        let partition = Partition::new(isize::MAX as usize, Kind::Dynamic { grain: 1 });
        Plan { participants, partition, probe: false, most: 1, flush: self.flush }
    }

    /// Whether the calling thread does everything.
    pub(super) fn is_serial(&self) -> bool {
        self.schedule == Schedule::Serial || self.threads == 1
    }

    /// Calls `f` with denormal numbers treated as in the loop.
    pub(super) fn in_mode<R>(&self, f: impl FnOnce() -> R) -> R {
        if self.flush { flush_denormals(f) } else { f() }
    }

    fn plan(&self, pool: &Shared, split: &Consecutive) -> Plan {
        let serial = self.schedule == Schedule::Serial;
        let participants = if serial { 1 } else { self.threads.clamp(1, pool.threads()) };
        let units = split.chunks();
        let auto = matches!(self.chunking, Chunking::Auto);
        // Where the program chose the chunks, they are taken one by one.
        let share = |of: usize| if auto { (units / (of * participants)).max(1) } else { 1 };
        let most = match (self.watch.is_awake(), auto) {
            (false, _) => usize::MAX,
            (true, false) => 1,
            (true, true) => units.div_ceil(WATCHED_RUNS).min(UNWATCHED / self.min).max(1),
        };
        let kind = match self.schedule {
            Schedule::Serial | Schedule::Dynamic => Kind::Dynamic { grain: share(8).min(most) },
            Schedule::Guided if !auto => Kind::Dynamic { grain: 1 },
            Schedule::Guided if most == usize::MAX => Kind::Guided { participants, grain: 1 },
            Schedule::Guided => Kind::Dynamic { grain: share(32).min(most) },
            Schedule::Greedy if auto => Kind::Greedy { most: share(4).min(most) },
            Schedule::Greedy => Kind::Dynamic { grain: 1 },
            Schedule::Static(Split::Consecutive) => Kind::Blocks { participants, grain: share(4).min(most) },
            Schedule::Static(Split::RoundRobin) => Kind::RoundRobin { participants },
        };
        let probe = !self.watch.is_awake();
        Plan { participants, partition: Partition::new(units, kind), probe, most, flush: self.flush }
    }
}

/// The settings of everything that runs on a pool: a loop, or a stream.
macro_rules! common_settings {
    ($($settings:ident).+) => {
        /// The pool to run on. Without it, loops inside a loop run on the same pool, and others on the
        /// [global](ThreadPool::global) one.
        pub fn on(mut self, pool: &'a ThreadPool) -> Self {
            self.$($settings).+.pool = Some(pool);
            self
        }

        /// At most this many threads take part, the caller included (all of the pool by default; at least 1).
        pub fn threads(mut self, threads: usize) -> Self {
            self.$($settings).+.threads = threads.max(1);
            self
        }

        /// Treats denormal floating-point numbers as zero on every participant while it works in this loop, and restores each
        /// thread's mode afterwards: see [`flush_denormals`](crate::flush_denormals()). A loop that is run by a thread in that mode
        /// has it anyway: results must not depend on who takes part.
        pub fn flush_denormals(mut self, flush: bool) -> Self {
            self.$($settings).+.flush = flush;
            self
        }

        /// Begins no further chunk once `token` is cancelled. `try_` forms return
        /// [`Cancelled`](LoopError::Cancelled) then; the others panic.
        pub fn cancel_with(mut self, token: &'a CancellationToken) -> Self {
            self.$($settings).+.watch.token = Some(token);
            self
        }

        /// Begins no further chunk from this moment on. `try_` forms return
        /// [`DeadlineExceeded`](LoopError::DeadlineExceeded) then; the others panic.
        pub fn deadline(mut self, deadline: Instant) -> Self {
            self.$($settings).+.watch.deadline = Some(deadline);
            self
        }

        /// Puts into `statistics` how the loop goes.
        pub fn statistics(mut self, statistics: &'a Statistics) -> Self {
            self.$($settings).+.watch.statistics = Some(statistics);
            self
        }
    };
}

/// The settings of loops whose items are counted.
macro_rules! loop_settings {
    ($($settings:ident).+) => {
        common_settings!($($settings).+);

        /// How the items are dealt out ([`Schedule::Guided`] by default). Results do not depend on it.
        pub fn schedule(mut self, schedule: Schedule) -> Self {
            self.$($settings).+.schedule = schedule;
            self
        }

        /// Cuts the items into chunks of this size (at least 1), which are taken one by one. A reduction folds each chunk and
        /// then combines: its result may depend on this number, in the last bits, and on nothing else.
        pub fn chunk_size(mut self, size: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Size(size.max(1));
            self
        }

        /// Cuts the items into this many chunks (at least 1), which are taken one by one. For reductions see
        /// [`chunk_size`](Self::chunk_size).
        pub fn chunks(mut self, count: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Count(count.max(1));
            self
        }

        /// At least this many items at a time, except where they are to be taken [one by one](Self::chunking). For reductions see
        /// [`chunk_size`](Self::chunk_size).
        pub fn min_chunk_size(mut self, size: usize) -> Self {
            self.$($settings).+.min = size.max(1);
            self
        }

        /// With `false`, items are taken one by one: for a few items that are whole tasks. With `true`, as many at a time as the
        /// schedule says, and no chunk size that was set before counts.
        pub fn chunking(mut self, chunking: bool) -> Self {
            self.$($settings).+.chunking = if chunking { Chunking::Auto } else { Chunking::Off };
            self
        }

        /// Lets a reduction combine in whatever order participants come by, for operators that do not mind: its results may
        /// differ from run to run.
        pub fn unordered(mut self) -> Self {
            self.$($settings).+.unordered = true;
            self
        }

        /// Calls `report` between chunks, at most once in `every` by one participant at a time, and when the last item is done.
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
            self.$($settings).+.watch.progress = Some((every, Reporter::Call(report)));
            self
        }

        /// Shows the loop's progress in a bar: sets its length and its position.
        #[cfg(feature = "indicatif")]
        pub fn progress_bar(mut self, bar: &'a indicatif::ProgressBar) -> Self {
            self.$($settings).+.watch.progress = Some((Duration::from_millis(50), Reporter::Bar(bar)));
            self
        }
    };
}

/// The settings of loops whose items are not counted.
macro_rules! stream_settings {
    ($($settings:ident).+) => {
        common_settings!($($settings).+);

        /// Takes so many items at a time from the iterator (at least 1), always. Otherwise as many as take some microseconds;
        /// and 64 for a reduction, whose result may depend on this number, in the last bits, and on nothing else. Choose 1 for
        /// a reduction of few items that are whole tasks, and where the iterator waits for what it gives.
        pub fn batch(mut self, size: usize) -> Self {
            self.$($settings).+.chunking = Chunking::Size(size.max(1));
            self
        }
    };
}

impl<'a, S, Q> Loop<'a, S, Q> {
    loop_settings!(settings);
}

impl<'a, S, P> ScratchLoop<'a, S, P> {
    loop_settings!(inner.settings);
}

impl<'a, I, Q> Stream<'a, I, Q> {
    stream_settings!(settings);
}

impl<'a, I, P> ScratchStream<'a, I, P> {
    stream_settings!(inner.settings);
}

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    pub(super) fn len(&self) -> usize {
        self.source.len()
    }

    /// The parts that a reduction folds one by one.
    pub(super) fn leaves(&self) -> Consecutive {
        self.settings.leaves(self.source.len())
    }

    /// The same for reductions of numbers.
    pub(super) fn leaves_of_numbers(&self) -> Consecutive {
        self.settings.leaves_of_numbers(self.source.len())
    }

    /// Runs the loop: `body` gets all items, run by run.
    #[inline]
    pub(super) fn drive<E, B>(&self, body: B) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Range<usize>, Run<'_, '_, S, Q>) -> Result<(), At<E>> + Sync,
    {
        self.drive_by(self.settings.chunks(self.source.len()), body)
    }

    /// The same, with runs of whole units of `split`.
    #[inline]
    pub(super) fn drive_by<E, B>(&self, split: Consecutive, body: B) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Range<usize>, Run<'_, '_, S, Q>) -> Result<(), At<E>> + Sync,
    {
        self.drive_interruptibly(split, body, None)
    }

    /// The same; `interrupted` is called when runs that have not come by now may never come.
    #[inline]
    pub(super) fn drive_interruptibly<E, B>(
        &self,
        split: Consecutive,
        body: B,
        interrupted: Option<&(dyn Fn() + Sync)>,
    ) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Range<usize>, Run<'_, '_, S, Q>) -> Result<(), At<E>> + Sync,
    {
        let drive = Drive {
            source: &self.source,
            step: &self.step,
            split,
            body,
            oversight: self.settings.oversight(self.source.len(), interrupted),
        };
        self.with_pool(|pool| drive.run(pool, &self.settings.plan(pool, &split)))
    }

    pub(super) fn with_pool<R>(&self, f: impl FnOnce(&Shared) -> R) -> R {
        self.settings.with_pool(f)
    }
}
