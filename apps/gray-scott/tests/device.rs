//! The program on a device: Mesa's lavapipe, where there is no GPU.
#![cfg(feature = "gpu")]

mod common;

use common::{fail, folder, frames, program, run, succeed};
use serde_json::Value;
use std::fs;
use testing::deadline;

/// The name of a device; `None`, with a message, where there is none.
fn device() -> Option<String> {
    let name = anabranch_gpu::adapters().first().map(|adapter| adapter.info.name.clone());
    if name.is_none() {
        eprintln!("skipped: the program on a device (needs the package mesa-vulkan-drivers)");
    }
    // A part without spaces, for a command line that is split at spaces.
    name.map(|name| name.split_whitespace().next().unwrap_or_default().to_string())
}

#[test]
fn a_device_stores_the_frames_of_the_host_and_each_goes_on_with_the_file_of_the_other() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let base = "simulate -q -r 61 -c 45 -e 40 --edges periodic --noise 3";
    succeed(folder.path(), &format!("{base} -n 4 -o host.h5"));
    succeed(folder.path(), &format!("{base} -n 4 -o device.h5 --device {device} --stats-json stats.json"));
    let stats: Value = serde_json::from_slice(&fs::read(folder.path().join("stats.json")).unwrap()).unwrap();
    assert!(stats["device"].as_str().unwrap().contains(&device), "{stats}");
    assert_eq!((&stats["steps"], &stats["stored_frames"]), (&160.into(), &4.into()));
    for (from, to) in [
        (format!("--device {device}"), "--device host".into()),
        (String::new(), format!("--device {device}")),
    ] {
        succeed(folder.path(), &format!("{base} -n 2 -o both.h5 --force --checkpoint-every 1 {from}"));
        succeed(folder.path(), &format!("simulate -q -n 4 -o both.h5 --resume {to}"));
        for (file, frame) in
            ["device.h5", "both.h5"].iter().flat_map(|file| (0..4).map(move |frame| (file, frame)))
        {
            let [host, other] =
                ["host.h5", file].map(|file| frames(folder.path().join(file)).swap_remove(frame));
            let difference = host.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(difference <= 1e-4, "{file}, frame {frame}: {difference}");
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_names_those_that_are() {
    let _deadline = deadline();
    let folder = folder();
    let text = fail(folder.path(), "simulate -n 1 --device no-such-device", 1);
    assert!(text.contains("no-such-device") || text.contains("no GPU can be used"), "{text}");
    if let Some(device) = device() {
        assert!(text.contains(&device), "{text}");
    }
    assert!(!folder.path().join("output.h5").exists(), "{text}");
    let output = program(folder.path(), "simulate -n 1").env("ANABRANCH_DEVICE", "no-such-device").output();
    assert_eq!(output.unwrap().status.code(), Some(1));
}

#[test]
fn auto_computes_on_the_processor_if_there_is_no_gpu() {
    let _deadline = deadline();
    let folder = folder();
    let text = succeed(folder.path(), "simulate -r 9 -c 9 -n 1 -e 1 --device auto");
    assert_eq!(text.contains("no GPU that can be used"), anabranch_gpu::why_no_gpu().is_some(), "{text}");
}

#[test]
fn the_devices_are_listed_and_what_is_missing() {
    let _deadline = deadline();
    let folder = folder();
    let output = run(folder.path(), "devices --json");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = String::from_utf8(run(folder.path(), "devices").stdout).unwrap();
    for device in json["devices"].as_array().unwrap() {
        assert!(text.contains(device["name"].as_str().unwrap()), "{text}");
    }
    match json["no_gpu"].as_str() {
        Some(why) => assert!(text.contains(why), "{text}"),
        None => assert!(json["devices"].as_array().unwrap().iter().any(|device| device["gpu"] == true)),
    }
}
