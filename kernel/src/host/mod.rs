//! Programs on the processor: a row of points in blocks, and each operation for a whole block at once.
//!
//! A block is short enough that the results of all operations stay in the cache, and long enough that choosing the loop of an operation
//! costs little. [`walk`] goes through the points, [`load`] finds the elements, [`execute`] computes, [`arithmetic`] says what an
//! operation is, [`loops`] has the loops. [`instructions`] chooses the vector instructions. All of them give the same bits.

mod arithmetic;
mod execute;
mod instructions;
mod load;
mod loops;
mod memory;
mod walk;

pub use instructions::Instructions;
pub use memory::Memory;
pub use walk::Operands;

/// The number of points of a block.
pub(crate) const BLOCK: usize = 512;
