//! Random programs for the command graph, a sequential model of them, and nodes that execute their commands.

pub mod hazards;
pub mod mappers;
pub mod model;
pub mod nodes;
pub mod program;
