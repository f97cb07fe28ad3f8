//! The steps of a program, for one block.

use super::{
    argument::{Argument, number, numbers},
    arithmetic::{Arithmetic, ConvertTo, combine, compare},
    chain::Chains,
    instructions::Token,
    lanes::Lanes,
    loops::{map, select},
    memory::{Banks, IN_BANK},
};
use crate::{
    number::{Kind, Scalar, Slice},
    operation::{Id, Unary, What},
    program::Program,
    steps::{Action, Source, Step},
};

/// A program and one block.
pub(super) struct Execute<'a, 'b> {
    pub(super) program: &'a Program,
    pub(super) token: Token,
    pub(super) parameters: &'a [Scalar],
    pub(super) banks: &'a mut Banks,
    /// The elements of each load that the program needs.
    pub(super) elements: &'a [Slice<'b>],
    /// The first point.
    pub(super) point: [usize; 3],
    pub(super) len: usize,
}

impl Execute<'_, '_> {
    /// Computes all steps.
    pub(super) fn run(mut self) {
        let program = self.program;
        for &Step { action, kind } in &program.steps {
            match (action, kind) {
                (Action::Chains { from, to }, Kind::F32) => self.chains::<f32>(from, to),
                (Action::Chains { from, to }, Kind::F64) => self.chains::<f64>(from, to),
                (Action::Chains { .. }, _) => unreachable!("a chain is one of floats, not of {kind}"),
                (Action::Copy { load, register }, Kind::F32) => self.copy::<f32>(load, register),
                (Action::Copy { load, register }, Kind::F64) => self.copy::<f64>(load, register),
                (Action::Copy { load, register }, Kind::I32) => self.copy::<i32>(load, register),
                (Action::Copy { load, register }, Kind::U32) => self.copy::<u32>(load, register),
                (Action::Copy { load, register }, Kind::I64) => self.copy::<i64>(load, register),
                (Action::Copy { load, register }, Kind::U64) => self.copy::<u64>(load, register),
                (Action::Copy { .. }, Kind::Bool) => unreachable!("no operand has masks"),
                (Action::Operation(What::Index(dim), register), _) => self.index(dim, register),
                (Action::Operation(what, register), Kind::Bool) => self.mask(what, register),
                (Action::Operation(what, register), Kind::F32) => self.number::<f32>(what, register),
                (Action::Operation(what, register), Kind::F64) => self.number::<f64>(what, register),
                (Action::Operation(what, register), Kind::I32) => self.number::<i32>(what, register),
                (Action::Operation(what, register), Kind::U32) => self.number::<u32>(what, register),
                (Action::Operation(what, register), Kind::I64) => self.number::<i64>(what, register),
                (Action::Operation(what, register), Kind::U64) => self.number::<u64>(what, register),
            }
        }
    }

    fn chains<T: Arithmetic + Lanes>(&mut self, from: u32, to: u32) {
        self.token.run_simd(Chains {
            chains: &self.program.chains[from as usize..to as usize],
            links: &self.program.links,
            parameters: self.parameters,
            elements: self.elements,
            len: self.len,
            bank: T::bank_mut(self.banks),
        });
    }

    fn copy<T: Arithmetic>(&mut self, load: u32, register: u32) {
        let to = T::bank_mut(self.banks)[register as usize].as_mut().expect(IN_BANK);
        to.0[..self.len].copy_from_slice(&numbers(self.elements[load as usize])[..self.len]);
    }

    fn number<T: Arithmetic>(&mut self, what: What, register: u32)
    where
        f32: ConvertTo<T>,
        f64: ConvertTo<T>,
        i32: ConvertTo<T>,
        u32: ConvertTo<T>,
        i64: ConvertTo<T>,
        u64: ConvertTo<T>,
    {
        // The result never goes to a register of an input, so the block can leave its bank for the time of the operation.
        let mut result = T::bank_mut(self.banks)[register as usize].take();
        let to = &mut result.as_mut().expect(IN_BANK).0[..self.len];
        match what {
            What::Unary(what, a) => T::unary(self.token, what, to, self.argument(a)),
            What::Binary(what, a, b) => T::binary(self.token, what, to, self.argument(a), self.argument(b)),
            What::Select(mask, a, b) => {
                select(self.token, to, self.masks(mask), self.argument(a), self.argument(b))
            }
            What::Convert(a) => match self.kind(a) {
                Kind::F32 => map(self.token, to, self.argument::<f32>(a), ConvertTo::convert),
                Kind::F64 => map(self.token, to, self.argument::<f64>(a), ConvertTo::convert),
                Kind::I32 => map(self.token, to, self.argument::<i32>(a), ConvertTo::convert),
                Kind::U32 => map(self.token, to, self.argument::<u32>(a), ConvertTo::convert),
                Kind::I64 => map(self.token, to, self.argument::<i64>(a), ConvertTo::convert),
                Kind::U64 => map(self.token, to, self.argument::<u64>(a), ConvertTo::convert),
                Kind::Bool => unreachable!("masks are selected by, not converted"),
            },
            What::Load(_) | What::Parameter(_) | What::Index(_) | What::Compare(..) => {
                unreachable!("{what:?} is no operation on numbers that gives {}", T::KIND)
            }
        }
        T::bank_mut(self.banks)[register as usize] = result;
    }

    fn index(&mut self, dim: usize, register: u32) {
        let first = self.point[dim] as u32;
        let to = self.banks.u32[register as usize].as_mut().expect(IN_BANK);
        let to = &mut to.0[..self.len];
        if dim == 2 {
            to.iter_mut().zip(first..=u32::MAX).for_each(|(to, at)| *to = at);
        } else {
            to.fill(first);
        }
    }

    fn mask(&mut self, what: What, register: u32) {
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
        match self.program.sources[id as usize] {
            Source::Load(load) => Argument::Block(&numbers(self.elements[load as usize])[..self.len]),
            Source::Parameter(parameter) => Argument::Same(number(self.parameters[parameter as usize])),
            Source::Register(register) => Argument::Block(
                &T::bank(self.banks)[register as usize].as_ref().expect(IN_BANK).0[..self.len],
            ),
            Source::Nowhere => unreachable!("a step needs what is inside of a chain"),
        }
    }

    #[inline]
    fn masks(&self, id: Id) -> &[bool] {
        let Source::Register(register) = self.program.sources[id as usize] else {
            unreachable!("masks are in registers")
        };
        &self.banks.bool[register as usize].as_ref().expect(IN_BANK).0[..self.len]
    }
}
