//! One participant's side of the claims.

use super::{AdaptiveBatch, Counters, Kind, Partition, counters::Counter, stopwatch::Stopwatch};
use crate::sync::atomic::Ordering::*;
use std::ops::Range;

/// If the first unit of a loop of which nothing is known takes this long, in nanoseconds, the region is
/// opened at once.
const LONG_UNIT: u64 = 40;

/// What a thread that helps costs at least, in nanoseconds. A run of a loop that was short must take this
/// long before the region is opened: its units may only have been read from memory for the first time.
const HELP: u64 = 300;

/// This many units are many. In a loop of which nothing is known the opener does not conclude from the first
/// one how long they take: the clock is too coarse.
const MANY: usize = 16;

/// Units must take one thread at least this many nanoseconds to be shared: a thread that helps costs some 300
/// to 800.
pub(crate) const WORTH_SHARING: u64 = 1500;

/// The same where a worker has to be woken first. On a virtual machine that takes the opener 7 to 10 µs, and
/// the worker begins 10 to 50 µs later.
pub(crate) const WORTH_WAKING: u64 = 50_000;

/// The first run of a loop that was short is one in so many of its units, rounded up.
const FIRST: usize = 64;

/// The same, if the opener only looks at the clock after it.
const UNMEASURED: usize = 8;

/// Opens the region for the units that are left. `None` where it cannot be opened.
pub(crate) type OpenRegion<'a> = dyn Fn(Partition) -> Option<&'a Counters> + 'a;

/// Gets the time that the whole loop would take one thread, in nanoseconds.
pub(crate) type Tell<'a> = dyn Fn(u64) + 'a;

/// Gets the time now, in ticks, when the opener of a loop that was short looks at the clock. Returns whether
/// the loop may have become long, so that the opener measures it.
pub(crate) type Look<'a> = dyn Fn(u64) -> bool + 'a;

/// Gets the time, in ticks, at which an opener begins to measure a loop that it does alone.
pub(crate) type Begin<'a> = dyn Fn(u64) + 'a;

/// Claims units for one participant, run by run.
pub(crate) struct Claimer<'a> {
    partition: Partition,
    /// `None` while the participant is alone: then `next` is the counter.
    counters: Option<&'a Counters>,
    /// The block that this participant empties first.
    own_block: usize,
    /// How many blocks this participant has found empty.
    emptied: usize,
    next: usize,
    /// Alone: how many units to claim at a time.
    most: usize,
    batch: AdaptiveBatch,
    /// Of an opener that has not found out yet how long the units take.
    measuring: Option<&'a mut Measuring<'a>>,
}

/// How an opener measures the units.
pub(crate) struct Measuring<'a> {
    stopwatch: Stopwatch,
    /// How many units were done when the stopwatch was read last. For an opener that is not alone: how many
    /// its first run has.
    done: usize,
    /// Gets how long the loop takes.
    tell: &'a Tell<'a>,
    way: Way<'a>,
    /// Of an opener that does not measure its first run.
    look: Option<&'a Look<'a>>,
    /// Of an opener that measures from the first unit on.
    begin: Option<&'a Begin<'a>>,
}

/// What an opener that measures does otherwise.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// It has opened the region.
    Shares,
    /// It is alone, and opens the region if the units left take one thread `worth` nanoseconds. `was_short`
    /// says that it expects no such thing: then it measures less often.
    Probes { open: &'a OpenRegion<'a>, was_short: bool, worth: u64 },
}

impl<'a> Measuring<'a> {
    /// For an opener that shares the loop.
    pub(crate) fn sharing(stopwatch: Stopwatch, tell: &'a Tell<'a>) -> Self {
        Self { stopwatch, done: 0, tell, way: Way::Shares, look: None, begin: None }
    }

    /// For an opener that begins alone, and calls `open` for the remaining units if the first ones show that
    /// sharing them pays, which is so if they take one thread `worth` nanoseconds. If the loop `was_short`
    /// before, the opener measures less often.
    pub(crate) fn probing(
        stopwatch: Stopwatch,
        open: &'a OpenRegion<'a>,
        was_short: bool,
        worth: u64,
        tell: &'a Tell<'a>,
    ) -> Self {
        Self { way: Way::Probes { open, was_short, worth }, ..Self::sharing(stopwatch, tell) }
    }

