//! Frames are read back as they were written: at any time, in every mode, by this crate and by the HDF5
//! library.

use anabranch_store::{
    Attr, FileOptions, QueuedWriter, Reader, Stamp, StoreError, Summary, SyncLevel, Writer,
};
use testing::deadline;

fn frame(index: u64, len: usize) -> Vec<f32> {
    (0..len).map(|i| index as f32 * 1000.0 + (i as f32).sin()).collect()
}

fn stamp(index: u64) -> Stamp {
    Stamp { step: 32 * index, time: 0.5 * index as f64 }
}

fn options(folder: &tempfile::TempDir) -> FileOptions {
    FileOptions::new(folder.path().join("out.h5")).frames(7).frame_shape(&[5, 9]).stamps(true)
}

/// Writes all frames with a plain writer.
fn write(mut writer: Writer<f32>) -> Summary {
    for i in 0..7 {
        writer.append(&frame(i, 45), stamp(i)).unwrap();
    }
    writer.finish().unwrap()
}

/// Writes all frames through a queue: four that are copied, three that are computed in place.
fn write_queued(mut writer: QueuedWriter<f32>) -> Summary {
    for i in 0..7 {
        if i % 2 == 0 {
            writer.append(&frame(i, 45), stamp(i)).unwrap();
        } else {
            let mut buffer = writer.frame().unwrap();
            buffer.copy_from_slice(&frame(i, 45));
            writer.submit(buffer, stamp(i)).unwrap();
        }
    }
    writer.finish().unwrap()
}

#[test]
fn frames_stamps_and_attributes_are_read_back() {
    let _deadline = deadline();
    for compress in [None, Some(1), Some(9)] {
        for queue in [None, Some(0), Some(1), Some(4)] {
            for sync in [SyncLevel::None, SyncLevel::End, SyncLevel::Frame] {
                let folder = tempfile::tempdir().unwrap();
                let options = options(&folder)
                    .compress(compress)
                    .sync(sync)
                    .attribute("name", "grün")
                    .attribute("feed", 0.014_f32)
                    .attribute("dt", 0.5_f64)
                    .attribute("steps", 32_u64)
                    .attribute("shift", -3_i64);
                let writer = options.create::<f32>().unwrap();
                let (summary, copied) = match queue {
                    None => (write(writer), 0),
                    Some(capacity) => (write_queued(writer.queued(capacity).unwrap()), 4),
                };
                assert!(summary.is_complete());
                assert_eq!(summary.stats.bytes, 7 * 45 * 4);
                assert_eq!(summary.stats.queue.is_some(), queue.is_some());
                if compress.is_none() {
                    assert_eq!(summary.stats.bytes_copied, copied * 45 * 4, "frames appended to a queue");
                }

                let reader = Reader::open(&summary.path).unwrap();
                assert_eq!(reader.shape(), [7, 5, 9]);
                assert_eq!(reader.element(), "f32");
                assert_eq!(reader.is_compressed(), compress.is_some());
                assert!(reader.is_complete().unwrap());
                for i in 0..7 {
                    let read = reader.read_frame::<f32>(i).unwrap();
                    assert_eq!(read.shape(), [5, 9]);
                    assert_eq!(read.as_slice().unwrap(), frame(i, 45));
                    assert_eq!(reader.stamp(i).unwrap(), Some(stamp(i)));
                }
                assert_eq!(reader.attribute("name"), Some(&Attr::from("grün")));
                assert_eq!(reader.attribute("feed"), Some(&Attr::F32(0.014)));
                assert_eq!(reader.attribute("dt"), Some(&Attr::F64(0.5)));
                assert_eq!(reader.attribute("steps"), Some(&Attr::U64(32)));
                assert_eq!(reader.attribute("shift"), Some(&Attr::I64(-3)));
                assert_eq!(reader.attributes().len(), 5);
            }
        }
    }
}

