//! The tape, on which a closure leaves its operations.

use crate::{
    coordinate::Coordinate,
    error::RecordError,
    fold::{Fold, State},
    number::{Kind, Number, Scalar},
    operand::{Input, InputOutput, Output},
    operation::{Along, Edge, Id, Load, Operation, What},
    recording::{Body, Recording},
    reduction::{Accumulator, Operator},
    state::{FoldState, FoldValues as _},
    value::Value,
};
use rustc_hash::FxHashMap;
use std::{cell::RefCell, mem, ops, panic::Location};

/// What a kernel does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) kind: Kind,
    pub(crate) is_written: bool,
    /// How values are combined into it, if it is no array of an element for each point. It is not written then.
    pub(crate) reduction: Option<Combination>,
}

/// How values are combined into an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Combination {
    pub(crate) operator: Operator,
    pub(crate) includes_current: bool,
}

/// Memory for more operations than this is not kept, because each later tape would have to clear a large map.
const MOST_SPARE: usize = 256;

/// The largest offset along a dimension. No sum of it and a coordinate overflows.
const FARTHEST: usize = isize::MAX as usize / 4;

thread_local! {
    /// What the last tape and the last recording of this thread have left, without elements: the next tape uses their memory.
    static SPARE: RefCell<Inner> = RefCell::default();
}

/// Records the operations of one kernel. Its values borrow it. A value of another tape panics where it is used.
pub struct Tape {
    dimensions: usize,
    inner: RefCell<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) operations: Vec<Operation>,
    /// The numbers of operations that are on the tape: a second operation with the same inputs is the same one.
    known: FxHashMap<Operation, Id>,
    pub(crate) parameters: Vec<Scalar>,
    pub(crate) folds: Vec<Fold>,
    /// The fold that each operation belongs to.
    pub(crate) scopes: Vec<Option<u32>>,
    /// Where the program asks for each fold.
    folded: Vec<&'static Location<'static>>,
    /// The folds whose closures run now.
    open: Vec<u32>,
    pub(crate) loads: Vec<Load>,
    /// Where the program asks for each load.
    pub(crate) asked: Vec<&'static Location<'static>>,
    pub(crate) operands: Vec<Operand>,
    /// What each operand is set to, and where.
    pub(crate) stores: Vec<Option<(Id, &'static Location<'static>)>>,
    error: Option<RecordError>,
}

impl Tape {
    /// An empty tape for a kernel over an index space of this many dimensions, up to 3.
    ///
    /// # Panics
    /// If there are more.
    pub fn new(dimensions: usize) -> Self {
        assert!(dimensions <= 3, "{dimensions} dimensions: a recorded kernel has up to 3");
        // A thread that ends may have nothing spare any more.
        let mut inner = SPARE.try_with(RefCell::take).unwrap_or_default();
        inner.operations.reserve(32);
        inner.scopes.reserve(32);
        inner.loads.reserve(16);
        inner.asked.reserve(16);
        Self { dimensions, inner: RefCell::new(inner) }
    }

