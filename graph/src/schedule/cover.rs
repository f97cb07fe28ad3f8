//! Explicit conflicts as uses of few anonymous objects: a cover of the conflict graph by stars and cliques.
//!
//! A task with partners *exclusively* uses an object all of whose users are partners (so a clique, however
//! large, becomes one object). For every partner that this does not cover, the task uses the partner's star:
//! an object that the partner alone uses exclusively, and others *relaxed*. So there are at most as many
//! objects as tasks, and no more uses than conflicts and stars together.

use super::{
    objects::ObjectUse,
    tasks::{Contender, Tasks},
};

/// The number of a partner's objects that are considered as cliques to join, so that the time to insert is
/// linear in the number of partners.
const LOOKED_AT: usize = 4;
/// The smallest clique that is joined. Joining makes the object useless as a star for later tasks, so smaller
/// cliques do not pay.
const CLIQUE: u32 = 3;

/// The explicit conflicts of one task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Explicit {
    /// The number of its objects that have a name. They come first.
    pub(super) named: u32,
    /// The number of its conflicts so far, including those with finished tasks.
    pub(super) partners: u32,
    /// The object that may be its star: no other task uses it exclusively.
    star: Option<u32>,
    /// The latest insertion of which it is a partner.
    insertion: u64,
}

/// The explicit conflicts of all tasks, by slot.
#[derive(Debug, Default)]
pub(super) struct Cover {
    explicit: Vec<Explicit>,
    /// The number of insertions with partners so far.
    insertions: u64,
    /// Empty between calls, and kept for its memory.
    partners: Vec<u32>,
}

impl Cover {
    /// Adds a task without explicit conflicts, which has `named` objects.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize, named: usize) {
        let new = Explicit { named: named as u32, ..Explicit::default() };
        if slot == self.explicit.len() {
            self.explicit.push(new);
        } else {
            self.explicit[slot] = new;
        }
    }

    /// The explicit conflicts of a task.
    #[inline]
    pub(super) fn of(&self, slot: u32) -> &Explicit {
        &self.explicit[slot as usize]
    }

    /// Gives the task in `slot` conflicts with those of `partners` that have not finished.
    pub(super) fn cover(&mut self, tasks: &mut Tasks, slot: usize, partners: &[Contender]) {
        self.insertions += 1;
        let mut found = std::mem::take(&mut self.partners);
        for partner in partners.iter().filter_map(|&id| tasks.slot(id)) {
            let task = &mut self.explicit[partner as usize];
            let new = task.insertion != self.insertions && partner as usize != slot;
            task.insertion = self.insertions;
            if new {
                task.partners += 1;
                found.push(partner);
            }
        }
        self.explicit[slot].partners = found.len() as u32;
        if found.len() >= CLIQUE as usize {
            found.iter().for_each(|&partner| self.count_user(tasks, partner as usize));
        }
        for &partner in &found {
            if !self.join_clique(tasks, slot, partner as usize) {
                let star = self.star(tasks, partner as usize);
                tasks.add_use(slot, ObjectUse::new(star, false));
            }
        }
        found.clear();
        self.partners = found;
    }

    /// The `i`-th object of a task that may be a clique.
    fn looked_at(&self, tasks: &Tasks, slot: usize, i: usize) -> Option<usize> {
        tasks[slot].uses.get(self.explicit[slot].named as usize + i).map(|used| used.object())
    }

    /// Counts a partner for each of its objects that may be a clique.
    fn count_user(&mut self, tasks: &mut Tasks, partner: usize) {
        for i in 0..LOOKED_AT {
            let Some(object) = self.looked_at(tasks, partner, i) else { return };
            let object = &mut tasks.objects[object];
            if object.insertion != self.insertions {
                (object.insertion, object.partners, object.joined) = (self.insertions, 0, false);
            }
            object.partners += 1;
        }
    }

    /// Joins a clique all of whose users are partners, if there is one. Returns whether a clique, joined now
    /// or before, covers the conflict with `partner`.
    fn join_clique(&mut self, tasks: &mut Tasks, slot: usize, partner: usize) -> bool {
        let now = self.insertions;
        let mut full = None;
        for object in (0..LOOKED_AT).map_while(|i| self.looked_at(tasks, partner, i)) {
            let candidate = &tasks.objects[object];
            if candidate.insertion == now && candidate.joined {
                return true;
            }
            if candidate.insertion == now
                && candidate.partners >= CLIQUE
                && candidate.partners == tasks.objects.usage(object).users
            {
                full = Some(object);
            }
        }
        if let Some(object) = full {
            tasks.objects[object].joined = true;
            tasks.add_use(slot, ObjectUse::new(object, true));
        }
        full.is_some()
    }

    /// The star of `partner`, an object that it alone uses exclusively. Creates one if there is none (any
    /// more).
    fn star(&mut self, tasks: &mut Tasks, partner: usize) -> usize {
        if let Some(star) = self.explicit[partner].star
            && tasks.objects.usage(star as usize).exclusive_users == 1
        {
            return star as usize;
        }
        let star = tasks.objects.create(None);
        self.explicit[partner].star = Some(star as u32);
        tasks.add_use(partner, ObjectUse::new(star, true));
        star
    }
}
