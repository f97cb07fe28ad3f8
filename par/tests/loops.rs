//! Every loop runs each item once, passes on the first panic, shares its work and restores the floating-point
//! mode, on 1 to 8 threads.

mod common;

use anabranch_par::{LoopError, Panic, ThreadPool, flush_denormals, participant, prelude::*};
use common::{SCHEDULES, THREADS, linger};
use std::{
    cell::RefCell,
    convert::Infallible,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// The panic of a loop.
fn panic_of<T>(result: Result<T, LoopError<Infallible>>) -> Panic {
    match result {
        Err(LoopError::Panic(panic)) => panic,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no item panicked"),
    }
}

#[test]
fn every_item_is_run_exactly_once() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        for schedule in SCHEDULES {
            for (items, grain) in [(0, 1), (1, 1), (2, 1), (7, 3), (100, 1), (1000, 64), (10, 100)] {
                let counts: Vec<_> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                (0..items).par().on(&pool).schedule(schedule).chunk_size(grain).for_each(|i| {
                    counts[i].fetch_add(1, Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Relaxed) == 1), "{threads} threads, {items} items");
            }
        }
    }
}

/// A pool that does short loops on the calling thread, and loops of the same code that take longer now and
/// then.
#[test]
fn loops_that_become_long_run_every_item_once() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = &ThreadPool::new(threads).unwrap();
        for items in [2, 7, 15, 100] {
            let run = move || {
                let counts: Vec<_> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                for round in 1..=300 {
                    let long = [20, 60, 180].iter().position(|&long| long == round);
                    let begin = long.map_or(items, |number| items * number / 3);
                    counts.par().on(pool).enumerate().for_each(|(i, count)| {
                        if (begin..begin + 10).contains(&i) {
                            linger();
                        }
                        count.fetch_add(1, Relaxed);
                    });
                    let are_done = counts.iter().all(|count| count.load(Relaxed) == round);
                    assert!(are_done, "{threads} threads, {items} items, round {round}");
                }
            };
            // What a thread remembers of loops goes from pool to pool.
            thread::scope(|s| s.spawn(run).join().unwrap());
        }
    }
}

#[test]
fn consecutive_loops_do_not_mix() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    for round in 0..20_000 {
        let sum = AtomicUsize::new(0);
        (0..4).par().on(&pool).for_each(|i| {
            sum.fetch_add(i + round, Relaxed);
        });
        assert_eq!(sum.into_inner(), 6 + 4 * round);
    }
}

#[test]
fn nested_loops_finish_at_any_depth() {
    let _deadline = testing::deadline();
    fn descend(pool: &ThreadPool, depth: usize, leaves: &AtomicUsize) {
        if depth == 0 {
            leaves.fetch_add(1, Relaxed);
        } else {
            (0..2).par().on(pool).for_each(|_| descend(pool, depth - 1, leaves));
        }
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        let leaves = AtomicUsize::new(0);
        descend(&pool, 10, &leaves);
        assert_eq!(leaves.into_inner(), 1024);
    }
}

/// Scratch in a `RefCell` is borrowed across an inner loop. If waiting threads took unrelated work, they
/// would borrow it twice.
#[test]
fn a_waiting_thread_takes_no_unrelated_work() {
    let _deadline = testing::deadline();
    thread_local!(static SCRATCH: RefCell<usize> = const { RefCell::new(0) });
    for threads in THREADS {
        let pool = common::pool(threads);
        for _ in 0..20 {
            (0..16).par().on(&pool).for_each(|_| {
                SCRATCH.with(|scratch| {
                    let mut scratch = scratch.borrow_mut();
                    (0..8).par().on(&pool).for_each(|_| linger());
                    *scratch += 1;
                });
            });
        }
    }
}

/// If a waiting thread took other items of the outer loop, these would wait for the lock that the thread
/// itself holds.
#[test]
fn a_lock_held_around_an_inner_loop_does_not_deadlock() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let lock = parking_lot::Mutex::new(0);
        (0..16).par().on(&pool).for_each(|_| {
            let mut count = lock.lock();
            (0..4).par().on(&pool).for_each(|_| linger());
            *count += 1;
        });
        assert_eq!(lock.into_inner(), 16);
    }
}

#[test]
fn the_panic_of_the_lowest_item_is_returned_with_its_index() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        for schedule in SCHEDULES {
            for _ in 0..20 {
                let panic = (0..64).par().on(&pool).schedule(schedule).try_for_each(|i| {
                    if i % 20 == 13 {
                        panic!("no item {i}")
                    }
                    Ok(())
                });
                let panic = panic_of(panic);
                assert_eq!((panic.index(), panic.message()), (Some(13), Some("no item 13")));
                assert_eq!(panic.to_string(), "item 13 panicked: no item 13");
            }
        }
        // The pool is still usable.
        let sum = AtomicUsize::new(0);
        (0..10).par().on(&pool).for_each(|i| {
            sum.fetch_add(i, Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}

#[test]
fn items_before_a_panic_run_and_no_item_runs_twice() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        for schedule in SCHEDULES {
            let done: Vec<_> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let result = (0..100).par().on(&pool).schedule(schedule).chunk_size(7).try_for_each(|i| {
                if i == 50 {
                    panic!("fifty");
                }
                done[i].fetch_add(1, Relaxed);
                Ok(())
            });
            assert_eq!(panic_of(result).index(), Some(50));
            assert!(done[..50].iter().all(|d| d.load(Relaxed) == 1));
            assert!(done.iter().all(|d| d.load(Relaxed) <= 1));
        }
    }
}

