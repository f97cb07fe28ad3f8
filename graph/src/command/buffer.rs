//! The state of one buffer on one node: which parts are current here, what other nodes have, and which
//! commands of this node access the buffer's memory.

use super::{
    source::Source,
    types::{Command, CommandId, NodeId, NodeRegions},
};
use crate::task::{Kind, TaskId};
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// The location of a point's current contents, as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Location {
    /// The point was never written.
    Nowhere,
    /// On other nodes; this node's memory is stale.
    Elsewhere,
    /// In this node's memory, and in the owner's.
    Copied,
    /// In this node's memory, and this node sends them to other nodes.
    Owned,
}

impl Location {
    fn is_here(self) -> bool {
        matches!(self, Self::Copied | Self::Owned)
    }
}

/// The state of the points of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) location: Location,
    /// The command that wrote this node's memory last, whether the contents are still current or not.
    pub(super) writer: CommandId,
}

/// A box, and a command that has read it since it was written.
pub(super) type Reader = (GridBox<3>, CommandId);

/// A reduction whose partial results have not been combined yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PendingReduction {
    pub(super) reduction: TaskId,
    /// The part of the buffer that was not overwritten since.
    pub(super) region: Region<3>,
    pub(super) leaves: u32,
    /// The leaves that this node computed.
    pub(super) mine: Range<u32>,
    /// The commands that computed them.
    pub(super) writers: SmallVec<[CommandId; 1]>,
}

/// The boxes of a region while it is collected.
type Boxes = SmallVec<[GridBox<3>; 4]>;

/// The state of a buffer on one node.
#[derive(Clone, Debug)]
pub(super) struct BufferState {
    pub(super) cells: RegionMap<3, Cell>,
    /// The readers are a list and not part of the cells, because most accesses are reads and would cut the
    /// cells into pieces.
    pub(super) readers: Vec<Reader>,
    /// The parts of the owned region that other nodes have, by ascending node.
    pub(super) sent: Vec<(NodeId, Region<3>)>,
    pub(super) pending: Option<Box<PendingReduction>>,
    /// What each node has, if every node knows it.
    pub(super) source: Option<Arc<Source>>,
    /// Whether every point is known to have been written.
    complete: bool,
    /// The number of cells and readers above which those before the horizon are merged.
    bound: usize,
}

/// The smallest bound on the number of cells and readers.
const BOUND: usize = 32;

impl BufferState {
    /// A buffer whose contents are everywhere if it is `initialised`, and nowhere otherwise.
    pub(super) fn new(extent: Extent<3>, initialised: bool) -> Self {
        let location = if initialised { Location::Copied } else { Location::Nowhere };
        let cells = RegionMap::new(extent, Cell { location, writer: CommandId::EPOCH });
        let (readers, sent) = (Vec::new(), Vec::new());
        Self { cells, readers, sent, pending: None, source: None, complete: initialised, bound: BOUND }
    }

    pub(super) fn whole(&self) -> GridBox<3> {
        GridBox::full(self.cells.extent())
    }

    /// Forgets the contents everywhere.
    pub(super) fn discard(&mut self) {
        let whole = self.whole();
        self.note_overwrite(&whole.into());
        self.cells.modify(&whole, |cell| cell.location = Location::Nowhere);
        self.complete = false;
    }

    /// The commands that still use this node's memory, and where: readers, and writers of what was not read
    /// since.
    pub(super) fn users(&self) -> Vec<Reader> {
        let unread = |(part, cell): &(GridBox<3>, &Cell)| {
            cell.writer > CommandId::EPOCH && !self.is_read_since(part, cell.writer)
        };
        let writers = self.cells.entries().filter(unread).map(|(part, cell)| (part, cell.writer));
        self.readers.iter().copied().chain(writers).collect()
    }

    /// Goes on with another memory, which these commands still use. The contents are discarded.
    pub(super) fn change_memory(&mut self, users: Vec<Reader>) {
        let new = Self::new(self.cells.extent(), false);
        *self = Self { readers: users, ..new };
    }

    /// Whether some command that came after `writer` has read all of `part`.
    fn is_read_since(&self, part: &GridBox<3>, writer: CommandId) -> bool {
        self.readers.iter().any(|(read, reader)| *reader > writer && read.contains(part))
    }

    fn select(&self, region: &Region<3>, keep: impl Fn(Location) -> bool) -> Region<3> {
        let mut found = Boxes::new();
        for range in region.boxes() {
            self.cells.for_each(range, |part, cell| {
                if keep(cell.location) {
                    found.push(part);
                }
            });
        }
        match found[..] {
            [] => Region::empty(),
            [only] => only.into(),
            _ => Region::from_boxes(found),
        }
    }

    /// The part of `region` whose current contents this node lacks.
    pub(super) fn missing(&self, region: &Region<3>) -> Region<3> {
        self.select(region, |location| !location.is_here())
    }

    /// The part of `region` that was never written.
    pub(super) fn nowhere(&self, region: &Region<3>) -> Region<3> {
        if self.complete {
            return Region::empty();
        }
        self.select(region, |location| location == Location::Nowhere)
    }

    /// The part of `region` that this node owns.
    pub(super) fn owned(&self, region: &Region<3>) -> Region<3> {
        self.select(region, |location| location == Location::Owned)
    }

    /// Makes `command` depend on the writers of `region`.
    pub(super) fn add_read_edges(&self, region: &Region<3>, command: &mut Command) {
        for range in region.boxes() {
            self.cells.for_each(range, |_, cell| command.after(cell.writer, Kind::True));
        }
    }

