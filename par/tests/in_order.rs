//! `in_order` passes results to one closure, in the order of the items and one at a time.

mod common;

use anabranch_par::{CancellationToken, LoopError, prelude::*};
use common::*;
use std::{
    cell::RefCell,
    convert::Infallible,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
};

const ITEMS: usize = 300;

#[test]
fn the_sink_gets_all_results_in_order_and_one_at_a_time() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let inside = AtomicBool::new(false);
        let mut seen = Vec::new();
        config
            .apply((0..ITEMS).par())
            .map(|i| {
                linger_at_some(i);
                i
            })
            .in_order(|i| {
                assert!(!inside.swap(true, Relaxed), "two at a time");
                seen.push(i);
                inside.store(false, Relaxed);
            });
        assert!(seen.into_iter().eq(0..ITEMS), "{config:?}");
    }
}

/// More results are ahead of the slow item than the buffer has room for.
#[test]
fn a_slow_item_delays_later_ones_but_does_not_deadlock() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let begun = AtomicUsize::new(0);
        let mut next = 0;
        config
            .apply((0..1000).par())
            .map(|i| {
                begun.fetch_add(1, Relaxed);
                if i == 0 || i == 500 {
                    // The other participants fill the buffer meanwhile, and wait.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                i
            })
            .in_order(|i| {
                assert_eq!(i, next);
                next += 1;
            });
        assert_eq!((next, begun.into_inner()), (1000, 1000));
    }
}

#[test]
fn a_slow_sink_bounds_the_number_of_results_ahead() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let made = AtomicUsize::new(0);
        let mut most_ahead = 0;
        let mut received = 0;
        config
            .apply((0..2000).par())
            .chunk_size(1)
            .map(|i| {
                made.fetch_add(1, Relaxed);
                i
            })
            .in_order(|i| {
                if i % 100 == 0 {
                    linger();
                }
                received += 1;
                most_ahead = most_ahead.max(made.load(Relaxed).saturating_sub(received));
            });
        // The buffer has room for 64 results. Each participant may have up to two more.
        assert!(most_ahead <= 64 + 2 * config.threads, "{most_ahead} results ahead: {config:?}");
    }
}

/// A single participant passes each result to the sink at once.
#[test]
fn one_thread_buffers_no_results() {
    let _deadline = testing::deadline();
    for config in all_configs().filter(|config| config.threads == 1 || config.schedule == Schedule::Serial) {
        let made = AtomicUsize::new(0);
        let mut received = 0;
        config
            .apply((0..1000).par())
            .map(|_| {
                made.fetch_add(1, Relaxed);
            })
            .in_order(|()| {
                received += 1;
                assert_eq!(made.load(Relaxed), received, "{config:?}");
            });
    }
}

#[test]
fn an_error_of_the_sink_ends_an_endless_loop() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let mut seen = Vec::new();
        let result = config.apply((0..usize::MAX).par()).try_in_order(|i| {
            seen.push(i);
            if i == 1234 { Err("enough") } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), "item 1234: enough");
        assert!(seen.into_iter().eq(0..=1234), "{config:?}");
    }
}

#[test]
fn the_sink_gets_exactly_the_results_before_a_failure() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        for bad in [0, 50, ITEMS - 1] {
            let drops = DropCounter::new();
            let make = |i: usize| {
                linger_at_some(i);
                assert!(i != bad, "not this one");
                drops.add(i)
            };
            let mut seen = Vec::new();
            let result = config.apply((0..ITEMS).par()).map(make).try_in_order(|value| {
                seen.push(value.value);
                Ok::<_, Infallible>(())
            });
            assert_eq!(result.unwrap_err().to_string(), format!("item {bad} panicked: not this one"));
            assert!(seen.iter().copied().eq(0..bad), "{} of {bad}: {config:?}", seen.len());
            assert!(drops.all_dropped());

            let make = |i: usize| {
                linger_at_some(i);
                drops.add(i)
            };
            for panics in [false, true] {
                let mut seen = 0;
                let result = config.apply((0..ITEMS).par()).map(make).try_in_order(|value| {
                    assert_eq!(value.value, seen);
                    seen += 1;
                    assert!(!(panics && value.value == bad), "not this one");
                    if value.value == bad { Err("not this one") } else { Ok(()) }
                });
                let verb = if panics { " panicked" } else { "" };
                assert_eq!(result.unwrap_err().to_string(), format!("item {bad}{verb}: not this one"));
                assert_eq!(seen, bad + 1, "{config:?}");
                assert!(drops.all_dropped(), "{config:?}");
            }
        }
    }
}

/// The sink fails at an item, and the closure panics at another item, before or after it.
#[test]
fn of_two_failures_the_one_of_the_first_item_is_returned() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        for (unmade, refused) in [(100, 120), (120, 100), (7, 8), (8, 7), (100, 100)] {
            let make = |i: usize| {
                linger_at_some(i);
                assert!(i != unmade, "unmade");
                i
            };
            let result = config
                .apply((0..ITEMS).par())
                .map(make)
                .try_in_order(|i| if i == refused { Err(()) } else { Ok(()) });
            assert_eq!(result.unwrap_err().index(), Some(unmade.min(refused)), "{config:?}");
        }
    }
}

#[test]
fn the_sink_of_a_cancelled_loop_gets_the_first_results_without_gaps() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let token = CancellationToken::new();
        let mut seen = 0;
        let result = config.apply((0..10_000).par()).cancel_with(&token).try_in_order(|i| {
            assert_eq!(i, seen);
            seen += 1;
            if i == 10 {
                token.cancel();
            }
            Ok::<_, Infallible>(())
        });
        match result {
            // Other participants may have done items after one that was never begun. The sink does not get
            // these.
            Err(LoopError::Cancelled { done, items: Some(10_000) }) => assert!(done >= seen, "{config:?}"),
            Ok(()) => assert_eq!(seen, 10_000),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_sink_may_run_loops() {
    let _deadline = testing::deadline();
    thread_local!(static BORROWED: RefCell<usize> = const { RefCell::new(0) });
    for config in all_configs() {
        let mut sum = 0;
        config
            .apply((0..40_usize).par())
            .map(|i| {
                BORROWED.with(|b| {
                    let mut b = b.borrow_mut();
                    *b += config.apply((0..4).par()).map(|j| i * j).sum();
                    linger();
                });
                i
            })
            .in_order(|i| {
                BORROWED.with(|b| {
                    let _b = b.borrow_mut();
                    sum += config.apply((0..8_usize).par()).map(|j| i + j).sum();
                });
            });
        assert_eq!(sum, 8 * (39 * 40 / 2) + 28 * 40, "{config:?}");
    }
}

#[test]
fn a_sink_may_run_another_loop_in_order() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let mut seen = Vec::new();
        config.apply((0..10_usize).par()).in_order(|i| {
            config.apply((0..10_usize).par()).map(|j| 10 * i + j).in_order(|ij| seen.push(ij));
        });
        assert!(seen.into_iter().eq(0..100), "{config:?}");
    }
}
