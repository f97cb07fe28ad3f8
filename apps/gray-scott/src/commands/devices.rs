//! `devices`: the devices that there are, and why no GPU can be used.

use crate::error::Error;
use clap::Args;

/// Options of `devices`.
#[derive(Args, Clone, Debug)]
pub struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the devices.
///
/// # Errors
/// When the program was built without GPUs, or standard output cannot be written.
#[cfg(not(feature = "gpu"))]
pub fn run(_: &DevicesArgs) -> Result<(), Error> {
    Err(Error::Device(crate::device::WITHOUT.into()))
}

/// Prints the devices.
///
/// # Errors
/// When standard output cannot be written.
#[cfg(feature = "gpu")]
pub fn run(args: &DevicesArgs) -> Result<(), Error> {
    let devices = listing::Devices::find();
    crate::report::console::print(&if args.json { devices.to_json() } else { devices.describe() })
}

#[cfg(feature = "gpu")]
mod listing {
    use anabranch::device::DeviceKind;
    use anabranch_gpu::{Adapter, adapters, why_no_gpu};
    use indicatif::DecimalBytes;
    use serde::Serialize;
    use std::fmt::Write;

    /// What there is.
    #[derive(Debug, Serialize)]
    pub struct Devices {
        devices: Vec<Entry>,
        /// Why no GPU can be used, and what to install; nothing if one can.
        no_gpu: Option<String>,
    }

    #[derive(Debug, Serialize)]
    struct Entry {
        name: String,
        kind: &'static str,
        backend: String,
        driver: String,
        largest_buffer: u64,
        f64: bool,
        i64: bool,
        /// Whether `--device gpu` and `--device auto` may take it.
        gpu: bool,
    }

    impl Devices {
        pub fn find() -> Self {
            Self { devices: adapters().into_iter().map(Entry::of).collect(), no_gpu: why_no_gpu() }
        }

        pub fn to_json(&self) -> String {
            serde_json::to_string_pretty(self).expect("numbers and text are always JSON") + "\n"
        }

        pub fn describe(&self) -> String {
            let mut text = String::new();
            for Entry { name, kind, backend, driver, largest_buffer, f64, i64, .. } in &self.devices {
                let numbers = match (f64, i64) {
                    (true, true) => "f64, i64",
                    (true, false) => "f64",
                    (false, true) => "i64",
                    (false, false) => "32-bit numbers only",
                };
                let largest = DecimalBytes(*largest_buffer);
                writeln!(text, "{name}\n  {kind}, {backend}, {driver}; buffers up to {largest}; {numbers}")
                    .expect("writing to a string cannot fail");
            }
            if let Some(why) = &self.no_gpu {
                writeln!(text, "No GPU can be used: {why}").expect("writing to a string cannot fail");
            }
            text
        }
    }

    impl Entry {
        fn of(adapter: Adapter) -> Self {
            let Adapter { info, backend, driver, .. } = adapter;
            let kind = match info.kind {
                DeviceKind::Discrete => "GPU with its own memory",
                DeviceKind::Integrated => "GPU that shares the memory of the processor",
                DeviceKind::Software => "computes on the processor",
                DeviceKind::Simulated | DeviceKind::Other => "other device",
            };
            Self {
                gpu: info.kind != DeviceKind::Software,
                name: info.name,
                kind,
                backend,
                driver,
                largest_buffer: info.largest_buffer,
                f64: info.has_f64,
                i64: info.has_i64,
            }
        }
    }
}
