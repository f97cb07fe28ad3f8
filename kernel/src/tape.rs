//! The tape, on which a closure leaves its operations.

use crate::{
    error::RecordError,
    number::{Kind, Number, Scalar},
    operand::{Input, InputOutput, Output},
    operation::{Edge, Id, Load, Operation, What},
    recording::Recording,
    reduction::{Accumulator, Operator},
    value::Value,
};
use rustc_hash::FxHashMap;
use std::{cell::RefCell, panic::Location};

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

/// The largest offset along a dimension. No sum of it and a coordinate overflows.
const FARTHEST: usize = isize::MAX as usize / 4;

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
        let inner = Inner {
            operations: Vec::with_capacity(64),
            known: FxHashMap::with_capacity_and_hasher(64, Default::default()),
            ..Inner::default()
        };
        Self { dimensions, inner: RefCell::new(inner) }
    }

    /// The next operand, which the kernel reads.
    pub fn input<T: Number, const D: usize>(&self) -> Input<'_, T, D> {
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
        if let Some(error) = inner.error.take() {
            return Err(error);
        }
        let is_missing = |&operand: &usize| {
            let Operand { is_written, reduction, .. } = inner.operands[operand];
            (is_written || reduction.is_some()) && inner.stores[operand].is_none()
        };
        match (0..inner.operands.len()).find(is_missing) {
            Some(operand) if inner.operands[operand].is_written => Err(RecordError::NeverSet { operand }),
            Some(operand) => Err(RecordError::NeverCombined { operand }),
            None => Ok(Recording::new(self.dimensions, inner)),
        }
    }

    /// Adds an operation, unless it is there already.
    pub(crate) fn record<T>(&self, what: What, kind: Kind) -> Value<'_, T> {
        let operation = Operation { what, kind };
        let mut inner = self.inner.borrow_mut();
        let Inner { operations, known, .. } = &mut *inner;
        let id = *known.entry(operation).or_insert_with(|| {
            operations.push(operation);
            operations.len() as Id - 1
        });
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
        offset: [isize; D],
        outside: Outside<T>,
    ) -> Value<'_, T> {
        let mut padded = [0; 3];
        padded[3 - D..].copy_from_slice(&offset);
        if padded.iter().any(|&along| along.unsigned_abs() > FARTHEST) {
            self.fail(RecordError::OffsetTooLarge { offset: padded, at: Location::caller() });
        }
        let edge = match outside {
            Outside::Nothing => Edge::Inside,
            Outside::Clamped => Edge::Clamped,
            Outside::Periodic => Edge::Periodic,
            Outside::Value(value) => Edge::Parameter(self.parameter(value.scalar())),
        };
        let (load, at) = (Load { operand, kind: T::KIND, offset: padded, edge }, Location::caller());
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
        let dimensions = self.dimensions;
        if dimension >= dimensions {
            self.fail(RecordError::NoSuchDimension { dimension, dimensions, at: Location::caller() });
        }
        // Dimensions are padded at the front.
        self.record(What::Index((3 - dimensions + dimension).min(2)), Kind::U32)
    }

    #[track_caller]
    pub(crate) fn store(&self, operand: usize, value: Id) {
        let second = Location::caller();
        let before = self.inner.borrow_mut().stores[operand].replace((value, second));
        if let Some((_, first)) = before {
            let is_reduction = self.inner.borrow().operands[operand].reduction.is_some();
            self.fail(match is_reduction {
                true => RecordError::CombinedTwice { operand, first, second },
                false => RecordError::SetTwice { operand, first, second },
            });
        }
    }

    fn fail(&self, error: RecordError) {
        self.inner.borrow_mut().error.get_or_insert(error);
    }
}

/// What a load gives outside the buffer.
pub(crate) enum Outside<T> {
    Nothing,
    Clamped,
    Periodic,
    Value(T),
}
