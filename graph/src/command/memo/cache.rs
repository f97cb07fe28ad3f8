//! The launches that were seen, and the transitions that were derived for them.

use super::transition::Transition;
use crate::command::{
    digest::{digest, key},
    error::CommandError,
    interned::Patterns,
    launch::{BufferAccess, Hints, Launch, Reduction, Work},
    shape::Shape,
    slots::BufferSlots,
    types::{Command, Context},
    versions::Done,
    weights::Weights,
};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A launch that was seen more than once.
struct Repeated {
    work: Work,
    hints: Hints,
    weights: Option<Weights>,
    accesses: Vec<BufferAccess>,
    reductions: Vec<Reduction>,
    shape: Shape,
    digest: u64,
    transitions: Vec<Transition>,
    /// The number of launches without a matching transition since the last one with one.
    misses: usize,
}

impl Repeated {
    fn new(launch: &Launch, weights: Option<&Weights>, shape: Shape) -> Self {
        Self {
            work: launch.work,
            hints: launch.hints,
            weights: weights.cloned(),
            accesses: launch.accesses.to_vec(),
            reductions: launch.reductions.to_vec(),
            digest: digest(launch, &shape),
            shape,
            transitions: Vec::new(),
            misses: 0,
        }
    }

    fn is(&self, launch: &Launch, weights: Option<&Weights>) -> bool {
        self.work == launch.work
            && self.hints == launch.hints
            && self.weights.as_ref() == weights
            && self.accesses == launch.accesses
            && self.reductions == launch.reductions
    }

    /// Whether this launch is not to be memorised, because the patterns of its buffers were new too often.
    /// Every [`PATIENCE`]th launch tries again.
    fn is_given_up(&mut self) -> bool {
        if self.misses <= PATIENCE {
            return false;
        }
        self.misses += 1;
        !self.misses.is_multiple_of(PATIENCE)
    }
}

/// The number of launches that are noted as seen once.
const NOTED: usize = 256;

/// The bound on what is memorised: commands, targets, cells and so on, of some 100 bytes each. Above it,
/// everything is forgotten.
const MOST: usize = 1 << 16;

/// The number of times that a launch is memorised in vain before it is only tried now and then.
const PATIENCE: usize = 16;

/// The launches, states and transitions that were seen.
#[derive(Default)]
pub(in crate::command) struct Memo {
    /// Keys of recent launches, each at a position that follows from the key.
    seen: Vec<u64>,
    repeated: FxHashMap<u64, Repeated>,
    patterns: Patterns,
    /// A measure of the memory of the transitions.
    size: usize,
    /// The number of launches that were recognised since the last one with a known transition.
    in_vain: usize,
}

impl Memo {
    /// Appends the commands of a launch that repeats an earlier one to `out`, which is empty, and updates the
    /// states of its buffers. Returns the launch's [`digest`], or `None` if the launch has to be derived
    /// instead.
    pub(in crate::command) fn launch(
        &mut self,
        launch: &Launch,
        context: &Context,
        weights: Option<&Weights>,
        buffers: &mut BufferSlots,
        out: &mut Vec<Command>,
        done: Done<'_>,
    ) -> Result<Option<u64>, CommandError> {
        let weights = weights.filter(|_| launch.work.is_divided(&launch.hints));
        let Some(key) = self.recognise(key(launch, weights)) else { return Ok(None) };
        if self.size > MOST {
            self.repeated.clear();
            (self.patterns, self.size) = (Patterns::default(), 0);
        }
        let repeated = match self.repeated.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut shape = Shape::default();
                shape.evaluate(context.rank, weights, launch, |buffer| buffers.extent(buffer))?;
                entry.insert(Repeated::new(launch, weights, shape))
            }
        };
        if !repeated.is(launch, weights) || repeated.is_given_up() {
            return Ok(None);
        }
        let slots = buffers.slots_of(&repeated.shape.buffers);
        if buffers.have_versions() {
            repeated.shape.check_written(context.task, |operand| buffers.state_in(slots[operand]))?;
            buffers.leave_overwritten(&repeated.shape, done);
        }
        for &slot in &slots {
            buffers.make_interned(slot, context.applied, &mut self.patterns);
        }
        let mut operands = buffers.operands(&slots);
        let known = repeated.transitions.iter().position(|transition| transition.starts_from(&operands));
        let at = match known {
            Some(at) => {
                (repeated.misses, self.in_vain) = (0, 0);
                at
            }
            None => {
                repeated.misses += 1;
                let (work, shape) = (&repeated.work, &repeated.shape);
                let transition = Transition::derive(work, shape, context, &operands, &mut self.patterns)?;
                self.size += transition.size();
                repeated.transitions.push(transition);
                repeated.transitions.len() - 1
            }
        };
        repeated.transitions[at].apply(&repeated.shape, context, &mut operands, out);
        Ok(Some(repeated.digest))
    }

    /// The key of a launch, if it may repeat an earlier one. The first time, a launch is only noted, because
    /// most programs also have launches that do not repeat.
    fn recognise(&mut self, key: u64) -> Option<u64> {
        if self.seen.is_empty() {
            self.seen = vec![0; NOTED];
        }
        let seen = std::mem::replace(&mut self.seen[key as usize % NOTED], key);
        let known = self.repeated.contains_key(&key);
        if known || seen != key {
            return known.then_some(key);
        }
        // Mappers that are compared by address may lie where forgotten ones did, again and again: then keys
        // repeat but launches do not.
        self.in_vain += 1;
        (self.in_vain <= PATIENCE || self.in_vain.is_multiple_of(PATIENCE)).then_some(key)
    }
}
