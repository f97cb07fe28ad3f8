//! The order of operations on the device, on which the promises about power failures rest.

use super::device::{Bench, FRAME, Log, Logged, Op, bench, frame, stamp};
use crate::{
    FileOptions, PartWriter, SyncLevel, Writer,
    checkpoint::{Checkpoint, save_on},
    file::{
        chunks::END_AT,
        contiguous::STEP,
        layout::FramesAt,
        system::{FileSystem, System},
    },
};
use std::path::Path;

const LEVELS: [SyncLevel; 3] = [SyncLevel::None, SyncLevel::End, SyncLevel::Frame];

/// The operations since the last call.
fn taken(log: &Log) -> Vec<Op> {
    std::mem::take(&mut log.lock())
}

fn count(log: &Log, op: Op) -> usize {
    log.lock().iter().filter(|&&other| other == op).count()
}

impl Bench {
    /// The writes of a compressed frame's stamp.
    fn stamp_ops(&self, frame: u64) -> [Op; 2] {
        let at = self.layout.stamps_at.unwrap();
        [Op::Small(at.step + 8 * frame), Op::Small(at.time + 8 * frame)]
    }

    /// The write that redirects the chunk of a compressed frame.
    fn redirection(&self, frame: u64) -> Op {
        let FramesAt::Chunked(table) = &self.layout.frames_at else { panic!("the file is compressed") };
        Op::Small(table.chunks(frame).next().unwrap().0)
    }

    /// The last length that the file got.
    fn last_length(&self) -> Op {
        let log = self.log.lock();
        *log.iter().rev().find(|op| matches!(op, Op::Length(_))).expect("the file grew or shrank")
    }
}

#[test]
fn a_file_is_synchronised_before_it_has_its_name_and_the_name_afterwards() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::new(folder.path().join("out.h5")).frames(20).frame_shape(&[8]);
    let log = Log::default();
    for compress in [None, Some(6)] {
        for level in LEVELS {
            let options = options.clone().sync(level).compress(compress).force(true);
            drop(options.create_on::<f32>(&Logged(Log::clone(&log))).unwrap());
            let created = taken(&log);
            drop(options.resume_on::<f32>(&Logged(Log::clone(&log)), 0).unwrap());
            let resumed = taken(&log);
            let (on_create, on_resume): (&[_], &[_]) = match level {
                SyncLevel::None => (&[Op::Rename], &[]),
                SyncLevel::End => (&[Op::Sync, Op::Rename, Op::SyncFolder], &[Op::SyncFolder]),
                SyncLevel::Frame => (&[Op::Sync, Op::Rename, Op::SyncFolder], &[Op::Sync, Op::SyncFolder]),
            };
            assert!(created.starts_with(on_create), "{level:?}: {created:?}");
            assert!(resumed.starts_with(on_resume), "{level:?}: {resumed:?}");
            if level == SyncLevel::None {
                assert!(!created.contains(&Op::Sync) && !resumed.contains(&Op::Sync));
            }
        }
    }
}

#[test]
fn a_checkpoint_is_synchronised_before_it_has_its_name_and_the_name_afterwards() {
    let _deadline = testing::deadline();
    let folder = tempfile::tempdir().unwrap();
    let log = Log::default();
    let checkpoint = Checkpoint { arrays: &[("u", &[2], &[1.0, 2.0])], attributes: &[] };
    save_on(&Logged(Log::clone(&log)), &folder.path().join("checkpoint.h5"), &checkpoint).unwrap();
    let log = taken(&log);
    assert!(matches!(log[..], [Op::Small(_), Op::Sync, Op::Rename, Op::SyncFolder]), "{log:?}");
}

