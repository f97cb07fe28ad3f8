//! Foreign threads, which do not belong to the pool: the cost of calls, of submitted jobs, and of waiting for them.

use std::{hint::black_box, sync::Arc, thread};

use anabranch_par::{Job, ThreadPool, foreign};
use crossbeam_queue::ArrayQueue;

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{Program, TBB_LOOPS},
    },
    row::Row,
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower("foreign/join-and-leave", "ns", "a foreign thread joins and leaves", alone)
            .bar(100.0)
            .better(40.0)
            .quoted("SBCL", 2780.0)
            .quoted("PyO3", 5740.0)
            .quoted("JNI", 8040.0),
        Row::lower(
            "foreign/callback-attached",
            "ns",
            "an empty call by an attached foreign thread",
            attached,
        )
        .bar(5.0)
        .better(2.5)
        .quoted("CPython ctypes", 136.0)
        .quoted("Go cgo", 56.0)
        .quoted("JNI", 54.0),
        Row::lower("foreign/submit", "ns", "an empty job submitted by a foreign thread", submitted)
            .bar(60.0)
            .better(25.0),
        Row::lower(
            "foreign/run-and-wait",
            "ns",
            "an empty job submitted by a foreign thread, and waited for",
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
    let pool = ThreadPool::new(context.threads)?;
    let visit = || {
        let _attached = foreign::attach();
        load(context).try_time(|| pool.call(|| black_box(())))
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

fn waited_for(context: &Context) -> Result<Outcome, Failure> {
    let pool = ThreadPool::new(context.threads)?;
    let rayon = rayon_pool(context.threads)?;
    // Fewer operations for rayon, which takes microseconds for each.
    let few = Load::back_to_back(context.pick(10, 2), context.pick(200, 10));
    let ours = || pool.spawn(|| black_box(())).join();
    Contest::ours(|| Ok(load(context).try_time(ours).map_err(|panic| panic.to_string())?))
        .peer("rayon install", || {
            Ok(few.time(|| {
                rayon.install(|| {
                    black_box(0);
                })
            }))
        })
        .peer("rayon scope", || {
            Ok(few.time(|| {
                rayon.in_place_scope(|scope| {
                    scope.spawn(|_| {
                        black_box(0);
                    })
                })
            }))
        })
        .peer_if(TBB_LOOPS.start(), "TBB run_and_wait", |program: &mut Program| {
            program.time("run-and-wait", 1, context.threads, load(context))
        })
        .run(context, rounds(context))
}
