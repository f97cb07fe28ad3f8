//! How the units of a region (items, or chunks of items) are dealt out to its participants.
//!
//! A [`Deal`] says how; [`Cursors`] are what the participants share; a [`Taker`] is one participant's side, and gives it
//! one run of units after the other until nothing is left. Runs from one cursor ascend.
//!
//! With blocks, every participant has a cursor of its own: it empties its own block first (the same block for the same
//! worker in every region, so that caches stay warm) and then helps with the others, because a worker that is late must
//! not hold the region up.
//!
//! *Guided* runs become shorter towards the end, by *factoring*: half of what is left is cut into one run for each
//! participant, then half of the rest, and so on (S. F. Hummel, E. Schonberg, L. E. Flynn, *Factoring: a method for
//! scheduling parallel loops*, CACM 35(8), 1992). Where the k-th run begins follows from k, so one increment takes it.

use crate::sync::{
    Padded,
    atomic::{AtomicUsize, Ordering::*},
};
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// How long a run of a [`Kind::Greedy`] deal should take: long beside the 30 ns that it costs to take it.
const GREEDY_RUN: Range<Duration> = Duration::from_micros(4)..Duration::from_micros(32);

/// How units are dealt out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Runs of `grain` units from one cursor.
    Dynamic { grain: usize },
    /// Runs that become shorter, down to `grain` units, and of at most `most`.
    Guided { participants: usize, grain: usize },
    /// Runs of a length that is measured: one unit, or more where units take no time. At most `most`.
    Greedy { most: usize },
    /// A block of consecutive units for each participant, taken in runs of `grain`.
    Blocks { participants: usize, grain: usize },
    /// Every n-th unit for each of n participants, one by one.
    RoundRobin { participants: usize },
}

/// How the units of one region are dealt out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    /// The first unit: those before it are done.
    first: usize,
    /// How many there are from there on.
    units: usize,
    kind: Kind,
    /// Guided: the number of rounds before runs have the shortest length.
    rounds: u32,
}

impl Deal {
    pub(crate) fn new(units: usize, kind: Kind) -> Self {
        let rounds = match kind {
            Kind::Guided { participants, grain } => {
                let enough = 2 * participants * grain;
                (0..usize::BITS).find(|&r| units >> r < enough).unwrap_or(0)
            }
            _ => 0,
        };
        Self { first: 0, units, kind, rounds }
    }

    /// What is left when the first `done` units are done.
    fn after(&self, done: usize) -> Self {
        Self { first: done, ..Self::new(self.units - done, self.kind) }
    }

    /// Whether its caller is to begin alone.
    pub(crate) fn is_tentative(&self) -> bool {
        TENTATIVE.contains(&self.units)
            && matches!(self.kind, Kind::Dynamic { .. } | Kind::Guided { .. } | Kind::Greedy { .. })
    }

    /// Whether it is one run, so that there is nothing to share.
    pub(crate) fn is_one_run(&self) -> bool {
        match self.kind {
            Kind::Dynamic { grain } | Kind::Blocks { grain, .. } => self.units <= grain,
            _ => self.units <= 1,
        }
    }

    /// The number of cursors.
    fn blocks(&self) -> usize {
        match self.kind {
            Kind::Blocks { participants, .. } | Kind::RoundRobin { participants } => participants,
            _ => 1,
        }
    }

    /// What a cursor counts, from where to where. All count runs, so that they pass their ends by no more than the
    /// number of participants; greedy ones count units.
    fn span(&self, block: usize) -> Range<usize> {
        match self.kind {
            Kind::Dynamic { grain } => 0..self.units.div_ceil(grain),
            Kind::Guided { participants, grain } => {
                let rest = self.units >> self.rounds;
                0..self.rounds as usize * participants + rest.div_ceil(grain)
            }
            Kind::Greedy { .. } => 0..self.units,
            Kind::Blocks { participants, grain } => even(self.units.div_ceil(grain), participants, block),
            Kind::RoundRobin { participants } => 0..self.units.saturating_sub(block).div_ceil(participants),
        }
    }

