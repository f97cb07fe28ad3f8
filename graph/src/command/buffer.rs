//! What one node knows about a buffer: which parts of it are current here, who else has them, and which commands of
//! this node have to do with its memory.

use super::types::{Command, CommandId, NodeId};
use crate::task::{Kind, TaskId};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) place: Place,
    /// The command that wrote this node's memory last, whether that is current or not.
    pub(super) writer: CommandId,
}

/// A command that has read a box that was not overwritten since.
pub(super) type Reader = (GridBox<3>, CommandId);

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
    /// A list, and not a part of the cells: reading is most of what happens, and shall not cut them into pieces.
    pub(super) readers: Vec<Reader>,
    /// What other nodes have of what is owned here, by node.
    pub(super) sent: Vec<(NodeId, Region<3>)>,
    pub(super) pending: Option<Box<Pending>>,
    /// Whether every point was written, as far as it is known.
    complete: bool,
    /// How many cells and readers there may be before those before the horizon are merged.
    bound: usize,
}

/// Cells and readers that a buffer may have before it is worth looking which of them can be merged.
const BOUND: usize = 32;

impl BufferState {
    /// A buffer whose contents are everywhere, or nowhere.
    pub(super) fn new(extent: Extent<3>, initialised: bool) -> Self {
        let place = if initialised { Place::Copied } else { Place::Nowhere };
        let cells = RegionMap::new(extent, Cell { place, writer: CommandId::EPOCH });
        let (readers, sent) = (Vec::new(), Vec::new());
        Self { cells, readers, sent, pending: None, complete: initialised, bound: BOUND }
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
        if self.complete {
            return Region::empty();
        }
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

    /// Makes `command` depend on whoever has read a part of `region` since it was written, and on whoever wrote what
    /// was not read since.
    pub(super) fn before_write(&self, region: &Region<3>, command: &mut Command) {
        for range in region.boxes() {
            for (_, reader) in self.readers.iter().filter(|(read, _)| read.intersects(range)) {
                if *reader != command.id {
                    command.after(*reader, Kind::Anti);
                }
            }
            self.cells.for_each(range, |part, cell| {
                // A reader comes after the writer anyway.
                let read = |(read, reader): &Reader| *reader > cell.writer && read.contains(&part);
                if !self.readers.iter().any(read) {
                    command.after(cell.writer, Kind::Output);
                }
            });
        }
    }

    /// Notes that `by` reads `region`.
    pub(super) fn read(&mut self, region: &Region<3>, by: CommandId, applied: CommandId) {
        self.merge(applied);
        self.readers.extend(region.boxes().iter().map(|range| (*range, by)));
    }

    /// Notes that `by` writes current contents to `region`.
    pub(super) fn write(&mut self, region: &Region<3>, by: CommandId, applied: CommandId, place: Place) {
        self.merge(applied);
        for range in region.boxes() {
            self.forget_readers(range);
            self.cells.update(range, Cell { place, writer: by });
        }
    }

    /// What was read is overwritten.
    fn forget_readers(&mut self, written: &GridBox<3>) {
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
    pub(super) fn lose(&mut self, region: &Region<3>) {
        for range in region.boxes() {
            self.cells.modify(range, |cell| cell.place = Place::Elsewhere);
        }
    }

    /// Notes that what `region` held is current nowhere any more.
    pub(super) fn overwritten(&mut self, region: &Region<3>) {
        self.complete |= region.contains_box(&self.whole());
        // What one node has is often what the next one has as well.
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

    /// Notes that `node` is sent these parts of what is owned here. Leaves in `parts` what it did not have before.
    pub(super) fn send(&mut self, parts: &mut super::shape::Parts) {
        let mut from = 0;
        // What one node wants and had, and lacked and has: that is often what the next one does as well.
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

    /// Merges what differs only in commands before the horizon, once there is much of it.
    fn merge(&mut self, applied: CommandId) {
        if self.cells.len() + self.readers.len() > self.bound {
            self.forget(applied);
            self.bound = BOUND.max(2 * (self.cells.len() + self.readers.len()));
        }
    }

    /// Replaces commands before the horizon by it.
    pub(super) fn forget(&mut self, applied: CommandId) {
        let whole = self.whole();
        self.cells.apply(&whole, |cell| Cell { writer: cell.writer.max(applied), ..*cell });
        // One box around all of what they read: it does no harm to come after the horizon.
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