    /// Lets the opener of a loop that was short look at the clock once, after its first run, and measure the
    /// others only if `look` says so.
    #[inline]
    pub(crate) fn look_first(&mut self, look: &'a Look<'a>) {
        self.look = Some(look);
    }

    /// Lets an opener that begins alone say when it begins.
    #[inline]
    pub(crate) fn say_begin(&mut self, begin: &'a Begin<'a>) {
        self.begin = Some(begin);
    }
}

impl<'a> Claimer<'a> {
    /// For a participant of an open region, whose own block is `own_block`.
    pub(crate) fn new(partition: Partition, counters: &'a Counters, own_block: usize) -> Self {
        Self {
            partition,
            counters: Some(counters),
            own_block,
            emptied: 0,
            next: 0,
            most: 1,
            batch: AdaptiveBatch::new(),
            measuring: None,
        }
    }

    /// For a participant that is alone: all units in ascending order, in runs of at most `most`.
    #[inline]
    pub(crate) fn alone(partition: Partition, most: usize) -> Self {
        Self {
            partition,
            counters: None,
            own_block: 0,
            emptied: 0,
            next: 0,
            most: most.max(1),
            batch: AdaptiveBatch::new(),
            measuring: None,
        }
    }

    /// For an opener that begins alone, and measures the units.
    #[inline]
    pub(crate) fn probing(partition: Partition, measuring: &'a mut Measuring<'a>) -> Self {
        // All participants claim from the one block that such a partition has.
        debug_assert!(partition.blocks() == 1);
        Self { measuring: Some(measuring), ..Self::alone(partition, usize::MAX) }
    }

    /// Lets the opener of an open region measure its first run.
    pub(crate) fn measure(&mut self, measuring: &'a mut Measuring<'a>) {
        self.measuring = Some(measuring);
    }

    /// Claims the next run, if there is one that begins before unit `limit`.
    #[inline]
    pub(crate) fn claim(&mut self, limit: usize) -> Option<Range<usize>> {
        match &self.measuring {
            None => self.claim_next(limit),
            Some(Measuring { way: Way::Probes { .. }, .. }) => {
                self.decide(limit);
                self.claim_next(limit)
            }
            Some(Measuring { way: Way::Shares, .. }) => self.claim_measured(limit),
        }
    }

    #[inline]
    fn claim_next(&mut self, limit: usize) -> Option<Range<usize>> {
        match self.counters {
            None => {
                let end = self.partition.units.min(limit);
                let run = self.next..self.partition.units.min(self.next.saturating_add(self.most));
                self.next = run.end;
                (run.start < end).then_some(run)
            }
            Some(counters) => match self.partition.kind {
                Kind::Greedy { most } => self.claim_batch(counters.of(0), most, limit),
                _ => self.claim_run(counters, limit),
            },
        }
    }

    /// The opener of an open region measures its first run.
    fn claim_measured(&mut self, limit: usize) -> Option<Range<usize>> {
        let Some(measuring) = self.measuring.take() else { return self.claim_next(limit) };
        if let Some(took) = measuring.stopwatch.lap() {
            (measuring.tell)(of_units(took, measuring.done, self.partition.units));
            return self.claim_next(limit);
        }
        let run = self.claim_next(limit);
        if let Some(run) = &run {
            measuring.done = run.len();
            measuring.stopwatch.start();
            self.measuring = Some(measuring);
        }
        run
    }

