//! Programs: recordings that are prepared for the processor, without the values of literals.

use crate::{
    fold::Fold,
    number::Kind,
    operation::{Id, Load, Operation, Row, What},
    recording::{Body, Recording},
    reduction::Reduction,
    steps::{Action, Chains, Join, Link, Linkable, Loop, Registers, Source, Step, With},
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
    pub(crate) chains: Vec<Chains>,
    /// The loops of all steps.
    pub(crate) loops: Vec<Loop>,
    /// The loads that the results need.
    pub(crate) loads: Vec<ProgramLoad>,
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

/// A load that a program needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramLoad {
    /// Its number in the recording.
    pub(crate) number: u32,
    /// Whether its elements differ from turn to turn of a fold.
    pub(crate) is_in_loop: bool,
}

impl Program {
    /// Prepares a recording.
    pub fn new(recording: &Recording) -> Self {
        let body = recording.body.clone();
        let mut schedule = Schedule::new(&body);
        for id in 0..body.operations.len() as Id {
            schedule.place(id);
        }
        let Schedule { steps, chains, loops, loads, allocation, sources, .. } = schedule;
        let store =
            |(operand, id): (usize, Id)| (operand, body.operations[id as usize].kind, sources[id as usize]);
        let stores = body.results().map(store).collect();
        let reduced = |(reduction, id): (Reduction, Id)| Reduced { reduction, source: sources[id as usize] };
        let reductions = body.reductions().map(reduced).collect();
        let registers = allocation.registers;
        Self { steps, chains, loops, loads, registers, sources, stores, reductions, body }
    }

    /// A load that the program needs.
    #[inline]
    pub(crate) fn load(&self, load: ProgramLoad) -> &Load {
        &self.body.loads[load.number as usize]
    }

    /// Whether this is the program of a recording.
    pub fn is_of(&self, recording: &Recording) -> bool {
        self.body == recording.body
    }

    /// The number of operations and chains of operations that a block takes, and the number of registers that they need.
    pub fn size(&self) -> (usize, usize) {
        let chained = |step: &Step| match step.action {
            Action::Chains(number) => {
                let links = self.chains[number as usize].links.iter();
                links.filter(|link| matches!(link, Link::Store(_))).count()
            }
            Action::Operation(..) | Action::Copy { .. } => 1,
            Action::Loop(_) => 0,
        };
        let registers = self.registers.0.iter().sum::<u32>();
        (self.steps.iter().map(chained).sum(), registers as usize)
    }
}

/// A program, as far as it is prepared.
struct Schedule<'a> {
    operations: &'a [Operation],
    all_loads: &'a [Load],
    folds: &'a [Fold],
    uses: Uses,
    allocation: Allocation,
    steps: Vec<Step>,
    chains: Vec<Chains>,
    loops: Vec<Loop>,
    /// The loops that have begun, the innermost one last.
    open: Vec<u32>,
    /// Where the last loop has ended: no chain before joins one behind.
    ended: usize,
    loads: Vec<ProgramLoad>,
    sources: Vec<Source>,
}

impl<'a> Schedule<'a> {
    fn new(body: &'a Body) -> Self {
        let operations = &body.operations[..];
        Self {
            operations,
            all_loads: &body.loads,
            folds: &body.folds,
            uses: Uses::new(body),
            allocation: Allocation::default(),
            steps: Vec::with_capacity(operations.len()),
            chains: Vec::new(),
            loops: Vec::new(),
            open: Vec::new(),
            ended: 0,
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
            What::Load(number) => {
                let load = self.loads.len() as u32;
                self.loads.push(ProgramLoad { number, is_in_loop: !self.open.is_empty() });
                if let Some(&inside) = self.open.last() {
                    self.loops[inside as usize].loads.push(load);
                }
                self.sources[id as usize] = Source::Load(load);
                // The operand that is set may be the one that the element is in.
                if self.uses.is_result(id) {
                    self.sources[id as usize] = Source::Register(self.copy(Source::Load(load), kind));
                }
            }
            What::Turn(fold) => self.begin(id, fold),
            What::EndTurn(fold) => self.end(id, fold),
            // Their sources are known from the beginning of the fold.
            What::State(..) | What::Folded(..) => {}
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

    /// Adds the chain that ends with an operation, to those of the last step if they have its type.
    fn chain(&mut self, end: Id, kind: Kind, register: u32) {
        let is_with_others = matches!(
            self.steps[self.ended..].last(),
            Some(Step { action: Action::Chains(_), kind: before }) if *before == kind
        );
        if !is_with_others {
            self.steps.push(Step { action: Action::Chains(self.chains.len() as u32), kind });
            self.chains.push(Chains::default());
        }
        // The last link comes first.
        let mut links = vec![Link::Store(register)];
        let mut at = end;
        let first = loop {
            let linkable = Linkable::new(self.operations[at as usize]).expect("a chain consists of links");
            let continued = self.uses.continued(at);
            let so_far = continued.unwrap_or(linkable.operands[0]);
            let (join, with) = linkable.join(so_far);
            links.push(Link::new(join, self.operand(with)));
            self.release(with, end);
            match continued {
                Some(operand) => at = operand,
                None => break so_far,
            }
        };
        links.push(Link::new(Join::Take, self.operand(first)));
        self.release(first, end);
        self.last_chains().links.extend(links.into_iter().rev());
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
                numbers.push(source);
                With::Number(numbers.len() as u32 - 1)
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
        self.steps.push(Step { action: Action::Copy { from, register }, kind });
        register
    }

    /// Begins the turns of a fold, whose state has registers of its own until all results of the fold have been used.
    fn begin(&mut self, turn: Id, fold: u32) {
        self.sources[turn as usize] = Source::Counter(fold);
        let states = &self.folds[fold as usize].states;
        for state in states {
            let register = self.copy(self.sources[state.first as usize], state.kind);
            for id in [state.now, state.result] {
                self.sources[id as usize] = Source::Register(register);
            }
        }
        states.iter().for_each(|state| self.release(state.first, turn));
        let number = self.loops.len() as u32;
        self.steps.push(Step { action: Action::Loop(number), kind: Kind::U32 });
        self.loops.push(Loop { fold, end: 0, loads: Vec::new(), swaps: Vec::new() });
        self.open.push(number);
        self.ended = self.steps.len();
    }

    /// Ends a turn. What it has computed changes places with the state, so that nothing is copied. What is not computed in the turn, or is
    /// needed for several values of the state, is copied before.
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
            let is_computed = self.uses.scope(state.next) == Some(fold)
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
        let turns = &mut self.loops[number as usize];
        (turns.end, turns.swaps) = (self.steps.len(), swaps);
        self.ended = self.steps.len();
        copies.into_iter().for_each(|(kind, copy)| self.allocation.give_back(kind, copy));
        let is_state = |id: Id| states.iter().any(|state| state.now == id);
        (0..end).filter(|&id| !is_state(id)).for_each(|id| self.release(id, end));
        for state in states.iter().filter(|state| !self.uses.is_needed(state.result)) {
            if let Source::Register(register) = self.sources[state.now as usize] {
                self.allocation.give_back(state.kind, register);
            }
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