#[test]
fn the_hdf5_library_reads_the_same_frames() {
    let _deadline = deadline();
    for compress in [None, Some(6)] {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = options(&folder).compress(compress).create::<f32>().unwrap();
        let path = writer.path().to_path_buf();
        for i in 0..4 {
            writer.append(&frame(i, 45), stamp(i)).unwrap();
        }
        writer.append(&[f32::NAN; 45], stamp(4)).unwrap();
        // The file is valid before it is finished.
        let file = hdf5::File::open(&path).unwrap();
        let matrix = file.dataset("matrix").unwrap();
        assert_eq!(matrix.shape(), [7, 5, 9]);
        assert_eq!(file.dataset("stored_frames").unwrap().read_scalar::<u64>().unwrap(), 5);
        let all = matrix.read_raw::<f32>().unwrap();
        for i in 0..4 {
            assert_eq!(all[45 * i..45 * (i + 1)], frame(i as u64, 45));
        }
        assert!(all[4 * 45..5 * 45].iter().all(|x| x.is_nan()));
        assert!(all[5 * 45..].iter().all(|&x| x == 0.0));
        assert_eq!(file.dataset("step").unwrap().read_raw::<u64>().unwrap()[..5], [0, 32, 64, 96, 128]);
        assert_eq!(file.dataset("time").unwrap().read_raw::<f64>().unwrap()[..3], [0.0, 0.5, 1.0]);
        drop(writer);
    }
}

#[test]
fn a_file_without_frames_is_readable_and_a_reader_follows_its_writer() {
    let _deadline = deadline();
    for compress in [None, Some(6)] {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            options(&folder).attribute("feed", 0.5_f32).compress(compress).create::<f32>().unwrap();
        let reader = Reader::open(writer.path()).unwrap();
        assert_eq!((reader.frames(), reader.stored_frames().unwrap()), (7, 0));
        assert_eq!(reader.attribute("feed"), Some(&Attr::F32(0.5)));
        assert!(matches!(
            reader.read_frame::<f32>(0),
            Err(StoreError::NotStored { frame: 0, stored: 0, .. })
        ));

        writer.append(&frame(0, 45), stamp(0)).unwrap();
        assert_eq!(reader.stored_frames().unwrap(), 1);
        assert!(!reader.is_complete().unwrap());
        assert_eq!(reader.read_frame::<f32>(0).unwrap().as_slice().unwrap(), frame(0, 45));
    }
}

#[test]
fn elements_of_all_types_and_frames_of_all_ranks_are_read_back() {
    let _deadline = deadline();
    macro_rules! check {
        ($($t:ident)*) => {$(
            for shape in [&[][..], &[3], &[1, 1], &[2, 3, 2, 2]] {
                for compress in [None, Some(4)] {
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("out.h5");
                    let options = FileOptions::new(&path).dataset("/field").frames(2).frame_shape(shape);
                    let mut writer = options.compress(compress).create::<$t>().unwrap();
                    let data: Vec<$t> = (0..shape.iter().product::<usize>()).map(|i| i as $t + 1 as $t).collect();
                    writer.append(&data, Stamp::default()).unwrap();
                    writer.finish().unwrap();
                    let reader = Reader::open(&path).unwrap();
                    assert_eq!((reader.element(), reader.dataset()), (stringify!($t), "field"));
                    assert_eq!(reader.read_frame::<$t>(0).unwrap().as_slice().unwrap(), data);
                    assert_eq!(reader.stamp(0).unwrap(), None);
                }
            }
        )*};
    }
    check!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
}