#[test]
fn for_each_panics_on_the_caller_with_index_and_message() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let payload =
        std::panic::catch_unwind(|| (0..3).par().on(&pool).for_each(|i| assert!(i != 1, "one"))).unwrap_err();
    assert_eq!(payload.downcast_ref::<String>().unwrap(), "item 1 panicked: one");
}

#[test]
fn scratch_is_made_once_per_participant() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let made = AtomicUsize::new(0);
        let init = || {
            made.fetch_add(1, Relaxed);
            vec![0u8; 100]
        };
        (0..768).par().on(&pool).scratch(init).for_each(|scratch, i| {
            scratch.fill(i as u8);
            if i % 64 == 0 {
                linger();
            }
        });
        assert!((1..=threads).contains(&made.into_inner()));
    }
}

/// The worker panics in its own block. Then it helps with the caller's block, while the caller waits in its
/// first item.
#[test]
fn a_participant_makes_new_scratch_after_a_panic() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let caller = std::thread::current().id();
    let (made, helped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let used = parking_lot::Mutex::new(vec![None; 8]);
    let begin = Instant::now();
    let schedule = Schedule::Static(Split::Consecutive);
    let result = (0..8)
        .par()
        .on(&pool)
        .schedule(schedule)
        .chunking(false)
        .scratch(|| made.fetch_add(1, Relaxed))
        .try_for_each(|scratch, i| {
            used.lock()[i] = Some(*scratch);
            if std::thread::current().id() == caller {
                while helped.load(Acquire) == 0 && begin.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
            } else if i < 4 {
                helped.fetch_add(1, Release);
            }
            assert!(i < 4, "in the worker's block");
            Ok(())
        });
    let used = used.into_inner();
    let panicked = panic_of(result).index().unwrap();
    assert_eq!(panicked, 4);
    // At most three: the caller's, the worker's, and the one that the worker made after its panic.
    assert!((2..=3).contains(&made.into_inner()));
    assert!(used[..4].iter().all(|scratch| scratch.is_some() && *scratch != used[panicked]));
}

#[test]
fn at_most_the_requested_number_of_threads_take_part() {
    let _deadline = testing::deadline();
    let pool = common::pool(8);
    for limit in [1, 2, 3] {
        let threads = parking_lot::Mutex::new(std::collections::HashSet::new());
        (0..200).par().on(&pool).threads(limit).for_each(|_| {
            threads.lock().insert(std::thread::current().id());
            linger();
        });
        assert!(threads.into_inner().len() <= limit);
    }
}

/// A quarter of the smallest normal number: zero if denormals are flushed.
fn denormal() -> f32 {
    black_box(f32::MIN_POSITIVE) * black_box(0.25)
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn denormals_are_flushed_on_all_participants_and_restored_after() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        (0..64).par().on(&pool).flush_denormals(true).for_each(|_| {
            linger();
            assert_eq!(denormal(), 0.0);
            // An inner loop with the option leaves the mode as it is.
            (0..2).par().on(&pool).flush_denormals(true).for_each(|_| assert_eq!(denormal(), 0.0));
            assert_eq!(denormal(), 0.0);
        });
        assert!(denormal() > 0.0);
        (0..64).par().on(&pool).for_each(|_| {
            linger();
            assert!(denormal() > 0.0);
        });
        let panicked = (0..8)
            .par()
            .on(&pool)
            .flush_denormals(true)
            .try_for_each(|_| -> Result<(), Infallible> { panic!("in the mode") });
        assert!(panicked.is_err() && denormal() > 0.0);
    }
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn nested_modes_restore_the_outer_one() {
    let _deadline = testing::deadline();
    flush_denormals(|| {
        flush_denormals(|| ());
        assert_eq!(denormal(), 0.0);
        assert!(std::panic::catch_unwind(|| flush_denormals(|| panic!("in the mode"))).is_err());
        assert_eq!(denormal(), 0.0);
    });
    assert!(denormal() > 0.0);
}

/// The compiler sees that all of these are the same product. It must still not move one out of the mode.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn the_compiler_moves_no_operation_out_of_the_mode() {
    let _deadline = testing::deadline();
    let (a, b) = (black_box(f32::MIN_POSITIVE), black_box(0.25));
    let before = a * b;
    let mut inside = [1.0; 4];
    inside.iter_mut().for_each(|x| flush_denormals(|| *x = a * b));
    assert!(before > 0.0 && inside == [0.0; 4] && a * b > 0.0);
}

