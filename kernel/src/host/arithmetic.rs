//! What the operations are, for each type of number.
//!
//! All functions are inlined into loops over blocks, which the compiler turns into vector instructions. None of them depends on the
//! instructions: products and sums are rounded one by one, and where the standard library leaves a result open (the smaller of two
//! zeros, a division of integers by zero) it is chosen here.

use super::{execute::Argument, memory::Bank, memory::Banks};
use crate::{
    number::Number,
    operation::{Binary, Compare, Unary},
};

/// Computes each element of a block from those of another one.
#[inline(always)]
pub(super) fn map<A: Copy, R>(to: &mut [R], a: Argument<'_, A>, f: impl Fn(A) -> R) {
    match a {
        Argument::Block(a) => to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a)),
        Argument::Same(a) => to.iter_mut().for_each(|to| *to = f(a)),
    }
}

/// Computes each element of a block from those of two others.
#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy, R>(
    to: &mut [R],
    a: Argument<'_, A>,
    b: Argument<'_, B>,
    f: impl Fn(A, B) -> R,
) {
    match (a, b) {
        (Argument::Block(a), Argument::Block(b)) => {
            to.iter_mut().zip(a).zip(b).for_each(|((to, &a), &b)| *to = f(a, b));
        }
        (Argument::Block(a), Argument::Same(b)) => to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a, b)),
        (Argument::Same(a), Argument::Block(b)) => to.iter_mut().zip(b).for_each(|(to, &b)| *to = f(a, b)),
        (Argument::Same(a), Argument::Same(b)) => to.iter_mut().for_each(|to| *to = f(a, b)),
    }
}

/// Takes each element of a block from one of two others.
#[inline(always)]
pub(super) fn select<T: Copy>(
    to: &mut [T],
    mask: &[bool],
    then: Argument<'_, T>,
    otherwise: Argument<'_, T>,
) {
    let pairs = to.iter_mut().zip(mask);
    match (then, otherwise) {
        (Argument::Block(a), Argument::Block(b)) => {
            pairs.zip(a).zip(b).for_each(|(((to, &mask), &a), &b)| *to = if mask { a } else { b });
        }
        (Argument::Block(a), Argument::Same(b)) => {
            pairs.zip(a).for_each(|((to, &mask), &a)| *to = if mask { a } else { b });
        }
        (Argument::Same(a), Argument::Block(b)) => {
            pairs.zip(b).for_each(|((to, &mask), &b)| *to = if mask { a } else { b });
        }
        (Argument::Same(a), Argument::Same(b)) => {
            pairs.for_each(|(to, &mask)| *to = if mask { a } else { b });
        }
    }
}

/// A comparison of numbers.
#[inline(always)]
pub(super) fn compare<T: Number>(what: Compare, to: &mut [bool], a: Argument<'_, T>, b: Argument<'_, T>) {
    match what {
        Compare::Lt => zip(to, a, b, |a, b| a < b),
        Compare::Le => zip(to, a, b, |a, b| a <= b),
        Compare::Eq => zip(to, a, b, |a, b| a == b),
        Compare::Ne => zip(to, a, b, |a, b| a != b),
        Compare::And | Compare::Or | Compare::Xor => unreachable!("`{what:?}` is for masks"),
    }
}

/// An operation on masks.
#[inline(always)]
pub(super) fn combine(what: Compare, to: &mut [bool], a: Argument<'_, bool>, b: Argument<'_, bool>) {
    match what {
        Compare::And => zip(to, a, b, |a, b| a & b),
        Compare::Or => zip(to, a, b, |a, b| a | b),
        Compare::Xor => zip(to, a, b, |a, b| a ^ b),
        _ => unreachable!("`{what:?}` is for numbers"),
    }
}

/// A type of number, as the registers and the operations know it.
pub(super) trait Arithmetic: Number {
    fn bank(banks: &Banks) -> &Bank<Self>;
    fn bank_mut(banks: &mut Banks) -> &mut Bank<Self>;
    fn unary(what: Unary, to: &mut [Self], a: Argument<'_, Self>);
    fn binary(what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>);
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

                #[inline(always)]
                fn unary(what: Unary, to: &mut [Self], a: Argument<'_, Self>) {
                    match what {
                        Unary::Neg => map(to, a, |a| -a),
                        Unary::Abs => map(to, a, Self::abs),
                        Unary::Sqrt => map(to, a, Self::sqrt),
                        Unary::Floor => map(to, a, Self::floor),
                        Unary::Ceil => map(to, a, Self::ceil),
                        Unary::Round => map(to, a, Self::round_ties_even),
                        Unary::Trunc => map(to, a, Self::trunc),
                        Unary::Exp => map(to, a, Self::exp),
                        Unary::Ln => map(to, a, Self::ln),
                        Unary::Sin => map(to, a, Self::sin),
                        Unary::Cos => map(to, a, Self::cos),
                        Unary::Tan => map(to, a, Self::tan),
                        Unary::Tanh => map(to, a, Self::tanh),
                        Unary::Not => unreachable!("`Not` is for integers"),
                    }
                }

                #[inline(always)]
                fn binary(what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>) {
                    match what {
                        Binary::Add => zip(to, a, b, |a, b| a + b),
                        Binary::Sub => zip(to, a, b, |a, b| a - b),
                        Binary::Mul => zip(to, a, b, |a, b| a * b),
                        Binary::Div => zip(to, a, b, |a, b| a / b),
                        Binary::Rem => zip(to, a, b, |a, b| a % b),
                        Binary::Min => zip(to, a, b, |a, b| if b < a || a.is_nan() { b } else { a }),
                        Binary::Max => zip(to, a, b, |a, b| if b > a || a.is_nan() { b } else { a }),
                        Binary::Pow => zip(to, a, b, Self::powf),
                        Binary::Atan2 => zip(to, a, b, Self::atan2),
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

                #[inline(always)]
                fn unary(what: Unary, to: &mut [Self], a: Argument<'_, Self>) {
                    match what {
                        Unary::Neg => map(to, a, Self::wrapping_neg),
                        Unary::Abs => map(to, a, |$a| $abs),
                        Unary::Not => map(to, a, |a| !a),
                        _ => unreachable!("`{what:?}` is for floats"),
                    }
                }

                #[inline(always)]
                fn binary(what: Binary, to: &mut [Self], a: Argument<'_, Self>, b: Argument<'_, Self>) {
                    match what {
                        Binary::Add => zip(to, a, b, Self::wrapping_add),
                        Binary::Sub => zip(to, a, b, Self::wrapping_sub),
                        Binary::Mul => zip(to, a, b, Self::wrapping_mul),
                        Binary::Div => zip(to, a, b, |a, b| if b == 0 { a } else { a.wrapping_div(b) }),
                        Binary::Rem => zip(to, a, b, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
                        Binary::Min => zip(to, a, b, Self::min),
                        Binary::Max => zip(to, a, b, Self::max),
                        Binary::BitAnd => zip(to, a, b, |a, b| a & b),
                        Binary::BitOr => zip(to, a, b, |a, b| a | b),
                        Binary::BitXor => zip(to, a, b, |a, b| a ^ b),
                        // The count modulo the number of bits: its lower bits are those of the cast.
                        Binary::Shl => zip(to, a, b, |a, b| a.wrapping_shl(b as u32)),
                        Binary::Shr => zip(to, a, b, |a, b| a.wrapping_shr(b as u32)),
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
