//! What the operations are, for each type of number.
//!
//! The closures are inlined into loops over blocks, which the compiler turns into vector instructions. None
//! of them depends on the instructions: products and sums are rounded one by one, and where the standard
//! library leaves a result open (the smaller of two zeros, a division of integers by zero) it is chosen here.

use super::{
    argument::Argument,
    instructions::Token,
    loops::{map, zip},
    registers::{Bank, Banks},
};
use crate::{
    number::Number,
    operation::{Binary, Compare, Unary},
};

/// A comparison of numbers.
pub(super) fn compare<T: Number>(
    token: Token,
    what: Compare,
    to: &mut [bool],
    a: Argument<'_, T>,
    b: Argument<'_, T>,
) {
    match what {
        Compare::Lt => zip(token, to, a, b, |a, b| a < b),
        Compare::Le => zip(token, to, a, b, |a, b| a <= b),
        Compare::Eq => zip(token, to, a, b, |a, b| a == b),
        Compare::Ne => zip(token, to, a, b, |a, b| a != b),
        Compare::And | Compare::Or | Compare::Xor => unreachable!("`{what:?}` is for masks"),
    }
}

/// An operation on masks.
pub(super) fn combine(
    token: Token,
    what: Compare,
    to: &mut [bool],
    a: Argument<'_, bool>,
    b: Argument<'_, bool>,
) {
    match what {
        Compare::And => zip(token, to, a, b, |a, b| a & b),
        Compare::Or => zip(token, to, a, b, |a, b| a | b),
        Compare::Xor => zip(token, to, a, b, |a, b| a ^ b),
        _ => unreachable!("`{what:?}` is for numbers"),
    }
}

/// A type of number, as the registers and the operations know it.
pub(super) trait Arithmetic: Number {
    fn bank(banks: &Banks) -> &Bank<Self>;
    fn bank_mut(banks: &mut Banks) -> &mut Bank<Self>;
    fn unary(token: Token, what: Unary, to: &mut [Self], a: Argument<'_, Self>);
    fn binary(token: Token, what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>);
}

/// A conversion, as `as` does it.
pub(super) trait ConvertTo<T> {
    fn convert(self) -> T;
}

macro_rules! conversions {
    ($($from:ident)*) => {
        $(conversions!(@ $from: f32 f64 i32 u32 i64 u64);)*
    };
    (@ $from:ident: $($to:ident)*) => {
        $(
            impl ConvertTo<$to> for $from {
                #[inline(always)]
                fn convert(self) -> $to {
                    self as $to
                }
            }
        )*
    };
}

conversions!(f32 f64 i32 u32 i64 u64);

macro_rules! floats {
    ($($float:ident)*) => {
        $(
            impl Arithmetic for $float {
                #[inline(always)]
                fn bank(banks: &Banks) -> &Bank<Self> {
                    &banks.$float
                }

                #[inline(always)]
                fn bank_mut(banks: &mut Banks) -> &mut Bank<Self> {
                    &mut banks.$float
                }

                fn unary(token: Token, what: Unary, to: &mut [Self], a: Argument<'_, Self>) {
                    match what {
                        Unary::Neg => map(token, to, a, |a| -a),
                        Unary::Abs => map(token, to, a, Self::abs),
                        Unary::Sqrt => map(token, to, a, Self::sqrt),
                        Unary::Floor => map(token, to, a, Self::floor),
                        Unary::Ceil => map(token, to, a, Self::ceil),
                        Unary::Round => map(token, to, a, Self::round_ties_even),
                        Unary::Trunc => map(token, to, a, Self::trunc),
                        Unary::Exp => map(token, to, a, Self::exp),
                        Unary::Ln => map(token, to, a, Self::ln),
                        Unary::Sin => map(token, to, a, Self::sin),
                        Unary::Cos => map(token, to, a, Self::cos),
                        Unary::Tan => map(token, to, a, Self::tan),
                        Unary::Tanh => map(token, to, a, Self::tanh),
                        Unary::Not => unreachable!("`Not` is for integers"),
                    }
                }

                fn binary(token: Token, what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>) {
                    match what {
                        Binary::Div => zip(token, to, a, b, |a, b| a / b),
                        Binary::Rem => zip(token, to, a, b, |a, b| a % b),
                        Binary::Min => zip(token, to, a, b, |a, b| if b < a || a.is_nan() { b } else { a }),
                        Binary::Max => zip(token, to, a, b, |a, b| if b > a || a.is_nan() { b } else { a }),
                        Binary::Pow => zip(token, to, a, b, Self::powf),
                        Binary::Atan2 => zip(token, to, a, b, Self::atan2),
                        Binary::Add | Binary::Sub | Binary::Mul => unreachable!("`{what:?}` is in a chain"),
                        _ => unreachable!("`{what:?}` is for integers"),
                    }
                }
            }
        )*
    };
}

floats!(f32 f64);

macro_rules! integers {
    ($($integer:ident |$a:ident| $abs:expr;)*) => {
        $(
            impl Arithmetic for $integer {
                #[inline(always)]
                fn bank(banks: &Banks) -> &Bank<Self> {
                    &banks.$integer
                }

                #[inline(always)]
                fn bank_mut(banks: &mut Banks) -> &mut Bank<Self> {
                    &mut banks.$integer
                }

                fn unary(token: Token, what: Unary, to: &mut [Self], a: Argument<'_, Self>) {
                    match what {
                        Unary::Neg => map(token, to, a, Self::wrapping_neg),
                        Unary::Abs => map(token, to, a, |$a| $abs),
                        Unary::Not => map(token, to, a, |a| !a),
                        _ => unreachable!("`{what:?}` is for floats"),
                    }
                }

                fn binary(token: Token, what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>) {
                    match what {
                        Binary::Add => zip(token, to, a, b, Self::wrapping_add),
                        Binary::Sub => zip(token, to, a, b, Self::wrapping_sub),
                        Binary::Mul => zip(token, to, a, b, Self::wrapping_mul),
                        Binary::Div => zip(token, to, a, b, |a, b| if b == 0 { a } else { a.wrapping_div(b) }),
                        Binary::Rem => zip(token, to, a, b, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
                        Binary::Min => zip(token, to, a, b, Self::min),
                        Binary::Max => zip(token, to, a, b, Self::max),
                        Binary::BitAnd => zip(token, to, a, b, |a, b| a & b),
                        Binary::BitOr => zip(token, to, a, b, |a, b| a | b),
                        Binary::BitXor => zip(token, to, a, b, |a, b| a ^ b),
                        // The count modulo the number of bits: its lower bits are those of the cast.
                        Binary::Shl => zip(token, to, a, b, |a, b| a.wrapping_shl(b as u32)),
                        Binary::Shr => zip(token, to, a, b, |a, b| a.wrapping_shr(b as u32)),
                        Binary::Pow | Binary::Atan2 => unreachable!("`{what:?}` is for floats"),
                    }
                }
            }
        )*
    };
}

integers!(
    i32 |a| a.wrapping_abs();
    u32 |a| a;
    i64 |a| a.wrapping_abs();
    u64 |a| a;
);
