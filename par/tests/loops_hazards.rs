//! Loops work where other runtimes fail: loops in loops, locks and borrows around them, many callers, several
//! pools.

mod common;

use anabranch_par::{
    Job, TeamError,
    prelude::*,
    scratch::{Pool, WorkerLocal},
};
use common::*;
use parking_lot::Mutex;
use std::{
    cell::RefCell,
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
};

#[test]
fn a_thread_local_is_borrowed_across_loops_at_three_depths() {
    let _deadline = testing::deadline();
    thread_local!(static SCRATCH: [RefCell<usize>; 3] = const { [RefCell::new(0), RefCell::new(0), RefCell::new(0)] });
    for config in all_schedules() {
        let leaves = AtomicUsize::new(0);
        config.apply((0..6).par()).chunk_size(1).for_each(|_| {
            SCRATCH.with(|s| {
                let _outer = s[0].borrow_mut();
                linger();
                config.apply((0..5).par()).chunk_size(1).for_each(|_| {
                    SCRATCH.with(|s| {
                        let _middle = s[1].borrow_mut();
                        config.apply((0..4).par()).chunk_size(1).for_each(|_| {
                            SCRATCH.with(|s| *s[2].borrow_mut() += 1);
                            linger();
                            leaves.fetch_add(1, Relaxed);
                        });
                    });
                });
            });
        });
        assert_eq!(leaves.into_inner(), 120);
    }
}

#[test]
fn locks_are_held_around_inner_loops() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let (outer, inner) = (Mutex::new(0), Mutex::new(0));
        config.apply((0..8).par()).chunk_size(1).for_each(|_| {
            let mut outer = outer.lock();
            config.apply((0..6).par()).chunk_size(1).for_each(|_| {
                let mut inner = inner.lock();
                config.apply((0..2).par()).for_each(|_| linger());
                *inner += 1;
            });
            *outer += 1;
        });
        assert_eq!((outer.into_inner(), inner.into_inner()), (8, 48));
    }
}

/// A barrier among the participants of a loop could wait for threads that never arrive. So a loop has no
/// barrier, and a team, which has one, is an error inside a loop.
#[test]
fn a_barrier_inside_a_loop_is_an_error() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        config.apply((0..16).par()).chunk_size(1).for_each(|_| {
            linger();
            assert_eq!(config.pool().team(2, |member| member.barrier()), Err(TeamError::Inside));
            assert_eq!(config.pool().team(1, |member| member.barrier()), Ok(vec![()]));
        });
    }
}

#[test]
fn a_sum_of_floats_has_one_bit_pattern_in_300_runs() {
    let _deadline = testing::deadline();
    let values: Vec<f64> = (0..10_000).map(|i| 1e-3 * f64::from(i).sin() + 1e3 * f64::from(i % 7)).collect();
    let (sum, folded) = (values.par().sum(), values.par().copied().reduce(|a, b| a + b).unwrap());
    for pool in pools() {
        for run in 0..300 {
            // In each run another participant is late.
            let late = |i: usize| {
                if i % 3001 == 10 * run {
                    linger();
                }
                values[i]
            };
            let l = || (0..values.len()).par().on(pool).schedule(SCHEDULES[run % 6]);
            assert_eq!(l().map(late).sum().to_bits(), sum.to_bits());
            assert_eq!(l().map(late).reduce(|a, b| a + b).unwrap().to_bits(), folded.to_bits());
        }
    }
}

#[test]
fn an_initial_value_counts_once() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let l = |items| config.apply((0..items).par()).map(|i: usize| (linger_at_some(i), i).1);
        assert_eq!(l(100).reduce_from(1_000_000, |a, b| a + b), 1_004_950, "{config:?}");
        assert_eq!(l(100).unordered().reduce_from(1_000_000, |a, b| a + b), 1_004_950, "{config:?}");
        assert_eq!(l(0).reduce_from(1_000_000, |a, b| a + b), 1_000_000, "{config:?}");
        assert_eq!(
            l(3).exclusive_scan(1_000_000, |a, b| a + b),
            [1_000_000, 1_000_000, 1_000_001],
            "{config:?}"
        );
    }
}

