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

/// What is known of the explicit conflicts of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Explicit {
    /// How many of its objects have a name, the first ones.
    pub(super) named: u32,
    /// How many conflicts there are so far, those with tasks that have finished included.
    pub(super) partners: u32,
    /// The object on which it may be the only exclusive one.
    pub(super) star: Option<u32>,
    /// The latest insertion that it is a partner of.
    pub(super) insertion: u64,
}

impl ConflictScheduler {
    /// Gives the task in `slot` conflicts with `partners`, as far as these have not finished.
    pub(super) fn cover(&mut self, slot: usize, partners: &[TaskId]) {
        self.insertions += 1;
        let mut found = std::mem::take(&mut self.partners);
        for partner in partners.iter().filter_map(|id| self.slots.get(id)) {
            let task = &mut self.explicit[*partner as usize];
            let new = task.insertion != self.insertions && *partner as usize != slot;
            task.insertion = self.insertions;
            if new {
                task.partners += 1;
                found.push(*partner);
            }
        }
        self.explicit[slot].partners = found.len() as u32;
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

    /// The `i`-th object through which a clique may be found.
    fn looked_at(&self, slot: usize, i: usize) -> Option<usize> {
        self.tasks[slot].members.get(self.explicit[slot].named as usize + i).map(|member| member.object())
    }

    fn hit(&mut self, partner: usize) {
        for i in 0..LOOKED_AT {
            let Some(object) = self.looked_at(partner, i) else { return };
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
        for object in (0..LOOKED_AT).map_while(|i| self.looked_at(partner, i)) {
            let candidate = &self.objects[object];
            if candidate.insertion == now && candidate.joined {
                return true;
            }
            if candidate.insertion == now
                && candidate.hits >= CLIQUE
                && candidate.hits == self.objects.usage(object).members
            {
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
        if let Some(star) = self.explicit[partner].star
            && self.objects.usage(star as usize).exclusives == 1
        {
            return star as usize;
        }
        let star = self.objects.create(None);
        self.explicit[partner].star = Some(star as u32);
        self.enter(partner, Member::new(star, true));
        star
    }
}
