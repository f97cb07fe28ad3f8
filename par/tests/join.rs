//! A join runs both closures, returns both results, passes panics on and never runs unrelated work, on 1 to 8
//! threads.

mod common;

use anabranch_par::{IntoParallel, ThreadPool, flush_denormals, join, keep_denormals, participant};
use common::{THREADS, linger};
use std::{
    cell::RefCell,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// Joins until `done` returns true, so that this thread keeps offering its pending halves. Returns whether
/// that took less than a minute.
fn join_until(done: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !done() && begun.elapsed() < Duration::from_secs(60) {
        join(thread::yield_now, || ());
    }
    done()
}

fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    payload.downcast_ref::<&str>().copied().unwrap_or("another payload")
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (x, y) = join(|| fib(n - 1), || fib(n - 2));
    x + y
}

#[test]
fn a_join_returns_both_results() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        assert_eq!(pool.join(|| "left", || vec![1, 2]), ("left", vec![1, 2]));
        for _ in 0..20 {
            assert_eq!(pool.install(|| fib(16)), 987);
        }
    }
}

/// Enough work for other threads to take halves, and for the owners of these halves to help.
#[test]
fn a_deep_tree_of_joins_computes_its_sum() {
    let _deadline = testing::deadline();
    fn sum(from: u64, to: u64) -> u64 {
        if to - from <= 16 {
            return (from..to).map(black_box).sum();
        }
        let middle = from.midpoint(to);
        let (left, right) = join(|| sum(from, middle), || sum(middle, to));
        left + right
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        pool.install(|| assert_eq!(sum(0, 200_000), 200_000 * 199_999 / 2));
    }
}

#[test]
fn quicksort_with_joins_sorts() {
    let _deadline = testing::deadline();
    fn sort(values: &mut [u32]) {
        if values.len() <= 8 {
            return values.sort_unstable();
        }
        let pivot = values[values.len() / 2];
        let (mut low, mut high) = (0, values.len());
        let mut at = 0;
        while at < high {
            match values[at].cmp(&pivot) {
                std::cmp::Ordering::Less => {
                    values.swap(at, low);
                    (low, at) = (low + 1, at + 1);
                }
                std::cmp::Ordering::Equal => at += 1,
                std::cmp::Ordering::Greater => {
                    high -= 1;
                    values.swap(at, high);
                }
            }
        }
        let (left, rest) = values.split_at_mut(low);
        let right = &mut rest[high - low..];
        join(|| sort(left), || sort(right));
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        let mut values: Vec<u32> = (0..20_000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 12).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        pool.install(|| sort(&mut values));
        assert_eq!(values, expected);
    }
}

#[test]
fn both_halves_run_at_the_same_time() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
    let met = pool.join(
        || {
            left.store(true, SeqCst);
            join_until(|| right.load(SeqCst))
        },
        || {
            right.store(true, SeqCst);
            join_until(|| left.load(SeqCst))
        },
    );
    assert_eq!(met, (true, true));
}

/// The worker takes `b` and offers halves of its own. Only the caller can take them, which waits for `b` and
/// may (`late`) have fallen asleep.
#[test]
fn a_waiting_owner_helps_the_thread_that_took_its_half() {
    let _deadline = testing::deadline();
    let pool = common::pool(2);
    let caller = thread::current().id();
    for late in [false, true] {
        let (taken, helped) = (AtomicBool::new(false), AtomicBool::new(false));
        pool.join(
            || assert!(join_until(|| taken.load(SeqCst))),
            || {
                taken.store(true, SeqCst);
                if late {
                    thread::sleep(Duration::from_millis(50));
                }
                let begun = Instant::now();
                let slow = || thread::sleep(Duration::from_millis(2));
                while !helped.load(SeqCst) && begun.elapsed() < Duration::from_secs(60) {
                    join(slow, || helped.fetch_or(thread::current().id() == caller, SeqCst));
                }
            },
        );
        assert!(helped.into_inner());
    }
}

