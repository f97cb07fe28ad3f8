//! Traits that only this crate implements.

/// What such a trait requires of its types.
pub trait Sealed {}
