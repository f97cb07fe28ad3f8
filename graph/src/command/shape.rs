//! The shape of a launch: its split, and what its range mappers say about the parts that concern this node.
//!
//! Nobody evaluates the mappers of all chunks. Which nodes access a region is answered by bisection over runs of
//! consecutive chunks: the box of a run is mapped as if it were one chunk, and as mappers are monotonic a run whose
//! region does not meet the wanted one holds no chunk that does. That takes a logarithmic number of calls for each
//! node that is found.

use super::{
    buffer::BufferState,
    error::CommandError,
    launch::{Hints, Launch, Mapper, Work},
    split::Split,
    types::NodeId,
};
use crate::task::{BufferId, Mode, TaskId};
use anabranch_grid::{Chunk, Extent, GridBox, Region};
use smallvec::SmallVec;
use std::ops::Range;

/// A node and the part of a region that it accesses.
pub(super) type Parts = SmallVec<[(NodeId, Region<3>); 4]>;

/// Where chunks access a buffer.
#[derive(Clone)]
enum Map {
    /// As the program says.
    User(Mapper),
    /// The chunk with the first point of the index space accesses all of this.
    First(Box<GridBox<3>>),
}

impl Map {
    fn region(&self, split: &Split, run: Range<usize>) -> Region<3> {
        let chunk = Chunk { range: split.range(run), global: split.space() };
        match self {
            Self::User(mapper) => mapper(&chunk),
            Self::First(all) if chunk.range.min() == chunk.global.min() => (**all).into(),
            Self::First(_) => Region::empty(),
        }
    }
}

/// One access of a launch.
pub(super) struct AccessShape {
    /// Which of the launch's buffers.
    pub(super) slot: usize,
    pub(super) mode: Mode,
    map: Map,
    /// The region of the whole index space.
    pub(super) whole: Region<3>,
    /// The regions of this node's chunks, where they are not just the whole; if they are several or none, then their union.
    own: SmallVec<[Region<3>; 1]>,
    is_whole: bool,
}

impl AccessShape {
    /// The region of this node's chunk number `at` (counted from its first).
    pub(super) fn chunk(&self, at: usize) -> &Region<3> {
        if self.is_whole { &self.whole } else { &self.own[at] }
    }

    /// The region of all of this node's chunks.
    pub(super) fn mine(&self) -> &Region<3> {
        if self.is_whole { &self.whole } else { &self.own[self.own.len() - 1] }
    }
}

/// What a launch asks of the buffers. Equal launches have equal shapes.
pub(super) struct Shape {
    pub(super) split: Split,
    /// The chunks of this node.
    pub(super) own: Range<usize>,
    /// The buffers that are touched, each once.
    pub(super) buffers: SmallVec<[BufferId; 4]>,
    pub(super) accesses: Vec<AccessShape>,
    /// The reductions: which of the buffers.
    pub(super) reductions: SmallVec<[usize; 1]>,
}

impl Default for Shape {
    /// The shape of nothing.
    fn default() -> Self {
        let split = Split::new(&Work::HostOnce, &Hints::default(), 1, false);
        let (buffers, reductions) = (SmallVec::new(), SmallVec::new());
        Self { split, own: 0..0, buffers, accesses: Vec::new(), reductions }
    }
}

