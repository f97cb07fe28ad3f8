//! Where programs run: the settings of their runtimes.

use anabranch::{Builder, prelude::*};

/// The runtime of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Whether tasks are checked for elements that they declared to write and did not.
    pub checked: bool,
    /// Whether threads that wait run tasks.
    pub helps: bool,
    /// The order in which the threads of the program run the tasks.
    pub seed: Option<u64>,
    /// The nodes that run the program, if there are several.
    pub nodes: Option<Nodes>,
    /// The number of devices that some kernels run on. With several nodes, a node takes another device than
    /// its neighbours, or the host.
    pub devices: usize,
    /// The seed of what the devices of the program refuse, and of where they fail. Without it, programs share
    /// devices that never fail.
    pub faults: Option<u64>,
    /// Whether no task fails and nothing is cancelled, on one node.
    pub is_calm: bool,
}

/// Nodes in this process, or processes that `mpirun` has started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nodes {
    pub count: u16,
    /// The number of compute threads of each node.
    pub threads: usize,
    /// The longest delay of a message, in polls of its receiver, and the seed of the delays.
    pub delays: u32,
    pub seed: u64,
    /// Whether tasks may fail or be refused.
    pub fails: bool,
    /// Whether some nodes, or all of them, may cancel groups and tasks.
    pub cancels: bool,
}

impl Setup {
    /// The setup with this number, modulo four.
    pub fn number(number: u64) -> Self {
        let (checked, helps) = (number.is_multiple_of(2), (number / 2).is_multiple_of(2));
        Self { checked, helps, seed: None, nodes: None, devices: 0, faults: None, is_calm: false }
    }

    /// A setup with this seed, from which the other settings follow, too.
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::number(seed) }
    }

    /// A setup on nodes. Everything follows from the seed; `count`, if there is one, is the number of nodes.
    #[allow(dead_code, reason = "the fuzz target runs programs on one node")]
    pub fn on_nodes(seed: u64, count: Option<u16>) -> Self {
        const COUNTS: [u16; 12] = [2, 3, 4, 2, 7, 3, 1, 4, 2, 7, 3, 16];
        const DELAYS: [u32; 4] = [0, 2, 9, 30];
        let draw = |below: usize, by: u64| {
            (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) / by) as usize % below
        };
        let nodes = Nodes {
            count: count.unwrap_or(COUNTS[draw(COUNTS.len(), 1)]),
            threads: 1 + draw(3, 12),
            delays: DELAYS[draw(DELAYS.len(), 36)],
            seed,
            fails: false,
            cancels: false,
        };
        Self { nodes: Some(nodes), devices: [0, 3, 1][draw(3, 576)], ..Self::number(draw(4, 144) as u64) }
    }

    /// The same nodes, on which tasks may fail or be refused.
    #[allow(dead_code, reason = "the fuzz target runs programs on one node")]
    pub fn failing(mut self) -> Self {
        self.nodes.iter_mut().for_each(|nodes| nodes.fails = true);
        self
    }

    /// The same nodes, of which some or all may cancel groups and tasks.
    #[allow(dead_code, reason = "the fuzz target runs programs on one node")]
    pub fn cancelling(mut self) -> Self {
        self.nodes.iter_mut().for_each(|nodes| nodes.cancels = true);
        self
    }

    /// The same on one node, with this number of devices.
    #[allow(dead_code, reason = "the fuzz target runs programs on the host")]
    pub fn with_devices(self, devices: usize) -> Self {
        Self { devices, ..self }
    }

    /// The same with devices of its own, which fail as the seed says.
    #[allow(dead_code, reason = "the fuzz target runs programs on the host")]
    pub fn with_faults(self, seed: u64) -> Self {
        Self { faults: Some(seed), ..self }
    }

    /// The same without failures and cancellations.
    #[allow(dead_code, reason = "the fuzz target runs programs on the host")]
    pub fn calm(self) -> Self {
        Self { is_calm: true, ..self }
    }

    /// Whether no task fails and nothing is cancelled.
    pub fn all_succeed(&self) -> bool {
        self.is_calm || self.nodes.is_some_and(|nodes| !nodes.fails && !nodes.cancels)
    }

    /// Whether the runtime has no other program, so that a drain ends it.
    pub fn is_alone(&self) -> bool {
        self.seed.is_some() || self.nodes.is_some()
    }

    pub fn builder(&self, threads: usize) -> Builder {
        let Self { checked, helps, seed, .. } = *self;
        // No task waits for the thread that submits. That thread helps in some of the programs whose waiting
        // threads help.
        let builder = Runtime::builder().help_while_waiting(helps).help_while_submitting(checked);
        let builder = builder.threads(threads).max_in_flight(20).checked(checked);
        match seed {
            Some(seed) => builder.seeded(seed),
            None => builder,
        }
    }
}
