//! Horizontal places: every slot near its neighbours, and no two slots on top of each other.

use super::layered::Layered;

/// The distance between two items of a rank.
const ITEM_GAP: f64 = 28.0;
/// The distance between two edges, or an edge and an item, of a rank.
const EDGE_GAP: f64 = 18.0;

/// The number of rounds of [`place_lane`].
const ROUNDS: usize = 40;
/// The number of rounds at the end that look up and down at once.
const BALANCED: usize = 16;

/// The horizontal places of slots and lanes.
pub(super) struct Places {
    /// The middle of each slot.
    pub x: Vec<f64>,
    /// The left and right ends of each lane's contents.
    pub lanes: Vec<[f64; 2]>,
}

/// Places the slots of every rank, in the given order, lane beside lane.
pub(super) fn places(graph: &Layered, rows: &[Vec<usize>], lane_widths: &[f64], lane_gap: f64) -> Places {
    let mut x = vec![0.0; graph.slots.len()];
    let mut lanes = Vec::new();
    let mut left = 0.0;
    for (lane, &at_least) in lane_widths.iter().enumerate() {
        let own = |row: &Vec<usize>| row.iter().copied().filter(|&s| graph.slots[s].lane == lane).collect();
        let rows: Vec<Vec<usize>> = rows.iter().map(own).collect();
        place_lane(graph, &rows, &mut x);
        let slots = || rows.iter().flatten().copied();
        let half = |slot: usize| graph.slots[slot].width / 2.0;
        let low = slots().map(|s| x[s] - half(s)).fold(f64::INFINITY, f64::min);
        let high = slots().map(|s| x[s] + half(s)).fold(f64::NEG_INFINITY, f64::max);
        let width = if low <= high { high - low } else { 0.0 };
        let spare = (at_least - width).max(0.0);
        slots().for_each(|s| x[s] += left + spare / 2.0 - low);
        lanes.push([left, left + width + spare]);
        left += width + spare + lane_gap;
    }
    straighten(graph, &mut x);
    Places { x, lanes }
}

/// Moves every rank as close to its neighbours as the order allows, downwards and upwards in turn.
fn place_lane(graph: &Layered, rows: &[Vec<usize>], x: &mut [f64]) {
    for row in rows {
        let preferred = vec![(0.0, 1.0); row.len()];
        move_to(graph, row, &preferred, x);
    }
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let sides: &[usize] = if round >= ROUNDS - BALANCED {
            &[0, 1]
        } else if down {
            &[0]
        } else {
            &[1]
        };
        for i in 0..rows.len() {
            let row = if down { &rows[i] } else { &rows[rows.len() - 1 - i] };
            let preferred: Vec<_> =
                row.iter().map(|&slot| preferred_position(graph, slot, sides, x)).collect();
            move_to(graph, row, &preferred, x);
        }
    }
}

/// Takes small bends out of long edges. Edges are farther apart than two such steps, so they still do not
/// touch.
fn straighten(graph: &Layered, x: &mut [f64]) {
    let mut moved = vec![false; x.len()];
    for chain in &graph.chains {
        for pair in chain[..chain.len() - 1].windows(2) {
            let [above, slot] = [pair[0], pair[1]];
            let is_bend = !graph.slots[above].is_item && (x[above] - x[slot]).abs() <= EDGE_GAP / 3.0;
            if is_bend && !std::mem::replace(&mut moved[slot], true) {
                x[slot] = x[above];
            }
        }
    }
}

/// The preferred position of a slot, and its weight: the mean of its neighbours, where long edges weigh more.
fn preferred_position(graph: &Layered, slot: usize, sides: &[usize], x: &[f64]) -> (f64, f64) {
    let this = &graph.slots[slot];
    let (mut sum, mut total) = (0.0, 0.0);
    for &side in sides {
        for &other in &graph.neighbours[side][slot] {
            let other_slot = &graph.slots[other];
            if other_slot.lane == this.lane {
                let weight = match (this.is_item, other_slot.is_item) {
                    (true, true) => 1.0,
                    (false, false) => 8.0,
                    _ => 2.0,
                };
                sum += weight * x[other];
                total += weight;
            }
        }
    }
    if total > 0.0 { (sum / total, total) } else { (x[slot], 0.1) }
}

/// Moves the slots of a row to the positions nearest to the preferred ones (by weighted squares) that keep
/// them apart.
fn move_to(graph: &Layered, row: &[usize], preferred: &[(f64, f64)], x: &mut [f64]) {
    let gap = |a: usize, b: usize| {
        let asked = graph.apart.get(&[a.min(b), a.max(b)]).copied().unwrap_or(0.0);
        let (a, b) = (&graph.slots[a], &graph.slots[b]);
        let between = if a.is_item && b.is_item { ITEM_GAP.max(asked) } else { EDGE_GAP };
        f64::midpoint(a.width, b.width) + between
    };
    let gaps: Vec<f64> = row.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
    for (&slot, place) in row.iter().zip(apart(preferred, &gaps)) {
        x[slot] = place;
    }
}

/// The positions nearest to the preferred ones (by weighted squares), each at least the gap to the right of
/// the position before.
///
/// Without the gaps the positions must ascend. That is isotonic regression, solved by pooling adjacent
/// violators.
pub(super) fn apart(preferred: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(preferred.len()); // mean, weight, count
    let mut offset = 0.0;
    for (i, &(position, weight)) in preferred.iter().enumerate() {
        offset += if i == 0 { 0.0 } else { gaps[i - 1] };
        let mut pool = (position - offset, weight, 1);
        while let Some(&(mean, before, count)) = pools.last() {
            if mean <= pool.0 {
                break;
            }
            pool = ((mean * before + pool.0 * pool.1) / (before + pool.1), before + pool.1, count + pool.2);
            pools.pop();
        }
        pools.push(pool);
    }
    let means = pools.into_iter().flat_map(|(mean, _, count)| std::iter::repeat_n(mean, count));
    let mut offset = 0.0;
    let place = |(i, mean): (usize, f64)| {
        offset += if i == 0 { 0.0 } else { gaps[i - 1] };
        mean + offset
    };
    means.enumerate().map(place).collect()
}
