//! Launches that repeat are recognised and not derived again, also if their mappers are made again each time.

mod command_program;

use anabranch_graph::{Mode, command::*};
use anabranch_grid::*;
use command_program::*;
use std::{
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Steps of a stencil on 4,096 nodes, until the commands repeat. Then it checks that 1,000 more steps have
/// the same commands and call no mapper; `calls` counts the calls.
fn check_recall(reading: impl Fn() -> Mapper, writing: impl Fn() -> Mapper, calls: impl Fn() -> usize) {
    let n = 1 << 12;
    let mut program = Program::new(1000, 4096, n, false);
    program.kernel(&[access(U, Mode::Write, writing())]);
    let mut step = |number: u64| {
        let [from, to] = if number.is_multiple_of(2) { [U, V] } else { [V, U] };
        let list = program.kernel(&[access(from, Mode::Read, reading()), access(to, Mode::Write, writing())]);
        if number.is_multiple_of(4) {
            program.launch(Work::Horizon, &[]).unwrap();
        }
        list.into_iter().map(|command| command.kind).collect::<Vec<_>>()
    };
    (0..20).for_each(|number| drop(step(number)));
    let (before, expected) = (calls(), [step(20), step(21)]);
    assert!((22..1000).all(|number| step(number) == expected[number as usize % 2]));
    assert_eq!(calls(), before);
}

#[test]
fn a_repeated_loop_calls_no_mapper() {
    let n = 1 << 12;
    let counter = Arc::new(AtomicUsize::new(0));
    let (inner, seen) = (near(1, n), counter.clone());
    let counted = Mapper::new(move |chunk| {
        seen.fetch_add(1, Relaxed);
        inner.map(chunk)
    });
    check_recall(|| counted.clone(), || points(n), || counter.load(Relaxed));
}

/// A mapper that can be compared, and counts its calls.
struct Around(usize, Arc<AtomicUsize>);

impl PartialEq for Around {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Around {}

impl Hash for Around {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl RangeMapper<1, 1> for Around {
    type Shape = OneBox<1>;

    fn map(&self, chunk: &Chunk<1>, buffer: Extent<1>) -> Region<1> {
        self.1.fetch_add(1, Relaxed);
        neighborhood([self.0]).map(chunk, buffer)
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

#[test]
fn a_repeated_loop_with_new_mappers_of_equal_values_calls_no_mapper() {
    let n = 1 << 12;
    let counter = Arc::new(AtomicUsize::new(0));
    let around = || erase(Around(1, counter.clone()), Extent([n]));
    check_recall(around, || points(n), || counter.load(Relaxed));
}

#[test]
fn a_repeated_loop_with_a_new_closure_that_captures_nothing_calls_no_mapper() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let left = || {
        Mapper::new(|chunk| {
            CALLS.fetch_add(1, Relaxed);
            line(chunk.range.min()[0].saturating_sub(1), chunk.range.max()[0])
        })
    };
    check_recall(left, || points(1 << 12), || CALLS.load(Relaxed));
}

#[test]
fn launches_with_mappers_of_other_values_are_no_repetition() {
    let n = 64;
    let mut program = Program::new(0, 2, n, false);
    program.kernel(&[access(U, Mode::Write, points(n))]);
    for step in 0..100 {
        let radius = 1 + step % 3;
        program.kernel(&[access(U, Mode::Read, near(radius, n)), access(V, Mode::Write, points(n))]);
        let [right] = program.graph.current(U).boxes()[..] else { panic!("one box") };
        assert_eq!(right.max()[0], 32 + radius.max(step.min(2) + 1));
    }
}
