//! How a loop runs: where, on how many threads, in which chunks, with which hooks.

use super::control::{
    LoopControl,
    hooks::{Hooks, OnInterrupt},
};
use crate::{
    Consecutive, Schedule, Split, ThreadPool, flush_denormals,
    region::{
        Plan,
        claims::{Kind, Partition},
    },
    thread_pool::{state::PoolState, with_pool},
};
use std::ops::Range;

/// How many items a leaf of a reduction has, at least and at most, if the program does not choose: few enough
/// for all threads to have work. The number depends on the length of the loop alone, because the shape of the
/// tree follows from it.
const LEAF: Range<usize> = 1..8192;

/// How many items a leaf of a reduction of numbers has, which take next to no time each: at least and at
/// most.
const LEAF_OF_NUMBERS: Range<usize> = 16..8192;

/// At least this many batches in a loop with hooks, so that it looks at them often enough.
const MIN_CHECKS: usize = 256;

/// At most this many items between two looks at the hooks, so that a loop of any length can be cancelled.
const MAX_UNCHECKED: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a> {
    pub(super) pool: Option<&'a ThreadPool>,
    pub(super) threads: usize,
    pub(super) schedule: Schedule,
    pub(super) chunking: Chunking,
    pub(super) min_chunk: usize,
    pub(super) flush: bool,
    pub(super) unordered: bool,
    pub(super) hooks: Hooks<'a>,
}

/// How the items are cut into chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Chunking {
    /// As the schedule says.
    #[default]
    Auto,
    /// The program chose the size of a chunk.
    Size(usize),
    /// The program chose the number of chunks.
    Count(usize),
    /// Items are claimed one by one.
    Off,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            pool: None,
            threads: usize::MAX,
            schedule: Schedule::default(),
            chunking: Chunking::Auto,
            min_chunk: 1,
            flush: false,
            unordered: false,
            hooks: Hooks::default(),
        }
    }
}

impl Settings<'_> {
    /// The chunks that participants claim in a loop over `len` items.
    #[inline]
    pub(super) fn chunks(&self, len: usize) -> Consecutive {
        match self.chunking {
            Chunking::Auto => Consecutive::by_size(len, self.min_chunk),
            Chunking::Size(size) => Consecutive::by_size(len, size.max(self.min_chunk)),
            Chunking::Count(count) => Consecutive::by_count(len, count.min(len / self.min_chunk)),
            Chunking::Off => Consecutive::by_size(len, 1),
        }
    }

    /// The leaves of a reduction: they follow from the length and the chunk size alone.
    pub(super) fn leaves(&self, len: usize) -> Consecutive {
        self.leaves_within(len, LEAF)
    }

    /// The leaves of a reduction of numbers.
    pub(super) fn leaves_of_numbers(&self, len: usize) -> Consecutive {
        self.leaves_within(len, LEAF_OF_NUMBERS)
    }

    fn leaves_within(&self, len: usize, size: Range<usize>) -> Consecutive {
        match self.chunking {
            Chunking::Auto => {
                Consecutive::by_size(len, (len / 256).clamp(size.start, size.end).max(self.min_chunk))
            }
            _ => self.chunks(len),
        }
    }

    /// The settings of an inner step of the loop, which runs over parts of the items.
    pub(super) fn for_parts(self) -> Self {
        Self { chunking: Chunking::Auto, min_chunk: 1, hooks: Hooks::default(), ..self }
    }

    /// The number of items in a chunk, if the program chose it.
    pub(super) fn chunk_size(&self) -> Option<usize> {
        match self.chunking {
            Chunking::Size(size) => Some(size),
            _ => None,
        }
    }

    /// Calls `f` with the pool to run on.
    #[inline]
    pub(super) fn with_pool<R>(&self, f: impl FnOnce(&PoolState) -> R) -> R {
        match self.pool {
            Some(pool) => f(pool.state()),
            None => with_pool(f),
        }
    }

    /// The control of a loop over `items` items.
    #[inline]
    pub(super) fn control<'l, E>(
        &'l self,
        items: usize,
        on_interrupt: OnInterrupt<'l>,
    ) -> LoopControl<'l, E> {
        LoopControl::new(&self.hooks, items, on_interrupt)
    }

    /// Whether the calling thread does everything.
    pub(super) fn is_serial(&self) -> bool {
        self.schedule == Schedule::Serial || self.threads == 1
    }

    /// Calls `f` in the loop's mode for denormal numbers.
    pub(super) fn in_denormal_mode<R>(&self, f: impl FnOnce() -> R) -> R {
        if self.flush { flush_denormals(f) } else { f() }
    }

    /// The plan of a loop over a source, whose participants claim the chunks of `split`.
    #[inline]
    pub(super) fn plan(&self, pool: &PoolState, split: &Consecutive) -> Plan {
        let serial = self.schedule == Schedule::Serial;
        let participants = if serial { 1 } else { self.threads.clamp(1, pool.threads()) };
        let units = split.chunks();
        let auto = matches!(self.chunking, Chunking::Auto);
        // Chunks that the program chose are claimed one by one.
        let share = |of: usize| if auto { (units / (of * participants)).max(1) } else { 1 };
        let hooked = self.hooks.need_short_batches();
        let most = match (hooked, auto) {
            (false, _) => usize::MAX,
            (true, false) => 1,
            (true, true) => units.div_ceil(MIN_CHECKS).min(MAX_UNCHECKED / self.min_chunk).max(1),
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
        Plan {
            participants,
            items: split.items(),
            partition: Partition::new(units, kind),
            may_begin_alone: !hooked,
            most,
            flush: self.flush,
        }
    }

    /// The plan of a stream: any thread that is free takes part until the iterator ends.
    pub(super) fn stream_plan(&self, pool: &PoolState) -> Plan {
        let participants = self.threads.clamp(1, pool.threads());
        // These units are never claimed. They stand for the items that are still to come.
        let partition = Partition::new(isize::MAX as usize, Kind::Dynamic { grain: 1 });
        Plan { participants, items: 0, partition, may_begin_alone: false, most: 1, flush: self.flush }
    }
}
