//! A team runs all of its members at the same time, its barrier waits for all of them, and a team that could
//! never be complete is an error. On 1 to 8 threads.

mod common;

use anabranch_par::{OnlyOnce, TeamError, prelude::*};
use common::THREADS;
use parking_lot::Mutex;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::*},
};

fn message(panicked: Result<impl Sized, Box<dyn std::any::Any + Send>>) -> String {
    let payload = panicked.err().expect("a panic");
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .expect("a message")
}

#[test]
fn all_members_run_at_the_same_time_on_threads_of_their_own() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        for _ in 0..20 {
            let ids = Mutex::new(std::collections::HashSet::new());
            let indices = pool
                .team(threads, |member| {
                    assert_eq!(member.count(), threads);
                    ids.lock().insert(std::thread::current().id());
                    member.barrier();
                    assert_eq!(ids.lock().len(), threads);
                    member.index()
                })
                .unwrap();
            assert!(indices.into_iter().eq(0..threads));
        }
    }
}

/// In each phase, every member writes its own cell and, after the barrier, reads the cell of another member.
#[test]
fn writes_before_a_barrier_are_visible_after_it() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let cells: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        pool.team(threads, |member| {
            for phase in 1..200 {
                cells[member.index()].store(phase, Relaxed);
                member.barrier();
                let next = (member.index() + 1) % member.count();
                assert_eq!(cells[next].load(Relaxed), phase);
                member.barrier();
            }
        })
        .unwrap();
    }
}

#[test]
fn shares_cover_every_index_once() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    for len in [0, 1, 2, 3, 10] {
        let shares = pool.team(3, |member| member.share(len)).unwrap();
        assert!(shares.into_iter().flatten().eq(0..len));
    }
}

#[test]
fn a_team_that_could_never_be_complete_is_an_error() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    for asked in [0, 4] {
        let error = pool.team(asked, |_| ()).unwrap_err();
        assert_eq!(error, TeamError::Threads { asked, threads: 3 });
        let expected =
            format!("a team of {asked} was asked for in a pool of 3 threads; choose between 1 and 3");
        assert_eq!(error.to_string(), expected);
    }
    (0..3).par().on(&pool).for_each(|_| {
        assert_eq!(pool.team(2, |_| ()), Err(TeamError::Inside));
        assert_eq!(pool.team(1, |_| 7), Ok(vec![7]));
    });
    pool.team(2, |_| assert_eq!(pool.team(2, |_| ()), Err(TeamError::Inside))).unwrap();
    pool.stop();
    assert_eq!(pool.team(2, |_| ()), Err(TeamError::Stopped));
}

#[test]
fn a_member_that_leaves_early_breaks_the_barrier_and_no_member_hangs() {
    let _deadline = testing::deadline();
    for threads in [2, 3, 8] {
        let pool = common::pool(threads);
        let left = catch_unwind(AssertUnwindSafe(|| {
            pool.team(threads, |member| {
                if member.index() != 1 {
                    member.barrier();
                }
            })
        }));
        assert!(
            message(left)
                .starts_with("a member left the team while other members waited for it at a barrier")
        );
        // If a member panics, the team passes on that panic.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.team(threads, |member| {
                member.barrier();
                assert!(member.index() != 1, "member one");
                member.barrier();
            })
        }));
        assert_eq!(message(panicked), "member one");
        assert_eq!(pool.team(threads, |_| ()).unwrap().len(), threads);
    }
}

/// Each team needs more than half of the workers. If they divided the workers among them, no team could
/// begin.
#[test]
fn teams_of_many_threads_do_not_starve_each_other() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::builder().workers(3).build().unwrap();
    let teams = AtomicUsize::new(0);
    std::thread::scope(|s| {
        let each = || {
            for _ in 0..30 {
                pool.team(3, |member| member.barrier()).unwrap();
                (0..4).par().on(&pool).for_each(|_| std::thread::yield_now());
                teams.fetch_add(1, Relaxed);
            }
        };
        let threads: Vec<_> = (0..4).map(|_| s.spawn(each)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(teams.into_inner(), 120);
}

#[test]
fn loops_run_inside_a_team() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    let sums = pool.team(3, |member| {
        let sum: usize = (0..100).par().map(|i| i * member.index()).sum();
        member.barrier();
        sum
    });
    assert_eq!(sums.unwrap(), [0, 4950, 9900]);
}

#[test]
fn one_member_runs_an_only_once_closure() {
    let _deadline = testing::deadline();
    let pool = common::pool(4);
    let (once, count) = (OnlyOnce::new(), AtomicUsize::new(0));
    pool.team(4, |member| {
        once.run(|| count.fetch_add(1, Relaxed));
        member.barrier();
        assert_eq!(count.load(Relaxed), 1);
    })
    .unwrap();
}

/// A member that catches the panic of a broken barrier and waits again does not replace the member that has
/// left.
#[test]
fn a_broken_barrier_stays_broken() {
    let _deadline = testing::deadline();
    let pool = common::pool(3);
    let passed = AtomicUsize::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.team(3, |member| {
            if member.index() > 0 {
                for _ in 0..5 {
                    let met = catch_unwind(AssertUnwindSafe(|| member.barrier()));
                    passed.fetch_add(usize::from(met.is_ok()), Relaxed);
                }
                member.barrier();
            }
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(passed.into_inner(), 0);
}