/// With any chunks, and with loops inside.
#[test]
fn the_number_of_scratch_values_does_not_depend_on_chunks() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let made = AtomicUsize::new(0);
        let l = config.apply((0..768).par()).scratch(|| made.fetch_add(1, Relaxed));
        l.for_each(|_, i| {
            linger_at_some(i);
            if i % 64 == 0 {
                config.apply((0..4).par()).chunk_size(1).for_each(|_| linger());
            }
        });
        assert!((1..=config.threads.min(config.limit)).contains(&made.into_inner()), "{config:?}");
    }
}

#[test]
fn the_closure_that_makes_scratch_may_run_a_loop() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let init = || config.apply((0..10_u64).par()).map(|i| i * i).sum();
        let sums = config.apply((0..50).par()).scratch(init).map(|s, i| {
            linger_at_some(i);
            *s
        });
        assert!(sums.collect().into_iter().all(|s| s == 285));
        let mut kept = WorkerLocal::new();
        config.apply((0..50).par()).scratch_in(&mut kept, init).for_each(|_, i| linger_at_some(i));
        assert!(kept.into_iter().all(|s| s == 285));
    }
}

/// Nested loops that name no pool use no more threads, and run no more bodies at the same time, than their
/// pool has threads.
#[test]
fn nested_loops_stay_on_the_threads_of_their_pool() {
    let _deadline = testing::deadline();
    for pool in pools() {
        for schedule in SCHEDULES {
            let threads = Mutex::new(HashSet::new());
            let (bodies, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let leaf = || {
                most.fetch_max(bodies.fetch_add(1, Relaxed) + 1, Relaxed);
                threads.lock().insert(thread::current().id());
                linger();
                bodies.fetch_sub(1, Relaxed);
            };
            let nest = || {
                (0..4).par().schedule(schedule).chunk_size(1).for_each(|_| {
                    (0..4).par().schedule(schedule).chunk_size(1).for_each(|_| {
                        (0..4).par().schedule(schedule).chunk_size(1).for_each(|_| leaf());
                    });
                });
            };
            // `install` and `on` both choose the pool of the outermost loop.
            pool.install(nest);
            (0..2).par().on(pool).chunk_size(1).for_each(|_| nest());
            assert!(threads.into_inner().len() <= pool.threads());
            assert!(most.into_inner() <= pool.threads());
        }
    }
}

#[test]
fn serial_loops_stay_on_the_calling_thread() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let me = thread::current().id();
        let here = || assert_eq!(thread::current().id(), me);
        let mut kept = WorkerLocal::new();
        pool.install(|| {
            let l = || (0..200_u64).par().schedule(Schedule::Serial).chunk_size(3);
            l().for_each(|_| here());
            let count = |x| {
                here();
                linger();
                x
            };
            assert_eq!(l().map(count).collect().len(), 200);
            assert_eq!(
                l().map(count).reduce(|a, b| {
                    here();
                    a + b
                }),
                Some(19_900)
            );
            assert_eq!(l().map(count).sum(), 19_900);
            assert_eq!(
                l().map(count)
                    .scan(|a, b| {
                        here();
                        a + b
                    })
                    .len(),
                200
            );
            assert_eq!(
                l().map(count)
                    .exclusive_scan(0, |a, b| {
                        here();
                        a + b
                    })
                    .len(),
                200
            );
            l().map(count).in_order(|_| here());
            l().scratch_in(&mut kept, here).for_each(|_, _| here());
        });
        assert_eq!(kept.len(), 1);
    }
}

