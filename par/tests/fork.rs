//! A forked child has none of its parent's threads. It gets an error where they would be needed, and can make
//! its own pools. This program does not use the test harness, so that at each fork only threads exist that
//! the test has started.

#[cfg(unix)]
fn main() {
    forks::all();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod forks {
    use anabranch_par::{Job, Lanes, LoopError, SpawnError, TeamError, foreign, prelude::*, scratch, spawn};
    use std::{
        convert::Infallible,
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            Arc, Barrier,
            atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        },
        thread,
    };
    use testing::fork::{expect_success, in_child};

    pub(super) fn all() {
        let tests: [(&str, fn()); 13] = [
            ("using_a_pool_of_the_parent_is_an_error", using_a_pool_of_the_parent_is_an_error),
            (
                "a_child_may_stop_and_drop_a_pool_of_its_parent",
                a_child_may_stop_and_drop_a_pool_of_its_parent,
            ),
            ("a_child_may_build_a_pool_of_its_own", a_child_may_build_a_pool_of_its_own),
            ("a_child_of_a_child_gets_an_error_too", a_child_of_a_child_gets_an_error_too),
            ("using_lanes_of_the_parent_is_an_error", using_lanes_of_the_parent_is_an_error),
            (
                "using_the_global_pool_of_the_parent_is_an_error",
                using_the_global_pool_of_the_parent_is_an_error,
            ),
            (
                "a_child_can_join_even_if_threads_were_joining_at_the_fork",
                a_child_can_join_even_if_threads_were_joining_at_the_fork,
            ),
            ("a_fork_inside_a_loop_ends_in_an_error", a_fork_inside_a_loop_ends_in_an_error),
            ("joining_a_job_of_the_parent_is_an_error", joining_a_job_of_the_parent_is_an_error),
            ("a_fork_inside_a_scope_ends_in_an_error", a_fork_inside_a_scope_ends_in_an_error),
            ("a_fork_inside_a_join_ends_in_an_error", a_fork_inside_a_join_ends_in_an_error),
            ("a_fork_inside_a_team_ends_in_an_error", a_fork_inside_a_team_ends_in_an_error),
            ("a_child_of_a_worker_runs_no_more_jobs", a_child_of_a_worker_runs_no_more_jobs),
        ];
        for (name, test) in tests {
            test();
            println!("test {name} ... ok");
        }
        println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", tests.len());
    }

    /// Runs `f`, which must panic. Returns the message, and prints nothing.
    fn message(f: impl FnOnce()) -> String {
        std::panic::set_hook(Box::new(|_| ()));
        let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
        drop(std::panic::take_hook());
        *panic.downcast().expect("a message")
    }

    fn sum(pool: &ThreadPool) -> usize {
        let sum = AtomicUsize::new(0);
        (0..100).par().on(pool).for_each(|item| {
            scratch::scope(|scope| scope.filled(100, 1_u8).len());
            sum.fetch_add(item, Relaxed);
        });
        sum.into_inner()
    }

    struct Nothing;

    impl Job for Nothing {
        fn run(self: Arc<Self>) {}
    }

    fn using_a_pool_of_the_parent_is_an_error() {
        for threads in [1, 2, 3, 4, 8] {
            let pool = ThreadPool::builder().threads(threads).name("mine-").build().unwrap();
            assert_eq!(sum(&pool), 4950);
            in_child(|| {
                let expected = "the thread pool \"mine-\" cannot be used in this process, which was forked after the pool \
                     was built: its threads are in the parent process; build a new pool in this one";
                let uses: [&dyn Fn(); 3] =
                    [&|| assert_eq!(sum(&pool), 4950), &|| pool.submit(Arc::new(Nothing)), &|| {
                        pool.call(|| assert_eq!(sum(&pool), 4950)).unwrap_or_else(|panic| panic.resume())
                    }];
                for each in uses {
                    let message = message(each);
                    assert!(message.starts_with(expected), "{message}");
                }
                // A call that returns a `Result` returns an error instead of panicking.
                let result = (0..1).par().on(&pool).try_for_each(|_| Ok::<_, Infallible>(()));
                assert!(matches!(result, Err(LoopError::Forked(_))));
                assert!(matches!(pool.team(1, |_| ()), Err(TeamError::Forked(_))));
                let error = pool.check_fork().unwrap_err();
                assert_eq!(error.name(), "mine-");
                assert!(error.to_string().starts_with(expected));
            });
            // The parent can use its pool as before.
            assert_eq!((sum(&pool), pool.check_fork()), (4950, Ok(())));
        }
    }

    fn a_child_may_stop_and_drop_a_pool_of_its_parent() {
        for threads in [1, 2, 3, 4, 8] {
            let mut pool = Some(ThreadPool::new(threads).unwrap());
            in_child(|| {
                let pool = pool.take().unwrap();
                pool.stop();
                drop(pool);
                // The threads of the child may have the same handles as those of the parent.
                let pool = ThreadPool::new(threads).unwrap();
                assert_eq!(sum(&pool), 4950);
                drop(pool);
            });
            assert_eq!(sum(&pool.unwrap()), 4950);
        }
    }

    fn a_child_may_build_a_pool_of_its_own() {
        for threads in [1, 2, 3, 4, 8] {
            let parents = ThreadPool::new(threads).unwrap();
            in_child(|| {
                let pool = ThreadPool::new(threads).unwrap();
                assert_eq!((sum(&pool), pool.check_fork()), (4950, Ok(())));
                assert_eq!(pool.call(|| sum(&pool)).unwrap(), 4950);
                assert!(parents.check_fork().is_err());
            });
        }
    }

    fn a_child_of_a_child_gets_an_error_too() {
        let parents = ThreadPool::new(2).unwrap();
        in_child(|| {
            let pool = ThreadPool::new(2).unwrap();
            in_child(|| assert!(pool.check_fork().is_err() && parents.check_fork().is_err()));
            assert_eq!(sum(&pool), 4950);
        });
    }

    fn using_lanes_of_the_parent_is_an_error() {
        let mut lanes: Option<Lanes> = Some(Lanes::new(1, 4, "lane-").unwrap());
        in_child(|| {
            let lanes = lanes.take().unwrap();
            let message = message(|| lanes.submit(Arc::new(Nothing)));
            assert!(message.starts_with("the thread pool \"lane-\" cannot be used"), "{message}");
            assert!(lanes.check_fork().is_err() && lanes.steal().is_none());
            lanes.stop();
        });
        lanes.unwrap().submit(Arc::new(Nothing));
    }

    fn using_the_global_pool_of_the_parent_is_an_error() {
        // If the parent has not used its global pool yet, the child has one of its own.
        in_child(|| assert_eq!(sum(ThreadPool::global()), 4950));
        assert_eq!(sum(ThreadPool::global()), 4950);
        in_child(|| {
            let message = message(|| assert_eq!(sum(ThreadPool::global()), 4950));
            assert!(message.contains("forked after the pool was built"), "{message}");
        });
    }

    fn a_child_can_join_even_if_threads_were_joining_at_the_fork() {
        let stop = AtomicBool::new(false);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    while !stop.load(Relaxed) {
                        foreign::attach().detach().unwrap();
                        scratch::scope(|scope| scope.filled(100, 1_u8).len());
                    }
                });
            }
            for _ in 0..50 {
                in_child(|| {
                    for _ in 0..10 {
                        foreign::attach().detach().unwrap();
                        scratch::scope(|scope| scope.filled(100, 1_u8).len());
                    }
                });
            }
            stop.store(true, Relaxed);
        });
    }

    /// If other threads were inside the loop, the child neither waits for them nor treats the loop as done.
    fn a_fork_inside_a_loop_ends_in_an_error() {
        let pool = ThreadPool::new(2).unwrap();
        let both = Barrier::new(2);
        let (child, is_child) = (AtomicUsize::new(0), AtomicBool::new(false));
        let panic = catch_unwind(AssertUnwindSafe(|| {
            (0..2).par().on(&pool).schedule(Schedule::Dynamic).chunk_size(1).for_each(|_| {
                both.wait();
                if participant().unwrap().index() == 0 {
                    // SAFETY: the child runs code that may allocate, which the C library allows; the child
                    // ends below.
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        is_child.store(true, Relaxed);
                        std::panic::set_hook(Box::new(|_| ()));
                    }
                    child.store(pid as usize, Relaxed);
                }
                if !is_child.load(Relaxed) {
                    both.wait();
                }
            });
        }));
        if is_child.load(Relaxed) {
            let message = panic.map_err(|panic| *panic.downcast::<String>().unwrap()).unwrap_err();
            let ended_in_error = message.contains("forked after the pool was built");
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!ended_in_error)) }
        }
        expect_success(child.load(Relaxed) as libc::pid_t);
        assert!(panic.is_ok());
        assert_eq!(sum(&pool), 4950);
    }

    const FORKED: &str = "forked after the pool was built";

    fn joining_a_job_of_the_parent_is_an_error() {
        for threads in [1, 2, 3, 4, 8] {
            let pool = ThreadPool::new(threads).unwrap();
            let (done, mut job) = (pool.spawn(|| 1), Some(pool.spawn(|| 2)));
            in_child(|| {
                let job = job.take().unwrap();
                assert!(message(|| drop(job.join())).contains(FORKED));
                assert!(message(|| drop(pool.spawn(|| ()))).contains(FORKED));
                assert!(message(|| pool.install(|| drop(spawn(|| ())))).contains(FORKED));
                assert!(message(|| pool.scope(|_| ())).contains(FORKED));
                assert!(message(|| _ = pool.join(|| (), || ())).contains(FORKED));
                assert!(matches!(pool.spawn_on(0, || ()), Err(SpawnError::Forked(_))));
            });
            assert_eq!((done.join().unwrap(), job.unwrap().join().unwrap()), (1, 2));
        }
    }

    /// Calls `f` with a function that forks. Another thread must be inside the same scope or join as the
    /// caller, and must stay there until the child has ended. In the child, `f` must end in an error and not
    /// wait.
    fn fork_inside(f: impl FnOnce(&dyn Fn())) {
        let (child, is_child) = (AtomicUsize::new(0), AtomicBool::new(false));
        let panic = catch_unwind(AssertUnwindSafe(|| {
            f(&|| {
                // SAFETY: the child runs code that may allocate, which the C library allows; the child ends
                // below.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    is_child.store(true, Relaxed);
                    std::panic::set_hook(Box::new(|_| ()));
                } else {
                    expect_success(pid);
                }
                child.store(pid as usize, Relaxed);
            });
        }));
        if is_child.load(Relaxed) {
            let ended_in_error =
                panic.is_err_and(|panic| panic.downcast::<String>().is_ok_and(|m| m.contains(FORKED)));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!ended_in_error)) }
        }
        assert!(panic.is_ok() && child.into_inner() > 0);
    }

    fn a_fork_inside_a_scope_ends_in_an_error() {
        let pool = ThreadPool::new(2).unwrap();
        for joined in [false, true] {
            let (begun, over) = (Barrier::new(2), AtomicBool::new(false));
            fork_inside(|fork| {
                pool.scope(|s| {
                    let job = s.spawn(|| {
                        begun.wait();
                        while !over.load(Relaxed) {
                            thread::yield_now();
                        }
                    });
                    begun.wait();
                    fork();
                    if pool.check_fork().is_ok() {
                        over.store(true, Relaxed);
                    }
                    if joined {
                        job.join().unwrap();
                    }
                });
            });
        }
        assert_eq!(sum(&pool), 4950);
    }

    fn a_fork_inside_a_join_ends_in_an_error() {
        let pool = ThreadPool::new(2).unwrap();
        for panics in [false, true] {
            let (begun, over) = (Barrier::new(2), AtomicBool::new(false));
            let left = |fork: &dyn Fn()| {
                begun.wait();
                fork();
                if pool.check_fork().is_ok() {
                    over.store(true, Relaxed);
                } else if panics {
                    panic!("{}", pool.check_fork().unwrap_err());
                }
            };
            let right = || {
                begun.wait();
                while !over.load(Relaxed) {
                    thread::yield_now();
                }
            };
            struct Send<'f>(&'f dyn Fn());
            // SAFETY: the first closure of a join stays on its thread.
            unsafe impl std::marker::Send for Send<'_> {}
            fork_inside(|fork| {
                let fork = Send(fork);
                let left = || {
                    let Send(fork) = { fork };
                    left(fork);
                };
                pool.join(left, right);
            });
        }
        assert_eq!(sum(&pool), 4950);
    }

    fn a_fork_inside_a_team_ends_in_an_error() {
        let pool = ThreadPool::new(2).unwrap();
        let main = thread::current().id();
        let child = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.team(2, |member| {
                member.barrier();
                if thread::current().id() == main {
                    // SAFETY: the child runs code that may allocate, which the C library allows; the child
                    // ends below.
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        std::panic::set_hook(Box::new(|_| ()));
                    }
                    child.store(pid as usize, Relaxed);
                }
                member.barrier();
            })
        }));
        if pool.check_fork().is_err() {
            let ended_in_error =
                result.is_err_and(|panic| panic.downcast::<String>().is_ok_and(|m| m.contains(FORKED)));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!ended_in_error)) }
        }
        expect_success(child.load(Relaxed) as libc::pid_t);
        assert!(result.is_ok_and(|team| team.is_ok()));
    }

    /// The worker is the only thread of the child. It does not run more jobs of its parent there.
    fn a_child_of_a_worker_runs_no_more_jobs() {
        let pool = ThreadPool::new(2).unwrap();
        // SAFETY: the child runs code that may allocate, which the C library allows; the child does nothing.
        let child = pool.spawn_on(0, || unsafe { libc::fork() }).unwrap();
        let other_jobs: Vec<_> = (0..10).map(|i| pool.spawn(move || i)).collect();
        expect_success(child.join().unwrap());
        assert_eq!(other_jobs.into_iter().map(|job| job.join().unwrap()).sum::<i32>(), 45);
    }
}
