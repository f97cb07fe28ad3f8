//! How participants of a region claim its units of work (items, or chunks of items).
//!
//! 1. The opener makes a [`Partition`]: how many units there are and by which schedule they are claimed. It
//!    is plain data, and every participant gets a copy.
//! 2. The opener writes the start and the end of each block into the [`Counters`] of the region's slot, and
//!    then opens the region. Opening is a Release store and joining an Acquire load, so participants see the
//!    counters and everything that the region borrows.
//! 3. Each participant makes a [`Claimer`] and calls [`Claimer::claim`] until it returns `None`. A claim is
//!    one `fetch_add` on a counter. The old value is the number of a run, and the partition computes the
//!    units of that run. So no unit is claimed twice, and runs from one counter ascend.
//! 4. A schedule with blocks has one counter per participant. A participant empties its own block first (a
//!    worker gets the same block in every region, so caches stay warm). Then it claims from the blocks after
//!    it, so a worker that is late does not hold up the region.
//! 5. A counter that has passed its end stays there. A participant looks before it increments, so a counter
//!    passes its end by at most one increment per participant.
//! 6. A participant that finds nothing left leaves. The opener waits for all of them, and only then may the
//!    counters be laid out for another region.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `Partition` | the opener, before it opens the region | each participant, in its own copy |
//! | `Counter::next` | the opener in `lay_out`; every participant that claims | participants; idle workers, as a hint that work is left |
//! | `Counter::end` | the opener in `lay_out` | the same |
//! | `Claimer` | its participant | its participant |
//!
//! All accesses to counters are Relaxed. Atomicity alone makes claims disjoint, and the results of the units
//! are published when participants leave the region ([`slot`](super::slot)), not here. Loom checks that every
//! unit is claimed once (`every_unit_is_claimed_once` in `models.rs`).
//!
//! A caller whose units may be tiny does not open the region at once. Its claimer *probes*: it begins alone,
//! measures, and opens the region for the rest only if the work left is long enough to share. The opener of a
//! loop that was short before ([`history`](super::history)) does the same, also if it has few units.
//!
//! Two schedules adapt the length of runs:
//! - *Guided* runs become shorter towards the end, by *factoring*: half of the remaining units is cut into
//!   one run for each participant, then half of the rest, and so on (S. F. Hummel, E. Schonberg, L. E. Flynn,
//!   [*Factoring: a method for scheduling parallel loops*](https://doi.org/10.1145/135226.135232), CACM
//!   35(8), 1992). The start of the k-th run follows from k, so one increment claims it.
//! - *Greedy* runs have a length that each participant measures: see [`AdaptiveBatch`].

mod adaptive;
mod claimer;
mod counters;
mod partition;
mod stopwatch;
mod ticks;

pub(crate) use adaptive::AdaptiveBatch;
pub(crate) use claimer::{Claimer, Measuring, WORTH_SHARING, WORTH_WAKING};
pub(crate) use counters::Counters;
pub(crate) use partition::{Kind, Partition};
pub(crate) use stopwatch::Stopwatch;
#[cfg(test)]
pub(crate) use stopwatch::stopped;

#[cfg(all(test, not(loom)))]
mod tests;