#[test]
fn each_participant_has_a_number_of_its_own() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let taken: Vec<_> = (0..9).map(|_| AtomicBool::new(false)).collect();
        let outermost = participant();
        config.apply((0..64).par()).chunk_size(1).for_each(|_| {
            let me = participant().unwrap();
            assert!(me.index() < me.count() && me.count() <= config.threads.min(config.limit));
            assert!(!taken[me.index()].swap(true, Relaxed), "two have number {}", me.index());
            // An inner loop has its own numbers, and restores the number of the outer one.
            config.apply((0..3).par()).chunk_size(1).for_each(|_| {
                assert!(participant().is_some_and(|p| p.index() < p.count()));
                linger();
            });
            assert_eq!(participant(), Some(me));
            taken[me.index()].store(false, Relaxed);
        });
        assert_eq!(participant(), outermost);
        let failed = catch_unwind(AssertUnwindSafe(|| config.apply((0..4).par()).for_each(|_| panic!("no"))));
        assert!(failed.is_err() && participant() == outermost);
    }
}

#[test]
fn many_foreign_threads_may_run_many_kinds_of_loops() {
    let _deadline = testing::deadline();
    // More callers than there are slots for open loops.
    let callers = 40;
    for pool in pools() {
        thread::scope(|s| {
            for caller in 0..callers {
                s.spawn(move || {
                    for round in 0..4 {
                        let l = || (0..100_usize).par().on(pool).schedule(SCHEDULES[(caller + round) % 6]);
                        assert_eq!(l().map(|i| i + caller).sum(), 4950 + 100 * caller);
                        assert!(l().map(|i| i * 2).collect().into_iter().eq((0..100).map(|i| i * 2)));
                        let mut next = 0;
                        l().chunk_size(1).in_order(|i| {
                            assert_eq!(i, next);
                            next += 1;
                        });
                        assert_eq!(l().position(|i| i == caller), Some(caller));
                        assert_eq!(
                            l().try_for_each(|i| if i >= caller { Err(()) } else { Ok(()) })
                                .unwrap_err()
                                .index(),
                            Some(caller)
                        );
                        let nested = l().map(|i| (0..i).par().map(|_| 1_usize).sum());
                        assert_eq!(nested.sum(), 4950);
                    }
                });
            }
        });
    }
}

/// Loops of one pool inside loops of another, in both directions at the same time.
#[test]
fn loops_of_two_pools_may_nest() {
    let _deadline = testing::deadline();
    for here in pools() {
        for there in pools() {
            let sum = AtomicUsize::new(0);
            let cross = |a: &ThreadPool, b: &ThreadPool| {
                (0..4).par().on(a).chunk_size(1).for_each(|_| {
                    let outer = participant();
                    (0..4).par().on(b).chunk_size(1).for_each(|_| {
                        // A loop that names no pool runs on the pool of the innermost loop around it.
                        (0..2).par().chunk_size(1).for_each(|_| {
                            assert!(participant().unwrap().count() <= b.workers() + 1);
                            sum.fetch_add(1, Relaxed);
                        });
                        (0..2).par().on(a).chunk_size(1).for_each(|_| {
                            sum.fetch_add(1, Relaxed);
                        });
                    });
                    assert_eq!(participant(), outer);
                });
            };
            thread::scope(|s| {
                // Joined explicitly, because ThreadSanitizer does not see how a scope waits.
                let both = [s.spawn(|| cross(here, there)), s.spawn(|| cross(there, here))];
                both.into_iter().for_each(|thread| thread.join().unwrap());
            });
            assert_eq!(sum.into_inner(), 2 * 4 * 4 * 4);
        }
    }
}

