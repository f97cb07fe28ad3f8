//! Symbolic values: what an operand gives, and what operations make of it.

use super::tape::Tape;
use crate::{
    error::RecordError,
    number::{Float, Kind, Number, Signed},
    operation::{Along, Binary, Compare, Edge, Id, Load, Unary, What},
};
use std::{fmt, marker::PhantomData, ops, panic::Location};

/// A number that a kernel computes at each point. The closure that is recorded sees no number, but this name
/// of one.
///
/// Values of one type have the operators of numbers, also with a literal on either side. `if value < other`
/// does not compile, because the closure runs once and not at each point: [`lt`](Value::lt) compares, and
/// [`select`](Mask::select) takes one of two values.
///
/// A value belongs to its recording: using it in another one panics.
///
/// Integers wrap around. A division by zero gives the dividend, and its remainder is 0. A shift is by the
/// count modulo the number of bits.
pub struct Value<'t, T> {
    tape: &'t Tape,
    id: Id,
    number: PhantomData<T>,
}

/// The result of a comparison at each point.
pub type Mask<'t> = Value<'t, bool>;

impl<T> Clone for Value<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Value<'_, T> {}

impl<T> fmt::Debug for Value<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.id)
    }
}

/// A value, or a literal of the same type.
pub trait IntoValue<'t, T> {
    /// The value, on this tape.
    #[doc(hidden)]
    fn into_value(self, tape: &'t Tape) -> Value<'t, T>;
}

impl<'t, T> IntoValue<'t, T> for Value<'t, T> {
    fn into_value(self, tape: &'t Tape) -> Value<'t, T> {
        assert!(std::ptr::eq(self.tape, tape), "a value of one recording is used in another one");
        self
    }
}

impl<'t, T: Number> IntoValue<'t, T> for T {
    fn into_value(self, tape: &'t Tape) -> Value<'t, T> {
        tape.literal(self)
    }
}

/// The largest offset along a dimension. No sum of it and a coordinate overflows.
const FARTHEST: usize = isize::MAX as usize / 4;

/// What a load gives outside the buffer.
pub(crate) enum Outside<T> {
    Nothing,
    Clamped,
    Periodic,
    Value(T),
}

/// The operations on a tape, as values.
impl Tape {
    /// Adds an operation, unless it is there already.
    pub(crate) fn record<T>(&self, what: What, kind: Kind) -> Value<'_, T> {
        Value::new(self, self.add(what, kind))
    }

    /// Adds a literal. Its value is not part of the program, so that another value needs no new one.
    pub(crate) fn literal<T: Number>(&self, value: T) -> Value<'_, T> {
        Value::new(self, self.add_literal(value.scalar()))
    }

    /// Adds a load. Where the kernel asks twice for an element, it is loaded once, unless a literal stands
    /// for the elements outside.
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
        let load = Load { operand, kind: T::KIND, along: padded, edge };
        Value::new(self, self.add_load(load, Location::caller()))
    }

    /// Adds the coordinate of the point along a dimension.
    #[track_caller]
    pub(crate) fn index(&self, dimension: usize) -> Value<'_, u32> {
        self.record(What::Index(self.dimension(dimension)), Kind::U32)
    }

    /// The number of the replay.
    pub(crate) fn replay(&self) -> Value<'_, u32> {
        self.record(What::Parameter(self.replay_parameter()), Kind::U32)
    }

    /// The counter of a fold.
    pub(crate) fn counter(&self, fold: u32) -> Value<'_, u32> {
        Value::new(self, self.counter_id(fold))
    }
}

impl<'t, T> Value<'t, T> {
    pub(crate) fn new(tape: &'t Tape, id: Id) -> Self {
        Self { tape, id, number: PhantomData }
    }

    pub(crate) fn id(self) -> Id {
        self.id
    }

    fn compare(self, what: Compare, other: Self) -> Mask<'t> {
        self.tape.record(What::Compare(what, self.id, other.id), Kind::Bool)
    }
}

