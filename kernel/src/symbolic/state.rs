//! Folds, and their state as the closure sees it.

use super::{
    coordinate::Coordinate,
    tape::Tape,
    value::{IntoValue as _, Value},
};
use crate::{
    number::{Kind, Number},
    operation::Id,
};
use std::{ops, panic::Location};

/// What a [fold](crate::Output::fold) begins with: a literal, a value, or a tuple of up to four of these, of
/// any types.
#[diagnostic::on_unimplemented(
    message = "a fold cannot begin with `{Self}`",
    label = "no state of a fold",
    note = "a fold begins with a number, with a value of the kernel, or with a tuple of up to four of these"
)]
pub trait FoldState<'t> {
    /// What the closure gets and returns: a value, or a tuple of values.
    type Values: FoldValues<'t>;

    /// The values, on this tape.
    #[doc(hidden)]
    fn into_values(self, tape: &'t Tape) -> Self::Values;
}

/// The state of a fold in one iteration: a value, or a tuple of values.
pub trait FoldValues<'t>: Copy {
    /// The operations and their types.
    #[doc(hidden)]
    fn push_ids(self, tape: &'t Tape, to: &mut Vec<(Id, Kind)>);

    /// The values that are the results of the next operations.
    #[doc(hidden)]
    fn of_ids(tape: &'t Tape, ids: &mut dyn Iterator<Item = Id>) -> Self;
}

impl Tape {
    /// Adds a fold: see [`Output::fold`](crate::Output::fold).
    #[track_caller]
    pub(crate) fn fold<'t, S: FoldState<'t>>(
        &'t self,
        iterations: ops::Range<usize>,
        first: S,
        iteration: impl FnOnce(S::Values, Coordinate<'t>) -> S::Values,
    ) -> S::Values {
        let at = Location::caller();
        let range = [iterations.start, iterations.end].map(|number| self.count(number, at));
        let ids = |values: S::Values| {
            let mut ids = Vec::new();
            values.push_ids(self, &mut ids);
            ids
        };
        let firsts = ids(first.into_values(self));
        let (fold, now) = self.open_fold(range, &firsts, at);
        let now = S::Values::of_ids(self, &mut now.into_iter());
        let next = ids(iteration(now, Coordinate::of_fold(self, fold)));
        let results = self.close_fold(fold, &next);
        S::Values::of_ids(self, &mut results.into_iter())
    }
}

impl<'t, T: Number> FoldState<'t> for T {
    type Values = Value<'t, T>;

    fn into_values(self, tape: &'t Tape) -> Self::Values {
        self.into_value(tape)
    }
}

impl<'t, T: Number> FoldState<'t> for Value<'t, T> {
    type Values = Self;

    fn into_values(self, _: &'t Tape) -> Self::Values {
        self
    }
}

impl<'t, T: Number> FoldValues<'t> for Value<'t, T> {
    fn push_ids(self, tape: &'t Tape, to: &mut Vec<(Id, Kind)>) {
        to.push((self.into_value(tape).id(), T::KIND));
    }

    fn of_ids(tape: &'t Tape, ids: &mut dyn Iterator<Item = Id>) -> Self {
        Self::new(tape, ids.next().expect("a fold has a result for each value of its state"))
    }
}

macro_rules! tuples {
    ($($($state:ident $i:tt)*;)*) => {
        $(
            impl<'t, $($state: FoldState<'t>),*> FoldState<'t> for ($($state,)*) {
                type Values = ($($state::Values,)*);

                fn into_values(self, tape: &'t Tape) -> Self::Values {
                    ($(self.$i.into_values(tape),)*)
                }
            }

            impl<'t, $($state: FoldValues<'t>),*> FoldValues<'t> for ($($state,)*) {
                fn push_ids(self, tape: &'t Tape, to: &mut Vec<(Id, Kind)>) {
                    $(self.$i.push_ids(tape, to);)*
                }

                fn of_ids(tape: &'t Tape, ids: &mut dyn Iterator<Item = Id>) -> Self {
                    ($($state::of_ids(tape, ids),)*)
                }
            }
        )*
    };
}

tuples! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
}
