//! Chains as machine code: a loop over the vectors of a block.
//!
//! The function has four arguments. `rdi` points to a table of pointers: those of the [loads](Chains::loads),
//! then those of the [outputs](Function::outputs), then those of the [registers of the
//! program](Function::registers). Each pointer leads to the element of the first point of the block. (A
//! register that only these chains need has the two vectors that are computed now, and no others.) `rsi`
//! points to the [numbers](Chains::numbers). `rcx` and `rdx` are numbers of bytes: from the first point of
//! the block to the first one to compute, and to the end of the last one. Between them are whole vectors.
//!
//! `rcx` counts on to the next point. A step of the loop computes all chains for two vectors, which have
//! registers of their own: so the processor has something to do while it waits for a result. If the number of
//! vectors is odd, the rest has a step of its own. If there are not enough registers for two vectors and the
//! numbers, each step computes one.

use super::{
    assembler::{Address, Arithmetic, Assembler, General, Last, Vector},
    placement::Placement,
};
use crate::steps::{Chains, Join, Link, Scaled, With};
use rustc_hash::FxHashSet;

/// A function that computes chains, and what its caller has to know.
#[derive(Debug)]
pub(super) struct Function {
    /// Where its code begins.
    pub(super) entry: usize,
    /// The number of loads and of numbers.
    pub(super) inputs: [usize; 2],
    /// The outputs that it sets: their places in the program's list.
    pub(super) outputs: Vec<u32>,
    /// The registers of the program that it reads or writes in memory.
    pub(super) registers: Vec<u32>,
    /// See [`Chains::are_alone`]. Then the function uses only the first two vectors of the registers of the
    /// program.
    pub(super) are_alone: bool,
    /// Whether it may compute a point again: it changes no register of the program that it has read.
    pub(super) is_repeatable: bool,
}

/// The registers that have pointers, the first ones of the table. `rax` is for one of the others at a time.
const POINTERS: [General; 10] = [
    General(8),
    General(9),
    General(10),
    General(11),
    General::RBX,
    General::RBP,
    General(12),
    General(13),
    General(14),
    General(15),
];

/// Those of them that a function leaves as they were.
const KEPT: &[General] = POINTERS.split_at(4).1;

/// Adds the function of some chains to the code.
pub(super) fn translate(assembler: &mut Assembler, chains: &Chains) -> Function {
    let placement = Placement::new(chains, assembler.set);
    let set = |link: &Link| if let Link::Set(output) = *link { Some(output) } else { None };
    let outputs = chains.links.iter().filter_map(set).collect();
    let function = Function {
        entry: assembler.align(),
        inputs: [chains.loads.len(), chains.numbers.len()],
        outputs,
        registers: placement.in_memory(chains),
        are_alone: chains.are_alone,
        is_repeatable: is_repeatable(chains),
    };
    Translation { assembler, chains, placement: &placement, function: &function, width: placement.width }
        .all();
    function
}

struct Translation<'a> {
    assembler: &'a mut Assembler,
    chains: &'a Chains,
    placement: &'a Placement,
    function: &'a Function,
    /// The vectors of a step.
    width: u8,
}

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    /// In registers, one for each vector of a step, of which this is the first.
    Each(Vector),
    /// A number in a register, for all vectors.
    All(Vector),
    /// In memory, one vector after the other.
    Memory(Address),
    /// A number in memory.
    Number(Address),
}

impl Operand {
    fn is_in_registers(self) -> bool {
        matches!(self, Self::Each(_) | Self::All(_))
    }
}

/// What a step knows while it is translated.
struct Step {
    /// The result so far of the chain, and the registers that the next result goes to.
    so_far: Operand,
    to: Vector,
    /// The registers of the program and the loads that are in vector registers already.
    stored: FxHashSet<u32>,
    loaded: FxHashSet<u32>,
}

