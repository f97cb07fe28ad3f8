//! A stream over an iterator runs each item once, keeps the order of results, fails and ends early like a
//! loop, on 1 to 8 threads.

mod common;

use anabranch_par::{CancellationToken, LoopError, Statistics, prelude::*, scratch::WorkerLocal};
use common::{THREADS, linger};
use std::{
    collections::HashSet,
    convert::Infallible,
    hint::black_box,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    time::{Duration, Instant},
};

fn pools() -> impl Iterator<Item = (usize, ThreadPool)> {
    THREADS.into_iter().map(|threads| (threads, common::pool(threads)))
}

/// An iterator that counts the items taken from it, and has no size hint.
fn counted<'c, T>(
    count: &'c AtomicUsize,
    items: impl Iterator<Item = T> + Send + 'c,
) -> impl Iterator<Item = T> + Send + 'c {
    let mut items = items;
    std::iter::from_fn(move || items.next().inspect(|_| _ = count.fetch_add(1, Relaxed)))
}

#[test]
fn every_item_is_run_exactly_once_and_results_are_in_order() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for items in [0, 1, 2, 7, 64, 65, 1000, 5000] {
            let expected: Vec<usize> = (0..items).map(|i| i * i).collect();
            for batch in [None, Some(1), Some(3), Some(100), Some(10_000)] {
                let stream = || {
                    let stream = (0..items).par_stream().on(&pool);
                    match batch {
                        Some(batch) => stream.batch(batch),
                        None => stream,
                    }
                };
                let counts: Vec<_> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                stream().for_each(|i| _ = counts[i].fetch_add(1, Relaxed));
                assert!(counts.iter().all(|count| count.load(Relaxed) == 1));
                assert_eq!(stream().map(|i| i * i).collect(), expected);
                let mut in_order = Vec::new();
                stream().map(|i| i * i).in_order(|square| in_order.push(square));
                assert_eq!(in_order, expected);
                assert_eq!(
                    stream().map(|i| i * i).reduce(|a, b| a + b),
                    expected.iter().copied().reduce(|a, b| a + b)
                );
            }
        }
    }
}

#[test]
fn a_reduction_has_the_same_bits_as_that_of_a_loop() {
    let _deadline = testing::deadline();
    let values: Vec<f32> = (0..3000).map(|i| (i as f32).sin() * 1e3_f32.powi(i % 7 - 3)).collect();
    for (_, pool) in pools() {
        for len in [0, 1, 63, 64, 65, 448, 449, 1000, 3000] {
            for batch in [1, 7, 64] {
                let values = &values[..len];
                let expected = values.par().on(&pool).chunk_size(batch).map(|x| *x).reduce(|a, b| a + b);
                let stream = values.iter().par_stream().on(&pool).batch(batch).map(|x| {
                    if len < 100 {
                        linger();
                    }
                    *x
                });
                assert_eq!(stream.reduce(|a, b| a + b).map(f32::to_bits), expected.map(f32::to_bits));
            }
        }
        let text = (0..500).par_stream().on(&pool).map(|i| format!("{i} ")).reduce(|a, b| a + &b);
        assert_eq!(text.unwrap(), (0..500).map(|i| format!("{i} ")).collect::<String>());
    }
}

#[test]
fn numeric_reductions_agree_with_loops() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i * 37 % 1001) - 300.5).collect();
        let stream = || values.iter().par_stream().on(&pool);
        let tree = values.par().chunk_size(64).fold(|| 0.0, |a, b| a + b, |a, b| a + b);
        assert_eq!(stream().sum().to_bits(), tree.to_bits());
        assert_eq!((stream().min(), stream().max()), (values.par().min(), values.par().max()));
        assert_eq!(stream().copied().reduce(f64::max), values.par().max());
        assert_eq!((1..=20_u64).par_stream().on(&pool).product(), 2_432_902_008_176_640_000);
        let empty = || values[..0].iter().par_stream().on(&pool);
        assert_eq!((empty().sum(), empty().product(), empty().min()), (0.0, 1.0, None));
        let no_number = || [f64::NAN; 3].into_iter().par_stream().on(&pool);
        assert_eq!((no_number().min(), no_number().max()), (Some(f64::INFINITY), Some(f64::NEG_INFINITY)));
    }
}

