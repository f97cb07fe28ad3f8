//! The run of a program: the way through the points, row by row and in blocks.

use super::{
    accumulate::Values,
    argument::{Elements, Loaded, number},
    arithmetic::Arithmetic,
    execute::Execute,
    instructions::{Instructions, Token},
    load::Place,
    machine_code::MachineCode,
    memory::Memory,
    operands::{Operand, Operands, Others},
    registers::{Banks, IN_BANK, block_len},
    rows::{Rows, Slices},
};
use crate::{
    leaves::Leaves,
    number::{Kind, Scalar, Slice, SliceMut},
    operation::What,
    program::Program,
    steps::{Action, Source},
};
use smallvec::SmallVec;

impl Program {
    /// Runs the program for all points from `min` to below `max`, which are padded at the front. `parameters`
    /// are the [literals](crate::Recording::parameters) of a recording of this program.
    ///
    /// Reductions combine the values of each of the [`Leaves`] of these points. The result of leaf `n` goes
    /// to the place that its operand's `write([0, 0, n])` gives. The points are a part of the whole index
    /// space that begins and ends at its bands.
    ///
    /// # Panics
    /// If the operands or parameters are not those of the program, if an offset leads out of the region that
    /// an operand has, or if the program uses coordinates and one is 2³² or more.
    pub fn run(
        &self,
        parameters: &[Scalar],
        points: [[usize; 3]; 2],
        operands: &mut [&mut dyn Operand],
        memory: &mut Memory,
        instructions: Instructions,
    ) {
        self.compute(parameters, points, operands, memory, instructions);
        memory.accumulators.copy_leaves(self, operands);
    }

    /// Runs the program as [`run`](Self::run) does, for the whole index space. Reductions combine all values,
    /// and the results go to the first elements of their operands.
    ///
    /// # Panics
    /// See [`run`](Self::run).
    pub fn run_whole(
        &self,
        parameters: &[Scalar],
        points: [[usize; 3]; 2],
        operands: &mut [&mut dyn Operand],
        memory: &mut Memory,
        instructions: Instructions,
    ) {
        self.compute(parameters, points, operands, memory, instructions);
        memory.accumulators.finish(self, operands);
    }

    /// The machine code for these instructions, if they have some.
    fn machine_code(&self, instructions: Instructions) -> Option<&MachineCode> {
        let place = match instructions {
            Instructions::CompiledAvx512 => 0,
            Instructions::CompiledAvx2 => 1,
            _ => return None,
        };
        let known = &self.machine_code[place];
        if known.get().is_none() {
            // Another thread may be faster. A lock would stay locked in a process that is forked meanwhile.
            let _ = known.set(MachineCode::new(self, instructions));
        }
        known.get().and_then(Option::as_ref)
    }

    fn compute(
        &self,
        parameters: &[Scalar],
        points @ [min, max]: [[usize; 3]; 2],
        operands: &mut [&mut dyn Operand],
        memory: &mut Memory,
        instructions: Instructions,
    ) {
        for step in &self.steps {
            if let Action::Operation(What::Index(dim), _) = step.action {
                let is_small = u32::try_from(max[dim].saturating_sub(1)).is_ok();
                assert!(
                    is_small,
                    "a recorded kernel uses `index`, and coordinates up to {max:?} are too large for it"
                );
            }
        }
        memory.reserve(self);
        memory.accumulators.begin(self, Leaves::new(self.body.dimensions, points));
        let machine_code = self.machine_code(instructions);
        let (token, longest) = (Token::new(instructions), block_len(self));
        let mut operands = Operands::new(self, operands);
        memory.rows.begin(self, parameters, &operands.others);
        for (z, y) in (min[0]..max[0]).flat_map(|z| (min[1]..max[1]).map(move |y| (z, y))) {
            let mut x = min[2];
            while x < max[2] {
                let most = (max[2] - x).min(longest);
                let block = Block { program: self, machine_code, parameters, point: [z, y, x], most };
                x += block.run(&mut operands, memory, token);
            }
        }
    }
}

/// The points from one on, along a row.
struct Block<'a> {
    program: &'a Program,
    machine_code: Option<&'a MachineCode>,
    parameters: &'a [Scalar],
    point: [usize; 3],
    /// The most points that it has.
    most: usize,
}

