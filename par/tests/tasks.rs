//! Spawned jobs and scopes return results, may borrow, lose no panic, and a thread that waits runs only the
//! job that it waits for.

mod common;

use anabranch_par::{
    IntoParallel, Job, Panic, SpawnError, ThreadPool, flush_denormals, participant, scope, spawn,
};
use common::THREADS;
use std::{
    cell::{Cell, RefCell},
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
    time::Duration,
};

fn pools() -> impl Iterator<Item = ThreadPool> {
    THREADS.into_iter().map(common::pool)
}

/// Runs `f`, which must panic. Returns the message.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    *payload
        .downcast::<&str>()
        .map(|s| Box::new(s.to_string()))
        .expect("the payload is the one that was thrown")
}

/// A worker that is blocked until this is dropped.
struct BlockedWorker {
    release: Arc<AtomicBool>,
}

impl BlockedWorker {
    fn new(pool: &ThreadPool, worker: usize) -> Self {
        let release = Arc::new(AtomicBool::new(false));
        let (begun, ready) = mpsc::channel();
        let until = Arc::clone(&release);
        let job = pool.spawn_on(worker, move || {
            begun.send(()).unwrap();
            while !until.load(Acquire) {
                thread::sleep(Duration::from_micros(50));
            }
        });
        drop(job.unwrap());
        ready.recv().unwrap();
        Self { release }
    }
}

impl Drop for BlockedWorker {
    fn drop(&mut self) {
        self.release.store(true, Release);
    }
}

#[test]
fn joining_a_handle_returns_the_result() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let handles: Vec<_> = (0..1000).map(|i| pool.spawn(move || i * i)).collect();
        for (i, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().unwrap(), i * i);
        }
    }
}

#[test]
fn a_handle_says_whether_its_job_is_done() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let blocked = BlockedWorker::new(&pool, 0);
    let handle = pool.spawn(|| 5);
    assert!(!handle.is_done());
    drop(blocked);
    while !handle.is_done() {
        thread::yield_now();
    }
    assert_eq!(handle.join().unwrap(), 5);
}

#[test]
fn free_functions_use_the_current_pool_of_the_thread() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(1).name("named-").build().unwrap();
    let name = || thread::current().name().map(String::from);
    pool.install(|| {
        let handle = spawn(name);
        while !handle.is_done() {
            thread::yield_now();
        }
        assert_eq!(handle.join().unwrap().as_deref(), Some("named-0"));
        scope(|s| {
            let handle = s.spawn(name);
            while !handle.is_done() {
                thread::yield_now();
            }
            assert_eq!(handle.join().unwrap().as_deref(), Some("named-0"));
        });
    });
    assert_eq!(spawn(|| 3).join().unwrap(), 3);
    assert_eq!(scope(|s| s.spawn(|| 4).join().unwrap()), 4);
}

#[test]
fn jobs_of_a_scope_may_borrow_values_that_outlive_it() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let words: Vec<String> = (0..100).map(|i| format!("word {i}")).collect();
        let mut lengths = vec![0; words.len()];
        let total = AtomicUsize::new(0);
        pool.scope(|s| {
            for (word, length) in words.iter().zip(&mut lengths) {
                let total = &total;
                s.spawn(move || {
                    *length = word.len();
                    total.fetch_add(word.len(), Relaxed);
                });
            }
        });
        assert_eq!(lengths, words.iter().map(String::len).collect::<Vec<_>>());
        assert_eq!(total.into_inner(), lengths.iter().sum::<usize>());
    }
}

