#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! 1. A closure gets the operands of a [`Tape`]: an [`Input`] for each one that it reads, an [`Output`] for
//!    each one that it writes, and an [`InputOutput`] for each one that it changes. They give [`Value`]s, and
//!    each operation on a value goes to the tape. An operation that is on the tape already is not added
//!    again. A literal is a new one each time, and so is what is computed from it.
//! 2. [`Tape::finish`] gives the [`Recording`]. The values of literals are kept apart from the operations, so
//!    that a kernel with another constant is the same [`Program`]. A [fold](Output::fold) is a loop on the
//!    tape: its operations are put one after the other, and what does not depend on its counter or its state
//!    comes before.
//! 3. [`Program::new`] drops what no result needs, and gives each operation a register, which is a block of
//!    up to 2,048 elements. Sums, differences and products of floats of which only the next one needs
//!    the result are a chain, which has one register. A result goes to the operand that is set to it, without
//!    a register, if nothing else needs it and the program takes no element of the operand.
//! 4. [`Program::run`] goes through the points. For each block it finds the elements, which mostly lie one
//!    after the other in an operand, and computes one step after the other. Then it copies results to
//!    operands that it has taken elements of. The iterations of a fold are repeated for each block.
//! 5. On x86-64 with AVX-512 or AVX2, on Unix, the first run turns the chains into machine code, in some ten
//!    microseconds. If the system does not allow a process to make code, and elsewhere, a loop goes through the
//!    links of the chains.
//!
//! All [`Instructions`] give the same bits, except those of NaN. Functions such as `sin` are those of the
//! platform, whose last bit may differ between machines.

#![deny(unsafe_code)]

mod error;
mod fold;
mod host;
mod leaves;
mod liveness;
mod number;
mod operation;
mod operator;
mod precise;
mod program;
mod recording;
mod reduction;
mod schedule;
pub mod shader;
mod steps;
mod symbolic;
mod tape_contents;
pub mod wgsl;

pub use error::RecordError;
pub use host::{Instructions, Memory, Operand};
pub use leaves::{LANES, LEAF, Leaves, combine_leaves};
pub use number::{Float, Kind, Number, Scalar, Signed, Slice, SliceMut};
pub use operator::Operator;
pub use program::Program;
pub use recording::{Access, AccessAlong, Beyond, Recording, replay_number};
pub use reduction::Reduction;
pub use symbolic::{
    Accumulator, Coordinate, FoldState, FoldValues, Input, InputOutput, IntoValue, Mask, Output, Tape, Value,
};
