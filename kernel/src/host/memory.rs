//! The memory of a program while it runs: its registers, a block for each load that has to be gathered,
//! and the rows of loads with their padded copies.

use super::{accumulate::Accumulators, gathered::Gathered, registers::Banks, rows::Rows};
use crate::program::Program;

/// The memory that a thread runs programs in. It keeps the most that any of them has needed.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) banks: Banks,
    /// Those of each load that the program needs.
    pub(super) gathered: Vec<Gathered>,
    /// The rows of loads, with their padded copies.
    pub(super) rows: Rows,
    /// The counters of the folds.
    pub(super) counters: Vec<u32>,
    pub(super) accumulators: Accumulators,
}

impl Memory {
    /// Makes room for a program.
    pub(super) fn reserve(&mut self, program: &Program) {
        self.banks.reserve(program);
        let loads = &program.loads;
        let folds = program.body.folds.len();
        self.counters.resize(folds.max(self.counters.len()), 0);
        self.gathered.resize_with(loads.len().max(self.gathered.len()), Gathered::default);
    }
}