#[test]
fn results_of_a_scope_may_borrow() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let text = String::from("alpha beta gamma");
        let words: Vec<&str> = pool.scope(|s| {
            let handles: Vec<_> = (0..3)
                .map(|i| {
                    s.spawn({
                        let text = &text;
                        move || text.split(' ').nth(i).unwrap()
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert_eq!(words, ["alpha", "beta", "gamma"]);
    }
}

#[test]
fn jobs_of_a_scope_may_spawn_jobs() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let count = AtomicUsize::new(0);
        pool.scope(|s| {
            for _ in 0..10 {
                s.spawn(|| {
                    for _ in 0..10 {
                        s.spawn(|| {
                            s.spawn(|| count.fetch_add(1, Relaxed));
                        });
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 100);
    }
}

#[test]
fn scopes_may_nest_at_any_depth() {
    let _deadline = testing::deadline();
    fn count(pool: &ThreadPool, depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        pool.scope(|s| {
            let left = s.spawn(|| count(pool, depth - 1));
            count(pool, depth - 1) + left.join().unwrap()
        })
    }
    for pool in pools() {
        assert_eq!(count(&pool, 9), 512);
    }
}

#[test]
fn loops_may_open_scopes_and_jobs_may_run_loops() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let count = AtomicUsize::new(0);
        (0..8).par().on(&pool).chunking(false).for_each(|_| {
            pool.scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        (0..8).par().on(&pool).chunking(false).for_each(|_| {
                            count.fetch_add(1, Relaxed);
                        });
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), 8 * 4 * 8);
    }
}

#[test]
fn the_only_worker_may_join_a_job_that_it_spawned() {
    let _deadline = testing::deadline();
    let pool = Arc::new(ThreadPool::builder().workers(1).build().unwrap());
    let inner = Arc::clone(&pool);
    let outer = pool.spawn_on(0, move || {
        let me = thread::current().id();
        let handle = inner.spawn(move || thread::current().id() == me);
        handle.join().unwrap()
    });
    assert!(outer.unwrap().join().unwrap());
}

#[test]
fn join_waits_for_a_job_that_a_worker_runs() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let (begun, ready) = mpsc::channel();
    let handle = pool.spawn(move || {
        begun.send(thread::current().id()).unwrap();
        thread::sleep(Duration::from_millis(20));
        7
    });
    assert_ne!(ready.recv().unwrap(), thread::current().id());
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn join_returns_the_panic_of_the_job() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let panic: Panic = pool.spawn(|| panic!("it is broken")).join().unwrap_err();
        assert_eq!(panic.message(), Some("it is broken"));
        assert_eq!(panic.to_string(), "a job panicked: it is broken");
        let panic = pool.spawn(|| panic_any(42)).join().unwrap_err();
        assert_eq!(panic.message(), None);
        assert_eq!(panic.into_payload().downcast_ref(), Some(&42));
        assert_eq!(
            panic_of(|| pool.spawn(|| panic!("again")).join().unwrap_or_else(|p| p.resume())),
            "again"
        );
        assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    }
}

#[test]
fn a_scope_does_not_pass_on_a_panic_that_was_joined() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let caught = pool.scope(|s| s.spawn(|| panic!("joined")).join().is_err());
        assert!(caught);
    }
}

#[test]
fn a_scope_passes_on_the_first_panic_that_was_not_joined() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let count = AtomicUsize::new(0);
        let message = panic_of(|| {
            pool.scope(|s| {
                s.spawn(|| count.fetch_add(1, Relaxed));
                for message in ["first", "second", "third"] {
                    s.spawn(move || -> () { panic_any(message) });
                }
                s.spawn(|| count.fetch_add(1, Relaxed));
            })
        });
        assert_eq!(message, "first");
        assert_eq!(count.into_inner(), 2, "all jobs run");
    }
}

#[test]
fn a_panic_of_the_opener_waits_for_the_jobs_and_takes_precedence() {
    let _deadline = testing::deadline();
    for pool in pools() {
        for fails in [false, true] {
            let mut data = vec![0; 1000];
            let message = panic_of(|| {
                pool.scope(|s| {
                    for x in &mut data {
                        s.spawn(move || {
                            *x = 1;
                            assert!(!fails, "a job");
                        });
                    }
                    panic!("the opener");
                })
            });
            assert_eq!(message, "the opener");
            assert_eq!(data, [1; 1000]);
        }
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a destructor");
    }
}

#[test]
fn a_scope_passes_on_the_panic_of_a_result_that_is_dropped() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let message = panic_of(|| {
            pool.scope(|s| {
                s.spawn(|| PanicsWhenDropped);
            })
        });
        assert_eq!(message, "a destructor");
    }
}

#[test]
fn a_job_runs_and_drops_its_result_if_its_handle_is_dropped() {
    let _deadline = testing::deadline();
    struct Dropped(mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    for pool in pools() {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..100 {
            let result = Dropped(sender.clone());
            drop(pool.spawn(move || result));
        }
        drop(pool.spawn(|| panic!("goes to the panic hook")));
        drop(pool);
        drop(sender);
        assert_eq!(receiver.iter().count(), 100);
    }
}

#[test]
fn dropping_the_handle_of_a_finished_job_drops_its_result() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let result = Arc::new(());
    for _ in 0..100 {
        let inner = Arc::clone(&result);
        let handle = pool.spawn(move || inner);
        while !handle.is_done() {
            thread::yield_now();
        }
        drop(handle);
    }
    assert_eq!(Arc::strong_count(&result), 1);
}

#[test]
fn another_thread_may_join_a_handle() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let handles: Vec<_> = (0..100).map(|i| pool.spawn(move || i)).collect();
    let sum = thread::spawn(move || handles.into_iter().map(|h| h.join().unwrap()).sum::<usize>());
    assert_eq!(sum.join().unwrap(), 4950);
}

