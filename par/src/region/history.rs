//! A record of the loops that a thread has opened: which ones one thread does sooner than two.
//!
//! A thread that helps costs up to a microsecond, and some fifty times that if it sleeps. How long a loop
//! takes is not known before it has run, but programs open the same loops again and again.
//!
//! 1. A loop has a [`Key`]: its code and its number of items. A thread keeps a [`Record`] of each of some
//!    loops, in a table of its own.
//! 2. The opener of a loop that it shares measures how long its first run of units takes, and how long it
//!    takes until the loop has ended. It records how long the whole loop would take one thread: at least as
//!    long as it takes now, because the first units may be the shortest ones.
//! 3. A loop that was shorter than [`WORTH_SHARING`] several times in a row is done by its opener alone. To
//!    read the clock takes a good part of such a loop, so the opener [looks](look) at it once, after an
//!    eighth of the units. If the thread has looked less than [`WORTH_SHARING`] ago, at another loop or the
//!    same one, then neither what is done of this loop nor what was left of that one took long, and the
//!    opener does not measure this loop.
//!    Otherwise one of them may have. So the opener measures the rest of this loop, and both loops are
//!    *doubtful*: their openers measure all of their runs the next [`DOUBTED`] times. Loops inside of other
//!    loops have looks of their own. If a run shows that the units left are worth it, the opener opens the
//!    region for them. Then, or if a loop that was measured was not short, the record begins anew.
//! 4. The opener of a loop that was not short shares it the next [`UNMEASURED`] times, and does not measure
//!    it.
//! 5. If a worker has to be woken, the same holds for a loop that was shorter than [`WORTH_WAKING`] several
//!    times in a row: its opener does it alone, and opens the region only for units that are worth that. If
//!    such loops follow each other, it wakes a worker for all of them: see [`waking`](super::waking).
//!
//! So a loop that takes long at least once in [`DOUBTED`] times is shared. A loop that was always short, and
//! takes long from now on, is shared the third time at the latest, if a worker is awake: the first time it
//! may not be noticed, and the second time it may become long in the last run that its opener measures. That
//! run is done by one thread: of a loop of two long units both, because one unit is not shared. So the record
//! counts how often a loop was a [`SURPRISE`], and from then on it must be short more often in a row: see
//! [`ENOUGH`].
//!
//! Two loops whose keys have the same place in the table displace each other. A loop of which no record is
//! left is shared, after some of its units if it has many. Where the clock is slow, and in a pool whose
//! program wants it, all loops are shared at once.

use super::{
    RegionBody,
    body::ErasedBody,
    claims::{Stopwatch, WORTH_SHARING, WORTH_WAKING},
};
use std::cell::Cell;

/// The number of times in a row that a loop must be short before its opener does it alone, by the number of
/// times that it was a [`SURPRISE`].
const ENOUGH: [u8; MOST_SURPRISES as usize + 1] = [4, 16, 64];

/// The number of times in a row that a loop must be too short to wake a worker for it, before its opener does
/// it alone while the workers sleep, by the number of times that it was a [`SURPRISE_WHILE_ASLEEP`]. After
/// two surprises: never alone for this reason.
const ENOUGH_TO_LET_SLEEP: [u8; MOST_SURPRISES as usize + 1] = [4, 64, u8::MAX];

/// A loop that takes at least this long, in nanoseconds, after it was short often enough, is a surprise. Most
/// interruptions of the thread are shorter.
const SURPRISE: u64 = 10 * WORTH_SHARING;

/// The time of a surprise, in nanoseconds, for a loop that its opener does alone because the workers sleep.
/// It is longer: a system may take the processor from a thread for some milliseconds.
const SURPRISE_WHILE_ASLEEP: u64 = 400 * WORTH_WAKING;

/// The largest number of surprises that is counted.
const MOST_SURPRISES: u8 = 2;

/// The number of times that the opener of a loop that was not short does not measure it.
const UNMEASURED: u8 = 15;

/// The number of loops that a thread remembers, as a power of two.
const PLACES: u32 = 6;

