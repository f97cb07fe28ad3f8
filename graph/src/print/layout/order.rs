//! The order within the ranks: the barycenter heuristic, then exchanges of neighbours, to have few crossings.
//!
//! Every lane is ordered without regard to the others, so that nodes of the machine that do the same look the
//! same.

use super::layered::Layered;

/// The slots of each rank from left to right, lane by lane.
pub(super) fn ordered(graph: &Layered) -> Vec<Vec<usize>> {
    let graph = &Graph::within_lanes(graph);
    let mut rows = first_order(graph);
    let (mut best, mut fewest, mut stale) = (rows.clone(), crossings(graph, &rows), 0);
    for round in 0..24 {
        if fewest == 0 || stale == 6 {
            break;
        }
        sweep(graph, &mut rows, round % 2);
        let count = crossings(graph, &rows);
        if count < fewest {
            (best, fewest, stale) = (rows.clone(), count, 0);
        } else {
            stale += 1;
        }
    }
    exchange(graph, &mut best);
    center_trunks(graph, &mut best);
    best
}

/// The slots, and what joins them within their lanes.
struct Graph {
    ranks: usize,
    rank: Vec<usize>,
    lane: Vec<usize>,
    is_item: Vec<bool>,
    neighbours: [Vec<Vec<usize>>; 2],
}

impl Graph {
    fn within_lanes(graph: &Layered) -> Self {
        let lane: Vec<usize> = graph.slots.iter().map(|slot| slot.lane).collect();
        let mut neighbours = graph.neighbours.clone();
        for side in &mut neighbours {
            for (slot, near) in side.iter_mut().enumerate() {
                near.retain(|&other| lane[other] == lane[slot]);
            }
        }
        let rank = graph.slots.iter().map(|slot| slot.rank).collect();
        let is_item = graph.slots.iter().map(|slot| slot.is_item).collect();
        Self { ranks: graph.ranks, rank, lane, is_item, neighbours }
    }
}

/// The order in which a depth-first walk from the top meets the slots, so that connected slots start close
/// together.
fn first_order(graph: &Graph) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new(); graph.ranks];
    let mut seen = vec![false; graph.lane.len()];
    let mut starts: Vec<usize> = (0..graph.lane.len()).collect();
    starts.sort_by_key(|&slot| graph.rank[slot]);
    for start in starts {
        let mut stack = vec![start];
        while let Some(slot) = stack.pop() {
            if !std::mem::replace(&mut seen[slot], true) {
                rows[graph.rank[slot]].push(slot);
                stack.extend(graph.neighbours[1][slot].iter().rev());
            }
        }
    }
    for row in &mut rows {
        row.sort_by_key(|&slot| graph.lane[slot]);
    }
    rows
}

fn positions(graph: &Graph, rows: &[Vec<usize>]) -> Vec<usize> {
    let mut at = vec![0; graph.lane.len()];
    for row in rows {
        row.iter().enumerate().for_each(|(p, &slot)| at[slot] = p);
    }
    at
}

/// Sorts every rank by the mean position of the neighbours in the rank above (side 0) or below (side 1).
fn sweep(graph: &Graph, rows: &mut [Vec<usize>], side: usize) {
    let mut at = positions(graph, rows);
    let count = rows.len();
    for step in 1..count {
        let (rank, fixed) = if side == 0 { (step, step - 1) } else { (count - 1 - step, count - step) };
        // A slot without neighbours there stays about where it is.
        let scale = rows[fixed].len() as f64 / rows[rank].len() as f64;
        let key = |slot: usize| {
            let near = &graph.neighbours[side][slot];
            match near.len() {
                0 => at[slot] as f64 * scale,
                n => near.iter().map(|&other| at[other]).sum::<usize>() as f64 / n as f64,
            }
        };
        let mut keyed: Vec<_> = rows[rank].iter().map(|&slot| (graph.lane[slot], key(slot), slot)).collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        rows[rank] = keyed.into_iter().map(|(_, _, slot)| slot).collect();
        rows[rank].iter().enumerate().for_each(|(p, &slot)| at[slot] = p);
    }
}

/// The number of pairs of edges that cross.
fn crossings(graph: &Graph, rows: &[Vec<usize>]) -> usize {
    let at = positions(graph, rows);
    rows.windows(2).map(|pair| crossings_between(graph, &pair[0], pair[1].len(), &at)).sum()
}

/// The number of pairs of edges below a rank that cross.
///
/// In the order of the upper ends, every pair of lower ends in the wrong order is a crossing. A binary
/// indexed tree over the lower rank counts them.
fn crossings_between(graph: &Graph, upper: &[usize], lower_count: usize, at: &[usize]) -> usize {
    let mut tree = vec![0_usize; lower_count + 1];
    let (mut total, mut placed) = (0, 0);
    for &slot in upper {
        let mut lower: Vec<_> = graph.neighbours[1][slot].iter().map(|&slot| at[slot]).collect();
        lower.sort_unstable();
        for &p in &lower {
            let mut not_right = 0;
            let mut i = p + 1;
            while i > 0 {
                not_right += tree[i];
                i &= i - 1;
            }
            total += placed - not_right;
        }
        placed += lower.len();
        for &p in &lower {
            let mut i = p + 1;
            while i < tree.len() {
                tree[i] += 1;
                i += i & i.wrapping_neg();
            }
        }
    }
    total
}

/// Moves the trunks of bundles into the middle of their siblings where that adds no crossing, so that the end
/// of a long trunk stays below its start.
fn center_trunks(graph: &Graph, rows: &mut [Vec<usize>]) {
    let at = positions(graph, rows);
    for rank in 1..rows.len().saturating_sub(1) {
        let alike = |a: &usize, b: &usize| {
            graph.lane[*a] == graph.lane[*b] && graph.neighbours[0][*a] == graph.neighbours[0][*b]
        };
        let mut row = Vec::with_capacity(rows[rank].len());
        for run in rows[rank].chunk_by(alike) {
            let (items, trunks): (Vec<usize>, Vec<usize>) =
                run.iter().partition(|&&slot| graph.is_item[slot]);
            // The sides take turns to get the odd item, so that the trunk does not drift.
            let (left, right) = items.split_at((items.len() + rank % 2) / 2);
            row.extend(left.iter().chain(&trunks).chain(right));
        }
        let count = |row: &[usize]| crossings_between(graph, row, rows[rank + 1].len(), &at);
        if count(&row) <= count(&rows[rank]) {
            rows[rank] = row;
        }
    }
}

/// Exchanges neighbours in a rank while that removes crossings, in at most eight passes.
fn exchange(graph: &Graph, rows: &mut [Vec<usize>]) {
    let mut at = positions(graph, rows);
    for _ in 0..8 {
        let mut changed = false;
        for row in rows.iter_mut() {
            for i in 1..row.len() {
                let (left, right) = (row[i - 1], row[i]);
                if graph.lane[left] == graph.lane[right] && gains(graph, &at, left, right) {
                    row.swap(i - 1, i);
                    at.swap(left, right);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
}

/// Whether two neighbours cause fewer crossings the other way round.
fn gains(graph: &Graph, at: &[usize], left: usize, right: usize) -> bool {
    let (mut now, mut then) = (0, 0);
    for side in &graph.neighbours {
        for &l in &side[left] {
            for &r in &side[right] {
                now += usize::from(at[l] > at[r]);
                then += usize::from(at[l] < at[r]);
            }
        }
    }
    then < now
}
