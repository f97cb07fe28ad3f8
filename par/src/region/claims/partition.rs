//! How the units of a region are cut into blocks and runs: plain data and arithmetic.

use std::ops::Range;

/// How many units a loop has, at least and at most, if its caller begins alone.
const PROBED: Range<usize> = 128..16 << 10;

/// The schedule by which units are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Runs of `grain` units from one counter.
    Dynamic { grain: usize },
    /// Runs that become shorter, down to `grain` units.
    Guided { participants: usize, grain: usize },
    /// Runs of a length that each participant measures: one unit, or more where units are short. At most
    /// `most`.
    Greedy { most: usize },
    /// A block of consecutive units for each participant, claimed in runs of `grain`.
    Blocks { participants: usize, grain: usize },
    /// Every n-th unit for each of n participants, one by one.
    RoundRobin { participants: usize },
}

/// The units of one region and how they are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// The first unit: those before it are done.
    pub(super) first: usize,
    /// The number of units from there on.
    pub(super) units: usize,
    pub(super) kind: Kind,
    /// Guided: the number of rounds before runs have the shortest length.
    rounds: u32,
}

impl Partition {
    #[inline]
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

    /// The partition of the units that are left when the first `done` units are done.
    pub(super) fn after(&self, done: usize) -> Self {
        Self { first: done, ..Self::new(self.units - done, self.kind) }
    }

    /// Whether the caller may begin alone: any participant may do any unit, and the units are few enough that
    /// the loop may be short.
    #[inline]
    pub(crate) fn may_begin_alone(&self) -> bool {
        self.units < PROBED.end
            && matches!(self.kind, Kind::Dynamic { .. } | Kind::Guided { .. } | Kind::Greedy { .. })
    }

    /// Whether a caller that may begin alone should do so, if it does not know that the loop is long.
    #[inline]
    pub(crate) fn is_probed(&self) -> bool {
        self.units >= PROBED.start
    }

    /// The number of units.
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Whether there is at most one run, so that there is nothing to share.
    #[inline]
    pub(crate) fn is_one_run(&self) -> bool {
        match self.kind {
            Kind::Dynamic { grain } | Kind::Blocks { grain, .. } => self.units <= grain,
            _ => self.units <= 1,
        }
    }

    /// The number of blocks, each of which has a counter.
    #[inline]
    pub(super) fn blocks(&self) -> usize {
        match self.kind {
            Kind::Blocks { participants, .. } | Kind::RoundRobin { participants } => participants,
            _ => 1,
        }
    }

    /// The numbers of a block's runs, which its counter goes through. A greedy counter counts units instead.
    pub(super) fn runs(&self, block: usize) -> Range<usize> {
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

    /// The units of run number `run` of a block, counted from [`first`](Self::first).
    #[inline]
    pub(super) fn units_of(&self, block: usize, run: usize) -> Range<usize> {
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

    #[inline]
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

/// Part `i` of `parts` of `0..n`. Lengths differ by one at most; the longer parts come first.
#[inline]
fn even(n: usize, parts: usize, i: usize) -> Range<usize> {
    let (each, longer) = (n / parts, n % parts);
    let begin = |i: usize| each * i + longer.min(i);
    begin(i)..begin(i + 1)
}
