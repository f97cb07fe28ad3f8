//! Which other nodes read a region, by bisection.
//!
//! To find these nodes, no node evaluates the mappers of all chunks. The box of a run of consecutive chunks
//! is mapped as if it were one chunk. Mappers are monotonic, so if the run's region does not meet the wanted
//! one, no chunk of the run does. Otherwise both halves of the run are visited, and of a short run each
//! chunk. Finding a node takes a number of mapper calls that grows with the logarithm of the number of
//! chunks.

use super::{access::AccessShape, evaluate::Shape};
use crate::command::types::{NodeId, NodeRegions, Rank};
use anabranch_grid::Region;
use std::ops::Range;

/// Called with a node and the region that its chunk reads. Returns whether to go on.
type Visit<'a> = &'a mut dyn FnMut(NodeId, Region<3>) -> bool;

impl Shape {
    /// The nodes other than this one that read a part of `wanted` of an operand, and the part that each
    /// reads. Ascending, each node once.
    pub(in crate::command) fn other_readers(
        &self,
        rank: Rank,
        operand: usize,
        wanted: &Region<3>,
    ) -> NodeRegions {
        let mut found = NodeRegions::new();
        for access in self.reads(operand) {
            self.visit_readers(rank, access, wanted, &mut |node, part| {
                match found.last_mut() {
                    Some((last, region)) if *last == node => *region = region.union(&part),
                    _ => found.push((node, part)),
                }
                true
            });
        }
        if !found.is_sorted_by(|a, b| a.0 < b.0) {
            found.sort_by_key(|part| part.0);
            found.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = kept.1.union(&next.1);
                }
                same
            });
        }
        found
    }

    /// The region of an operand that all nodes read, if they are known to read the same and each has a chunk.
    /// The answer is the same on every node.
    pub(in crate::command) fn read_by_all(&self, nodes: u16, operand: usize) -> Option<Region<3>> {
        let (split, chunks) = (&self.split, self.split.chunks());
        let have_chunks = chunks == nodes.into() && !(0..chunks).any(|chunk| split.is_empty(chunk));
        if !split.everywhere && !have_chunks {
            return None;
        }
        let constant = self.reads(operand).filter(|access| split.everywhere || access.map.is_constant());
        let region = constant.fold(Region::empty(), |all, access| all.union(&access.whole));
        let is_all = self.reads(operand).all(|access| access.whole.difference(&region).is_empty());
        (is_all && !region.is_empty()).then_some(region)
    }

    /// Whether a node before this one reads a part of `wanted`, and whether a node after it does. The second
    /// answer counts only if both the first one and this node's own reads say no.
    pub(in crate::command) fn readers_around(
        &self,
        rank: Rank,
        operand: usize,
        wanted: &Region<3>,
    ) -> [bool; 2] {
        let mut found = [false; 2];
        for access in self.reads(operand) {
            self.visit_readers(rank, access, wanted, &mut |node, _| {
                found[usize::from(node > rank.me)] = true;
                // The first reader of an access says whether one precedes; if none does, it says that one
                // follows.
                false
            });
        }
        found
    }

    /// Calls `visit` with the chunks of other nodes that read a part of `wanted`, in order, while it returns
    /// true.
    fn visit_readers(&self, rank: Rank, access: &AccessShape, wanted: &Region<3>, visit: Visit<'_>) {
        if self.split.everywhere {
            let part = access.whole.intersection(wanted);
            if !part.is_empty() {
                let mut others = (0..rank.nodes).map(NodeId).filter(|&node| node != rank.me);
                others.all(|node| visit(node, part.clone()));
            }
        } else if self.split.chunks() > self.own.len() {
            self.bisect(access, 0..self.split.chunks(), &access.whole, wanted, visit);
        }
    }

    /// Visits the chunks of a run that read a part of `wanted`. `region` is the region of the run. Returns
    /// whether to go on.
    fn bisect(
        &self,
        access: &AccessShape,
        run: Range<usize>,
        region: &Region<3>,
        wanted: &Region<3>,
        visit: Visit<'_>,
    ) -> bool {
        if !region.intersects(wanted) {
            return true;
        }
        if run.len() == 1 {
            return visit(self.split.node_of(run.start), region.intersection(wanted));
        }
        let mut go_on = |part: Range<usize>| {
            if self.own.start <= part.start && part.end <= self.own.end {
                return true;
            }
            let range = self.split.range(part.clone());
            if range.is_empty() {
                return true;
            }
            let region = access.map.region(&self.split, range);
            self.bisect(access, part, &region, wanted, visit)
        };
        // To look at four chunks takes four calls if one of them is found by bisection, and more if several
        // are.
        if run.len() <= 4 {
            return run.into_iter().all(|chunk| go_on(chunk..chunk + 1));
        }
        let middle = self.split.middle(&run);
        [run.start..middle, middle..run.end].into_iter().all(go_on)
    }
}