/// A loop: its code and its number of items. The lowest 24 bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// No loop.
    const NONE: Self = Self(0);

    #[inline]
    pub(super) fn of<B: RegionBody>(items: usize) -> Self {
        let number = (ErasedBody::code::<B>() as u64).rotate_left(32) ^ items as u64;
        // An odd number spreads the bits (Fibonacci hashing: Knuth, The Art of Computer Programming 3, 6.4).
        Self(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & KEY)
    }

    #[inline]
    fn place(self) -> usize {
        (self.0 >> (u64::BITS - PLACES)) as usize
    }
}

/// The bits of a record that are its key.
const KEY: u64 = !0xff_ffff;

/// What is known of a loop, in one word, so that it takes little time to look it up: its key; how often in a
/// row it was too short to wake a worker (8 bits); how often in a row it was short (8 bits); how often it was
/// a surprise while workers slept (2 bits) and otherwise (2 bits); how often it is treated otherwise from now
/// on (4 bits): see [`left`](Record::left).
#[derive(Clone, Copy)]
struct Record(u64);

impl Record {
    fn new(Key(key): Key, light: u8, short: u8, surprises: [u8; 2], left: u8) -> Self {
        let [asleep, otherwise] = surprises.map(|surprises| surprises.min(MOST_SURPRISES));
        let last = asleep << 6 | otherwise << 4 | left;
        Self(key | u64::from(light) << 16 | u64::from(short) << 8 | u64::from(last))
    }

    #[inline]
    fn is_of(self, Key(key): Key) -> bool {
        self.0 & KEY == key
    }

    /// How often in a row the loop was too short to wake a worker for it, up to 254.
    #[inline]
    fn light(self) -> u8 {
        (self.0 >> 16) as u8
    }

    #[inline]
    fn short(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// How often the loop was a surprise while workers slept, and otherwise.
    #[inline]
    fn surprises(self) -> [u8; 2] {
        [self.0 as u8 >> 6, self.0 as u8 >> 4 & 3]
    }

    /// How often the opener will not measure the loop. Of a loop that its opener does alone: how often it
    /// will measure it, because it is doubtful.
    #[inline]
    fn left(self) -> u8 {
        self.0 as u8 & 0xf
    }

    /// Whether the opener does the loop alone.
    #[inline]
    fn was_short_enough(self) -> bool {
        self.short() >= ENOUGH[usize::from(self.surprises()[1])]
    }

    /// Whether the opener does the loop alone where it would have to wake a worker.
    #[inline]
    fn was_light_enough(self) -> bool {
        self.light() >= ENOUGH_TO_LET_SLEEP[usize::from(self.surprises()[0])]
    }
}

/// What the opener of a loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Shares the loop, and measures it. If it has many units, begins alone: it may be short.
    Probe,
    /// Shares the loop, which was not short the last time, and measures it.
    Measure,
    /// Shares the loop.
    Share,
    /// Begins alone, and measures whether the units left are worth sharing if the loop may have become long.
    Alone,
    /// Begins alone, and measures whether the units left are worth sharing.
    MeasureAlone,
    /// Begins alone as for [`MeasureAlone`](Self::MeasureAlone), unless many such loops follow each other:
    /// the loop is too short to wake a worker for it.
    LetSleep,
}

thread_local! {
    /// The records have no destructor, so that a thread may use them at any time.
    static RECORDS: [Cell<Record>; 1 << PLACES] = const { [const { Cell::new(Record(0)) }; 1 << PLACES] };

    /// Element n: the last look at the clock in a loop inside of n regions, joins, scopes and jobs.
    static LOOKS: [Cell<Look>; DEPTHS] = const { [const { Cell::new(Look::NONE) }; DEPTHS] };
}

/// A loop inside of at least this many regions, joins, scopes and jobs is measured each time.
pub(super) const DEPTHS: usize = 4;

/// How often the opener of a doubtful loop measures it. A loop that takes long only now and then is noticed if
/// it does so once in 15 calls.
const DOUBTED: u64 = 15;

/// A look at the clock.
#[derive(Clone, Copy)]
struct Look {
    /// In ticks.
    time: u64,
    /// The loop that the thread was in; none if it was at the begin or the end of a loop that it measures.
    key: Key,
}

impl Look {
    const NONE: Self = Self { time: 0, key: Key::NONE };
}

