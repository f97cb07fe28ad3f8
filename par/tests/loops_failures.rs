//! A loop that fails returns its first failure, has done all earlier items, drops every value once, and has
//! no item running.

mod common;

use anabranch_par::{CancellationToken, LoopError, Progress, Statistics, prelude::*, scratch::WorkerLocal};
use common::*;
use parking_lot::Mutex;
use std::{
    convert::Infallible,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
    time::{Duration, Instant},
};

const ITEMS: usize = 100;

fn index_of_panic<T>(result: Result<T, LoopError<Infallible>>) -> usize {
    match result {
        Err(LoopError::Panic(panic)) => panic.index().unwrap(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no item panicked"),
    }
}

/// Runs `f`, which must panic. Returns the message.
fn message_of(f: impl FnOnce()) -> String {
    *catch_unwind(AssertUnwindSafe(f)).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn the_first_failure_is_returned_and_earlier_items_run_once() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        // Several items fail or panic. The first of them is an error in one run and a panic in the other.
        for first in [37, 61] {
            let inside = AtomicUsize::new(0);
            let done: Vec<_> = (0..ITEMS).map(|_| AtomicUsize::new(0)).collect();
            let result = config.apply((0..ITEMS).par()).try_for_each(|i| {
                inside.fetch_add(1, Relaxed);
                linger_at_some(i);
                done[i].fetch_add(1, Relaxed);
                inside.fetch_sub(1, Relaxed);
                match i {
                    37 if first == 37 => Err("thirty-seven"),
                    61 => panic!("sixty-one"),
                    90 => Err("ninety"),
                    _ => Ok(()),
                }
            });
            assert_eq!(inside.into_inner(), 0, "an item is still running: {config:?}");
            let expected = ["item 37: thirty-seven", "item 61 panicked: sixty-one"][usize::from(first == 61)];
            assert_eq!(result.unwrap_err().to_string(), expected, "{config:?}");
            assert!(done[..=first].iter().all(|d| d.load(Relaxed) == 1), "{config:?}");
            assert!(done.iter().all(|d| d.load(Relaxed) <= 1), "{config:?}");
        }
    }
}

/// The closure borrows variables that may end right after the call.
#[test]
fn no_item_runs_after_a_failed_loop_has_returned() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let over = AtomicBool::new(false);
        let late = AtomicUsize::new(0);
        for bad in [0, 5, 50] {
            over.store(false, SeqCst);
            let result = config.apply((0..64).par()).chunk_size(1).try_for_each(|i| {
                linger();
                late.fetch_add(usize::from(over.load(SeqCst)), SeqCst);
                if i >= bad { Err(i) } else { Ok(()) }
            });
            over.store(true, SeqCst);
            assert_eq!(result.unwrap_err().index(), Some(bad));
        }
        std::thread::sleep(Duration::from_micros(200));
        assert_eq!(late.into_inner(), 0);
    }
}