#[test]
fn a_panic_is_passed_on_after_the_other_half_has_ended() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        for round in 0..100 {
            let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = || {
                begun.fetch_add(1, Relaxed);
                linger();
                ended.fetch_add(1, Relaxed);
            };
            let fail = |what: &'static str| {
                if round % 2 == 0 {
                    linger();
                }
                resume_unwind(Box::new(what));
            };
            let caught = |a: &(dyn Fn() + Sync), b: &(dyn Fn() + Sync)| {
                let result = catch_unwind(AssertUnwindSafe(|| pool.join(a, b)));
                assert_eq!(begun.load(Relaxed), ended.load(Relaxed), "a half is still running");
                message(&*result.unwrap_err()).to_owned()
            };
            assert_eq!(caught(&|| fail("a"), &work), "a");
            assert_eq!(caught(&work, &|| fail("b")), "b");
            assert_eq!(caught(&|| fail("a"), &|| fail("b")), "a");
        }
        assert_eq!(pool.install(|| fib(10)), 55, "the pool is usable");
    }
}

/// A panic deep in a tree unwinds through many pending halves, some of them offered or taken.
#[test]
fn a_panic_unwinds_many_joins() {
    let _deadline = testing::deadline();
    fn descend(depth: usize, drops: &AtomicUsize) {
        struct Dropped<'d>(&'d AtomicUsize);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        if depth == 0 {
            resume_unwind(Box::new("bottom"));
        }
        let held = Dropped(drops);
        join(
            || descend(depth - 1, drops),
            move || {
                linger();
                drop(held);
            },
        );
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        for _ in 0..20 {
            let drops = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| pool.install(|| descend(30, &drops))));
            assert_eq!(message(&*result.unwrap_err()), "bottom");
            assert_eq!(drops.into_inner(), 30, "every closure is dropped, run or not");
        }
    }
}

/// A thread-local `RefCell` is borrowed across a join. If waiting threads took unrelated work, they would
/// borrow it twice.
#[test]
fn a_waiting_thread_takes_no_unrelated_work() {
    let _deadline = testing::deadline();
    thread_local!(static SCRATCH: RefCell<usize> = const { RefCell::new(0) });
    fn leaf() {
        SCRATCH.with(|scratch| {
            let mut scratch = scratch.borrow_mut();
            join(|| join(linger, linger), || join(linger, linger));
            *scratch += 1;
        });
    }
    fn descend(depth: usize) {
        if depth == 0 {
            return leaf();
        }
        join(|| descend(depth - 1), || descend(depth - 1));
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        pool.install(|| descend(7));
    }
}

#[test]
fn a_mutex_may_be_held_across_a_join() {
    let _deadline = testing::deadline();
    fn descend(depth: usize, lock: &Mutex<()>, inside: &AtomicUsize) {
        if depth > 0 {
            join(|| descend(depth - 1, lock, inside), || descend(depth - 1, lock, inside));
        } else {
            let held = lock.lock().unwrap();
            assert_eq!(inside.fetch_add(1, Relaxed), 0);
            join(linger, linger);
            inside.fetch_sub(1, Relaxed);
            drop(held);
        }
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        pool.install(|| descend(6, &Mutex::new(()), &AtomicUsize::new(0)));
    }
}

#[test]
fn joins_and_loops_may_nest() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let count = AtomicUsize::new(0);
        let half = || {
            (0..5).par().on(&pool).chunking(false).for_each(|_| {
                let inner =
                    || (0..3).par().on(&pool).chunking(false).for_each(|_| _ = count.fetch_add(1, Relaxed));
                join(inner, || join(inner, linger));
            });
        };
        for round in 1..=20 {
            pool.join(half, || pool.join(half, half));
            assert_eq!(count.load(Relaxed), round * 3 * 5 * 2 * 3);
        }
    }
}

#[test]
fn a_join_may_go_to_another_pool_and_back() {
    let _deadline = testing::deadline();
    let (here, there) = (common::pool(2), common::pool(3));
    fn descend(depth: usize, pools: [&ThreadPool; 2]) -> usize {
        if depth == 0 {
            linger();
            return 1;
        }
        let next = || descend(depth - 1, [pools[1], pools[0]]);
        let (left, right) = pools[0].join(next, next);
        left + right
    }
    for _ in 0..10 {
        assert_eq!(descend(6, [&here, &there]), 64);
    }
}

