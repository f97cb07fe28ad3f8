//! The steps of a program, for one block.

use super::{
    argument::{Argument, Elements, Loaded, number, numbers_mut},
    arithmetic::{Arithmetic, ConvertTo, combine, compare},
    chain::ChainsOfBlock,
    gathered::Gathered,
    instructions::Token,
    lanes::Lanes,
    load::Place,
    loops::{map, select},
    machine_code::MachineCode,
    operands::Others,
    registers::{Banks, IN_BANK},
};
use crate::{
    number::{Kind, Scalar, Slice, SliceMut},
    operation::{Id, Unary, What},
    program::Program,
    steps::{Action, Loop, Source, Step, Target},
};
use std::{mem, ops::Range};

/// A program and one block.
pub(super) struct Execute<'a, 'b, 'o> {
    pub(super) program: &'a Program,
    pub(super) machine_code: Option<&'a MachineCode>,
    pub(super) token: Token,
    pub(super) parameters: &'a [Scalar],
    pub(super) banks: &'a mut Banks,
    /// The elements of each load that the program needs.
    pub(super) elements: &'a mut [Elements],
    /// The slices of operands.
    pub(super) slices: &'a mut [Slice<'b>],
    /// Those that were gathered.
    pub(super) gathered: &'a mut [Gathered],
    /// The counters of the folds.
    pub(super) counters: &'a mut [u32],
    /// The operands that elements are taken of.
    pub(super) others: &'b Others<'o>,
    /// The slices of the outputs.
    pub(super) outputs: &'a mut [SliceMut<'b>],
    /// The first point.
    pub(super) point: &'b [usize; 3],
    pub(super) len: usize,
}

