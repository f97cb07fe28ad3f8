//! Failures that no call has returned to the program are printed when their runtime or group is dropped, and
//! errors are printed as messages. The programs run as children of this test program, which looks at what
//! they print.

mod common;

use anabranch::{Error, prelude::*};
use common::{Gate, runtime};
use std::{env, fmt, process::Command};
use testing::deadline;

const CHILD: &str = "ANABRANCH_TEST_CHILD";

/// Runs `program` in a child process, which is this test again. Returns what it prints to standard error; in
/// the child, `None`.
fn printed(test: &str, program: fn()) -> Option<String> {
    if env::var_os(CHILD).is_some() {
        program();
        return None;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stderr).unwrap();
    assert!(child.status.success(), "{text}");
    Some(text)
}

#[test]
fn a_dropped_runtime_prints_its_failures() {
    let _deadline = deadline();
    let text = printed("a_dropped_runtime_prints_its_failures", || {
        let rt = runtime(2);
        rt.task("save").once().host(|()| Err::<(), _>("the disk is full")).unwrap();
    });
    let Some(text) = text else { return };
    assert!(text.contains("the runtime was dropped"), "{text}");
    assert!(text.contains("task \"save\"") && text.contains("the disk is full"), "{text}");
    assert!(text.contains("call `wait` or `check` before the drop"), "{text}");
}

/// Before its task has failed or after it: the failure is printed once.
#[test]
fn a_dropped_group_prints_its_failures() {
    let _deadline = deadline();
    let text = printed("a_dropped_group_prints_its_failures", || {
        let rt = runtime(2);
        let (early, late, gate) = (rt.group("early"), rt.group("late"), Gate::default());
        let closed = gate.clone();
        let blocked = early.task("blocked").once().host(move |()| {
            closed.pass();
            Err::<(), _>("no luck")
        });
        drop((early, blocked.unwrap()));
        gate.open();
        late.task("free").once().host(|()| Err::<(), _>("no luck")).unwrap();
        rt.wait().unwrap();
        drop(late);
        rt.wait().unwrap();
    });
    let Some(text) = text else { return };
    assert_eq!(text.matches("was dropped").count(), 2, "{text}");
    assert!(text.contains("the task group \"early\"") && text.contains("task \"blocked\""), "{text}");
    assert!(text.contains("the task group \"late\"") && text.contains("task \"free\""), "{text}");
}

/// The callback is called when the program has dropped the group, and the group has no task in flight any
/// more.
#[test]
fn a_panic_in_a_callback_of_a_dropped_group_is_printed() {
    let _deadline = deadline();
    let text = printed("a_panic_in_a_callback_of_a_dropped_group_is_printed", || {
        let (rt, gate) = (runtime(2), Gate::default());
        let group = rt.group("dropped");
        let closed = gate.clone();
        group.task("last").once().blocking().host(move |()| closed.pass()).unwrap();
        group.on_done(|_| panic!("too late"));
        drop(group);
        gate.open();
        rt.wait().unwrap();
    });
    let Some(text) = text else { return };
    assert!(text.contains("the task group \"dropped\" was dropped"), "{text}");
    assert!(text.contains("its callback panicked: too late"), "{text}");
}

#[test]
fn a_failure_that_a_call_has_returned_is_not_printed() {
    let _deadline = deadline();
    let text = printed("a_failure_that_a_call_has_returned_is_not_printed", || {
        let fails =
            |task: anabranch::interface::NewTask| task.once().host(|()| Err::<(), _>("no luck")).unwrap();
        for i in 0..7 {
            let rt = runtime(2);
            let group = rt.group("group");
            let u = rt.buffer::<u8, 1>([1]);
            let result = match i {
                0 => {
                    fails(rt.task("task"));
                    rt.wait()
                }
                1 => {
                    fails(group.task("task"));
                    rt.wait().unwrap();
                    group.check()
                }
                2 => fails(rt.task("task")).wait(),
                3 => {
                    fails(group.task("task"));
                    group.wait()
                }
                4 => fails(group.task("task")).wait(),
                5 => {
                    let write = group.task("task").once().write(&u, all());
                    write.host(|(_u,)| Err::<(), _>("no luck")).unwrap();
                    rt.fence(&u).unwrap().wait().map(drop)
                }
                _ => {
                    // Another group reports it, because a task of its own was skipped.
                    let write = group.task("task").once().write(&u, all());
                    write.host(|(_u,)| Err::<(), _>("no luck")).unwrap();
                    rt.task("skipped").once().read(&u, all()).host(|(_u,)| ()).unwrap();
                    rt.wait()
                }
            };
            assert!(matches!(result, Err(Error::Failed(_))), "{i}: {result:?}");
        }
    });
    let Some(text) = text else { return };
    assert!(!text.contains("anabranch:"), "{text}");
}

#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unprintable {}

/// The message of an error is the program's code. The process goes on if it panics.
#[test]
fn an_error_whose_message_panics_does_no_harm() {
    let _deadline = deadline();
    let text = printed("an_error_whose_message_panics_does_no_harm", || {
        for grouped in [false, true] {
            let rt = runtime(2);
            let group = rt.group("group");
            let task = if grouped { group.task("task") } else { rt.task("task") };
            task.once().host(|()| Err::<(), _>(Unprintable)).unwrap();
        }
        eprintln!("still here");
    });
    let Some(text) = text else { return };
    assert!(text.contains("still here"), "{text}");
}

#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot save")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A `main` that returns an error prints it with `Debug`.
#[test]
fn errors_are_printed_as_messages() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer::<u8, 1>([4]).named("u");
    let refused = rt.task("use").once().read(&u, all()).host(|(_u,)| ()).unwrap_err();
    rt.task("load").once().write(&u, all()).host(|(_u,)| Err("no such file")).unwrap();
    let skipped = rt.task("use").once().read(&u, all()).host(|(_u,)| ()).unwrap().wait().unwrap_err();
    let failed = rt.wait().unwrap_err();
    for error in [refused, skipped, failed] {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(!format!("{error:?}").contains(" {"), "{error:?}");
    }
    let outer = || Outer(std::io::Error::other("the disk is full"));
    let error = rt.task("save").once().host(move |()| Err::<(), _>(outer())).unwrap().wait().unwrap_err();
    assert_eq!(format!("{error:?}"), format!("{error}: the disk is full"));
    assert!(rt.wait().is_err());
}