    /// The writers of `region`, ascending. The horizon stands for those before it.
    pub(super) fn writers(&self, region: &Region<3>, applied: CommandId) -> SmallVec<[CommandId; 4]> {
        let mut found = SmallVec::new();
        for range in region.boxes() {
            self.cells.for_each(range, |_, cell| found.push(cell.writer.max(applied)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Makes `command` depend on the commands that have read a part of `region` since it was written, and on
    /// the writers of the parts that no command has read since.
    pub(super) fn add_write_edges(&self, region: &Region<3>, command: &mut Command) {
        for range in region.boxes() {
            for (_, reader) in self.readers.iter().filter(|(read, _)| read.intersects(range)) {
                if *reader != command.id {
                    command.after(*reader, Kind::Anti);
                }
            }
            self.cells.for_each(range, |part, cell| {
                // A reader comes after the writer anyway.
                if !self.is_read_since(&part, cell.writer) {
                    command.after(cell.writer, Kind::Output);
                }
            });
        }
    }

    /// Notes that `by` reads `region`.
    pub(super) fn note_read(&mut self, region: &Region<3>, by: CommandId, applied: CommandId) {
        self.limit_size(applied);
        self.readers.extend(region.boxes().iter().map(|range| (*range, by)));
    }

    /// Notes that `by` writes current contents to `region`.
    pub(super) fn note_write(
        &mut self,
        region: &Region<3>,
        by: CommandId,
        applied: CommandId,
        location: Location,
    ) {
        self.limit_size(applied);
        for range in region.boxes() {
            self.remove_readers(range);
            self.cells.update(range, Cell { location, writer: by });
        }
    }

    /// Removes the readers of a box that is overwritten.
    fn remove_readers(&mut self, written: &GridBox<3>) {
        if !self.readers.iter().any(|(read, _)| read.intersects(written)) {
            return;
        }
        let mut rest = Vec::new();
        self.readers.retain(|(read, reader)| {
            let overlaps = read.intersects(written);
            if overlaps && !written.contains(read) {
                let parts = Region::from(*read).difference(&Region::from(*written));
                rest.extend(parts.boxes().iter().map(|part| (*part, *reader)));
            }
            !overlaps
        });
        self.readers.append(&mut rest);
    }

    /// Notes that other nodes have overwritten `region`.
    pub(super) fn invalidate(&mut self, region: &Region<3>) {
        for range in region.boxes() {
            self.cells.modify(range, |cell| cell.location = Location::Elsewhere);
        }
    }

    /// Notes that the former contents of `region` are obsolete on every node.
    pub(super) fn note_overwrite(&mut self, region: &Region<3>) {
        self.source = None;
        self.complete |= region.contains_box(&self.whole());
        // Often the next node has the same region as the last one, so that the difference need not be
        // computed again.
        let mut last: Option<[Region<3>; 2]> = None;
        self.sent.retain_mut(|(_, sent)| {
            match &last {
                Some([before, rest]) if before == sent => sent.clone_from(rest),
                _ if !sent.intersects(region) => return true,
                _ => {
                    let rest = sent.difference(region);
                    last = Some([std::mem::replace(sent, rest.clone()), rest]);
                }
            }
            !sent.is_empty()
        });
        self.pending.take_if(|pending| {
            pending.region = pending.region.difference(region);
            pending.region.is_empty()
        });
    }

    /// Notes that nodes are sent these parts of the owned region. Removes from `parts` what the nodes had
    /// before.
    pub(super) fn note_sent(&mut self, parts: &mut NodeRegions) {
        let mut from = 0;
        // For the last node: the region that it wanted, had, lacked, and has now. Often the next node has the
        // same, so that the differences need not be computed again.
        let mut last: Option<[Region<3>; 4]> = None;
        parts.retain(|(node, region)| {
            let at = from + self.sent[from..].partition_point(|(other, _)| other < node);
            from = at;
            match self.sent.get_mut(at) {
                Some((other, sent)) if other == node => match &last {
                    Some([wanted, had, lacked, has]) if wanted == region && had == sent => {
                        region.clone_from(lacked);
                        sent.clone_from(has);
                    }
                    _ => {
                        let lacked = region.difference(sent);
                        let has = sent.union(&lacked);
                        let wanted = std::mem::replace(region, lacked.clone());
                        last = Some([wanted, std::mem::replace(sent, has.clone()), lacked, has]);
                    }
                },
                _ => self.sent.insert(at, (*node, region.clone())),
            }
            !region.is_empty()
        });
    }

    /// Replaces commands before the horizon by it if there are many cells and readers, so that some of them
    /// merge.
    fn limit_size(&mut self, applied: CommandId) {
        if self.cells.len() + self.readers.len() > self.bound {
            self.replace_before(applied);
            self.bound = BOUND.max(2 * (self.cells.len() + self.readers.len()));
        }
    }

    /// Replaces commands before the horizon by it.
    pub(super) fn replace_before(&mut self, applied: CommandId) {
        let whole = self.whole();
        self.cells.apply(&whole, |cell| Cell { writer: cell.writer.max(applied), ..*cell });
        // One box around everything that they read. Coming after the horizon once more does no harm.
        let mut around = GridBox::EMPTY;
        self.readers.retain(|(read, reader)| {
            let old = *reader <= applied;
            if old {
                around = around.bounding(read);
            }
            !old
        });
        if !around.is_empty() {
            self.readers.insert(0, (around, applied));
        }
    }
}
