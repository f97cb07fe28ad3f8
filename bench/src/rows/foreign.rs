//! Threads that are not the pool's: what it costs them to call, to hand over work, and to wait for it.

use std::hint::black_box;

use crossbeam_queue::ArrayQueue;

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::program::{Program, TBB_LOOPS},
    row::Row,
};

/// Our side of a benchmark: prepares, for so many threads, the operation that the calling thread repeats.
pub type Ours = fn(threads: usize) -> Result<Box<dyn FnMut()>, Failure>;

/// Our sides of all of them.
#[derive(Clone, Copy)]
pub struct Sides {
    /// Joins a pool that the thread has not to do with, and leaves it.
    pub join_and_leave: Ours,
    /// Calls an empty function in a pool that the thread has joined.
    pub callback_attached: Ours,
    /// Hands over a job of 16 bytes; this is all that is timed.
    pub submit: Ours,
    /// Runs an empty job, which may be on the calling thread, and waits for it.
    pub run_and_wait: Ours,
}

/// The rows, with these as ours.
pub fn rows(sides: Sides) -> Vec<Row> {
    let Sides { join_and_leave, callback_attached, submit, run_and_wait } = sides;
    vec![
        Row::lower("foreign/join-and-leave", "ns", "a foreign thread joins, and leaves", move |context| {
            alone(context, join_and_leave)
        })
        .bar(100.0)
        .better(40.0)
        .quoted("SBCL", 2780.0)
        .quoted("PyO3", 5740.0)
        .quoted("JNI", 8040.0),
        Row::lower(
            "foreign/callback-attached",
            "ns",
            "an empty call by a foreign thread that has joined",
            move |context| attached(context, callback_attached),
        )
        .bar(5.0)
        .better(2.5)
        .quoted("CPython ctypes", 136.0)
        .quoted("Go cgo", 56.0)
        .quoted("JNI", 54.0),
        Row::lower("foreign/submit", "ns", "an empty job handed over by a foreign thread", move |context| {
            submitted(context, submit)
        })
        .bar(60.0)
        .better(25.0),
        Row::lower(
            "foreign/run-and-wait",
            "ns",
            "an empty job of a foreign thread, which waits for it",
            move |context| waited_for(context, run_and_wait),
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

fn alone(context: &Context, ours: Ours) -> Result<Outcome, Failure> {
    let mut ours = ours(context.threads)?;
    Contest::ours(|| Ok(load(context).time(&mut ours))).run(rounds(context))
}

fn attached(context: &Context, ours: Ours) -> Result<Outcome, Failure> {
    let mut ours = ours(context.threads)?;
    Contest::ours(|| Ok(load(context).time(&mut ours)))
        .peer_if(TBB_LOOPS.start(), "TBB arena.execute", |program: &mut Program| {
            program.time("arena-execute", 1, context.threads, load(context))
        })
        .run(rounds(context))
}

/// Each sample hands over few jobs, so that no queue grows beyond what a program would let it.
fn submitted(context: &Context, ours: Ours) -> Result<Outcome, Failure> {
    let load = Load::back_to_back(context.pick(100, 2), 500);
    let mut ours = ours(context.threads)?;
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(context.threads).build()?;
    Contest::ours(|| Ok(load.time(&mut ours)))
        .peer("rayon spawn", || {
            Ok(load.time(|| {
                rayon.spawn(|| {
                    black_box(0);
                })
            }))
        })
        // A floor: nobody is told that there is something in the queue.
        .peer("ArrayQueue push", || {
            let queue = ArrayQueue::<[usize; 2]>::new(load.batch * (load.samples + 1));
            load.try_time(|| queue.push([1, 2])).map_err(|_| "the queue is full".into())
        })
        .run(rounds(context))
}

fn waited_for(context: &Context, ours: Ours) -> Result<Outcome, Failure> {
    let mut ours = ours(context.threads)?;
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(context.threads).build()?;
    // An operation takes rayon's threads microseconds.
    let few = Load::back_to_back(context.pick(10, 2), context.pick(200, 10));
    Contest::ours(|| Ok(load(context).time(&mut ours)))
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
        .run(rounds(context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_measured() {
        let nothing: Ours = |_| {
            Ok(Box::new(|| {
                black_box(0);
            }))
        };
        let sides = Sides {
            join_and_leave: nothing,
            callback_attached: nothing,
            submit: nothing,
            run_and_wait: nothing,
        };
        for row in rows(sides) {
            let outcome = row.measure(&Context { threads: 2, smoke: true });
            assert!(outcome.is_ok_and(|outcome| outcome.ours.min() >= 0.0), "{}", row.name);
        }
    }
}
