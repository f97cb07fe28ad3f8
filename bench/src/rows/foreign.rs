//! Foreign threads, which do not belong to the pool: the cost of calls, of submitted jobs, and of waiting for
//! them.

use std::{hint::black_box, sync::Arc, thread};

use anabranch_par::{Job, Panic, ThreadPool, foreign};
use crossbeam_queue::ArrayQueue;

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{Program, TBB_LOOPS},
    },
    row::{Row, times, times_best},
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "foreign/join-and-leave",
            "ns",
            "a foreign thread joins and leaves, back to back; no other thread takes part",
            alone,
        )
        .bar(100.0)
        .better(40.0),
        Row::lower(
            "foreign/callback-attached",
            "ns",
            "an empty call by a foreign thread that stays attached, inlined into the loop that calls",
            attached,
        )
        .bar(5.0)
        .better(2.5),
        Row::lower(
            "foreign/callback-not-inlined",
            "ns",
            "the same behind a function that is not inlined, as from another language",
            not_inlined,
        )
        .bar(5.0)
        .better(4.0),
        Row::lower(
            "foreign/submit",
            "ns",
            "the call alone that submits an empty job from a foreign thread, 500 in a row: a worker may be awake",
            submitted,
        )
        .bar(60.0)
        .better(25.0),
        Row::lower(
            "foreign/submit-until-run",
            "ns",
            "per empty job, of 100,000 from a foreign thread in a scope, until all have run",
            until_run,
        )
        .bar(times(1.0, "TBB task_group"))
        .better(times_best(1.0)),
        Row::lower(
            "foreign/run-and-wait",
            "ns",
            "an empty job from a foreign thread, and waited for, back to back: the waiting thread may run it",
            waited_for,
        )
        .bar(200.0)
        .better(100.0),
    ]
}

fn load(context: &Context) -> Load {
    Load::back_to_back(context.pick(10, 2), context.pick(10_000, 100))
}

fn rounds(context: &Context) -> usize {
    context.pick(20, 1)
}

/// Calls `visit` on a thread that is not attached.
fn on_a_new_thread<R: Send>(visit: impl FnOnce() -> R + Send) -> R {
    thread::scope(|s| s.spawn(visit).join()).expect("no visit panics")
}

fn alone(context: &Context) -> Result<Outcome, Failure> {
    let visit = || {
        load(context).time(|| {
            drop(black_box(foreign::attach()));
        })
    };
    Contest::ours(|| Ok(on_a_new_thread(visit))).run(context, rounds(context))
}

fn attached(context: &Context) -> Result<Outcome, Failure> {
    calls(context, |pool| pool.call(|| black_box(())))
}

fn not_inlined(context: &Context) -> Result<Outcome, Failure> {
    #[inline(never)]
    fn call(pool: &ThreadPool) -> Result<(), Panic> {
        pool.call(|| black_box(()))
    }
    // The compiler does not know which function it is.
    let call = black_box(call as fn(&ThreadPool) -> Result<(), Panic>);
    calls(context, call)
}

fn calls(
    context: &Context,
    call: impl Fn(&ThreadPool) -> Result<(), Panic> + Sync,
) -> Result<Outcome, Failure> {
    let pool = ThreadPool::new(context.threads)?;
    let visit = || {
        let _attached = foreign::attach();
        load(context).try_time(|| call(&pool))
    };
    Contest::ours(|| Ok(on_a_new_thread(visit).map_err(|panic| panic.to_string())?))
        .peer_if(TBB_LOOPS.start(), "TBB arena.execute", |program: &mut Program| {
            program.time("arena-execute", 1, context.threads, load(context))
        })
        .run(context, rounds(context))
}

/// A job of 16 bytes without a handle.
struct Bytes([usize; 2]);

impl Job for Bytes {
    fn run(self: Arc<Self>) {
        black_box(self.0);
    }
}

/// Each sample submits few jobs, so that no queue grows longer than in a real program.
fn submitted(context: &Context) -> Result<Outcome, Failure> {
    let load = Load::back_to_back(context.pick(100, 2), 500);
    let pool = ThreadPool::new(context.threads)?;
    let rayon = rayon_pool(context.threads)?;
    let job = black_box([1_usize, 2]);
    let ours = || pool.submit(Arc::new(Bytes(job)));
    Contest::ours(|| Ok(load.time(ours)))
        .peer("rayon spawn", || {
            Ok(load.time(|| {
                rayon.spawn(move || {
                    black_box(job);
                })
            }))
        })
        // A lower bound: a push wakes no thread.
        .peer("ArrayQueue push", || {
            let queue = ArrayQueue::<[usize; 2]>::new(load.batch * (load.samples + 1));
            load.try_time(|| queue.push([1, 2])).map_err(|_| "the queue is full".into())
        })
        .run(context, rounds(context))
}

fn until_run(context: &Context) -> Result<Outcome, Failure> {
    let jobs = context.pick(100_000, 1_000);
    let load = Load::back_to_back(3, 1);
    let pool = ThreadPool::new(context.threads)?;
    let rayon = rayon_pool(context.threads)?;
    let per_job = |times: Vec<f64>| Ok(times.into_iter().map(|ns| ns / jobs as f64).collect());
    Contest::ours(|| {
        per_job(load.time(|| {
            pool.scope(|scope| {
                for i in 0..jobs {
                    scope.spawn(move || black_box(i));
                }
            });
        }))
    })
    .peer("rayon in_place_scope", || {
        per_job(load.time(|| {
            rayon.in_place_scope(|scope| {
                for i in 0..jobs {
                    scope.spawn(move |_| {
                        black_box(i);
                    });
                }
            });
        }))
    })
    .peer("rayon scope, inside its pool", || {
        per_job(rayon.install(|| {
            load.time(|| {
                rayon::scope(|scope| {
                    for i in 0..jobs {
                        scope.spawn(move |_| {
                            black_box(i);
                        });
                    }
                });
            })
        }))
    })
    .peer_if(TBB_LOOPS.start(), "TBB task_group", |program: &mut Program| {
        per_job(program.time("run-until-done", jobs, context.threads, load)?)
    })
    .run(context, context.pick(5, 1))
}

fn waited_for(context: &Context) -> Result<Outcome, Failure> {
    let pool = ThreadPool::new(context.threads)?;
    let rayon = rayon_pool(context.threads)?;
    // Fewer operations for rayon, which takes microseconds for each.
    let few = Load::back_to_back(context.pick(10, 2), context.pick(200, 10));
    let ours = || pool.spawn(|| black_box(())).join();
    let empty = || {
        black_box(0);
    };
    Contest::ours(|| Ok(load(context).try_time(ours).map_err(|panic| panic.to_string())?))
        .peer("rayon install", || Ok(few.time(|| rayon.install(empty))))
        .peer("rayon in_place_scope", || {
            Ok(few.time(|| rayon.in_place_scope(|scope| scope.spawn(move |_| empty()))))
        })
        .peer("rayon scope, inside its pool", || {
            Ok(rayon.install(|| load(context).time(|| rayon::scope(|scope| scope.spawn(move |_| empty())))))
        })
        .peer_if(TBB_LOOPS.start(), "TBB run_and_wait", |program: &mut Program| {
            program.time("run-and-wait", 1, context.threads, load(context))
        })
        .run(context, rounds(context))
}