impl Block<'_> {
    /// Computes the block, and returns the number of its points.
    fn run(&self, operands: &mut Operands<'_>, memory: &mut Memory, token: Token) -> usize {
        let len = self.compute(operands, memory, token);
        for &(operand, kind, source) in &self.program.stores {
            self.store(operand, (kind, source), len, operands, &memory.banks);
        }
        len
    }

    /// Finds the elements and computes all steps. Returns the number of points, of which all slices have an
    /// element.
    fn compute(&self, operands: &mut Operands<'_>, memory: &mut Memory, token: Token) -> usize {
        let Self { program, machine_code, parameters, ref point, .. } = *self;
        let Memory { banks, gathered, rows, counters, accumulators } = memory;
        let Operands { others, outputs } = operands;
        let place = Place { point, parameters, counters };
        let (mut outputs, mut len) = self.outputs(outputs);
        rows.prepare(program, &place, &mut len, others);
        let (mut slices, mut elements) = (Slices::new(), SmallVec::<[Elements; 24]>::new());
        elements.resize(program.loads.len(), Elements::Gathered);
        self.find(&place, &mut len, (others, rows), &mut slices, &mut elements);
        for ((load, elements), gathered) in program.loads.iter().zip(&elements).zip(&mut *gathered) {
            if let (Elements::Gathered, false) = (elements, load.is_in_loop) {
                program.load(*load).gather(&place, len, others, gathered);
            }
        }
        Execute {
            program,
            machine_code,
            token,
            parameters,
            banks,
            elements: &mut elements,
            slices: &mut slices,
            gathered,
            counters,
            others,
            outputs: &mut outputs,
            point,
            len,
        }
        .run();
        if !program.reductions.is_empty() {
            let loaded = Loaded { elements: &elements, slices: &slices, gathered };
            accumulators.add(program, &Values { token, parameters, banks, loaded }, len);
        }
        len
    }

    /// The slices of the outputs, and how many points have an element in all of them.
    #[inline(always)]
    fn outputs<'a>(&self, outputs: &'a mut [&mut dyn Operand]) -> (SmallVec<[SliceMut<'a>; 4]>, usize) {
        let (mut slices, mut most) = (SmallVec::new(), self.most);
        for (output, &operand) in outputs.iter_mut().zip(&self.program.outputs) {
            let slice = output.write(self.point);
            assert!(!slice.is_empty(), "operand {operand} gave no element at {:?}", self.point);
            most = most.min(slice.len());
            slices.push(slice);
        }
        (slices, most)
    }

    /// Finds the elements of the loads that are in no loop. Makes the number of points smaller where a slice
    /// has fewer elements.
    #[inline(always)]
    fn find<'a>(
        &self,
        place: &Place<'_>,
        len: &mut usize,
        (others, rows): (&'a Others<'_>, &'a Rows),
        slices: &mut Slices<'a>,
        elements: &mut [Elements],
    ) {
        let program = self.program;
        if !program.loops.is_empty() {
            slices.resize(program.loads.len(), Slice::F32(&[]));
        }
        rows.find(place.point, len, others, slices, elements);
        for &load in &program.beside_rows {
            elements[load as usize] =
                program.load(program.loads[load as usize]).find_beside_rows(place, others);
        }
    }

    /// Copies a result to an operand that is no output.
    fn store(
        &self,
        operand: usize,
        result: (Kind, Source),
        len: usize,
        operands: &mut Operands<'_>,
        banks: &Banks,
    ) {
        let mut done = 0;
        while done < len {
            let [z, y, x] = self.point;
            let to = operands.others.get_mut(operand).write([z, y, x + done]);
            let stored = match to {
                SliceMut::F32(to) => self.copy(result, done..len, to, banks),
                SliceMut::F64(to) => self.copy(result, done..len, to, banks),
                SliceMut::I32(to) => self.copy(result, done..len, to, banks),
                SliceMut::U32(to) => self.copy(result, done..len, to, banks),
                SliceMut::I64(to) => self.copy(result, done..len, to, banks),
                SliceMut::U64(to) => self.copy(result, done..len, to, banks),
            };
            assert!(stored > 0, "operand {operand} gave no element at {:?}", [z, y, x + done]);
            done += stored;
        }
    }

    fn copy<T: Arithmetic>(
        &self,
        (kind, source): (Kind, Source),
        elements: std::ops::Range<usize>,
        to: &mut [T],
        banks: &Banks,
    ) -> usize {
        const TYPE: &str = "an operand has the type that it was recorded with";
        let count = elements.len().min(to.len());
        match source {
            Source::Register(register) => {
                assert!(kind == T::KIND && kind != Kind::Bool, "{TYPE}");
                let from = T::bank(banks)[register as usize].as_ref().expect(IN_BANK);
                to[..count].copy_from_slice(&from.0[elements.start..elements.start + count]);
            }
            Source::Parameter(parameter) => {
                to[..count].fill(number(self.parameters[parameter as usize]));
            }
            Source::Load(_) | Source::Counter(_) | Source::Nowhere => {
                unreachable!("what an operand is set to is in a register")
            }
        }
        count
    }
}
