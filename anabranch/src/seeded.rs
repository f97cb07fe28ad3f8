//! The deterministic executor: tasks run on the threads that submit and wait, one at a time, in an order drawn from a
//! seed, so that whatever an order brings to light can be seen again.

use crate::{core::Core, inside::Inside, node::Node, run::Runner};
use parking_lot::Mutex;

pub(crate) struct Seeded {
    state: Mutex<State>,
}

struct State {
    draw: Draw,
    /// Tasks that can be started.
    ready: Vec<Node>,
}

/// A sequence of numbers that a seed determines (SplitMix64: Steele, Lea and Flood, 2014).
struct Draw(u64);

impl Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: Mutex::new(State { draw: Draw(seed), ready: Vec::new() }) }
    }

    /// Queues a task that can be started.
    pub(crate) fn push(&self, node: Node) {
        self.state.lock().ready.push(node);
    }

    /// Runs one of the tasks that can be started; `false` where there is none.
    pub(crate) fn step(&self, core: &Core) -> bool {
        // A task is run between others, not inside one.
        if Inside::is(core) {
            return false;
        }
        let node = {
            let State { draw, ready } = &mut *self.state.lock();
            if ready.is_empty() {
                return false;
            }
            let at = draw.below(ready.len());
            ready.swap_remove(at)
        };
        if node.claim() {
            node.run_on(Runner::Program);
        }
        true
    }

    /// After a submission: runs none, one or several tasks.
    pub(crate) fn step_some(&self, core: &Core) {
        let steps = self.state.lock().draw.below(4).saturating_sub(1);
        for _ in 0..steps {
            if !self.step(core) {
                break;
            }
        }
    }

    /// An order of the chunks of a kernel.
    pub(crate) fn shuffle(&self, chunks: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..chunks).collect();
        let draw = &mut self.state.lock().draw;
        for i in (1..chunks).rev() {
            order.swap(i, draw.below(i + 1));
        }
        order
    }
}
