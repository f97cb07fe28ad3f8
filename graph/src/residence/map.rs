//! The residence of one version of a buffer.

use super::{
    cell::{Cell, End},
    memory::{Memories, MemoryCopy, MemoryId},
};
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use smallvec::SmallVec;

/// Which memories have the current values of which elements of one version of a buffer, and which copies an
/// access needs.
///
/// `C` identifies a copy. The caller chooses it: a task's id, or a handle to it. Two copies that are not
/// known to have ended must have different ids.
///
/// A memory is current from the submission of a copy on, not from its end. So the task that needs the copy
/// must come after it, and every later task too, until the copy is known to be done.
///
/// ```
/// use anabranch_graph::{MemoryCopy, MemoryId, Residence};
/// use anabranch_grid::{Extent, GridBox, Region};
///
/// let [host, device] = [MemoryId::HOST, MemoryId(1)];
/// let mut residence = Residence::new(Extent([100, 1, 1]));
/// let all = Region::from(GridBox::full([100, 1, 1]));
/// let left = Region::from(GridBox::full([30, 1, 1]));
///
/// // A task on the device changes the elements on the left. Copy 7 brings them there.
/// let copies = residence.missing(device, &left);
/// assert_eq!(copies, [MemoryCopy { from: host, to: device, region: left.clone() }]);
/// residence.copied(&copies[0], 7);
/// assert!(residence.missing(device, &left).is_empty());
/// assert_eq!(residence.made_by(device, &left).collect::<Vec<_>>(), [&7]); // the task comes after copy 7
/// residence.written(device, &left);
///
/// // The host reads everything. Only what the device has changed must be copied.
/// let copies = residence.missing(host, &all);
/// assert_eq!(copies, [MemoryCopy { from: device, to: host, region: left.clone() }]);
/// residence.copied(&copies[0], 8);
///
/// // The copy fails. The next access needs it again.
/// residence.failed(&8);
/// assert_eq!(residence.missing(host, &all), copies);
/// residence.copied(&copies[0], 9);
/// residence.done(&9);
/// assert_eq!(residence.made_by(host, &all).count(), 0); // nothing to wait for
/// ```
#[derive(Clone, Debug)]
pub struct Residence<C: Clone + Eq> {
    cells: RegionMap<3, Cell<C>>,
}

impl<C: Clone + Eq> Residence<C> {
    /// The residence of a version of this extent, in elements. The host alone is current everywhere.
    pub fn new(extent: Extent<3>) -> Self {
        Self { cells: RegionMap::new(extent, Cell::written(MemoryId::HOST)) }
    }

    /// The extent of the version.
    pub fn extent(&self) -> Extent<3> {
        self.cells.extent()
    }

    /// The copies that `memory` needs before `region` can be read there, in an order in which they can be
    /// submitted. Notes nothing: call [`copied`](Residence::copied) for each copy, before the next access.
    ///
    /// A copy begins in the host's memory wherever that is current. Other elements go from a device to the
    /// host, and on in a second copy if another device needs them. The elements that come from one memory are
    /// in copies of their own, so that they wait for no other memory.
    ///
    /// A copy must come after the copies that made its source current, which [`made_by`](Residence::made_by)
    /// says, and after the tasks that wrote the region. A later write of the region must come after the copy,
    /// as after any reader.
    ///
    /// # Panics
    /// If the id of the memory is not below [`MemoryId::COUNT`].
    #[track_caller]
    pub fn missing(&self, memory: MemoryId, region: &Region<3>) -> Vec<MemoryCopy> {
        let wanted = Memories::only(memory);
        let mut parts = SmallVec::<[(MemoryId, GridBox<3>); 4]>::new();
        for range in region.boxes() {
            self.cells.for_each(range, |part, cell| {
                if !cell.is_current_in(wanted) {
                    parts.push((cell.source(), part));
                }
            });
        }
        parts.sort_by_key(|&(source, _)| source);
        let mut copies = Vec::new();
        for parts in parts.chunk_by(|a, b| a.0 == b.0) {
            let (source, region) = (parts[0].0, parts.iter().map(|&(_, part)| part).collect::<Region<3>>());
            if source != MemoryId::HOST && memory != MemoryId::HOST {
                copies.push(MemoryCopy { from: source, to: MemoryId::HOST, region: region.clone() });
                copies.push(MemoryCopy { from: MemoryId::HOST, to: memory, region });
            } else {
                copies.push(MemoryCopy { from: source, to: memory, region });
            }
        }
        copies
    }

