//! Memoization: launches that repeat are recognised. They are derived once, in terms of symbols, and then
//! applied with new numbers.
//!
//! The commands of a launch depend on its shape (equal mappers, hints, weights, index space and buffers) and
//! on the [patterns](super::interned) of its buffers' states, but not on which commands those states name. So
//! a launch whose shape was seen before goes through these steps:
//!
//! 1. [`cache`] recognises it by its key. The first time, a launch is only noted, because most programs also
//!    have launches that do not repeat.
//! 2. The states of its buffers are interned.
//! 3. If no transition starts from the patterns of these states, one is made: the launch is derived on the
//!    patterns, so that its commands depend on symbols ([`transition`]).
//! 4. The transition is applied: symbols become the commands that they stand for now ([`symbols`]), and the
//!    buffers get new patterns.
//!
//! Legion has the same idea under the name of dynamic tracing: W. Lee et al., "Dynamic Tracing: Memoization
//! of Task Graphs for Dynamic Task-Based Runtimes", SC 2018. Here programs need not mark what repeats.

mod cache;
mod symbols;
mod transition;

pub(super) use cache::Memo;
