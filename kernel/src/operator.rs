//! Operators of reductions, and the numbers that they combine.

use crate::number::Kind;

/// What combines two values of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The sum. Of no values it is -0.0 or 0. Integers wrap around.
    Sum,
    /// The product. Of no values it is 1. Integers wrap around.
    Product,
    /// The smaller value, as [`Value::min`](crate::Value::min). Of no values it is the largest of the type.
    Min,
    /// The larger value, as [`Value::max`](crate::Value::max). Of no values it is the smallest of the type.
    Max,
    /// The bits that both values have. Of no values it has all bits. It is for integers only.
    And,
    /// The bits that one of the values has. Of no values it has none. It is for integers only.
    Or,
}

impl Operator {
    /// Whether it combines numbers of a type.
    pub fn is_for(self, kind: Kind) -> bool {
        match self {
            Self::Sum | Self::Product | Self::Min | Self::Max => kind != Kind::Bool,
            Self::And | Self::Or => !matches!(kind, Kind::Bool | Kind::F32 | Kind::F64),
        }
    }
}

/// Numbers that operators combine.
pub trait Reducible: Copy {
    /// What changes nothing: the result for no values.
    fn identity(operator: Operator) -> Self;

    /// Combines two values, of which `a` comes first.
    fn combine(operator: Operator, a: Self, b: Self) -> Self;
}

macro_rules! floats {
    ($($float:ident)*) => {
        $(
            impl Reducible for $float {
                fn identity(operator: Operator) -> Self {
                    match operator {
                        Operator::Sum => -0.0,
                        Operator::Product => 1.0,
                        Operator::Min => Self::INFINITY,
                        Operator::Max => Self::NEG_INFINITY,
                        Operator::And | Operator::Or => unreachable!("`{operator:?}` is for integers"),
                    }
                }

                #[inline(always)]
                fn combine(operator: Operator, a: Self, b: Self) -> Self {
                    match operator {
                        Operator::Sum => a + b,
                        Operator::Product => a * b,
                        Operator::Min => if b < a || a.is_nan() { b } else { a },
                        Operator::Max => if b > a || a.is_nan() { b } else { a },
                        Operator::And | Operator::Or => unreachable!("`{operator:?}` is for integers"),
                    }
                }
            }
        )*
    };
}

floats!(f32 f64);

macro_rules! integers {
    ($($integer:ident)*) => {
        $(
            impl Reducible for $integer {
                fn identity(operator: Operator) -> Self {
                    match operator {
                        Operator::Sum | Operator::Or => 0,
                        Operator::Product => 1,
                        Operator::Min => Self::MAX,
                        Operator::Max => Self::MIN,
                        Operator::And => !0,
                    }
                }

                #[inline(always)]
                fn combine(operator: Operator, a: Self, b: Self) -> Self {
                    match operator {
                        Operator::Sum => a.wrapping_add(b),
                        Operator::Product => a.wrapping_mul(b),
                        Operator::Min => a.min(b),
                        Operator::Max => a.max(b),
                        Operator::And => a & b,
                        Operator::Or => a | b,
                    }
                }
            }
        )*
    };
}

integers!(i32 u32 i64 u64);
