//! The refusal of commands for which the machine has too little memory.

use crate::{error::Error, memory, parameters::Parameters, run};

/// Refuses a run whose fields need more memory than there is.
///
/// # Errors
/// [`Error::NoMemory`].
pub(crate) fn check_run(p: &Parameters, queue: usize) -> Result<(), Error> {
    check(run::memory(p, queue), "choose fewer --rows or --cols, or a smaller --io-buffer", || {
        format!("a grid of {} × {} cells", p.rows, p.cols)
    })
}

/// Refuses work that needs more memory than there is. `what` names it, and `remedy` the options to change.
///
/// # Errors
/// [`Error::NoMemory`].
pub(crate) fn check(needed: u64, remedy: &'static str, what: impl FnOnce() -> String) -> Result<(), Error> {
    match memory::available_bytes() {
        Some(available) if needed > available => {
            Err(Error::NoMemory { what: what(), needed, available, remedy })
        }
        _ => Ok(()),
    }
}