#[test]
fn results_are_dropped_exactly_once() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        for bad in [0, 40, 99, ITEMS] {
            let drops = DropCounter::new();
            let make = |i: usize| {
                linger_at_some(i);
                assert!(i != bad, "bad");
                drops.add(i)
            };
            let collected =
                catch_unwind(AssertUnwindSafe(|| config.apply((0..ITEMS).par()).map(make).collect()));
            assert_eq!(collected.is_ok(), bad == ITEMS);
            if let Ok(values) = collected {
                assert!(values.iter().map(|v| v.value).eq(0..ITEMS));
            }
            assert!(drops.all_dropped(), "collect, {config:?}");

            // Elements that were in the vector before stay.
            let mut values = vec![drops.add(1000)];
            let into = || config.apply((0..ITEMS).par()).map(make).collect_into(&mut values);
            assert_eq!(catch_unwind(AssertUnwindSafe(into)).is_ok(), bad == ITEMS);
            assert_eq!(values.len(), if bad == ITEMS { ITEMS + 1 } else { 1 });
            assert_eq!(values[0].value, 1000);
            drop(values);
            assert!(drops.all_dropped(), "collect_into, {config:?}");

            let mut targets: Vec<_> = (0..ITEMS).map(|i| drops.add(1000 + i)).collect();
            let write = || config.apply((0..ITEMS).par()).map(make).write_to(&mut targets);
            assert_eq!(catch_unwind(AssertUnwindSafe(write)).is_ok(), bad == ITEMS);
            assert!(targets.iter().enumerate().all(|(i, t)| t.value % 1000 == i));
            assert!(targets[..bad].iter().enumerate().all(|(i, t)| t.value == i));
            drop(targets);
            assert!(drops.all_dropped(), "write_to, {config:?}");

            let tried = |i: usize| if i == bad { Err(drops.add(i)) } else { Ok(drops.add(i)) };
            match config.apply((0..ITEMS).par()).map(tried).try_collect() {
                Ok(values) => assert_eq!((values.len(), bad), (ITEMS, ITEMS)),
                Err(error) => assert_eq!(error.index(), Some(bad)),
            }
            assert!(drops.all_dropped(), "try_collect, {config:?}");

            let folded =
                config.apply((0..ITEMS).par()).map(tried).try_reduce(|a, b| drops.add(a.value + b.value));
            assert_eq!(folded.is_ok(), bad == ITEMS);
            drop(folded);
            assert!(drops.all_dropped(), "try_reduce, {config:?}");

            let join = |a: Counted<'_>, b: Counted<'_>| {
                assert!(b.value != bad, "a panic of the operator");
                drops.add(a.value + b.value)
            };
            let reduced = || config.apply((0..ITEMS).par()).map(|i| drops.add(i)).reduce(join);
            if let Ok(sum) = catch_unwind(AssertUnwindSafe(reduced)) {
                assert_eq!(sum.unwrap().value, ITEMS * (ITEMS - 1) / 2);
            }
            assert!(drops.all_dropped(), "reduce, {config:?}");

            let found = config.apply((0..ITEMS).par()).map(|i| drops.add(i)).find(|v| v.value >= bad);
            assert_eq!(found.as_ref().map(|v| v.value), (bad < ITEMS).then_some(bad));
            drop(found);
            assert!(drops.all_dropped(), "find, {config:?}");
        }
    }
}

#[test]
fn a_failed_loop_over_zipped_mutable_slices_runs_no_item_twice() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let mut a: Vec<_> = (0..ITEMS).collect();
        let mut b = vec![0; ITEMS];
        let result = config.apply(a.par_mut()).zip(&mut b).unwrap().enumerate();
        let result = config.apply(result).try_for_each(|(i, (a, b))| {
            linger_at_some(i);
            *b += *a + 1;
            *a = 0;
            if i == 70 { Err(()) } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().index(), Some(70));
        assert!((0..=70).all(|i| a[i] == 0 && b[i] == i + 1));
        assert!((71..ITEMS).all(|i| (a[i], b[i]) == (0, i + 1) || (a[i], b[i]) == (i, 0)));
    }
}

#[test]
fn a_panic_of_the_closure_that_makes_scratch_fails_the_loop() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let result = config.apply((0..ITEMS).par()).scratch(|| -> usize { panic!("no scratch") });
        let error = result.try_for_each(|_, _| Ok::<_, Infallible>(())).unwrap_err();
        assert_eq!(error.to_string(), "item 0 panicked: no scratch", "{config:?}");
        // Only the first call panics. Other participants run the other items, but not those that this
        // participant had taken.
        let (calls, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let init = || assert!(calls.fetch_add(1, Relaxed) > 0, "not yet");
        let result = config.apply((0..ITEMS).par()).scratch(init).try_for_each(|(), i| {
            linger_at_some(i);
            done.fetch_max(i + 1, Relaxed);
            Ok(())
        });
        assert!(index_of_panic(result) < ITEMS);
    }
}

