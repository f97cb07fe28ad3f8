//! Plans: the units of recorded tasks, dealt to strands.

use super::deal::deal;
use anabranch_graph::repeat::UnitOrder;
use smallvec::SmallVec;
use std::{mem, ops::Range};

/// What a unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It calls the function of the task for this chunk.
    Chunk(usize),
    /// It combines the results of the chunks of a reduction.
    End,
}

/// A unit, as a plan gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedUnit {
    /// The number of its task.
    pub(crate) task: usize,
    pub(crate) part: Part,
    /// The number of chunks of its task; 1 if they run one after the other.
    pub(crate) chunks: usize,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// It calls the function of the task for each of these chunks.
    Chunks(Range<usize>),
    /// See [`Part::End`].
    End,
}

impl From<Part> for Parts {
    fn from(part: Part) -> Self {
        match part {
            Part::Chunk(chunk) => Self::Chunks(chunk..chunk + 1),
            Part::End => Self::End,
        }
    }
}

/// A step of a strand: a unit, or chunks of one task that follow each other.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) task: usize,
    pub(crate) parts: Parts,
    /// The number of its first unit among all units. Those of its other units follow.
    pub(super) unit: u64,
    /// What its first unit waits for. The others wait for no other strand.
    pub(super) waits: SmallVec<[Wait; 2]>,
    /// Whether a unit of another strand waits until the last unit of this step is done. Then the thread
    /// stores how many steps of the strand are done. No strand waits for one of the other units.
    pub(super) is_awaited: bool,
}

impl Step {
    /// Joins the next step of the strand with this one, if its chunks follow on those of this one and no
    /// strand waits between them. Returns whether it has done so.
    fn join(&mut self, next: &Self) -> bool {
        if self.task != next.task || self.is_awaited || !next.waits.is_empty() {
            return false;
        }
        let (Parts::Chunks(chunks), Parts::Chunks(more)) = (&mut self.parts, &next.parts) else {
            return false;
        };
        if chunks.end != more.start {
            return false;
        }
        (chunks.end, self.is_awaited) = (more.end, next.is_awaited);
        true
    }
}

/// What a step waits for in another strand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) strand: usize,
    /// In replay `r`, `r` times the length of that strand and this many steps more must be done. A negative
    /// number stands for a step of the replay before.
    pub(super) more: i64,
}

impl Wait {
    /// The last step that must be done in a strand of this length, and its replay: 0 for the same one, -1 for
    /// the one before.
    fn awaited(self, length: usize) -> (usize, i64) {
        let (last, length) = (self.more - 1, length as i64);
        (last.rem_euclid(length) as usize, last.div_euclid(length))
    }
}

/// All units of one replay, in strands.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) strands: Vec<Vec<Step>>,
    /// The number of units.
    pub(super) units: u64,
}

impl Plan {
    /// [Deals](deal) the units to at most this many strands. `orders` has what each unit comes after.
    pub(crate) fn new(units: &[PlannedUnit], orders: &[UnitOrder], threads: usize) -> Self {
        let dealt = deal(units, orders, threads);
        let mut strands: Vec<Vec<Step>> = Vec::new();
        strands.resize_with(dealt.iter().max().map_or(0, |last| last + 1), Vec::new);
        // The strand of each unit, and how many units of the strand are done when it is.
        let mut at = Vec::with_capacity(units.len());
        for (unit, &PlannedUnit { task, part, .. }) in (0..).zip(units) {
            let strand = dealt[unit as usize];
            strands[strand].push(Step {
                task,
                parts: part.into(),
                unit,
                waits: SmallVec::new(),
                is_awaited: false,
            });
            at.push((strand, strands[strand].len()));
        }
        for (unit, order) in orders.iter().enumerate() {
            let (own, place) = at[unit];
            let within = order.within.iter().map(|&before| (at[before], 0));
            let across = order.across.iter().map(|&before| (at[before], 1));
            let mut waits = SmallVec::<[Wait; 2]>::new();
            // A strand is in order by itself.
            for ((strand, done), back) in within.chain(across).filter(|((strand, _), _)| *strand != own) {
                let more = done as i64 - back * strands[strand].len() as i64;
                match waits.iter_mut().find(|wait| wait.strand == strand) {
                    Some(wait) => wait.more = more.max(wait.more),
                    None => waits.push(Wait { strand, more }),
                }
            }
            strands[own][place - 1].waits = waits;
        }
        leave_out_earlier_waits(&mut strands);
        mark_awaited_steps(&mut strands);
        join_steps(&mut strands);
        Self { strands, units: units.len() as u64 }
    }

    /// The number of strands.
    pub(crate) fn strands(&self) -> usize {
        self.strands.len()
    }
}

