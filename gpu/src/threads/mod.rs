//! The two threads of a device, and what they share.

pub(crate) mod complete;
pub(crate) mod encode;
mod prepare;
pub(crate) mod receive;
pub(crate) mod shared;
