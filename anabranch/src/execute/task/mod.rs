//! Tasks: their nodes, with the states that a task goes through, and the handles that a program has.

pub(super) mod handle;
pub(super) mod head;
pub(super) mod later;
pub(super) mod links;
pub(super) mod node;
pub(super) mod part;
pub(super) mod place;
pub(super) mod properties;
pub(super) mod queued;
pub(super) mod status;