impl Shape {
    /// Evaluates what concerns this node, and checks it.
    pub(super) fn evaluate(
        &mut self,
        me: NodeId,
        nodes: u16,
        launch: &Launch,
        extent: impl Fn(BufferId) -> Extent<3>,
    ) -> Result<(), CommandError> {
        self.clear();
        let snapshot = matches!(launch.work, Work::Fence | Work::Epoch | Work::Horizon);
        let writes = launch.accesses.iter().any(|a| a.mode.writes()) || !launch.reductions.is_empty();
        if snapshot && writes {
            return Err(CommandError::WritingSnapshot { task: launch.task });
        }
        self.split = Split::new(&launch.work, &launch.hints, nodes, !launch.reductions.is_empty());
        if !launch.reductions.is_empty() && self.split.chunks() == 0 {
            return Err(CommandError::EmptyReduction { task: launch.task });
        }
        self.own = self.split.of_node(me);
        for access in launch.accesses {
            let slot = self.slot(access.buffer);
            self.add(slot, access.mode, Map::User(access.mapper.clone()));
        }
        for reduction in launch.reductions {
            let slot = self.slot(reduction.buffer);
            self.reductions.push(slot);
            if reduction.include_current {
                let all = GridBox::full(extent(reduction.buffer));
                self.add(slot, Mode::Read, Map::First(all.into()));
            }
        }
        self.check(launch.task)
    }

    /// Forgets the launch, but not the allocations.
    pub(super) fn clear(&mut self) {
        self.buffers.clear();
        self.accesses.clear();
        self.reductions.clear();
    }

    fn slot(&mut self, buffer: BufferId) -> usize {
        self.buffers.iter().position(|&b| b == buffer).unwrap_or_else(|| {
            self.buffers.push(buffer);
            self.buffers.len() - 1
        })
    }

    fn add(&mut self, slot: usize, mode: Mode, map: Map) {
        let Self { split, own, .. } = self;
        let chunks = split.chunks();
        let whole = if chunks == 0 { Region::empty() } else { map.region(split, 0..chunks) };
        let is_whole = own.len() == chunks && chunks <= 1;
        let mut regions = SmallVec::new();
        if !is_whole {
            regions.extend(own.clone().map(|chunk| map.region(split, chunk..chunk + 1)));
            if own.len() != 1 {
                let union = regions.iter().cloned().collect();
                regions.push(union);
            }
        }
        self.accesses.push(AccessShape { slot, mode, map, whole, own: regions, is_whole });
    }

    fn check(&self, task: TaskId) -> Result<(), CommandError> {
        for (number, access) in self.accesses.iter().enumerate() {
            for (at, region) in access.own.iter().take(self.own.len()).enumerate() {
                if !access.whole.contains(region) {
                    let chunk = self.own.start + at;
                    let (part, beyond) =
                        (self.split.range(chunk..chunk + 1), region.difference(&access.whole));
                    return Err(CommandError::NotMonotonic {
                        task,
                        access: number,
                        part,
                        beyond: beyond.into(),
                    });
                }
            }
            if access.mode.writes() && !access.is_whole && !self.own.is_empty() {
                self.check_write(task, number, 0..self.split.chunks(), &access.whole)?;
            }
        }
        Ok(())
    }

    /// Checks that the halves of each run with chunks of this node write all that the run does, each point once. Every
    /// node looks at the runs that hold its own chunks, so that together they look at all.
    fn check_write(
        &self,
        task: TaskId,
        access: usize,
        run: Range<usize>,
        region: &Region<3>,
    ) -> Result<(), CommandError> {
        if run.len() <= 1 {
            return Ok(());
        }
        let split = &self.split;
        let middle = split.middle(&run);
        let halves = [run.start..middle, middle..run.end];
        let regions = halves.clone().map(|half| self.accesses[access].map.region(split, half));
        let [a, b] = &regions;
        if a.intersects(b) {
            let parts = halves.map(|half| split.range(half)).into();
            let common = a.intersection(b).into();
            return Err(CommandError::OverlappingWrites { task, access, parts, common });
        }
        let both = a.union(b);
        if both != *region {
            let part = split.range(run);
            let (missing, beyond) = (region.difference(&both), both.difference(region));
            return Err(if beyond.is_empty() {
                CommandError::InexactWrite { task, access, part, missing: missing.into() }
            } else {
                CommandError::NotMonotonic { task, access, part, beyond: beyond.into() }
            });
        }
        for (half, region) in halves.into_iter().zip(&regions) {
            if half.start < self.own.end && self.own.start < half.end {
                self.check_write(task, access, half, region)?;
            }
        }
        Ok(())
    }