/// The closure borrows variables that may end right after the call.
#[test]
fn no_item_runs_after_a_failed_stream_has_returned() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let (over, late) = (AtomicBool::new(false), AtomicUsize::new(0));
        for bad in [0, 5, 50] {
            over.store(false, SeqCst);
            let result = (0..).par_stream().on(&pool).batch(1).try_for_each(|i| {
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
fn the_first_error_is_returned_and_all_earlier_items_are_done() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for batch in [1, 3, 64] {
            for _ in 0..10 {
                let done: Vec<_> = (0..100).map(|_| AtomicUsize::new(0)).collect();
                let stream = (0..).par_stream().on(&pool).batch(batch);
                let result = stream.try_for_each(|i: usize| {
                    if i % 20 == 13 {
                        return Err(i);
                    }
                    if let Some(done) = done.get(i) {
                        done.fetch_add(1, Relaxed);
                    }
                    Ok(())
                });
                assert!(matches!(result, Err(LoopError::Item { index: 13, error: 13 })));
                assert!(done[..13].iter().all(|done| done.load(Relaxed) == 1));
                assert!(done.iter().all(|done| done.load(Relaxed) <= 1));
            }
        }
    }
}

#[test]
fn no_item_is_taken_after_a_failure() {
    let _deadline = testing::deadline();
    let pool = common::pool(1);
    let taken = AtomicUsize::new(0);
    let stream = counted(&taken, 0..).par_stream().on(&pool).batch(4);
    assert!(stream.try_for_each(|i| if i == 9 { Err(()) } else { Ok(()) }).is_err());
    assert_eq!(taken.into_inner(), 12);
}

#[test]
fn the_first_panic_is_returned() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for _ in 0..10 {
            let result = (0..).par_stream().on(&pool).try_for_each(|i| -> Result<(), Infallible> {
                if i % 20 == 13 {
                    panic!("no item {i}")
                }
                Ok(())
            });
            assert_eq!(result.unwrap_err().to_string(), "item 13 panicked: no item 13");
        }
        let run = || (0..100).par_stream().on(&pool).for_each(|i| assert!(i != 50, "fifty"));
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "item 50 panicked: fifty");
    }
}

#[test]
fn a_panic_of_the_iterator_counts_as_one_of_the_item_that_it_should_have_returned() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for batch in [1, 4, 100] {
            let done = AtomicUsize::new(0);
            let items = (0..).inspect(|i| assert!(*i != 42, "no more"));
            let result = items.par_stream().on(&pool).batch(batch).try_for_each(|_| {
                done.fetch_add(1, Relaxed);
                Ok::<_, Infallible>(())
            });
            assert_eq!(result.unwrap_err().to_string(), "item 42 panicked: no more");
            // All earlier items are done, even those of the same batch.
            assert_eq!(done.into_inner(), 42);
        }
    }
}

#[test]
fn a_panic_of_the_operator_names_the_first_item_of_its_right_operand() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for _ in 0..10 {
            let add = |a: (usize, usize), b: (usize, usize)| {
                assert!(b.0 != 192, "there");
                (a.0, b.1)
            };
            let stream = (0..1000_usize).par_stream().on(&pool).batch(64).map(|i| (i, i));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.reduce(add)));
            let payload = result.unwrap_err();
            assert_eq!(payload.downcast_ref::<String>().unwrap(), "item 192 panicked: there");
        }
    }
}

#[test]
fn searches_of_endless_iterators_end() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let naturals = || (0_u64..).par_stream().on(&pool);
        assert_eq!(naturals().find(|i| i * i > 5000), Some(71));
        assert_eq!(naturals().map(|i| i * 2).find(|i| *i >= 99), Some(100));
        assert_eq!(naturals().map(|i| i * 2).position(|i| i >= 99), Some(50));
        assert_eq!((0..10).par_stream().on(&pool).position(|i| i > 10), None);
        let until = |end| move |i: &u64| if *i < end { Ok(*i > 300) } else { Err("too far") };
        assert_eq!(naturals().try_find(until(400)).unwrap(), Some(301));
        assert_eq!(naturals().try_find(until(200)).unwrap_err().to_string(), "item 200: too far");
        assert_eq!((0..10).par_stream().on(&pool).try_find(until(200)).unwrap(), None);
        assert!(naturals().any(|i| i == 1234));
        assert!(!naturals().all(|i| i != 1234));
        assert_eq!((0..10).par_stream().on(&pool).find(|i| *i > 10), None);
        assert!((0..10).par_stream().on(&pool).all(|i| i < 10));
        assert_eq!(
            naturals().map(|i| if i < 777 { Ok(i) } else { Err(i) }).try_collect().unwrap_err().index(),
            Some(777)
        );
        let reduced = naturals().map(|i| if i < 777 { Ok(i) } else { Err(i) }).try_reduce(|a, b| a + b);
        assert_eq!(reduced.unwrap_err().index(), Some(777));
    }
}

