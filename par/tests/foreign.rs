//! A thread that no pool started may use the whole library: it joins by itself at its first use, and leaves
//! when it ends.

use anabranch_par::{Job, foreign, prelude::*, scratch};
use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
};

/// Uses a loop, scratch memory and a call.
fn use_all(pool: &ThreadPool) -> usize {
    let items = AtomicUsize::new(0);
    (0..50).par().on(pool).for_each(|_| {
        scratch::scope(|scope| assert_eq!(scope.filled(10, 3_u8), [3; 10]));
        items.fetch_add(1, Relaxed);
    });
    scratch::scope(|scope| scope.filled(1000, 1_u32).iter().sum::<u32>());
    items.into_inner() + pool.call(|| 1).unwrap()
}

/// Calls `f` on `threads` new threads at the same time. Returns their results.
fn on_new_threads<R: Send>(threads: usize, f: impl Fn() -> R + Sync) -> Vec<R> {
    thread::scope(|s| {
        let all: Vec<_> = (0..threads).map(|_| s.spawn(&f)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn any_thread_may_use_everything() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        assert_eq!(on_new_threads(8, || use_all(&pool)), [51; 8]);
    }
}

#[test]
fn the_number_of_records_is_bounded_by_the_threads_alive_at_once() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let before = foreign::statistics();
    for _ in 0..1250 {
        on_new_threads(4, || {
            (0..4).par().on(&pool).for_each(|_| ());
            scratch::scope(|scope| scope.filled(100_000, 1_u8)[99_999])
        });
    }
    let after = foreign::statistics();
    // Other tests of this program run at the same time, and their threads count, too.
    let other_threads = 200;
    assert!(after.attached + after.free <= before.attached + before.free + 4 + other_threads, "{after:?}");
    assert!(after.free_bytes <= after.free << 20, "{after:?}");
}

#[test]
fn a_thread_that_leaves_frees_most_of_its_scratch_memory() {
    let _deadline = testing::deadline();
    let attached = foreign::attach();
    scratch::scope(|scope| scope.slice::<u8>(100 << 20).len());
    attached.detach().unwrap();
    let statistics = foreign::statistics();
    assert!(statistics.free >= 1 && statistics.free_bytes <= statistics.free << 20, "{statistics:?}");
}

#[test]
fn threads_attached_at_the_same_time_have_different_numbers() {
    let _deadline = testing::deadline();
    let barrier = Barrier::new(8);
    let mut numbers = on_new_threads(8, || {
        let attached = foreign::attach();
        barrier.wait();
        attached.index()
    });
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 8);
}

#[test]
fn nested_guards_share_one_record() {
    let _deadline = testing::deadline();
    thread::spawn(|| {
        let outer = foreign::attach();
        let inner = foreign::attach();
        assert_eq!(outer.index(), inner.index());
        outer.detach().unwrap();
        let third = foreign::attach();
        assert_eq!(third.index(), inner.index());
        drop((inner, third));
        // The thread may join again, by itself or with a guard.
        scratch::scope(|scope| scope.filled(10, 0_u8).len());
        foreign::attach().detach().unwrap();
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_cannot_detach_inside_a_loop() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        (0..16).par().on(&pool).for_each(|_| {
            let attached = foreign::attach();
            let index = attached.index();
            let refused = attached.detach().unwrap_err();
            assert!(refused.to_string().contains("detach when that has ended"));
            let attached = refused.into_guard();
            assert_eq!(attached.index(), index);
            drop(attached);
            // The thread is still attached.
            assert_eq!(foreign::attach().index(), index);
        });
        foreign::attach().detach().unwrap();
    }
}

#[test]
fn a_panic_in_a_call_is_returned() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    assert_eq!(pool.call(|| 7).unwrap(), 7);
    let panic = pool.call(|| -> u32 { panic!("number {}", 5) }).unwrap_err();
    assert_eq!(
        (panic.message(), panic.to_string().as_str()),
        (Some("number 5"), "the call panicked: number 5")
    );
    let panic =
        pool.call(|| (0..10).par().on(&pool).for_each(|i| assert_ne!(i, 3, "no threes"))).unwrap_err();
    assert!(panic.message().unwrap().starts_with("item 3 panicked: "), "{panic}");
    let panic = pool.call(|| std::panic::panic_any(9_u8)).unwrap_err();
    assert_eq!(panic.message(), None);
    assert_eq!(panic.into_payload().downcast_ref(), Some(&9_u8));
    // The thread is no longer inside.
    assert!(participant().is_none());
    assert_eq!(use_all(&pool), 51);
}

