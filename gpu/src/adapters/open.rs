//! Opening a device.

use super::{Adapter, best, describe, diagnosis, driver, gpus};
use crate::{device::Gpu, error::GpuError};
use anabranch::device::Device;
use std::{env, sync::Arc};

/// How a device is opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The bytes that buffers may take together. By default the environment variable
    /// `ANABRANCH_DEVICE_MEMORY` says it; without it there is no limit. Drivers do not say reliably when their
    /// memory is in use, so without a limit the first sign may be a batch that fails with what the driver
    /// says, in which no buffer has a name.
    pub memory: Option<u64>,
}

impl Settings {
    /// Limits the bytes that buffers may take together.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes) }
    }
}

/// The environment variable with the bytes that buffers may take together.
const MEMORY: &str = "ANABRANCH_DEVICE_MEMORY";

/// The bytes that the environment variable says: a number, perhaps with `K`, `M` or `G` for powers of 1024.
fn memory_of_environment() -> Result<Option<u64>, GpuError> {
    let Some(value) = env::var_os(MEMORY).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy();
    let bytes = bytes(&value).ok_or_else(|| GpuError::Memory { value: value.to_string() })?;
    Ok(Some(bytes))
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = match &*text[digits.len()..].to_ascii_uppercase() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Opens a device: one with `name` in its name, in upper or lower case; or the first of discrete, integrated
/// and other GPUs. The latter is never a driver that computes on the processor.
///
/// A number after a colon tells apart devices with one name: `h200:0` is the first one, `h200:1` the second.
/// `gpu:1` is the second GPU, whatever its name is: discrete ones come first.
///
/// # Errors
/// There is no such device, or its driver refuses it. The error says what is missing. The environment variable
/// `ANABRANCH_DEVICE_MEMORY` has a wrong value.
pub fn open(name: Option<&str>) -> Result<Arc<dyn Device>, GpuError> {
    open_with(name, Settings::default())
}

/// Opens a device as [`open`] does, with settings.
///
/// # Errors
/// See [`open`].
pub fn open_with(name: Option<&str>, settings: Settings) -> Result<Arc<dyn Device>, GpuError> {
    let all = driver::adapters();
    let described = all.iter().map(describe).collect::<Vec<_>>();
    let chosen = match name {
        Some(name) => named(&described, name),
        None => best(&described),
    };
    match (chosen, name) {
        (Some(at), _) => {
            let mut info = described[at].info.clone();
            info.memory = match settings.memory {
                None => memory_of_environment()?,
                some => some,
            };
            Ok(Arc::new(Gpu::open(at, info)?))
        }
        (None, Some(name)) if !all.is_empty() => {
            let there =
                described.iter().map(|adapter| adapter.info.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(GpuError::NoSuchDevice { name: name.to_string(), there })
        }
        _ => Err(GpuError::None { why: diagnosis::explain(&described) }),
    }
}

/// The index of the device with this name: see [`open`].
fn named(adapters: &[Adapter], name: &str) -> Option<usize> {
    let with = |wanted: String| {
        (0..adapters.len()).filter(move |&at| adapters[at].info.name.to_lowercase().contains(&wanted))
    };
    let numbered = || {
        let (name, number) = name.rsplit_once(':')?;
        let number = number.parse::<usize>().ok()?;
        match name.to_lowercase() {
            gpu if gpu == "gpu" => gpus(adapters).nth(number),
            name => with(name).nth(number),
        }
    };
    // A name may have a colon of its own.
    with(name.to_lowercase()).next().or_else(numbered)
}

#[cfg(test)]
mod tests {
    use super::{Adapter, bytes, named};
    use anabranch::device::{DeviceInfo, DeviceKind};

    #[test]
    fn a_number_tells_apart_devices_with_one_name() {
        let _deadline = testing::deadline();
        let adapter = |name: &str, kind| {
            let info = DeviceInfo {
                name: name.into(),
                kind,
                memory: None,
                largest_buffer: 1 << 20,
                has_f64: true,
                has_i64: true,
            };
            Adapter { info, backend: String::new(), driver: String::new(), operands: 8 }
        };
        let all = [
            adapter("llvmpipe", DeviceKind::Software),
            adapter("Iris", DeviceKind::Integrated),
            adapter("NVIDIA H200", DeviceKind::Discrete),
            adapter("NVIDIA H200", DeviceKind::Discrete),
            adapter("Odd: 7:1", DeviceKind::Other),
        ];
        for (name, at) in [
            ("h200", Some(2)),
            ("h200:0", Some(2)),
            ("H200:1", Some(3)),
            ("h200:2", None),
            ("gpu:0", Some(2)),
            ("GPU:1", Some(3)),
            ("gpu:2", Some(1)),
            ("gpu:3", Some(4)),
            ("gpu:4", None),
            ("llvm:0", Some(0)),
            ("7:1", Some(4)),
            ("h200:-1", None),
            ("h200:", None),
        ] {
            assert_eq!(named(&all, name), at, "{name}");
        }
    }

    #[test]
    fn a_number_of_bytes_may_have_a_unit() {
        let _deadline = testing::deadline();
        assert_eq!(["1", "7k", "512M", "8G"].map(bytes), [1, 7 << 10, 512 << 20, 8 << 30].map(Some));
        let wrong = ["", "0", "G", "-1", "1.5G", "1T", "8GiB", "99999999999G", "4 G", "M4"];
        assert!(wrong.map(bytes).iter().all(Option::is_none));
    }
}
