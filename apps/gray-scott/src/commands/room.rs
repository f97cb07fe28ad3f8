//! The refusal of commands for which the machine has too little memory.

use crate::{error::Error, memory, parameters::Parameters, run};

/// The nodes of a run that share the memory of this machine, of all nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub(crate) here: usize,
    pub(crate) nodes: u16,
}

impl Sharing {
    /// One process has all rows.
    pub(crate) const ALONE: Self = Self { here: 1, nodes: 1 };

    /// The part of the fields that is on this machine: each node has its rows.
    fn part(self, bytes: u64) -> u64 {
        let nodes = u128::from(self.nodes.max(1));
        let here = (self.here as u128).min(nodes);
        (u128::from(bytes) * here).div_ceil(nodes) as u64
    }
}

/// Refuses a run whose fields need more memory than there is.
///
/// # Errors
/// [`Error::NoMemory`].
pub(crate) fn check_run(p: &Parameters, queue: usize, sharing: Sharing) -> Result<(), Error> {
    check(
        sharing.part(run::memory(p, queue)),
        "choose fewer --rows or --cols, or a smaller --io-buffer",
        || format!("a grid of {} × {} cells", p.rows, p.cols),
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_needs_memory_for_the_rows_of_its_nodes() {
        let part = |here, nodes| Sharing { here, nodes }.part(1001);
        assert_eq!(
            [part(1, 1), part(1, 4), part(2, 4), part(4, 4), part(9, 4)],
            [1001, 251, 501, 1001, 1001]
        );
        assert_eq!(Sharing { here: 3, nodes: 4 }.part(u64::MAX), u64::MAX / 4 * 3 + 3);
    }
}
