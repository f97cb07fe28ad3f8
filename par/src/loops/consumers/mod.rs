//! The methods that run a loop and use its results.
//!
//! Most of them work for every [producer](super::producer), and use the results batch by batch. Methods that
//! need the number of items (`collect_into`, `write_to`, `scan`) are for loops over sources only.

mod collect;
mod find;
mod for_each;
mod in_order;
pub(super) mod numbers;
pub(super) mod reduce;
mod scan;
