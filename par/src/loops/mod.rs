//! Data-parallel loops.
//!
//! A [`Loop`] has a *producer* of items, a *step* that makes a result of each item ([`step`]), settings, and
//! at its end a method that runs it and uses the results: [`for_each`](Loop::for_each),
//! [`collect`](Loop::collect), [`reduce`](Loop::reduce), [`sum`](Loop::sum), [`find`](Loop::find),
//! [`scan`](Loop::scan), [`in_order`](Loop::in_order).
//!
//! There are two kinds of producers. A [source](source) can give any item by its number: slices, ranges,
//! arrays ([`indexed`]). A [shared iterator](SharedIter) gives its items one after the other, to one
//! participant at a time ([`stream`]). Both hand out *batches* of consecutive items, and the methods at the
//! end of a loop are [`consumers`] of batches: [`producer`] is the interface between producers and consumers,
//! so each method is written once. [`control`] has what else both kinds of loops share: the first failure,
//! cancellation, deadlines, progress and statistics.
//!
//! - Results are the same on any number of threads and under every schedule, bit for bit.
//! - When a loop returns, everything that it began has ended. Of several errors or panics it reports the one
//!   of the first item.
//! - A thread that waits in a loop runs nothing else.

mod builder;
mod consumers;
mod control;
mod error;
mod indexed;
mod number;
mod output;
mod parallel_loop;
mod producer;
mod sealed;
mod setters;
mod settings;
pub mod source;
pub(crate) mod step;
mod stream;

pub use control::{
    progress::Progress,
    statistics::{ParticipantStatistics, Statistics},
};
pub use error::LoopError;
pub use number::Number;
pub use parallel_loop::{Loop, ScratchLoop};
pub use producer::Producer;
pub use stream::{IntoStream, SharedIter, Stream};
