//! What a thread remembers of the loops that it has opened: which ones one thread does sooner than two.
//!
//! A thread that helps costs more than a microsecond's work. How long a loop takes is not known before it has
//! run, but programs open the same loops again and again.
//!
//! 1. A loop has a [`Key`]: its code and its number of units. A thread keeps a [`Record`] of each of some
//!    loops, in a table of its own.
//! 2. The opener of a loop that it shares measures how long its first run of units takes, and how long it
//!    takes part. It records how long the whole loop would take one thread: at least as long as it takes part
//!    itself, because the first units may be the shortest ones.
//! 3. A loop that was [`SHORT`] several times in a row is done by its opener alone, in two or three runs. The
//!    opener measures each of them. If one shows that the units left are worth it, the opener opens the
//!    region for them. Then, or if the whole loop was not short, the record begins anew.
//! 4. The opener of any other loop does not measure it the next [`UNMEASURED`] times. It shares a loop of few
//!    units and almost no work, too, because such a loop has ended before another thread comes.
//!
//! So a loop that takes sometimes long and sometimes not is shared. A loop that was always short, and takes
//! long for the first time, is shared after a unit or an eighth of them; only if these are short and the
//! others long, its opener does it alone this once. Two loops whose keys have the same place in the table
//! displace each other, and are shared. Where it takes long to read the clock, all loops are shared.

use super::{RegionBody, body::ErasedBody, claims::WORTH_SHARING};
use std::{cell::Cell, ops::Range, time::Duration};

/// Loops that take one thread this long are done sooner by one thread than by two. To share a shorter loop
/// costs less than to measure it.
const SHORT: Range<Duration> = Duration::from_nanos(400)..WORTH_SHARING;

/// How often in a row a loop was short before its opener does it alone.
const ENOUGH: u8 = 4;

/// How often the opener of another loop does not measure it.
const UNMEASURED: u8 = 15;

/// The number of loops that a thread remembers, as a power of two.
const PLACES: u32 = 6;

/// A loop: its code and its number of units. The lowest 16 bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    #[inline]
    pub(super) fn of<B: RegionBody>(units: usize) -> Self {
        let number = (ErasedBody::code::<B>() as u64).rotate_left(32) ^ units as u64;
        // An odd number spreads the bits (Fibonacci hashing: Knuth, The Art of Computer Programming 3, 6.4).
        Self(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xffff)
    }

    #[inline]
    fn place(self) -> usize {
        (self.0 >> (u64::BITS - PLACES)) as usize
    }
}

/// What is known of a loop, in one word, so that a look costs little: its key; how often in a row it was
/// short (8 bits); how often it is not measured from now on (8 bits).
#[derive(Clone, Copy)]
struct Record(u64);

impl Record {
    fn new(Key(key): Key, short: u8, unmeasured: u8) -> Self {
        Self(key | u64::from(short) << 8 | u64::from(unmeasured))
    }

    #[inline]
    fn is_of(self, Key(key): Key) -> bool {
        self.0 & !0xffff == key
    }

    #[inline]
    fn short(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    fn unmeasured(self) -> u8 {
        self.0 as u8
    }
}

/// What the opener of a loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Shares the loop, and measures it.
    Measure,
    /// Shares the loop.
    Share,
    /// Begins alone, and measures whether the units left are worth sharing.
    Alone,
}

thread_local! {
    /// Without a destructor, so that it may be used at any time.
    static RECORDS: [Cell<Record>; 1 << PLACES] = const { [const { Cell::new(Record(0)) }; 1 << PLACES] };
}

/// What the opener of a loop does, from what the calling thread remembers.
#[inline]
pub(super) fn advice(key: Key) -> Advice {
    // A model must not depend on what earlier ones did.
    if cfg!(loom) {
        return Advice::Share;
    }
    RECORDS.with(|records| {
        let place = &records[key.place()];
        let record = place.get();
        if !record.is_of(key) {
            Advice::Measure
        } else if record.unmeasured() > 0 {
            place.set(Record(record.0 - 1));
            Advice::Share
        } else if record.short() >= ENOUGH {
            Advice::Alone
        } else {
            Advice::Measure
        }
    })
}

/// Remembers how long a loop would take one thread. A loop of many units is begun alone and measured in any
/// case, so however short it is, it is better done alone.
#[cold]
pub(super) fn record(key: Key, time: Duration, has_many_units: bool) {
    let time = if has_many_units { time.max(SHORT.start) } else { time };
    RECORDS.with(|records| {
        let place = &records[key.place()];
        let before = place.get();
        let in_a_row = if before.is_of(key) { before.short() } else { 0 };
        place.set(match SHORT.contains(&time) {
            true => Record::new(key, (in_a_row + 1).min(ENOUGH), 0),
            false => Record::new(key, 0, UNMEASURED),
        });
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{iter, thread};

    const LOOP: Key = Key(7 << 16);
    const LONG: Duration = WORTH_SHARING;
    const TINY: Duration = Duration::from_nanos(399);

    fn advices(count: usize) -> Vec<Advice> {
        iter::repeat_with(|| advice(LOOP)).take(count).collect()
    }

    #[test]
    fn a_loop_is_done_alone_when_it_was_short_several_times_in_a_row() {
        let _deadline = testing::deadline();
        for _ in 0..ENOUGH {
            assert_eq!(advices(3), [Advice::Measure; 3]);
            record(LOOP, SHORT.start, false);
        }
        assert_eq!(advices(100), [Advice::Alone; 100]);
        record(LOOP, SHORT.start, false);
        assert_eq!(advice(LOOP), Advice::Alone);
        // Another thread knows nothing of it.
        assert_eq!(thread::spawn(|| advice(LOOP)).join().unwrap(), Advice::Measure);
        for other in [LONG, TINY] {
            record(LOOP, other, false);
            assert_eq!(advices(UNMEASURED.into()), [Advice::Share; UNMEASURED as usize]);
            assert_eq!(advices(2), [Advice::Measure; 2]);
        }
    }

    #[test]
    fn a_loop_of_many_units_and_almost_no_work_is_done_alone() {
        let _deadline = testing::deadline();
        (0..ENOUGH).for_each(|_| record(LOOP, TINY, true));
        assert_eq!(advice(LOOP), Advice::Alone);
        record(LOOP, LONG, true);
        assert_eq!(advice(LOOP), Advice::Share);
    }

    #[test]
    fn a_loop_that_is_short_only_sometimes_is_shared() {
        let _deadline = testing::deadline();
        for run in 0..100 {
            assert_ne!(advice(LOOP), Advice::Alone);
            record(LOOP, if run % ENOUGH == 0 { LONG } else { SHORT.start }, false);
        }
    }

    #[test]
    fn loops_with_the_same_place_are_shared() {
        let _deadline = testing::deadline();
        let other = Key(8 << 16);
        assert_eq!(LOOP.place(), other.place());
        for key in [LOOP, other].into_iter().cycle().take(100) {
            assert_eq!(advice(key), Advice::Measure);
            record(key, SHORT.start, false);
        }
    }
}
