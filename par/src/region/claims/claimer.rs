//! One participant's side of the claims.

use super::{AdaptiveBatch, Counters, Kind, Partition, counters::Counter};
use crate::sync::atomic::Ordering::*;
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// If the first unit takes this long, the region is opened at once.
const LONG_UNIT: Duration = Duration::from_nanos(100);

/// The units that are left must take one thread this long to be shared: a thread that helps costs some 300 ns.
const WORTH_SHARING: Duration = Duration::from_nanos(1500);

/// About how long it takes to read the clock.
const CLOCK_COST: Duration = Duration::from_nanos(20);

/// Opens the region for the units that are left. `None` where it cannot be opened.
pub(crate) type OpenRegion<'a> = dyn Fn(Partition) -> Option<&'a Counters> + 'a;

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
    probe: Option<Probe<'a>>,
}

/// The state of a caller that is alone and has not decided yet whether to open the region.
struct Probe<'a> {
    open: &'a OpenRegion<'a>,
    /// How many units were done when the clock was last read, and the time then.
    done: usize,
    since: Option<Instant>,
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
            probe: None,
        }
    }

    /// For a participant that is alone: all units in ascending order, in runs of at most `most`.
    pub(crate) fn alone(partition: Partition, most: usize) -> Self {
        Self {
            partition,
            counters: None,
            own_block: 0,
            emptied: 0,
            next: 0,
            most: most.max(1),
            batch: AdaptiveBatch::new(),
            probe: None,
        }
    }

    /// For a caller that begins alone, and calls `open` for the remaining units if the first ones show that sharing them
    /// pays: in a loop of half a microsecond, waking other threads costs more than they save.
    pub(crate) fn probing(partition: Partition, own_block: usize, open: &'a OpenRegion<'a>) -> Self {
        let probe = Probe { open, done: 0, since: None };
        Self { own_block, probe: Some(probe), ..Self::alone(partition, usize::MAX) }
    }

    /// Claims the next run, if there is one that begins before unit `limit`.
    #[inline]
    pub(crate) fn claim(&mut self, limit: usize) -> Option<Range<usize>> {
        if self.probe.is_some() {
            self.decide();
        }
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

    /// Opens the region if the units left take long enough. Otherwise the caller stays alone, for one unit, then for a few, then
    /// for an eighth of them, then for all.
    #[inline]
    fn decide(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        let (done, units) = (self.next, self.partition.units);
        let few = (units / 64).min(32);
        let now = Instant::now();
        if let Some(since) = probe.since.replace(now) {
            let took = (now - since).saturating_sub(CLOCK_COST);
            let left = took.as_nanos() as u64 * (units - done) as u64 / (done - probe.done) as u64;
            // The clock is too coarse to extrapolate from one unit.
            let first = done == 1;
            let share = if first { took >= LONG_UNIT } else { left >= WORTH_SHARING.as_nanos() as u64 };
            let decided = share || probe.done > few;
            if share {
                let rest = self.partition.after(done);
                if let Some(counters) = (probe.open)(rest) {
                    (self.counters, self.partition) = (Some(counters), rest);
                }
            }
            probe.done = done;
            if decided {
                self.most = usize::MAX;
                self.probe = None;
                return;
            }
        }
        self.most = match done {
            0 => 1,
            1 => few,
            _ => units / 8,
        };
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
