//! The data that tasks share: buffers with the memory of their versions, views of declared regions, host
//! objects.
//!
//! This folder does not depend on tasks and threads. Handles reach their runtime through [`owner::Owner`].

pub(crate) mod allocation;
pub(crate) mod bound;
pub(crate) mod buffer;
pub(crate) mod cluster_object;
pub(crate) mod communicator;
pub(crate) mod element;
pub(crate) mod host_object;
pub(crate) mod initial;
pub(crate) mod owner;
pub(crate) mod partials;
pub(crate) mod pattern;
pub(crate) mod snapshot;
pub(crate) mod stored;
pub(crate) mod view;