/// Leaves out each wait that an earlier unit of the same strand implies, in the same replay or in the one
/// before.
fn leave_out_earlier_waits(strands: &mut [Vec<Step>]) {
    let lengths: Vec<i64> = strands.iter().map(|steps| steps.len() as i64).collect();
    for steps in strands {
        // How many units of each strand are known to be done: when a replay begins, those that the one before
        // has waited for. In the first replay that holds, too: a unit of the replay before counts as done.
        let mut known: Vec<i64> = lengths.iter().map(|length| -length).collect();
        for wait in steps.iter().flat_map(|step| &step.waits) {
            known[wait.strand] = known[wait.strand].max(wait.more - lengths[wait.strand]);
        }
        for step in steps {
            step.waits.retain(|wait| wait.more > known[wait.strand]);
            step.waits.iter().for_each(|wait| known[wait.strand] = wait.more);
        }
    }
}

/// Marks the steps for which other strands wait.
fn mark_awaited_steps(strands: &mut [Vec<Step>]) {
    let waits: Vec<Wait> = strands.iter().flatten().flat_map(|step| &step.waits).copied().collect();
    for wait in waits {
        let steps = &mut strands[wait.strand];
        let (awaited, _) = wait.awaited(steps.len());
        steps[awaited].is_awaited = true;
    }
}