#[test]
fn data_that_does_not_compress_is_stored_raw() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut writer =
        FileOptions::new(&path).frames(3).frame_shape(&[1000]).compress(Some(6)).create::<u32>().unwrap();
    let noise = |frame: u32| -> Vec<u32> {
        (0..1000).map(|i: u32| (i + 1000 * frame).wrapping_mul(2_654_435_761).rotate_left(i % 31)).collect()
    };
    for i in 0..3 {
        writer.append(&noise(i), Stamp::default()).unwrap();
    }
    writer.finish().unwrap();
    let read = hdf5::File::open(&path).unwrap().dataset("matrix").unwrap().read_raw::<u32>().unwrap();
    assert_eq!(read, (0..3).flat_map(noise).collect::<Vec<_>>());
    assert_eq!(Reader::open(&path).unwrap().read_frame::<u32>(2).unwrap().as_slice().unwrap(), noise(2));
}

#[test]
fn files_of_other_programs_are_readable() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.h5");
    let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let file = hdf5::File::create(&path).unwrap();
    let dataset = file.new_dataset::<f32>().shape([2, 3, 4]).chunk([1, 2, 2]).shuffle().deflate(3);
    dataset.create("anything").unwrap().write_raw(&data).unwrap();
    file.close().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.stored_frames().unwrap(), 2);
    assert_eq!(reader.read_frame::<f32>(1).unwrap().as_slice().unwrap(), &data[12..]);
    assert!(matches!(reader.read_frame::<f64>(1), Err(StoreError::Mismatch { .. })));
}

#[test]
fn a_compressed_file_that_another_program_has_rewritten_is_readable_but_not_resumed() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder).compress(Some(6));
    let mut writer = options.create::<f32>().unwrap();
    for i in 0..3 {
        writer.append(&frame(i, 45), stamp(i)).unwrap();
    }
    let path = writer.finish().unwrap().path;
    // Write every dataset anew with its contents, as h5repack does.
    let (old, new) = (path.with_extension("old"), hdf5::File::create(path.with_extension("new")).unwrap());
    let file = hdf5::File::open(&path).unwrap();
    let data = file.dataset("matrix").unwrap().read_raw::<f32>().unwrap();
    let matrix = new.new_dataset::<f32>().shape([7, 5, 9]).chunk([1, 5, 9]).deflate(6);
    matrix.create("matrix").unwrap().write_raw(&data).unwrap();
    let records = file.dataset("chunk_records").unwrap().read_raw::<u64>().unwrap();
    new.new_dataset::<u64>().shape([7]).create("chunk_records").unwrap().write_raw(&records).unwrap();
    new.new_dataset::<u64>().create("stored_frames").unwrap().write_scalar(&3_u64).unwrap();
    new.close().unwrap();
    file.close().unwrap();
    std::fs::rename(&path, old).unwrap();
    std::fs::rename(path.with_extension("new"), &path).unwrap();

    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.stored_frames().unwrap(), 3);
    assert_eq!(reader.read_frame::<f32>(2).unwrap().as_slice().unwrap(), frame(2, 45));
    let error = options.resume::<f32>(3).unwrap_err().to_string();
    assert!(error.contains("chunks of another program"), "{error}");
}

/// The space of frames is reserved in steps, not at once.
#[cfg(target_os = "linux")]
#[test]
fn a_file_with_room_for_many_frames_occupies_little_more_than_the_written_ones() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    let mebibyte = 1 << 20;
    let options = FileOptions::new(&path).frames(1000).frame_shape(&[mebibyte / 4]);
    let mut writer = options.create::<f32>().unwrap();
    for i in 0..3 {
        writer.append(&vec![i as f32; mebibyte / 4], Stamp::default()).unwrap();
    }
    let metadata = path.metadata().unwrap();
    assert!(metadata.len() > 1000 * mebibyte as u64);
    let occupied = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 / mebibyte as u64;
    assert!((3..100).contains(&occupied), "{occupied} MiB");
    writer.finish().unwrap();
    // The file that is replaced is freed by another thread, and the new one is whole.
    let mut writer = options.force(true).create::<f32>().unwrap();
    writer.append(&vec![7.0; mebibyte / 4], Stamp::default()).unwrap();
    assert_eq!(writer.finish().unwrap().stored_frames, 1);
}
