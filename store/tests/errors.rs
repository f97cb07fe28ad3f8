//! What is refused, and in which words.

use std::path::Path;

use anabranch_store::{FileOptions, FrameReader, Stamp, StoreError, available_bytes};

fn options(path: &Path) -> FileOptions {
    FileOptions::new(path).frames(4).frame_shape(&[3, 5])
}

fn write(options: &FileOptions, frames: u64) {
    let mut writer = options.create::<f32>().unwrap();
    for i in 0..frames {
        writer.append(&[i as f32; 15], Stamp::default()).unwrap();
    }
    writer.finish().unwrap();
}

/// Asserts that a message has all these parts.
fn says(error: &StoreError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

fn files_in(folder: &Path) -> usize {
    folder.read_dir().unwrap().count()
}

#[test]
fn an_existing_file_is_replaced_only_when_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    write(&options(&path), 2);
    let error = options(&path).create::<f32>().unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }));
    says(&error, &["out.h5 exists already", "choose another path or allow overwriting"]);
    assert_eq!(FrameReader::open(&path).unwrap().stored_frames().unwrap(), 2);

    write(&options(&path).force(true), 1);
    assert_eq!(FrameReader::open(&path).unwrap().stored_frames().unwrap(), 1);
    assert_eq!(files_in(folder.path()), 1);
}

#[test]
fn an_old_file_stays_when_the_new_one_cannot_be_laid_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    write(&options(&path), 2);
    let twice = options(&path).force(true).attribute("bad\0name", 1.0);
    assert!(matches!(twice.create::<f32>(), Err(StoreError::Hdf5 { .. })));
    assert_eq!(FrameReader::open(&path).unwrap().stored_frames().unwrap(), 2);
    assert_eq!(files_in(folder.path()), 1);
}

#[test]
fn a_path_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = options(folder.path()).force(true).create::<f32>().unwrap_err();
    says(&error, &["is not a regular file"]);

    let error = options(&folder.path().join("no/such/out.h5")).create::<f32>().unwrap_err();
    says(&error, &["the folder", "no/such does not exist", "create it"]);

    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = options(&folder.path().join("file/out.h5")).create::<f32>().unwrap_err();
    says(&error, &["the folder", "does not exist"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_folder_is_named() {
    // A file system where even root may create nothing.
    let error = options(Path::new("/sys/out.h5")).create::<f32>().unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "create", .. }), "{error:?}");
    says(&error, &["cannot create /sys/out.h5", "os error"]);
}

#[test]
fn a_file_larger_than_the_free_space_is_refused_with_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let large = options(&path).frames(1 << 40);
    let needed = large.required_bytes::<f32>().unwrap();
    assert!(needed > (1 << 40) * 60 && available_bytes(&path).unwrap() < needed);
    match large.create::<f32>().unwrap_err() {
        StoreError::NoSpace { needed: n, available, path: p } => {
            assert_eq!((n, p), (needed, path));
            assert!(available > 0);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files_in(folder.path()), 0);
}

#[test]
fn the_free_space_of_a_path_that_does_not_exist_is_that_of_the_folder_above() {
    let folder = tempfile::tempdir().unwrap();
    assert!(available_bytes(folder.path().join("not/yet/there.h5")).unwrap() > 0);
    assert!(available_bytes("bare.h5").unwrap() > 0);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    for (options, part) in [
        (options(&path).frames(0), "at least one frame"),
        (options(&path).frame_shape(&[3, 0]), "[3, 0]"),
        (options(&path).frame_shape(&[usize::MAX, 2]), "more than a file can hold"),
        (options(&path).frame_shape(&[1; 32]), "1 to 31"),
        (options(&path).compress(Some(0)), "level 0"),
        (options(&path).compress(Some(10)), "1 (fast) to 9 (small)"),
        (options(&path).dataset("step"), "\"step\" cannot be"),
        (options(&path).dataset("/"), "cannot be the dataset's name"),
    ] {
        says(&options.create::<f32>().unwrap_err(), &[part]);
    }
    assert_eq!(files_in(folder.path()), 0);
}

