//! Where nodes and edges go: a layered drawing, from top to bottom.
//!
//! Four steps, a module each: every node gets a *rank*, below all that it depends on ([`rank`]); within the ranks the
//! nodes are *ordered* so that few edges cross ([`order`]), then *placed* near their neighbours ([`place`]), and the
//! edges are *routed* ([`route`]). An edge across several ranks passes through a slot of its own in each of them, so
//! no edge runs through a node. Nodes of one cluster share a *lane*, a column of its own; ranks go across all lanes.

mod order;
mod place;
mod rank;
mod route;

pub(super) use route::{Layout, Route};

use std::collections::HashMap;

/// The size of a node, and the lane that it is drawn in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub width: f64,
    pub height: f64,
    pub lane: usize,
}

/// An edge between two different items.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub ends: [usize; 2],
    /// Whether the second end has to be below the first.
    pub directed: bool,
    /// Links that leave an item downwards and are of one group do so as one bundle.
    pub group: Option<usize>,
    /// The size of the label, if there is one.
    pub label: Option<[f64; 2]>,
}

/// A place in a rank that is taken by an item or by an edge on its way through.
#[derive(Clone, Debug)]
struct Slot {
    rank: usize,
    lane: usize,
    width: f64,
    is_item: bool,
}

/// The graph with long edges cut into pieces between neighbouring ranks.
struct Layered {
    /// The items, then the slots of the edges.
    slots: Vec<Slot>,
    ranks: usize,
    /// For each slot, those joined to it in the rank above (0) and in the rank below (1).
    neighbours: [Vec<Vec<usize>>; 2],
    /// For items joined within a rank, how far apart they have to be if they are next to each other.
    apart: HashMap<[usize; 2], f64>,
    /// For each link, the slots that it passes from top to bottom; the two ends alone if both are in one rank.
    chains: Vec<Vec<usize>>,
}

/// Lays out `items`, whose lanes are `0..lane_widths.len()`, each at least as wide as asked for.
pub(super) fn lay_out(items: &[Item], links: &[Link], lane_widths: &[f64], framed: bool) -> Layout {
    let ranks = rank::ranks(items, links);
    let layered = Layered::new(items, links, &ranks);
    let order = order::ordered(&layered);
    let places = place::places(&layered, &order, lane_widths, if framed { LANE_GAP } else { 0.0 });
    route::routed(items, links, &layered, &order, places, framed)
}

/// Between the contents of two lanes: their margins and what is between their frames.
const LANE_GAP: f64 = 52.0;

/// What shows of a line between two items, beside its label.
const FLAT_GAP: f64 = 28.0;

impl Layered {
    fn new(items: &[Item], links: &[Link], ranks: &[usize]) -> Self {
        let slots: Vec<_> = std::iter::zip(items, ranks)
            .map(|(item, &rank)| Slot { rank, lane: item.lane, width: item.width, is_item: true })
            .collect();
        let mut this = Self {
            ranks: ranks.iter().max().map_or(0, |r| r + 1),
            neighbours: [vec![Vec::new(); slots.len()], vec![Vec::new(); slots.len()]],
            slots,
            apart: HashMap::new(),
            chains: Vec::with_capacity(links.len()),
        };
        let mut bundles = HashMap::new();
        for (i, link) in links.iter().enumerate() {
            let [mut upper, mut lower] = link.ends;
            if ranks[lower] < ranks[upper] {
                std::mem::swap(&mut upper, &mut lower);
            }
            let bundle = match link.group {
                Some(group) => (upper, group, usize::MAX),
                None => (upper, usize::MAX, i),
            };
            let trunk = bundles.entry(bundle).or_insert_with(|| vec![upper]);
            let chain = this.chain(trunk, lower);
            if chain.len() == 2 && ranks[upper] == ranks[lower] {
                let gap = link.label.map_or(0.0, |[width, _]| width) + FLAT_GAP;
                let widest = this.apart.entry([upper.min(lower), upper.max(lower)]).or_insert(gap);
                *widest = gap.max(*widest);
            }
            this.chains.push(chain);
        }
        for side in &mut this.neighbours {
            for list in side {
                list.sort_unstable();
                list.dedup();
            }
        }
        this
    }

    /// Leads a trunk, which starts at an item, down to another item.
    fn chain(&mut self, trunk: &mut Vec<usize>, lower: usize) -> Vec<usize> {
        let (top, bottom) = (self.slots[trunk[0]].rank, self.slots[lower].rank);
        if top == bottom {
            return vec![trunk[0], lower];
        }
        while top + trunk.len() < bottom {
            let slot = self.slots.len();
            let lane = self.slots[trunk[0]].lane;
            self.slots.push(Slot { rank: top + trunk.len(), lane, width: 2.0, is_item: false });
            self.neighbours.iter_mut().for_each(|side| side.push(Vec::new()));
            self.join(trunk[trunk.len() - 1], slot);
            trunk.push(slot);
        }
        let mut chain = trunk[..bottom - top].to_vec();
        self.join(chain[chain.len() - 1], lower);
        chain.push(lower);
        chain
    }

    fn join(&mut self, upper: usize, lower: usize) {
        self.neighbours[1][upper].push(lower);
        self.neighbours[0][lower].push(upper);
    }
}

#[cfg(test)]
mod tests;