impl Translation<'_> {
    fn all(&mut self) {
        KEPT.iter().for_each(|&register| self.assembler.push(register));
        let Function { outputs, registers, .. } = self.function;
        let count = self.chains.loads.len() + outputs.len() + registers.len();
        for (at, &register) in POINTERS.iter().enumerate().take(count) {
            self.assembler.load_pointer(register, in_table(at));
        }
        let (Vector(first), count) = self.placement.numbers;
        for number in 0..count {
            self.assembler.load_number(Vector(first + number as u8), self.number_in_memory(number as u32));
        }
        if self.width > 1 {
            self.steps();
            self.width = 1;
        }
        self.steps();
        KEPT.iter().rev().for_each(|&register| self.assembler.pop(register));
        self.assembler.clean_and_return();
    }

    /// A loop, as long as the block has all vectors of a step.
    fn steps(&mut self) {
        let bytes = i32::from(self.width) * self.assembler.set.bytes() as i32;
        let next = Address { base: General::RCX, index: None, bytes };
        self.assembler.set_to(General::RAX, next);
        let end = self.assembler.jump_if_above(General::RAX, General::RDX);
        self.assembler.align();
        let begin = self.assembler.label();
        self.step();
        self.assembler.set_to(General::RCX, next);
        self.assembler.set_to(General::RAX, next);
        self.assembler.jump_back_unless_above(General::RAX, General::RDX, begin);
        self.assembler.land(end);
    }

    fn step(&mut self) {
        let to = self.placement.so_far;
        let (stored, loaded) = Default::default();
        let mut step = Step { so_far: Operand::Each(to), to, stored, loaded };
        let is_end = |link: &Link| matches!(link, Link::Store(_) | Link::Set(_));
        for chain in self.chains.links.split_inclusive(is_end) {
            step.to = self.target(chain);
            chain.iter().for_each(|&link| self.link(&mut step, link));
        }
    }

    /// The registers that the results of a chain go to: those of its end, if they are not an operand of it.
    fn target(&self, chain: &[Link]) -> Vector {
        let Some(&Link::Store(end)) = chain.last() else { return self.placement.so_far };
        let own = self.placement.vector(end).filter(|_| chain.iter().all(|link| link.reads() != Some(end)));
        own.unwrap_or(self.placement.so_far)
    }

    fn link(&mut self, step: &mut Step, link: Link) {
        match link {
            Link::TakeLoad(at) => self.join(step, Join::Take, With::Load(at)),
            Link::TakeNumber(at) => self.join(step, Join::Take, With::Number(at)),
            Link::TakeRegister(at) => self.join(step, Join::Take, With::Register(at)),
            Link::AddLoad(at) => self.join(step, Join::Add, With::Load(at)),
            Link::AddNumber(at) => self.join(step, Join::Add, With::Number(at)),
            Link::AddRegister(at) => self.join(step, Join::Add, With::Register(at)),
            Link::SubLoad(at) => self.join(step, Join::Sub, With::Load(at)),
            Link::SubNumber(at) => self.join(step, Join::Sub, With::Number(at)),
            Link::SubRegister(at) => self.join(step, Join::Sub, With::Register(at)),
            Link::SubFromLoad(at) => self.join(step, Join::SubFrom, With::Load(at)),
            Link::SubFromNumber(at) => self.join(step, Join::SubFrom, With::Number(at)),
            Link::SubFromRegister(at) => self.join(step, Join::SubFrom, With::Register(at)),
            Link::MulLoad(at) => self.join(step, Join::Mul, With::Load(at)),
            Link::MulNumber(at) => self.join(step, Join::Mul, With::Number(at)),
            Link::MulRegister(at) => self.join(step, Join::Mul, With::Register(at)),
            Link::TakeLoads([a, b]) => {
                self.join(step, Join::Take, With::Load(a));
                self.join(step, Join::Add, With::Load(b));
            }
            Link::AddLoads([a, b]) => {
                self.join(step, Join::Add, With::Load(a));
                self.join(step, Join::Add, With::Load(b));
            }
            Link::AddScaled(by) => self.scaled(step, Arithmetic::Add, by),
            Link::SubScaled(by) => self.scaled(step, Arithmetic::Sub, by),
            Link::Store(register) => self.store(step, register),
            Link::Set(output) => {
                let place = self.function.outputs.iter().position(|&set| set == output).expect("it is set");
                let to = self.pointer(self.chains.loads.len() + place, true);
                self.store_vectors(to, step.so_far);
            }
        }
    }

    /// Joins the results so far with an operand.
    fn join(&mut self, step: &mut Step, join: Join, with: With) {
        let with = self.operand(step, with);
        let what = match join {
            Join::Take => {
                // The next operand may be another number in its register.
                let will_change = self.placement.number.is_some_and(|number| with == Operand::All(number));
                step.so_far =
                    if with.is_in_registers() && !will_change { with } else { self.load(step.to, with) };
                return;
            }
            Join::Add => Arithmetic::Add,
            Join::Sub | Join::SubFrom => Arithmetic::Sub,
            Join::Mul => Arithmetic::Mul,
        };
        let [a, b] = match (join, with.is_in_registers()) {
            (Join::SubFrom, true) => [with, step.so_far],
            (Join::SubFrom, false) => [self.load(self.placement.temporary, with), step.so_far],
            _ => [step.so_far, with],
        };
        self.compute(what, step.to, a, b);
        step.so_far = Operand::Each(step.to);
    }

    /// Adds or subtracts products.
    fn scaled(&mut self, step: &mut Step, what: Arithmetic, by: Scaled) {
        let (load, number) =
            (self.operand(step, With::Load(by.load)), self.operand(step, With::Number(by.number)));
        let temporary = self.placement.temporary;
        let [a, b] = match [load, number].map(Operand::is_in_registers) {
            [true, _] => [load, number],
            [false, true] => [number, load],
            [false, false] => [self.load(temporary, load), number],
        };
        self.compute(Arithmetic::Mul, temporary, a, b);
        self.compute(what, step.to, step.so_far, Operand::Each(temporary));
        step.so_far = Operand::Each(step.to);
    }

    /// Ends a chain whose result goes to a register of the program.
    fn store(&mut self, step: &mut Step, register: u32) {
        if let Some(vector) = self.placement.vector(register) {
            if step.so_far != Operand::Each(vector) {
                self.load(vector, step.so_far);
            }
            step.stored.insert(register);
        }
        if let Some(to) = self.register_in_memory(register) {
            self.store_vectors(to, step.so_far);
        }
    }

    /// An operand of a link. It may be at the pointer in `rax` or in the register of a
    /// [number](Placement::number), until there is another one.
    fn operand(&mut self, step: &mut Step, with: With) -> Operand {
        match with {
            With::Load(load) => match self.placement.loads[load as usize] {
                Some(vector) if !step.loaded.insert(load) => Operand::Each(vector),
                Some(vector) => {
                    let from = Operand::Memory(self.pointer(load as usize, true));
                    self.load(vector, from)
                }
                None => Operand::Memory(self.pointer(load as usize, true)),
            },
            With::Number(number) => {
                let (Vector(first), count) = self.placement.numbers;
                let in_memory = self.number_in_memory(number);
                match self.placement.number {
                    _ if (number as usize) < count => Operand::All(Vector(first + number as u8)),
                    Some(vector) => {
                        self.assembler.load_number(vector, in_memory);
                        Operand::All(vector)
                    }
                    None => Operand::Number(in_memory),
                }
            }
            With::Register(register) => match self.placement.vector(register) {
                Some(vector) if step.stored.contains(&register) => Operand::Each(vector),
                _ => {
                    let in_memory = self.register_in_memory(register);
                    Operand::Memory(in_memory.expect("what no chain before has computed is in memory"))
                }
            },
        }
    }

    /// Loads or copies an operand to registers.
    fn load(&mut self, to: Vector, from: Operand) -> Operand {
        for at in 0..self.width {
            let to = nth(to, at);
            match self.last(from, at) {
                Last::Memory(address) => self.assembler.load(to, address),
                Last::Number(address) => self.assembler.load_number(to, address),
                Last::Register(register) => self.assembler.copy(to, register),
            }
        }
        Operand::Each(to)
    }

    fn store_vectors(&mut self, to: Address, from: Operand) {
        for at in 0..self.width {
            let Last::Memory(to) = self.last(Operand::Memory(to), at) else {
                unreachable!("it is in memory")
            };
            let from = self.register(from, at);
            self.assembler.store(to, from);
        }
    }

    /// Computes all vectors of a step. The first operand is in registers.
    fn compute(&mut self, what: Arithmetic, to: Vector, a: Operand, b: Operand) {
        for at in 0..self.width {
            let (a, b) = (self.register(a, at), self.last(b, at));
            self.assembler.compute(what, nth(to, at), a, b);
        }
    }

    /// The register of one of the vectors of a step.
    fn register(&self, operand: Operand, at: u8) -> Vector {
        match self.last(operand, at) {
            Last::Register(vector) => vector,
            Last::Memory(_) | Last::Number(_) => unreachable!("{operand:?} is in registers"),
        }
    }

    /// One of the vectors of a step as the last operand of an instruction.
    fn last(&self, operand: Operand, at: u8) -> Last {
        match operand {
            Operand::Each(first) => Last::Register(nth(first, at)),
            Operand::All(vector) => Last::Register(vector),
            Operand::Memory(Address { base, index, bytes }) => {
                let bytes = bytes + i32::from(at) * self.assembler.set.bytes() as i32;
                Last::Memory(Address { base, index, bytes })
            }
            Operand::Number(address) => Last::Number(address),
        }
    }

    /// Where a register of the program is in memory, if it has to be there.
    fn register_in_memory(&mut self, register: u32) -> Option<Address> {
        let place = self.function.registers.iter().position(|&other| other == register)?;
        // What only these chains need has the same place for all vectors.
        let is_of_block = !self.chains.are_alone;
        Some(self.pointer(self.chains.loads.len() + self.function.outputs.len() + place, is_of_block))
    }

    fn number_in_memory(&self, number: u32) -> Address {
        let bytes = number as usize * self.assembler.float.bytes();
        Address { base: General::RSI, index: None, bytes: bytes as i32 }
    }

    /// The vectors that a pointer of the table leads to: those of this step, or always the first ones.
    fn pointer(&mut self, at: usize, is_of_block: bool) -> Address {
        let base = POINTERS.get(at).copied().unwrap_or_else(|| {
            self.assembler.load_pointer(General::RAX, in_table(at));
            General::RAX
        });
        Address { base, index: is_of_block.then_some(General::RCX), bytes: 0 }
    }
}

/// See [`Function::is_repeatable`].
fn is_repeatable(chains: &Chains) -> bool {
    let [mut read, mut stored] = [(); 2].map(|()| FxHashSet::default());
    chains.links.iter().all(|link| {
        read.extend(link.reads().filter(|register| !stored.contains(register)));
        match *link {
            Link::Store(register) => {
                stored.insert(register);
                !read.contains(&register)
            }
            _ => true,
        }
    })
}

/// A pointer of the table.
fn in_table(at: usize) -> Address {
    Address { base: General::RDI, index: None, bytes: (at * size_of::<*mut u8>()) as i32 }
}

/// The register that is `at` places behind the first one.
fn nth(Vector(first): Vector, at: u8) -> Vector {
    Vector(first + at)
}