#[test]
fn frames_of_a_wrong_length_and_frames_too_many_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = options(&folder.path().join("out.h5")).create::<f32>().unwrap();
    let error = writer.append(&[0.0; 14], Stamp::default()).unwrap_err();
    says(&error, &["shape [3, 5] has 15 elements, not 14"]);
    assert!(matches!(writer.store(&[0.0; 16], Stamp::default()), Err(StoreError::WrongLength { .. })));
    // A refused frame does no harm.
    for _ in 0..4 {
        writer.append(&[0.0; 15], Stamp::default()).unwrap();
    }
    let error = writer.append(&[0.0; 15], Stamp::default()).unwrap_err();
    says(&error, &["created for 4 frames"]);
    assert!(writer.finish().unwrap().is_complete());
}

#[test]
fn a_file_is_resumed_where_it_ended_and_the_count_never_goes_down() {
    for compress in [None, Some(6)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let options = options(&path).compress(compress).stamps(true).attribute("feed", 0.5_f32);
        write(&options, 3);

        let mut writer = options.resume::<f32>(1).unwrap();
        assert_eq!((writer.next_frame(), writer.stored_frames()), (1, 3));
        writer.store(&[10.0; 15], Stamp { step: 10, time: 1.0 }).unwrap();
        assert_eq!(writer.stored_frames(), 3);
        assert_eq!(writer.finish().unwrap().stored_frames, 3);

        let mut writer = options.resume::<f32>(3).unwrap();
        writer.append(&[30.0; 15], Stamp::default()).unwrap();
        assert!(writer.finish().unwrap().is_complete());
        let reader = FrameReader::open(&path).unwrap();
        let values: Vec<f32> = (0..4).map(|i| reader.read_frame::<f32>(i).unwrap()[[2, 4]]).collect();
        assert_eq!(values, [0.0, 10.0, 2.0, 30.0]);
        assert_eq!(reader.stamp(1).unwrap(), Some(Stamp { step: 10, time: 1.0 }));
        assert_eq!(options.resume::<f32>(4).unwrap().finish().unwrap().stored_frames, 4);
    }
}

#[test]
fn a_file_that_differs_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = options(&path).attribute("feed", 0.5_f32);
    write(&options, 2);
    for (other, parts) in [
        (options.clone().attribute("feed", 0.25_f32), ["attribute \"feed\" is 0.5, expected 0.25"; 1]),
        (options.clone().attribute("kill", 0.25_f32), ["attribute \"kill\" is absent, expected 0.25"]),
        (options.clone().frames(5), ["the number of frames is 4, expected 5"]),
        (options.clone().frame_shape(&[5, 3]), ["the frame shape is [3, 5], expected [5, 3]"]),
        (options.clone().stamps(true), ["/step and /time is absent, expected present"]),
        (options.clone().dataset("other"), ["no dataset /other"]),
    ] {
        says(&other.resume::<f32>(0).unwrap_err(), &parts);
    }
    says(&options.resume::<f64>(0).unwrap_err(), &["element type is f32, expected f64"]);
    says(&options.resume::<f32>(3).unwrap_err(), &["frame 2", "is not stored: 2 of 4 frames are"]);
}

#[test]
fn what_is_not_a_file_of_frames_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    says(&FrameReader::open(&path).unwrap_err(), &["cannot open", "x.h5", "os error"]);
    says(&FrameReader::open(folder.path()).unwrap_err(), &["is not a regular file"]);
    std::fs::write(&path, "something else").unwrap();
    says(&FrameReader::open(&path).unwrap_err(), &["x.h5", "it is not an HDF5 file"]);
    says(&options(&path).resume::<f32>(0).unwrap_err(), &["it is not an HDF5 file"]);
    hdf5::File::create(&path).unwrap().close().unwrap();
    says(&FrameReader::open(&path).unwrap_err(), &["it has no dataset of frames"]);

    write(&options(&path).force(true), 4);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    says(&FrameReader::open(&path).unwrap_err(), &["HDF5 cannot open"]);
}
