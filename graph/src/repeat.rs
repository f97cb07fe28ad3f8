//! Tasks that are repeated together, again and again: which *unit* comes after which, in the same repetition
//! and in the next one.
//!
//! A unit is a chunk of a kernel, or a host task. It is to be executed once in each repetition, in such an
//! order that the results are those of a program that executes one unit after the other. A unit need not wait
//! for the whole repetition before: [`Repeat`] finds the units that it must wait for.
//!
//! ```
//! # use anabranch_graph::{Access, BufferId, repeat::{Repeat, Unit}};
//! # use anabranch_grid::GridBox;
//! // A sweep over two buffers, of two chunks each: u to v, and v to u.
//! let part = |from, to| GridBox::new([from, 0, 0], [to, 1, 1]);
//! let [u, v] = [BufferId(1), BufferId(2)];
//! let mut repeat = Repeat::default();
//! for (from, to) in [(u, v), (v, u)] {
//!     for [first, end] in [[0, 4], [4, 8]] {
//!         let around = part(first.max(1) - 1, (end + 1).min(8));
//!         repeat.push(Unit::of([Access::read(from, around), Access::write(to, part(first, end))]));
//!     }
//! }
//! let orders = repeat.orders();
//! // The first chunk of the second kernel reads what both chunks of the first have written.
//! assert_eq!(orders[2].within, [0, 1]);
//! // In the next repetition, the first chunk of the first kernel reads what both chunks of the second have written.
//! assert_eq!(orders[0].across, [2, 3]);
//! ```

use crate::{
    task::{Access, BufferId, Effect, GraphError, Mode, ObjectId, Submitted, TaskId},
    task_graph::TaskGraph,
};
use anabranch_grid::{Extent, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A part of a repeated task: what it accesses.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// The accesses to buffers.
    pub accesses: SmallVec<[Access; 2]>,
    /// The effects on host objects.
    pub effects: SmallVec<[Effect; 2]>,
    /// Earlier units that it comes after, whatever they access.
    pub after: Vec<usize>,
    /// Whether these units come after it in the next repetition.
    pub holds_back: bool,
}

impl Unit {
    /// A unit with these accesses to buffers.
    pub fn of(accesses: impl IntoIterator<Item = Access>) -> Self {
        Self { accesses: accesses.into_iter().collect(), ..Self::default() }
    }
}

/// The units that a unit comes after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitOrder {
    /// Units of the same repetition, ascending. They have smaller numbers.
    pub within: Vec<usize>,
    /// Units of the repetition before, ascending.
    pub across: Vec<usize>,
}

/// The units of all repeated tasks, in the order in which a program would execute them one after the other.
#[derive(Clone, Debug, Default)]
pub struct Repeat {
    units: Vec<Unit>,
}

impl Repeat {
    /// Adds the next unit. Returns its number, from 0.
    ///
    /// # Panics
    /// If it comes after a unit that was not added before.
    pub fn push(&mut self, unit: Unit) -> usize {
        let number = self.units.len();
        assert!(unit.after.iter().all(|&before| before < number), "a unit comes after earlier ones");
        self.units.push(unit);
        number
    }

