//! The tape, on which a closure leaves its operations. The methods that give values are in
//! [`value`](super::value).

use crate::{
    error::RecordError,
    number::{Kind, Number, Scalar},
    operation::{Edge, Id, Load, Operation, What},
    recording::Recording,
    tape_contents::{self, Combination, Operand, TapeContents},
};
use std::{cell::RefCell, panic::Location};

/// Records the operations of one kernel. Its values borrow it. A value of another tape panics where it is
/// used.
pub struct Tape {
    dimensions: usize,
    contents: RefCell<Box<TapeContents>>,
}

impl Tape {
    /// An empty tape for a kernel over an index space of this many dimensions, up to 3.
    ///
    /// # Panics
    /// If there are more.
    pub fn new(dimensions: usize) -> Self {
        assert!(dimensions <= 3, "{dimensions} dimensions: a recorded kernel has up to 3");
        let mut contents = tape_contents::take_spare();
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
        tape_contents::keep(contents);
        recording
    }

    /// Adds an operation, unless it is there already.
    pub(super) fn add(&self, what: What, kind: Kind) -> Id {
        let operation = Operation { what, kind };
        let mut contents = self.contents.borrow_mut();
        let next = contents.operations.len() as Id;
        let id = *contents.known.entry(operation).or_insert(next);
        if id == next {
            let scope = contents.scope(what);
            contents.push(operation, scope);
        }
        contents.expect_inside(id);
        id
    }

    /// Adds a load, which the program asks for at this line, unless it is there already.
    pub(super) fn add_load(&self, load: Load, at: &'static Location<'static>) -> Id {
        let mut contents = self.contents.borrow_mut();
        let known = match load.edge {
            // Its literal is a new one.
            Edge::Parameter(_) => None,
            _ => contents.loads.iter().position(|known| *known == load),
        };
        let id = known.map(|number| contents.taken[number]).unwrap_or_else(|| {
            let what = What::Load(contents.loads.len() as u32);
            contents.loads.push(load);
            contents.asked.push(at);
            let scope = contents.scope(what);
            let id = contents.push(Operation { what, kind: load.kind }, scope);
            contents.taken.push(id);
            id
        });
        contents.expect_inside(id);
        id
    }

    /// Adds a literal, which is a new one each time.
    pub(super) fn add_literal(&self, value: Scalar) -> Id {
        let mut contents = self.contents.borrow_mut();
        contents.parameters.push(value);
        let what = What::Parameter(contents.parameters.len() as u32 - 1);
        contents.push(Operation { what, kind: value.kind() }, None)
    }

    /// Adds the value of a literal. It is not part of the program, so that another value needs no new one.
    pub(super) fn parameter(&self, value: Scalar) -> u32 {
        let mut contents = self.contents.borrow_mut();
        contents.parameters.push(value);
        contents.parameters.len() as u32 - 1
    }

    /// Adds the number of the replay, unless it is there already.
    pub(super) fn replay_parameter(&self) -> u32 {
        let known = self.contents.borrow().replay;
        known.unwrap_or_else(|| {
            let number = self.parameter(Scalar::U32(0));
            self.contents.borrow_mut().replay = Some(number);
            number
        })
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

    /// Begins a fold. Returns its number, and the values of its state in an iteration.
    pub(crate) fn open_fold(
        &self,
        range: [u32; 2],
        firsts: &[(Id, Kind)],
        at: &'static Location<'static>,
    ) -> (u32, Vec<Id>) {
        self.contents.borrow_mut().open(range, firsts, at)
    }

    /// Ends a fold. Returns the values of its state after the last iteration.
    pub(crate) fn close_fold(&self, fold: u32, next: &[(Id, Kind)]) -> Vec<Id> {
        self.contents.borrow_mut().close(fold, next)
    }

    /// The counter of a fold.
    pub(super) fn counter_id(&self, fold: u32) -> Id {
        self.contents.borrow().folds[fold as usize].begin
    }

    pub(crate) fn fail(&self, error: RecordError) {
        self.contents.borrow_mut().error.get_or_insert(error);
    }
}
