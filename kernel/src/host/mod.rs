//! Programs on the processor: a row of points in blocks, and each step for a whole block at once.
//!
//! A block is short enough that the results of all operations stay in the cache, and long enough that
//! choosing the loop of an operation costs little. [`run`] goes through the points, [`rows`], [`padded`]
//! and [`load`] find the elements, [`execute`] computes, and does the iterations of folds. Sums, differences
//! and products of floats are done in [`chain`]s, whose intermediate results never leave the vector
//! registers, or by [`machine_code`] that is made for them. For all other operations [`arithmetic`] says what
//! they are, and [`loops`] has the loops. [`instructions`] chooses the vector instructions. All of them give
//! the same bits.

mod accumulate;
mod argument;
mod arithmetic;
mod chain;
mod execute;
mod gathered;
mod instructions;
mod lanes;
mod load;
mod loops;
#[allow(unsafe_code, reason = "functions that this process has made")]
#[cfg_attr(not(all(unix, target_arch = "x86_64", target_pointer_width = "64")), path = "no_machine_code.rs")]
mod machine_code;
mod memory;
mod operands;
mod padded;
mod registers;
mod rows;
mod run;

pub use instructions::Instructions;
pub(crate) use machine_code::MachineCode;
pub use memory::Memory;
pub use operands::Operand;
