//! Which copies between memories a recorded task comes after.
//!
//! The runtime waits only for copies that are not done yet. A drawing must not depend on that, so it shows the
//! copies that have brought what a task reads, done or not.

use super::change::Place;
use anabranch_graph::{Access, BufferId, Dependency, Kind, MemoryId, Origin, TaskId};
use anabranch_grid::Region;
use rustc_hash::FxHashMap;

/// The copies whose contents are current.
#[derive(Default)]
pub(super) struct Copies {
    /// The copies of each buffer: the memory that each one wrote, the region that is current there, and the
    /// task of the copy.
    of: FxHashMap<BufferId, Vec<(MemoryId, Region<3>, TaskId)>>,
}

impl Copies {
    pub(super) fn remove_buffer(&mut self, buffer: BufferId) {
        self.of.remove(&buffer);
    }

    /// Records a task. Returns the copies that it comes after.
    pub(super) fn submit(&mut self, task: TaskId, accesses: &[Access], place: Place) -> Vec<Dependency> {
        let (Place::In(memory) | Place::Copies { from: memory, .. }) = place;
        let mut after = Vec::new();
        for access in accesses.iter().filter(|access| access.mode.reads()) {
            for (to, region, on) in self.of.get(&access.buffer).into_iter().flatten() {
                let copy = Dependency { on: *on, kind: Kind::True, origin: Origin::Buffer(access.buffer) };
                if *to == memory && region.intersects(&access.region) && !after.contains(&copy) {
                    after.push(copy);
                }
            }
        }
        for access in accesses.iter().filter(|access| access.mode.writes()) {
            self.forget(access, |_| true);
        }
        if let (Place::Copies { to, .. }, [access]) = (place, accesses) {
            // An earlier copy of the same elements has failed.
            self.forget(access, |memory| memory == to);
            self.of.entry(access.buffer).or_default().push((to, access.region.clone(), task));
        }
        after
    }

    /// Forgets the copies of the elements of an access to some memories.
    fn forget(&mut self, access: &Access, is_of: impl Fn(MemoryId) -> bool) {
        let Some(copies) = self.of.get_mut(&access.buffer) else { return };
        for (_, region, _) in copies.iter_mut().filter(|(memory, ..)| is_of(*memory)) {
            *region = region.difference(&access.region);
        }
        copies.retain(|(_, region, _)| !region.is_empty());
    }
}