#[test]
fn many_threads_may_join_on_one_pool() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        // More threads than there are slots for their offers.
        let all_there = Barrier::new(40);
        let work = || {
            all_there.wait();
            for _ in 0..3 {
                let tree = || pool.join(linger, || fib(12)).1;
                assert_eq!(pool.join(tree, tree), (144, 144));
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..40).map(|_| scope.spawn(work)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

#[test]
fn a_stopped_pool_runs_the_halves_one_after_the_other() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    pool.stop();
    assert_eq!(pool.install(|| fib(12)), 144);
}

/// The only worker is busy when the join begins, and the owner calls no other join.
#[test]
fn a_worker_that_becomes_idle_later_takes_a_half() {
    let _deadline = testing::deadline();
    static BUSY: Barrier = Barrier::new(2);
    static BEGUN: AtomicBool = AtomicBool::new(false);
    struct Until;
    impl anabranch_par::Job for Until {
        fn run(self: Arc<Self>) {
            BUSY.wait();
            while !BEGUN.load(SeqCst) {
                thread::yield_now();
            }
        }
    }
    let pool = common::pool(2);
    pool.submit(Arc::new(Until));
    BUSY.wait();
    let right = AtomicBool::new(false);
    let left = || {
        BEGUN.store(true, SeqCst);
        let begun = Instant::now();
        while !right.load(SeqCst) && begun.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        right.load(SeqCst)
    };
    assert!(pool.join(left, || right.store(true, SeqCst)).0);
}

/// In a pool without workers, a job runs when the outermost call of the thread ends, not in the middle of it.
#[test]
fn a_job_does_not_run_inside_a_join() {
    let _deadline = testing::deadline();
    struct Flag(AtomicBool);
    impl anabranch_par::Job for Flag {
        fn run(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }
    let pool = common::pool(1);
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    pool.join(
        || pool.submit(flag.clone()),
        || {
            pool.join(|| (), || ());
            assert!(!flag.0.load(Relaxed));
        },
    );
    assert!(flag.0.load(Relaxed));
}

/// Nested joins need stack like plain recursion, and have no other limit of depth.
#[test]
fn a_hundred_thousand_joins_may_nest() {
    let _deadline = testing::deadline();
    fn descend(depth: usize) -> usize {
        if depth == 0 { 0 } else { join(|| descend(depth - 1), || 1).0 + 1 }
    }
    for threads in [1, 2, 4] {
        let deep = move || common::pool(threads).install(|| descend(100_000));
        let thread = thread::Builder::new().stack_size(512 << 20).spawn(deep).unwrap();
        assert_eq!(thread.join().unwrap(), 100_000);
    }
}

/// `flushes` halves the smallest normal number, which gives 0 if denormals are flushed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn each_half_runs_in_the_floating_point_mode_of_its_join() {
    let _deadline = testing::deadline();
    fn flushes() -> bool {
        linger();
        black_box(f32::MIN_POSITIVE) * black_box(0.5) == 0.0
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        for _ in 0..50 {
            pool.install(|| {
                // The outer half is pending, and may be offered, while inner joins run in other modes.
                let inner = || {
                    let flushing = flush_denormals(|| {
                        let kept = || keep_denormals(|| join(flushes, flushes));
                        (join(kept, flushes), join(flushes, flushes))
                    });
                    assert_eq!(flushing, (((false, false), true), (true, true)));
                    flushes()
                };
                assert_eq!(join(inner, flushes), (false, false));
                assert_eq!(
                    flush_denormals(|| join(flushes, || join(flushes, flushes))),
                    (true, (true, true))
                );
            });
        }
    }
}

#[test]
fn a_thread_that_takes_a_half_is_no_participant_of_the_owners_loop() {
    let _deadline = testing::deadline();
    assert_eq!(participant(), None);
    for threads in THREADS {
        let pool = common::pool(threads);
        pool.join(|| assert_eq!(participant(), None), || assert_eq!(participant(), None));
        for _ in 0..50 {
            (0..2).par().on(&pool).chunking(false).for_each(|_| {
                let (me, here) = (thread::current().id(), participant());
                let same = || {
                    linger();
                    participant() == if thread::current().id() == me { here } else { None }
                };
                assert_eq!(join(same, same), (true, true));
                assert_eq!(participant(), here);
            });
        }
    }
}