    /// Notes that a copy has been submitted: from now on its target is current, because of the copy `id`.
    ///
    /// # Panics
    /// If the source is not current in all of the region, or the target is current in a part of it already.
    /// Copies that [`missing`](Residence::missing) has just returned, in their order, do not panic.
    #[track_caller]
    pub fn copied(&mut self, copy: &MemoryCopy, id: C) {
        let (from, to) = (Memories::only(copy.from), Memories::only(copy.to));
        let mut parts = copy.region.boxes().iter().flat_map(|range| self.cells.query(range));
        if let Some((part, cell)) = parts.find(|(_, c)| !c.is_current_in(from) || c.is_current_in(to)) {
            let (memory, is) = if cell.is_current_in(to) { (copy.to, "is") } else { (copy.from, "is not") };
            panic!(
                "{copy}: in {part}, {memory} {is} current; ask for the missing copies again after each access"
            );
        }
        for range in copy.region.boxes() {
            self.cells.apply(range, |cell| cell.copied(copy.to, &id));
        }
    }

    /// The copies that made parts of `region` current in `memory` and are not known to be done, each once. A
    /// task that accesses the region there must come after them.
    pub fn made_by(&self, memory: MemoryId, region: &Region<3>) -> impl Iterator<Item = &C> {
        let mut copies = SmallVec::<[&C; 4]>::new();
        for (_, cell) in region.boxes().iter().flat_map(|range| self.cells.query(range)) {
            if let Some(id) = cell.made_by(memory)
                && !copies.contains(&id)
            {
                copies.push(id);
            }
        }
        copies.into_iter()
    }

    /// Notes that a task that writes `region` in `memory` has been submitted: this memory alone is current
    /// there. Copies of the former values may still be pending. Their ends change nothing in the region.
    ///
    /// # Panics
    /// If the id of the memory is not below [`MemoryId::COUNT`].
    #[track_caller]
    pub fn written(&mut self, memory: MemoryId, region: &Region<3>) {
        for range in region.boxes() {
            self.cells.update(range, Cell::written(memory));
        }
    }

    /// Notes that a copy has failed or was skipped: its target is not current where this copy is still the
    /// reason for it. The next access copies these elements again.
    ///
    /// A copy that comes after a failed one is skipped. The caller reports each of them, in any order. An
    /// access between these reports may still come after a copy that was skipped, and is skipped with it.
    pub fn failed(&mut self, id: &C) {
        self.ended(id, End::Failed);
    }

    /// Notes that a copy is done: its target stays current, and no task need wait for the copy any more.
    pub fn done(&mut self, id: &C) {
        self.ended(id, End::Done);
    }

    /// Whether the host alone is current everywhere. Then a task on the host needs no copy, waits for none,
    /// and its writes need not be noted. Most buffers of a program without devices stay so.
    pub fn is_only_on_host(&self) -> bool {
        self.cells.entries().all(|(_, cell)| cell.is_only_on_host())
    }

    /// The number of boxes with equal state, plus the number of pending copies in each: a measure of the
    /// memory in use.
    pub fn tracked(&self) -> usize {
        self.cells.entries().map(|(_, cell)| cell.tracked()).sum()
    }

    /// Takes the copy `id` out of all cells.
    fn ended(&mut self, id: &C, end: End) {
        let concerned = self.cells.entries().filter(|(_, cell)| cell.depends_on(id));
        let parts: SmallVec<[GridBox<3>; 4]> = concerned.map(|(part, _)| part).collect();
        for part in &parts {
            self.cells.apply(part, |cell| cell.ended(id, end));
        }
    }
}
