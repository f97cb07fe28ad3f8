use super::{
    Plan, RegionBody,
    claims::{Claimer, Kind, Partition, stopped},
    history::{Advice, Key, advice, is_short},
    run,
};
use crate::{ThreadPool, patience::processors};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

/// Counts the units that a thread does.
struct Units {
    thread: ThreadId,
    count: AtomicUsize,
}

impl RegionBody for Units {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        while let Some(run) = claimer.claim(usize::MAX) {
            if thread::current().id() == self.thread {
                self.count.fetch_add(run.len(), Relaxed);
            }
        }
    }
}

const UNITS: usize = 2;

/// A pool of two threads in which no time passes for the calling thread.
fn pool(share_short_loops: bool) -> ThreadPool {
    let mut builder = ThreadPool::builder().threads(2).share_short_loops(share_short_loops);
    builder.stopwatch = Some(stopped::stopwatch());
    builder.build().unwrap()
}

/// A loop of this number of units for two threads, whose opener may begin alone.
fn plan(units: usize) -> Plan {
    Plan {
        participants: 2,
        items: units,
        partition: Partition::new(units, Kind::Dynamic { grain: 1 }),
        may_begin_alone: true,
        most: usize::MAX,
        flush: false,
    }
}

/// Runs a loop, and returns how many units the calling thread has done.
fn units_of_caller(pool: &ThreadPool) -> usize {
    let body = Units { thread: thread::current().id(), count: AtomicUsize::new(0) };
    run(pool.state(), &plan(UNITS), &body);
    body.count.into_inner()
}

#[test]
fn a_loop_that_was_short_is_done_by_its_opener() {
    let _deadline = testing::deadline();
    let pool = pool(false);
    for _ in 0..4 {
        assert_eq!(advice(Key::of::<Units>(UNITS), false, 0), Advice::Probe);
        units_of_caller(&pool);
    }
    assert_eq!(advice(Key::of::<Units>(UNITS), false, 0), Advice::Alone);
    assert!((0..1000).all(|_| units_of_caller(&pool) == UNITS));
}

#[test]
fn a_pool_that_shares_short_loops_remembers_none() {
    let _deadline = testing::deadline();
    let pool = pool(true);
    for _ in 0..100 {
        units_of_caller(&pool);
        assert_eq!(advice(Key::of::<Units>(UNITS), false, 0), Advice::Probe);
    }
}

/// Work of 20 ns for each unit, by the stopped clock of the calling thread.
struct Work(ThreadId);

impl RegionBody for Work {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        while let Some(run) = claimer.claim(usize::MAX) {
            if thread::current().id() == self.0 {
                stopped::advance(Duration::from_nanos(20) * run.len() as u32);
            }
        }
    }
}

/// Units of given times, by the stopped clock of the calling thread.
struct Timed<F>(ThreadId, F);

impl<F: Fn(usize) -> u64 + Sync> RegionBody for Timed<F> {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        while let Some(run) = claimer.claim(usize::MAX) {
            if thread::current().id() == self.0 {
                stopped::advance(Duration::from_nanos(run.map(&self.1).sum()));
            }
        }
    }
}

/// Runs a loop, and returns whether it passes for a short one afterwards.
fn is_short_after<F: Fn(usize) -> u64 + Sync>(pool: &ThreadPool, units: usize, nanos: F) -> bool {
    run(pool.state(), &plan(units), &Timed(thread::current().id(), nanos));
    is_short(Key::of::<Timed<F>>(units))
}

/// Short loops of these numbers of units before and after a loop, and a pause before all of them, in
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Others {
    pause: u64,
    before: &'static [usize],
    after: &'static [usize],
}

/// How often a loop that was short and now takes long in the units `long` is done by its opener, before it no
/// longer passes for a short one. `None` if a record of one of the others displaces that of the loop.
fn times_until_noticed(units: usize, long: Range<usize>, others: Others) -> Option<usize> {
    let pool = pool(false);
    let is_long = AtomicBool::new(false);
    let run_others = |others: &[usize]| {
        others.iter().for_each(|&units| _ = is_short_after(&pool, units, |_| 5));
    };
    let run_loop = || {
        stopped::advance(Duration::from_nanos(others.pause));
        run_others(others.before);
        let is_short = is_short_after(&pool, units, |unit| {
            if is_long.load(Relaxed) && long.contains(&unit) { 100_000 } else { 0 }
        });
        run_others(others.after);
        is_short
    };
    (0..40).for_each(|_| _ = run_loop());
    run_loop().then(|| {
        is_long.store(true, Relaxed);
        (0..10).take_while(|_| run_loop()).count()
    })
}

