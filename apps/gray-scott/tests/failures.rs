//! Runs that fail: what they have done is reported, and no failure hides another one.

mod common;

use anabranch_store::Reader;
use common::{fail, folder};
use gray_scott::files::checkpoint;
use serde_json::Value;
use std::{fs, path::Path};

fn json(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("stats.json")).unwrap()).unwrap()
}

/// The line with the error.
fn error(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("error: ")).unwrap()
}

/// A name that a file can have, and its checkpoint cannot: the name of the file that becomes the checkpoint
/// is more than 255 bytes long.
#[cfg(unix)]
fn long_name() -> String {
    format!("{}.h5", "x".repeat(231))
}

#[cfg(unix)]
#[test]
fn a_checkpoint_that_cannot_be_saved_does_not_hide_the_value_that_is_not_finite() {
    let _deadline = testing::deadline();
    let folder = folder();
    let name = long_name();
    let args = "-r 30 -c 40 -n 500 -e 3 --dt 20 --checkpoint-every 0 --stats-json stats.json";
    let text = fail(folder.path(), &format!("simulate {args} -o {name}"), 1);
    let stored = Reader::open(folder.path().join(&name)).unwrap().stored_frames().unwrap();
    assert!(stored > 0, "{text}");
    let place = format!("after {} steps (frame {stored})", 3 * (stored + 1));
    for part in [
        " is not finite in row ",
        &place,
        &format!("with {stored} frames stored;"),
        "; besides, cannot create ",
        ".h5.checkpoint: File name too long",
    ] {
        assert!(error(&text).contains(part), "{part:?} is not in {text}");
    }
    let json = json(folder.path());
    assert_eq!((&json["frames"], &json["stored_frames"]), (&stored.into(), &stored.into()));
    assert!(json["error"].as_str().unwrap().contains(" is not finite in row "), "{json}");
}

#[cfg(unix)]
#[test]
fn a_run_that_fails_says_what_it_has_done() {
    let _deadline = testing::deadline();
    let folder = folder();
    let name = long_name();
    let args = "-r 30 -c 40 -n 9 -e 3 --checkpoint-every 2 --stats-json stats.json";
    for threads in [1, 3] {
        let text = fail(folder.path(), &format!("simulate {args} --force -j {threads} -o {name}"), 1);
        assert!(error(&text).contains(".h5.checkpoint: File name too long"), "{text}");
        assert!(text.contains("\n2 frames in ") && text.contains(" Stored for "), "{text}");
        assert_eq!(Reader::open(folder.path().join(&name)).unwrap().stored_frames().unwrap(), 2);
        let json = json(folder.path());
        assert_eq!((&json["frames"], &json["stored_frames"]), (&2.into(), &2.into()));
        assert_eq!(
            (&json["bytes_written"], &json["interrupted"]),
            (&(2 * 30 * 40 * 4).into(), &false.into())
        );
        assert!(
            json["steps"].as_u64().unwrap() >= 6 && json["seconds_total"].as_f64().unwrap() > 0.0,
            "{json}"
        );
        assert!(json["error"].as_str().unwrap().contains("File name too long"), "{json}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn statistics_that_cannot_be_written_hide_no_failure_and_no_verdict() {
    let _deadline = testing::deadline();
    let folder = folder();
    let args = "simulate -r 30 -c 40 -e 3 --force --stats-json /dev/full";
    let text = fail(folder.path(), &format!("{args} -n 500 --dt 20"), 1);
    for part in [" is not finite in row ", " holds the state after ", "; besides, cannot write /dev/full: "] {
        assert!(error(&text).contains(part), "{part:?} is not in {text}");
    }
    let saved = checkpoint::load(&checkpoint::path_of(&folder.path().join("output.h5"))).unwrap().unwrap();
    assert!(saved.step > 0);
    let text = fail(folder.path(), &format!("{args} -n 2"), 1);
    assert!(error(&text).starts_with("error: cannot write /dev/full: "), "{text}");
    assert!(text.contains("\n2 frames in "), "{text}");
}