#[test]
fn panics_of_identity_and_combine_name_an_item() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let never = config.apply((0..ITEMS).par()).try_fold(
            || -> usize { panic!("no identity") },
            |a, i| Ok::<_, Infallible>(a + i),
            |a, b| a + b,
        );
        assert_eq!(index_of_panic(never), 0, "{config:?}");
        let fold = |a: usize, i: usize| Ok::<_, Infallible>(a + i);
        let result = config.apply((0..ITEMS).par()).try_fold(|| 0, fold, |_, _| panic!("no sum"));
        // A single chunk needs no combination.
        assert!(index_of_panic(result) < ITEMS, "{config:?}");
    }
}

/// A panic of the operator always names an item. Which one depends on the chunks alone.
#[test]
fn a_panic_of_the_operator_names_the_item_that_it_was_called_for() {
    let _deadline = testing::deadline();
    let text = |i: usize| Ok::<_, Infallible>(i.to_string());
    for config in all_schedules() {
        for chunk in [1, 3, 10] {
            // The operator appends the 7 to the text before it: as item 7, or in the chunk that begins with
            // item 6 (or 0).
            let expected = [(1, 7), (3, 7), (10, 7)].into_iter().find(|(c, _)| *c == chunk).unwrap().1;
            let result = config.apply((0..ITEMS).par()).map(text).chunk_size(chunk).try_reduce(|a, b| {
                assert!(!b.starts_with('7') || b.len() > 1, "seven");
                a + &b
            });
            assert_eq!(index_of_panic(result), expected, "{config:?}");
            let message = message_of(|| {
                let _ = config.apply((0..10_usize).par()).chunk_size(chunk.min(5)).reduce(|a, b| {
                    assert!(a + b < 45, "too much");
                    a + b
                });
            });
            assert!(message.starts_with("item ") && message.ends_with("too much"), "{message}");
        }
    }
}

/// Values that a participant no longer needs may panic when they are dropped. The process lives on, and the
/// loop returns the first failure.
#[test]
fn destructors_may_panic() {
    let _deadline = testing::deadline();
    struct Bomb(usize);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0.is_multiple_of(3) {
                panic!("a bomb");
            }
        }
    }
    for config in all_schedules() {
        let results = || {
            config.apply((0..ITEMS).par()).map(|i| {
                linger_at_some(i);
                assert!(i != 50, "fifty");
                Bomb(i)
            })
        };
        let message = message_of(|| std::mem::forget(results().collect()));
        assert_eq!(message, "item 50 panicked: fifty", "{config:?}");

        let tried = config.apply((0..ITEMS).par()).map(|i| if i == 50 { Err("fifty") } else { Ok(Bomb(i)) });
        match tried.try_collect() {
            Err(error) => assert_eq!(error.to_string(), "item 50: fifty"),
            Ok(_) => panic!("no error"),
        }

        // The loop returns the first error and drops the other ones.
        let errors = config.apply((0..ITEMS).par()).chunk_size(1).try_for_each(|i| {
            linger();
            Err::<(), _>(Bomb(i))
        });
        match errors {
            Err(LoopError::Item { index, error }) => {
                assert_eq!(index, 0);
                std::mem::forget(error);
            }
            _ => panic!("no error"),
        }

        let scratch = config.apply((0..ITEMS).par()).scratch(|| Bomb(0)).try_for_each(|_, _| Ok(()));
        assert!(index_of_panic(scratch) < ITEMS);

        let message = message_of(|| config.apply((0..ITEMS).par()).map(Bomb).for_each(drop));
        assert_eq!(message, "item 0 panicked: a bomb");
    }
}

#[test]
fn payloads_other_than_text_are_returned_unchanged() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let payload =
            catch_unwind(|| config.apply((0..10).par()).for_each(|i| panic_any(100 + i))).unwrap_err();
        assert_eq!(payload.downcast_ref::<i32>(), Some(&100));
    }
}

/// `?` converts them to a `Box<dyn Error + Send + Sync>`, or to an `anyhow::Error`.
#[test]
fn loop_errors_implement_error() {
    let _deadline = testing::deadline();
    fn fails() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        (0..10).par().map(|i| if i < 5 { Ok(i) } else { Err(std::fmt::Error) }).try_collect()?;
        Ok(())
    }
    assert!(fails().unwrap_err().to_string().starts_with("item 5: "));
}

