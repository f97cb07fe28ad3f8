//! The way through the points: row by row, in blocks.

use super::{
    BLOCK,
    arithmetic::Arithmetic,
    execute::{Execute, IN_BANK},
    instructions::{Instructions, Token},
    load::Loaded,
    memory::{Banks, Memory},
};
use crate::{
    number::{Kind, Scalar, Slice, SliceMut},
    operation::What,
    program::{Program, Source},
};
use smallvec::{SmallVec, smallvec};

/// The operands of a program. Points and extents are padded at the front: the last dimension is the one along which elements lie one after
/// the other.
pub trait Operands {
    /// The extent of an operand: 1 in each dimension that it does not have.
    fn extent(&self, operand: usize) -> [usize; 3];

    /// The elements from a point on, along the last dimension: at least one, and as many as lie one after the other.
    fn read(&self, operand: usize, point: [usize; 3]) -> Slice<'_>;

    /// The same of an operand that the program writes.
    fn write(&mut self, operand: usize, point: [usize; 3]) -> SliceMut<'_>;
}

impl Program {
    /// Runs the program for all points from `min` to below `max`, which are padded at the front. `parameters` are the
    /// [literals](crate::Recording::parameters) of a recording of this program.
    ///
    /// # Panics
    /// If the operands or parameters are not those of the program, if an offset leads out of the region that an operand has, or if the
    /// program uses coordinates and one is 2³² or more.
    pub fn run(
        &self,
        parameters: &[Scalar],
        [min, max]: [[usize; 3]; 2],
        operands: &mut impl Operands,
        memory: &mut Memory,
        instructions: Instructions,
    ) {
        for step in &self.steps {
            if let What::Index(dim) = step.what {
                let is_small = u32::try_from(max[dim].saturating_sub(1)).is_ok();
                assert!(
                    is_small,
                    "a recorded kernel uses `index`, and coordinates up to {max:?} are too large for it"
                );
            }
        }
        memory.reserve(self);
        let token = Token::new(instructions);
        for (z, y) in (min[0]..max[0]).flat_map(|z| (min[1]..max[1]).map(move |y| (z, y))) {
            let mut x = min[2];
            while x < max[2] {
                let block =
                    Block { program: self, parameters, point: [z, y, x], most: (max[2] - x).min(BLOCK) };
                x += block.run(operands, memory, token);
            }
        }
    }
}

/// The points from one on, along a row.
struct Block<'a> {
    program: &'a Program,
    parameters: &'a [Scalar],
    point: [usize; 3],
    /// The most points that it has.
    most: usize,
}

impl Block<'_> {
    /// Computes the block, and returns the number of its points.
    fn run(&self, operands: &mut impl Operands, memory: &mut Memory, token: Token) -> usize {
        let len = self.compute(operands, memory, token);
        for &(operand, source) in &self.program.stores {
            self.store(operand, source, len, operands, &memory.banks);
        }
        len
    }

    /// Finds the elements and computes the operations. Returns the number of points, which is that of the shortest slice.
    fn compute(&self, operands: &impl Operands, memory: &mut Memory, token: Token) -> usize {
        let Self { program, parameters, point, most } = *self;
        let all = &program.body.loads;
        let mut loads: SmallVec<[Loaded<'_>; 24]> = smallvec![Loaded::Assembled; all.len()];
        let mut len = most;
        for &load in &program.loads {
            let from = &all[load];
            if let Some(first) = from.direct(point, most, operands.extent(from.operand)) {
                let slice = operands.read(from.operand, first);
                len = len.min(slice.len());
                loads[load] = Loaded::Slice(slice);
            }
        }
        assert!(len > 0, "an operand gave no element at {point:?}");
        let Memory { banks, assembled } = memory;
        for &load in &program.loads {
            if let Loaded::Assembled = loads[load] {
                all[load].assemble(point, len, operands, parameters, &mut assembled[load]);
            }
        }
        Execute { program, token, parameters, banks, loads: &loads, assembled, point, len }.run();
        len
    }

    /// Copies a result to an operand.
    fn store(&self, operand: usize, source: Source, len: usize, operands: &mut impl Operands, banks: &Banks) {
        let mut done = 0;
        while done < len {
            let [z, y, x] = self.point;
            let to = operands.write(operand, [z, y, x + done]);
            let stored = match to {
                SliceMut::F32(to) => self.copy(source, done..len, to, banks),
                SliceMut::F64(to) => self.copy(source, done..len, to, banks),
                SliceMut::I32(to) => self.copy(source, done..len, to, banks),
                SliceMut::U32(to) => self.copy(source, done..len, to, banks),
                SliceMut::I64(to) => self.copy(source, done..len, to, banks),
                SliceMut::U64(to) => self.copy(source, done..len, to, banks),
            };
            assert!(stored > 0, "operand {operand} has no element at {:?}", [z, y, x + done]);
            done += stored;
        }
    }

    fn copy<T: Arithmetic>(
        &self,
        source: Source,
        elements: std::ops::Range<usize>,
        to: &mut [T],
        banks: &Banks,
    ) -> usize {
        const TYPE: &str = "an operand has the type that it was recorded with";
        let count = elements.len().min(to.len());
        match source {
            Source::Register(kind, register) => {
                assert!(kind == T::KIND && kind != Kind::Bool, "{TYPE}");
                let from = T::bank(banks)[register as usize].as_ref().expect(IN_BANK);
                to[..count].copy_from_slice(&from.0[elements.start..elements.start + count]);
            }
            Source::Parameter(parameter) => {
                to[..count].fill(T::of_scalar(self.parameters[parameter as usize]).expect(TYPE));
            }
        }
        count
    }
}