#[test]
fn the_payload_of_a_panic_may_panic_when_it_is_dropped() {
    let _deadline = testing::deadline();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    let pool = ThreadPool::new(1).unwrap();
    drop(pool.call(|| std::panic::panic_any(Bomb)).unwrap_err());
}

#[test]
fn a_nested_call_restores_the_outer_pool() {
    let _deadline = testing::deadline();
    let (a, b) = (ThreadPool::new(2).unwrap(), ThreadPool::new(3).unwrap());
    let sum = AtomicUsize::new(0);
    a.call(|| {
        b.call(|| (0..10).par().on(&b).for_each(|_| count(&sum))).unwrap();
        (0..10).par().on(&a).for_each(|_| {
            scratch::scope(|scope| scope.filled(10, 0_u8).len());
            // A loop of one pool inside a loop of another.
            (0..10).par().on(&b).for_each(|_| count(&sum));
        });
    })
    .unwrap();
    assert_eq!(sum.into_inner(), 110);
}

fn count(sum: &AtomicUsize) {
    sum.fetch_add(1, Relaxed);
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    static EARLY: RefCell<Option<Late>> = const { RefCell::new(None) };
    static KEPT: Cell<Option<foreign::Attached>> = const { Cell::new(None) };
}

/// Uses the pool when its thread ends.
struct Late(Arc<ThreadPool>, mpsc::Sender<usize>);

impl Drop for Late {
    fn drop(&mut self) {
        let attached = foreign::attach();
        let items = use_all(&self.0);
        attached.detach().unwrap();
        self.1.send(items + use_all(&self.0)).unwrap();
    }
}

/// The order of thread-local destructors is unspecified. In either order, one of these two runs after the
/// thread has left.
#[test]
fn thread_local_destructors_may_use_the_whole_library() {
    let _deadline = testing::deadline();
    let (sender, receiver) = mpsc::channel();
    for threads in [1, 2, 3, 4, 8] {
        let pool = Arc::new(ThreadPool::new(threads).unwrap());
        let (p, s) = (Arc::clone(&pool), sender.clone());
        let thread = thread::spawn(move || {
            EARLY.set(Some(Late(Arc::clone(&p), s.clone())));
            use_all(&p);
            LATE.set(Some(Late(p, s)));
        });
        thread.join().unwrap();
        assert_eq!([receiver.recv(), receiver.recv()], [Ok(102), Ok(102)]);
    }
}

#[test]
fn threads_may_end_without_leaving() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let before = foreign::statistics();
    for _ in 0..100 {
        // A guard that is forgotten, and guards that are dropped after the thread has left.
        thread::spawn(|| std::mem::forget(foreign::attach())).join().unwrap();
        on_new_threads(1, || KEPT.set(Some(foreign::attach())));
        on_new_threads(2, || {
            KEPT.set(None);
            use_all(&pool);
            KEPT.set(Some(foreign::attach()));
        });
    }
    let after = foreign::statistics();
    assert!(after.attached + after.free <= before.attached + before.free + 200, "{before:?} {after:?}");
}

#[test]
fn a_thread_may_outlive_every_pool() {
    let _deadline = testing::deadline();
    let (to_thread, from_test) = mpsc::channel::<ThreadPool>();
    let thread = thread::spawn(move || {
        for pool in from_test {
            assert_eq!(use_all(&pool), 51);
            pool.stop();
            assert_eq!(use_all(&pool), 51);
        }
        // No pool exists any more.
        scratch::scope(|scope| scope.filled(10, 1_u8).len());
        foreign::attach().detach().unwrap();
    });
    for threads in [1, 2, 3, 4, 8] {
        to_thread.send(ThreadPool::new(threads).unwrap()).unwrap();
    }
    drop(to_thread);
    thread.join().unwrap();
}

#[test]
fn a_scope_that_is_open_when_the_thread_leaves_keeps_its_memory() {
    let _deadline = testing::deadline();
    thread::spawn(|| {
        let attached = foreign::attach();
        scratch::scope(|scope| {
            let mine = scope.filled(100, 1_u8);
            attached.detach().unwrap();
            scratch::scope(|other| other.filled(100, 2_u8).len());
            thread::spawn(|| scratch::scope(|other| other.filled(100, 3_u8).len())).join().unwrap();
            assert_eq!(*mine, [1; 100]);
        });
    })
    .join()
    .unwrap();
}

#[test]
fn any_thread_may_submit_jobs() {
    let _deadline = testing::deadline();
    struct Count(AtomicUsize);
    impl Job for Count {
        fn run(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        on_new_threads(4, || pool.call(|| pool.submit(Arc::clone(&count) as Arc<dyn Job>)).unwrap());
    }
    assert_eq!(count.0.load(Relaxed), 20);
}
