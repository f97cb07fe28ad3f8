//! The search for a period in what a program submits.

use super::pass::Asked;
use crate::rolling_hash::RollingHash;

/// The longest period that is found, in submissions. A power of two.
const LONGEST: usize = 4096;

/// The number of keys whose last positions are known. A power of two.
const KNOWN: usize = 1024;

/// The number of submissions that must repeat at the least before they are memorised.
const REPEATED: u64 = 16;

/// How often the number of submissions that must repeat is doubled at most.
const DOUBLED: u32 = 10;

/// The keys of the last submissions, and the period that they seem to have.
///
/// The distance to the last submission with the same key is the first guess at the period. The guess stays as
/// long as each submission has the key of the one a period before. If it holds for a whole period, the period
/// is found.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The key of each of the last submissions, at its number modulo the length. Empty before the first one.
    keys: Vec<u64>,
    /// For each key, at the key modulo the length, the key and the number of the last submission with it.
    last: Vec<(u64, u64)>,
    /// The number of submissions so far.
    submitted: u64,
    /// The guess; 0 if there is none.
    period: u64,
    /// For how many submissions the guess has held.
    repeated: u64,
    /// The number of recent passes that were not worth their cost, whether they were memorised or recalled.
    disappointments: u32,
}

impl Watch {
    /// Notes a submission. Returns the period if it has held for long enough.
    #[inline]
    pub(super) fn note(&mut self, asked: Asked<'_>) -> Option<usize> {
        let key = key(asked);
        if self.keys.is_empty() {
            (self.keys, self.last) = (vec![0; LONGEST], vec![(0, 0); KNOWN]);
        }
        let at = self.submitted;
        if self.period > 0 && self.keys[(at - self.period) as usize % LONGEST] == key {
            self.repeated += 1;
        } else {
            let (known, last) = self.last[key as usize % KNOWN];
            let is_near = known == key && at - last <= LONGEST as u64;
            (self.period, self.repeated) = if is_near { (at - last, 1) } else { (0, 0) };
        }
        self.keys[at as usize % LONGEST] = key;
        self.last[key as usize % KNOWN] = (key, at);
        self.submitted += 1;
        let enough = self.period.max(REPEATED) << self.disappointments;
        (self.period > 0 && self.repeated >= enough).then_some(self.period as usize)
    }

    /// Whether this still is the period.
    pub(super) fn has_period(&self, period: usize) -> bool {
        self.period == period as u64
    }

    /// Notes that the submissions before have nothing to do with those to come.
    pub(super) fn interrupt(&mut self) {
        (self.period, self.repeated) = (0, 0);
    }

    /// Notes that a pass was not worth its cost: the next one waits for more submissions
    /// that repeat.
    pub(super) fn disappoint(&mut self) {
        self.interrupt();
        self.disappointments = (self.disappointments + 1).min(DOUBLED);
    }

    /// Notes that a pass was worth its cost.
    pub(super) fn satisfy(&mut self) {
        self.interrupt();
        self.disappointments = 0;
    }
}

/// The key of a submission; never 0.
#[inline]
fn key(asked: Asked<'_>) -> u64 {
    let Asked { accesses, effects, is_task } = asked;
    let mut hash = RollingHash::default();
    hash.add((accesses.len() as u64) << 1 | u64::from(is_task));
    for access in accesses {
        hash.add(access.buffer.0 << 2 | access.mode as u64);
        hash.add_region(&access.region);
    }
    for effect in effects {
        hash.add(effect.object.0 << 2 | effect.order as u64);
    }
    hash.value().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Effect, ObjectId, Order};

    /// The first submission at which a period is found in this sequence of objects, and the period.
    fn found(watch: &mut Watch, objects: impl IntoIterator<Item = u64>) -> Option<(usize, usize)> {
        objects.into_iter().enumerate().find_map(|(at, object)| {
            let effects = [Effect { object: ObjectId(object), order: Order::Sequential }];
            let period = watch.note(Asked { accesses: &[], effects: &effects, is_task: true })?;
            Some((at, period))
        })
    }

    #[test]
    fn a_period_is_found_after_it_has_held_once() {
        for period in [1, 2, 17, 316, LONGEST as u64] {
            let submissions = (0..3 * LONGEST as u64).map(|at| at % period);
            let expected = (period + period.max(REPEATED) - 1) as usize;
            // Two keys of a long period may share a place, which costs at most one period more.
            let (at, length) = found(&mut Watch::default(), submissions).unwrap();
            assert_eq!(length as u64, period);
            assert!(at == expected || period > KNOWN as u64 / 4, "{at}");
        }
    }

    /// A short period inside of a long one is given up for the long one.
    #[test]
    fn a_period_with_a_shorter_one_inside_is_found() {
        let submissions = (0..1000u64).map(|at| if at % 9 == 8 { 2 } else { 1 });
        assert_eq!(found(&mut Watch::default(), submissions).unwrap().1, 9);
    }

    #[test]
    fn what_never_repeats_has_no_period() {
        assert_eq!(found(&mut Watch::default(), 0..10_000), None);
        assert_eq!(found(&mut Watch::default(), (0..10_000).map(|at| at % (LONGEST as u64 + 1))), None);
    }

    #[test]
    fn disappointments_postpone_the_next_attempt() {
        let mut watch = Watch::default();
        let mut before = 0;
        for _ in 0..3 {
            let (at, _) = found(&mut watch, std::iter::repeat_n(1, 10_000)).unwrap();
            assert!(at > before);
            before = at;
            watch.disappoint();
        }
        watch.satisfy();
        assert!(found(&mut watch, std::iter::repeat_n(1, 10_000)).unwrap().0 <= REPEATED as usize);
    }
}
