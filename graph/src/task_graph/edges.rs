//! The edges that a task gets while it is derived.

use crate::task::{Dependency, Kind, Origin, TaskId};
use smallvec::SmallVec;

pub(super) type Dependencies = SmallVec<[Dependency; 4]>;

/// An edge that the structure of the graph demands.
pub(super) fn after(on: TaskId) -> Dependency {
    Dependency { on, kind: Kind::Serial, origin: Origin::Graph }
}

/// Adds an edge unless it repeats the last one, as the boxes of one neighbour do. `finish_edges` removes
/// other repeats.
#[inline]
pub(super) fn add(found: &mut Dependencies, new: Dependency) {
    if found.last() != Some(&new) {
        found.push(new);
    }
}