    /// Adds a unit that comes after all units before it, and that all units of the next repetition come
    /// after. Returns its number, from 0.
    pub fn push_barrier(&mut self, accesses: impl IntoIterator<Item = Access>) -> usize {
        let after = (0..self.len()).collect();
        self.push(Unit { after, holds_back: true, ..Unit::of(accesses) })
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// What each unit comes after.
    ///
    /// This submits two repetitions to a task graph. What the second depends on is what each later one
    /// depends on: every repetition writes the same regions, so the last writer of an element, and its
    /// readers since, are in the same repetition or in the one before.
    pub fn orders(&self) -> Vec<UnitOrder> {
        let mut graph = Names::of(self.units.iter().flat_map(|unit| &unit.accesses));
        self.units.iter().for_each(|unit| drop(graph.submit(unit)));
        let count = self.units.len();
        let mut orders: Vec<UnitOrder> = self
            .units
            .iter()
            .map(|unit| graph.submit(unit))
            .map(|before| {
                // The ids are 1, 2 and so on, because the graph makes no horizons. What depends on nothing
                // depends on the epoch, which is 0.
                let units = before.iter().filter(|&&on| on != TaskId::EPOCH).map(|on| on.0 as usize - 1);
                let (across, within): (Vec<_>, Vec<_>) = units.partition(|&on| on < count);
                UnitOrder { within: within.into_iter().map(|on| on - count).collect(), across }
            })
            .collect();
        for (number, unit) in self.units.iter().enumerate() {
            orders[number].within.extend(&unit.after);
            if unit.holds_back {
                unit.after.iter().for_each(|&before| orders[before].across.push(number));
            }
        }
        for units in orders.iter_mut().flat_map(|order| [&mut order.within, &mut order.across]) {
            units.sort_unstable();
            units.dedup();
        }
        orders
    }

    /// What all repetitions together access, as one task: of each buffer what they read first, what they read
    /// and change, and what they overwrite, as far as there is such a part. They read nothing of a buffer
    /// that has none of these parts.
    pub fn accesses(&self) -> Vec<Access> {
        let mut all: Vec<(BufferId, Region<3>, Region<3>)> = Vec::new();
        for unit in &self.units {
            // A unit reads before it writes.
            for reads in [true, false] {
                for Access { buffer, region, mode } in &unit.accesses {
                    let at = all.iter().position(|(known, ..)| known == buffer).unwrap_or_else(|| {
                        all.push((*buffer, Region::empty(), Region::empty()));
                        all.len() - 1
                    });
                    let (_, needed, written) = &mut all[at];
                    match reads {
                        true if mode.reads() => *needed = needed.union(&region.difference(written)),
                        false if mode.writes() => *written = written.union(region),
                        _ => {}
                    }
                }
            }
        }
        let parts = all.into_iter().flat_map(|(buffer, needed, written)| {
            let parts = [
                (Mode::Read, needed.difference(&written)),
                (Mode::Update, needed.intersection(&written)),
                (Mode::Write, written.difference(&needed)),
            ];
            let is_empty = parts.iter().all(|(_, region)| region.is_empty());
            let parts = parts
                .into_iter()
                .filter(move |(mode, region)| !region.is_empty() || is_empty && *mode == Mode::Read);
            parts.map(move |(mode, region)| Access { buffer, region, mode })
        });
        parts.collect()
    }

    /// The effects of all units, one on each host object.
    pub fn effects(&self) -> Vec<Effect> {
        let mut all: Vec<Effect> = Vec::new();
        for effect in self.units.iter().flat_map(|unit| &unit.effects) {
            if all.iter().all(|known| known.object != effect.object) {
                all.push(*effect);
            }
        }
        all
    }
}

/// Checks that the accesses of one task do not contradict each other.
///
/// # Errors
/// [`GraphError::Overlap`].
pub fn check(accesses: &[Access]) -> Result<(), GraphError> {
    let names = Names::of(accesses);
    names.graph.check_accesses(&names.renamed(accesses))
}

/// A task graph with its own names for buffers and objects.
struct Names {
    graph: TaskGraph,
    buffers: FxHashMap<BufferId, BufferId>,
    objects: FxHashMap<ObjectId, ObjectId>,
    submitted: Submitted,
}

impl Names {
    /// A graph with the buffers of these accesses, which have contents. They reach as far as the accesses do.
    fn of<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> Self {
        let mut extents = FxHashMap::<BufferId, [usize; 3]>::default();
        for access in accesses {
            let extent = extents.entry(access.buffer).or_insert([0; 3]);
            let max = access.region.bounding_box().max().0;
            extent.iter_mut().zip(max).for_each(|(extent, max)| *extent = max.max(*extent));
        }
        let mut graph = TaskGraph::new();
        let create = |(name, extent)| (name, graph.create_buffer(Extent(extent), true));
        let buffers = extents.into_iter().map(create).collect();
        Self { graph, buffers, objects: FxHashMap::default(), submitted: Submitted::default() }
    }

    fn renamed(&self, accesses: &[Access]) -> Vec<Access> {
        let renamed = |access: &Access| Access { buffer: self.buffers[&access.buffer], ..access.clone() };
        accesses.iter().map(renamed).collect()
    }

    /// Submits a unit. Returns what it depends on.
    fn submit(&mut self, unit: &Unit) -> SmallVec<[TaskId; 4]> {
        let accesses = self.renamed(&unit.accesses);
        let effects = unit.effects.iter().map(|effect| {
            let object = *self.objects.entry(effect.object).or_insert_with(|| self.graph.create_object());
            Effect { object, ..*effect }
        });
        let effects: SmallVec<[Effect; 2]> = effects.collect();
        let accepted = self.graph.submit_into(&accesses, &effects, &|_| false, &mut self.submitted);
        accepted.expect("the accesses were checked, and all buffers have contents");
        self.submitted.dependencies.iter().map(|dependency| dependency.on).collect()
    }
}
