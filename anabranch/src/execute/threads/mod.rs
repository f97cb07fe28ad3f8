//! The threads that run tasks: the executor, and the threads of the program that run the tasks of a seeded
//! runtime.

pub(super) mod compute;
pub(super) mod executor;
mod seeded;
mod standstill;
