//! Which device a user gets by its name, and by the environment variable: the test runs itself with each value of the variable.

use anabranch::device::DeviceKind;
use anabranch_gpu::{GpuError, adapters, choose, from_environment, why_no_gpu};
use std::{env, process::Command};
use testing::deadline;

/// The argument with which the test runs itself.
const CHILD: &str = "the_variable_in_a_process_of_its_own";

#[test]
fn a_name_chooses_a_device_and_auto_never_takes_a_software_adapter() {
    let _deadline = deadline();
    assert!(choose("host").unwrap().is_none());
    assert!(matches!(choose(" "), Err(GpuError::NoName)));
    match (choose("auto"), choose("gpu")) {
        (Ok(Some(auto)), Ok(Some(gpu))) => {
            assert_ne!(auto.info().kind, DeviceKind::Software);
            assert_eq!(auto.info().name, gpu.info().name);
        }
        (Ok(None), Err(GpuError::None { why })) => assert_eq!(Some(why), why_no_gpu()),
        others => panic!("{others:?}"),
    }
    for adapter in adapters() {
        let name = adapter.info.name.to_uppercase();
        let device = choose(&name).unwrap().expect("a name is no processor");
        assert!(device.info().name.to_uppercase().contains(&name));
    }
    let error = choose("no such device").unwrap_err();
    match adapters().first() {
        Some(adapter) => assert!(error.to_string().contains(&adapter.info.name), "{error}"),
        None => assert!(matches!(error, GpuError::None { .. })),
    }
}

#[test]
fn the_variable_chooses_a_device_and_an_error_names_it() {
    let _deadline = deadline();
    let says = |value: Option<&str>| {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args([CHILD, "--exact", "--ignored", "--nocapture"]).env_remove("ANABRANCH_DEVICE");
        child.envs(value.map(|value| ("ANABRANCH_DEVICE", value)));
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for of_processor in [None, Some(""), Some("host")] {
        assert!(says(of_processor).contains("device: none"));
    }
    let wrong = says(Some("no such device"));
    assert!(wrong.contains("error: ANABRANCH_DEVICE is `no such device`"), "{wrong}");
    for adapter in adapters() {
        let name = adapter.info.name;
        assert!(says(Some(&name)).contains(&format!("device: {name}")));
    }
}

#[test]
#[ignore = "a process of its own runs it, with the variable"]
fn the_variable_in_a_process_of_its_own() {
    let _deadline = deadline();
    match from_environment() {
        Ok(None) => println!("device: none"),
        Ok(Some(device)) => println!("device: {}", device.info().name),
        Err(error) => println!("error: {error}"),
    }
}
