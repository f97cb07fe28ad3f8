//! Explicit conflicts as anonymous objects, few of them: a cover of the conflict graph by stars and cliques.
//!
//! A task with partners joins *exclusively* an object all of whose members are partners (so a clique, however large, ends up
//! as one object). For every partner that this does not cover it joins *relaxed* the partner's star, an object on which
//! the partner alone is exclusive. So there are at most as many objects as tasks, and no more effects than conflicts and
//! stars.

use super::{ConflictScheduler, objects::Member};
use crate::task::TaskId;

/// How many effects of a partner are looked at for a clique to join: the time to insert is linear in the partners.
const LOOKED_AT: usize = 4;
/// A smaller clique is not worth joining: its object is no longer a star for the next ones.
const CLIQUE: u32 = 3;

impl ConflictScheduler {
    /// Gives the task in `slot` conflicts with `partners`, as far as these have not finished.
    pub(super) fn cover(&mut self, slot: usize, partners: &[TaskId]) {
        self.insertions += 1;
        let mut found = std::mem::take(&mut self.partners);
        for partner in partners.iter().filter_map(|id| self.slots.get(id)) {
            let task = &mut self.tasks[*partner as usize];
            let new = task.insertion != self.insertions && *partner as usize != slot;
            task.insertion = self.insertions;
            if new {
                found.push(*partner);
            }
        }
        if found.len() >= CLIQUE as usize {
            found.iter().for_each(|&partner| self.hit(partner as usize));
        }
        for &partner in &found {
            if !self.join_clique(slot, partner as usize) {
                let star = self.star(partner as usize);
                self.enter(slot, Member::new(star, false));
            }
        }
        found.clear();
        self.partners = found;
    }

    /// The effects through which a clique may be found.
    fn looked_at(&self, slot: usize) -> impl Iterator<Item = usize> + use<> {
        let members = &self.tasks[slot].members;
        let start = self.tasks[slot].named as usize;
        let looked_at: smallvec::SmallVec<[usize; LOOKED_AT]> =
            members[start..].iter().take(LOOKED_AT).map(|m| m.object()).collect();
        looked_at.into_iter()
    }

    fn hit(&mut self, partner: usize) {
        for object in self.looked_at(partner) {
            let object = &mut self.objects[object];
            if object.insertion != self.insertions {
                (object.insertion, object.hits, object.joined) = (self.insertions, 0, false);
            }
            object.hits += 1;
        }
    }

    /// Whether a clique that all partners of are members of, joined now or before, covers the conflict with `partner`.
    fn join_clique(&mut self, slot: usize, partner: usize) -> bool {
        let now = self.insertions;
        let mut full = None;
        for object in self.looked_at(partner) {
            let candidate = &self.objects[object];
            if candidate.insertion == now && candidate.joined {
                return true;
            }
            if candidate.insertion == now && candidate.hits == candidate.members && candidate.hits >= CLIQUE {
                full = Some(object);
            }
        }
        if let Some(object) = full {
            self.objects[object].joined = true;
            self.enter(slot, Member::new(object, true));
        }
        full.is_some()
    }

    /// The object on which `partner` alone is exclusive; a new one if there is none (any more).
    fn star(&mut self, partner: usize) -> usize {
        if let Some(star) = self.tasks[partner].star
            && self.objects[star as usize].exclusives == 1
        {
            return star as usize;
        }
        let star = self.objects.create(None);
        self.tasks[partner].star = Some(star as u32);
        self.enter(partner, Member::new(star, true));
        star
    }
}
