//! Which regions of buffers, and which host objects of this node, are poisoned: not as the program wants
//! them, because of a failure.
//!
//! With several nodes, horizons stand for old commands in the dependencies of later ones, so that a
//! dependency does not lead to the failure of the command that should have written a region. So failures do
//! not follow dependencies. The step that fails or is skipped enters its failure here, for the regions that
//! it was to write; a step that has written a region removes what was entered; a step that begins looks for
//! the regions that it reads. Dependencies order these steps.
//!
//! Every point of a buffer has the same failure on all nodes that have its current contents, because a
//! failure is sent in place of the contents ([`transfer`](crate::execute::nodes::steps::transfer)). A point
//! that is not current here may have an old one: the contents that come from another node replace it.
//!
//! As long as nothing has failed, all of this is one load for each step.

use crate::{
    cluster::let_go,
    data::stored::Touch,
    error::{Cause, Failure},
    execute::task::part::{Part, Writes},
};
use anabranch_graph::{BufferId, Effect, ObjectId, Order};
use anabranch_grid::Region;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
};

/// What is poisoned on this node.
#[derive(Default)]
pub(in crate::execute::nodes) struct Poison {
    /// Whether there may be any. A step that looks comes after the steps that it depends on, which have set
    /// it.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For each version of a buffer disjoint regions, each with the failure of the part of a task that was to
    /// write it last.
    buffers: FxHashMap<Key, Vec<Poisoned>>,
    objects: FxHashMap<ObjectId, Broken>,
}

/// A buffer, and the number of one of its versions.
type Key = (BufferId, u32);

/// A region, and why it was not written.
pub(in crate::execute::nodes) type Poisoned = (Region<3>, Arc<Failure>);

/// A host object that a failed task has perhaps left half changed.
#[derive(Default)]
struct Broken {
    /// The failure of the last sequential effect: every later effect needs the object.
    before: Option<Arc<Failure>>,
    /// The oldest failure of the exclusive and relaxed effects since. The next sequential effect comes after
    /// them.
    since: Option<Arc<Failure>>,
}

/// Failures that are dropped outside the lock: errors are the program's own, and so are their destructors.
type Dropped = Vec<Arc<Failure>>;

impl State {
    /// Removes what was entered for a region.
    fn heal(&mut self, buffer: Key, region: &Region<3>, dropped: &mut Dropped) {
        let Some(all) = self.buffers.get_mut(&buffer) else { return };
        let overlaps = |(part, _): &mut Poisoned| {
            if part.intersects(region) {
                *part = part.difference(region);
            }
            part.is_empty()
        };
        dropped.extend(all.extract_if(.., overlaps).map(|(_, failure)| failure));
        if all.is_empty() {
            self.buffers.remove(&buffer);
        }
    }

    /// Enters a failure for a region.
    fn put(&mut self, buffer: Key, region: &Region<3>, failure: &Arc<Failure>, dropped: &mut Dropped) {
        self.heal(buffer, region, dropped);
        if region.is_empty() {
            return;
        }
        let all = self.buffers.entry(buffer).or_default();
        match all.iter_mut().find(|(_, known)| known.is_same(failure)) {
            Some((known, _)) => *known = known.union(region),
            None => all.push((region.clone(), Arc::clone(failure))),
        }
    }

    /// An effect on a host object has failed, or was skipped.
    fn break_object(&mut self, effect: &Effect, failure: &Arc<Failure>, dropped: &mut Dropped) {
        let broken = self.objects.entry(effect.object).or_default();
        match effect.order {
            // Later tasks need the end of a fence only.
            Order::Observe => {}
            Order::Sequential => {
                let old = [mem::take(&mut broken.since), broken.before.replace(Arc::clone(failure))];
                dropped.extend(old.into_iter().flatten());
            }
            Order::Exclusive | Order::Relaxed => {
                if broken.since.as_ref().is_none_or(|known| failure.age() < known.age()) {
                    dropped.extend(broken.since.replace(Arc::clone(failure)));
                }
            }
        }
        if broken.before.is_none() && broken.since.is_none() {
            self.objects.remove(&effect.object);
        }
    }

    /// The failures that concern an effect.
    fn of_effect(&self, effect: &Effect) -> impl Iterator<Item = &Arc<Failure>> {
        self.of_object(effect.object, effect.order)
    }

    /// The failures that concern an effect of this order on an object.
    fn of_object(&self, object: ObjectId, order: Order) -> impl Iterator<Item = &Arc<Failure>> + use<'_> {
        let broken = self.objects.get(&object);
        let since = broken.filter(|_| order.is_in_order()).and_then(|broken| broken.since.as_ref());
        broken.and_then(|broken| broken.before.as_ref()).into_iter().chain(since)
    }

    /// The failures that concern what a touch reads.
    fn of_touch(&self, touch: &Touch) -> impl Iterator<Item = &Arc<Failure>> {
        let all = self.buffers.get(&(touch.buffer, touch.version)).filter(|_| touch.mode.reads());
        all.into_iter()
            .flatten()
            .filter(|(part, _)| part.intersects(&touch.region))
            .map(|(_, failure)| failure)
    }
}

