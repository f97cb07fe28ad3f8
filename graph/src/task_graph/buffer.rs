//! The tracker of one buffer: for every point of every version, the last writer and the readers since.
//!
//! An id older than the current epoch stands for that epoch. Nothing is rewritten when an epoch or horizon is
//! applied: each use of an id takes the later of the id and the epoch.

use super::memo::Repeated;
use crate::task::TaskId;
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use smallvec::SmallVec;

/// The state of the points of a box.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    /// The task that the next write comes after if there are no readers; `None` where nothing was ever
    /// written.
    writer: Option<TaskId>,
    /// The tasks that read what the writer wrote, and may not have finished. Ascending.
    readers: SmallVec<[TaskId; 2]>,
    /// Whether there are contents to read: written, and not discarded since.
    readable: bool,
}

impl Cell {
    /// Contents that `writer` wrote, or that were there from the start.
    fn written(writer: TaskId) -> Self {
        Self { writer: Some(writer), readers: SmallVec::new(), readable: true }
    }

    /// No contents, and no task to wait for.
    fn fresh() -> Self {
        Self { writer: None, readers: SmallVec::new(), readable: false }
    }

    /// Calls `f` with the tasks that an overwrite in place comes after: the readers, or the writer if there
    /// are none. The readers come after the writer anyway.
    #[inline]
    fn before_write(&self, epoch: TaskId, mut f: impl FnMut(Before)) {
        if self.readers.is_empty() {
            self.writer.into_iter().for_each(|w| f(Before::Writer(w.max(epoch))));
        } else {
            self.readers.iter().for_each(|&r| f(Before::Reader(r.max(epoch))));
        }
    }

    /// Notes that the accesses of the last tasks were repeated.
    fn repeat(&mut self, repeated: &Repeated<'_>, done: &dyn Fn(TaskId) -> bool) {
        if let Some(writer) = self.writer.and_then(|writer| repeated.last(writer)) {
            self.writer = Some(writer);
            self.readers.iter_mut().for_each(|reader| *reader = repeated.last(*reader).unwrap_or(*reader));
            return;
        }
        let mut more = Vec::new();
        self.readers.iter().for_each(|&reader| repeated.each(reader, |id| more.push(id)));
        more.sort_unstable();
        self.readers.extend(more);
        self.readers.retain(|reader| repeated.is_of_last_pass(*reader) || !done(*reader));
    }

    /// Forgets readers that are done, and replaces older ones by the epoch.
    fn forget_done(&mut self, epoch: TaskId, done: &dyn Fn(TaskId) -> bool) {
        let older = self.readers.partition_point(|&r| r <= epoch);
        if older > 0 {
            self.readers.drain(1..older);
            self.readers[0] = epoch;
        }
        self.readers.retain(|r| !done(*r));
        if self.readers[..] == [epoch] {
            // The epoch stands for the writer as well.
            (self.writer, self.readers) = (Some(epoch), SmallVec::new());
        }
    }
}

/// One version of a buffer's contents: one allocation.
#[derive(Debug)]
struct Version {
    cells: RegionMap<3, Cell>,
    /// When this version became the current one, in the buffer's own count.
    since: u64,
    /// The number of cells above which readers that are done are forgotten everywhere, so that cells merge
    /// again.
    bound: usize,
}

/// The smallest bound on the number of cells.
const CELLS: usize = 64;

impl Version {
    fn new(extent: Extent<3>, cell: Cell, since: u64) -> Self {
        Self { cells: RegionMap::new(extent, cell), since, bound: CELLS }
    }

    /// The tasks that may still use this version: for each part its readers, or its writer if there are none.
    fn users(&self, epoch: TaskId) -> SmallVec<[TaskId; 4]> {
        let mut users = SmallVec::new();
        for (_, cell) in self.cells.entries() {
            cell.before_write(epoch, |before| users.push(before.task()));
        }
        users
    }

    /// Forgets tasks that are done or older than the epoch, if accesses have cut the buffer into many cells.
    #[inline]
    fn merge_cells(&mut self, epoch: TaskId, done: &dyn Fn(TaskId) -> bool) {
        if self.cells.len() > self.bound {
            self.merge_cells_now(epoch, done);
        }
    }

    #[cold]
    fn merge_cells_now(&mut self, epoch: TaskId, done: &dyn Fn(TaskId) -> bool) {
        let whole = GridBox::full(self.cells.extent());
        self.cells.modify(&whole, |cell| {
            cell.writer = cell.writer.map(|w| w.max(epoch));
            cell.forget_done(epoch, done);
        });
        self.cells.merge();
        self.bound = CELLS.max(2 * self.cells.len());
    }
}

