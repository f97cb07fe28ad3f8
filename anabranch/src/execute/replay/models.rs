//! Models of replays. The values of the units are cells that loom watches: it reports a unit that reads while
//! another one may still write. A thread that sleeps for ever is a deadlock, which loom reports, too.

use super::{End, Part, Parts, Plan, PlannedUnit, Run};
use anabranch_graph::repeat::UnitOrder;
use loom::{cell::UnsafeCell, thread};
use std::{ops::ControlFlow, sync::Arc};

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // With three, a model takes some minutes.
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(f);
}

/// Two kernels of two chunks, in two strands. Each chunk reads both values of one kernel and writes its own
/// of the other.
fn stencil() -> &'static Plan {
    let both = |first| vec![first, first + 1];
    let before = |within, across| UnitOrder { within, across };
    let first = || before(vec![], both(2));
    let second = || before(both(0), vec![]);
    plan(&[first(), first(), second(), second()])
}

/// One kernel of two chunks, in two strands, one after the other. Each reads what the other has written.
fn ping_pong() -> &'static Plan {
    plan(&[UnitOrder { within: vec![], across: vec![1] }, UnitOrder { within: vec![0], across: vec![] }])
}

fn plan(orders: &[UnitOrder]) -> &'static Plan {
    let unit = |unit: usize| PlannedUnit { task: unit / 2, part: Part::Chunk(unit % 2), chunks: 2 };
    let units: Vec<_> = (0..orders.len()).map(unit).collect();
    Box::leak(Box::new(Plan::new(&units, orders, 2)))
}

struct Values([[UnsafeCell<u64>; 2]; 2]);

// SAFETY: the order of the units keeps the threads apart, which loom checks.
unsafe impl Sync for Values {}
// SAFETY: as above.
unsafe impl Send for Values {}

impl Values {
    fn new() -> Self {
        Self([[1, 2], [0, 0]].map(|values| values.map(UnsafeCell::new)))
    }

    fn get(&self, kernel: usize, chunk: usize) -> u64 {
        // SAFETY: loom checks that no other thread writes it.
        self.0[kernel][chunk].with(|value| unsafe { *value })
    }

    /// Sets a value to the sum of what `reads` has.
    fn set(&self, (kernel, chunk): (usize, usize), reads: &[(usize, usize)]) {
        let sum = reads.iter().map(|&(kernel, chunk)| self.get(kernel, chunk)).sum::<u64>() + 1;
        // SAFETY: loom checks that no other thread uses it.
        self.0[kernel][chunk].with_mut(|value| unsafe { *value = sum });
    }
}

/// The first two values after some replays, by two threads that begin with these strands.
fn replayed(
    plan: &'static Plan,
    replays: u64,
    own: [usize; 2],
    execute: impl Fn(&Values, usize, usize) + Send + Sync + 'static,
) -> [u64; 2] {
    let values = Arc::new(Values::new());
    let of_run = Arc::clone(&values);
    let execute = move |task: usize, parts: &Parts, _: u64| {
        let Parts::Chunks(chunks) = parts else { unreachable!("no task has a reduction") };
        chunks.clone().for_each(|chunk| execute(&of_run, task, chunk));
        Ok::<_, ()>(ControlFlow::Continue(()))
    };
    let run = Arc::new(Run::new(plan, replays, execute, |_| None));
    let other = Arc::clone(&run);
    let other = thread::spawn(move || other.take_part(own[1]));
    run.take_part(own[0]);
    other.join().unwrap();
    [values.get(0, 0), values.get(0, 1)]
}

fn smooth(values: &Values, kernel: usize, chunk: usize) {
    values.set((1 - kernel, chunk), &[(kernel, 0), (kernel, 1)]);
}

#[test]
fn two_threads_keep_the_order_of_the_units() {
    let plan = stencil();
    // From 1 and 2 to 4 and 4.
    model(move || assert_eq!(replayed(plan, 1, [0, 1], smooth), [9, 9]));
}

#[test]
fn two_threads_that_begin_with_one_strand_share_the_work() {
    let plan = stencil();
    model(move || assert_eq!(replayed(plan, 1, [0, 0], smooth), [9, 9]));
}

/// A unit fails while the other thread may be anywhere. The run ends, with this failure, and no unit that
/// comes after it has run.
#[test]
fn a_failure_ends_the_run_on_both_threads() {
    let plan = ping_pong();
    model(move || {
        let values = Arc::new(Values::new());
        let of_run = Arc::clone(&values);
        let execute = move |_: usize, parts: &Parts, replay: u64| {
            let Parts::Chunks(chunks) = parts else { unreachable!("no task has a reduction") };
            for chunk in chunks.clone() {
                if (replay, chunk) == (0, 1) {
                    return Err("broken");
                }
                of_run.set((0, chunk), &[(0, 1 - chunk)]);
            }
            Ok(ControlFlow::Continue(()))
        };
        let run = Arc::new(Run::new(plan, 2, execute, |_| None));
        let other = Arc::clone(&run);
        let other = thread::spawn(move || other.take_part(1));
        run.take_part(0);
        other.join().unwrap();
        let run = Arc::into_inner(run).expect("the other thread has ended");
        assert!(matches!(run.into_end(), Some(End::Failed { replay: 0, why: "broken", .. })));
        // The second unit of the first replay has failed, so the second replay has not begun.
        assert_eq!([values.get(0, 0), values.get(0, 1)], [3, 2]);
    });
}

#[test]
fn two_threads_keep_the_order_of_two_replays() {
    let plan = ping_pong();
    let add = |values: &Values, _: usize, chunk: usize| values.set((0, chunk), &[(0, 1 - chunk)]);
    // 3 and 4, then 5 and 6.
    model(move || assert_eq!(replayed(plan, 2, [0, 1], add), [5, 6]));
}
