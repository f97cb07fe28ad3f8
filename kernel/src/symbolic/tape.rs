//! The tape, on which a closure leaves its operations.

use super::value::Value;
use crate::{
    contents::{self, Combination, Contents, Operand},
    error::RecordError,
    number::{Kind, Number, Scalar},
    operation::{Along, Edge, Id, Load, Operation, What},
    recording::Recording,
};
use std::{cell::RefCell, panic::Location};

/// The largest offset along a dimension. No sum of it and a coordinate overflows.
const FARTHEST: usize = isize::MAX as usize / 4;

/// Records the operations of one kernel. Its values borrow it. A value of another tape panics where it is used.
pub struct Tape {
    dimensions: usize,
    contents: RefCell<Contents>,
}

impl Tape {
    /// An empty tape for a kernel over an index space of this many dimensions, up to 3.
    ///
    /// # Panics
    /// If there are more.
    pub fn new(dimensions: usize) -> Self {
        assert!(dimensions <= 3, "{dimensions} dimensions: a recorded kernel has up to 3");
        let mut contents = contents::take_spare();
        contents.operations.reserve(32);
        contents.scopes.reserve(32);
        contents.loads.reserve(16);
        contents.asked.reserve(16);
        Self { dimensions, contents: RefCell::new(contents) }
    }

    /// Adds an operand. Returns its number.
    pub(super) fn operand(&self, kind: Kind, is_written: bool, reduction: Option<Combination>) -> usize {
        let mut contents = self.contents.borrow_mut();
        contents.operands.push(Operand { kind, is_written, reduction });
        contents.stores.push(None);
        contents.operands.len() - 1
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The first mistake of the closure: see [`RecordError`].
    pub fn finish(self) -> Result<Recording, RecordError> {
        let mut contents = self.contents.into_inner();
        let recording = contents.check().map(|()| Recording::new(self.dimensions, &mut contents));
        contents.clear();
        contents::keep(|spare| *spare = contents);
        recording
    }

    /// Adds an operation, unless it is there already.
    pub(crate) fn record<T>(&self, what: What, kind: Kind) -> Value<'_, T> {
        let operation = Operation { what, kind };
        let mut contents = self.contents.borrow_mut();
        let next = contents.operations.len() as Id;
        let id = *contents.known.entry(operation).or_insert(next);
        if id == next {
            let scope = contents.scope(what);
            contents.push(operation, scope);
        }
        contents.expect_inside(id);
        Value::new(self, id)
    }

    /// Adds a literal. Its value is not part of the program, so that another value needs no new one.
    pub(crate) fn literal<T: Number>(&self, value: T) -> Value<'_, T> {
        let parameter = self.parameter(value.scalar());
        self.record(What::Parameter(parameter), T::KIND)
    }

    fn parameter(&self, value: Scalar) -> u32 {
        let mut contents = self.contents.borrow_mut();
        contents.parameters.push(value);
        contents.parameters.len() as u32 - 1
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
            let mut contents = self.contents.borrow_mut();
            contents.loads.iter().position(|&known| known == load).unwrap_or_else(|| {
                contents.loads.push(load);
                contents.asked.push(at);
                contents.loads.len() - 1
            })
        };
        self.record(What::Load(number as u32), T::KIND)
    }

    /// Adds the coordinate of the point along a dimension.
    #[track_caller]
    pub(crate) fn index(&self, dimension: usize) -> Value<'_, u32> {
        self.record(What::Index(self.dimension(dimension)), Kind::U32)
    }

    /// A dimension, padded at the front.
    #[track_caller]
    pub(super) fn dimension(&self, dimension: usize) -> usize {
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
        let mut contents = self.contents.borrow_mut();
        if let Some(fold) = contents.scopes[value as usize] {
            contents.is_outside(fold);
        }
        let before = contents.stores[operand].replace((value, second));
        drop(contents);
        if let Some((_, first)) = before {
            let is_reduction = self.contents.borrow().operands[operand].reduction.is_some();
            self.fail(match is_reduction {
                true => RecordError::CombinedTwice { operand, first, second },
                false => RecordError::SetTwice { operand, first, second },
            });
        }
    }

    /// Begins a fold. Returns its number, and the values of its state in a turn.
    pub(crate) fn open_fold(
        &self,
        range: [u32; 2],
        firsts: &[(Id, Kind)],
        at: &'static Location<'static>,
    ) -> (u32, Vec<Id>) {
        self.contents.borrow_mut().open(range, firsts, at)
    }

    /// Ends a fold. Returns the values of its state after the last turn.
    pub(crate) fn close_fold(&self, fold: u32, next: &[(Id, Kind)]) -> Vec<Id> {
        self.contents.borrow_mut().close(fold, next)
    }

    /// The counter of a fold.
    pub(crate) fn counter(&self, fold: u32) -> Value<'_, u32> {
        let contents = self.contents.borrow();
        Value::new(self, contents.folds[fold as usize].turn)
    }

    pub(crate) fn fail(&self, error: RecordError) {
        self.contents.borrow_mut().error.get_or_insert(error);
    }
}

/// What a load gives outside the buffer.
pub(crate) enum Outside<T> {
    Nothing,
    Clamped,
    Periodic,
    Value(T),
}
