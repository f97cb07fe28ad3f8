//! What stands for machine code where chains have none: on other processors than x86-64, and on systems
//! without the memory calls of Unix.

use super::{instructions::Instructions, registers::Bank};
use crate::{
    number::{Number, SliceMut},
    program::Program,
};

/// There is none.
#[derive(Debug)]
pub(crate) enum MachineCode {}

/// See the module that this one stands for.
#[allow(dead_code, reason = "nothing computes with it")]
pub(super) struct Block<'a, 'o, T, L> {
    pub(super) loads: L,
    pub(super) numbers: &'a [T],
    pub(super) bank: &'a mut Bank<T>,
    pub(super) outputs: &'a mut [SliceMut<'o>],
    pub(super) len: usize,
}

impl MachineCode {
    pub(super) fn new(_: &Program, _: Instructions) -> Option<Self> {
        None
    }

    pub(super) fn fits<T>(&self, _: usize) -> bool {
        match *self {}
    }

    pub(super) fn compute<'a, T: Number>(
        &self,
        _: u32,
        _: Block<'_, '_, T, impl Iterator<Item = &'a [T]>>,
    ) -> usize {
        match *self {}
    }
}
