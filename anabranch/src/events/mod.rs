//! Events, and how a thread waits for one. They know neither tasks nor devices, which both use them.

pub(crate) mod event;
pub(crate) mod latch;
pub(crate) mod patience;
pub(crate) mod waker;
