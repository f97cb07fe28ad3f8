//! Traits that only this crate implements.

/// What such a trait asks of its types.
pub trait Sealed {}
