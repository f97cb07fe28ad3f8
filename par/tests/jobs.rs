//! A submitted job runs exactly once, and is never lost.

use anabranch_par::{Job, WaitPolicy, prelude::*};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
    time::Duration,
};

struct Count(AtomicUsize);

impl Job for Count {
    fn run(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn dropping_the_pool_runs_every_pending_job() {
    let _deadline = testing::deadline();
    for workers in [0, 1, 2, 3, 8] {
        let pool = ThreadPool::builder().workers(workers).build().unwrap();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        for _ in 0..1000 {
            pool.submit(Arc::clone(&count) as Arc<dyn Job>);
        }
        drop(pool);
        assert_eq!(count.0.load(Relaxed), 1000);
    }
}

struct Send(mpsc::Sender<()>);

impl Job for Send {
    fn run(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn a_sleeping_worker_is_woken_for_a_job() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(1).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        pool.submit(Arc::new(Send(sender.clone())));
        receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    }
}

struct Panics;

impl Job for Panics {
    fn run(self: Arc<Self>) {
        panic!("a job that panics");
    }
}

#[test]
fn a_job_that_panics_leaves_the_worker_alive() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(1).build().unwrap();
    pool.submit(Arc::new(Panics));
    let (sender, receiver) = mpsc::channel();
    pool.submit(Arc::new(Send(sender)));
    receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
}

struct InnerRegion(ThreadPool, mpsc::Sender<usize>);

impl Job for InnerRegion {
    fn run(self: Arc<Self>) {
        let sum = AtomicUsize::new(0);
        (0..100).par().on(&self.0).for_each(|i| {
            sum.fetch_add(i, Relaxed);
        });
        self.1.send(sum.into_inner()).unwrap();
    }
}

/// The job owns the last handle to a pool, and drops it on another pool's worker.
#[test]
fn a_job_may_run_loops_and_drop_a_pool() {
    let _deadline = testing::deadline();
    let outer = ThreadPool::builder().workers(1).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    outer.submit(Arc::new(InnerRegion(ThreadPool::new(3).unwrap(), sender)));
    assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), 4950);
}

struct Again(ThreadPool, AtomicUsize);

struct Resubmits(Arc<Again>);

impl Job for Resubmits {
    fn run(self: Arc<Self>) {
        if self.0.1.fetch_sub(1, Relaxed) > 1 {
            self.0.0.submit(Arc::clone(&self) as Arc<dyn Job>);
        }
    }
}

/// Without workers, the submitting thread runs the jobs one after the other, never one inside the other.
#[test]
fn jobs_that_submit_jobs_do_not_nest_on_the_stack() {
    let _deadline = testing::deadline();
    let again = Arc::new(Again(ThreadPool::new(1).unwrap(), AtomicUsize::new(1_000_000)));
    again.0.submit(Arc::new(Resubmits(Arc::clone(&again))));
    assert_eq!(again.1.load(Relaxed), 0);
}

#[test]
fn no_job_runs_inside_a_region() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(1).unwrap();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (0..3).par().on(&pool).for_each(|_| {
        pool.submit(Arc::clone(&count) as Arc<dyn Job>);
        assert_eq!(count.0.load(Relaxed), 0);
    });
    assert_eq!(count.0.load(Relaxed), 3);
}

/// The pool is dropped right after a job was submitted, while the worker is looking for one.
#[test]
fn a_job_submitted_just_before_the_pool_ends_is_run() {
    let _deadline = testing::deadline();
    for policy in [WaitPolicy::Spin, WaitPolicy::Passive] {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        for _ in 0..2000 {
            let pool = ThreadPool::builder().workers(1).wait_policy(policy).build().unwrap();
            pool.submit(Arc::clone(&count) as Arc<dyn Job>);
        }
        assert_eq!(count.0.load(Relaxed), 2000);
    }
}

struct Run<F>(parking_lot::Mutex<Option<F>>);

impl<F: FnOnce() + std::marker::Send> Job for Run<F> {
    fn run(self: Arc<Self>) {
        let job = self.0.lock().take().expect("a job runs once");
        job();
    }
}

fn job<F: FnOnce() + std::marker::Send + 'static>(f: F) -> Arc<dyn Job> {
    Arc::new(Run(parking_lot::Mutex::new(Some(f))))
}

/// A job that is deferred to the end of another one may wait for a job that is queued behind that one.
#[test]
fn a_worker_has_no_job_in_hand_while_it_runs_deferred_jobs() {
    let _deadline = testing::deadline();
    const DEADLINE: Duration = Duration::from_secs(10);
    let pool = Arc::new(ThreadPool::builder().workers(2).build().unwrap());
    let without_workers = Arc::new(ThreadPool::new(1).unwrap());
    let (is_busy, busy) = mpsc::channel();
    let (has_begun, begun) = mpsc::channel();
    let (has_run, run) = mpsc::channel();
    let (is_done, done) = mpsc::channel();

    // One worker is busy until the deferred job has begun.
    pool.submit(job(move || {
        is_busy.send(()).unwrap();
        begun.recv_timeout(DEADLINE).unwrap();
    }));
    busy.recv_timeout(DEADLINE).unwrap();
    // The other one queues a job behind the job in hand, and defers one that waits for it.
    let (same, deferring) = (Arc::clone(&pool), Arc::clone(&without_workers));
    pool.submit(job(move || {
        same.submit(job(move || has_run.send(()).unwrap()));
        deferring.submit(job(move || {
            has_begun.send(()).unwrap();
            is_done.send(run.recv_timeout(DEADLINE).is_ok()).unwrap();
        }));
    }));
    assert_eq!(
        done.recv_timeout(2 * DEADLINE),
        Ok(true),
        "the queued job ran while the deferred one waited for it"
    );
}
