//! The program without its feature `gpu`. `./check` runs this.
#![cfg(not(feature = "gpu"))]

mod common;

use common::{fail, folder, program, succeed};
use testing::deadline;

#[test]
fn a_device_is_an_error_that_says_how_to_build_with_devices() {
    let _deadline = deadline();
    let folder = folder();
    let how = "--features gpu";
    for args in ["devices", "simulate --no-output -r 8 -c 9 -n 1 --device gpu"] {
        let text = fail(folder.path(), args, 1);
        assert!(text.contains(how), "{text}");
    }
    let output = program(folder.path(), "simulate --no-output -r 8 -c 9 -n 1")
        .env("ANABRANCH_DEVICE", "gpu")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("ANABRANCH_DEVICE gpu: ") && text.contains(how),
        "{text}"
    );
}

#[test]
fn the_host_needs_no_feature_and_auto_says_why_it_takes_the_host() {
    let _deadline = deadline();
    let folder = folder();
    let text = succeed(folder.path(), "simulate --no-output -r 8 -c 9 -n 1 --device host");
    assert!(!text.contains("--features gpu"), "{text}");
    let text = succeed(folder.path(), "simulate --no-output -r 8 -c 9 -n 1 --device auto");
    assert!(text.contains("Computing on the processor: ") && text.contains("--features gpu"), "{text}");
}