#[test]
fn a_cancelled_loop_returns_the_number_of_items_done() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let (token, done) = (CancellationToken::new(), AtomicUsize::new(0));
        let result = config.apply((0..10_000).par()).cancel_with(&token).try_for_each(|i| {
            done.fetch_add(1, Relaxed);
            if i == 0 {
                token.cancel();
            }
            linger_at_some(i);
            Ok::<_, Infallible>(())
        });
        match result {
            Err(LoopError::Cancelled { done: reported, items }) => {
                assert_eq!((reported, items), (done.into_inner(), Some(10_000)), "{config:?}");
                assert!((1..10_000).contains(&reported));
            }
            // With the largest chunks, all of them had begun.
            Ok(()) => assert_eq!(done.into_inner(), 10_000),
            Err(other) => panic!("{other}"),
        }
        // With a token that is already cancelled, no item begins.
        let result =
            config.apply((0..10).par()).cancel_with(&token).try_for_each(|_| -> Result<(), ()> { panic!() });
        assert!(matches!(result, Err(LoopError::Cancelled { done: 0, items: Some(10) })));
    }
}

#[test]
fn a_loop_that_is_cancelled_by_another_thread_ends() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let (token, begun) = (CancellationToken::new(), AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                while !begun.load(Relaxed) {
                    std::thread::yield_now();
                }
                token.cancel();
            });
            let result =
                config.apply((0..usize::MAX).par()).chunk_size(16).cancel_with(&token).try_for_each(|_| {
                    begun.store(true, Relaxed);
                    linger();
                    Ok::<_, Infallible>(())
                });
            // The chunk size of 16 makes a single participant check the token, too.
            assert!(matches!(result, Err(LoopError::Cancelled { .. })));
        });
    }
}

/// Cancelling has an effect only before all items have begun.
#[test]
fn a_token_that_the_last_item_cancels_has_no_effect() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let (token, left) = (CancellationToken::new(), AtomicUsize::new(ITEMS));
        let result = config.apply((0..ITEMS).par()).cancel_with(&token).map(|i| {
            if left.fetch_sub(1, Relaxed) == 1 {
                token.cancel();
            }
            Ok::<_, Infallible>(i)
        });
        assert!(result.try_collect().unwrap().into_iter().eq(0..ITEMS), "{config:?}");
    }
}

/// Other participants are in the middle of endless chunks when an item fails.
#[test]
fn an_endless_loop_ends_with_its_first_failure() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let result = config.apply((0..usize::MAX).par()).try_for_each(|i| {
            linger();
            if i == 5 { Err("five") } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), "item 5: five", "{config:?}");
        let l = || config.apply((0..usize::MAX).par()).map(black_box);
        assert_eq!(l().position(|i| i == 1000), Some(1000), "{config:?}");
        assert_eq!(l().find(|i| *i == 1000), Some(1000), "{config:?}");
        assert!(l().any(|i| i == 1000), "{config:?}");
    }
}

#[test]
fn a_loop_ends_at_its_deadline() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let past = Instant::now();
        let result = config.apply((0..10).par()).deadline(past).try_for_each(|_| Ok::<_, Infallible>(()));
        assert!(matches!(result, Err(LoopError::DeadlineExceeded { done: 0, items: Some(10) })));
        let future = past + Duration::from_secs(3600);
        config.apply((0..10).par()).deadline(future).for_each(|_| ());
        let message = message_of(|| config.apply((0..10).par()).deadline(past).for_each(|_| ()));
        assert!(message.starts_with("the loop's deadline passed when 0 of 10 items were done"));
    }
    for config in all_schedules() {
        let soon = Instant::now() + Duration::from_micros(300);
        let result = config.apply((0..usize::MAX).par()).deadline(soon);
        let result = result.try_for_each(|i| if black_box(i) == usize::MAX { Err(()) } else { Ok(()) });
        assert!(matches!(result, Err(LoopError::DeadlineExceeded { .. })), "{config:?}");
    }
}

