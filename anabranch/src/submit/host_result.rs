//! The results of host functions.

use std::{error::Error, sync::Arc};

/// The error of a host function, shared by all reports of the failure.
pub(crate) type HostError = Arc<dyn Error + Send + Sync>;

/// A result that a host function may return: nothing, or a `Result` whose error can be boxed, as with `?`.
pub trait HostResult {
    /// Nothing, or why the task has failed.
    fn into_result(self) -> Result<(), Arc<dyn Error + Send + Sync>>;
}

impl HostResult for () {
    fn into_result(self) -> Result<(), Arc<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> HostResult for Result<(), E> {
    fn into_result(self) -> Result<(), Arc<dyn Error + Send + Sync>> {
        self.map_err(|e| Arc::from(e.into()))
    }
}