    /// Opens the region if the units left take long enough. Otherwise the caller stays alone, for one unit,
    /// then for a few, then for an eighth of them, then for all. In a loop that was short it stays alone for
    /// a sixty-fourth of the units, for an eighth, then for all; of few units for one, and then for as many
    /// as it has done so far. So if some are long this time, though not the first ones, others may still be
    /// shared. If it looks first, it does an eighth of the units before it reads the clock. If there is no
    /// reason to measure, it does all the others then, and does not read the clock again. Otherwise it
    /// measures a sixty-fourth of the units, and then the others.
    #[inline]
    fn decide(&mut self, limit: usize) {
        let Some(measuring) = self.measuring.as_deref_mut() else { return };
        let Way::Probes { open, was_short, worth } = measuring.way else { return };
        let (done, units) = (self.next, self.partition.units);
        if let Some(look) = measuring.look {
            if done == 0 {
                self.most = units.div_ceil(UNMEASURED);
                return;
            }
            // Also in a search that has ended: its first run may have taken long. There is nothing to measure
            // then.
            if look(measuring.stopwatch.start()) && done < units.min(limit) {
                (measuring.look, measuring.done) = (None, done);
                self.most = units.div_ceil(FIRST);
            } else {
                self.most = usize::MAX;
                self.measuring = None;
            }
            return;
        }
        let Some(took) = measuring.stopwatch.lap() else {
            let now = measuring.stopwatch.start();
            measuring.begin.into_iter().for_each(|begin| begin(now));
            self.most = if was_short { units.div_ceil(FIRST) } else { 1 };
            return;
        };
        if done >= units.min(limit) {
            // The opener has been alone to the end, so that this is how long the loop takes one thread. A
            // search may have ended before the last unit.
            let total = measuring.stopwatch.total();
            if total >= WORTH_SHARING || (done >= units && !was_short) {
                (measuring.tell)(total);
            }
            self.measuring = None;
            return;
        }
        let (measured, left) = (done - measuring.done, units - done);
        let are_worth_it = takes(took, measured, left, worth);
        let share = match was_short {
            true => took >= HELP && are_worth_it,
            false if measuring.done == 0 && units >= MANY && worth == WORTH_SHARING => took >= LONG_UNIT,
            false => are_worth_it,
        };
        let rest = share.then(|| self.partition.after(done));
        if let Some(rest) = rest.filter(|rest| !rest.is_one_run()) {
            (measuring.tell)(of_units(took, measured, units).max(worth));
            self.most = usize::MAX;
            self.measuring = None;
            if let Some(counters) = open(rest) {
                (self.counters, self.partition) = (Some(counters), rest);
            }
            return;
        }
        self.most = match (measuring.done, was_short) {
            (_, true) if units < MANY => done,
            (_, true) => 7 * done,
            (0, false) => (units / 16).clamp(1, 64),
            (1, false) => (units / 8).max(1),
            _ => usize::MAX,
        };
        measuring.done = done;
    }

    fn claim_run(&mut self, counters: &Counters, limit: usize) -> Option<Range<usize>> {
        let blocks = self.partition.blocks();
        while self.emptied < blocks {
            let block = (self.own_block + self.emptied) % blocks;
            let counter = counters.of(block);
            let end = counter.end.load(Relaxed);
            // Looking before the increment bounds how far a counter passes its end.
            if counter.next.load(Relaxed) < end {
                let run = counter.next.fetch_add(1, Relaxed);
                if run < end {
                    let units = self.partition.units_of(block, run);
                    let units = self.partition.first + units.start..self.partition.first + units.end;
                    if units.start < limit {
                        return Some(units);
                    }
                }
            }
            // Runs of a counter ascend: this block has nothing left below the limit.
            self.emptied += 1;
        }
        None
    }

    /// Claims as many units as this participant did in a few microseconds the last time, or twice as many.
    fn claim_batch(&mut self, counter: &Counter, most: usize, limit: usize) -> Option<Range<usize>> {
        let most = self.batch.next(most);
        let Partition { first, units, .. } = self.partition;
        let end = units.min(limit.saturating_sub(first));
        let left = end.saturating_sub(counter.next.load(Relaxed));
        if left == 0 {
            return None;
        }
        // Towards the end batches become shorter, so that all participants finish together.
        let batch = most.min(left.div_ceil(4));
        let start = counter.next.fetch_add(batch, Relaxed);
        (start < end).then(|| first + start..first + units.min(start + batch))
    }
}

/// How long `units` take if `done` of them took this long.
fn of_units(took: u64, done: usize, units: usize) -> u64 {
    took.saturating_mul(units as u64) / done.max(1) as u64
}

/// Whether `units` take at least `time` if `done` of them took this long. Without a division, which takes
/// longer than the rest of a decision.
fn takes(took: u64, done: usize, units: usize, time: u64) -> bool {
    took.saturating_mul(units as u64) >= time * done as u64
}
