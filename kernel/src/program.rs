//! Programs: recordings that are prepared for the processor, without the values of literals.

use crate::{
    host::MachineCode,
    number::Kind,
    operation::{Id, Load, Row},
    recording::{Body, Recording},
    reduction::Reduction,
    schedule::{Schedule, rows},
    steps::{Action, Chains, Link, Loop, ProgramLoad, Registers, RowOfLoads, Source, Step, Target, bytes},
};
use std::sync::OnceLock;

/// A recording, prepared for the processor. It is worth keeping: [`is_of`](Self::is_of) says whether a later
/// recording is the same program.
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
    /// Those outside of loops whose elements lie one after the other, by the rows that they are in.
    pub(crate) rows: Vec<RowOfLoads>,
    /// The others outside of loops.
    pub(crate) beside_rows: Vec<u32>,
    /// The number of registers of each type.
    pub(crate) registers: Registers,
    /// The memory that each point of a block needs: that of the registers, and of gathered elements.
    pub(crate) bytes_of_point: usize,
    /// Where the result of each operation is.
    pub(crate) sources: Vec<Source>,
    /// The operands that are set by the steps, because the program takes nothing of them. The least number
    /// comes first.
    pub(crate) outputs: Vec<usize>,
    /// The other operands that are set, after all steps, and what they are set to.
    pub(crate) stores: Vec<(usize, Kind, Source)>,
    /// The reductions.
    pub(crate) reductions: Vec<Reduced>,
    /// The machine code, for each set of instructions that has some.
    pub(crate) machine_code: [OnceLock<Option<MachineCode>>; 2],
}

/// A reduction, and the values that it combines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    pub(crate) reduction: Reduction,
    pub(crate) source: Source,
}

impl Program {
    /// Prepares a recording.
    pub fn new(recording: &Recording) -> Self {
        let body = recording.body.clone();
        let mut schedule = Schedule::of(&body);
        let stores = schedule.store();
        let Schedule { steps, chains, loops, loads, allocation, sources, outputs, .. } = schedule;
        let outputs = outputs.into_iter().map(|(operand, _)| operand).collect();
        let reduced = |(reduction, id): (Reduction, Id)| Reduced { reduction, source: sources[id as usize] };
        let reductions = body.reductions().map(reduced).collect();
        let registers = allocation.registers;
        let (rows, beside_rows) = rows(&body.loads, &loads);
        let mut new = Self {
            steps,
            chains,
            loops,
            loads,
            rows,
            beside_rows,
            registers,
            bytes_of_point: 0,
            sources,
            outputs,
            stores,
            reductions,
            machine_code: Default::default(),
            body,
        };
        new.mark_chains_that_are_alone();
        new.bytes_of_point = new.count_bytes_of_point();
        new
    }

    /// Finds out whether one step of chains computes all results, and puts them where they belong.
    fn mark_chains_that_are_alone(&mut self) {
        let is_register = |source: &Source| matches!(source, Source::Register(_));
        let uses_registers = |step: &Step| match step.action {
            Action::Chains(_) => false,
            Action::Copy { from, to } => is_register(&from) || matches!(to, Target::Register(_)),
            Action::Operation(..) | Action::Loop(_) => true,
        };
        let mut results = self.stores.iter().map(|(_, _, source)| source);
        let mut combined = self.reductions.iter().map(|reduced| &reduced.source);
        if let [chains] = &mut self.chains[..] {
            let leaves = results.any(is_register) || combined.any(is_register);
            chains.are_alone = !leaves && !self.steps.iter().any(uses_registers);
        }
    }

    /// Counts [`bytes_of_point`](Self::bytes_of_point), after chains that are alone were marked.
    fn count_bytes_of_point(&self) -> usize {
        let apart = self.loads.iter().map(|&load| self.load(load)).filter(|load| load.row() == Row::Apart);
        let are_alone = self.chains.iter().any(|chains| chains.are_alone);
        let registers = if are_alone { 0 } else { self.registers.bytes() };
        registers + apart.map(|load| bytes(load.kind)).sum::<usize>()
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

    /// The number of operations and chains of operations that a block takes, and the number of registers that
    /// they need. Copies to operands do not count.
    pub fn size(&self) -> (usize, usize) {
        let chained = |step: &Step| match step.action {
            Action::Chains(number) => {
                let links = self.chains[number as usize].links.iter();
                links.filter(|link| matches!(link, Link::Store(_) | Link::Set(_))).count()
            }
            Action::Operation(..) | Action::Copy { to: Target::Register(_), .. } => 1,
            Action::Copy { to: Target::Output(_), .. } | Action::Loop(_) => 0,
        };
        let registers = self.registers.0.iter().sum::<u32>();
        (self.steps.iter().map(chained).sum(), registers as usize)
    }
}