#[test]
fn a_worker_local_keeps_its_values_from_loop_to_loop() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let drops = DropCounter::new();
        let mut counts = WorkerLocal::new();
        assert!(counts.is_empty());
        for round in 1..=3 {
            config.apply((0..100).par()).scratch_in(&mut counts, || drops.add(0)).for_each(|count, i| {
                linger_at_some(i);
                count.value += 1;
            });
            assert_eq!(counts.iter().map(|c| c.value).sum::<usize>(), 100 * round);
            assert!((1..=config.threads.min(config.limit)).contains(&counts.len()));
        }
        assert_eq!(drops.made.load(Relaxed), counts.len(), "each value is made once");

        // An error keeps all values. A panic drops the value of the participant that panicked.
        let before = counts.len();
        let failed = config.apply((0..100).par()).scratch_in(&mut counts, || drops.add(0));
        assert!(failed.try_for_each(|_, i| if i == 50 { Err(()) } else { Ok(()) }).is_err());
        assert!(counts.len() >= before);
        counts.iter_mut().for_each(|count| count.value = 1);
        let (made, dropped) = (drops.made.load(Relaxed), drops.dropped.load(Relaxed));
        let failed = config.apply((0..100).par()).scratch_in(&mut counts, || drops.add(1));
        let failed = failed.map(|count, i| {
            if i == 99 {
                count.value = 1000;
                panic!("half done");
            }
        });
        assert!(catch_unwind(AssertUnwindSafe(|| failed.for_each(|()| ()))).is_err());
        assert!(counts.iter().all(|count| count.value == 1), "{counts:?}");
        assert_eq!(drops.dropped.load(Relaxed), dropped + 1);
        let left = counts.drain().count();
        assert!(left <= config.threads && counts.is_empty() && drops.made.load(Relaxed) >= made);
        assert!(drops.all_dropped());
    }
}

#[test]
fn a_worker_local_loses_no_value_if_the_number_of_threads_changes() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let mut kept = WorkerLocal::new();
        for (round, threads) in [8, 1, 3, 2, 8].into_iter().enumerate() {
            let l = (0..64).par().on(pool).threads(threads).chunk_size(1);
            l.scratch_in(&mut kept, Vec::new).for_each(|values, i| {
                linger();
                values.push((round, i));
            });
        }
        let mut all: Vec<_> = kept.into_iter().flatten().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..5).flat_map(|round| (0..64).map(move |i| (round, i)))));
    }
}

