//! Marks and critical sections go with the work, to whichever threads do it.

mod common;

use anabranch_par::{Critical, Job, Lanes, Mark, Marks, ThreadPool, foreign, prelude::*};
use common::THREADS;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
};

/// Runs a closure in one way of handing over work.
type Construct = fn(&ThreadPool, &(dyn Fn() + Sync));

/// A job for pools and lanes.
struct Call<F>(F);

impl<F: Fn() + Send + Sync> Job for Call<F> {
    fn run(self: Arc<Self>) {
        (self.0)();
    }
}

/// Every way to hand over work that may borrow.
const BORROWING: [(&str, Construct); 12] = [
    ("a call", |pool, f| pool.call(f).unwrap()),
    ("a loop", |pool, f| (0..8).par().on(pool).schedule(Schedule::Greedy).for_each(|_| f())),
    ("a static loop", |pool, f| (0..8).par().on(pool).chunking(false).for_each(|_| f())),
    ("a stream", |pool, f| (0..8).par_stream().on(pool).for_each(|_| f())),
    ("a loop in order", |pool, f| (0..8).par().on(pool).map(|_| f()).in_order(|()| f())),
    ("a fold", |pool, f| {
        let sum = |a: u32, b: u32| {
            f();
            a + b
        };
        assert_eq!((0..8).par().on(pool).map(|_| 1).fold(|| 0, sum, sum), 8);
    }),
    ("a sort", |pool, f| {
        let mut values: Vec<u32> = (0..20_000).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
        pool.install(|| {
            values.par_sort_by(|a, b| {
                if a % 4096 == 0 && b % 16 == 0 {
                    f();
                }
                a.cmp(b)
            });
        });
    }),
    ("a join", |pool, f| {
        fn halves(n: usize, f: &(dyn Fn() + Sync)) {
            if n > 1 {
                join(|| halves(n / 2, f), || halves(n - n / 2, f));
            } else {
                common::linger();
                f();
            }
        }
        pool.install(|| halves(8, f));
    }),
    ("a scope", |pool, f| {
        pool.scope(|s| {
            for _ in 0..8 {
                s.spawn(|| {
                    common::linger();
                    f();
                });
            }
        });
    }),
    ("a job in a job of a scope", |pool, f| {
        pool.scope(|s| {
            for _ in 0..4 {
                s.spawn(|| s.spawn(f).join().unwrap()).join().unwrap();
                s.spawn(move || drop(s.spawn(f)));
            }
        });
    }),
    ("a team", |pool, f| {
        // Not inside a loop or a job: there a team of several is an error.
        let of = |count| pool.team(count, |_| f());
        of(pool.threads()).or_else(|_| of(1)).unwrap();
    }),
    ("another pool", |_, f| {
        let other = common::pool(2);
        (0..4).par().on(&other).chunking(false).for_each(|_| other.join(f, f).0);
    }),
];

/// Runs `f` in every construct, and in every construct inside one of `outer`, on pools of each size.
fn everywhere(outer: &[(&str, Construct)], f: impl Fn(&ThreadPool, &str, &dyn Fn(&(dyn Fn() + Sync)))) {
    for threads in THREADS {
        let pool = common::pool(threads);
        for (inner_name, inner) in BORROWING {
            f(&pool, inner_name, &|body| inner(&pool, body));
            for (outer_name, outer) in outer {
                let name = format!("{inner_name} in {outer_name} on {threads} threads");
                f(&pool, &name, &|body| outer(&pool, &|| inner(&pool, body)));
            }
        }
    }
}

/// Calls `f` on another thread, and waits until it has returned.
fn answer<R: Send + 'static>(start: impl FnOnce(Arc<dyn Fn(R) + Send + Sync>)) -> R {
    let (sender, receiver) = mpsc::channel();
    start(Arc::new(move |answer| sender.send(answer).unwrap()));
    receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap()
}

