//! The results of host functions.

use std::{error::Error, sync::Arc};

/// The error of a host function, shared by all reports of the failure.
pub(crate) type HostError = Arc<dyn Error + Send + Sync>;

/// A result that a host function may return: nothing, or a `Result` whose error can be boxed, as with `?`.
#[diagnostic::on_unimplemented(
    message = "a host function cannot return `{Self}`",
    label = "not a result of a host function",
    note = "return nothing, or `Result<(), E>` with an error that `?` turns into a `Box<dyn Error + Send + Sync>`; write other \
            results to a buffer or a host object"
)]
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
