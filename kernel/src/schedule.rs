//! How a recording becomes the steps of a program: the order of the operations, the chains among them, and
//! where each result is.

use crate::{
    fold::Fold,
    liveness::{Liveness, Product},
    number::Kind,
    operation::{Id, Load, Operation, Row, What},
    recording::Body,
    steps::{
        Action, Chains, Join, Link, Linkable, Loop, ProgramLoad, Registers, RowOfLoads, Scaled, Source, Step,
        Target, With,
    },
};

/// A program, as far as it is prepared.
pub(crate) struct Schedule<'a> {
    operations: &'a [Operation],
    all_loads: &'a [Load],
    folds: &'a [Fold],
    liveness: Liveness,
    pub(crate) allocation: Allocation,
    pub(crate) steps: Vec<Step>,
    pub(crate) chains: Vec<Chains>,
    pub(crate) loops: Vec<Loop>,
    /// The loops that have begun and not ended, the innermost one last.
    open: Vec<u32>,
    /// The number of steps when a loop last began or ended. A chain does not join a step before that.
    ended: usize,
    pub(crate) loads: Vec<ProgramLoad>,
    pub(crate) sources: Vec<Source>,
    /// The operands that are set and never loaded from, with the operations whose results they get.
    pub(crate) outputs: Vec<(usize, Id)>,
    /// The operands that are set and also loaded from, with the operations whose results they get.
    stored: Vec<(usize, Id)>,
}

impl<'a> Schedule<'a> {
    fn new(body: &'a Body) -> Self {
        let operations = &body.operations[..];
        let is_taken = |&(operand, _): &_| body.loads.iter().any(|load| load.operand == operand);
        let (stored, mut outputs): (Vec<_>, Vec<_>) = body.results().partition(is_taken);
        outputs.sort_unstable();
        Self {
            operations,
            all_loads: &body.loads,
            folds: &body.folds,
            liveness: Liveness::new(body),
            allocation: Allocation::default(),
            steps: Vec::with_capacity(operations.len()),
            chains: Vec::new(),
            loops: Vec::new(),
            open: Vec::new(),
            ended: 0,
            loads: Vec::with_capacity(body.loads.len()),
            sources: vec![Source::Nowhere; operations.len()],
            outputs,
            stored,
        }
    }

    /// The steps of a recording, as far as no operand is set after them.
    pub(crate) fn of(body: &'a Body) -> Self {
        let mut schedule = Self::new(body);
        for id in 0..body.operations.len() as Id {
            schedule.place(id);
        }
        schedule
    }

    /// Adds an operation, if it needs a step: loads and literals are taken from where they are.
    fn place(&mut self, id: Id) {
        if !self.liveness.is_needed(id) || self.liveness.is_inside(id) {
            return;
        }
        let Operation { what, kind } = self.operations[id as usize];
        match what {
            What::Parameter(parameter) => self.sources[id as usize] = Source::Parameter(parameter),
            What::Load(number) => {
                let load = self.loads.len() as u32;
                self.loads.push(ProgramLoad { number, is_in_loop: !self.open.is_empty() });
                if let Some(&inside) = self.open.last() {
                    self.loops[inside as usize].loads.push(load);
                }
                self.sources[id as usize] = Source::Load(load);
                // The operand that is set may be the one that the element is in.
                if self.stored.iter().any(|&(_, stored)| stored == id) {
                    self.sources[id as usize] = Source::Register(self.copy(Source::Load(load), kind));
                }
            }
            What::BeginIteration(fold) => self.begin(id, fold),
            What::EndIteration(fold) => self.end(id, fold),
            // Their sources are known from the beginning of the fold.
            What::State(..) | What::Folded(..) => {}
            _ => {
                // Before the inputs give their registers back: the result never goes to the register of an
                // input.
                let target = self.target(id, kind);
                if Linkable::new(self.operations[id as usize]).is_some() {
                    self.chain(id, kind, target);
                } else {
                    self.steps.push(Step { action: Action::Operation(what, target), kind });
                    what.inputs().for_each(|input| self.release(input, id));
                }
            }
        }
    }

    /// Where the result of an operation goes: to the output that is set to it, if nothing else needs it,
    /// otherwise to a register.
    fn target(&mut self, id: Id, kind: Kind) -> Target {
        match self.outputs.iter().position(|&(_, result)| result == id) {
            Some(output) if self.liveness.is_needed_once(id) => Target::Output(output as u32),
            _ => {
                let register = self.allocation.take(kind);
                self.sources[id as usize] = Source::Register(register);
                Target::Register(register)
            }
        }
    }