/// A thread inherits the mode of the thread that starts it, but a worker must not.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn workers_do_not_inherit_the_mode() {
    let _deadline = testing::deadline();
    let pool = flush_denormals(|| common::pool(3));
    (0..64).par().on(&pool).for_each(|_| {
        linger();
        assert!(denormal() > 0.0);
    });
    // But all participants of a loop have the mode of the thread that opens it.
    flush_denormals(|| {
        (0..64).par().on(&pool).for_each(|_| {
            linger();
            assert_eq!(denormal(), 0.0);
        });
    });
}

#[test]
fn the_largest_numbers_of_items_and_chunk_sizes_work() {
    let _deadline = testing::deadline();
    let pool = common::pool(4);
    for schedule in SCHEDULES {
        let count = AtomicUsize::new(0);
        let most = isize::MAX as usize;
        let panic = (0..most).par().on(&pool).chunk_size(most / 3).schedule(schedule).try_for_each(|i| {
            count.fetch_add(1, Relaxed);
            assert!(!i.is_multiple_of(most / 3), "the first of a run");
            Ok(())
        });
        assert_eq!((panic_of(panic).index(), count.into_inner() >= 1), (Some(0), true));
    }
}

/// The payload of a panic may itself panic when it is dropped.
#[test]
fn a_payload_that_panics_when_dropped_is_harmless() {
    let _deadline = testing::deadline();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("again");
            }
        }
    }
    let pool = common::pool(3);
    for _ in 0..10 {
        let panic = (0..64).par().on(&pool).try_for_each(|_| -> Result<(), Infallible> {
            linger();
            std::panic::panic_any(Bomb)
        });
        let panic = panic_of(panic);
        assert_eq!((panic.index(), panic.message()), (Some(0), None));
        std::mem::forget(panic.into_payload());
    }
    let sum = AtomicUsize::new(0);
    (0..10).par().on(&pool).for_each(|i| {
        sum.fetch_add(i, Relaxed);
    });
    assert_eq!(sum.into_inner(), 45);
}

#[test]
fn many_foreign_threads_may_use_one_pool() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for _ in 0..200 {
                    let sum = AtomicUsize::new(0);
                    (0..50).par().on(&pool).for_each(|i| {
                        sum.fetch_add(i, Relaxed);
                    });
                    assert_eq!(sum.into_inner(), 1225);
                }
            });
        }
    });
}

#[test]
fn sleeping_workers_are_woken_for_a_loop() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    std::thread::sleep(Duration::from_millis(20)); // the worker is parked now
    let caller = std::thread::current().id();
    let by_worker = AtomicUsize::new(0);
    let begin = Instant::now();
    // The caller stays in its item until the worker has joined. Without a wake-up the loop would not end.
    (0..2).par().on(&pool).for_each(|_| {
        if std::thread::current().id() == caller {
            while by_worker.load(Acquire) == 0 && begin.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        } else {
            by_worker.fetch_add(1, Release);
        }
    });
    // The worker may have run both items, if it joined before the caller had begun.
    assert!(by_worker.into_inner() >= 1);
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_pool_uses_no_processor_time() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(8).name("idle-test").build().unwrap();
    (0..100).par().on(&pool).for_each(|_| linger());
    testing::threads::wait_until_asleep("idle-test", 8);
}

#[test]
fn one_call_is_like_a_loop_of_one_item() {
    let _deadline = testing::deadline();
    for pool in THREADS.map(common::pool) {
        let ran = Arc::new(AtomicUsize::new(0));
        for threads in [1, usize::MAX] {
            let count = threads.min(pool.threads());
            let begun = Arc::clone(&ran);
            let sum: usize = pool.run_one(threads, || {
                let me = participant().unwrap();
                assert_eq!((me.index(), me.count()), (0, count));
                assert!(pool.team(2, |_| ()).is_err(), "it is inside");
                // Without workers, a job runs when the thread has left.
                drop(pool.spawn(move || begun.fetch_add(1, Relaxed)));
                assert!(pool.workers() > 0 || ran.load(Relaxed) == 0);
                (0..1000_usize).par().sum()
            });
            assert_eq!(sum, 499_500);
            while ran.swap(0, Relaxed) == 0 {
                assert!(pool.workers() > 0);
                thread::yield_now();
            }
            let panics = || pool.run_one(threads, || panic!("stop"));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
            assert!(participant().is_none());
        }
    }
}

#[test]
fn short_loops_that_follow_each_other_wake_a_worker() {
    let _deadline = testing::deadline();
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    for threads in [2, 3, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        let others = AtomicUsize::new(0);
        let run = || {
            (0..2).par().on(&pool).for_each(|_: usize| {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_micros(5) {}
                others.fetch_add(usize::from(participant().unwrap().index() > 0), Relaxed);
            });
        };
        // What is known of the loop after pauses, in which all workers fall asleep: that it is short.
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(1));
            run();
        }
        others.store(0, Relaxed);
        // The deadline ends this loop if no worker is ever woken.
        while others.load(Relaxed) == 0 {
            run();
        }
    }
}
