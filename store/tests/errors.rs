//! Mistakes and obstacles are refused with an error that names them, and files stay as they were.

use anabranch_store::{FileOptions, Reader, Stamp, StoreError, available_bytes};
use std::path::Path;
use testing::deadline;

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

/// Asserts that the message has all these parts.
fn assert_says(error: &StoreError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

fn files_in(folder: &Path) -> usize {
    folder.read_dir().unwrap().count()
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    write(&options(&path), 2);
    let error = options(&path).create::<f32>().unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }));
    assert_says(&error, &["out.h5 exists already", "choose another path or allow overwriting"]);
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 2);

    write(&options(&path).force(true), 1);
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 1);
    assert_eq!(files_in(folder.path()), 1);
}

#[test]
fn an_old_file_stays_when_the_new_one_cannot_be_laid_out() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    write(&options(&path), 2);
    let twice = options(&path).force(true).attribute("bad\0name", 1.0);
    assert!(matches!(twice.create::<f32>(), Err(StoreError::Hdf5 { .. })));
    assert_eq!(Reader::open(&path).unwrap().stored_frames().unwrap(), 2);
    assert_eq!(files_in(folder.path()), 1);
}

#[test]
fn a_path_that_cannot_be_created_is_named() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let error = options(folder.path()).force(true).create::<f32>().unwrap_err();
    assert_says(&error, &["is not a regular file"]);

    let error = options(&folder.path().join("no/such/out.h5")).create::<f32>().unwrap_err();
    assert_says(&error, &["the folder", "no/such does not exist", "create it"]);

    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = options(&folder.path().join("file/out.h5")).create::<f32>().unwrap_err();
    assert_says(&error, &["the folder", "does not exist"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_folder_is_named() {
    let _deadline = deadline();
    // A file system where even root may create nothing.
    let error = options(Path::new("/sys/out.h5")).create::<f32>().unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "create", .. }), "{error:?}");
    assert_says(&error, &["cannot create /sys/out.h5", "os error"]);
}

#[cfg(unix)]
#[test]
fn a_file_larger_than_the_free_space_is_refused_with_the_figures() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let large = options(&path).frames(1 << 40);
    let needed = large.required_bytes::<f32>().unwrap();
    assert!(needed > (1 << 40) * 60 && available_bytes(&path).unwrap().unwrap() < needed);
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
fn free_space_is_that_of_the_nearest_existing_folder() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    for path in [&folder.path().join("not/yet/there.h5"), Path::new("bare.h5")] {
        assert_eq!(available_bytes(path).unwrap().is_some_and(|bytes| bytes > 0), cfg!(unix), "{path:?}");
    }
}

#[test]
fn contradictory_options_are_refused() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    for (options, part) in [
        (FileOptions::new(&path), "at least one frame; give the number of frames"),
        (FileOptions::new(&path).frames(4), "needs the shape of its frames; give it"),
        (options(&path).frames(0), "at least one frame"),
        (options(&path).frame_shape(&[3, 0]), "[3, 0]"),
        (options(&path).frame_shape(&[usize::MAX, 2]), "more than a file can hold"),
        (options(&path).frame_shape(&[1; 32]), "at most 31"),
        (options(&path).compress(Some(0)), "level 0"),
        (options(&path).compress(Some(10)), "1 (fast) to 9 (small)"),
        (options(&path).dataset("step"), "\"step\" cannot be"),
        (options(&path).dataset("/"), "cannot be the dataset's name"),
    ] {
        assert_says(&options.create::<f32>().unwrap_err(), &[part]);
    }
    assert_eq!(files_in(folder.path()), 0);
}

#[test]
fn frames_of_a_single_number_are_asked_for() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = FileOptions::new(&path).frames(3);
    assert_eq!(options.required_bytes::<f32>(), None);
    let options = options.frame_shape(&[]);
    for compress in [None, Some(6)] {
        let mut writer = options.clone().compress(compress).force(true).create::<f64>().unwrap();
        for x in [0.5, 1.5, 2.5] {
            writer.append(&[x], Stamp::default()).unwrap();
        }
        assert!(writer.finish().unwrap().is_complete());
        let reader = Reader::open(&path).unwrap();
        assert_eq!((reader.shape(), reader.read_frame::<f64>(1).unwrap()[[]]), (&[3][..], 1.5));
    }
}

