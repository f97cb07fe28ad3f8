//! Ranks: every node is below the nodes that it depends on, as high up as there is room.

use super::layered::{Item, Link};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The rank of every item. The ends of a directed link have different ranks, the first above the second
/// unless there is a cycle. Undirected links do not count.
///
/// A rank holds a bounded number of items of each lane, so that many independent tasks fill a page and not a
/// line.
pub(super) fn ranks(items: &[Item], links: &[Link]) -> Vec<usize> {
    let directed: Vec<[usize; 2]> = links.iter().filter(|l| l.directed).map(|l| l.ends).collect();
    let order = topological(items.len(), &directed);
    let mut position = vec![0; items.len()];
    order.iter().enumerate().for_each(|(p, &item)| position[item] = p);

    let (mut above, mut below) = (vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]);
    for [mut upper, mut lower] in directed {
        if position[upper] > position[lower] {
            std::mem::swap(&mut upper, &mut lower); // the edge closes a cycle: reverse it
        }
        above[lower].push(upper);
        below[upper].push(lower);
    }

    let mut rows = Rows::new(items);
    let mut rank = vec![0; items.len()];
    for &item in &order {
        let lowest = above[item].iter().map(|&a: &usize| rank[a] + 1).max().unwrap_or(0);
        let lane = items[item].lane;
        rank[item] = (lowest..).find(|&r| rows.has_room(r, lane)).expect("the last row is empty");
        rows.count(rank[item], lane, 1);
    }
    // An item with more links downwards than upwards moves down to the items that need it.
    for &item in order.iter().rev().filter(|&&i| below[i].len() > above[i].len()) {
        let lane = items[item].lane;
        let highest = below[item].iter().map(|&b: &usize| rank[b]).min().expect("there are some below");
        if let Some(r) = (rank[item] + 1..highest).rev().find(|&r| rows.has_room(r, lane)) {
            rows.count(rank[item], lane, -1);
            rank[item] = r;
            rows.count(r, lane, 1);
        }
    }
    without_gaps(rank)
}

/// The number of items of each lane in each rank.
struct Rows {
    counts: Vec<Vec<isize>>,
    lanes: usize,
    room: isize,
}

impl Rows {
    fn new(items: &[Item]) -> Self {
        let lanes = items.iter().map(|i| i.lane + 1).max().unwrap_or(1);
        // As many columns as rows make a picture that is wider than high, because items are.
        let side = (items.len() as f64).sqrt();
        let room = (side / lanes as f64).ceil().max(if lanes == 1 { 6.0 } else { 3.0 });
        Self { counts: Vec::new(), lanes, room: room as isize }
    }

    fn has_room(&self, rank: usize, lane: usize) -> bool {
        self.counts.get(rank).is_none_or(|row| row[lane] < self.room)
    }

    fn count(&mut self, rank: usize, lane: usize, change: isize) {
        if self.counts.len() <= rank {
            self.counts.resize(rank + 1, vec![0; self.lanes]);
        }
        self.counts[rank][lane] += change;
    }
}

/// An order in which edges go backwards only where there is a cycle.
fn topological(count: usize, edges: &[[usize; 2]]) -> Vec<usize> {
    let (mut missing, mut below) = (vec![0_usize; count], vec![Vec::new(); count]);
    for &[upper, lower] in edges {
        below[upper].push(lower);
        missing[lower] += 1;
    }
    let mut ready: BinaryHeap<_> = (0..count).filter(|&i| missing[i] == 0).map(Reverse).collect();
    let (mut done, mut order, mut next) = (vec![false; count], Vec::with_capacity(count), 0);
    while order.len() < count {
        let item = ready.pop().map(|Reverse(item)| item).unwrap_or_else(|| {
            while done[next] {
                next += 1;
            }
            next // every item that is left is in or behind a cycle: break it at the oldest
        });
        if std::mem::replace(&mut done[item], true) {
            continue;
        }
        order.push(item);
        for &lower in &below[item] {
            missing[lower] -= 1;
            if missing[lower] == 0 && !done[lower] {
                ready.push(Reverse(lower));
            }
        }
    }
    order
}

fn without_gaps(ranks: Vec<usize>) -> Vec<usize> {
    let mut used = ranks.clone();
    used.sort_unstable();
    used.dedup();
    ranks.iter().map(|rank| used.binary_search(rank).expect("every rank is used")).collect()
}
