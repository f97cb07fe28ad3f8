//! Stale entries do not fill the queue.

use super::queue::STALE;
use crate::ThreadPool;
use std::sync::mpsc;

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
            assert!(entries() <= STALE as usize + 2 && s.listed() <= 8);
        }
    });
    assert_eq!(sum, 499_999_500_000_usize);
    drop(release);
    assert!(worker.join().unwrap().is_err());
    assert_eq!(front.join().unwrap(), 1);
}
