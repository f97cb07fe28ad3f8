//! Frames whose parts several processes write.

use anabranch_store::{Announcement, FileOptions, PartWriter, Reader, Stamp, StoreError, SyncLevel, Writer};
use std::{fs, path::Path};

fn options(path: &Path) -> FileOptions {
    FileOptions::new(path).frames(3).frame_shape(&[5, 4]).attribute("dt", 0.5_f32).stamps(true)
}

fn stamp(step: u64) -> Stamp {
    Stamp { step, time: step as f64 / 2.0 }
}

fn frame(number: u64) -> Vec<f32> {
    (0..20).map(|i| (100 * number + i) as f32).collect()
}

/// Opens a part for what the writer announces.
fn part(writer: &Writer<f32>, path: &Path) -> Result<PartWriter<f32>, StoreError> {
    // As in another process.
    let words = writer.announce().unwrap().to_words();
    PartWriter::open(path, &Announcement::from_words(words).unwrap())
}

#[test]
fn frames_in_parts_give_the_file_of_whole_frames() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (whole, in_parts) = (folder.path().join("whole.h5"), folder.path().join("parts.h5"));
    for sync in [SyncLevel::None, SyncLevel::End, SyncLevel::Frame] {
        let mut writer = options(&whole).sync(sync).force(true).create::<f32>().unwrap();
        (0..3).for_each(|i| writer.append(&frame(i), stamp(i)).unwrap());
        writer.finish().unwrap();

        let mut writer = options(&in_parts).sync(sync).force(true).create::<f32>().unwrap();
        let mut parts = [part(&writer, &in_parts).unwrap(), part(&writer, &in_parts).unwrap()];
        for i in 0..3 {
            // In any order.
            parts[1].write(i, 12, &frame(i)[12..]).unwrap();
            assert_eq!(Reader::open(&in_parts).unwrap().stored_frames().unwrap(), i);
            parts[0].write(i, 0, &frame(i)[..12]).unwrap();
            writer.append_parts(stamp(i)).unwrap();
            assert_eq!(Reader::open(&in_parts).unwrap().stored_frames().unwrap(), i + 1);
        }
        parts.into_iter().for_each(|part| part.finish().unwrap());
        let summary = writer.finish().unwrap();
        assert!(summary.is_complete() && summary.stats.bytes == 3 * 80);
        assert!(fs::read(&whole).unwrap() == fs::read(&in_parts).unwrap(), "{sync:?}");
    }
}

#[test]
fn a_resumed_file_is_written_in_parts_too() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut writer = options(&path).create::<f32>().unwrap();
    writer.append(&frame(0), stamp(0)).unwrap();
    writer.finish().unwrap();
    let mut writer = options(&path).resume::<f32>(1).unwrap();
    part(&writer, &path).unwrap().write(1, 0, &frame(1)).unwrap();
    writer.append_parts(stamp(1)).unwrap();
    writer.finish().unwrap();
    assert_eq!(Reader::open(&path).unwrap().read_frame::<f32>(1).unwrap().as_slice(), Some(&frame(1)[..]));
}

#[test]
fn only_the_file_that_is_being_written_is_opened() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("out.h5"), folder.path().join("other.h5"));
    let refused = |writer: &Writer<f32>, path: &Path| match part(writer, path).unwrap_err() {
        StoreError::NotAnnounced { reason, .. } => reason,
        other => panic!("{other}"),
    };
    let writer = options(&path).create::<f32>().unwrap();
    part(&writer, &path).unwrap();
    assert!(refused(&writer, &other).contains("finds no file"));
    // A file of the same layout that no process writes, and one that is written and differs.
    options(&other).create::<f32>().unwrap().finish().unwrap();
    assert!(refused(&writer, &other).contains("no process is writing it"));
    let different = options(&other).attribute("dt", 0.25_f32).force(true).create::<f32>().unwrap();
    assert!(refused(&writer, &other).contains("differ"));
    drop(different);
    fs::write(&other, "short").unwrap();
    fs::write(folder.path().join(".other.h5.lock"), "1 another-host\n").unwrap();
    assert!(refused(&writer, &other).contains("is being written by process 1 on host another-host"));
    // The announced file, after its writer has ended.
    let announcement = writer.announce().unwrap();
    writer.finish().unwrap();
    let error = PartWriter::<f32>::open(&path, &announcement).unwrap_err();
    assert!(matches!(error, StoreError::NotAnnounced { .. }), "{error}");
    let error = PartWriter::<f64>::open(&path, &announcement).unwrap_err().to_string();
    assert!(error.contains("the element type is f32, expected f64"), "{error}");
}

#[test]
fn a_part_stays_within_its_frame_and_the_frame_within_the_file() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut writer = options(&path).create::<f32>().unwrap();
    let mut part = part(&writer, &path).unwrap();
    assert_eq!(part.frame_len(), 20);
    let error = part.write(0, 15, &[1.0; 6]).unwrap_err().to_string();
    assert!(error.contains("elements 15 to 21 are not all in a frame"), "{error}");
    let error = part.write(3, 0, &[1.0]).unwrap_err();
    assert!(matches!(error, StoreError::TooManyFrames { frames: 3, .. }), "{error}");
    (0..3).for_each(|i| writer.append_parts(stamp(i)).unwrap());
    assert!(matches!(writer.append_parts(stamp(3)), Err(StoreError::TooManyFrames { .. })));
}

#[test]
fn a_compressed_file_has_no_parts() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = options(&folder.path().join("out.h5")).compress(Some(1)).create::<f32>().unwrap();
    assert_eq!(writer.announce(), None);
    let error = writer.append_parts(stamp(0)).unwrap_err().to_string();
    assert!(error.contains("is compressed, so its frames have no parts"), "{error}");
    writer.append(&frame(0), stamp(0)).unwrap();
}
