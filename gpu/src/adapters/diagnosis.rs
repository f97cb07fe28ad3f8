//! Why no GPU can be used, in words.

use super::{Adapter, adapters};
use anabranch::device::DeviceKind;
use std::{env, fs, path::Path};

/// Why no GPU can be used, and what to install; `None` if one can.
pub fn why_no_gpu() -> Option<String> {
    let all = adapters();
    let is_gpu = |adapter: &Adapter| adapter.info.kind != DeviceKind::Software;
    (!all.iter().any(is_gpu)).then(|| explain(&all))
}

/// The same, where the adapters are known and none is a GPU.
pub(crate) fn explain(adapters: &[Adapter]) -> String {
    let software = adapters.iter().map(|adapter| adapter.info.name.clone()).collect::<Vec<_>>();
    if cfg!(target_os = "linux") {
        return Facts::gather(software).explain();
    }
    match software.first() {
        Some(name) => format!(
            "the only device is {name}, which computes on the processor: install the driver of your GPU"
        ),
        None => "the system has no driver of Metal, Direct3D 12 or Vulkan: install the driver of your GPU"
            .to_string(),
    }
}

/// What a Linux machine has.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Whether there is `libvulkan.so.1`.
    has_loader: bool,
    /// The names of the files that describe drivers.
    drivers: Vec<String>,
    /// The environment variable that names these files instead of the system, and its value.
    replaced: Option<String>,
    /// Whether the kernel has an NVIDIA GPU.
    has_nvidia: bool,
    /// What `NVIDIA_DRIVER_CAPABILITIES` says.
    capabilities: Option<String>,
    /// Whether the kernel has a GPU of any maker.
    has_render_node: bool,
    /// The devices that compute on the processor.
    software: Vec<String>,
}

impl Facts {
    fn gather(software: Vec<String>) -> Self {
        let loader = "libvulkan.so.1";
        let has = |folder: &str| Path::new(folder).join(loader).exists();
        let path = env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let cache = fs::read("/etc/ld.so.cache").unwrap_or_default();
        let is_cached = cache.windows(loader.len()).any(|window| window == loader.as_bytes());
        let folders = ["/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
        let names = |folder: &str| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let mut drivers = folders.iter().flat_map(|folder| names(folder)).collect::<Vec<_>>();
        // The loader looks at the first of these that is set, and nowhere else.
        let variables = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
        let replaced = variables.into_iter().find_map(|name| Some((name, env::var(name).ok()?)));
        if let Some((_, files)) = &replaced {
            drivers = files.split(':').filter(|file| Path::new(file).exists()).map(str::to_string).collect();
        }
        Self {
            has_loader: is_cached || has("/usr/lib") || has("/usr/lib64") || path.split(':').any(has),
            drivers,
            replaced: replaced.map(|(name, files)| format!("{name}={files}")),
            has_nvidia: Path::new("/dev/nvidiactl").exists(),
            capabilities: env::var("NVIDIA_DRIVER_CAPABILITIES").ok(),
            has_render_node: names("/dev/dri").iter().any(|name| name.starts_with("renderD")),
            software,
        }
    }

    fn explain(&self) -> String {
        let has_nvidia_driver = self.drivers.iter().any(|name| name.contains("nvidia"));
        let may_draw =
            |capabilities: &String| capabilities.split(',').any(|c| ["all", "graphics"].contains(&c.trim()));
        if !self.has_loader {
            return "the Vulkan loader libvulkan.so.1 is not installed: install the package libvulkan1 (Debian, Ubuntu) or \
                    vulkan-loader (Fedora), and the driver of your GPU"
                .to_string();
        }
        if self.drivers.is_empty()
            && let Some(replaced) = &self.replaced
        {
            return format!("{replaced} names no driver that exists: unset the variable, or correct it");
        }
        if self.has_nvidia && !has_nvidia_driver {
            return match &self.capabilities {
                Some(capabilities) if !may_draw(capabilities) => format!(
                    "this container has an NVIDIA GPU, but not its Vulkan driver: NVIDIA_DRIVER_CAPABILITIES is `{capabilities}`; \
                     start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"
                ),
                _ => "there is an NVIDIA GPU, but no Vulkan driver of it: install the driver of NVIDIA with its graphics part \
                      (libnvidia-gl); in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"
                    .to_string(),
            };
        }
        if self.drivers.is_empty() {
            return "the Vulkan loader is installed, but no driver: install the driver of your GPU (for AMD and Intel: the package \
                    mesa-vulkan-drivers)"
                .to_string();
        }
        let found = match self.software.as_slice() {
            [] => format!("the Vulkan drivers {} find no device", self.drivers.join(", ")),
            names => format!("the only device is {}, which computes on the processor", names.join(", ")),
        };
        match self.has_render_node {
            true => format!(
                "{found}: there is a GPU in /dev/dri, so look whether this user may open it (group render)"
            ),
            false => format!(
                "{found}, and the kernel shows no GPU: look for /dev/dri/renderD128 or /dev/nvidiactl"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;

    #[test]
    fn each_thing_that_is_missing_is_named() {
        let says = |facts: Facts, expected: &str| {
            let text = facts.explain();
            assert!(text.contains(expected), "{text}");
        };
        let nothing = Facts::default();
        says(nothing.clone(), "package libvulkan1");
        let loader = Facts { has_loader: true, ..nothing };
        says(loader.clone(), "but no driver");
        let replaced = Some("VK_DRIVER_FILES=/none".into());
        says(Facts { replaced, ..loader.clone() }, "VK_DRIVER_FILES=/none names no driver that exists");
        let container =
            Facts { has_nvidia: true, capabilities: Some("compute,utility".into()), ..loader.clone() };
        says(container.clone(), "NVIDIA_DRIVER_CAPABILITIES is `compute,utility`");
        says(Facts { capabilities: Some("all".into()), ..container }, "libnvidia-gl");
        let driver = Facts { drivers: vec!["intel_icd.json".into()], ..loader };
        says(driver.clone(), "intel_icd.json find no device, and the kernel shows no GPU");
        let node = Facts { has_render_node: true, ..driver.clone() };
        says(node, "group render");
        says(Facts { software: vec!["llvmpipe".into()], ..driver }, "the only device is llvmpipe");
    }
}
