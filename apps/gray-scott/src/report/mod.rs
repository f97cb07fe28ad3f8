//! Reports to the user: progress, statistics, and the forms of numbers and commands.

pub(crate) mod console;
pub mod progress;
pub mod shell;
pub mod statistics;
mod terminal;
pub mod units;