/// Joins steps: what a thread does around a step costs as much as a small chunk.
fn join_steps(strands: &mut [Vec<Step>]) {
    // Where each former step is now.
    let mut places: Vec<Vec<usize>> = Vec::with_capacity(strands.len());
    for steps in strands.iter_mut() {
        let (mut joined, mut of_strand) = (Vec::<Step>::new(), Vec::with_capacity(steps.len()));
        for step in mem::take(steps) {
            if !joined.last_mut().is_some_and(|last| last.join(&step)) {
                joined.push(step);
            }
            of_strand.push(joined.len() - 1);
        }
        *steps = joined;
        places.push(of_strand);
    }
    let lengths: Vec<usize> = strands.iter().map(Vec::len).collect();
    for wait in strands.iter_mut().flatten().flat_map(|step| &mut step.waits) {
        let places = &places[wait.strand];
        let (awaited, replays) = wait.awaited(places.len());
        wait.more = replays * lengths[wait.strand] as i64 + places[awaited] as i64 + 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn order(within: &[usize], across: &[usize]) -> UnitOrder {
        UnitOrder { within: within.to_vec(), across: across.to_vec() }
    }

    fn chunk(task: usize, chunk: usize, chunks: usize) -> PlannedUnit {
        PlannedUnit { task, part: Part::Chunk(chunk), chunks }
    }

    #[test]
    fn strands_get_the_same_chunks_of_all_kernels() {
        // Two kernels of four chunks, each chunk after its neighbours in the kernel before.
        let around = |c: usize| (c.saturating_sub(1)..=(c + 1).min(3)).collect::<Vec<_>>();
        let units: Vec<_> = (0..8).map(|unit| chunk(unit / 4, unit % 4, 4)).collect();
        let orders: Vec<_> = (0..8)
            .map(|unit| match unit {
                0..4 => order(&[], &around(unit).iter().map(|c| c + 4).collect::<Vec<_>>()),
                _ => order(&around(unit - 4), &[]),
            })
            .collect();
        let plan = Plan::new(&units, &orders, 2);
        let parts = |strand: usize| {
            plan.strands[strand].iter().map(|step| (step.task, step.parts.clone())).collect::<Vec<_>>()
        };
        let chunks = [(0, 0), (0, 1), (1, 0), (1, 1)];
        assert_eq!(parts(0), chunks.map(|(task, chunk)| (task, Part::Chunk(chunk).into())));
        assert_eq!(parts(1), chunks.map(|(task, chunk)| (task, Part::Chunk(chunk + 2).into())));
        let waits =
            |strand: usize| plan.strands[strand].iter().map(|step| step.waits.to_vec()).collect::<Vec<_>>();
        // The chunks at the border wait for one step of the other strand: of this replay, or of the one
        // before.
        let on = |strand, more| vec![Wait { strand, more }];
        assert_eq!(waits(0), [vec![], on(1, -1), vec![], on(1, 1)]);
        assert_eq!(waits(1), [on(0, 0), vec![], on(0, 2), vec![]]);
        let awaited =
            |strand: usize| plan.strands[strand].iter().map(|step| step.is_awaited).collect::<Vec<_>>();
        assert_eq!(awaited(0), [false, true, false, true]);
        assert_eq!(awaited(1), [true, false, true, false]);
    }

    #[test]
    fn chunks_between_which_no_strand_waits_are_one_step() {
        // A kernel of twelve chunks, each after its neighbours in the replay before.
        let units: Vec<_> = (0..12).map(|unit| chunk(0, unit, 12)).collect();
        let around = |c: usize| (c.saturating_sub(1)..=(c + 1).min(11)).collect::<Vec<_>>();
        let orders: Vec<_> = (0..12).map(|unit| order(&[], &around(unit))).collect();
        let plan = Plan::new(&units, &orders, 2);
        let steps = |strand: usize| {
            let steps = plan.strands[strand].iter();
            steps.map(|step| (step.parts.clone(), step.unit, step.waits.to_vec())).collect::<Vec<_>>()
        };
        let (chunks, wait) = (Parts::Chunks, |strand, more| vec![Wait { strand, more }]);
        assert_eq!(steps(0), [(chunks(0..5), 0, vec![]), (chunks(5..6), 5, wait(1, -1))]);
        assert_eq!(steps(1), [(chunks(6..7), 6, wait(0, 0)), (chunks(7..12), 7, vec![])]);
        // One thread does all at once. Chunks of different tasks and ends of reductions are steps of their
        // own.
        assert_eq!(Plan::new(&units, &orders, 1).strands[0].len(), 1);
        let end = PlannedUnit { task: 1, part: Part::End, chunks: 2 };
        let units = [chunk(0, 0, 1), chunk(1, 0, 2), chunk(1, 1, 2), end];
        let orders = [order(&[], &[]), order(&[], &[]), order(&[], &[]), order(&[1, 2], &[])];
        let plan = Plan::new(&units, &orders, 1);
        let parts: Vec<_> = plan.strands[0].iter().map(|step| step.parts.clone()).collect();
        assert_eq!(parts, [chunks(0..1), chunks(0..2), Parts::End]);
    }

    #[test]
    fn single_units_of_one_level_go_to_different_strands() {
        let units: Vec<_> = (0..4).map(|task| chunk(task, 0, 1)).collect();
        let chains = [order(&[], &[2]), order(&[], &[3]), order(&[0], &[]), order(&[1], &[])];
        let plan = Plan::new(&units, &chains, 8);
        let tasks = |strand: usize| plan.strands[strand].iter().map(|step| step.task).collect::<Vec<_>>();
        assert_eq!((plan.strands(), tasks(0), tasks(1)), (2, vec![0, 2], vec![1, 3]));
        assert!(plan.strands.iter().flatten().all(|step| step.waits.is_empty()));
        // A chain whose begin waits for its end needs one thread only.
        let chain = [order(&[], &[3]), order(&[0], &[]), order(&[1], &[]), order(&[2], &[])];
        assert_eq!(Plan::new(&units, &chain, 8).strands(), 1);
        // So do the points of a batch that an effect orders, as one step.
        let points: Vec<_> = (0..4).map(|point| chunk(0, point, 1)).collect();
        let plan = Plan::new(&points, &chain, 8);
        assert_eq!((plan.strands(), plan.strands[0].len()), (1, 1));
        // A pipeline: a unit of the next replay begins when the unit behind it is done. Half of the units can
        // run at the same time.
        let pipeline = |count: usize| -> (Vec<_>, Vec<_>) {
            let units = (0..count).map(|task| chunk(task, 0, 1)).collect();
            let behind = |unit: usize| if unit + 1 < count { vec![unit + 1] } else { vec![] };
            let before = |unit: usize| unit.checked_sub(1).into_iter().collect::<Vec<_>>();
            (units, (0..count).map(|unit| order(&before(unit), &behind(unit))).collect())
        };
        for (count, threads, strands) in [(8, 8, 4), (8, 3, 3), (8, 2, 2), (8, 1, 1), (3, 8, 1)] {
            let (units, orders) = pipeline(count);
            let plan = Plan::new(&units, &orders, threads);
            let tasks = plan.strands.iter().flatten().map(|step| step.task);
            assert_eq!(
                (plan.strands(), tasks.collect::<Vec<_>>()),
                (strands, (0..count).collect::<Vec<_>>())
            );
            assert!(plan.strands.iter().all(|strand| strand.len() >= count / strands));
        }
        // Three kernels of three chunks, each of which needs all chunks of the kernel before: as many strands.
        let all = |kernel: usize| (3 * kernel..3 * kernel + 3).collect::<Vec<_>>();
        let (units, orders): (Vec<_>, Vec<_>) = (0..9)
            .map(|unit| (chunk(unit / 3, unit % 3, 3), unit / 3))
            .map(|(unit, kernel)| {
                (unit, kernel.checked_sub(1).map_or(order(&[], &all(2)), |k| order(&all(k), &[])))
            })
            .unzip();
        assert_eq!(Plan::new(&units, &orders, 4).strands.iter().map(Vec::len).collect::<Vec<_>>(), [3; 3]);
        // What waits for all others, and holds all up: each strand waits once.
        let mut all = chains.to_vec();
        all.iter_mut().for_each(|order| order.across.push(4));
        all.push(order(&[0, 1, 2, 3], &[]));
        let units: Vec<_> = (0..5).map(|task| chunk(task, 0, 1)).collect();
        let plan = Plan::new(&units, &all, 8);
        let waits = |strand: usize| plan.strands[strand].iter().map(|step| step.waits.to_vec());
        assert_eq!(waits(0).collect::<Vec<_>>(), [vec![], vec![], vec![Wait { strand: 1, more: 2 }]]);
        assert_eq!(waits(1).collect::<Vec<_>>(), [vec![Wait { strand: 0, more: 0 }], vec![]]);
        // Two kernels of two chunks, side by side, leave no strand empty.
        let units: Vec<_> = (0..4).map(|unit| chunk(unit / 2, unit % 2, 2)).collect();
        let plan = Plan::new(&units, &vec![UnitOrder::default(); 4], 8);
        assert!(plan.strands() == 2 && plan.strands.iter().all(|strand| strand.len() == 2));
    }
}