#[test]
fn progress_increases_up_to_the_number_of_items() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let seen = Mutex::new(Vec::new());
        let report = |progress: Progress| seen.lock().push(progress);
        config.apply((0..1000).par()).progress(Duration::ZERO, &report).for_each(linger_at_some);
        let seen = seen.into_inner();
        assert!(seen.windows(2).all(|two| two[0].done <= two[1].done), "{config:?}: {seen:?}");
        assert!(seen.iter().all(|progress| progress.items == 1000));
        assert_eq!(seen.iter().filter(|progress| progress.done == 1000).count(), 1, "{config:?}");
        assert_eq!(seen.last().unwrap().done, 1000);

        // A scan consists of more than one loop, but its progress is that of one.
        let seen = Mutex::new(Vec::new());
        let report = |progress: Progress| seen.lock().push(progress.done);
        let l = config.apply((0..100_u64).par()).progress(Duration::ZERO, &report);
        assert_eq!(l.exclusive_scan(0, |a, b| a + b).len(), 100);
        assert!(seen.into_inner().is_sorted(), "{config:?}");
    }
}

#[test]
fn a_panic_of_the_progress_report_fails_the_loop() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let report = |progress: Progress| assert!(progress.done < 100, "no more");
        let l = config.apply((0..100).par()).progress(Duration::ZERO, &report);
        let result = l.try_for_each(|_| Ok::<_, Infallible>(()));
        assert!(result.unwrap_err().to_string().ends_with("panicked: no more"));
    }
}

#[test]
fn statistics_add_up() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let statistics = Statistics::new();
        for items in [0, 1, 500] {
            let l = config.apply((0..items).par()).statistics(&statistics);
            l.scratch(|| 0).for_each(|_, i| linger_at_some(i));
            let all = statistics.participants();
            assert_eq!(all.iter().map(|p| p.items).sum::<usize>(), items);
            assert_eq!(all.iter().map(|p| p.chunks).sum::<usize>(), statistics.chunks());
            assert!((1..=config.threads.min(config.limit)).contains(&all.len()));
            assert!(all.windows(2).all(|two| two[0].index < two[1].index));
            assert_eq!(all[0].index, 0);
            assert!(all.iter().all(|p| p.scratch_initialisations == usize::from(p.items > 0)));
            assert!(statistics.imbalance() >= 1.0 && statistics.imbalance() <= all.len() as f64 + 1e-9);
        }
    }
    assert_eq!(Statistics::new().imbalance(), 1.0);
}

/// Denormal numbers are zero in the whole loop, while folding and while combining.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn partial_results_are_combined_in_the_mode_of_the_loop() {
    let _deadline = testing::deadline();
    let values = [f32::MIN_POSITIVE, 0.25];
    let product = |a: f32, b: f32| std::hint::black_box(a) * std::hint::black_box(b);
    for config in all_configs() {
        let l = || config.apply(values.par()).flush_denormals(true).map(|x| *x);
        assert_eq!(l().reduce(product), Some(0.0), "{config:?}");
        assert_eq!(l().map(|x| x * 2.0).reduce_from(0.25, product), 0.0, "{config:?}");
        assert_eq!(
            config.apply(values[..1].par()).map(|x| *x).flush_denormals(true).reduce_from(0.25, product),
            0.0
        );
        assert_eq!(l().scan(|a, b| product(*a, *b)), [f32::MIN_POSITIVE, 0.0], "{config:?}");
    }
}

/// A loop in a destructor that runs while the thread unwinds must not treat that panic as its own.
#[test]
fn a_loop_in_a_destructor_keeps_its_values_while_the_thread_unwinds() {
    let _deadline = testing::deadline();
    struct Counts<'w>(&'w mut WorkerLocal<usize>, Config);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.1.apply((0..ITEMS).par()).scratch_in(self.0, || 0).for_each(|count, i| {
                linger_at_some(i);
                *count += 1;
            });
        }
    }
    for config in all_schedules() {
        let mut counts = WorkerLocal::new();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _counts = Counts(&mut counts, config);
            panic!("before");
        }));
        assert!(unwound.is_err());
        assert_eq!(counts.iter().sum::<usize>(), ITEMS, "{config:?}");
    }
}
