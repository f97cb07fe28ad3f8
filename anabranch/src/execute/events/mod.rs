//! Events, and how a thread waits for one.

pub(super) mod event;
pub(super) mod latch;
pub(super) mod patience;
pub(super) mod waker;
