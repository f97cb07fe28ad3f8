//! What the closure of a kernel sees: a tape, and symbolic values, coordinates, operands, accumulators and
//! folds that leave operations on it.

mod accumulator;
mod coordinate;
mod operand;
mod state;
mod tape;
mod value;

pub use accumulator::Accumulator;
pub use coordinate::Coordinate;
pub use operand::{Input, InputOutput, Output};
pub use state::{FoldState, FoldValues};
pub use tape::Tape;
pub use value::{IntoValue, Mask, Value};