/// A task that a write comes after, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It still reads what is overwritten.
    Reader(TaskId),
    /// It wrote what is overwritten.
    Writer(TaskId),
}

impl Before {
    fn task(self) -> TaskId {
        let (Self::Reader(task) | Self::Writer(task)) = self;
        task
    }
}

/// The readers and writers of one buffer, and its versions.
#[derive(Debug)]
pub(crate) struct BufferTracker {
    extent: Extent<3>,
    versions: SmallVec<[Version; 1]>,
    current: usize,
    max_versions: usize,
    /// The number of times that the current version has changed.
    renames: u64,
}

impl BufferTracker {
    /// The tracker of a buffer that exists since `epoch`.
    pub(crate) fn new(extent: Extent<3>, initialised: bool, epoch: TaskId) -> Self {
        let cell = if initialised { Cell::written(epoch) } else { Cell::fresh() };
        let versions = SmallVec::from_buf([Version::new(extent, cell, 0)]);
        Self { extent, versions, current: 0, max_versions: 1, renames: 0 }
    }

    /// Sets the bound on the number of versions. Versions above the bound that exist already stay.
    pub(crate) fn set_versions(&mut self, versions: usize) {
        self.max_versions = versions.max(1);
    }

    /// The whole buffer.
    pub(crate) fn whole(&self) -> GridBox<3> {
        GridBox::full(self.extent)
    }

    /// The version that reads and writes in place use.
    pub(crate) fn current(&self) -> u32 {
        self.current as u32
    }

    /// The number of cells and readers.
    pub(crate) fn tracked(&self) -> usize {
        let cells = self.versions.iter().flat_map(|version| version.cells.entries());
        cells.map(|(_, cell)| 1 + cell.readers.len()).sum()
    }

    /// Calls `f` with every part of `region` and its last writer, or `None` where there is nothing to read.
    #[inline]
    pub(crate) fn contents(
        &self,
        region: &Region<3>,
        epoch: TaskId,
        mut f: impl FnMut(GridBox<3>, Option<TaskId>),
    ) {
        for range in region.boxes() {
            self.versions[self.current].cells.for_each(range, |part, cell| {
                f(part, cell.writer.filter(|_| cell.readable).map(|w| w.max(epoch)));
            });
        }
    }

    /// Calls `f` with every task that wrote a part of the current contents.
    pub(crate) fn all_writers(&self, epoch: TaskId, f: impl FnMut(TaskId)) {
        let cells = self.versions[self.current].cells.entries();
        cells.filter_map(|(_, cell)| cell.writer).map(|w| w.max(epoch)).for_each(f);
    }

    /// Whether a task for which `counts` holds still reads a part of the current contents. Contents that were
    /// discarded do not count: the discard has chosen the version already.
    pub(crate) fn is_read(&self, epoch: TaskId, counts: impl Fn(TaskId) -> bool) -> bool {
        let mut cells = self.versions[self.current].cells.entries();
        cells.any(|(_, cell)| cell.readable && cell.readers.iter().any(|r| counts((*r).max(epoch))))
    }

    /// Notes that `task` reads `region`. Forgets readers for which `done` holds now and then.
    pub(crate) fn read(
        &mut self,
        region: &Region<3>,
        task: TaskId,
        epoch: TaskId,
        done: &dyn Fn(TaskId) -> bool,
    ) {
        let version = &mut self.versions[self.current];
        version.merge_cells(epoch, done);
        for range in region.boxes() {
            version.cells.modify(range, |cell| {
                // Only before the list grows, so that the check costs little per reader.
                if cell.readers.len() >= 2 && cell.readers.len().is_power_of_two() {
                    cell.forget_done(epoch, done);
                }
                if cell.readers.last() != Some(&task) {
                    cell.readers.push(task);
                }
            });
        }
    }

    /// Notes that `task` writes `region` in place. Calls `f` with every task that the write comes after.
    pub(crate) fn write(
        &mut self,
        region: &Region<3>,
        task: TaskId,
        epoch: TaskId,
        done: &dyn Fn(TaskId) -> bool,
        mut f: impl FnMut(Before),
    ) {
        let version = &mut self.versions[self.current];
        version.merge_cells(epoch, done);
        for range in region.boxes() {
            version.cells.replace(range, Cell::written(task), |old| old.before_write(epoch, &mut f));
        }
    }

    /// Notes that the accesses of the last tasks were repeated.
    pub(crate) fn repeat(&mut self, repeated: &Repeated<'_>, done: &dyn Fn(TaskId) -> bool) {
        let whole = self.whole();
        self.versions[self.current].cells.modify(&whole, |cell| cell.repeat(repeated, done));
    }

