//! Stale entries do not fill the queues, and the jobs of a scope reach all workers.

use super::stale::STALE;
use crate::ThreadPool;
use std::sync::{Barrier, mpsc};

/// The only worker is busy, and a job waits in front, so only a sweep takes entries out.
#[test]
fn a_million_jobs_that_are_joined_at_once_leave_few_entries_in_the_queue() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let worker = pool.spawn_on(0, move || released.recv()).unwrap();
    let front = pool.spawn(|| 1);
    let mut sum = 0;
    let entries = || pool.state().jobs.len();
    for i in 0..500_000 {
        sum += pool.spawn(move || i).join().unwrap();
        assert!(entries() <= STALE as usize + 2);
    }
    pool.scope(|s| {
        s.spawn(|| ());
        for i in 500_000..1_000_000 {
            sum += s.spawn(move || i).join().unwrap();
            assert!(entries() <= STALE as usize + 3 && s.queued() <= STALE as usize + 2);
        }
    });
    assert_eq!(sum, 499_999_500_000_usize);
    drop(release);
    assert!(worker.join().unwrap().is_err());
    assert_eq!(front.join().unwrap(), 1);
}

/// The only worker is busy, so only a sweep takes the tickets of ended scopes out.
#[test]
fn a_hundred_thousand_scopes_leave_few_tickets_in_the_queue() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let worker = pool.spawn_on(0, move || released.recv()).unwrap();
    let mut sum = 0;
    for i in 0..100_000 {
        pool.scope(|s| {
            let job = s.spawn(move || i);
            sum += if i % 2 == 0 { job.join().unwrap() } else { i };
        });
        assert!(pool.state().jobs.len() <= STALE as usize + 2);
    }
    assert_eq!(sum, 4_999_950_000_usize);
    drop(release);
    assert!(worker.join().unwrap().is_err());
}

/// Each job waits for all others, so each must begin on another thread.
#[test]
fn all_threads_run_jobs_of_a_scope() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        for _ in 0..200 {
            let all = Barrier::new(threads);
            pool.scope(|s| (0..threads).for_each(|_| drop(s.spawn(|| _ = all.wait()))));
        }
    }
}