#[test]
fn a_mark_is_set_in_all_work_that_is_begun_under_it() {
    let _deadline = testing::deadline();
    everywhere(&BORROWING, |_, name, run| {
        let (mark, other) = (Mark::new(), Mark::new());
        mark.enter(|| run(&|| assert!(mark.is_set() && !other.is_set(), "{name}")));
        // And in no other work.
        run(&|| assert!(!mark.is_set(), "{name}"));
        assert!(!mark.is_set());
        // A mark that is set by one piece of the work is not set in the others.
        run(&|| {
            assert!(!other.is_set(), "{name}");
            other.enter(|| assert!(other.is_set()));
        });
    });
}

#[test]
fn a_mark_goes_with_jobs_that_outlive_the_call() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let lanes: Lanes = Lanes::new(1, 4, "lane-").unwrap();
        let marks = [Mark::new(), Mark::new()];
        let set = move || marks.map(Mark::is_set);
        let within = |f: &dyn Fn()| marks[0].enter(|| marks[1].enter(f));
        for _ in 0..20 {
            within(&|| assert_eq!(pool.spawn(set).join().unwrap(), [true; 2]));
            let later = marks[1].enter(|| pool.spawn(set));
            let joined = marks[0].enter(|| pool.spawn(move || later.join().unwrap())).join().unwrap();
            assert!(joined[1]);
            assert_eq!(pool.spawn(set).join().unwrap(), [false; 2]);
            // The job of a job.
            let nested = marks[0].enter(|| pool.spawn(move || spawn(set)));
            assert_eq!(nested.join().unwrap().join().unwrap(), [true, false]);
            let submitted = answer(|tell| {
                marks[0].enter(|| pool.submit(Arc::new(Call(move || tell(set())))));
            });
            assert_eq!(submitted, [true, false]);
            let on_lane = answer(|tell| marks[1].enter(|| lanes.submit(Arc::new(Call(move || tell(set()))))));
            assert_eq!(on_lane, [false, true]);
            let unmarked = answer(|tell| {
                within(&|| {
                    let tell = tell.clone();
                    pool.submit_unmarked(Arc::new(Call(move || tell(set()))));
                });
            });
            assert_eq!(unmarked, [false; 2]);
            let unmarked = answer(|tell| {
                within(&|| {
                    let tell = tell.clone();
                    lanes.submit_unmarked(Arc::new(Call(move || tell(set()))));
                });
            });
            assert_eq!(unmarked, [false; 2]);
        }
        if pool.workers() > 0 {
            let job = marks[0].enter(|| pool.spawn_on(0, set)).unwrap();
            assert_eq!(job.join().unwrap(), [true, false]);
        }
        assert_eq!(pool.spawn(set).join().unwrap(), [false; 2]);
    }
}

#[test]
fn a_destructor_of_a_detached_job_has_the_marks_of_the_job() {
    let _deadline = testing::deadline();
    struct Tell(Mark, mpsc::Sender<bool>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.1.send(self.0.is_set()).unwrap();
        }
    }
    impl Job for Tell {
        fn run(self: Arc<Self>) {}
    }
    for threads in THREADS {
        let pool = common::pool(threads);
        let (mark, (sender, receiver)) = (Mark::new(), mpsc::channel());
        for _ in 0..20 {
            let (captured, result) = (Tell(mark, sender.clone()), Tell(mark, sender.clone()));
            let job = mark.enter(|| {
                pool.spawn(move || {
                    drop(captured);
                    common::linger();
                    result
                })
            });
            drop(job);
            let submitted = Arc::new(Tell(mark, sender.clone()));
            mark.enter(|| pool.submit(submitted));
        }
        drop(pool);
        assert!(receiver.try_iter().filter(|set| *set).count() >= 40, "{threads} threads");
    }
}

