//! An attached thread allocates nothing in loops, joins, calls, jobs and scratch scopes.

use anabranch_par::{Job, foreign, prelude::*, scratch};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// Counts the allocations of each thread by itself, because the test harness allocates on other threads.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations on this thread in 1,000 calls, after some to warm up.
fn allocations(mut f: impl FnMut()) -> usize {
    (0..10).for_each(|_| f());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| f());
    ALLOCATIONS.get() - before
}

struct Count(AtomicUsize);

impl Job for Count {
    fn run(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn an_attached_thread_allocates_nothing() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        let sum = AtomicUsize::new(0);
        let add = |item| {
            sum.fetch_add(item, Relaxed);
        };
        let schedules =
            [Schedule::Static(Split::RoundRobin), Schedule::Dynamic, Schedule::Guided, Schedule::Greedy];
        for schedule in schedules {
            let all = || (0..100).par().on(&pool).schedule(schedule).for_each(add);
            assert_eq!(allocations(all), 0, "{schedule:?}");
        }
        assert_eq!(allocations(|| drop(pool.call(|| add(1)))), 0);
        assert_eq!(allocations(|| _ = pool.join(|| add(1), || add(2))), 0);
        let job = Arc::new(Count(AtomicUsize::new(0)));
        let mut submitted = 0;
        let submit = || {
            pool.submit(Arc::clone(&job) as Arc<dyn Job>);
            submitted += 1;
            while job.0.load(Relaxed) < submitted {
                thread::yield_now();
            }
        };
        assert_eq!(allocations(submit), 0);
    }
    let nested = || {
        scratch::scope(|outer| {
            outer.filled(1000, 1.0_f64);
            scratch::scope(|inner| inner.filled(1000, 2.0_f64).len())
        });
    };
    assert_eq!(allocations(nested), 0);
    // A thread that attaches again and again allocates nothing either.
    assert_eq!(allocations(|| foreign::attach().detach().unwrap()), 0);
    assert_eq!(
        allocations(|| {
            let attached = foreign::attach();
            nested();
            attached.detach().unwrap();
        }),
        0
    );
}
