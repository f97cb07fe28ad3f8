//! Bounded pools of values and critical sections keep their bounds, and never deadlock.

mod common;

use anabranch_par::{Critical, prelude::*, scratch::Pool};
use common::THREADS;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

/// Measures the maximum number of uses at the same time.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn during(&self, f: impl FnOnce()) {
        self.most.fetch_max(self.now.fetch_add(1, Relaxed) + 1, Relaxed);
        f();
        self.now.fetch_sub(1, Relaxed);
    }
}

#[test]
fn a_pool_never_lends_more_values_than_its_bound() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = ThreadPool::new(threads).unwrap();
        let (made, gauge) = (AtomicUsize::new(0), Gauge::default());
        let values = Pool::new(2, || made.fetch_add(1, Relaxed));
        (0..500).par().on(&pool).schedule(Schedule::Greedy).for_each(|_| {
            let _value = values.take();
            gauge.during(std::thread::yield_now);
        });
        assert!(gauge.most.into_inner() <= 2 && made.load(Relaxed) <= 2);
        assert!(values.into_values().len() <= 2);
    }
}

#[test]
fn a_panic_returns_the_value_to_the_pool() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(3).unwrap();
    let values = Pool::new(1, || 0);
    for _ in 0..10 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            (0..8).par().on(&pool).for_each(|_| {
                *values.take() += 1;
                let _value = values.take();
                panic!("with a value");
            });
        }));
        assert!(panicked.is_err());
    }
    assert!(values.into_values()[0] >= 10);
}

#[test]
fn a_panic_while_making_a_value_leaves_its_place_free() {
    let _deadline = testing::deadline();
    let fail = AtomicUsize::new(1);
    let values = Pool::new(1, || assert!(fail.swap(0, Relaxed) == 0, "the first"));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(values.take()))).is_err());
    values.take();
}

/// Every thread holds a value and opens a loop whose items take values. If these waited, they would wait for
/// ever.
#[test]
fn taking_a_value_in_a_loop_of_a_holder_does_not_deadlock() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = ThreadPool::new(threads).unwrap();
        let values = Pool::new(1, Vec::<u8>::new);
        (0..20).par().on(&pool).chunking(false).for_each(|_| {
            let _outer = values.take();
            (0..4).par().chunking(false).for_each(|_| {
                let _inner = values.take();
                std::thread::yield_now();
            });
        });
        assert_eq!(values.into_values().len(), 1);
    }
}

/// One item takes a value of `a` and then of `b`, another one takes them in the other order.
#[test]
fn two_pools_in_two_orders_do_not_deadlock() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = ThreadPool::new(threads).unwrap();
        let (a, b) =
            (Pool::new(1, String::new as fn() -> String), Pool::new(1, String::new as fn() -> String));
        (0..200).par().on(&pool).chunking(false).for_each(|i| {
            let (first, second) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
            let _first = first.take();
            std::thread::yield_now();
            let _second = second.take();
        });
    }
}

#[test]
fn try_take_returns_none_if_no_value_is_free() {
    let _deadline = testing::deadline();
    let values = Pool::new(1, || 5);
    let value = values.try_take().unwrap();
    assert!(values.try_take().is_none());
    assert_eq!((*value, values.bound()), (5, 1));
    drop(value);
    assert!(values.try_take().is_some());
}

#[test]
fn a_critical_section_has_one_thread_at_a_time_and_may_contain_loops() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = ThreadPool::new(threads).unwrap();
        let (gauge, total) = (Gauge::default(), Critical::new(0));
        (0..40).par().on(&pool).chunking(false).for_each(|i| {
            total.enter(|total| {
                gauge.during(|| *total += (0..10_usize).par().map(|k| k * i).sum());
            });
        });
        assert_eq!((gauge.most.into_inner(), total.into_inner()), (1, 45 * 780));
    }
}

#[test]
fn entering_a_critical_section_twice_panics_instead_of_deadlocking() {
    let _deadline = testing::deadline();
    let section = Critical::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| section.enter(|_| section.enter(|_| ()))));
    let message = *panicked.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.starts_with("this critical section was entered from inside itself"), "{message}");
    section.enter(|value| assert_eq!(*value, 1));
}
