//! Programs: recordings that are prepared for the processor, without the values of literals.

use crate::{
    number::Kind,
    operation::{Id, Operation, What},
    recording::{Body, Recording},
    reduction::Reduction,
    steps::{Action, Chain, Link, Linkable, Registers, Source, Step},
    uses::Uses,
};

/// A recording, prepared for the processor. It is worth keeping: [`is_of`](Self::is_of) says whether a later recording is
/// the same program.
#[derive(Debug)]
pub struct Program {
    pub(crate) body: Body,
    /// What the results need, in an order in which inputs come first.
    pub(crate) steps: Vec<Step>,
    /// The chains of all steps.
    pub(crate) chains: Vec<Chain>,
    /// The links of all chains.
    pub(crate) links: Vec<Link>,
    /// The loads that the results need.
    pub(crate) loads: Vec<usize>,
    /// The number of registers of each type.
    pub(crate) registers: Registers,
    /// Where the result of each operation is.
    pub(crate) sources: Vec<Source>,
    /// The operands that are set, and what they are set to.
    pub(crate) stores: Vec<(usize, Kind, Source)>,
    /// The reductions.
    pub(crate) reductions: Vec<Reduced>,
}

/// A reduction, and the values that it combines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    pub(crate) reduction: Reduction,
    pub(crate) source: Source,
}

impl Program {
    /// Prepares a recording.
    pub fn new(recording: &Recording) -> Self {
        let body = recording.body.clone();
        let mut schedule = Schedule::new(&body);
        for id in 0..body.operations.len() as Id {
            schedule.place(id);
        }
        let Schedule { steps, chains, links, loads, allocation, sources, .. } = schedule;
        let store =
            |(operand, id): (usize, Id)| (operand, body.operations[id as usize].kind, sources[id as usize]);
        let stores = body.results().map(store).collect();
        let reduced = |(reduction, id): (Reduction, Id)| Reduced { reduction, source: sources[id as usize] };
        let reductions = body.reductions().map(reduced).collect();
        let registers = allocation.registers;
        Self { steps, chains, links, loads, registers, sources, stores, reductions, body }
    }

    /// Whether this is the program of a recording.
    pub fn is_of(&self, recording: &Recording) -> bool {
        self.body == recording.body
    }

    /// The number of operations and chains of operations that a block takes, and the number of registers that they need.
    pub fn size(&self) -> (usize, usize) {
        let chained = |step: &Step| match step.action {
            Action::Chains { from, to } => (to - from) as usize,
            Action::Operation(..) | Action::Copy { .. } => 1,
        };
        let registers = self.registers.0.iter().sum::<u32>();
        (self.steps.iter().map(chained).sum(), registers as usize)
    }
}

/// A program, as far as it is prepared.
struct Schedule<'a> {
    operations: &'a [Operation],
    uses: Uses,
    allocation: Allocation,
    steps: Vec<Step>,
    chains: Vec<Chain>,
    links: Vec<Link>,
    loads: Vec<usize>,
    sources: Vec<Source>,
}

impl<'a> Schedule<'a> {
    fn new(body: &'a Body) -> Self {
        let operations = &body.operations[..];
        Self {
            operations,
            uses: Uses::new(body),
            allocation: Allocation::default(),
            steps: Vec::with_capacity(operations.len()),
            chains: Vec::with_capacity(operations.len() / 2),
            links: Vec::with_capacity(operations.len()),
            loads: Vec::with_capacity(body.loads.len()),
            sources: vec![Source::Nowhere; operations.len()],
        }
    }

    /// Adds an operation, if it needs a step: loads and literals are taken from where they are.
    fn place(&mut self, id: Id) {
        if !self.uses.is_needed(id) || self.uses.is_inside(id) {
            return;
        }
        let Operation { what, kind } = self.operations[id as usize];
        match what {
            What::Parameter(parameter) => self.sources[id as usize] = Source::Parameter(parameter),
            What::Load(load) => {
                self.loads.push(load as usize);
                let load = self.loads.len() as u32 - 1;
                self.sources[id as usize] = Source::Load(load);
                // The operand that is set may be the one that the element is in.
                if self.uses.is_result(id) {
                    let register = self.allocation.take(kind);
                    self.sources[id as usize] = Source::Register(register);
                    self.steps.push(Step { action: Action::Copy { load, register }, kind });
                }
            }
            _ => {
                // Before the inputs give theirs back: the result never goes to the register of an input.
                let register = self.allocation.take(kind);
                self.sources[id as usize] = Source::Register(register);
                if Linkable::new(self.operations[id as usize]).is_some() {
                    self.chain(id, kind, register);
                } else {
                    self.steps.push(Step { action: Action::Operation(what, register), kind });
                    what.inputs().for_each(|input| self.release(input, id));
                }
            }
        }
    }

    /// Adds the chain that ends with an operation.
    fn chain(&mut self, end: Id, kind: Kind, register: u32) {
        let from = self.links.len();
        let mut at = end;
        let first = loop {
            let linkable = Linkable::new(self.operations[at as usize]).expect("a chain consists of links");
            let continued = self.uses.continued(at);
            let so_far = continued.unwrap_or(linkable.operands[0]);
            let (join, with) = linkable.join(so_far);
            self.links.push(Link { join, with: self.sources[with as usize] });
            self.release(with, end);
            match continued {
                Some(operand) => at = operand,
                None => break so_far,
            }
        };
        self.release(first, end);
        self.links[from..].reverse();
        let to = self.links.len() as u32;
        self.chains.push(Chain { first: self.sources[first as usize], from: from as u32, to, register });
        let count = self.chains.len() as u32;
        match self.steps.last_mut() {
            Some(Step { action: Action::Chains { to, .. }, kind: before }) if *before == kind => *to = count,
            _ => self.steps.push(Step { action: Action::Chains { from: count - 1, to: count }, kind }),
        }
    }

    /// Frees the register of an input, unless a later step than that of `user` needs it.
    fn release(&mut self, input: Id, user: Id) {
        if let Source::Register(register) = self.sources[input as usize]
            && self.uses.ends_at(input, user)
        {
            self.allocation.give_back(self.operations[input as usize].kind, register);
        }
    }
}

/// The registers that are free.
#[derive(Default)]
struct Allocation {
    registers: Registers,
    free: [Vec<u32>; 7],
}

impl Allocation {
    fn take(&mut self, kind: Kind) -> u32 {
        let count = &mut self.registers.0[kind as usize];
        self.free[kind as usize].pop().unwrap_or_else(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Frees a register. An operation that uses a result twice frees it twice.
    fn give_back(&mut self, kind: Kind, register: u32) {
        let free = &mut self.free[kind as usize];
        if !free.contains(&register) {
            free.push(register);
        }
    }
}
