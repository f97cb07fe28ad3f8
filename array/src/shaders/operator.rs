//! The operators that devices know.

use super::wgsl;
use crate::{numeric::Numeric, place::Place};
use anabranch::interface::{And, Max, Min, Or, Product, Sum};
use std::any::TypeId;

/// An operator of `anabranch` whose order does not matter, except for rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
}

impl Known {
    /// The operator of this type, if it is known.
    pub(crate) fn of<O: 'static>() -> Option<Self> {
        let known = [
            (TypeId::of::<Sum>(), Self::Sum),
            (TypeId::of::<Product>(), Self::Product),
            (TypeId::of::<Min>(), Self::Min),
            (TypeId::of::<Max>(), Self::Max),
            (TypeId::of::<And>(), Self::And),
            (TypeId::of::<Or>(), Self::Or),
        ];
        known.into_iter().find(|&(id, _)| id == TypeId::of::<O>()).map(|(_, known)| known)
    }

    /// Whether the device of a place combines these numbers as the host does.
    pub(crate) fn runs_in<T: Numeric>(self, place: &Place) -> bool {
        let compares = matches!(self, Self::Min | Self::Max);
        // Only the rank of an `f64` needs another type of numbers.
        let has_rank = !(compares && is_f64::<T>()) || super::run_in::<i64>(place);
        has_rank && super::run_in::<T>(place)
    }

    /// The function `combine` in WGSL; for the least and the greatest also the function `rank`, by which they
    /// compare.
    pub(super) fn text<T: Numeric>(self) -> String {
        let rank = match self {
            Self::Min | Self::Max => self.rank::<T>(),
            Self::Sum | Self::Product | Self::And | Self::Or => String::new(),
        };
        let body = match self {
            Self::Sum => "return a + b;",
            Self::Product => "return a * b;",
            Self::Min => "if (rank(b) < rank(a)) { return b; } return a;",
            Self::Max => "if (rank(b) > rank(a)) { return b; } return a;",
            Self::And => "return a & b;",
            Self::Or => "return a | b;",
        };
        format!("{rank} fn combine(a: {0}, b: {0}) -> {0} {{ {body} }}", wgsl::<T>())
    }

    /// The function `rank`. That of a float is an integer, made from its bits: a driver may take it that no
    /// value is NaN, and may compare subnormal numbers as zeros. Both zeros have the same rank. NaN comes
    /// last, so every number takes its place.
    fn rank<T: Numeric>(self) -> String {
        let number = wgsl::<T>();
        if !T::IS_FLOAT {
            return format!("fn rank(a: {number}) -> {number} {{ return a; }}");
        }
        let (integer, most, infinity) = match is_f64::<T>() {
            true => ("i64", "0x7fffffffffffffffli", "0x7ff0000000000000li"),
            false => ("i32", "0x7fffffffi", "0x7f800000i"),
        };
        let sign = if self == Self::Max { "-" } else { "" };
        format!(
            "fn rank(a: {number}) -> {integer} {{
                let bits = bitcast<{integer}>(a);
                let size = bits & {most};
                if (size > {infinity}) {{ return {sign}{most}; }}
                if (bits < {integer}(0)) {{ return -size; }}
                return size;
            }}"
        )
    }
}

fn is_f64<T: Numeric>() -> bool {
    T::IS_FLOAT && size_of::<T>() == 8
}