/// The calling thread looks at the clock in a loop, inside of `depth` regions, joins, scopes and jobs, at
/// this time in ticks. Returns whether its last look is so long ago that one of the two loops may have become
/// long. Then both are doubtful.
#[inline]
pub(super) fn look(key: Key, depth: usize, now: u64, stopwatch: &Stopwatch) -> bool {
    LOOKS.with(|looks| {
        let last = looks[depth].replace(Look { time: now, key });
        let is_long_ago = stopwatch.nanos(last.time, now) >= WORTH_SHARING;
        if is_long_ago {
            doubt([last.key, key]);
        }
        is_long_ago
    })
}

/// The same at the beginning of a loop that the thread measures: only the loop of the last look may have
/// become long.
pub(super) fn begin(depth: usize, now: u64, stopwatch: &Stopwatch) {
    look(Key::NONE, depth, now, stopwatch);
}

/// The thread looks at the clock at the end of such a loop. What comes until its next look is no part of a
/// loop.
pub(super) fn end(depth: usize, now: u64) {
    LOOKS.with(|looks| looks[depth].set(Look { time: now, key: Key::NONE }));
}

#[cold]
fn doubt(keys: [Key; 2]) {
    RECORDS.with(|records| {
        for key in keys {
            let place = &records[key.place()];
            let record = place.get();
            if record.is_of(key) && record.was_short_enough() {
                place.set(Record(record.0 & !0xf | DOUBTED));
            }
        }
    });
}

/// What the opener of a loop does, from what the calling thread remembers. `must_wake` says that a worker has
/// to be woken if the loop is shared; `depth`, how many regions, joins, scopes and jobs are around it.
#[inline]
pub(super) fn advice(key: Key, must_wake: bool, depth: usize) -> Advice {
    // A model must not depend on what earlier ones did.
    if cfg!(loom) {
        return Advice::Share;
    }
    RECORDS.with(|records| {
        let place = &records[key.place()];
        let record = place.get();
        let alone = || {
            if record.left() > 0 {
                place.set(Record(record.0 - 1));
            }
            if record.left() > 0 || depth >= DEPTHS { Advice::MeasureAlone } else { Advice::Alone }
        };
        if !record.is_of(key) {
            Advice::Probe
        } else if must_wake && record.light() > 0 {
            if record.was_short_enough() {
                alone()
            } else if record.was_light_enough() {
                Advice::LetSleep
            } else {
                Advice::Probe
            }
        } else if record.was_short_enough() {
            alone()
        } else if record.left() > 0 {
            place.set(Record(record.0 - 1));
            Advice::Share
        } else if record.short() > 0 {
            Advice::Probe
        } else {
            Advice::Measure
        }
    })
}

/// Whether the opener of a loop does it alone, if workers look for work.
#[cfg(all(test, not(loom)))]
pub(super) fn is_short(key: Key) -> bool {
    RECORDS.with(|records| {
        let record = records[key.place()].get();
        record.is_of(key) && record.was_short_enough()
    })
}