#[test]
fn a_compressed_frame_is_synchronised_before_its_chunks_are_found_and_before_it_is_counted() {
    let _deadline = testing::deadline();
    let (bench, mut writer) = bench(|o| o.sync(SyncLevel::Frame).compress(Some(6)), |_| Ok(()));
    for i in 0..9 {
        writer.append(&frame(i), stamp(i)).unwrap();
        let log = taken(&bench.log);
        let stored = log.iter().position(|&op| op == Op::Frame).unwrap();
        let (stamps, found, counted) =
            (bench.stamp_ops(i), bench.redirection(i), Op::Small(bench.layout.count_at));
        let expected = [Op::Frame, stamps[0], stamps[1], Op::Sync, found, Op::Sync, counted, Op::Sync];
        assert_eq!(log[stored..], expected, "frame {i}");
    }
}

#[test]
fn a_frame_that_was_promised_is_synchronised_before_it_is_replaced() {
    let _deadline = testing::deadline();
    for (level, syncs) in [(SyncLevel::None, 0), (SyncLevel::End, 1), (SyncLevel::Frame, 2)] {
        let (bench, mut writer) = bench(|o| o.sync(level).compress(Some(6)), |_| Ok(()));
        for i in 0..2 {
            writer.append(&frame(i), stamp(i)).unwrap();
        }
        drop(writer);
        let device = Logged(Log::clone(&bench.log)).open(&bench.options.path).unwrap();
        let mut writer = Writer::<f32>::new(device, &bench.options, &bench.layout, 2, 0).unwrap();
        for i in 0..2 {
            bench.log.lock().clear();
            writer.append(&frame(i), stamp(i)).unwrap();
            let log = taken(&bench.log);
            let stored = log.iter().position(|&op| op == Op::Frame).unwrap();
            let found = log.iter().position(|&op| op == bench.redirection(i)).unwrap();
            assert_eq!(log[found - 1] == Op::Sync, level != SyncLevel::None);
            assert_eq!(log[stored..].iter().filter(|&&op| op == Op::Sync).count(), syncs);
            assert!(!log.contains(&Op::Small(bench.layout.count_at)), "the count stays");
        }
    }
}

#[test]
fn a_compressed_file_grows_before_its_superblock_says_so_and_shrinks_afterwards() {
    let _deadline = testing::deadline();
    for level in LEVELS {
        let (bench, mut writer) = bench(|o| o.sync(level).compress(Some(6)), |_| Ok(()));
        let with_sync = |ops: &[Op]| -> Vec<Op> {
            ops.iter().copied().filter(|&op| op != Op::Sync || level != SyncLevel::None).collect()
        };
        let mut grown = 0;
        for i in 0..20 {
            writer.append(&frame(i), stamp(i)).unwrap();
            if count(&bench.log, Op::Small(END_AT)) > 0 {
                let expected = with_sync(&[bench.last_length(), Op::Sync, Op::Small(END_AT), Op::Frame]);
                assert!(taken(&bench.log).starts_with(&expected), "{level:?}, frame {i}");
                grown += 1;
            }
            bench.log.lock().clear();
        }
        assert!(grown >= 2, "the file grew {grown} times");
        writer.finish().unwrap();
        let expected = with_sync(&[Op::Small(END_AT), Op::Sync, bench.last_length(), Op::Sync]);
        assert_eq!(taken(&bench.log), expected, "{level:?}");
    }
}

#[test]
fn a_frame_is_counted_after_its_bytes_and_synchronised_before_and_after() {
    let _deadline = testing::deadline();
    for compress in [None, Some(6)] {
        let (bench, mut writer) = bench(|o| o.sync(SyncLevel::Frame).compress(compress), |_| Ok(()));
        let (count, stamps) = (bench.layout.count_at, bench.layout.stamps_at.unwrap());
        for i in 0..3 {
            bench.log.lock().clear();
            writer.append(&frame(i), stamp(i)).unwrap();
            let log = bench.log.lock().clone();
            let position = |op| log.iter().rposition(|&o| o == op).unwrap();
            let counted = position(Op::Small(count));
            assert!(position(Op::Frame) < counted);
            assert!(position(Op::Small(stamps.step + 8 * i)) < counted);
            assert!(position(Op::Small(stamps.time + 8 * i)) < counted);
            assert_eq!(log[counted - 1..], [Op::Sync, Op::Small(count), Op::Sync]);
        }
    }
}

