//! What one node knows about a buffer: which parts of it are current here, who else has them, and which commands of
//! this node have to do with its memory.

use super::types::{Command, CommandId, NodeId};
use crate::{Kind, TaskId};
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use smallvec::SmallVec;
use std::ops::Range;

/// Where the current contents of a point are, as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Nothing was ever written.
    Nowhere,
    /// On other nodes; what this node has is stale.
    Elsewhere,
    /// Here, and at their owner.
    Copied,
    /// Here, and this node is who sends them to others.
    Owned,
}

impl Place {
    fn is_here(self) -> bool {
        matches!(self, Self::Copied | Self::Owned)
    }
}

/// The state of the points of a box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) place: Place,
    /// The command that wrote this node's memory last, whether that is current or not.
    pub(super) writer: CommandId,
    /// The commands that have read it since.
    pub(super) readers: SmallVec<[CommandId; 2]>,
}

/// Partial results of a reduction that nobody has combined yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) reduction: TaskId,
    /// The part of the buffer that was not overwritten since.
    pub(super) region: Region<3>,
    pub(super) leaves: u32,
    /// The leaves that this node has computed.
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
    /// What other nodes have of what is owned here, by node.
    pub(super) sent: Vec<(NodeId, Region<3>)>,
    pub(super) pending: Option<Box<Pending>>,
    /// How many cells there may be before those that differ only in commands before the horizon are merged.
    bound: usize,
}

/// Cells that a buffer may have before it is worth looking which of them can be merged.
const CELLS: usize = 32;

impl BufferState {
    /// A buffer whose contents are everywhere, or nowhere.
    pub(super) fn new(extent: Extent<3>, initialised: bool) -> Self {
        let place = if initialised { Place::Copied } else { Place::Nowhere };
        let cell = Cell { place, writer: CommandId::EPOCH, readers: SmallVec::new() };
        Self { cells: RegionMap::new(extent, cell), sent: Vec::new(), pending: None, bound: CELLS }
    }

    pub(super) fn whole(&self) -> GridBox<3> {
        GridBox::full(self.cells.extent())
    }

    fn select(&self, region: &Region<3>, keep: impl Fn(Place) -> bool) -> Region<3> {
        let mut found = Boxes::new();
        for range in region.boxes() {
            self.cells.for_each(range, |part, cell| {
                if keep(cell.place) {
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

    /// The part of `region` whose contents are not here.
    pub(super) fn missing(&self, region: &Region<3>) -> Region<3> {
        self.select(region, |place| !place.is_here())
    }

    /// The part of `region` that was never written.
    pub(super) fn nowhere(&self, region: &Region<3>) -> Region<3> {
        self.select(region, |place| place == Place::Nowhere)
    }

    /// The part of `region` that this node sends to others.
    pub(super) fn owned(&self, region: &Region<3>) -> Region<3> {
        self.select(region, |place| place == Place::Owned)
    }

    /// Makes `command` depend on whoever wrote a part of `region`.
    pub(super) fn before_read(&self, region: &Region<3>, command: &mut Command) {
        for range in region.boxes() {
            self.cells.for_each(range, |_, cell| command.after(cell.writer, Kind::True));
        }
    }

    /// Makes `command` depend on whoever still reads a part of `region`, or wrote it where nobody has read it.
    pub(super) fn before_write(&self, region: &Region<3>, command: &mut Command) {
        for range in region.boxes() {
            self.cells.for_each(range, |_, cell| match cell.readers.as_slice() {
                [] => command.after(cell.writer, Kind::Output),
                readers => {
                    let by = command.id;
                    let others = readers.iter().filter(|&&reader| reader != by);
                    others.for_each(|&reader| command.after(reader, Kind::Anti));
                }
            });
        }
    }

    /// Notes that `by` reads `region`. Readers before the horizon are replaced by it now and then.
    pub(super) fn read(&mut self, region: &Region<3>, by: CommandId, applied: CommandId) {
        self.merge_cells(applied);
        for range in region.boxes() {
            self.cells.apply(range, |cell| {
                let mut cell = cell.clone();
                // Only before the list would grow: so the check costs little per reader.
                if cell.readers.len() >= 2 && cell.readers.len().is_power_of_two() {
                    cell.forget(applied);
                }
                if cell.readers.last() != Some(&by) {
                    cell.readers.push(by);
                }
                cell
            });
        }
    }

    /// Notes that `by` writes current contents to `region`.
    pub(super) fn write(&mut self, region: &Region<3>, by: CommandId, place: Place) {
        for range in region.boxes() {
            self.cells.update(range, Cell { place, writer: by, readers: SmallVec::new() });
        }
    }

    /// Notes that other nodes have overwritten `region`.
    pub(super) fn lose(&mut self, region: &Region<3>) {
        for range in region.boxes() {
            self.cells.apply(range, |cell| Cell { place: Place::Elsewhere, ..cell.clone() });
        }
    }

    /// Notes that what `region` held is current nowhere any more.
    pub(super) fn overwritten(&mut self, region: &Region<3>) {
        if !self.sent.is_empty() {
            self.sent.retain_mut(|(_, sent)| {
                *sent = sent.difference(region);
                !sent.is_empty()
            });
        }
        self.pending.take_if(|pending| {
            pending.region = pending.region.difference(region);
            pending.region.is_empty()
        });
    }

    /// Notes that `node` is sent these parts of what is owned here. Leaves in `parts` what it did not have before.
    pub(super) fn send(&mut self, parts: &mut super::shape::Parts) {
        let mut from = 0;
        parts.retain(|(node, region)| {
            let at = from + self.sent[from..].partition_point(|(other, _)| other < node);
            from = at;
            match self.sent.get_mut(at) {
                Some((other, sent)) if other == node => {
                    *region = region.difference(sent);
                    *sent = sent.union(region);
                }
                _ => self.sent.insert(at, (*node, region.clone())),
            }
            !region.is_empty()
        });
    }

    /// Replaces commands before the horizon by it.
    pub(super) fn forget(&mut self, applied: CommandId) {
        let whole = self.whole();
        self.cells.apply(&whole, |cell| {
            let mut cell = cell.clone();
            cell.forget(applied);
            cell
        });
    }

    /// Merges cells that differ only in commands before the horizon.
    fn merge_cells(&mut self, applied: CommandId) {
        if self.cells.len() > self.bound {
            self.forget(applied);
            self.bound = CELLS.max(2 * self.cells.len());
        }
    }
}

impl Cell {
    /// Replaces commands before the horizon by it.
    fn forget(&mut self, applied: CommandId) {
        self.writer = self.writer.max(applied);
        let count = self.readers.len();
        self.readers.retain(|reader| *reader > applied);
        if self.readers.len() < count {
            self.readers.insert(0, applied);
        }
    }
}
