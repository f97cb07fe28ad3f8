//! Submitting tasks: the typed builder, declared accesses, fences, barriers and captures.
//!
//! | folder | purpose |
//! |---|---|
//! | [`task`] | the builder: kernels, host tasks and batches |
//! | [`access`] | what a task accesses: buffers, reductions, host objects |
//! | [`launch`] | from the declared accesses to the node of the task |
//! | [`capture`] | fences, barriers and what they capture |
//! | [`recorded`], [`shader`], [`each_on_device`] | kernels that devices run, too |
//! | [`sequence`] | tasks that are recorded once and replayed |
//!
//! A task keeps its types as far as [`launch::declaration`]. From there on it is a
//! [`Submission`](crate::execute::Submission) with plain accesses and effects, and a node with an erased
//! body.

pub(crate) mod access;
pub(crate) mod capture;
pub(crate) mod each_on_device;
pub(crate) mod launch;
pub(crate) mod recorded;
pub(crate) mod sequence;
pub(crate) mod shader;
pub(crate) mod task;
