//! What the graph knows about one buffer: for every point of every version, who wrote it last and who has read it since.

use crate::task::TaskId;
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use smallvec::SmallVec;

/// The state of the points of a box.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    /// `None` where nothing was ever written.
    writer: Option<TaskId>,
    /// Who has read what the writer wrote, and need not have finished.
    readers: SmallVec<[TaskId; 2]>,
}

/// One version of a buffer's contents: one allocation.
#[derive(Debug)]
struct Version {
    cells: RegionMap<3, Cell>,
    /// When this version became the current one, in the buffer's own count.
    since: u64,
    /// How many cells there may be before readers that are done are forgotten everywhere, so that cells merge again.
    bound: usize,
}

/// Cells that a version may have before it is worth looking which of them can be merged.
const CELLS: usize = 64;

impl Version {
    fn new(extent: Extent<3>, writer: Option<TaskId>, since: u64) -> Self {
        Self { cells: RegionMap::new(extent, Cell { writer, readers: SmallVec::new() }), since, bound: CELLS }
    }

    /// Everyone who may still use this version: for each part its readers, or its writer where nobody has read.
    fn users(&self) -> impl Iterator<Item = TaskId> {
        self.cells.entries().flat_map(|(_, cell)| {
            let unread = cell.writer.filter(|_| cell.readers.is_empty());
            cell.readers.iter().copied().chain(unread)
        })
    }
}

/// The tracking structure of one buffer.
#[derive(Debug)]
pub(crate) struct Tracker {
    extent: Extent<3>,
    versions: SmallVec<[Version; 1]>,
    current: usize,
    max_versions: usize,
    /// How often the current version has changed.
    renames: u64,
}

/// Who must come before a write, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It still reads what is overwritten.
    Reader(TaskId),
    /// It wrote what is overwritten.
    Writer(TaskId),
}

impl Tracker {
    pub(crate) fn new(extent: Extent<3>, initialised: bool) -> Self {
        let writer = initialised.then_some(TaskId::EPOCH);
        let versions = SmallVec::from_buf([Version::new(extent, writer, 0)]);
        Self { extent, versions, current: 0, max_versions: 1, renames: 0 }
    }

    /// Fewer than there are already has no effect on those.
    pub(crate) fn set_versions(&mut self, versions: usize) {
        self.max_versions = versions.max(1);
    }

    /// The whole buffer.
    pub(crate) fn whole(&self) -> GridBox<3> {
        GridBox::full(self.extent)
    }

    pub(crate) fn current(&self) -> u32 {
        self.current as u32
    }

    /// The part of `region` that was never written.
    pub(crate) fn unwritten(&self, region: &Region<3>) -> Region<3> {
        let mut missing = SmallVec::<[GridBox<3>; 4]>::new();
        for range in region.boxes() {
            self.versions[self.current].cells.for_each(range, |part, cell| {
                if cell.writer.is_none() {
                    missing.push(part);
                }
            });
        }
        Region::from_boxes(missing)
    }

    /// Calls `f` with every task that wrote a part of `region` last.
    pub(crate) fn writers(&self, region: &Region<3>, mut f: impl FnMut(TaskId)) {
        for range in region.boxes() {
            self.versions[self.current]
                .cells
                .for_each(range, |_, cell| cell.writer.into_iter().for_each(&mut f));
        }
    }

    /// Calls `f` with every task that wrote a part of the current contents.
    pub(crate) fn all_writers(&self, f: impl FnMut(TaskId)) {
        self.versions[self.current].cells.entries().filter_map(|(_, cell)| cell.writer).for_each(f);
    }

    /// Calls `f` with every task that must come before `region` is overwritten in place: those that read it, or where
    /// there is none the one that wrote it (the readers come after that one anyway).
    pub(crate) fn before_write(&self, region: &Region<3>, mut f: impl FnMut(Before)) {
        for range in region.boxes() {
            self.versions[self.current].cells.for_each(range, |_, cell| {
                if cell.readers.is_empty() {
                    cell.writer.into_iter().for_each(|w| f(Before::Writer(w)));
                } else {
                    cell.readers.iter().for_each(|&r| f(Before::Reader(r)));
                }
            });
        }
    }

    /// Forgets all readers that are done, where different reads have cut the buffer into many cells.
    fn merge_cells(&mut self, done: &dyn Fn(TaskId) -> bool) {
        let whole = self.whole();
        let version = &mut self.versions[self.current];
        if version.cells.len() > version.bound {
            version.cells.apply(&whole, |cell| {
                let mut cell = cell.clone();
                cell.readers.retain(|r| !done(*r));
                cell
            });
            version.bound = CELLS.max(2 * version.cells.len());
        }
    }

    /// Notes that `task` reads `region`. Readers for which `done` holds are forgotten now and then.
    pub(crate) fn read(&mut self, region: &Region<3>, task: TaskId, done: &dyn Fn(TaskId) -> bool) {
        self.merge_cells(done);
        for range in region.boxes() {
            self.versions[self.current].cells.apply(range, |cell| {
                let mut cell = cell.clone();
                // Only before the list would grow: so the check costs little per reader.
                if cell.readers.len() >= 2 && cell.readers.len().is_power_of_two() {
                    cell.readers.retain(|r| !done(*r));
                }
                if cell.readers.last() != Some(&task) {
                    cell.readers.push(task);
                }
                cell
            });
        }
    }

    /// Notes that `task` has written `region`.
    pub(crate) fn write(&mut self, region: &Region<3>, task: TaskId) {
        for range in region.boxes() {
            let cell = Cell { writer: Some(task), readers: SmallVec::new() };
            self.versions[self.current].cells.update(range, cell);
        }
    }

    /// Gives a complete overwrite by `task` a version of its own: one that nobody uses any more, a new one, or, where the
    /// bound is reached, the one that has gone unused for longest. Calls `f` with the tasks that still use that one.
    pub(crate) fn rename(&mut self, task: TaskId, done: &dyn Fn(TaskId) -> bool, mut f: impl FnMut(TaskId)) {
        self.renames += 1;
        let free =
            (0..self.versions.len()).find(|&v| v != self.current && self.versions[v].users().all(done));
        let next = match free {
            Some(version) => version,
            None if self.versions.len() < self.max_versions => {
                self.versions.push(Version::new(self.extent, None, 0));
                self.versions.len() - 1
            }
            None => {
                let oldest = (0..self.versions.len()).min_by_key(|&v| self.versions[v].since);
                let oldest = oldest.expect("a buffer has a version");
                self.versions[oldest].users().filter(|&t| !done(t)).for_each(&mut f);
                oldest
            }
        };
        self.versions[next] = Version::new(self.extent, Some(task), self.renames);
        self.current = next;
    }

    /// Whether the buffer may have more than one version.
    pub(crate) fn renames(&self) -> bool {
        self.max_versions > 1
    }
}