impl Execute<'_, '_, '_> {
    /// Computes all steps.
    pub(super) fn run(mut self) {
        self.steps(0..self.program.steps.len());
    }

    /// Computes the steps of a range.
    fn steps(&mut self, range: Range<usize>) {
        let (program, mut at) = (self.program, range.start);
        while at < range.end {
            let Step { action, kind } = program.steps[at];
            at += 1;
            match (action, kind) {
                (Action::Loop(number), _) => {
                    let iterations = &program.loops[number as usize];
                    self.iterate(iterations, at..iterations.end);
                    at = iterations.end;
                }
                (Action::Chains(number), Kind::F32) => self.chains::<f32>(number),
                (Action::Chains(number), Kind::F64) => self.chains::<f64>(number),
                (Action::Chains(_), _) => unreachable!("a chain is one of floats, not of {kind}"),
                (Action::Copy { from, to }, Kind::F32) => self.copy::<f32>(from, to),
                (Action::Copy { from, to }, Kind::F64) => self.copy::<f64>(from, to),
                (Action::Copy { from, to }, Kind::I32) => self.copy::<i32>(from, to),
                (Action::Copy { from, to }, Kind::U32) => self.copy::<u32>(from, to),
                (Action::Copy { from, to }, Kind::I64) => self.copy::<i64>(from, to),
                (Action::Copy { from, to }, Kind::U64) => self.copy::<u64>(from, to),
                (Action::Copy { .. }, Kind::Bool) => unreachable!("no operand has masks"),
                (Action::Operation(What::Index(dim), to), _) => self.index(dim, to),
                (Action::Operation(what, to), Kind::Bool) => self.mask(what, to),
                (Action::Operation(what, to), Kind::F32) => self.number::<f32>(what, to),
                (Action::Operation(what, to), Kind::F64) => self.number::<f64>(what, to),
                (Action::Operation(what, to), Kind::I32) => self.number::<i32>(what, to),
                (Action::Operation(what, to), Kind::U32) => self.number::<u32>(what, to),
                (Action::Operation(what, to), Kind::I64) => self.number::<i64>(what, to),
                (Action::Operation(what, to), Kind::U64) => self.number::<u64>(what, to),
            }
        }
    }

    fn chains<T: Arithmetic + Lanes>(&mut self, number: u32) {
        let mut chains = ChainsOfBlock {
            chains: &self.program.chains[number as usize],
            parameters: self.parameters,
            loaded: Loaded { elements: self.elements, slices: self.slices, gathered: self.gathered },
            done: 0,
            len: self.len,
            bank: T::bank_mut(self.banks),
            outputs: self.outputs,
        };
        if let Some(machine_code) = self.machine_code.filter(|code| code.fits::<T>(self.len)) {
            chains.compute_by(machine_code, number);
        }
        if chains.done < chains.len {
            self.token.run_simd(chains);
        }
    }

    /// Repeats the steps of a range, once for each number of a fold.
    fn iterate(&mut self, iterations: &Loop, steps: Range<usize>) {
        let [from, to] = self.program.body.folds[iterations.fold as usize].counts(self.parameters);
        for counter in from..to {
            self.counters[iterations.fold as usize] = counter;
            iterations.loads.iter().for_each(|&load| self.load(load as usize));
            self.steps(steps.clone());
            for &(kind, [a, b]) in &iterations.swaps {
                self.banks.swap(kind, a as usize, b as usize);
            }
        }
    }

    /// Finds the elements of a load in this iteration.
    fn load(&mut self, at: usize) {
        let load = self.program.load(self.program.loads[at]);
        let place = &Place { point: self.point, parameters: self.parameters, counters: self.counters };
        self.elements[at] = load.find_in_iteration(place, self.len, self.others, (self.slices, at as u32));
        if let Elements::Gathered = self.elements[at] {
            load.gather(place, self.len, self.others, &mut self.gathered[at]);
        }
    }

    /// Calls a function with the elements that a result goes to.
    fn set<T: Arithmetic>(&mut self, target: Target, f: impl FnOnce(&Self, &mut [T])) {
        match target {
            Target::Register(register) => {
                // No step reads the register that it writes, so the block can leave its bank meanwhile.
                let mut block = T::bank_mut(self.banks)[register as usize].take();
                f(self, &mut block.as_mut().expect(IN_BANK).0[..self.len]);
                T::bank_mut(self.banks)[register as usize] = block;
            }
            Target::Output(output) => {
                // The output is set once, so its slice can stay away.
                let slice = mem::replace(&mut self.outputs[output as usize], SliceMut::F32(&mut []));
                f(self, &mut numbers_mut(slice)[..self.len]);
            }
        }
    }

    fn copy<T: Arithmetic>(&mut self, from: Source, to: Target) {
        self.set::<T>(to, |execute, to| match execute.source(from) {
            Argument::Block(from) => to.copy_from_slice(from),
            Argument::Same(value) => to.fill(value),
        });
    }

    fn number<T: Arithmetic>(&mut self, what: What, to: Target)
    where
        f32: ConvertTo<T>,
        f64: ConvertTo<T>,
        i32: ConvertTo<T>,
        u32: ConvertTo<T>,
        i64: ConvertTo<T>,
        u64: ConvertTo<T>,
    {
        self.set::<T>(to, |execute, to| match what {
            What::Unary(what, a) => T::unary(execute.token, what, to, execute.argument(a)),
            What::Binary(what, a, b) => {
                T::binary(execute.token, what, to, execute.argument(a), execute.argument(b));
            }
            What::Select(mask, a, b) => {
                select(execute.token, to, execute.masks(mask), execute.argument(a), execute.argument(b));
            }
            What::Convert(a) => execute.convert(a, to),
            _ => unreachable!("{what:?} is no operation on numbers that gives {}", T::KIND),
        });
    }

    fn convert<T: Arithmetic>(&self, a: Id, to: &mut [T])
    where
        f32: ConvertTo<T>,
        f64: ConvertTo<T>,
        i32: ConvertTo<T>,
        u32: ConvertTo<T>,
        i64: ConvertTo<T>,
        u64: ConvertTo<T>,
    {
        match self.kind(a) {
            Kind::F32 => map(self.token, to, self.argument::<f32>(a), ConvertTo::convert),
            Kind::F64 => map(self.token, to, self.argument::<f64>(a), ConvertTo::convert),
            Kind::I32 => map(self.token, to, self.argument::<i32>(a), ConvertTo::convert),
            Kind::U32 => map(self.token, to, self.argument::<u32>(a), ConvertTo::convert),
            Kind::I64 => map(self.token, to, self.argument::<i64>(a), ConvertTo::convert),
            Kind::U64 => map(self.token, to, self.argument::<u64>(a), ConvertTo::convert),
            Kind::Bool => unreachable!("masks are selected by, not converted"),
        }
    }

    fn index(&mut self, dim: usize, to: Target) {
        self.set::<u32>(to, |execute, to| {
            let first = execute.point[dim] as u32;
            if dim == 2 {
                to.iter_mut().zip(first..=u32::MAX).for_each(|(to, at)| *to = at);
            } else {
                to.fill(first);
            }
        });
    }

    fn mask(&mut self, what: What, to: Target) {
        let Target::Register(register) = to else { unreachable!("masks are in registers") };
        let mut result = self.banks.bool[register as usize].take();
        let to = &mut result.as_mut().expect(IN_BANK).0[..self.len];
        match what {
            What::Unary(Unary::Not, a) => map(self.token, to, Argument::Block(self.masks(a)), |a: bool| !a),
            What::Compare(what, a, b) => match self.kind(a) {
                Kind::Bool => combine(
                    self.token,
                    what,
                    to,
                    Argument::Block(self.masks(a)),
                    Argument::Block(self.masks(b)),
                ),
                Kind::F32 => compare(self.token, what, to, self.argument::<f32>(a), self.argument(b)),
                Kind::F64 => compare(self.token, what, to, self.argument::<f64>(a), self.argument(b)),
                Kind::I32 => compare(self.token, what, to, self.argument::<i32>(a), self.argument(b)),
                Kind::U32 => compare(self.token, what, to, self.argument::<u32>(a), self.argument(b)),
                Kind::I64 => compare(self.token, what, to, self.argument::<i64>(a), self.argument(b)),
                Kind::U64 => compare(self.token, what, to, self.argument::<u64>(a), self.argument(b)),
            },
            _ => unreachable!("{what:?} gives no mask"),
        }
        self.banks.bool[register as usize] = result;
    }

    #[inline]
    fn kind(&self, id: Id) -> Kind {
        self.program.body.operations[id as usize].kind
    }

    /// The result of an earlier operation.
    #[inline]
    fn argument<T: Arithmetic>(&self, id: Id) -> Argument<'_, T> {
        self.source(self.program.sources[id as usize])
    }

    #[inline]
    fn source<T: Arithmetic>(&self, source: Source) -> Argument<'_, T> {
        match source {
            Source::Load(load) => match self.loaded().argument(load) {
                Argument::Block(elements) => Argument::Block(&elements[..self.len]),
                same @ Argument::Same(_) => same,
            },
            Source::Parameter(parameter) => Argument::Same(number(self.parameters[parameter as usize])),
            Source::Counter(fold) => Argument::Same(number(Scalar::U32(self.counters[fold as usize]))),
            Source::Register(register) => Argument::Block(
                &T::bank(self.banks)[register as usize].as_ref().expect(IN_BANK).0[..self.len],
            ),
            Source::Nowhere => unreachable!("a step needs what is inside of a chain"),
        }
    }

    #[inline]
    fn loaded(&self) -> Loaded<'_> {
        Loaded { elements: self.elements, slices: self.slices, gathered: self.gathered }
    }

    #[inline]
    fn masks(&self, id: Id) -> &[bool] {
        let Source::Register(register) = self.program.sources[id as usize] else {
            unreachable!("masks are in registers")
        };
        &self.banks.bool[register as usize].as_ref().expect(IN_BANK).0[..self.len]
    }
}
