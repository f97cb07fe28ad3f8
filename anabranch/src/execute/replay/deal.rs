//! Which strand gets which unit.

use super::plan::{Part, PlannedUnit};
use anabranch_graph::repeat::UnitOrder;
use std::{collections::BTreeSet, mem};

/// How many replays show how far replays overlap. The first ones have fewer units before them.
const REPLAYS: usize = 16;

/// Deals the units to at most this many strands: the number of the strand of each unit. No strand is empty.
///
/// The chunks of a kernel are dealt in their order, so that a strand gets the same part of each index space.
/// Other units are dealt by their *level*, the length of the longest chain of units before them: those of one
/// level go to different strands. If this leaves threads without a strand, no task has several chunks, and
/// more units can run at the same time because replays overlap, each strand gets units that follow each other:
/// a pipeline.
pub(super) fn deal(units: &[PlannedUnit], orders: &[UnitOrder], threads: usize) -> Vec<usize> {
    let levels = levels(orders);
    let mut sizes = vec![0; levels.iter().max().map_or(0, |most| most + 1)];
    // The place of each unit among those of its level.
    let place = |&level: &usize| {
        sizes[level] += 1;
        sizes[level] - 1
    };
    let places: Vec<usize> = levels.iter().map(place).collect();
    let widest = units.iter().map(|unit| unit.chunks).chain(sizes.iter().copied()).max().unwrap_or(0);
    if widest < threads && units.iter().all(|unit| unit.chunks == 1) {
        let stages = threads.min(overlap(orders));
        if stages > widest {
            return (0..units.len()).map(|unit| unit * stages / units.len()).collect();
        }
    }
    let count = threads.min(widest).max(1);
    let strand_of = |unit: usize| match units[unit] {
        PlannedUnit { part: Part::Chunk(chunk), chunks: chunks @ 2.., .. } => chunk * count / chunks,
        _ => places[unit] * count / sizes[levels[unit]],
    };
    let dealt: Vec<usize> = (0..units.len()).map(strand_of).collect();
    // Strands with units get the first numbers.
    let used: BTreeSet<usize> = dealt.iter().copied().collect();
    dealt.iter().map(|strand| used.range(..strand).count()).collect()
}

/// The length of the longest chain of units of the same replay before each unit.
fn levels(orders: &[UnitOrder]) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(orders.len());
    for order in orders {
        levels.push(order.within.iter().map(|&before| levels[before] + 1).max().unwrap_or(0));
    }
    levels
}

/// How many units run at the same time on average, in many replays and with enough threads, if all units take
/// as long: the number of units, divided by the length that each replay adds to the longest chain of units.
fn overlap(orders: &[UnitOrder]) -> usize {
    // The length of the longest chain that ends with each unit, in the replays so far.
    let mut chains = vec![0_usize; orders.len()];
    let mut longest_after = |replays: usize| {
        for _ in 0..replays {
            let last = mem::replace(&mut chains, Vec::with_capacity(orders.len()));
            for (order, &own) in orders.iter().zip(&last) {
                let within = order.within.iter().map(|&before| chains[before]);
                let across = order.across.iter().map(|&before| last[before]);
                chains.push(within.chain(across).fold(own, usize::max) + 1);
            }
        }
        chains.iter().copied().max().unwrap_or(0)
    };
    let first = longest_after(REPLAYS);
    let added = longest_after(REPLAYS) - first;
    (orders.len() * REPLAYS).checked_div(added).unwrap_or(0)
}