    /// Checks that whatever this node reads was written on some node.
    pub(super) fn check_written<'a>(
        &self,
        task: TaskId,
        state: impl Fn(usize) -> &'a BufferState,
    ) -> Result<(), CommandError> {
        for access in self.accesses.iter().filter(|access| access.mode.reads()) {
            let missing = state(access.slot).nowhere(access.mine());
            if !missing.is_empty() {
                let buffer = self.buffers[access.slot];
                return Err(CommandError::NeverWritten { task, buffer, missing: missing.into() });
            }
        }
        Ok(())
    }

    /// The accesses that read the buffer in `slot`.
    pub(super) fn reads(&self, slot: usize) -> impl Iterator<Item = &AccessShape> + Clone {
        self.accesses.iter().filter(move |access| access.slot == slot && access.mode.reads())
    }

    /// The region of the buffer in `slot` that this node reads.
    pub(super) fn read_by_me(&self, slot: usize) -> Region<3> {
        let mut reads = self.reads(slot).map(|access| access.mine());
        let Some(first) = reads.next() else { return Region::empty() };
        reads.fold(first.clone(), |all, region| all.union(region))
    }

    /// Which of the nodes other than `me` read what part of `wanted`, ascending, each once.
    pub(super) fn other_readers(&self, me: NodeId, nodes: u16, slot: usize, wanted: &Region<3>) -> Parts {
        let mut found = Parts::new();
        for access in self.reads(slot) {
            self.visit_readers(me, nodes, access, wanted, &mut |node, part| {
                match found.last_mut() {
                    // Chunks of one node come one after the other.
                    Some((last, region)) if *last == node => *region = region.union(&part),
                    _ => found.push((node, part)),
                }
                true
            });
        }
        if !found.is_sorted_by(|a, b| a.0 < b.0) {
            found.sort_by_key(|part| part.0);
            found.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = kept.1.union(&next.1);
                }
                same
            });
        }
        found
    }

    /// Whether a node that precedes `me` reads a part of `wanted`; whether one that follows it does.
    pub(super) fn readers_around(
        &self,
        me: NodeId,
        nodes: u16,
        slot: usize,
        wanted: &Region<3>,
    ) -> [bool; 2] {
        let mut found = [false; 2];
        for access in self.reads(slot) {
            self.visit_readers(me, nodes, access, wanted, &mut |node, _| {
                found[usize::from(node > me)] = true;
                // The first reader says whether one precedes; if none does, it says that one follows.
                false
            });
        }
        found
    }

    /// Calls `f` with each other node's chunks that read a part of `wanted`, in order, as long as it says so.
    fn visit_readers(
        &self,
        me: NodeId,
        nodes: u16,
        access: &AccessShape,
        wanted: &Region<3>,
        f: &mut dyn FnMut(NodeId, Region<3>) -> bool,
    ) {
        if self.split.everywhere {
            let part = access.whole.intersection(wanted);
            if !part.is_empty() {
                (0..nodes).map(NodeId).filter(|&node| node != me).all(|node| f(node, part.clone()));
            }
        } else if self.split.chunks() > self.own.len() {
            self.visit(access, 0..self.split.chunks(), &access.whole, wanted, f);
        }
    }

    fn visit(
        &self,
        access: &AccessShape,
        run: Range<usize>,
        region: &Region<3>,
        wanted: &Region<3>,
        f: &mut dyn FnMut(NodeId, Region<3>) -> bool,
    ) -> bool {
        if !region.intersects(wanted) {
            return true;
        }
        if run.len() == 1 {
            return f(self.split.node_of(run.start), region.intersection(wanted));
        }
        let middle = self.split.middle(&run);
        [run.start..middle, middle..run.end].into_iter().all(|half| {
            if self.own.start <= half.start && half.end <= self.own.end {
                return true;
            }
            let region = access.map.region(&self.split, half.clone());
            self.visit(access, half, &region, wanted, f)
        })
    }
}
