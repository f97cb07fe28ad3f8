//! The refusal of commands for which the machine has too little memory.

use crate::{error::Error, memory, parameters::Parameters, run};
use anabranch::device::DeviceInfo;

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

/// Refuses a run whose fields do not fit into a device.
///
/// # Errors
/// [`Error::NoMemory`].
pub(crate) fn check_device(p: &Parameters, queue: usize, device: &DeviceInfo) -> Result<(), Error> {
    let remedy = "choose fewer --rows or --cols, a smaller --io-buffer, or --device host";
    let grid = format!("a grid of {} × {} cells", p.rows, p.cols);
    let needs = [
        (format!("one field of {grid}, on {},", device.name), p.frame_bytes(), Some(device.largest_buffer)),
        (format!("{grid}, on {},", device.name), run::memory(p, queue), device.memory),
    ];
    for (what, needed, available) in needs {
        if let Some(available) = available.filter(|&available| needed > available) {
            return Err(Error::NoMemory { what, needed, available, remedy });
        }
    }
    Ok(())
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
    use anabranch::device::DeviceKind;

    #[test]
    fn a_field_has_to_fit_into_a_buffer_of_the_device_and_all_of_them_into_its_memory() {
        let p = Parameters { rows: 1000, cols: 1000, ..Parameters::default() };
        let check = |memory, largest_buffer| {
            let (name, kind) = ("a GPU".to_owned(), DeviceKind::Discrete);
            let info = DeviceInfo { name, kind, memory, largest_buffer, has_f64: false, has_i64: false };
            check_device(&p, 2, &info).map_err(|error| error.to_string())
        };
        let all = run::memory(&p, 2);
        assert_eq!([check(None, 4_000_000), check(Some(all), 4_000_000)], [Ok(()), Ok(())]);
        let error = check(None, 3_999_999).unwrap_err();
        assert!(
            error.starts_with("one field of a grid of 1000 × 1000 cells, on a GPU, needs 4.00 MB"),
            "{error}"
        );
        let error = check(Some(all - 1), 4_000_000).unwrap_err();
        assert!(
            error.starts_with("a grid of 1000 × 1000 cells, on a GPU, needs")
                && error.contains("--device host")
        );
    }

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
