use super::{
    Plan, RegionBody,
    claims::{Claimer, Kind, Partition, stopped},
    history::{Advice, Key, advice},
    run,
};
use crate::{ThreadPool, patience::processors};
use std::{
    sync::atomic::{AtomicUsize, Ordering::*},
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
        assert_eq!(advice(Key::of::<Units>(UNITS), false), Advice::Measure);
        units_of_caller(&pool);
    }
    assert_eq!(advice(Key::of::<Units>(UNITS), false), Advice::Alone);
    assert!((0..1000).all(|_| units_of_caller(&pool) == UNITS));
}

#[test]
fn a_pool_that_shares_short_loops_remembers_none() {
    let _deadline = testing::deadline();
    let pool = pool(true);
    for _ in 0..100 {
        units_of_caller(&pool);
        assert_eq!(advice(Key::of::<Units>(UNITS), false), Advice::Measure);
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
        assert_eq!(advice(Key::of::<Work>(units), true), Advice::LetSleep, "{units}");
        let wakes = (0..1000).any(|_| {
            run_loop();
            !must_wake()
        });
        assert!(wakes, "{units}");
    }
}