#[test]
fn an_iterator_may_run_loops_of_its_own() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let sums = (0..50_usize).map(|i| {
            (0..20)
                .par()
                .on(&pool)
                .map(|k| {
                    linger();
                    i * k
                })
                .sum()
        });
        let sums = sums.par_stream().on(&pool).batch(2).map(|sum: usize| {
            // The closure may run loops, too.
            sum + (0..4).par().on(&pool).map(|_| 0_usize).sum()
        });
        assert_eq!(sums.collect(), (0..50).map(|i| 190 * i).collect::<Vec<_>>());
        // A stream as the iterator of a stream, and a stream in a stream in a loop.
        let inner = (0..5).flat_map(|i| (0..10).par_stream().on(&pool).map(|k| i * k).collect());
        assert_eq!(inner.par_stream().on(&pool).reduce(|a, b| a + b), Some(450));
        let totals = (0..4_usize).par().on(&pool).map(|i| {
            let outer = (0..4_usize).par_stream().batch(1);
            outer
                .map(|j| (0..4).par_stream().batch(1).map(|k| i * j * k).reduce(|a, b| a + b).unwrap())
                .collect()
        });
        assert_eq!(totals.collect().concat().iter().sum::<usize>(), 216);
    }
}

#[test]
fn an_iterator_is_not_called_again_after_its_end() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let mut left = 10;
        let items = std::iter::from_fn(|| {
            assert!(left >= 0, "called after the end");
            left -= 1;
            (left >= 0).then_some(left)
        });
        assert_eq!(items.par_stream().on(&pool).batch(3).collect(), (0..10).rev().collect::<Vec<_>>());
    }
}

#[test]
fn scratch_is_made_once_per_participant() {
    let _deadline = testing::deadline();
    for (threads, pool) in pools() {
        let made = AtomicUsize::new(0);
        let init = || made.fetch_add(1, Relaxed);
        (0..500).par_stream().on(&pool).scratch(init).for_each(|_, i| {
            if i % 64 == 0 {
                linger();
            }
        });
        assert!((1..=threads).contains(&made.into_inner()));
        let mut counts = WorkerLocal::new();
        for _ in 0..3 {
            (0..100).par_stream().on(&pool).scratch_in(&mut counts, || 0).for_each(|count, _| *count += 1);
        }
        assert_eq!(counts.iter().sum::<usize>(), 300);
        let result = (0..)
            .par_stream()
            .on(&pool)
            .scratch(|| 0)
            .try_for_each(|_, i| if i == 5 { Err(i) } else { Ok(()) });
        assert_eq!(result.unwrap_err().index(), Some(5));
    }
}

#[test]
fn a_cancelled_stream_returns_the_number_of_items_done() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let (token, done) = (CancellationToken::new(), AtomicUsize::new(0));
        let result = (0..).par_stream().on(&pool).cancel_with(&token).try_for_each(|i| {
            if i == 1000 {
                token.cancel();
            }
            done.fetch_add(1, Relaxed);
            Ok::<_, Infallible>(())
        });
        let message = result.as_ref().unwrap_err().to_string();
        match result {
            Err(LoopError::Cancelled { done: reported, items: None }) => {
                assert_eq!(reported, done.into_inner());
                assert_eq!(message, format!("the loop was cancelled when {reported} items were done"));
            }
            other => panic!("{other:?}"),
        }
        let soon = Instant::now() + Duration::from_millis(2);
        let result =
            (0..).par_stream().on(&pool).deadline(soon).map(Ok::<_, ()>).try_for_each(|i| i.map(drop));
        assert!(matches!(result, Err(LoopError::DeadlineExceeded { items: None, .. })));
    }
}

#[test]
fn a_sink_that_fails_is_not_called_again() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        let mut seen = Vec::new();
        let result = (0..).par_stream().on(&pool).batch(2).try_in_order(|i| {
            seen.push(i);
            if i == 300 { Err("full") } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), "item 300: full");
        assert_eq!(seen, (0..=300).collect::<Vec<_>>());
        // Participants that wait for a batch that will never arrive stop waiting.
        let result = (0..)
            .par_stream()
            .on(&pool)
            .batch(1)
            .map(|i| assert!(i != 3, "three"))
            .try_in_order(|()| Ok::<_, ()>(()));
        assert_eq!(result.unwrap_err().index(), Some(3));
    }
}