#[test]
fn a_part_is_synchronised_before_the_frame_is_counted_or_at_the_end() {
    let _deadline = testing::deadline();
    for (level, each, end) in [(SyncLevel::None, 0, 0), (SyncLevel::End, 0, 1), (SyncLevel::Frame, 1, 1)] {
        let (bench, mut writer) = bench(|o| o.sync(level), |_| Ok(()));
        let device = Logged(Log::clone(&bench.log)).open(&bench.options.path).unwrap();
        let mut part = PartWriter::<f32>::on(device, &writer.announce().unwrap(), &bench.options.path);
        for i in 0..3 {
            bench.log.lock().clear();
            part.write(i, 100, &frame(i)[..300]).unwrap();
            assert_eq!(taken(&bench.log), [vec![Op::Frame], vec![Op::Sync; each]].concat(), "{level:?}");
            writer.append_parts(stamp(i)).unwrap();
            let log = taken(&bench.log);
            let counted = log.iter().position(|&op| op == Op::Small(bench.layout.count_at)).unwrap();
            assert_eq!(log[counted - 1] == Op::Sync, level == SyncLevel::Frame);
        }
        part.finish().unwrap();
        assert_eq!(taken(&bench.log), vec![Op::Sync; end], "{level:?}");
    }
}

#[test]
fn without_synchronisation_only_the_end_is_synchronised() {
    let _deadline = testing::deadline();
    for (level, syncs) in [(SyncLevel::None, 0), (SyncLevel::End, 1)] {
        let (bench, mut writer) = bench(|o| o.sync(level), |_| Ok(()));
        writer.append(&frame(0), stamp(0)).unwrap();
        writer.finish().unwrap();
        assert_eq!(count(&bench.log, Op::Sync), syncs);
        let begun = count(&bench.log, Op::BeginSync(FRAME as u64));
        assert_eq!(begun, syncs, "with the end in view, the frame goes to the device at once");
    }
}

#[test]
fn space_is_reserved_in_steps_and_what_was_written_is_synchronised_before_the_next_step() {
    let _deadline = testing::deadline();
    for level in LEVELS {
        let (bench, mut writer) = bench(|o| o.sync(level), |_| Ok(()));
        let per_step = STEP.div_ceil(FRAME as u64);
        let mut reserved = 0;
        for i in 0..20 {
            bench.log.lock().clear();
            writer.append(&frame(i), stamp(i)).unwrap();
            let log = taken(&bench.log);
            let reserves =
                log.iter().find_map(|op| if let Op::Reserve(len) = op { Some(*len) } else { None });
            let is_new_step = (i + 1) * FRAME as u64 > reserved;
            assert_eq!(reserves.is_some(), is_new_step, "{level:?}, frame {i}: {log:?}");
            reserved += reserves.unwrap_or(0);
            assert!(reserved <= 20 * FRAME as u64 + 4096, "{reserved} bytes are reserved");
            let synchronised = log.first() == Some(&Op::Sync);
            assert_eq!(synchronised, level == SyncLevel::End && is_new_step && i > 0, "{level:?}: {log:?}");
        }
        assert!(reserved >= 20 * FRAME as u64 && per_step < 10, "there are several steps");
    }
}

#[test]
fn a_name_that_is_taken_while_the_file_is_laid_out_is_not_replaced() {
    let _deadline = testing::deadline();
    /// Another program creates the file just before this one gets its name.
    struct Raced;
    impl FileSystem for Raced {
        fn open(&self, path: &Path) -> std::io::Result<Box<dyn crate::file::device::Device>> {
            System.open(path)
        }
        fn rename(&self, from: &Path, to: &Path, replace: bool) -> std::io::Result<()> {
            std::fs::write(to, "of another program")?;
            System.rename(from, to, replace)
        }
        fn sync_folder(&self, folder: &Path) -> std::io::Result<()> {
            System.sync_folder(folder)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = FileOptions::new(&path).frames(2).frame_shape(&[8]);
    let error = options.create_on::<f32>(&Raced).unwrap_err();
    assert!(matches!(error, crate::StoreError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "of another program");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
