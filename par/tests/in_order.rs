//! Results that go through one closure in order.

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
fn the_sink_gets_everything_in_order_and_one_at_a_time() {
    for how in every_way() {
        let inside = AtomicBool::new(false);
        let mut seen = Vec::new();
        how.run((0..ITEMS).par())
            .map(|i| {
                now_and_then(i);
                i
            })
            .in_order(|i| {
                assert!(!inside.swap(true, Relaxed), "two at a time");
                seen.push(i);
                inside.store(false, Relaxed);
            });
        assert!(seen.into_iter().eq(0..ITEMS), "{how:?}");
    }
}

/// More runs are ahead than the stage has room for.
#[test]
fn a_slow_first_item_holds_nobody_up_for_ever() {
    for how in every_way() {
        let begun = AtomicUsize::new(0);
        let mut next = 0;
        how.run((0..1000).par())
            .map(|i| {
                begun.fetch_add(1, Relaxed);
                if i == 0 || i == 500 {
                    // The others fill the stage meanwhile, and wait.
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
fn a_slow_sink_bounds_what_is_ahead() {
    for how in every_schedule() {
        let made = AtomicUsize::new(0);
        let mut most_ahead = 0;
        let mut handed = 0;
        how.run((0..2000).par())
            .chunk_size(1)
            .map(|i| {
                made.fetch_add(1, Relaxed);
                i
            })
            .in_order(|i| {
                if i % 100 == 0 {
                    linger();
                }
                handed += 1;
                most_ahead = most_ahead.max(made.load(Relaxed).saturating_sub(handed));
            });
        // 64 on the stage, and a run in the hands of each participant and of the sink.
        assert!(most_ahead <= 64 + 2 * how.threads, "{most_ahead} results ahead: {how:?}");
    }
}

/// Who is alone has no reason to keep results: they go to the sink as they are made.
#[test]
fn one_thread_keeps_nothing() {
    for how in every_way().filter(|how| how.threads == 1 || how.schedule == Schedule::Serial) {
        let made = AtomicUsize::new(0);
        let mut handed = 0;
        how.run((0..1000).par())
            .map(|_| {
                made.fetch_add(1, Relaxed);
            })
            .in_order(|()| {
                handed += 1;
                assert_eq!(made.load(Relaxed), handed, "{how:?}");
            });
    }
}

#[test]
fn endless_loops_end_with_the_sink() {
    for how in every_schedule() {
        let mut seen = Vec::new();
        let result = how.run((0..usize::MAX).par()).try_in_order(|i| {
            seen.push(i);
            if i == 1234 { Err("enough") } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), "item 1234: enough");
        assert!(seen.into_iter().eq(0..=1234), "{how:?}");
    }
}

#[test]
fn the_sink_gets_what_is_before_a_failure_and_no_more() {
    for how in every_way() {
        for bad in [0, 50, ITEMS - 1] {
            let census = Census::new();
            let make = |i: usize| {
                now_and_then(i);
                assert!(i != bad, "not this one");
                census.add(i)
            };
            let mut seen = Vec::new();
            let result = how.run((0..ITEMS).par()).map(make).try_in_order(|value| {
                seen.push(value.value);
                Ok::<_, Infallible>(())
            });
            assert_eq!(result.unwrap_err().to_string(), format!("item {bad} panicked: not this one"));
            assert!(seen.iter().copied().eq(0..bad), "{} of {bad}: {how:?}", seen.len());
            assert!(census.is_over());

            let make = |i: usize| {
                now_and_then(i);
                census.add(i)
            };
            for panics in [false, true] {
                let mut seen = 0;
                let result = how.run((0..ITEMS).par()).map(make).try_in_order(|value| {
                    assert_eq!(value.value, seen);
                    seen += 1;
                    assert!(!(panics && value.value == bad), "not this one");
                    if value.value == bad { Err("not this one") } else { Ok(()) }
                });
                let verb = if panics { " panicked" } else { "" };
                assert_eq!(result.unwrap_err().to_string(), format!("item {bad}{verb}: not this one"));
                assert_eq!(seen, bad + 1, "{how:?}");
                assert!(census.is_over(), "{how:?}");
            }
        }
    }
}

/// The sink fails at an item, and another item, before or after it, cannot be made.
#[test]
fn of_two_failures_the_first_item_comes_out() {
    for how in every_way() {
        for (unmade, refused) in [(100, 120), (120, 100), (7, 8), (8, 7), (100, 100)] {
            let make = |i: usize| {
                now_and_then(i);
                assert!(i != unmade, "unmade");
                i
            };
            let result = how
                .run((0..ITEMS).par())
                .map(make)
                .try_in_order(|i| if i == refused { Err(()) } else { Ok(()) });
            assert_eq!(result.unwrap_err().index(), Some(unmade.min(refused)), "{how:?}");
        }
    }
}

#[test]
fn a_cancelled_loop_hands_on_a_beginning() {
    for how in every_way() {
        let token = CancellationToken::new();
        let mut seen = 0;
        let result = how.run((0..10_000).par()).cancel_with(&token).try_in_order(|i| {
            assert_eq!(i, seen);
            seen += 1;
            if i == 10 {
                token.cancel();
            }
            Ok::<_, Infallible>(())
        });
        match result {
            // Others may have done items after one that nobody had begun: these are not handed on.
            Err(LoopError::Cancelled { done, items: Some(10_000) }) => assert!(done >= seen, "{how:?}"),
            Ok(()) => assert_eq!(seen, 10_000),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_sink_may_run_loops() {
    thread_local!(static BORROWED: RefCell<usize> = const { RefCell::new(0) });
    for how in every_way() {
        let mut sum = 0;
        how.run((0..40_usize).par())
            .map(|i| {
                BORROWED.with(|b| {
                    let mut b = b.borrow_mut();
                    *b += how.run((0..4).par()).map(|j| i * j).sum();
                    linger();
                });
                i
            })
            .in_order(|i| {
                BORROWED.with(|b| {
                    let _b = b.borrow_mut();
                    sum += how.run((0..8_usize).par()).map(|j| i + j).sum();
                });
            });
        assert_eq!(sum, 8 * (39 * 40 / 2) + 28 * 40, "{how:?}");
    }
}

#[test]
fn a_sink_may_run_another_loop_in_order() {
    for how in every_schedule() {
        let mut seen = Vec::new();
        how.run((0..10_usize).par()).in_order(|i| {
            how.run((0..10_usize).par()).map(|j| 10 * i + j).in_order(|ij| seen.push(ij));
        });
        assert!(seen.into_iter().eq(0..100), "{how:?}");
    }
}
