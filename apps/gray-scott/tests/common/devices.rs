//! Runs of the program on a device.

use super::frames;
use anabranch::device::DeviceKind;
use anabranch_store::Reader;
use std::{
    env,
    io::{Write as _, stderr},
    path::Path,
};

/// How far V may be from the host's after this number of steps: the tolerance that the README states.
fn tolerance(steps: u64) -> f32 {
    assert!(steps <= 1000);
    if steps <= 34 { 1e-6 } else { 2e-5 }
}

/// The name of a device that computes on the processor, so that the tests are the same on machines with a GPU.
/// `.ci/gpu` names another one, or says `gpu`.
pub fn device() -> Option<String> {
    let wanted = env::var("ANABRANCH_TEST_DEVICE").ok();
    let found = anabranch_gpu::adapters().into_iter().find(|adapter| match wanted.as_deref() {
        None => adapter.info.kind == DeviceKind::Software,
        Some("gpu") => adapter.info.kind != DeviceKind::Software,
        Some(name) => adapter.info.name.to_lowercase().contains(&name.to_lowercase()),
    });
    match (&found, wanted) {
        (None, Some(name)) => panic!("no device is named `{name}`"),
        // Not `eprintln!`, which the test harness captures.
        (None, None) => {
            let _ = writeln!(stderr(), "skipped: runs on a device (need the package mesa-vulkan-drivers)");
        }
        (Some(_), _) => {}
    }
    // One word, for the command lines of these tests.
    found.map(|adapter| adapter.info.name.split(' ').next().unwrap_or_default().to_owned())
}

/// Asserts that V of all frames is near, and that steps and times are the same.
pub fn assert_near(device: &Path, host: &Path, steps_per_frame: u64) {
    let [at_device, at_host] = [device, host].map(|path| Reader::open(path).unwrap());
    assert_eq!(at_device.stored_frames().unwrap(), at_host.stored_frames().unwrap());
    let (on_device, on_host) = (frames(device.into()), frames(host.into()));
    for (i, (on_device, on_host)) in on_device.iter().zip(&on_host).enumerate() {
        let most = on_device.iter().zip(on_host).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let steps = steps_per_frame * (i as u64 + 1);
        println!("after {steps} steps: {most:e}");
        assert!(most <= tolerance(steps), "{most} after {steps} steps");
    }
}
