//! Programs: recordings that are prepared for the processor, without the values of literals.

use crate::{
    number::Kind,
    operation::{Id, Operation, What},
    recording::{Body, Recording},
};

/// The register of an operation that has none.
pub(crate) const NO_REGISTER: u32 = u32::MAX;

/// A recording, prepared for the processor. It is worth keeping: [`is_of`](Self::is_of) says whether a later recording is
/// the same program.
#[derive(Debug)]
pub struct Program {
    pub(crate) body: Body,
    /// The operations that the results need, in their order, without loads and literals.
    pub(crate) steps: Vec<Step>,
    /// The loads that the results need.
    pub(crate) loads: Vec<usize>,
    /// The number of registers of each type.
    pub(crate) registers: Registers,
    /// The register of each operation that has one.
    pub(crate) register: Vec<u32>,
    /// The operands that are set, and what they are set to.
    pub(crate) stores: Vec<(usize, Source)>,
}

/// What an operand is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Register(Kind, u32),
    Parameter(u32),
}

/// An operation, and the register that its result goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) what: What,
    pub(crate) kind: Kind,
    pub(crate) register: u32,
}

/// The number of registers of each type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers([u32; 7]);

impl Registers {
    pub(crate) fn of(&self, kind: Kind) -> usize {
        self.0[kind as usize] as usize
    }
}

impl Program {
    /// Prepares a recording.
    pub fn new(recording: &Recording) -> Self {
        let body = recording.body.clone();
        let last_use = last_uses(&body);
        let mut allocation = Allocation::default();
        let mut register = vec![NO_REGISTER; body.operations.len()];
        let (mut steps, mut loads) = (Vec::new(), Vec::new());
        for (id, Operation { what, kind }) in body.operations.iter().copied().enumerate() {
            let Some(last) = last_use[id] else { continue };
            if let What::Load(load) = what {
                loads.push(load as usize);
            }
            // An operation takes loads and literals from where they are. Only what an operand is set to must be in a register.
            if matches!(what, What::Parameter(_)) || (matches!(what, What::Load(_)) && last != RESULT) {
                continue;
            }
            register[id] = allocation.take(kind);
            steps.push(Step { what, kind, register: register[id] });
            // After the result has its register: the result never goes to the register of an input.
            for input in what.inputs() {
                let input = input as usize;
                if last_use[input] == Some(id as Id) && register[input] != NO_REGISTER {
                    allocation.give_back(body.operations[input].kind, register[input]);
                }
            }
        }
        let source = |id: Id| match body.operations[id as usize] {
            Operation { what: What::Parameter(parameter), .. } => Source::Parameter(parameter),
            Operation { kind, .. } => Source::Register(kind, register[id as usize]),
        };
        let stores = body.stores.iter().map(|&(operand, id)| (operand, source(id))).collect();
        Self { body, steps, loads, registers: allocation.registers, register, stores }
    }

    /// Whether this is the program of a recording.
    pub fn is_of(&self, recording: &Recording) -> bool {
        self.body == recording.body
    }

    /// The number of operations that a block takes, and the number of registers that they need.
    pub fn size(&self) -> (usize, usize) {
        let registers = self.registers.0.iter().sum::<u32>();
        (self.steps.len(), registers as usize)
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

/// The last use of what an operand is set to.
const RESULT: Id = Id::MAX;

/// The last operation that uses each result, or [`RESULT`]; `None` for what nothing needs.
fn last_uses(body: &Body) -> Vec<Option<Id>> {
    let mut last = vec![None; body.operations.len()];
    for &(_, id) in &body.stores {
        last[id as usize] = Some(RESULT);
    }
    for id in (0..body.operations.len()).rev() {
        if last[id].is_some() {
            for input in body.operations[id].what.inputs() {
                last[input as usize].get_or_insert(id as Id);
            }
        }
    }
    last
}