    /// The units of a block's run number `run`.
    fn run(&self, block: usize, run: usize) -> Range<usize> {
        match self.kind {
            Kind::Dynamic { grain } | Kind::Blocks { grain, .. } => {
                let start = run * grain;
                start..start + grain.min(self.units - start)
            }
            Kind::Guided { participants, grain } => self.guided(run, participants, grain),
            Kind::Greedy { .. } => run..run + 1,
            Kind::RoundRobin { participants } => {
                let unit = block + run * participants;
                unit..unit + 1
            }
        }
    }

    fn guided(&self, run: usize, participants: usize, grain: usize) -> Range<usize> {
        let (round, place) = (run / participants, run % participants);
        if round < self.rounds as usize {
            let left = self.units >> round;
            let part = even(left - (left >> 1), participants, place);
            let before = self.units - left;
            before + part.start..before + part.end
        } else {
            let left = self.units >> self.rounds;
            let start = (run - self.rounds as usize * participants) * grain;
            let before = self.units - left;
            before + start..before + (start + grain).min(left)
        }
    }
}

/// Part `i` of `parts` of `0..n`; the first ones are longer by one where it does not come out even.
fn even(n: usize, parts: usize, i: usize) -> Range<usize> {
    let (each, longer) = (n / parts, n % parts);
    let begin = |i: usize| each * i + longer.min(i);
    begin(i)..begin(i + 1)
}

#[derive(Debug, Default)]
struct Cursor {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// The cursors of one slot; reused for every region that is opened there.
#[derive(Debug)]
pub(crate) struct Cursors(Box<[Padded<Cursor>]>);

impl Cursors {
    /// For regions of up to `participants` participants.
    pub(crate) fn new(participants: usize) -> Self {
        Self((0..participants).map(|_| Padded::default()).collect())
    }

    /// Lays out a new region's units. Nobody else may be using these cursors.
    pub(crate) fn lay_out(&self, deal: &Deal) {
        for (block, cursor) in self.0[..deal.blocks()].iter().enumerate() {
            let span = deal.span(block);
            // Relaxed: the region is opened with Release afterwards.
            cursor.next.store(span.start, Relaxed);
            cursor.end.store(span.end, Relaxed);
        }
    }

    /// Whether a unit is left that nobody has taken (a hint).
    pub(crate) fn surplus(&self, deal: &Deal) -> bool {
        self.0[..deal.blocks()].iter().any(|c| c.next.load(Relaxed) < c.end.load(Relaxed))
    }
}

/// How many units a loop must have, and may have, to begin alone.
const TENTATIVE: Range<usize> = 128..16 << 10;

/// Where the first unit takes so long, nobody needs to see a second one.
const LONG_UNIT: Duration = Duration::from_nanos(100);

/// What is left must take so long, for one thread, before others are asked to help: they cost some 300 ns.
const WORTH_SHARING: Duration = Duration::from_nanos(1500);

/// About how long it takes to look at the clock.
const CLOCK: Duration = Duration::from_nanos(20);

/// Opens the region for what is left when so many units are done; `None` where that cannot be.
pub(crate) type Open<'a> = dyn Fn(Deal) -> Option<&'a Cursors> + 'a;

/// A caller who is alone and has not decided yet whether to ask others.
struct Tentative<'a> {
    open: &'a Open<'a>,
    /// How many units were done when the clock was last looked at, and when that was.
    seen: usize,
    since: Option<Instant>,
}

/// One participant's side of a deal.
pub(crate) struct Taker<'a> {
    deal: Deal,
    /// None where the caller is alone: then `next` is the cursor.
    cursors: Option<&'a Cursors>,
    home: usize,
    visited: usize,
    next: usize,
    /// Alone: how many units to take at a time.
    most: usize,
    pace: Pace,
    tentative: Option<Tentative<'a>>,
}