/// Remembers how long a loop would take one thread, in nanoseconds. Of a loop that was shared this is a guess
/// by its first units. It takes no longer than `most`, unless that is 0.
#[cold]
pub(super) fn record(key: Key, time: u64, most: u64) {
    RECORDS.with(|records| {
        let place = &records[key.place()];
        let known = Some(place.get()).filter(|record| record.is_of(key));
        let before = known.unwrap_or(Record::new(key, 0, 0, [0; 2], 0));
        let is_light = time < WORTH_WAKING && most < 2 * WORTH_WAKING;
        let light = if is_light { before.light().saturating_add(1).min(u8::MAX - 1) } else { 0 };
        place.set(if time < WORTH_SHARING {
            Record::new(key, light, before.short().saturating_add(1), before.surprises(), 0)
        } else {
            let [mut asleep, mut otherwise] = before.surprises();
            otherwise += u8::from(time >= SURPRISE && before.was_short_enough());
            asleep += u8::from(time >= SURPRISE_WHILE_ASLEEP && before.was_light_enough());
            Record::new(key, light, 0, [asleep, otherwise], UNMEASURED)
        });
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::region::claims::{Claimer, stopped};
    use std::{iter, thread, time::Duration};

    const LOOP: Key = Key(7 << 25);
    const LONG: u64 = WORTH_SHARING;
    const SHORT: u64 = 0;

    /// Remembers a loop that its opener has done alone.
    fn record(key: Key, time: u64) {
        super::record(key, time, 0);
    }

    /// For a loop of few units.
    fn advice(key: Key, must_wake: bool) -> Advice {
        match super::advice(key, must_wake, 0) {
            Advice::Probe => Advice::Measure,
            advice => advice,
        }
    }

    #[test]
    fn only_a_loop_that_may_be_short_is_probed() {
        let _deadline = testing::deadline();
        let probes = || super::advice(LOOP, false, 0) == Advice::Probe;
        assert!(probes());
        record(LOOP, SHORT);
        assert!(probes());
        record(LOOP, LONG);
        assert!((0..100).all(|_| !probes()));
    }

    /// Lets this time pass, and looks at the clock in a loop.
    fn look_after(nanos: u64, key: Key, depth: usize) -> bool {
        let mut stopwatch = stopped::go_on();
        stopped::advance(Duration::from_nanos(nanos));
        let now = stopwatch.start();
        look(key, depth, now, &stopwatch)
    }

    /// Makes loops short ones, of which the thread has just seen the first.
    fn make_short(keys: &[Key]) {
        stopped::stopwatch();
        for &key in keys {
            (0..ENOUGH[0]).for_each(|_| record(key, SHORT));
            assert_eq!(advice(key, false), Advice::Alone);
        }
        look(keys[0], 0, 0, &stopped::go_on());
    }

    #[test]
    fn short_loops_that_follow_each_other_are_looked_at_once() {
        let _deadline = testing::deadline();
        let other = Key(9 << 58 | 1 << 25);
        make_short(&[LOOP, other]);
        for key in [other, LOOP, LOOP, other, LOOP] {
            assert!(!look_after(WORTH_SHARING - 1, key, 0));
            assert_eq!(advice(key, false), Advice::Alone);
        }
    }

    /// The time may have passed in the last units of the loop before, or in the first ones of this one.
    #[test]
    fn loops_on_both_sides_of_a_long_time_are_measured_the_next_time() {
        let _deadline = testing::deadline();
        let other = Key(9 << 58 | 1 << 25);
        make_short(&[LOOP, other]);
        assert!(look_after(WORTH_SHARING, other, 0));
        for key in [LOOP, other] {
            let advices: Vec<_> = (0..20).map(|_| advice(key, false)).collect();
            let (measured, alone) = advices.split_at(DOUBTED as usize);
            assert!(measured.iter().all(|advice| *advice == Advice::MeasureAlone), "{advices:?}");
            assert!(alone.iter().all(|advice| *advice == Advice::Alone), "{advices:?}");
        }
        assert!(!look_after(0, LOOP, 0));
    }

    #[test]
    fn loops_inside_of_others_do_not_hide_how_long_those_take() {
        let _deadline = testing::deadline();
        let inner = Key(9 << 58 | 1 << 25);
        make_short(&[LOOP, inner]);
        look(inner, 1, 0, &stopped::go_on());
        for _ in 0..10 {
            assert!(!look_after(WORTH_SHARING / 8, inner, 1));
        }
        assert!(look_after(0, LOOP, 0));
        assert_eq!(super::advice(inner, false, DEPTHS - 1), Advice::Alone);
        assert_eq!(super::advice(inner, false, DEPTHS), Advice::MeasureAlone);
    }

    fn advices(count: usize) -> Vec<Advice> {
        iter::repeat_with(|| advice(LOOP, false)).take(count).collect()
    }

    #[test]
    fn a_loop_is_done_alone_when_it_was_short_several_times_in_a_row() {
        let _deadline = testing::deadline();
        for _ in 0..ENOUGH[0] {
            assert_eq!(advices(3), [Advice::Measure; 3]);
            record(LOOP, SHORT);
        }
        assert_eq!(advices(100), [Advice::Alone; 100]);
        record(LOOP, SHORT);
        assert_eq!(advice(LOOP, false), Advice::Alone);
        // Another thread has no record of it.
        assert_eq!(thread::spawn(|| advice(LOOP, false)).join().unwrap(), Advice::Measure);
        record(LOOP, LONG);
        assert_eq!(advices(UNMEASURED.into()), [Advice::Share; UNMEASURED as usize]);
        assert_eq!(advices(2), [Advice::Measure; 2]);
    }

    #[test]
    fn a_loop_that_was_long_when_it_was_done_alone_must_be_short_more_often() {
        let _deadline = testing::deadline();
        for enough in ENOUGH.into_iter().chain([64; 2]) {
            advices(UNMEASURED.into());
            // A long loop that is shared is no surprise.
            record(LOOP, SHORT);
            record(LOOP, LONG);
            for _ in 0..enough {
                assert_ne!(advice(LOOP, false), Advice::Alone);
                record(LOOP, SHORT);
            }
            assert_eq!(advice(LOOP, false), Advice::Alone);
            record(LOOP, SURPRISE);
        }
    }

    #[test]
    fn a_loop_that_is_only_a_little_longer_is_no_surprise() {
        let _deadline = testing::deadline();
        for _ in 0..10 {
            advices(UNMEASURED.into());
            (0..ENOUGH[0]).for_each(|_| record(LOOP, SHORT));
            assert_eq!(advice(LOOP, false), Advice::Alone);
            record(LOOP, SURPRISE - 1);
        }
    }

    #[test]
    fn loops_of_different_lengths_are_different_loops() {
        let _deadline = testing::deadline();
        struct Nothing;
        impl RegionBody for Nothing {
            fn participate(&self, _: &mut Claimer<'_>) {}
        }
        assert_eq!(Key::of::<Nothing>(4096), Key::of::<Nothing>(4096));
        assert_ne!(Key::of::<Nothing>(4096), Key::of::<Nothing>(8192));
    }

    #[test]
    fn a_loop_that_is_short_only_sometimes_is_shared() {
        let _deadline = testing::deadline();
        for run in 0..100 {
            assert_ne!(advice(LOOP, false), Advice::Alone);
            record(LOOP, if run % ENOUGH[0] == 0 { LONG } else { SHORT });
        }
    }

    #[test]
    fn a_loop_is_done_alone_where_a_worker_sleeps_that_is_not_worth_waking() {
        let _deadline = testing::deadline();
        const LIGHT: u64 = WORTH_WAKING - 1;
        for light in 0..ENOUGH_TO_LET_SLEEP[0] {
            assert_eq!(advice(LOOP, true), Advice::Measure, "{light}");
            record(LOOP, LIGHT);
        }
        for _ in 0..100 {
            assert_eq!(advice(LOOP, true), Advice::LetSleep);
            record(LOOP, LIGHT);
        }
        // A worker that is awake helps.
        assert_eq!(advice(LOOP, false), Advice::Share);
        record(LOOP, WORTH_WAKING);
        assert_eq!(advice(LOOP, true), Advice::Share);
    }

    #[test]
    fn a_loop_that_was_long_while_workers_slept_wakes_them_from_then_on() {
        let _deadline = testing::deadline();
        for enough in ENOUGH_TO_LET_SLEEP {
            advices(UNMEASURED.into());
            for _ in 0..enough {
                assert_ne!(advice(LOOP, true), Advice::LetSleep);
                record(LOOP, WORTH_WAKING - 1);
            }
            assert_eq!(advice(LOOP, true) == Advice::LetSleep, enough < u8::MAX, "{enough}");
            record(LOOP, SURPRISE_WHILE_ASLEEP);
        }
    }

    #[test]
    fn a_loop_that_many_threads_have_shared_is_not_taken_for_a_light_one() {
        let _deadline = testing::deadline();
        for _ in 0..100 {
            assert_ne!(advice(LOOP, true), Advice::LetSleep);
            super::record(LOOP, WORTH_WAKING - 1, 64 * WORTH_WAKING);
        }
    }

    #[test]
    fn loops_with_the_same_place_are_shared() {
        let _deadline = testing::deadline();
        let other = Key(8 << 25);
        assert_eq!(LOOP.place(), other.place());
        for key in [LOOP, other].into_iter().cycle().take(100) {
            assert_eq!(advice(key, false), Advice::Measure);
            record(key, SHORT);
        }
    }
}
