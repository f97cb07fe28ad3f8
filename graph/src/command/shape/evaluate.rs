//! The shape, and how it is made from a launch.

use super::access::{AccessMap, AccessShape};
use crate::{
    command::{
        error::CommandError,
        launch::{Hints, Launch, Work},
        split::Split,
        types::Rank,
        weights::Weights,
    },
    task::{BufferId, Mode},
};
use anabranch_grid::{Extent, GridBox, Region};
use smallvec::SmallVec;
use std::ops::Range;

/// The demands of a launch on its buffers. Equal launches have equal shapes.
pub(in crate::command) struct Shape {
    pub(in crate::command) split: Split,
    /// The chunk of this node, if it has one.
    pub(in crate::command) own: Range<usize>,
    /// The operands: the buffers that the launch accesses or reduces to, each once.
    pub(in crate::command) buffers: SmallVec<[BufferId; 4]>,
    pub(in crate::command) accesses: Vec<AccessShape>,
    /// The operands that the launch reduces to.
    pub(in crate::command) reductions: SmallVec<[usize; 1]>,
}

impl Default for Shape {
    /// The shape of a launch without accesses.
    fn default() -> Self {
        let split = Split::new(&Work::HostOnce, &Hints::default(), 1, None, None);
        let (buffers, reductions) = (SmallVec::new(), SmallVec::new());
        Self { split, own: 0..0, buffers, accesses: Vec::new(), reductions }
    }
}

impl Shape {
    /// Makes this the shape of `launch` on one node, and checks it.
    pub(in crate::command) fn evaluate(
        &mut self,
        rank: Rank,
        weights: Option<&Weights>,
        launch: &Launch,
        extent: impl Fn(BufferId) -> Extent<3>,
    ) -> Result<(), CommandError> {
        self.clear();
        let writes = launch.accesses.iter().any(|a| a.mode.writes()) || !launch.reductions.is_empty();
        if launch.work.snapshot().is_some() && writes {
            return Err(CommandError::WritingSnapshot { task: launch.task });
        }
        let reduced = launch.reductions.iter().map(|reduction| extent(reduction.buffer).len()).max();
        self.split = Split::new(&launch.work, &launch.hints, rank.nodes, reduced, weights);
        self.own = self.split.of_node(rank.me);
        for access in launch.accesses {
            let operand = self.operand(access.buffer);
            self.add(operand, access.mode, AccessMap::User(access.mapper.clone()));
        }
        for reduction in launch.reductions {
            if self.split.chunks() == 0 && reduction.include_current {
                // The contents stay as they are.
                continue;
            }
            let operand = self.operand(reduction.buffer);
            self.reductions.push(operand);
            if reduction.include_current {
                let all = GridBox::full(extent(reduction.buffer));
                self.add(operand, Mode::Read, AccessMap::First(all.into()));
            }
        }
        self.check(launch.task)
    }

    /// Forgets the launch without freeing memory.
    pub(in crate::command) fn clear(&mut self) {
        self.buffers.clear();
        self.accesses.clear();
        self.reductions.clear();
    }

    /// The position of a buffer among the operands, where it is added if it is new.
    fn operand(&mut self, buffer: BufferId) -> usize {
        self.buffers.iter().position(|&b| b == buffer).unwrap_or_else(|| {
            self.buffers.push(buffer);
            self.buffers.len() - 1
        })
    }

    fn add(&mut self, operand: usize, mode: Mode, map: AccessMap) {
        self.accesses.push(AccessShape::new(operand, mode, map, &self.split, &self.own));
    }

    /// The number of pieces of this node's chunk; 0 if it has no chunk.
    pub(in crate::command) fn pieces(&self) -> usize {
        self.own.clone().map(|chunk| self.split.pieces(chunk)).sum()
    }

    /// The accesses that read an operand.
    pub(in crate::command) fn reads(&self, operand: usize) -> impl Iterator<Item = &AccessShape> + Clone {
        self.accesses.iter().filter(move |access| access.operand == operand && access.mode.reads())
    }

    /// Whether the launch writes an operand or reduces to it.
    pub(in crate::command) fn writes(&self, operand: usize) -> bool {
        let writes = |access: &AccessShape| access.operand == operand && access.mode.writes();
        self.reductions.contains(&operand) || self.accesses.iter().any(writes)
    }

    /// Whether the launch overwrites all of an operand, which is `whole`, without reading it.
    pub(in crate::command) fn overwrites(&self, operand: usize, whole: &GridBox<3>) -> bool {
        let mut accesses = self.accesses.iter().filter(|access| access.operand == operand);
        match accesses.next() {
            None => self.reductions.contains(&operand),
            Some(only) => {
                only.mode == Mode::Write && only.whole.contains_box(whole) && accesses.next().is_none()
            }
        }
    }

    /// The region of an operand that this node reads.
    pub(in crate::command) fn read_by_me(&self, operand: usize) -> Region<3> {
        let mut reads = self.reads(operand).map(|access| access.mine());
        let Some(first) = reads.next() else { return Region::empty() };
        reads.fold(first.clone(), |all, region| all.union(region))
    }
}