/// How many to take at a time, where nobody knows what one costs.
#[derive(Debug)]
pub(crate) struct Pace {
    batch: usize,
    /// When the last ones were taken.
    since: Option<Instant>,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self { batch: 1, since: None }
    }

    /// As many as were done in a few microseconds the last time, or twice as many; at most `most`.
    pub(crate) fn next(&mut self, most: usize) -> usize {
        let now = Instant::now();
        if let Some(since) = self.since.replace(now) {
            let took = now - since;
            if took < GREEDY_RUN.start {
                self.batch = (self.batch * 2).min(most);
            } else if took > GREEDY_RUN.end {
                self.batch = (self.batch / 2).max(1);
            }
        }
        self.batch
    }
}

impl<'a> Taker<'a> {
    /// For the participant whose own block is `home`.
    pub(crate) fn new(deal: Deal, cursors: &'a Cursors, home: usize) -> Self {
        Self {
            deal,
            cursors: Some(cursors),
            home,
            visited: 0,
            next: 0,
            most: 1,
            pace: Pace::new(),
            tentative: None,
        }
    }

    /// For a participant who is alone: everything in ascending order, in runs of at most `most` units.
    pub(crate) fn alone(deal: Deal, most: usize) -> Self {
        Self {
            deal,
            cursors: None,
            home: 0,
            visited: 0,
            next: 0,
            most: most.max(1),
            pace: Pace::new(),
            tentative: None,
        }
    }

    /// For a caller who begins alone, and opens the region for what is left if the first units have shown that it is worth
    /// the while: the threads that help in a loop of half a microsecond would make it longer.
    pub(crate) fn tentative(deal: Deal, home: usize, open: &'a Open<'a>) -> Self {
        let tentative = Tentative { open, seen: 0, since: None };
        Self { home, tentative: Some(tentative), ..Self::alone(deal, usize::MAX) }
    }

    /// The next run, if there is one that begins before unit `limit`.
    #[inline]
    pub(crate) fn take(&mut self, limit: usize) -> Option<Range<usize>> {
        if self.tentative.is_some() {
            self.decide();
        }
        match self.cursors {
            None => {
                let end = self.deal.units.min(limit);
                let run = self.next..self.deal.units.min(self.next.saturating_add(self.most));
                self.next = run.end;
                (run.start < end).then_some(run)
            }
            Some(cursors) => match self.deal.kind {
                Kind::Greedy { most } => self.take_batch(&cursors.0[0], most, limit),
                _ => self.take_run(cursors, limit),
            },
        }
    }

    /// Goes on alone for one unit, then for a few, then for an eighth of them, then for all; or opens the region.
    #[inline]
    fn decide(&mut self) {
        let Some(tentative) = &mut self.tentative else { return };
        let (done, units) = (self.next, self.deal.units);
        let few = (units / 64).min(32);
        let now = Instant::now();
        if let Some(since) = tentative.since.replace(now) {
            let took = (now - since).saturating_sub(CLOCK);
            let left = took.as_nanos() as u64 * (units - done) as u64 / (done - tentative.seen) as u64;
            // The clock is too coarse to tell from one unit how long all will take.
            let first = done == 1;
            let share = if first { took >= LONG_UNIT } else { left >= WORTH_SHARING.as_nanos() as u64 };
            let decided = share || tentative.seen > few;
            if share {
                let rest = self.deal.after(done);
                if let Some(cursors) = (tentative.open)(rest) {
                    (self.cursors, self.deal) = (Some(cursors), rest);
                }
            }
            tentative.seen = done;
            if decided {
                self.most = usize::MAX;
                self.tentative = None;
                return;
            }
        }
        self.most = match done {
            0 => 1,
            1 => few,
            _ => units / 8,
        };
    }

