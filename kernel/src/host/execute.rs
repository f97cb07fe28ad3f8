//! The operations of a program, for one block.

use super::{
    arithmetic::{Arithmetic, ConvertTo, combine, compare},
    instructions::Token,
    load::{Assembled, Loaded, numbers},
    loops::{map, select},
    memory::Banks,
};
use crate::{
    number::{Kind, Scalar, Slice},
    operation::{Id, Unary, What},
    program::{Program, Step},
};

/// No operation reads the register that it writes.
pub(super) const IN_BANK: &str = "the block is in its bank";

/// An input of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a, T> {
    /// An element for each point.
    Block(&'a [T]),
    /// One for all points.
    Same(T),
}

/// A program and one block.
pub(super) struct Execute<'a, 'b> {
    pub(super) program: &'a Program,
    pub(super) token: Token,
    pub(super) parameters: &'a [Scalar],
    pub(super) banks: &'a mut Banks,
    /// The elements of each load that the program needs, by the number of the load.
    pub(super) loads: &'a [Loaded<'b>],
    pub(super) assembled: &'a [Assembled],
    /// The first point.
    pub(super) point: [usize; 3],
    pub(super) len: usize,
}

impl Execute<'_, '_> {
    /// Computes all operations.
    pub(super) fn run(mut self) {
        let program = self.program;
        for step in &program.steps {
            match step.kind {
                Kind::Bool => self.mask(step),
                Kind::F32 => self.number::<f32>(step),
                Kind::F64 => self.number::<f64>(step),
                Kind::I32 => self.number::<i32>(step),
                Kind::U32 => match step.what {
                    What::Index(dim) => self.index(dim, step),
                    _ => self.number::<u32>(step),
                },
                Kind::I64 => self.number::<i64>(step),
                Kind::U64 => self.number::<u64>(step),
            }
        }
    }

    fn number<T: Arithmetic>(&mut self, step: &Step)
    where
        f32: ConvertTo<T>,
        f64: ConvertTo<T>,
        i32: ConvertTo<T>,
        u32: ConvertTo<T>,
        i64: ConvertTo<T>,
        u64: ConvertTo<T>,
    {
        // The result never goes to a register of an input, so the block can leave its bank for the time of the operation.
        let mut result = T::bank_mut(self.banks)[step.register as usize].take();
        let to = &mut result.as_mut().expect(IN_BANK).0[..self.len];
        match step.what {
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
            // An operand is set to an element of another one.
            What::Load(load) => to.copy_from_slice(&numbers(self.loaded(load as usize))[..self.len]),
            What::Parameter(_) | What::Index(_) | What::Compare(..) => {
                unreachable!("{:?} is no step that gives {}", step.what, step.kind)
            }
        }
        T::bank_mut(self.banks)[step.register as usize] = result;
    }

    fn index(&mut self, dim: usize, step: &Step) {
        let first = self.point[dim] as u32;
        let to = self.banks.u32[step.register as usize].as_mut().expect(IN_BANK);
        let to = &mut to.0[..self.len];
        if dim == 2 {
            to.iter_mut().zip(first..=u32::MAX).for_each(|(to, at)| *to = at);
        } else {
            to.fill(first);
        }
    }

    fn mask(&mut self, step: &Step) {
        let mut result = self.banks.bool[step.register as usize].take();
        let to = &mut result.as_mut().expect(IN_BANK).0[..self.len];
        match step.what {
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
            _ => unreachable!("{:?} is no step that gives a mask", step.what),
        }
        self.banks.bool[step.register as usize] = result;
    }

    #[inline]
    fn kind(&self, id: Id) -> Kind {
        self.program.body.operations[id as usize].kind
    }

    /// The result of an earlier operation.
    #[inline]
    fn argument<T: Arithmetic>(&self, id: Id) -> Argument<'_, T> {
        match self.program.body.operations[id as usize].what {
            What::Load(load) => Argument::Block(&numbers(self.loaded(load as usize))[..self.len]),
            What::Parameter(parameter) => {
                let value = T::of_scalar(self.parameters[parameter as usize]);
                Argument::Same(value.expect("a literal has the type that it was recorded with"))
            }
            _ => {
                let register = self.program.register[id as usize] as usize;
                Argument::Block(&T::bank(self.banks)[register].as_ref().expect(IN_BANK).0[..self.len])
            }
        }
    }

    #[inline]
    fn masks(&self, id: Id) -> &[bool] {
        let register = self.program.register[id as usize] as usize;
        &self.banks.bool[register].as_ref().expect(IN_BANK).0[..self.len]
    }

    #[inline]
    fn loaded(&self, load: usize) -> Slice<'_> {
        match self.loads[load] {
            Loaded::Slice(slice) => slice,
            Loaded::Assembled => self.assembled[load].slice(),
        }
    }
}
