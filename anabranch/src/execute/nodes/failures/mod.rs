//! Failures on several nodes: they go where the data would have gone, and all nodes report those of all.

pub(super) mod notes;
mod parts;
pub(super) mod poison;
pub(super) mod report;
