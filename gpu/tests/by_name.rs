//! The device that a text names.

use anabranch::device::DeviceKind;
use anabranch_gpu::{GpuError, Settings, adapters, by_name, from_env, open_with, why_no_gpu};
use std::{
    io::{Write as _, stderr},
    process::Command,
};
use testing::deadline;

/// Set for the process that a test starts.
const CHILD: &str = "ANABRANCH_TEST_CHILD";

fn software() -> Option<String> {
    let found = adapters().into_iter().find(|adapter| adapter.info.kind == DeviceKind::Software);
    if found.is_none() {
        // Not `eprintln!`, which the test harness captures.
        let _ = writeln!(
            stderr(),
            "skipped: devices that compute on the processor (need the package mesa-vulkan-drivers)"
        );
    }
    found.map(|adapter| adapter.info.name)
}

#[test]
fn the_host_is_no_device_and_a_gpu_is_never_software() {
    let _deadline = deadline();
    for text in ["host", "HOST"] {
        assert!(by_name(text).unwrap().is_none());
    }
    let why = why_no_gpu();
    let auto = by_name("auto").unwrap();
    assert_eq!(auto.is_none(), why.is_some());
    assert!(auto.is_none_or(|device| device.info().kind != DeviceKind::Software));
    match (by_name("GPU"), why) {
        (Ok(device), None) => assert_ne!(device.unwrap().info().kind, DeviceKind::Software),
        (Err(error), Some(why)) => assert_eq!(error, GpuError::None { why }),
        (opened, why) => panic!("{:?}, but {why:?}", opened.map(|_| "opened")),
    }
}

#[test]
fn a_part_of_a_name_opens_software_too_and_another_name_lists_what_there_is() {
    let _deadline = deadline();
    let Some(name) = software() else { return };
    let part = name[..4].to_uppercase();
    assert_eq!(by_name(&part).unwrap().unwrap().info().name, name);
    let error = by_name("no such device").err().unwrap();
    assert!(matches!(&error, GpuError::NoSuchDevice { there, .. } if there.contains(&name)), "{error}");
}

/// What a process says that runs a test with these variables.
fn says_with(test: &str, variables: [(&str, Option<&str>); 2]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_environment_limits_the_memory_of_a_device() {
    let _deadline = deadline();
    if std::env::var_os(CHILD).is_some() {
        let memory = |settings| open_with(Some(""), settings).map(|device| device.info().memory);
        match memory(Settings::default()) {
            Ok(limit) => println!("limit: {limit:?}, {:?}", memory(Settings::default().memory(7))),
            Err(error) => println!("error: {error}"),
        }
        return;
    }
    if software().is_none() {
        return;
    }
    let says = |value: Option<&str>| {
        let variables = [("ANABRANCH_DEVICE", None), ("ANABRANCH_DEVICE_MEMORY", value)];
        says_with("the_environment_limits_the_memory_of_a_device", variables)
    };
    assert!(says(None).contains("limit: None, Ok(Some(7))"));
    assert!(says(Some("3M")).contains("limit: Some(3145728), Ok(Some(7))"));
    let wrong = says(Some("much"));
    assert!(wrong.contains("ANABRANCH_DEVICE_MEMORY is `much`: it must be a number of bytes"), "{wrong}");
}

#[test]
fn the_environment_names_the_device() {
    let _deadline = deadline();
    if std::env::var_os(CHILD).is_some() {
        match from_env() {
            Ok(device) => println!("device: {:?}", device.map(|device| device.info().name.clone())),
            Err(error) => println!("error: {error}"),
        }
        return;
    }
    let says = |value: Option<&str>| {
        let variables = [("ANABRANCH_DEVICE", value), ("ANABRANCH_DEVICE_MEMORY", None)];
        says_with("the_environment_names_the_device", variables)
    };
    for value in [None, Some(""), Some("host")] {
        assert!(says(value).contains("device: None"), "{value:?}");
    }
    assert!(says(Some("no such")).contains("error: ANABRANCH_DEVICE is `no such`: no "));
    let Some(name) = software() else { return };
    assert!(says(Some(&name)).contains(&format!("device: Some({name:?})")));
}
