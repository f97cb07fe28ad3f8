//! The operators that devices know.

use super::{
    rank::{self, Specials},
    run_in, wgsl,
};
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
        match self {
            Self::Min | Self::Max => rank::is_known_in::<T>(place),
            Self::Sum | Self::Product | Self::And | Self::Or => run_in::<T>(place),
        }
    }

    /// The function `combine` in WGSL; for the least and the greatest also the function `rank`, by which they
    /// compare.
    pub(super) fn text<T: Numeric>(self) -> String {
        let rank = match self {
            // Every number takes the place of NaN.
            Self::Min => rank::text::<T>(Specials::NanIsGreatest),
            Self::Max => rank::text::<T>(Specials::NanIsLeast),
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
}
