use super::{
    Plan, RegionBody,
    claims::{Claimer, Kind, Partition, stopped},
    history::{Advice, Key, advice},
    run,
};
use crate::ThreadPool;
use std::{
    sync::atomic::{AtomicUsize, Ordering::*},
    thread::{self, ThreadId},
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

/// Runs a loop, and returns how many units the calling thread has done.
fn units_of_caller(pool: &ThreadPool) -> usize {
    let body = Units { thread: thread::current().id(), count: AtomicUsize::new(0) };
    let partition = Partition::new(UNITS, Kind::Dynamic { grain: 1 });
    let plan = Plan {
        participants: 2,
        items: UNITS,
        partition,
        may_begin_alone: true,
        most: usize::MAX,
        flush: false,
    };
    run(pool.state(), &plan, &body);
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
