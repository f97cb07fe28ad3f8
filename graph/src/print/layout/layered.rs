//! The graph in layers: items and links as the caller gives them, and long edges cut into pieces between
//! neighbouring ranks.

use std::collections::HashMap;

/// The size of a node, and the lane that it is drawn in.
#[derive(Clone, Copy, Debug)]
pub(in crate::print) struct Item {
    pub width: f64,
    pub height: f64,
    pub lane: usize,
}

/// An edge between two different items.
#[derive(Clone, Debug)]
pub(in crate::print) struct Link {
    pub ends: [usize; 2],
    /// Whether the second end must be below the first.
    pub directed: bool,
    /// Links of one group that leave an item downwards form one bundle.
    pub group: Option<usize>,
    /// The size of the label, if there is one.
    pub label: Option<[f64; 2]>,
}

/// A place in a rank, taken by an item or by an edge that passes through.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub rank: usize,
    pub lane: usize,
    pub width: f64,
    pub is_item: bool,
}

/// The graph with long edges cut into pieces between neighbouring ranks.
pub(super) struct Layered {
    /// The slots of the items, then those of the edges.
    pub slots: Vec<Slot>,
    pub ranks: usize,
    /// For each slot, its neighbours in the rank above (0) and in the rank below (1).
    pub neighbours: [Vec<Vec<usize>>; 2],
    /// For linked items of one rank, the distance that they need if they are next to each other.
    pub apart: HashMap<[usize; 2], f64>,
    /// For each link, the slots that it passes from top to bottom; only the two ends if both are in one rank.
    pub chains: Vec<Vec<usize>>,
}

/// The part of a line between two items of a rank that shows beside its label.
const FLAT_GAP: f64 = 28.0;

impl Layered {
    pub fn new(items: &[Item], links: &[Link], ranks: &[usize]) -> Self {
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

    /// Extends a trunk, which starts at an item, down to the rank above `lower`. Returns the slots from its
    /// item to `lower`.
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