#[test]
fn a_program_that_returns_the_error_from_main_shows_its_message() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    write(&options(&path), 1);
    let errors = [
        FileOptions::new(&path).create::<f32>().unwrap_err(),
        options(&path).create::<f32>().unwrap_err(),
        options(&path).resume::<f32>(3).unwrap_err(),
        Reader::open(folder.path().join("none.h5")).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(format!("{error:#?}"), error.to_string());
    }
}

#[test]
fn a_frame_of_a_wrong_length_and_one_too_many_are_refused() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = options(&folder.path().join("out.h5")).create::<f32>().unwrap();
    let error = writer.append(&[0.0; 14], Stamp::default()).unwrap_err();
    assert_says(
        &error,
        &["out.h5 of shape [3, 5] has 15 elements, not 14", "pass a slice of one whole frame"],
    );
    assert!(matches!(writer.append(&[0.0; 16], Stamp::default()), Err(StoreError::WrongLength { .. })));
    // A refused frame does not spoil the writer.
    for _ in 0..4 {
        writer.append(&[0.0; 15], Stamp::default()).unwrap();
    }
    let error = writer.append(&[0.0; 15], Stamp::default()).unwrap_err();
    assert_says(&error, &["out.h5 was created for 4 frames", "create a file for more frames"]);
    assert!(writer.finish().unwrap().is_complete());
}

#[test]
fn a_resumed_file_goes_on_where_it_ended_and_its_count_never_goes_down() {
    let _deadline = deadline();
    for compress in [None, Some(6)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let options = options(&path).compress(compress).stamps(true).attribute("feed", 0.5_f32);
        write(&options, 3);

        let mut writer = options.resume::<f32>(1).unwrap();
        assert_eq!((writer.next_frame(), writer.stored_frames()), (1, 3));
        writer.append(&[10.0; 15], Stamp { step: 10, time: 1.0 }).unwrap();
        assert_eq!(writer.stored_frames(), 3);
        assert_eq!(writer.finish().unwrap().stored_frames, 3);

        let mut writer = options.resume::<f32>(3).unwrap();
        writer.append(&[30.0; 15], Stamp::default()).unwrap();
        assert!(writer.finish().unwrap().is_complete());
        let reader = Reader::open(&path).unwrap();
        let values: Vec<f32> = (0..4).map(|i| reader.read_frame::<f32>(i).unwrap()[[2, 4]]).collect();
        assert_eq!(values, [0.0, 10.0, 2.0, 30.0]);
        assert_eq!(reader.stamp(1).unwrap(), Some(Stamp { step: 10, time: 1.0 }));
        assert_eq!(options.resume::<f32>(4).unwrap().finish().unwrap().stored_frames, 4);
    }
}

#[test]
fn a_file_that_differs_from_the_options_is_not_resumed() {
    let _deadline = deadline();
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
        assert_says(&other.resume::<f32>(0).unwrap_err(), &parts);
    }
    let error = options.resume::<f64>(0).unwrap_err();
    assert_says(
        &error,
        &["out.h5 does not match", "element type is f32, expected f64; ask for what the file has"],
    );
    assert_says(
        &options.resume::<f32>(3).unwrap_err(),
        &[
            "frame 2",
            "is not stored: the file holds 2 of its 4 frames; read a frame before frame 2, resume from frame 2",
        ],
    );
    let empty = folder.path().join("empty.h5");
    write(&FileOptions::new(&empty).frames(1).frame_shape(&[1]), 0);
    let error = Reader::open(&empty).unwrap().read_frame::<f32>(0).unwrap_err();
    assert_says(&error, &["empty.h5 is not stored", "write frame 0 first"]);
}

#[test]
fn a_file_of_another_kind_is_refused_by_name() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    assert_says(&Reader::open(&path).unwrap_err(), &["cannot open", "x.h5", "os error"]);
    assert_says(&Reader::open(folder.path()).unwrap_err(), &["is not a regular file"]);
    std::fs::write(&path, "something else").unwrap();
    assert_says(&Reader::open(&path).unwrap_err(), &["x.h5", "it is not an HDF5 file"]);
    assert_says(&options(&path).resume::<f32>(0).unwrap_err(), &["it is not an HDF5 file"]);
    hdf5::File::create(&path).unwrap().close().unwrap();
    assert_says(&Reader::open(&path).unwrap_err(), &["it has no dataset of frames"]);

    write(&options(&path).force(true), 4);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_says(&Reader::open(&path).unwrap_err(), &["HDF5 cannot open"]);
}
