//! Task groups: their state, and the handles that a program has.

pub(super) mod group;
pub(super) mod handle;