    /// Gives a complete overwrite by `task` a version of its own: an unused one, a new one, or, if the bound
    /// is reached, the one that became current longest ago. Calls `f` with the tasks that still use that
    /// version.
    pub(crate) fn rename(
        &mut self,
        task: TaskId,
        epoch: TaskId,
        done: &dyn Fn(TaskId) -> bool,
        f: impl FnMut(TaskId),
    ) {
        self.renames += 1;
        let next = self.free_version(epoch, done).unwrap_or_else(|| {
            let oldest = self.oldest_version();
            self.versions[oldest].users(epoch).into_iter().filter(|&t| !done(t)).for_each(f);
            oldest
        });
        self.versions[next] = Version::new(self.extent, Cell::written(task), self.renames);
        self.current = next;
    }

    /// Discards the contents. If a task still reads them, the next write goes to an unused or new version, or
    /// else to the oldest version, where each part waits for its own users.
    pub(crate) fn discard(&mut self, epoch: TaskId, done: &dyn Fn(TaskId) -> bool) {
        if self.renames() && self.is_read(epoch, |r| !done(r)) {
            self.renames += 1;
            self.current = match self.free_version(epoch, done) {
                Some(free) => {
                    self.versions[free] = Version::new(self.extent, Cell::fresh(), 0);
                    free
                }
                None => self.oldest_version(),
            };
            self.versions[self.current].since = self.renames;
        }
        let whole = self.whole();
        self.versions[self.current].cells.modify(&whole, |cell| cell.readable = false);
    }

    /// A version other than the current one that no task uses any more, or a new one within the bound.
    fn free_version(&mut self, epoch: TaskId, done: &dyn Fn(TaskId) -> bool) -> Option<usize> {
        let is_free = |v: &usize| *v != self.current && self.versions[*v].users(epoch).into_iter().all(done);
        if let Some(free) = (0..self.versions.len()).find(is_free) {
            return Some(free);
        }
        (self.versions.len() < self.max_versions).then(|| {
            self.versions.push(Version::new(self.extent, Cell::fresh(), 0));
            self.versions.len() - 1
        })
    }

    /// The version that became current longest ago.
    fn oldest_version(&self) -> usize {
        let oldest = (0..self.versions.len()).min_by_key(|&v| self.versions[v].since);
        oldest.expect("a buffer has a version")
    }

    /// Whether the buffer may have more than one version.
    pub(crate) fn renames(&self) -> bool {
        self.max_versions > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1000;

    fn element(at: usize) -> Region<3> {
        GridBox::new([at, 0, 0], [at + 1, 1, 1]).into()
    }

    fn tracker() -> BufferTracker {
        BufferTracker::new(Extent([SIZE, 1, 1]), true, TaskId::EPOCH)
    }

    /// When parts are merged, the horizon replaces older readers. Newer readers need not come after it and
    /// are kept.
    #[test]
    fn merged_parts_keep_the_readers_that_are_newer_than_the_horizon() {
        let mut tracker = tracker();
        let none = |_: TaskId| false;
        for task in [1, 2, 5] {
            tracker.read(&element(0), TaskId(task), TaskId::EPOCH, &none);
        }
        let horizon = TaskId(3);
        for i in 0..CELLS {
            tracker.read(&element(2 * i + 2), TaskId(6 + i as u64), horizon, &none);
        }
        let mut before = Vec::new();
        tracker.write(&element(0), TaskId(SIZE as u64), horizon, &none, |task| before.push(task));
        assert_eq!(before, [3, 5].map(|id| Before::Reader(TaskId(id))));
    }

    #[test]
    fn parts_are_merged_when_their_readers_are_done_or_older_than_the_horizon() {
        let (all, none) = (|_: TaskId| true, |_: TaskId| false);
        let cases: [(&dyn Fn(TaskId) -> bool, u64); 2] = [(&all, SIZE as u64), (&none, 10)];
        for (done, behind) in cases {
            let mut tracker = tracker();
            for task in 1..SIZE {
                let horizon = TaskId((task as u64).saturating_sub(behind));
                tracker.read(&element(7 * task % SIZE), TaskId(task as u64), horizon, done);
                assert!(tracker.tracked() < 4 * CELLS);
            }
        }
    }

    /// The horizon replaces older writers.
    #[test]
    fn parts_are_merged_when_their_writers_are_older_than_the_horizon() {
        let mut tracker = tracker();
        for task in 1..SIZE {
            let horizon = TaskId((task as u64).saturating_sub(10));
            tracker.write(&element(7 * task % SIZE), TaskId(task as u64), horizon, &|_| false, |_| {});
            assert!(tracker.tracked() < 4 * CELLS);
        }
    }
}