/// A pool without workers runs a job when the thread that submitted it has left all of its loops, of any
/// pool.
#[test]
fn pools_without_workers_run_jobs_after_the_outermost_loop() {
    let _deadline = testing::deadline();
    struct Count(AtomicUsize);
    impl Job for Count {
        fn run(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let (a, b) = (common::pool(1), common::pool(1));
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (0..4).par().on(&a).for_each(|_| {
        b.submit(Arc::clone(&count) as Arc<dyn Job>);
        let spawned = Arc::clone(&count);
        drop(b.spawn(move || spawned.run()));
        (0..4).par().on(&b).for_each(|_| a.submit(Arc::clone(&count) as Arc<dyn Job>));
        assert_eq!(count.0.load(Relaxed), 0);
    });
    assert_eq!(count.0.load(Relaxed), 24);

    // The pool of the loop may have workers, and the submitting thread may be one of them.
    for threads in [2, 3, 4, 8] {
        let pool = common::pool(threads);
        let submit = |_| b.submit(Arc::clone(&count) as Arc<dyn Job>);
        (0..100).par().on(&pool).chunk_size(1).for_each(submit);
        let (from_a_job, its_own) = (Arc::clone(&count), common::pool(1));
        let job = pool.spawn(move || {
            its_own.submit(from_a_job as Arc<dyn Job>);
            its_own
        });
        drop(job.join().unwrap());
        drop(pool);
    }
    assert_eq!(count.0.load(Relaxed), 24 + 4 * 101);
}

/// Dropping a pool without workers runs its spawned jobs, even inside a loop of another pool.
#[test]
fn a_pool_that_is_dropped_in_a_loop_runs_its_jobs() {
    let _deadline = testing::deadline();
    let outer = common::pool(1);
    let count = Arc::new(AtomicUsize::new(0));
    (0..3).par().on(&outer).for_each(|i| {
        let pool = common::pool(1);
        let counted = Arc::clone(&count);
        drop(pool.spawn(move || counted.fetch_add(1, Relaxed)));
        assert_eq!(count.load(Relaxed), i);
        drop(pool);
        assert_eq!(count.load(Relaxed), i + 1);
    });
}

/// A worker that submitted a job to a pool without workers runs it after it has left the loop. The loop does
/// not wait for it.
#[test]
fn a_job_of_another_pool_does_not_delay_the_loop() {
    let _deadline = testing::deadline();
    struct Waits(Mutex<mpsc::Receiver<()>>, mpsc::Sender<()>);
    impl Job for Waits {
        fn run(self: Arc<Self>) {
            assert!(participant().is_none());
            self.0.lock().recv().unwrap();
            self.1.send(()).unwrap();
        }
    }
    let (pool, other) = (common::pool(2), common::pool(1));
    let (release, released) = mpsc::channel();
    let (ended, end) = mpsc::channel();
    let job = Mutex::new(Some(Arc::new(Waits(Mutex::new(released), ended))));
    let both = Barrier::new(2);
    (0..2).par().on(&pool).chunk_size(1).for_each(|_| {
        both.wait();
        if participant().unwrap().index() == 1 {
            other.submit(job.lock().take().unwrap());
        }
    });
    // The loop has ended, and the worker still waits in the job.
    release.send(()).unwrap();
    end.recv().unwrap();
}

/// One participant holds the only value as its scratch and is far ahead. The other one has the next item, and
/// needs a value.
#[test]
fn a_participant_that_holds_a_value_does_not_wait_for_its_turn() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let values = Pool::new(1, || ());
        let mut next = 0;
        let results = config.apply((0..5_000).par()).chunk_size(1).scratch(|| {
            linger();
            values.take()
        });
        results.map(|_, i| i).in_order(|i| {
            assert_eq!(i, next);
            next += 1;
        });
        assert_eq!(next, 5_000);
        assert_eq!(values.into_values().len(), 1);
    }
}

/// Scratch from a pool needs no extra value, even if the caller has begun the loop alone.
#[test]
fn scratch_from_a_pool_keeps_the_bound() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let made = AtomicUsize::new(0);
        let values = Pool::new(1, || made.fetch_add(1, Relaxed));
        config.apply((0..1_000).par()).scratch(|| values.take()).for_each(|_, i| linger_at_some(i));
        assert_eq!(made.load(Relaxed), 1, "{config:?}");
    }
}

/// One thread holds the only value and waits for the critical section. The other thread is inside it, and
/// needs a value.
#[test]
fn a_thread_in_a_critical_section_does_not_wait_for_a_value() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let (values, section) = (Pool::new(1, || ()), Critical::new(()));
    let both = Barrier::new(2);
    (0..2).par().on(&pool).chunk_size(1).for_each(|i| {
        if i == 0 {
            let _value = values.take();
            both.wait();
            section.enter(|()| ());
        } else {
            section.enter(|()| {
                both.wait();
                drop(values.take());
                // The items of a loop inside the section do not wait either.
                (0..100).par().for_each(|_| drop(values.take()));
            });
        }
    });
    assert_eq!(values.into_values().len(), 1);
}

#[test]
fn loops_of_all_lengths_run_every_item_once() {
    let _deadline = testing::deadline();
    let all_lengths = |config: Config| {
        for items in (0..70).chain([127, 128, 129, 1000]) {
            for chunks in CHUNKS {
                let counts: Vec<_> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                Config { chunks, ..config }.apply((0..items).par()).for_each(|i| {
                    counts[i].fetch_add(1, Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Relaxed) == 1), "{items} items, {config:?} {chunks:?}");
            }
        }
    };
    // A thread that has opened a short loop several times does it alone. So each schedule has a thread of its
    // own.
    for config in all_schedules() {
        thread::scope(|scope| scope.spawn(|| all_lengths(config)).join().unwrap());
    }
}
