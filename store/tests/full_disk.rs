//! A disk that fills up during the run is reported, and stored frames stay: on a small file system of the
//! test's own.
#![cfg(target_os = "linux")]

use anabranch_store::{FileOptions, Reader, Stamp, StoreError};
use std::{io::Write as _, path::Path, process::Command};
use testing::deadline;

/// Set in the child: the folder of its file system.
const FOLDER: &str = "ANABRANCH_STORE_SMALL_FOLDER";
const LEN: usize = 64 * 1024;

/// The child, in a file system of 4 MB.
fn fill_the_disk(folder: &str) {
    for compress in [None, Some(1)] {
        let path = Path::new(folder).join("out.h5");
        let options = FileOptions::new(&path).frames(14).frame_shape(&[LEN]).compress(compress);
        if compress.is_none() {
            let too_many = options.clone().frames(20).create::<f32>();
            assert!(matches!(too_many, Err(StoreError::NoSpace { .. })), "{too_many:?}");
        }
        let mut writer = options.create::<f32>().unwrap().queued(2).unwrap();
        // Another file takes the room.
        let hog = Path::new(folder).join("hog");
        std::fs::write(&hog, vec![0; 1 << 20]).unwrap();
        let noise = |k: u32| -> Vec<f32> {
            (0..LEN as u32).map(|i| f32::from_bits((i * 14 + k).wrapping_mul(2_654_435_761) >> 2)).collect()
        };
        let error = (0..14).find_map(|k| writer.append(&noise(k), Stamp::default()).err());
        let error = error.or_else(|| writer.finish().err()).expect("the disk is full");
        let failed = error.frame().expect("a frame failed");
        let text = error.to_string();
        assert!(text.contains("No space left on device") && text.contains("make room"), "{text}");

        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.stored_frames().unwrap(), failed);
        assert!(failed >= 8, "{failed} frames");
        for k in 0..failed {
            assert!(reader.read_frame::<f32>(k).unwrap().as_slice().unwrap() == noise(k as u32));
        }
        std::fs::remove_file(hog).unwrap();
        if compress.is_none() {
            let mut writer = options.resume::<f32>(failed).unwrap();
            for k in failed..14 {
                writer.append(&noise(k as u32), Stamp::default()).unwrap();
            }
            assert!(writer.finish().unwrap().is_complete());
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_disk_that_fills_up_is_reported_and_keeps_what_was_stored() {
    let _deadline = deadline();
    if let Ok(folder) = std::env::var(FOLDER) {
        return fill_the_disk(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    // A mount that only the child sees. It needs no root where user namespaces are allowed.
    let small = |then: &str| {
        let script = format!("mount -t tmpfs -o size=4m none \"$1\" || exit 99; {then}");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script, "sh"]).arg(folder.path()).arg(&program);
        command.env(FOLDER, folder.path()).output()
    };
    if !small("true").is_ok_and(|out| out.status.success()) {
        // Not captured by the test harness, so that `./check` lists it.
        let _ = writeln!(std::io::stderr(), "skipped: no small file system can be mounted here");
        return;
    }
    let test = "a_disk_that_fills_up_is_reported_and_keeps_what_was_stored";
    let out = small(&format!("exec \"$2\" {test} --exact --test-threads=1 --nocapture")).unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}