    /// The next operand, which the kernel reads. It has as many dimensions as the index space.
    pub fn input<T: Number, const D: usize>(&self) -> Input<'_, T, D> {
        self.input_of_rank()
    }

    /// The next operand, which the kernel reads. It has `D` dimensions, up to 3, and the index space has `K`.
    pub fn input_of_rank<T: Number, const D: usize, const K: usize>(&self) -> Input<'_, T, D, K> {
        assert!(D <= 3, "{D} dimensions: an operand of a recorded kernel has up to 3");
        Input::new(self, self.operand(T::KIND, false, None))
    }

    /// The next operand, which the kernel writes.
    pub fn output<T: Number, const D: usize>(&self) -> Output<'_, T, D> {
        Output::new(self, self.operand(T::KIND, true, None))
    }

    /// The next operand, which the kernel reads and then writes at each point.
    pub fn input_output<T: Number, const D: usize>(&self) -> InputOutput<'_, T, D> {
        InputOutput::new(self, self.operand(T::KIND, true, None))
    }

    /// The next operand, a single number that the values of all points are combined into. `includes_current` says whether the number that
    /// the operand has before the kernel is combined, too.
    ///
    /// # Panics
    /// If the operator does not combine such numbers.
    pub fn accumulator<T: Number>(&self, operator: Operator, includes_current: bool) -> Accumulator<'_, T> {
        assert!(operator.is_for(T::KIND), "`{operator:?}` does not combine numbers of the type {}", T::KIND);
        let combination = Combination { operator, includes_current };
        Accumulator::new(self, self.operand(T::KIND, false, Some(combination)), operator)
    }

    fn operand(&self, kind: Kind, is_written: bool, reduction: Option<Combination>) -> usize {
        let mut inner = self.inner.borrow_mut();
        inner.operands.push(Operand { kind, is_written, reduction });
        inner.stores.push(None);
        inner.operands.len() - 1
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The first mistake of the closure: see [`RecordError`].
    pub fn finish(self) -> Result<Recording, RecordError> {
        let mut inner = self.inner.into_inner();
        let recording = inner.check().map(|()| Recording::new(self.dimensions, &mut inner));
        inner.clear();
        keep(|spare| *spare = inner);
        recording
    }

    /// Adds an operation, unless it is there already.
    pub(crate) fn record<T>(&self, what: What, kind: Kind) -> Value<'_, T> {
        let operation = Operation { what, kind };
        let mut inner = self.inner.borrow_mut();
        let next = inner.operations.len() as Id;
        let id = *inner.known.entry(operation).or_insert(next);
        if id == next {
            let scope = inner.scope(what);
            inner.push(operation, scope);
        }
        inner.expect_inside(id);
        Value::new(self, id)
    }

    /// Adds a literal. Its value is not part of the program, so that another value needs no new one.
    pub(crate) fn literal<T: Number>(&self, value: T) -> Value<'_, T> {
        let parameter = self.parameter(value.scalar());
        self.record(What::Parameter(parameter), T::KIND)
    }

    fn parameter(&self, value: Scalar) -> u32 {
        let mut inner = self.inner.borrow_mut();
        inner.parameters.push(value);
        inner.parameters.len() as u32 - 1
    }

    /// Adds a load. Where the kernel asks twice for an element, it is loaded once, unless a literal stands for the elements outside.
    #[track_caller]
    pub(crate) fn load<T: Number, const D: usize>(
        &self,
        operand: usize,
        along: [Along; D],
        outside: Outside<T>,
    ) -> Value<'_, T> {
        let mut padded = [Along::default(); 3];
        padded[3 - D..].copy_from_slice(&along);
        if padded.iter().any(|along| along.offset.unsigned_abs() > FARTHEST) {
            let offset = padded.map(|along| along.offset);
            self.fail(RecordError::OffsetTooLarge { offset, at: Location::caller() });
        }
        let edge = match outside {
            Outside::Nothing => Edge::Inside,
            Outside::Clamped => Edge::Clamped,
            Outside::Periodic => Edge::Periodic,
            Outside::Value(value) => Edge::Parameter(self.parameter(value.scalar())),
        };
        let (load, at) = (Load { operand, kind: T::KIND, along: padded, edge }, Location::caller());
        let number = {
            let mut inner = self.inner.borrow_mut();
            inner.loads.iter().position(|&known| known == load).unwrap_or_else(|| {
                inner.loads.push(load);
                inner.asked.push(at);
                inner.loads.len() - 1
            })
        };
        self.record(What::Load(number as u32), T::KIND)
    }

    /// Adds the coordinate of the point along a dimension.
    #[track_caller]
    pub(crate) fn index(&self, dimension: usize) -> Value<'_, u32> {
        self.record(What::Index(self.dimension(dimension)), Kind::U32)
    }

    /// The coordinate of the point along a dimension, for elements of operands.
    #[track_caller]
    pub(crate) fn point(&self, dimension: usize) -> Coordinate<'_> {
        Coordinate::of_point(self, self.dimension(dimension))
    }

    /// A dimension, padded at the front.
    #[track_caller]
    fn dimension(&self, dimension: usize) -> usize {
        let dimensions = self.dimensions;
        if dimension >= dimensions {
            self.fail(RecordError::NoSuchDimension { dimension, dimensions, at: Location::caller() });
        }
        (3 - dimensions + dimension).min(2)
    }

    /// Adds a literal that counts elements. The program asks for it at this line.
    pub(crate) fn count(&self, number: usize, at: &'static Location<'static>) -> u32 {
        let count = u32::try_from(number).unwrap_or_else(|_| {
            self.fail(RecordError::NumberTooLarge { number, at });
            0
        });
        self.parameter(count.scalar())
    }

    #[track_caller]
    pub(crate) fn store(&self, operand: usize, value: Id) {
        let second = Location::caller();
        let mut inner = self.inner.borrow_mut();
        if let Some(fold) = inner.scopes[value as usize] {
            inner.is_outside(fold);
        }
        let before = inner.stores[operand].replace((value, second));
        drop(inner);
        if let Some((_, first)) = before {
            let is_reduction = self.inner.borrow().operands[operand].reduction.is_some();
            self.fail(match is_reduction {
                true => RecordError::CombinedTwice { operand, first, second },
                false => RecordError::SetTwice { operand, first, second },
            });
        }
    }

    /// Adds a fold: see [`Output::fold`].
    #[track_caller]
    pub(crate) fn fold<'t, S: FoldState<'t>>(
        &'t self,
        turns: ops::Range<usize>,
        first: S,
        turn: impl FnOnce(S::Values, Coordinate<'t>) -> S::Values,
    ) -> S::Values {
        let at = Location::caller();
        let range = [turns.start, turns.end].map(|number| self.count(number, at));
        let ids = |values: S::Values| {
            let mut ids = Vec::new();
            values.push_ids(self, &mut ids);
            ids
        };
        let firsts = ids(first.into_values(self));
        let (fold, now) = self.inner.borrow_mut().open(range, &firsts, at);
        let now = S::Values::of_ids(self, &mut now.into_iter());
        let next = ids(turn(now, Coordinate::of_fold(self, fold)));
        let results = self.inner.borrow_mut().close(fold, &next);
        S::Values::of_ids(self, &mut results.into_iter())
    }

    /// The counter of a fold.
    pub(crate) fn counter(&self, fold: u32) -> Value<'_, u32> {
        let inner = self.inner.borrow();
        Value::new(self, inner.folds[fold as usize].turn)
    }

    pub(crate) fn fail(&self, error: RecordError) {
        self.inner.borrow_mut().error.get_or_insert(error);
    }
}

