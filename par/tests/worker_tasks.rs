//! Jobs for one worker: they run there, and nothing waits for itself.

use anabranch_par::{IntoParallel, LoopError, SpawnError, ThreadPool};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread,
    time::Duration,
};

#[test]
fn a_job_for_one_worker_runs_there() {
    let _deadline = testing::deadline();
    for workers in [1, 2, 3, 8] {
        let pool = ThreadPool::builder().workers(workers).build().unwrap();
        let index = |pool: &ThreadPool| pool.worker_index().unwrap();
        pool.scope(|s| {
            let handles: Vec<_> =
                (0..100).map(|i| (i % workers, s.spawn_on(i % workers, || index(&pool)).unwrap())).collect();
            for (worker, handle) in handles {
                assert_eq!(handle.join().unwrap(), worker);
            }
            drop(s.spawn_on(0, || assert_eq!(index(&pool), 0)).unwrap());
        });
    }
}

#[test]
fn a_sleeping_worker_is_woken_for_its_own_job() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(3).build().unwrap();
    for worker in [2, 0, 1, 2] {
        thread::sleep(Duration::from_millis(5));
        let name = pool.spawn_on(worker, || thread::current().name().map(String::from)).unwrap();
        assert_eq!(name.join().unwrap(), Some(format!("anabranch-{worker}")));
    }
}

#[test]
fn a_job_for_one_worker_cannot_be_spawned_from_inside() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let refused = || pool.spawn_on(0, || ()).err() == Some(SpawnError::Inside);
    (0..4).par().on(&pool).chunking(false).for_each(|_| assert!(refused()));
    pool.scope(|s| {
        assert!(refused(), "only the scope's own `spawn_on` is allowed");
        let by_the_scope = || s.spawn_on(0, || ()).err() == Some(SpawnError::Inside);
        assert!(!by_the_scope());
        assert!(s.spawn(by_the_scope).join().unwrap());
        assert!(s.spawn(refused).join().unwrap());
        (0..4).par().on(&pool).chunking(false).for_each(|_| assert!(by_the_scope()));
        pool.scope(|inner| {
            assert!(by_the_scope());
            assert_eq!(inner.spawn_on(0, || ()).err(), Some(SpawnError::Inside));
        });
    });
    assert!(!refused());
    assert!(SpawnError::Inside.to_string().contains("wait for each other"));
}

#[test]
fn a_job_for_one_worker_cannot_be_joined_from_inside() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(2).unwrap();
    let handle = Mutex::new(Some(pool.spawn_on(0, || ()).unwrap()));
    let result = (0..1).par().on(&pool).try_for_each(|_| {
        handle.lock().unwrap().take().unwrap().join().unwrap();
        Ok::<(), Infallible>(())
    });
    let Err(LoopError::Panic(panic)) = result else { panic!("no panic") };
    assert!(panic.message().unwrap().contains("join it outside"));
}

#[test]
fn a_worker_out_of_range_is_an_error() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(3).build().unwrap();
    let error = pool.spawn_on(3, || ()).unwrap_err();
    assert_eq!(error, SpawnError::NoSuchWorker { asked: 3, workers: 3 });
    assert_eq!(error.to_string(), "worker 3 was asked for, but this pool has 3: 0 to 2");
    let none = ThreadPool::new(1).unwrap();
    assert!(none.spawn_on(0, || ()).unwrap_err().to_string().contains("no workers"));
    none.scope(|s| assert!(s.spawn_on(0, || ()).is_err()));
}

#[test]
fn dropping_the_pool_runs_pending_jobs_for_one_worker() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(2).build().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    for i in 0..1000 {
        let count = Arc::clone(&count);
        drop(pool.spawn_on(i % 2, move || count.fetch_add(1, Relaxed)).unwrap());
    }
    drop(pool);
    assert_eq!(count.load(Relaxed), 1000);
}