impl<'t, T: Number> Value<'t, T> {
    fn unary(self, what: Unary) -> Self {
        self.tape.record(What::Unary(what, self.id), T::KIND)
    }

    fn binary(self, what: Binary, other: impl IntoValue<'t, T>) -> Self {
        let other = other.into_value(self.tape);
        self.tape.record(What::Binary(what, self.id, other.id), T::KIND)
    }

    /// A literal, as a value of the same type: for closures that begin with a number, such as a sum.
    pub fn literal(self, value: T) -> Self {
        self.tape.literal(value)
    }

    /// The smaller of two values. If one is NaN, the result is the other one; of two zeros it is the first.
    pub fn min(self, other: impl IntoValue<'t, T>) -> Self {
        self.binary(Binary::Min, other)
    }

    /// The larger of two values. If one is NaN, the result is the other one; of two zeros it is the first.
    pub fn max(self, other: impl IntoValue<'t, T>) -> Self {
        self.binary(Binary::Max, other)
    }

    /// The product of `times` copies, in `O(log times)` multiplications; 1 if there are none.
    pub fn powi(self, times: u32) -> Self
    where
        T: From<bool>,
    {
        let (mut result, mut square, mut rest) = (None::<Self>, self, times);
        while rest > 0 {
            if rest % 2 == 1 {
                result = Some(result.map_or(square, |result| result.binary(Binary::Mul, square)));
            }
            rest /= 2;
            if rest > 0 {
                square = square.binary(Binary::Mul, square);
            }
        }
        result.unwrap_or_else(|| self.literal(T::from(true)))
    }

    /// The value as another type of number, as Rust's `as` converts it: floats are cut towards zero and
    /// limited to the range of the integer, and NaN becomes 0.
    pub fn convert<U: Number>(self) -> Value<'t, U> {
        if T::KIND == U::KIND {
            return Value::new(self.tape, self.id);
        }
        self.tape.record(What::Convert(self.id), U::KIND)
    }

    /// Whether this value is less than another one.
    pub fn lt(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        self.compare(Compare::Lt, other.into_value(self.tape))
    }

    /// Whether this value is less than another one or equal to it.
    pub fn le(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        self.compare(Compare::Le, other.into_value(self.tape))
    }

    /// Whether this value is greater than another one.
    pub fn gt(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        other.into_value(self.tape).compare(Compare::Lt, self)
    }

    /// Whether this value is greater than another one or equal to it.
    pub fn ge(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        other.into_value(self.tape).compare(Compare::Le, self)
    }

    /// Whether two values are equal.
    pub fn equals(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        self.compare(Compare::Eq, other.into_value(self.tape))
    }

    /// Whether two values differ.
    pub fn differs(self, other: impl IntoValue<'t, T>) -> Mask<'t> {
        self.compare(Compare::Ne, other.into_value(self.tape))
    }
}

impl<T: Signed> Value<'_, T> {
    /// The value without its sign. Of the least integer it is that integer.
    pub fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }
}

macro_rules! functions {
    ($($name:ident $unary:ident $about:literal),*) => {
        impl<'t, T: Float> Value<'t, T> {
            $(
                #[doc = $about]
                pub fn $name(self) -> Self {
                    self.unary(Unary::$unary)
                }
            )*

            /// The value to the power of another one.
            pub fn powf(self, exponent: impl IntoValue<'t, T>) -> Self {
                self.binary(Binary::Pow, exponent)
            }

            /// The angle of the point (`x`, this value), in radians.
            pub fn atan2(self, x: impl IntoValue<'t, T>) -> Self {
                self.binary(Binary::Atan2, x)
            }
        }
    };
}