impl Poison {
    /// Whether there may be any.
    #[inline]
    pub(in crate::execute::nodes) fn is_any(&self) -> bool {
        self.any.load(Acquire)
    }

    /// Changes the state, and drops outside the lock what was removed.
    fn change(&self, change: impl FnOnce(&mut State, &mut Dropped)) {
        let mut dropped = Dropped::new();
        {
            let mut state = self.state.lock();
            change(&mut state, &mut dropped);
            self.any.store(!(state.buffers.is_empty() && state.objects.is_empty()), Release);
        }
        // A destructor that panics must not reach a thread that polls: it has the steps of others to end.
        let_go(dropped);
    }

    /// The failure because of which a part of a task cannot run: of several the one that
    /// [counts](Failure::age).
    #[cold]
    pub(in crate::execute::nodes) fn of(&self, part: &Part) -> Option<Arc<Failure>> {
        let state = self.state.lock();
        let of_buffers = part.touches.iter().flat_map(|touch| state.of_touch(touch));
        let of_objects = part.effects.iter().flat_map(|effect| state.of_effect(effect));
        of_buffers.chain(of_objects).min_by_key(|failure| failure.age()).cloned()
    }

    /// The failure because of which a host object is broken, if it is: of several the one that
    /// [counts](Failure::age).
    pub(in crate::execute::nodes) fn of_object(&self, object: ObjectId) -> Option<Arc<Failure>> {
        if !self.is_any() {
            return None;
        }
        let state = self.state.lock();
        state.of_object(object, Order::Sequential).min_by_key(|failure| failure.age()).cloned()
    }

    /// A host object of the whole cluster is broken, because of this failure.
    pub(in crate::execute::nodes) fn break_object(&self, object: ObjectId, failure: &Arc<Failure>) {
        self.change(|state, dropped| {
            let effect = Effect { object, order: Order::Sequential };
            state.break_object(&effect, failure, dropped);
        });
    }

    /// The parts of a region that are poisoned.
    pub(in crate::execute::nodes) fn within(&self, buffer: Key, region: &Region<3>) -> Vec<Poisoned> {
        if !self.is_any() {
            return Vec::new();
        }
        let state = self.state.lock();
        let all = state.buffers.get(&buffer).into_iter().flatten();
        let within = all.map(|(part, failure)| (part.intersection(region), Arc::clone(failure)));
        within.filter(|(part, _)| !part.is_empty()).collect()
    }

    /// A region has got other contents, but for these parts of it.
    pub(in crate::execute::nodes) fn replace(
        &self,
        buffer: Key,
        region: &[Region<3>],
        poisoned: &[Poisoned],
    ) {
        if !self.is_any() && poisoned.is_empty() {
            return;
        }
        self.change(|state, dropped| {
            region.iter().for_each(|region| state.heal(buffer, region, dropped));
            poisoned.iter().for_each(|(region, failure)| state.put(buffer, region, failure, dropped));
        });
    }

    /// Forgets a buffer.
    pub(in crate::execute::nodes) fn remove_buffer(&self, buffer: BufferId) {
        if self.is_any() {
            self.change(|state, dropped| {
                let all = state.buffers.extract_if(|(id, _), _| *id == buffer);
                dropped.extend(all.flat_map(|(_, all)| all).map(|(_, failure)| failure));
            });
        }
    }

    /// Forgets a host object.
    pub(in crate::execute::nodes) fn remove_object(&self, object: ObjectId) {
        if self.is_any() {
            self.change(|state, dropped| {
                let broken = state.objects.remove(&object);
                dropped.extend(broken.into_iter().flat_map(|broken| [broken.before, broken.since]).flatten());
            });
        }
    }

    #[cold]
    pub(super) fn part_is_done(&self, part: &Part) {
        self.change(|state, dropped| {
            for touch in part.touches.iter().filter(|touch| touch.mode.writes()) {
                state.heal((touch.buffer, touch.version), &touch.region, dropped);
            }
        });
    }

    #[cold]
    pub(super) fn part_has_failed(&self, part: &Part, failure: &Arc<Failure>) {
        self.change(|state, dropped| {
            for touch in part.touches.iter().filter(|touch| touch.mode.writes()) {
                let key = (touch.buffer, touch.version);
                match part.writes {
                    Writes::All | Writes::ByBody => state.put(key, &touch.region, failure, dropped),
                    Writes::Copies => {
                        let before = state.buffers.get(&key).into_iter().flatten();
                        let rest = before.fold(touch.region.clone(), |rest, (part, _)| rest.difference(part));
                        state.put(key, &rest, failure, dropped);
                    }
                }
            }
            // A cancelled task has not touched its host objects, as the program wished: they are good.
            if !matches!(failure.root().cause, Cause::Cancelled) {
                part.effects.iter().for_each(|effect| state.break_object(effect, failure, dropped));
            }
        });
    }
}
