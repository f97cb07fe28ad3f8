//! Chains as machine code.
//!
//! [`chain`](super::chain) goes through the links of a program again and again, and chooses what to do at
//! each one. A function that is made for the chains of a step has no such choices. It keeps results, numbers
//! and elements in registers. While the processor waits for memory, it computes the next vectors.
//!
//! [`mod@translate`] makes these functions, with the registers that [`placement`] finds and the instructions
//! that [`assembler`] encodes. [`executable`] has the memory that they are in.
//!
//! For each element a function does the operations of `chain` in their order, and rounds each result by
//! itself. So both give the same bits, except those of NaN.

mod assembler;
mod executable;
mod placement;
#[cfg(test)]
mod tests;
mod translate;

use super::{
    argument::numbers_mut,
    instructions::Instructions,
    registers::{Bank, IN_BANK},
};
use crate::{
    number::{Kind, Number, SliceMut},
    program::Program,
    steps::Action,
};
use assembler::{Assembler, Float, Set};
use executable::Executable;
use smallvec::SmallVec;
use std::ops::Range;
use translate::{Function, translate};

/// The machine code of a program.
#[derive(Debug)]
pub(crate) struct MachineCode {
    code: Executable,
    set: Set,
    /// The functions of the program's chains, and the type of their numbers.
    functions: Vec<(Function, Kind)>,
}

/// What chains compute with.
pub(super) struct Block<'a, 'o, T, L> {
    /// The elements of the loads: one for each point of the block, at least.
    pub(super) loads: L,
    pub(super) numbers: &'a [T],
    pub(super) bank: &'a mut Bank<T>,
    /// The slices of the program's outputs: they have an element for each point of the block, at least.
    pub(super) outputs: &'a mut [SliceMut<'o>],
    /// The number of points.
    pub(super) len: usize,
}

impl MachineCode {
    /// Makes the code of a program. `None` if these instructions have none, if the program has no chains, or
    /// if the system does not allow a process to make code.
    pub(super) fn new(program: &Program, instructions: Instructions) -> Option<Self> {
        let set = match instructions {
            Instructions::CompiledAvx512 => Set::Avx512,
            Instructions::CompiledAvx2 => Set::Avx2,
            _ => return None,
        };
        if program.chains.is_empty() || !instructions.is_available() {
            return None;
        }
        let mut assembler = Assembler { code: Vec::new(), set, float: Float::F32 };
        let mut functions = Vec::with_capacity(program.chains.len());
        for step in &program.steps {
            let Action::Chains(number) = step.action else { continue };
            assert_eq!(number as usize, functions.len(), "chains have the numbers of their order");
            assembler.float = match step.kind {
                Kind::F32 => Float::F32,
                Kind::F64 => Float::F64,
                kind => unreachable!("a chain is one of floats, not of {kind}"),
            };
            functions.push((translate(&mut assembler, &program.chains[number as usize]), step.kind));
        }
        Some(Self { code: Executable::new(&assembler.code)?, set, functions })
    }

    /// Whether this number of points fills a vector.
    #[inline]
    pub(super) fn fits<T>(&self, points: usize) -> bool {
        points * size_of::<T>() >= self.set.bytes()
    }

    /// Computes the chains with this number, if a block of this length [fits](Self::fits). Returns how many
    /// points it has computed: all of them, or those before the last ones, which fill no vector.
    pub(super) fn compute<'a, T: Number>(
        &self,
        number: u32,
        block: Block<'_, '_, T, impl Iterator<Item = &'a [T]>>,
    ) -> usize {
        let Block { loads, numbers, bank, outputs, len } = block;
        let (function, kind) = &self.functions[number as usize];
        let lanes = self.set.bytes() / size_of::<T>();
        let whole = len / lanes * lanes;
        assert!(whole > 0, "a block has a whole vector");
        assert_eq!(*kind, T::KIND, "the function is one for this type");
        let mut pointers: SmallVec<[*mut u8; 36]> = SmallVec::new();
        pointers.extend(loads.map(|load| {
            assert!(len <= load.len(), "a load has an element for each point");
            load.as_ptr().cast_mut().cast::<u8>()
        }));
        assert_eq!([pointers.len(), numbers.len()], function.inputs, "the function is that of the chains");
        pointers.extend(function.outputs.iter().map(|&at| {
            let output = numbers_mut::<T>(outputs[at as usize].reborrow());
            assert!(len <= output.len(), "an output has an element for each point");
            output.as_mut_ptr().cast::<u8>()
        }));
        pointers.extend(function.registers.iter().map(|&at| {
            let register = &mut bank[at as usize].as_mut().expect(IN_BANK).0;
            assert!(function.are_alone || len <= register.len(), "a register has a value for each point");
            register.as_mut_ptr().cast::<u8>()
        }));
        let call = |points: Range<usize>| {
            let bytes = [points.start, points.end].map(|at| at * size_of::<T>());
            // SAFETY: `translate` has made the function for a set of instructions that this processor has.
            // The table has a pointer for each load, output and register of the function, in this
            // order. The function reads the elements of these points of each load, and writes
            // those of each output: they are in the slices, as the assertions above have found.
            // Of a register it reads and writes the values of these points, or of the first two
            // vectors: a register has both. It reads as many numbers as there are. Nothing else
            // uses what it writes: outputs and bank are borrowed exclusively, and none of them is
            // among the loads.
            unsafe { self.code.call(function.entry, &pointers, numbers.as_ptr().cast(), bytes) };
        };
        call(0..whole);
        if whole < len && function.is_repeatable {
            // The last vector ends with the last point. Some of its points are computed twice.
            call(len - lanes..len);
            return len;
        }
        whole
    }
}