/// Changes what the next tape of this thread uses.
pub(crate) fn keep(change: impl FnOnce(&mut Inner)) {
    // Without it, the next tape asks for memory.
    let _ = SPARE.try_with(|spare| spare.try_borrow_mut().map(|mut spare| change(&mut spare)));
}

impl Inner {
    /// Whether the kernel is right.
    fn check(&mut self) -> Result<(), RecordError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let is_missing = |&operand: &usize| {
            let Operand { is_written, reduction, .. } = self.operands[operand];
            (is_written || reduction.is_some()) && self.stores[operand].is_none()
        };
        match (0..self.operands.len()).find(is_missing) {
            Some(operand) if self.operands[operand].is_written => Err(RecordError::NeverSet { operand }),
            Some(operand) => Err(RecordError::NeverCombined { operand }),
            None => Ok(()),
        }
    }

    /// Forgets all elements, and the memory of a large kernel.
    fn clear(&mut self) {
        if self.known.capacity() > MOST_SPARE {
            *self = Self::default();
            return;
        }
        let Self {
            operations,
            known,
            parameters,
            folds,
            scopes,
            folded,
            open,
            loads,
            asked,
            operands,
            stores,
            error,
        } = self;
        operations.clear();
        known.clear();
        parameters.clear();
        folds.clear();
        scopes.clear();
        folded.clear();
        open.clear();
        loads.clear();
        asked.clear();
        operands.clear();
        stores.clear();
        *error = None;
    }

    /// Takes the memory of a recording that is not needed any more.
    pub(crate) fn reuse(
        &mut self,
        body: &mut Body,
        parameters: &mut Vec<Scalar>,
        asked: &mut Vec<&'static Location<'static>>,
    ) {
        if body.operations.capacity() > MOST_SPARE {
            return;
        }
        take_memory(&mut self.operations, &mut body.operations);
        take_memory(&mut self.loads, &mut body.loads);
        take_memory(&mut self.operands, &mut body.operands);
        take_memory(&mut self.parameters, parameters);
        take_memory(&mut self.asked, asked);
    }

    fn push(&mut self, operation: Operation, scope: Option<u32>) -> Id {
        self.operations.push(operation);
        self.scopes.push(scope);
        self.operations.len() as Id - 1
    }

    /// The fold that an operation belongs to: of those of its inputs, the innermost one, which began last.
    fn scope(&mut self, what: What) -> Option<u32> {
        if self.folds.is_empty() {
            return None;
        }
        if let What::Load(load) = what {
            let load = self.loads[load as usize];
            load.along.iter().for_each(|along| self.expect_open(along.counter));
            return load.fold();
        }
        let scopes = what.inputs().map(|input| {
            self.expect_inside(input);
            self.scopes[input as usize]
        });
        scopes.max().flatten()
    }

    /// Fails if a fold has ended.
    fn expect_open(&mut self, scope: Option<u32>) {
        if let Some(fold) = scope
            && !self.open.contains(&fold)
        {
            self.is_outside(fold);
        }
    }

    /// Fails if an operation belongs to a fold that has ended.
    fn expect_inside(&mut self, id: Id) {
        self.expect_open(self.scopes[id as usize]);
    }

    fn is_outside(&mut self, fold: u32) {
        let fold = self.folded[fold as usize];
        self.error.get_or_insert(RecordError::OutsideOfFold { fold });
    }

    /// Begins a fold. Returns its number, and the values of its state in a turn.
    fn open(
        &mut self,
        range: [u32; 2],
        firsts: &[(Id, Kind)],
        at: &'static Location<'static>,
    ) -> (u32, Vec<Id>) {
        let (fold, parent) = (self.folds.len() as u32, self.open.last().copied());
        firsts.iter().for_each(|&(first, _)| self.expect_inside(first));
        let turn = self.push(Operation { what: What::Turn(fold), kind: Kind::U32 }, Some(fold));
        let states: Vec<State> = (0..)
            .zip(firsts)
            .map(|(at, &(first, kind))| {
                let now = self.push(Operation { what: What::State(fold, at), kind }, Some(fold));
                State { kind, first, now, next: now, result: now }
            })
            .collect();
        let now = states.iter().map(|state| state.now).collect();
        self.folds.push(Fold { range, parent, turn, end: turn, states });
        self.folded.push(at);
        self.open.push(fold);
        (fold, now)
    }

    /// Ends a fold. Returns the values of its state after the last turn.
    fn close(&mut self, fold: u32, next: &[(Id, Kind)]) -> Vec<Id> {
        next.iter().for_each(|&(next, _)| self.expect_inside(next));
        self.open.pop();
        let parent = self.open.last().copied();
        let end = self.push(Operation { what: What::EndTurn(fold), kind: Kind::U32 }, Some(fold));
        let results: Vec<Id> = (0..)
            .zip(next)
            .map(|(at, &(_, kind))| self.push(Operation { what: What::Folded(fold, at), kind }, parent))
            .collect();
        let of = &mut self.folds[fold as usize];
        of.end = end;
        for (state, (&(next, _), &result)) in of.states.iter_mut().zip(next.iter().zip(&results)) {
            (state.next, state.result) = (next, result);
        }
        results
    }
}

/// What a load gives outside the buffer.
pub(crate) enum Outside<T> {
    Nothing,
    Clamped,
    Periodic,
    Value(T),
}

/// Gives the memory of a vector to another one, which is empty.
fn take_memory<T>(to: &mut Vec<T>, from: &mut Vec<T>) {
    from.clear();
    *to = mem::take(from);
}
