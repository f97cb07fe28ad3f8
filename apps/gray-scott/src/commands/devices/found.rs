//! The devices that there are, and why no GPU can be used.

use anabranch::device::DeviceKind;
use anabranch_gpu::{Adapter, adapters, why_no_gpu};
use indicatif::BinaryBytes;
use serde::Serialize;
use std::fmt::Write;

/// The devices as text, or as one JSON object.
pub(super) fn text(json: bool) -> String {
    let found = Found::new(&adapters(), why_no_gpu());
    match json {
        true => serde_json::to_string_pretty(&found).expect("numbers and text are always JSON") + "\n",
        false => found.describe(),
    }
}

/// The devices that there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Found {
    devices: Vec<Described>,
    /// Why no GPU can be used; `None` if one can.
    why_no_gpu: Option<String>,
}

/// A device, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Described {
    name: String,
    kind: &'static str,
    driver: String,
    backend: String,
    /// The bytes that it has; `None` if its driver does not say.
    memory_bytes: Option<u64>,
    /// The bytes that one buffer may have.
    largest_buffer_bytes: u64,
    f64: bool,
    i64: bool,
    /// Whether `--device auto` and `--device gpu` take it.
    auto: bool,
}

impl Found {
    fn new(adapters: &[Adapter], why_no_gpu: Option<String>) -> Self {
        let chosen = anabranch_gpu::best(adapters);
        let devices =
            adapters.iter().enumerate().map(|(at, adapter)| Described::new(adapter, chosen == Some(at)));
        Self { devices: devices.collect(), why_no_gpu }
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for device in &self.devices {
            let _ = writeln!(text, "{}", device.describe());
        }
        match &self.why_no_gpu {
            Some(why) => text + &format!("No GPU can be used: {why}\n"),
            None => text,
        }
    }
}

impl Described {
    fn new(adapter: &Adapter, auto: bool) -> Self {
        let info = &adapter.info;
        Self {
            name: info.name.clone(),
            kind: match info.kind {
                DeviceKind::Discrete => "GPU with its own memory",
                DeviceKind::Integrated => "GPU in the processor's memory",
                DeviceKind::Software => "software, on the processor",
                DeviceKind::Simulated => "simulated",
                DeviceKind::Other => "other",
            },
            driver: adapter.driver.clone(),
            backend: adapter.backend.clone(),
            memory_bytes: info.memory,
            largest_buffer_bytes: info.largest_buffer,
            f64: info.has_f64,
            i64: info.has_i64,
            auto,
        }
    }

    fn describe(&self) -> String {
        let memory =
            self.memory_bytes.map_or("not told by the driver".to_owned(), |b| BinaryBytes(b).to_string());
        let yes = |is| if is { "yes" } else { "no" };
        let place = match self.auto {
            true => "with --device auto and --device gpu".to_owned(),
            false => format!("with --device '{}' only", self.name),
        };
        format!(
            "{}\n  kind            {}\n  driver          {}, {}\n  memory          {memory}\n  largest buffer  {}\n  \
             64-bit numbers  f64: {}, i64: {}\n  taken           {place}\n",
            self.name,
            self.kind,
            self.backend,
            self.driver,
            BinaryBytes(self.largest_buffer_bytes),
            yes(self.f64),
            yes(self.i64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::device::DeviceInfo;

    fn adapter(name: &str, kind: DeviceKind) -> Adapter {
        let info = DeviceInfo {
            name: name.into(),
            kind,
            memory: None,
            largest_buffer: 3 << 30,
            has_f64: true,
            has_i64: false,
        };
        Adapter { info, backend: "Vulkan".into(), driver: "a driver 1.2".into(), operands: 8 }
    }

    #[test]
    fn auto_takes_the_best_gpu_and_others_need_their_name() {
        let _deadline = testing::deadline();
        let kinds =
            [DeviceKind::Software, DeviceKind::Integrated, DeviceKind::Discrete, DeviceKind::Discrete];
        let all = [0, 1, 2, 3].map(|at| adapter(&format!("device {at}"), kinds[at]));
        let found = Found::new(&all, None);
        assert_eq!([0, 1, 2, 3].map(|at| found.devices[at].auto), [false, false, true, false]);
        let text = found.describe();
        for part in [
            "device 3\n",
            "Vulkan, a driver 1.2",
            "3.00 GiB",
            "f64: yes, i64: no",
            "--device 'device 0' only",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(text.matches("--device auto and").count(), 1);
    }

    #[test]
    fn without_a_gpu_the_reason_is_said() {
        let _deadline = testing::deadline();
        let found = Found::new(&[adapter("llvmpipe", DeviceKind::Software)], Some("no driver".into()));
        assert!(!found.devices[0].auto);
        assert!(found.describe().ends_with("No GPU can be used: no driver\n"));
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(
            (&json["why_no_gpu"], &json["devices"][0]["name"]),
            (&"no driver".into(), &"llvmpipe".into())
        );
    }
}
