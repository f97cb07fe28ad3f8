//! The work that rows measure, where it takes more than a few lines or serves several rows.

pub mod application;
pub mod conflicts;
pub mod empty_tasks;
pub mod frames;
pub mod generation;
pub mod memory;
pub mod nodes;
pub mod scaling;
pub mod task_bench;
pub mod topologies;