#[test]
fn a_copy_of_marks_takes_them_to_other_threads() {
    let _deadline = testing::deadline();
    let marks = [Mark::new(), Mark::new()];
    let copy = marks[0].enter(|| marks[1].enter(Marks::current));
    let without = marks[0].enter(|| marks[1].enter(|| Marks::current_without(marks[0])));
    std::thread::spawn(move || {
        assert_eq!(marks.map(Mark::is_set), [false; 2]);
        copy.enter(|| {
            assert_eq!(marks.map(Mark::is_set), [true; 2]);
            assert!(copy.contain_current_except(Mark::new()));
            assert!(without.contain_current_except(marks[0]) && !without.contain_current_except(marks[1]));
            without.enter(|| assert_eq!(marks.map(Mark::is_set), [true; 2]));
        });
        without.enter(|| assert_eq!(marks.map(Mark::is_set), [false, true]));
        assert_eq!(marks.map(Mark::is_set), [false; 2]);
    })
    .join()
    .unwrap();
    assert!(Marks::current().is_empty() && Marks::current_without(marks[0]).is_empty());
}

/// A mark is left by a panic, too.
#[test]
fn a_panic_leaves_a_mark() {
    let _deadline = testing::deadline();
    let mark = Mark::new();
    let panic = catch_unwind(|| mark.enter(|| panic!("out")));
    assert!(panic.is_err() && !mark.is_set());
    // Also while the thread ends.
    struct AtEnd(Mark);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.enter(|| (0..8).par().for_each(|_| assert!(self.0.is_set())));
        }
    }
    thread_local!(static AT_END: AtEnd = AtEnd(Mark::new()));
    let ends = || AT_END.with(|at_end| drop((foreign::attach(), at_end.0)));
    std::thread::spawn(ends).join().unwrap();
}

const FROM_INSIDE: &str = "this critical section was entered from inside itself";

/// Work that is begun inside of a section, and enters it again, panics on whatever thread, instead of waiting
/// for itself.
#[test]
fn a_critical_section_is_not_entered_inside_itself_by_any_thread() {
    let _deadline = testing::deadline();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let expected = panic.payload_as_str().is_some_and(|message| message.starts_with(FROM_INSIDE));
        if !expected {
            hook(panic);
        }
    }));
    everywhere(&BORROWING[1..2], |pool, _, run| {
        let section = Critical::new(0);
        let refused = |section: &Critical<i32>| {
            let panic = catch_unwind(AssertUnwindSafe(|| section.enter(|_| ()))).unwrap_err();
            let message = panic.downcast::<&str>().unwrap();
            assert!(message.starts_with(FROM_INSIDE), "{message}");
        };
        section.enter(|count| {
            let other = Critical::new(());
            run(&|| {
                refused(&section);
                other.enter(|()| refused(&section));
            });
            *count += 1;
        });
        // All threads have left it.
        run(&|| section.enter(|count| *count += 1));
        let shared = Arc::new(section);
        let inner = Arc::clone(&shared);
        shared.enter(|_| pool.spawn(move || refused(&inner)).join().unwrap());
    });
}

/// A half that was made outside of a section does not count as inside because it is stolen meanwhile.
#[test]
fn a_half_that_was_made_outside_may_enter_the_section() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let pool = common::pool(threads);
        let (section, mark) = (Critical::new(0_u64), Mark::new());
        for _ in 0..200 {
            let before = || {
                let inner = || {
                    section.enter(|count| {
                        *count += 1;
                        // Offers the oldest half: the one that was made outside.
                        (0..8).for_each(|_| _ = join(common::linger, common::linger));
                    });
                };
                mark.enter(inner);
            };
            let half = || {
                assert!(!mark.is_set());
                section.enter(|count| *count += 1);
            };
            pool.join(|| join(before, half), half);
        }
        assert_eq!(section.into_inner(), 600);
    }
}

/// A job that is submitted inside, which no thread can join, may enter the section later.
#[test]
fn a_submitted_job_is_not_inside_the_section() {
    let _deadline = testing::deadline();
    for threads in THREADS {
        let (pool, section) = (common::pool(threads.max(2)), Arc::new(Critical::new(0)));
        let inner = Arc::clone(&section);
        let entered = answer(|tell| {
            section.enter(|count| {
                *count += 1;
                pool.submit(Arc::new(Call(move || tell(inner.enter(|count| *count)))));
            });
        });
        assert_eq!(entered, 1);
    }
}
