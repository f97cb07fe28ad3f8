//! Reductions of recordings.

use crate::{number::Kind, operator::Operator};

/// A reduction of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The number of the operand that gets the result, in the order of the declaration, from 0.
    pub operand: usize,
    /// The type of the values.
    pub kind: Kind,
    /// What combines them.
    pub operator: Operator,
    /// Whether the number that the operand had before is combined, too.
    pub includes_current: bool,
}
