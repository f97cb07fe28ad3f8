//! The values of host objects.

use super::{results::Numbers, witness::Witness};
use crate::program::mix;
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::*},
};

/// The value of a host object. It detects tasks that use it at the same time although they must not.
pub struct State {
    hash: u64,
    sum: u64,
    relaxed: AtomicU64,
    /// Two numbers that always change together.
    pair: [u64; 2],
    /// The sum of the weights of the tasks inside: 1 for a relaxed task, `ALONE` for a task that must be
    /// alone.
    inside: AtomicUsize,
    /// The number of clones. Every other one is slow.
    clones: AtomicUsize,
    witness: Arc<Witness>,
}

const ALONE: usize = 1 << 16;

impl State {
    pub fn new(witness: &Arc<Witness>) -> Self {
        Self {
            hash: 0,
            sum: 0,
            relaxed: AtomicU64::new(0),
            pair: [0; 2],
            inside: AtomicUsize::new(0),
            clones: AtomicUsize::new(0),
            witness: Arc::clone(witness),
        }
    }

    /// Enters a task. It is wrong if the weight of the tasks inside is `limit` or more.
    fn enter(&self, weight: usize, limit: usize) {
        let before = self.inside.fetch_add(weight, AcqRel);
        if before >= limit || self.pair[0] != self.pair[1] {
            self.witness.note("tasks use an object at the same time although they must not");
        }
    }

    fn leave(&self, weight: usize) {
        self.inside.fetch_sub(weight, AcqRel);
    }

    fn alone<R>(&mut self, slow: bool, change: impl FnOnce(&mut Self) -> R) -> R {
        self.enter(ALONE, 1);
        self.pair[0] += 1;
        self.witness.pause(slow);
        let result = change(self);
        self.pair[1] += 1;
        self.leave(ALONE);
        result
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        self.witness.check_thread("the clone of a host object", false);
        self.enter(ALONE, 1);
        self.witness.pause(self.clones.fetch_add(1, Relaxed).is_multiple_of(2));
        let clone = Self {
            hash: self.hash,
            sum: self.sum,
            relaxed: AtomicU64::new(self.relaxed.load(Relaxed)),
            pair: self.pair,
            ..Self::new(&self.witness)
        };
        self.leave(ALONE);
        clone
    }
}

impl Numbers for State {
    fn numbers(self) -> Vec<u64> {
        vec![self.hash, self.sum, self.relaxed.into_inner()]
    }
}

/// A task's reference to an object.
pub enum ObjectRef<'a> {
    Sequential(&'a mut State),
    Exclusive(&'a mut State),
    Relaxed(&'a State),
}

impl ObjectRef<'_> {
    /// Changes the object, and `hash` if the order permits that.
    pub fn touch(&mut self, hash: &mut u64, slow: bool) {
        match self {
            Self::Sequential(object) => object.alone(slow, |object| {
                object.hash = mix(mix(object.hash, *hash), mix(object.sum, object.relaxed.load(Relaxed)));
                *hash = object.hash;
            }),
            Self::Exclusive(object) => {
                object.alone(slow, |object| object.sum = object.sum.wrapping_add(mix(*hash, 1)));
            }
            Self::Relaxed(object) => {
                object.enter(1, ALONE);
                object.witness.pause(slow);
                object.relaxed.fetch_add(mix(*hash, 2), Relaxed);
                object.leave(1);
            }
        }
    }
}