    fn take_run(&mut self, cursors: &Cursors, limit: usize) -> Option<Range<usize>> {
        let blocks = self.deal.blocks();
        while self.visited < blocks {
            let block = (self.home + self.visited) % blocks;
            let cursor = &cursors.0[block];
            let end = cursor.end.load(Relaxed);
            // The look before the increment bounds how far a cursor runs past its end.
            if cursor.next.load(Relaxed) < end {
                let run = cursor.next.fetch_add(1, Relaxed);
                if run < end {
                    let units = self.deal.run(block, run);
                    let units = self.deal.first + units.start..self.deal.first + units.end;
                    if units.start < limit {
                        return Some(units);
                    }
                }
            }
            // Runs of a cursor ascend: nothing is left in it below the limit.
            self.visited += 1;
        }
        None
    }

    /// Takes as many units as were done in a few microseconds the last time, or twice as many.
    fn take_batch(&mut self, cursor: &Cursor, most: usize, limit: usize) -> Option<Range<usize>> {
        let most = self.pace.next(most);
        let Deal { first, units, .. } = self.deal;
        let end = units.min(limit.saturating_sub(first));
        let left = end.saturating_sub(cursor.next.load(Relaxed));
        if left == 0 {
            return None;
        }
        // Towards the end the rest is shared.
        let batch = most.min(left.div_ceil(4));
        let start = cursor.next.fetch_add(batch, Relaxed);
        (start < end).then(|| first + start..first + units.min(start + batch))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const KINDS: fn(usize) -> [Kind; 6] = |participants| {
        [
            Kind::Dynamic { grain: 3 },
            Kind::Guided { participants, grain: 1 },
            Kind::Guided { participants, grain: 5 },
            Kind::Greedy { most: 16 },
            Kind::Blocks { participants, grain: 2 },
            Kind::RoundRobin { participants },
        ]
    };

    #[test]
    fn every_unit_is_taken_once_by_takers_in_turns() {
        for participants in [1, 2, 3, 8] {
            for units in [0, 1, 2, 7, 64, 1000] {
                for kind in KINDS(participants) {
                    let deal = Deal::new(units, kind);
                    let cursors = Cursors::new(participants);
                    cursors.lay_out(&deal);
                    let mut takers: Vec<_> =
                        (0..participants).map(|i| Taker::new(deal, &cursors, i)).collect();
                    let mut taken = vec![0; units];
                    let mut open = true;
                    while open {
                        open = false;
                        for taker in &mut takers {
                            for unit in taker.take(usize::MAX).into_iter().flatten() {
                                taken[unit] += 1;
                                open = true;
                            }
                        }
                    }
                    assert!(taken.iter().all(|&t| t == 1), "{kind:?} {units} {taken:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_taken_from_the_limit_on_and_everything_before_it() {
        for kind in KINDS(3) {
            let deal = Deal::new(100, kind);
            let cursors = Cursors::new(3);
            cursors.lay_out(&deal);
            let mut taken = [false; 100];
            for home in 0..3 {
                let mut taker = Taker::new(deal, &cursors, home);
                while let Some(run) = taker.take(40) {
                    assert!(run.start < 40);
                    run.for_each(|unit| taken[unit] = true);
                }
            }
            assert!(taken[..40].iter().all(|&t| t), "{kind:?}");
        }
    }

    #[test]
    fn guided_runs_become_shorter() {
        let deal = Deal::new(1000, Kind::Guided { participants: 2, grain: 3 });
        let lengths: Vec<_> = deal.span(0).map(|run| deal.run(0, run).len()).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 1000);
        assert_eq!(lengths[..6], [250, 250, 125, 125, 63, 62]);
        assert!(lengths.windows(2).all(|pair| pair[1] <= pair[0] + 1));
    }

    #[test]
    fn round_robin_gives_every_nth() {
        let deal = Deal::new(7, Kind::RoundRobin { participants: 3 });
        let of = |block| deal.span(block).flat_map(move |run| deal.run(block, run)).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    #[test]
    fn who_is_alone_takes_everything_in_order() {
        let mut taker = Taker::alone(Deal::new(10, Kind::Dynamic { grain: 1 }), 4);
        assert_eq!(
            [taker.take(9), taker.take(9), taker.take(9), taker.take(9)],
            [Some(0..4), Some(4..8), Some(8..10), None]
        );
    }
}
