//! The fast kernel: bands of rows, several time steps at once.
//!
//! A [`Stepper`] knows the model, the grid and the instruction set. Its [`advance`](Stepper::advance) takes a
//! band of rows some steps further while they are in the processor's caches: the steps follow each other row
//! by row, as a *wavefront*, and only two rows of each intermediate state are kept, in scratch.
//!
//! The bits of the result depend on the state, the parameters and the instruction set alone. They do not
//! depend on how the grid is cut into bands, nor on how the steps are cut into calls.
//!
//! Values that decay to denormal numbers make a step several times slower on most processors. The caller may
//! flush them to zero on its threads.
//!
//! A [`RecordedStep`] is one step for devices: the same arithmetic, without the caches. [`SeveralSteps`] are
//! several of them in a shader.

mod coefficients;
mod finite;
mod lanes;
mod output;
mod problem;
mod recorded;
mod rows;
mod several_steps;
mod simd;
mod stepper;
mod sweep;
mod wavefront;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

pub use output::Output;
pub use recorded::RecordedStep;
pub use several_steps::SeveralSteps;
pub use simd::{ParseSimdError, Simd};
pub use stepper::Stepper;