    /// Sets the outputs that no operation has set. Returns the other operands that are set, and what they are
    /// set to.
    pub(crate) fn store(&mut self) -> Vec<(usize, Kind, Source)> {
        for (output, &(_, id)) in self.outputs.iter().enumerate() {
            let (from, kind) = (self.sources[id as usize], self.operations[id as usize].kind);
            if !matches!(from, Source::Nowhere) {
                self.steps
                    .push(Step { action: Action::Copy { from, to: Target::Output(output as u32) }, kind });
            }
        }
        let stored = self.stored.iter();
        stored
            .map(|&(operand, id)| (operand, self.operations[id as usize].kind, self.sources[id as usize]))
            .collect()
    }

    /// Adds the chain that ends with an operation, to those of the last step if they have its type.
    fn chain(&mut self, end: Id, kind: Kind, target: Target) {
        let is_with_others = matches!(
            self.steps[self.ended..].last(),
            Some(Step { action: Action::Chains(_), kind: before }) if *before == kind
        );
        if !is_with_others {
            self.steps.push(Step { action: Action::Chains(self.chains.len() as u32), kind });
            self.chains.push(Chains::default());
        }
        // The links from the last one to the first: each one leads to its accumulator operand.
        let mut links = vec![match target {
            Target::Register(register) => Link::Store(register),
            Target::Output(output) => Link::Set(output),
        }];
        let mut at = end;
        let first = loop {
            let linkable = Linkable::new(self.operations[at as usize]).expect("a chain consists of links");
            let (continued, product) = (self.liveness.continued(at), self.liveness.product(at));
            let so_far = match product {
                Some(product) => linkable.other(product.operation),
                None => continued.unwrap_or(linkable.operands[0]),
            };
            let (join, with) = linkable.join(so_far);
            links.push(match product {
                Some(product) => self.scaled(join, product),
                None => self.link(join, with, end),
            });
            match continued {
                Some(operand) => at = operand,
                None => break so_far,
            }
        };
        links.push(self.link(Join::Take, first, end));
        let chain = &mut self.last_chains().links;
        let begin = chain.len();
        for link in links.into_iter().rev() {
            match chain[begin..].last_mut() {
                Some(last) if let Some(both) = last.with_next(link) => *last = both,
                _ => chain.push(link),
            }
        }
    }

    /// A link with an operand. Frees the register of the operand, if the chain is its last use.
    fn link(&mut self, join: Join, with: Id, end: Id) -> Link {
        let link = Link::new(join, self.operand(with));
        self.release(with, end);
        link
    }

    /// A link that adds or subtracts a product.
    fn scaled(&mut self, join: Join, product: Product) -> Link {
        let (With::Load(load), With::Number(number)) =
            (self.operand(product.load), self.operand(product.number))
        else {
            unreachable!("neither factor of a product that is a part of a link is in a register")
        };
        match join {
            Join::Add => Link::AddScaled(Scaled { load, number }),
            Join::Sub => Link::SubScaled(Scaled { load, number }),
            _ => unreachable!("a product that is a part of a link is added or subtracted"),
        }
    }

    /// A value as the operand of a link of the last chains.
    fn operand(&mut self, value: Id) -> With {
        let source = self.sources[value as usize];
        match source {
            Source::Register(register) => With::Register(register),
            Source::Load(load) if !self.is_same_for_all_points(load) => {
                let loads = &mut self.last_chains().loads;
                let place = loads.iter().position(|&other| other == load).unwrap_or(loads.len());
                if place == loads.len() {
                    loads.push(load);
                }
                With::Load(place as u32)
            }
            Source::Load(_) | Source::Parameter(_) => {
                let numbers = &mut self.last_chains().numbers;
                let place = numbers.iter().position(|&other| other == source).unwrap_or(numbers.len());
                if place == numbers.len() {
                    numbers.push(source);
                }
                With::Number(place as u32)
            }
            Source::Counter(_) => unreachable!("a counter is no float"),
            Source::Nowhere => unreachable!("a chain needs what is inside of another one"),
        }
    }

    fn last_chains(&mut self) -> &mut Chains {
        self.chains.last_mut().expect("a chain has been added")
    }