/// While the first item takes long, other participants go on, but only up to a bound.
#[test]
fn the_number_of_results_ahead_of_the_sink_is_bounded() {
    let _deadline = testing::deadline();
    for (threads, pool) in pools() {
        let (taken, most, mut sunk) = (AtomicUsize::new(0), AtomicUsize::new(0), 0);
        let items = counted(&taken, 0..1000);
        items
            .par_stream()
            .on(&pool)
            .batch(1)
            .map(|i| {
                if i == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                    most.fetch_max(taken.load(Relaxed), Relaxed);
                }
            })
            .in_order(|()| sunk += 1);
        assert_eq!(sunk, 1000);
        assert!(most.into_inner() <= 64 + 2 * threads);
    }
}

#[test]
fn at_most_the_requested_number_of_threads_take_part() {
    let _deadline = testing::deadline();
    let pool = common::pool(8);
    for limit in [1, 2, 3] {
        let threads = Mutex::new(HashSet::new());
        (0..200).par_stream().on(&pool).batch(1).threads(limit).for_each(|_| {
            threads.lock().unwrap().insert(std::thread::current().id());
            linger();
        });
        assert!(threads.into_inner().unwrap().len() <= limit);
    }
}

#[test]
fn workers_join_a_stream() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let caller = std::thread::current().id();
    let by_worker = AtomicUsize::new(0);
    let begin = Instant::now();
    // The caller stays in its first item until the worker has joined.
    (0..100).par_stream().on(&pool).batch(1).for_each(|_| {
        if std::thread::current().id() == caller {
            while by_worker.load(Acquire) == 0 && begin.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        } else {
            by_worker.fetch_add(1, Release);
        }
    });
    assert!(by_worker.into_inner() >= 1);
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn denormals_are_flushed_on_all_participants() {
    let _deadline = testing::deadline();
    let denormal = || black_box(f32::MIN_POSITIVE) * black_box(0.25);
    for (_, pool) in pools() {
        (0..64).par_stream().on(&pool).batch(1).flush_denormals(true).for_each(|_| {
            linger();
            assert_eq!(denormal(), 0.0);
        });
        assert!(denormal() > 0.0);
    }
}

#[test]
fn statistics_count_every_item() {
    let _deadline = testing::deadline();
    for (threads, pool) in pools() {
        let statistics = Statistics::new();
        (0..1000).par_stream().on(&pool).statistics(&statistics).batch(10).for_each(|_| ());
        assert_eq!(statistics.participants().iter().map(|p| p.items).sum::<usize>(), 1000);
        assert_eq!(statistics.chunks(), 100);
        assert!(statistics.participants().len() <= threads);
    }
}

/// A value that counts the live ones.
struct Alive<'c>(&'c AtomicUsize, usize);

impl<'c> Alive<'c> {
    fn new(count: &'c AtomicUsize, number: usize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count, number)
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn every_item_is_dropped_once() {
    let _deadline = testing::deadline();
    for (_, pool) in pools() {
        for batch in [1, 7, 64] {
            let alive = AtomicUsize::new(0);
            let stream = || (0..).map(|i| Alive::new(&alive, i)).par_stream().on(&pool).batch(batch);
            let result = stream().map(|item| if item.1 < 200 { Ok(item) } else { Err(item) }).try_collect();
            assert_eq!(result.as_ref().map(|_| ()).unwrap_err().index(), Some(200));
            drop(result);
            assert_eq!(alive.load(Relaxed), 0);
            let panic = std::panic::AssertUnwindSafe(|| stream().map(|item| assert!(item.1 != 99)).collect());
            assert!(std::panic::catch_unwind(panic).is_err());
            assert_eq!(alive.load(Relaxed), 0);
            let kept = (0..300).map(|i| Alive::new(&alive, i)).par_stream().on(&pool).collect();
            assert_eq!((kept.len(), alive.load(Relaxed)), (300, 300));
            drop(kept);
            assert_eq!(alive.load(Relaxed), 0);
        }
    }
}

/// The remaining items of a batch may panic when they are dropped.
#[test]
fn items_that_panic_when_dropped_are_harmless() {
    let _deadline = testing::deadline();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }
    for (_, pool) in pools() {
        let result =
            (0..100).map(|i| (i, Bomb)).par_stream().on(&pool).batch(10).try_for_each(|(i, bomb)| {
                std::mem::forget(bomb);
                if i == 33 { Err(i) } else { Ok(()) }
            });
        assert_eq!(result.unwrap_err().index(), Some(33));
        assert_eq!((0..10).par_stream().on(&pool).reduce(|a, b| a + b), Some(45));
    }
}
