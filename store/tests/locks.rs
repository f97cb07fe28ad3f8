//! A file has one writer at a time, and success is reported only for the file that was written.
#![cfg(unix)]

use anabranch_store::{FileOptions, Holder, Reader, Stamp, StoreError, WriteLock, Writer};
use std::{fs, path::Path};
use testing::deadline;

fn options(path: &Path) -> FileOptions {
    FileOptions::new(path).frames(4).frame_shape(&[3, 5])
}

fn append(writer: &mut Writer<f32>, frames: u64) {
    for _ in 0..frames {
        writer.append(&[writer.next_frame() as f32; 15], Stamp::default()).unwrap();
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn assert_busy(result: Result<Writer<f32>, StoreError>, process: u32) {
    let error = result.expect_err("the file has two writers");
    let text = error.to_string();
    let StoreError::Busy { holder: Some(Holder { process: holder, host }), .. } = error else {
        panic!("{error}")
    };
    assert_eq!(holder, process);
    for part in ["out.h5 is being written by process", &process.to_string(), &host, "wait until it ends"] {
        assert!(!part.is_empty() && text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn a_second_writer_in_the_process_is_refused_until_the_first_one_ends() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let this = std::process::id();
    let mut writer = options(&path).create::<f32>().unwrap();
    append(&mut writer, 2);
    assert_busy(options(&path).create(), this);
    assert_busy(options(&path).force(true).create(), this);
    assert_busy(options(&path).resume(2), this);
    let link = folder.path().join("link.h5");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(options(&link).resume::<f32>(2), Err(StoreError::Busy { .. })));
    fs::remove_file(link).unwrap();
    // A queue keeps the lock.
    let writer = writer.queued(1).unwrap();
    assert_busy(options(&path).resume(2), this);
    drop(writer);

    let writer = options(&path).resume::<f32>(2).unwrap();
    assert_busy(options(&path).resume(2), this);
    writer.finish().unwrap();
    options(&path).force(true).create::<f32>().unwrap().finish().unwrap();
    assert_eq!(names(folder.path()), ["out.h5"]);
}

#[test]
fn of_many_writers_each_one_has_its_own_file_or_is_refused() {
    let _deadline = deadline();
    for force in [false, true] {
        for threads in [1, 2, 3, 4, 8] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out.h5");
            let write = || {
                let mut writer = options(&path).force(force).create::<f32>()?;
                append(&mut writer, 4);
                writer.finish()
            };
            let results: Vec<_> = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            let written = results.iter().filter(|result| result.is_ok()).count();
            assert!(if force { written >= 1 } else { written == 1 }, "{results:?}");
            for error in results.into_iter().filter_map(Result::err) {
                let refused = match error {
                    StoreError::Busy { .. } => true,
                    StoreError::Exists { .. } => !force,
                    _ => false,
                };
                assert!(refused, "{error}");
            }
            assert!(Reader::open(&path).unwrap().is_complete().unwrap());
            assert_eq!(names(folder.path()), ["out.h5"]);
        }
    }
}

#[test]
fn no_success_is_reported_for_a_file_that_is_gone_or_replaced() {
    let _deadline = deadline();
    let remove: fn(&Path) = |path| fs::remove_file(path).unwrap();
    let rename: fn(&Path) = |path| fs::rename(path, path.with_extension("old")).unwrap();
    let replace: fn(&Path) = |path| {
        fs::copy(path, path.with_extension("new")).unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    };
    for disturb in [remove, rename, replace] {
        for queued in [false, true] {
            for resumed in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("out.h5");
                let mut writer = options(&path).create::<f32>().unwrap();
                if resumed {
                    append(&mut writer, 1);
                    writer.finish().unwrap();
                    writer = options(&path).resume(1).unwrap();
                }
                disturb(&path);
                let rest = writer.frames() - writer.next_frame();
                append(&mut writer, rest);
                let finished = if queued { writer.queued(1).unwrap().finish() } else { writer.finish() };
                let error = finished.unwrap_err();
                assert!(matches!(error, StoreError::Displaced { stored: 4, .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains("out.h5 is no longer the file that was written"), "{text}");
            }
        }
    }
}

/// Writes the bytes of a file into another one, as `cp` does.
fn copy_into(from: &Path, to: &Path) {
    fs::write(to, fs::read(from).unwrap()).unwrap();
}

#[test]
fn no_success_is_reported_for_a_file_that_another_program_has_overwritten() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("out.h5"), folder.path().join("other.h5"));
    let empty: fn(&Path) = |path| fs::write(path, "").unwrap();
    let text: fn(&Path) = |path| fs::write(path, vec![b'x'; 1 << 20]).unwrap();
    // A file of the same layout with another parameter, and as many frames.
    let same: fn(&Path) = |path| copy_into(&path.with_file_name("other.h5"), path);
    for compress in [None, Some(1)] {
        for (before_the_last, disturb) in
            [(true, empty), (false, empty), (true, text), (false, text), (true, same), (false, same)]
        {
            let of = |path: &Path, feed: f32| {
                options(path).attribute("feed", feed).stamps(true).compress(compress).force(true)
            };
            let mut writer = of(&other, 0.25).create::<f32>().unwrap();
            append(&mut writer, 4);
            writer.finish().unwrap();
            let mut writer = of(&path, 0.5).create::<f32>().unwrap();
            append(&mut writer, if before_the_last { 3 } else { 4 });
            disturb(&path);
            // A compressed file notices some of it when the next frame is stored.
            let rest = writer.frames() - writer.next_frame();
            let stored = (0..rest).try_for_each(|_| writer.append(&[9.0; 15], Stamp::default()));
            let error = match stored {
                Ok(()) => writer.finish().unwrap_err(),
                Err(error) => error,
            };
            let text = error.to_string();
            match error {
                StoreError::Overwritten { stored: 4, .. } => {
                    assert!(text.contains("out.h5 was overwritten by another program"), "{text}");
                }
                StoreError::Write { .. } => {
                    assert!(compress.is_some() && before_the_last, "{text}");
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_file_is_replaced_under_its_lock() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("out.h5"), folder.path().join("new.h5"));
    assert!(matches!(WriteLock::acquire(&path), Err(StoreError::Io { action: "open", .. })));
    options(&path).create::<f32>().unwrap().finish().unwrap();
    let link = folder.path().join("link.h5");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let lock = WriteLock::acquire(&link).unwrap();
    assert!(matches!(lock.replace(&new), Err(StoreError::Io { action: "replace", .. })));
    let mut writer = options(&new).create::<f32>().unwrap();
    append(&mut writer, 4);
    writer.finish().unwrap();
    lock.replace(&new).unwrap();
    // The new file has its name, and there is no moment in which another writer could have opened the old
    // one.
    assert_eq!(Reader::open(&link).unwrap().stored_frames().unwrap(), 4);
    assert_busy(options(&path).resume(0), std::process::id());
    drop(lock);
    assert!(options(&path).resume::<f32>(4).unwrap().finish().unwrap().is_complete());
    assert_eq!(names(folder.path()), ["link.h5", "out.h5"]);
}