#[test]
fn a_handle_may_be_joined_after_its_pool_is_dropped() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let handle = pool.spawn(|| 9);
        drop(pool);
        assert_eq!(handle.join().unwrap(), 9);
    }
}

#[test]
fn foreign_threads_may_spawn_and_join() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let total = AtomicUsize::new(0);
        thread::scope(|threads| {
            let spawner = || {
                for i in 0..300 {
                    total.fetch_add(pool.spawn(move || i).join().unwrap(), Relaxed);
                    pool.scope(|s| {
                        s.spawn(|| total.fetch_add(1, Relaxed));
                    });
                }
            };
            let spawners = [(); 3].map(|()| threads.spawn(spawner));
            spawners.into_iter().for_each(|s| s.join().unwrap());
        });
        assert_eq!(total.into_inner(), 3 * (44_850 + 300));
    }
}

/// Each job borrows a thread-local `RefCell` while it waits. If a waiting worker ran another such job, it
/// would find the cell borrowed.
#[test]
fn a_waiting_thread_runs_no_unrelated_job() {
    let _deadline = testing::deadline();
    thread_local!(static SCRATCH: RefCell<usize> = const { RefCell::new(0) });
    for pool in pools() {
        let work = |rounds: usize| {
            SCRATCH.with(|scratch| {
                let mut scratch = scratch.borrow_mut();
                let slow = || thread::sleep(Duration::from_micros(20));
                pool.scope(|s| {
                    for _ in 0..rounds {
                        s.spawn(slow);
                    }
                    s.spawn(slow).join().unwrap();
                });
                pool.spawn(slow).join().unwrap();
                *scratch += 1;
            });
        };
        pool.scope(|s| {
            for _ in 0..40 {
                s.spawn(|| work(3));
            }
        });
    }
}

#[test]
fn a_job_counts_as_inside_but_is_no_participant_of_a_loop() {
    let _deadline = testing::deadline();
    for pool in pools() {
        let check = || {
            assert!(participant().is_none());
            assert!(pool.team(2, |_| ()).is_err());
        };
        pool.spawn(|| assert!(participant().is_none())).join().unwrap();
        pool.scope(|s| {
            check();
            s.spawn(check).join().unwrap();
        });
        assert!(participant().is_none());
    }
}

/// Half of the smallest normal number is 0 if denormals are flushed.
#[test]
fn a_job_keeps_denormals_on_any_thread() {
    let _deadline = testing::deadline();
    let half = || (black_box(f32::MIN_POSITIVE) * black_box(0.5)).to_bits();
    for pool in pools() {
        flush_denormals(|| {
            let inline = pool.scope(|s| s.spawn(half).join().unwrap());
            assert!(inline > 0);
            let mut at_the_end = 0;
            pool.scope(|s| {
                s.spawn(|| at_the_end = half());
            });
            assert!(at_the_end > 0);
        });
    }
}

#[test]
fn a_stopped_pool_runs_jobs_on_the_thread_that_joins() {
    let _deadline = testing::deadline();
    for pool in pools() {
        pool.stop();
        assert_eq!(pool.spawn(|| 8).join().unwrap(), 8);
        assert_eq!(pool.scope(|s| s.spawn(|| 8).join().unwrap()), 8);
        if pool.workers() > 0 {
            assert_eq!(pool.spawn_on(0, || ()).unwrap_err(), SpawnError::Stopped);
        }
    }
}

#[test]
fn a_pool_without_workers_runs_no_job_inside_another() {
    let _deadline = testing::deadline();
    thread_local!(static BUSY: Cell<bool> = const { Cell::new(false) });
    let pool = common::pool(1);
    let count = AtomicUsize::new(0);
    let job = || {
        assert!(!BUSY.replace(true));
        count.fetch_add(1, Relaxed);
        BUSY.set(false);
    };
    pool.scope(|s| {
        for _ in 0..10 {
            s.spawn(|| {
                job();
                s.spawn(job);
            });
        }
        assert_eq!(count.load(Relaxed), 0);
    });
    assert_eq!(count.into_inner(), 20);
}

struct Submitted(mpsc::Sender<usize>, usize);

impl Job for Submitted {
    fn run(self: Arc<Self>) {
        assert!(participant().is_none());
        self.0.send(self.1).unwrap();
    }
}

/// Spawned jobs in between do not change the order.
#[test]
fn submitted_jobs_begin_in_their_order() {
    let _deadline = testing::deadline();
    for workers in [0, 1] {
        let pool = ThreadPool::builder().workers(workers).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        for i in 0..2000 {
            pool.submit(Arc::new(Submitted(sender.clone(), i)));
            drop(pool.spawn(|| ()));
        }
        drop((pool, sender));
        assert!(receiver.iter().eq(0..2000));
    }
}
