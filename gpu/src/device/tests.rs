//! A device that is lost while programs use it. A loss concerns all handles of a driver's device, so each case
//! runs in a process of its own.

use super::Gpu;
use crate::adapters::{describe, driver};
use anabranch::{
    device::{Device, DeviceError},
    prelude::*,
};
use std::{
    env,
    io::{Write as _, stderr},
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};
use testing::deadline;

/// Set for the process that a test starts.
const CHILD: &str = "ANABRANCH_TEST_CHILD";

/// Runs a test again in a process of its own, which it is to end well.
fn in_a_process(test: &str) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("device::tests::{test}"), "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// A handle to the first device, of any kind.
fn open() -> Option<Arc<Gpu>> {
    let Some(adapter) = driver::adapters().first() else {
        // Not `eprintln!`, which the test harness captures.
        let _ = writeln!(stderr(), "skipped: the loss of a device (needs the package mesa-vulkan-drivers)");
        return None;
    };
    Some(Arc::new(Gpu::open(0, describe(adapter).info).unwrap()))
}

/// Doubles the elements of a buffer on a device.
fn double(rt: &Runtime, on: &Arc<Gpu>, u: &Buffer<u32, 1>) -> Result<(), Error> {
    let device: Arc<dyn Device> = Arc::<Gpu>::clone(on);
    let task = rt.task("double").over([8]).on(&device).update(u, one_to_one());
    task.each(|(u,)| u.set(u.here() * 2))?.wait()
}

/// Loses the device while it has data of a program, and looks at what follows.
fn lose(how: impl Fn(&wgpu::Device)) {
    let Some(gpu) = open() else { return };
    let rt = Runtime::builder().threads(2).build().unwrap();
    let (u, other) = (rt.buffer_from(&[1_u32; 8]).unwrap(), rt.buffer_from(&[1_u32; 8]).unwrap());
    double(&rt, &gpu, &u).unwrap();
    let second = open().expect("it is there");
    how(&gpu.shared.device);
    while gpu.timeline().is_lost().is_none() || second.timeline().is_lost().is_none() {
        let _ = gpu.shared.device.poll(wgpu::PollType::Poll);
        thread::sleep(Duration::from_millis(1));
    }
    // What only the device had is gone, and it does nothing more. Data that the host has stays.
    let is_lost = |error: &Error| error.to_string().contains("is lost");
    for on in [&gpu, &second] {
        let error = double(&rt, on, &other).unwrap_err();
        assert!(is_lost(&error), "{error}");
        assert!(matches!(on.wait(), Err(DeviceError::Lost { .. })));
        assert!(matches!(on.allocate(8), Err(DeviceError::Lost { .. })));
    }
    let error = rt.fence(&u).and_then(|fence| fence.wait()).unwrap_err();
    assert!(is_lost(&error), "{error}");
    let _ = rt.wait();
    // The next handle has a new device of the driver.
    let third = open().expect("it is there");
    let fresh = rt.buffer_from(&[3_u32; 8]).unwrap();
    double(&rt, &third, &fresh).unwrap();
    assert_eq!(rt.fence(&fresh).unwrap().wait().unwrap().as_slice(), [6; 8]);
    rt.wait().unwrap();
}

#[test]
fn all_handles_of_a_device_that_is_lost_are_lost_and_the_next_one_is_not() {
    let _deadline = deadline();
    match env::var_os(CHILD) {
        Some(_) => lose(wgpu::Device::destroy),
        None => in_a_process("all_handles_of_a_device_that_is_lost_are_lost_and_the_next_one_is_not"),
    }
}

#[test]
fn an_error_that_belongs_to_no_batch_loses_the_device_and_ends_no_program() {
    let _deadline = deadline();
    // Larger than any buffer may be, and in no scope: the error goes to the handler for all others.
    let wrong = |device: &wgpu::Device| {
        drop(device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::MAX / 4 * 4,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        }));
    };
    match env::var_os(CHILD) {
        Some(_) => lose(wrong),
        None => in_a_process("an_error_that_belongs_to_no_batch_loses_the_device_and_ends_no_program"),
    }
}