    /// Whether a load has one element for all points of a row.
    fn is_same_for_all_points(&self, load: u32) -> bool {
        let number = self.loads[load as usize].number;
        matches!(self.all_loads[number as usize].row(), Row::Same)
    }

    /// Adds a step that copies a value to a register, which it returns.
    fn copy(&mut self, from: Source, kind: Kind) -> u32 {
        let register = self.allocation.take(kind);
        self.steps.push(Step { action: Action::Copy { from, to: Target::Register(register) }, kind });
        register
    }

    /// Begins the iterations of a fold, whose state has registers of its own until all results of the fold
    /// have been used.
    fn begin(&mut self, begin: Id, fold: u32) {
        self.sources[begin as usize] = Source::Counter(fold);
        let states = &self.folds[fold as usize].states;
        for state in states {
            let register = self.copy(self.sources[state.first as usize], state.kind);
            for id in [state.now, state.result] {
                self.sources[id as usize] = Source::Register(register);
            }
        }
        states.iter().for_each(|state| self.release(state.first, begin));
        let number = self.loops.len() as u32;
        self.steps.push(Step { action: Action::Loop(number), kind: Kind::U32 });
        self.loops.push(Loop { fold, end: 0, loads: Vec::new(), swaps: Vec::new() });
        self.open.push(number);
        self.ended = self.steps.len();
    }

    /// Ends an iteration. What it has computed changes places with the state, so that nothing is copied. What
    /// is not computed in the iteration, or is needed for several values of the state, is copied before.
    fn end(&mut self, end: Id, fold: u32) {
        let states = &self.folds[fold as usize].states;
        let mut swaps: Vec<(Kind, [u32; 2])> = Vec::new();
        let mut copies = Vec::new();
        for state in states.iter().filter(|state| state.next != state.now) {
            let (Source::Register(now), next) =
                (self.sources[state.now as usize], self.sources[state.next as usize])
            else {
                unreachable!("the state of a fold is in registers")
            };
            let is_computed = self.liveness.scope(state.next) == Some(fold)
                && !matches!(self.operations[state.next as usize].what, What::State(..));
            let next = match next {
                Source::Register(next)
                    if is_computed
                        && !swaps.iter().any(|&(kind, [_, other])| (kind, other) == (state.kind, next)) =>
                {
                    next
                }
                from => {
                    let copy = self.copy(from, state.kind);
                    copies.push((state.kind, copy));
                    copy
                }
            };
            swaps.push((state.kind, [now, next]));
        }
        let number = self.open.pop().expect("a fold that ends has begun");
        let iterations = &mut self.loops[number as usize];
        (iterations.end, iterations.swaps) = (self.steps.len(), swaps);
        self.ended = self.steps.len();
        copies.into_iter().for_each(|(kind, copy)| self.allocation.give_back(kind, copy));
        let is_state = |id: Id| states.iter().any(|state| state.now == id);
        (0..end).filter(|&id| !is_state(id)).for_each(|id| self.release(id, end));
        for state in states.iter().filter(|state| !self.liveness.is_needed(state.result)) {
            if let Source::Register(register) = self.sources[state.now as usize] {
                self.allocation.give_back(state.kind, register);
            }
        }
    }

    /// Frees the register of an input, if `user` is its last use.
    fn release(&mut self, input: Id, user: Id) {
        if let Source::Register(register) = self.sources[input as usize]
            && self.liveness.ends_at(input, user)
        {
            self.allocation.give_back(self.operations[input as usize].kind, register);
        }
    }
}

/// The loads of a program that are outside of loops, by the rows that they are in, and those that are in
/// none.
pub(crate) fn rows(all: &[Load], loads: &[ProgramLoad]) -> (Vec<RowOfLoads>, Vec<u32>) {
    let (mut rows, mut beside_rows) = (Vec::<RowOfLoads>::new(), Vec::new());
    for (at, load) in (0..).zip(loads).filter(|(_, load)| !load.is_in_loop) {
        let one = all[load.number as usize];
        if one.row() != Row::Contiguous {
            beside_rows.push(at);
            continue;
        }
        match rows.iter_mut().find(|row| row.one.is_beside(&one)) {
            Some(row) => row.loads.push((at, one.along[2])),
            None => rows.push(RowOfLoads { one, loads: vec![(at, one.along[2])] }),
        }
    }
    (rows, beside_rows)
}

/// The registers that are free.
#[derive(Default)]
pub(crate) struct Allocation {
    pub(crate) registers: Registers,
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
