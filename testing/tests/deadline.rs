//! A test that hangs ends with a message that names it. The tests that hang are children of this test
//! program.
#![cfg(unix)]

use std::{env, os::unix::process::ExitStatusExt as _, process::Command, thread};
use testing::deadline;

/// Set in a child. Without it, the tests that hang do nothing.
const CHILD: &str = "ANABRANCH_TEST_CHILD";

/// Runs the ignored test `name` in a child process, with a deadline of `seconds`. Returns whether the child
/// was aborted, and what it prints to standard error.
fn child(name: &str, seconds: &str) -> (bool, String) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", name, "--ignored"]).env(CHILD, "1").env("ANABRANCH_TEST_SECONDS", seconds);
    // This waits until nothing has the output open, so the child's children have ended, too.
    let output = child.output().unwrap();
    let aborted = output.status.signal().is_some();
    (aborted, String::from_utf8(output.stderr).unwrap())
}

#[test]
#[ignore = "hangs: a part of a test below"]
fn hangs() {
    let _deadline = deadline();
    while env::var_os(CHILD).is_some() {
        thread::park();
    }
}

#[test]
#[ignore = "hangs: a part of a test below"]
fn hangs_in_a_child() {
    let _deadline = deadline();
    if env::var_os(CHILD).is_some() {
        Command::new("sleep").arg("1000000").status().unwrap();
    }
}

#[test]
#[ignore = "a part of a test below"]
fn ends() {
    drop(deadline());
    let _deadline = deadline();
}

#[test]
fn a_test_that_hangs_is_named_and_ended_with_its_children() {
    let _deadline = deadline();
    for name in ["hangs", "hangs_in_a_child"] {
        let (aborted, text) = child(name, "0.2");
        assert!(aborted && text.contains(&format!("the test {name} hangs")), "{text}");
        assert!(text.contains("not ended within 0.2 seconds") && text.contains("deadline.rs"), "{text}");
    }
}

#[test]
fn a_test_that_ends_is_not_disturbed() {
    let _deadline = deadline();
    let (aborted, text) = child("ends", "60");
    assert!(!aborted && text.is_empty(), "{text}");
}

#[test]
fn a_wrong_number_of_seconds_is_named() {
    let _deadline = deadline();
    let mut test = Command::new(env::current_exe().unwrap());
    test.args(["--exact", "ends", "--ignored"]).env("ANABRANCH_TEST_SECONDS", "-1");
    let output = test.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && text.contains("ANABRANCH_TEST_SECONDS is \"-1\""), "{text}");
}
