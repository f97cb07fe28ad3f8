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
    time::Duration,
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
        assert_eq!(advice(Key::of::<Units>(UNITS), false, 0), Advice::Measure);
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
        assert_eq!(advice(Key::of::<Units>(UNITS), false, 0), Advice::Measure);
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

/// How often a loop that was short and now takes long in the units `long` is done by its opener, before it no
/// longer passes for a short one. Before it, short loops of these numbers of units are run each time. `None`
/// if a record of one of them displaces that of the loop.
fn times_until_noticed(units: usize, long: Range<usize>, others: &[usize]) -> Option<usize> {
    let pool = pool(false);
    let is_long = AtomicBool::new(false);
    let run_loop =
        || {
            others.iter().for_each(|&units| _ = is_short_after(&pool, units, |_| 5));
            is_short_after(&pool, units, |unit| {
                if is_long.load(Relaxed) && long.contains(&unit) { 100_000 } else { 0 }
            })
        };
    (0..20).for_each(|_| _ = run_loop());
    run_loop().then(|| {
        is_long.store(true, Relaxed);
        (0..10).take_while(|_| run_loop()).count()
    })
}

/// Wherever the long units are, and whether other loops come between.
#[test]
fn a_loop_that_becomes_long_does_not_pass_for_a_short_one_for_ever() {
    const OTHERS: [&[usize]; 5] = [&[], &[7], &[9], &[7, 11, 13], &[15, 17, 19]];
    let _deadline = testing::deadline();
    let mut cases = 0;
    for (units, others) in [2, 8, 64, 1000].into_iter().flat_map(|units| OTHERS.map(|others| (units, others)))
    {
        let first = (units / 8).max(1);
        for long in [0..first, first..units, units - 1..units] {
            let case = format!("{long:?} of {units} units, {others:?} units of others");
            // A new thread has no record of the loops.
            let times = thread::spawn(move || times_until_noticed(units, long, others)).join().unwrap();
            assert!(times.is_none_or(|times| times <= 2), "{case}: noticed after {times:?} times");
            cases += usize::from(times.is_some());
        }
    }
    assert!(cases > 40, "{cases} of 60 cases");
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