functions!(
    sqrt Sqrt "The square root.",
    floor Floor "The largest whole number that is not greater.",
    ceil Ceil "The smallest whole number that is not less.",
    round_ties_even Round "The nearest whole number; of two, the even one.",
    trunc Trunc "The whole part.",
    exp Exp "The exponential function.",
    ln Ln "The natural logarithm.",
    sin Sin "The sine of an angle in radians.",
    cos Cos "The cosine of an angle in radians.",
    tan Tan "The tangent of an angle in radians.",
    tanh Tanh "The hyperbolic tangent."
);

impl<'t> Mask<'t> {
    /// `then` where the mask is true, and `otherwise` elsewhere. Both are computed everywhere.
    pub fn select<T: Number>(
        self,
        then: impl IntoValue<'t, T>,
        otherwise: impl IntoValue<'t, T>,
    ) -> Value<'t, T> {
        let (then, otherwise) = (then.into_value(self.tape), otherwise.into_value(self.tape));
        self.tape.record(What::Select(self.id, then.id, otherwise.id), T::KIND)
    }
}

impl<'t> ops::Not for Mask<'t> {
    type Output = Self;

    fn not(self) -> Self {
        self.tape.record(What::Unary(Unary::Not, self.id), Kind::Bool)
    }
}

macro_rules! mask_operators {
    ($($trait:ident $method:ident $what:ident),*) => {
        $(
            impl<'t> ops::$trait for Mask<'t> {
                type Output = Self;

                fn $method(self, other: Self) -> Self {
                    self.compare(Compare::$what, other.into_value(self.tape))
                }
            }
        )*
    };
}

mask_operators!(BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor);

impl<T: Signed> ops::Neg for Value<'_, T> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Unary::Neg)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident),* for $($number:ident)*) => {
        operators!(@ [$($number)*] $($trait $method $assign $assign_method),*);
    };
    (@ $numbers:tt $($trait:ident $method:ident $assign:ident $assign_method:ident),*) => {
        $(operators!(@@ $numbers $trait $method $assign $assign_method);)*
    };
    (@@ [$($number:ident)*] $trait:ident $method:ident $assign:ident $assign_method:ident) => {
        $(
            impl<'t> ops::$trait for Value<'t, $number> {
                type Output = Self;

                fn $method(self, other: Self) -> Self {
                    self.binary(Binary::$trait, other)
                }
            }

            impl<'t> ops::$trait<$number> for Value<'t, $number> {
                type Output = Self;

                fn $method(self, other: $number) -> Self {
                    self.binary(Binary::$trait, other)
                }
            }

            impl<'t> ops::$trait<Value<'t, $number>> for $number {
                type Output = Value<'t, $number>;

                fn $method(self, other: Value<'t, $number>) -> Self::Output {
                    other.literal(self).binary(Binary::$trait, other)
                }
            }

            impl<'t> ops::$assign for Value<'t, $number> {
                fn $assign_method(&mut self, other: Self) {
                    *self = self.binary(Binary::$trait, other);
                }
            }

            impl<'t> ops::$assign<$number> for Value<'t, $number> {
                fn $assign_method(&mut self, other: $number) {
                    *self = self.binary(Binary::$trait, other);
                }
            }
        )*
    };
}

operators!(
    Add add AddAssign add_assign,
    Sub sub SubAssign sub_assign,
    Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign,
    Rem rem RemAssign rem_assign
    for f32 f64 i32 u32 i64 u64
);

operators!(
    BitAnd bitand BitAndAssign bitand_assign,
    BitOr bitor BitOrAssign bitor_assign,
    BitXor bitxor BitXorAssign bitxor_assign,
    Shl shl ShlAssign shl_assign,
    Shr shr ShrAssign shr_assign
    for i32 u32 i64 u64
);

macro_rules! complements {
    ($($number:ident)*) => {
        $(
            impl ops::Not for Value<'_, $number> {
                type Output = Self;

                fn not(self) -> Self {
                    self.unary(Unary::Not)
                }
            }
        )*
    };
}

complements!(i32 u32 i64 u64);
