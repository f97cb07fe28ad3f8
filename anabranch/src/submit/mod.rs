//! Submitting tasks: the typed builder, declared accesses, fences, barriers and captures.
//!
//! A task keeps its types as far as [`declaration`]. From there on it is a
//! [`Submission`](crate::execute::Submission) with plain accesses and effects, and a node with an erased body.

pub(crate) mod access;
pub(crate) mod access_list;
pub(crate) mod barrier;
pub(crate) mod batch;
mod body;
pub(crate) mod capture;
pub(crate) mod declaration;
pub(crate) mod effect;
pub(crate) mod fence;
mod hints;
pub(crate) mod host_result;
pub(crate) mod index_space;
mod kernel;
mod launch;
mod leaves;
mod on_device;
pub(crate) mod operator;
mod parts;
pub(crate) mod recorded;
pub(crate) mod reduce;
pub(crate) mod sealed;
pub(crate) mod sequence;
pub(crate) mod shader;
pub(crate) mod task;
pub(crate) mod tile;
