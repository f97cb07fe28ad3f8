//! The algorithms on the host: functions of slices, whose loops run on all threads. Where they cut the work
//! follows from the shapes alone.

pub(crate) mod compact;
pub(crate) mod fold;
pub(crate) mod least;
pub(crate) mod permute;
pub(crate) mod scan;
