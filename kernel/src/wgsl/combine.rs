//! The shaders that combine the results of leaves.

use crate::number::Kind;

/// The most results that a group of a shader of [`Combine`] combines into one.
pub const COMBINED: u32 = 2048;

/// How the results of the leaves of one reduction are combined.
#[derive(Clone, Debug)]
pub struct Combine {
    pub(super) operand: usize,
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Combine {
    /// The number of the operand in the recording, from 0. Its first element is the result.
    pub fn operand(&self) -> usize {
        self.operand
    }

    /// The type of the results.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The shader. Its entry point is `main`. It reads the values of binding 0 of group 0, exactly those that
    /// this binding has. Group `n` of the dispatch combines up to [`COMBINED`] values from value
    /// `COMBINED · n` on, into element `n` of binding 1.
    pub fn text(&self) -> &str {
        &self.text
    }
}