/// Wherever the long units are, and whether other loops or pauses come between.
#[test]
fn a_loop_that_becomes_long_does_not_pass_for_a_short_one_for_ever() {
    const NONE: &[usize] = &[];
    const OTHERS: [[&[usize]; 2]; 7] = [
        [NONE, NONE],
        [&[7], NONE],
        [NONE, &[9]],
        [&[7], &[7]],
        [&[11], &[11]],
        [&[7, 11, 13], &[7]],
        [&[15, 17], &[19]],
    ];
    let _deadline = testing::deadline();
    let mut cases = 0;
    for (units, pause) in
        [2, 8, 64, 1000].into_iter().flat_map(|units| [0, 2_000].map(|pause| (units, pause)))
    {
        let first = (units / 8).max(1);
        for [before, after] in OTHERS {
            let others = Others { pause, before, after };
            for long in [0..first, first..units, units - 1..units] {
                let case = format!("{long:?} of {units} units, {others:?}");
                // A new thread has no record of the loops.
                let times = thread::spawn(move || times_until_noticed(units, long, others)).join().unwrap();
                assert!(times.is_none_or(|times| times <= 1), "{case}: noticed after {times:?} times");
                cases += usize::from(times.is_some());
            }
        }
    }
    assert!(cases > 120, "{cases} of 168 cases");
}

/// A loop that is long once in five times is a surprise, until it must be short too often in a row to pass
/// for a short one.
#[test]
fn a_loop_that_is_long_now_and_then_does_not_pass_for_a_short_one_for_ever() {
    let _deadline = testing::deadline();
    let pool = pool(false);
    let run_loop = |nanos: u64| is_short_after(&pool, 64, |unit| if unit > 40 { nanos } else { 0 });
    let times_short =
        |count: usize| (0..count).filter(|time| run_loop(if time % 5 == 0 { 100_000 } else { 0 })).count();
    (0..40).for_each(|_| _ = run_loop(0));
    assert!(run_loop(0));
    times_short(200);
    assert_eq!(times_short(200), 0);
}

/// A search for one of its first units, of 64.
struct Search {
    thread: ThreadId,
    is_long: AtomicBool,
}

impl RegionBody for Search {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        let mut limit = usize::MAX;
        while let Some(run) = claimer.claim(limit) {
            let nanos = if self.is_long.load(Relaxed) { 100_000 } else { 0 };
            if thread::current().id() == self.thread {
                run.for_each(|_| stopped::advance(Duration::from_nanos(nanos)));
            }
            limit = 5;
        }
    }
}

#[test]
fn a_search_that_becomes_long_in_its_first_run_does_not_pass_for_a_short_one_for_ever() {
    let _deadline = testing::deadline();
    let pool = pool(false);
    let search = Search { thread: thread::current().id(), is_long: AtomicBool::new(false) };
    let is_short_after = || {
        run(pool.state(), &plan(64), &search);
        is_short(Key::of::<Search>(64))
    };
    (0..40).for_each(|_| _ = is_short_after());
    assert!(is_short_after());
    search.is_long.store(true, Relaxed);
    assert!((0..2).any(|_| !is_short_after()));
}

/// A loop whose last units wait until another thread has done one.
struct Meeting {
    caller: ThreadId,
    has_met: AtomicBool,
}

impl RegionBody for Meeting {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        while let Some(run) = claimer.claim(usize::MAX) {
            if thread::current().id() != self.caller {
                self.has_met.store(true, Relaxed);
            } else if run.end > 188 {
                let begin = Instant::now();
                while !self.has_met.load(Relaxed) && begin.elapsed() < Duration::from_secs(20) {
                    thread::yield_now();
                }
                stopped::advance(Duration::from_millis(1));
            }
        }
    }
}

/// The first units of a loop say nothing about the others, if it was not short before.
#[test]
fn a_loop_that_was_long_is_shared_at_once_whatever_its_first_units_take() {
    let _deadline = testing::deadline();
    let pool = pool(false);
    let meets = |may_meet: bool| {
        let meeting = Meeting { caller: thread::current().id(), has_met: AtomicBool::new(!may_meet) };
        run(pool.state(), &plan(1000), &meeting);
        meeting.has_met.into_inner()
    };
    meets(false);
    assert!((0..40).all(|_| meets(true)));
}

#[test]
fn short_loops_of_any_number_of_units_that_follow_each_other_wake_a_worker() {
    let _deadline = testing::deadline();
    if processors() < 2 {
        // No worker looks for work for a while, so none is woken for several loops.
        return;
    }
    for units in [100, 1000, 2000] {
        let pool = pool(false);
        let must_wake = || pool.state().sleep.must_wake();
        let fall_asleep = || {
            while !must_wake() {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let run_loop = || run(pool.state(), &plan(units), &Work(thread::current().id()));
        // What is known of the loop afterwards: that it is too short to wake a worker.
        for _ in 0..4 {
            fall_asleep();
            run_loop();
        }
        fall_asleep();
        assert_eq!(advice(Key::of::<Work>(units), true, 0), Advice::LetSleep, "{units}");
        let wakes = (0..1000).any(|_| {
            run_loop();
            !must_wake()
        });
        assert!(wakes, "{units}");
    }
}
