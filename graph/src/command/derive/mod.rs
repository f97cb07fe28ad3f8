//! Derivation: from the shape of a launch to commands. This is step 4 of [a launch](super).
//!
//! [`derivation`] has the steps in their order and the execution of chunks, [`transfer`] the pushes and the
//! await-pushes, [`reduction`] the partial results of reductions.

mod derivation;
mod reduction;
mod transfer;

pub(super) use derivation::Derivation;
