//! The choice of the device that computes a run.
//!
//! The crate `anabranch-gpu` opens it. A program that was built without the feature `gpu` has the host alone.

use crate::error::Error;
use anabranch::{
    Runtime,
    device::{Device, DeviceInfo},
};
use std::{env, sync::Arc};

/// The environment variable that names a device where no option does. `anabranch_gpu::from_env` reads it,
/// too.
const VARIABLE: &str = "ANABRANCH_DEVICE";

/// Where a run computes.
pub(crate) struct Chosen {
    /// The device; `None` for the threads of this process.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// A note for the user, if the choice may be a surprise.
    pub(crate) note: Option<String>,
}

/// Opens the device that the option `--device` names, or else the environment.
///
/// # Errors
/// [`Error::Device`].
pub(crate) fn choose(option: Option<&str>) -> Result<Chosen, Error> {
    let device = open(option)?;
    let is_auto = device.is_none() && requested(option).0.eq_ignore_ascii_case("auto");
    let note = is_auto.then(|| format!("Computing on the processor: {}", why_on_host()));
    Ok(Chosen { device, note })
}

/// Opens a device on each node, and [agrees](agree) on the place of all.
///
/// # Errors
/// On all nodes [`Error::Runtime`], with the error of the first node that cannot open its device, or
/// [`Error::Device`].
pub(crate) fn choose_on_nodes(
    rt: &Runtime,
    option: Option<&str>,
) -> Result<(Chosen, Option<DeviceInfo>), Error> {
    let own = rt.agree_result(choose(option))?;
    agree(rt, own, option)
}

/// Makes one choice of those of all nodes: all compute on devices, or all on the host, if those without a
/// device leave them no other choice and those with one allow it. Also returns what the devices of all nodes
/// have at least, under the name of the one here.
fn agree(rt: &Runtime, own: Chosen, option: Option<&str>) -> Result<(Chosen, Option<DeviceInfo>), Error> {
    let info = own.device.as_ref().map(|device| device.info());
    let (largest_buffer, memory) = info.map_or((0, None), |info| (info.largest_buffer, info.memory));
    let has_to = u64::from(!may_be_host(option));
    let all = rt.agree([u64::from(info.is_some()), has_to, largest_buffer, memory.unwrap_or(u64::MAX)])?;
    let Some(without) = all.iter().position(|node| node[0] == 0) else {
        let least = |at: usize| all.iter().map(|node| node[at]).min().unwrap_or(u64::MAX);
        let least = info.map(|info| DeviceInfo {
            largest_buffer: least(2),
            memory: Some(least(3)).filter(|&memory| memory < u64::MAX),
            ..info.clone()
        });
        return Ok((own, least));
    };
    if let Some(with) = all.iter().position(|node| node[1] == 1) {
        let (name, source) = requested(option);
        return Err(Error::Device(format!(
            "{source} {name}: node {with} is to compute on a device, and node {without} on its processor: name a device on all nodes, or on none"
        )));
    }
    let note = own.note.or_else(|| {
        own.device.map(|_| format!("Computing on the processors: node {without} has no GPU that can be used"))
    });
    Ok((Chosen { device: None, note }, None))
}

/// Whether the host may compute by what is requested.
fn may_be_host(option: Option<&str>) -> bool {
    let (name, _) = requested(option);
    ["host", "auto"].iter().any(|host| name.eq_ignore_ascii_case(host))
}

/// The name that is requested, and what requests it.
fn requested(option: Option<&str>) -> (String, &'static str) {
    if let Some(name) = option {
        return (name.to_owned(), "--device");
    }
    let value = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    (value.map_or("host".to_owned(), |value| value.to_string_lossy().into_owned()), VARIABLE)
}

#[cfg(feature = "gpu")]
fn open(option: Option<&str>) -> Result<Option<Arc<dyn Device>>, Error> {
    match option {
        Some(name) => {
            anabranch_gpu::by_name(name).map_err(|error| Error::Device(format!("--device {name}: {error}")))
        }
        None => anabranch_gpu::from_env().map_err(|error| Error::Device(error.to_string())),
    }
}

#[cfg(feature = "gpu")]
fn why_on_host() -> String {
    anabranch_gpu::why_no_gpu().unwrap_or_else(|| "a GPU was not there a moment ago".to_owned())
}

#[cfg(not(feature = "gpu"))]
fn open(option: Option<&str>) -> Result<Option<Arc<dyn Device>>, Error> {
    if may_be_host(option) {
        return Ok(None);
    }
    let (name, source) = requested(option);
    Err(Error::Device(format!("{source} {name}: {}", why_on_host())))
}

/// What a program says that was built without devices.
#[cfg(not(feature = "gpu"))]
pub(crate) const NOT_BUILT: &str = "this program was built without its feature gpu: build it with `cargo build --release -p gray-scott --features gpu`";

#[cfg(not(feature = "gpu"))]
fn why_on_host() -> String {
    NOT_BUILT.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::{device::Simulated, local_nodes};

    /// What three nodes make of these options, of which all but that of node 1 have found a device.
    fn of_three(options: [&'static str; 3]) -> Vec<Result<(Chosen, Option<DeviceInfo>), String>> {
        let results = local_nodes(3).threads(1).run(move |rt| {
            let node = usize::from(rt.node());
            let found =
                |bytes| Arc::new(Simulated::builder().largest_buffer(bytes).build()) as Arc<dyn Device>;
            let is_host = options[node] == "host" || node == 1 && options[node] == "auto";
            let device = (!is_host).then(|| found(10_000 - 1000 * node as u64));
            let note = is_host.then(|| format!("node {node} has none"));
            Ok::<_, anabranch::Error>(agree(&rt, Chosen { device, note }, Some(options[node])))
        });
        results.into_iter().map(|result| result.unwrap().map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn all_nodes_compute_on_devices_that_have_what_the_smallest_has() {
        let _deadline = testing::deadline();
        for result in of_three(["gpu", "gpu", "auto"]) {
            let (chosen, least) = result.unwrap();
            assert!(chosen.device.is_some() && chosen.note.is_none());
            assert_eq!(least.unwrap().largest_buffer, 8000);
        }
    }

    #[test]
    fn with_auto_all_nodes_compute_on_their_processors_if_one_has_no_gpu() {
        let _deadline = testing::deadline();
        for (node, result) in of_three(["auto"; 3]).into_iter().enumerate() {
            let (chosen, least) = result.unwrap();
            assert!(chosen.device.is_none() && least.is_none());
            let note = chosen.note.unwrap();
            assert_eq!(note == "node 1 has none", node == 1, "{note}");
            assert!(note.contains("node 1 has no"), "{note}");
        }
    }

    #[test]
    fn a_device_that_is_named_on_some_nodes_is_an_error_of_all() {
        let _deadline = testing::deadline();
        for options in [["gpu", "host", "gpu"], ["auto", "auto", "gpu"]] {
            for (node, result) in of_three(options).into_iter().enumerate() {
                let error = result.err().unwrap();
                assert!(error.starts_with(&format!("--device {}: node ", options[node])), "{error}");
                assert!(error.contains("and node 1 on its processor"), "{error}");
            }
        }
    }
}
