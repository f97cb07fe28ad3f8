//! With several nodes: which steps have written which part of a version last, so that a copy waits for them
//! and for no others.

use crate::execute::task::node::Node;
use anabranch_grid::{Extent, GridBox, Region, RegionMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// When there are this many steps, the list drops those that have ended.
const BOUND: usize = 32;

/// The last writers of all parts of a version.
pub(super) struct Writers {
    cells: RegionMap<3, Writer>,
    /// Steps that had not ended when they were last looked at, by their numbers.
    steps: FxHashMap<u64, Node>,
    /// The number of steps so far.
    count: u64,
    bound: usize,
}

/// The last writer of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// A step from before the first use of the buffer by a device, which may not have ended.
    Unknown,
    /// A step that has ended.
    Ended,
    /// The step with this number.
    Step(u64),
}

/// What a copy of a part waits for, beside other copies.
pub(super) enum Waits {
    /// The copy waits for nothing.
    No,
    /// The copy waits for the step that has written the part.
    For(Node),
    /// The copy waits for all that the reader waits for.
    AsReader,
}

impl Writers {
    pub(super) fn new(extent: Extent<3>) -> Self {
        let cells = RegionMap::new(extent, Writer::Unknown);
        Self { cells, steps: FxHashMap::default(), count: 0, bound: BOUND }
    }

    /// Notes that a step writes a region.
    pub(super) fn note(&mut self, region: &Region<3>, step: &Node) {
        if self.steps.len() >= self.bound {
            self.forget();
        }
        self.count += 1;
        self.steps.insert(self.count, step.clone());
        region.boxes().iter().for_each(|range| self.cells.update(range, Writer::Step(self.count)));
    }

    /// Cuts a region into a part for each writer that has not ended, and one for the rest.
    pub(super) fn cut(&self, region: &Region<3>) -> SmallVec<[(Region<3>, Waits); 1]> {
        let mut parts = SmallVec::<[(Writer, Vec<GridBox<3>>); 1]>::new();
        for (part, &writer) in region.boxes().iter().flat_map(|range| self.cells.query(range)) {
            let writer = self.now(writer);
            match parts.iter_mut().find(|(other, _)| *other == writer) {
                Some((_, boxes)) => boxes.push(part),
                None => parts.push((writer, vec![part])),
            }
        }
        let waits = |writer: Writer| match writer {
            Writer::Unknown => Waits::AsReader,
            Writer::Ended => Waits::No,
            Writer::Step(number) => Waits::For(self.steps[&number].clone()),
        };
        parts.into_iter().map(|(writer, boxes)| (Region::from_boxes(boxes), waits(writer))).collect()
    }

    /// A writer as it is now.
    fn now(&self, writer: Writer) -> Writer {
        match writer {
            Writer::Step(number) if self.steps.get(&number).is_none_or(|step| step.is_done()) => {
                Writer::Ended
            }
            other => other,
        }
    }

    /// Forgets the steps that have ended.
    fn forget(&mut self) {
        self.steps.retain(|_, step| !step.is_done());
        self.bound = BOUND.max(2 * self.steps.len());
        let (steps, whole) = (&self.steps, GridBox::full(self.cells.extent()));
        self.cells.modify(&whole, |writer| {
            if let Writer::Step(number) = writer
                && !steps.contains_key(number)
            {
                *writer = Writer::Ended;
            }
        });
        self.cells.merge();
    }
}
