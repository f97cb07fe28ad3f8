//! Power failures and kills at any moment: what was promised is readable afterwards.
//!
//! The disk is simulated. It keeps what was synchronised and, after a power failure, any part of what was
//! not: each later change alone, and of a large write any of its sectors. A write of less than a sector is
//! complete or missing. After a kill it keeps every change that was made.

use super::device::{noise, stamp};
use crate::{
    FileOptions, Reader, Result, SyncLevel, Writer,
    file::{device::Device, system::FileSystem},
};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

const FRAMES: u64 = 7;
/// Two chunks, of which the second is padded.
const LEN: usize = 1500;
const SECTOR: usize = 512;

/// A change of a file's contents.
#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Change {
    /// Makes the change in the sectors that `keep` chooses.
    fn apply(&self, file: &mut Vec<u8>, mut keep: impl FnMut() -> bool) {
        match self {
            Self::Length(len) => {
                if keep() {
                    file.resize(*len, 0);
                }
            }
            Self::Write { offset, bytes } => {
                for (i, part) in bytes.chunks(SECTOR).enumerate() {
                    let at = offset + i * SECTOR;
                    if keep() {
                        file.resize(file.len().max(at + part.len()), 0);
                        file[at..at + part.len()].copy_from_slice(part);
                    }
                }
            }
        }
    }
}

/// Whether the name of the file survives a power failure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Name {
    Absent,
    Perhaps,
    Durable,
}

/// The disk.
#[derive(Debug)]
struct State {
    name: Name,
    /// The contents that programs see.
    current: Vec<u8>,
    /// The contents at the last synchronisation.
    durable: Vec<u8>,
    /// The changes since then.
    pending: Vec<Change>,
    /// Operations until the failure.
    left: usize,
}

impl State {
    /// Counts an operation; an error from the failure on.
    fn step(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the program has ended"))?;
        Ok(())
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        let running = self.left > 0;
        if running {
            change.apply(&mut self.current, || true);
            self.pending.push(change);
        } else if let Change::Write { offset, mut bytes } = change
            && bytes.len() > SECTOR
        {
            // The failure interrupts the write.
            bytes.truncate(bytes.len() / 2);
            let half = Change::Write { offset, bytes };
            half.apply(&mut self.current, || true);
            self.pending.push(half);
        }
        self.step()
    }

    /// The file after a power failure, which keeps a part of what was not synchronised. `None` without a
    /// file.
    fn after_power_failure(&self, mut chance: impl FnMut() -> bool) -> Option<Vec<u8>> {
        let mut image = self.durable.clone();
        for change in &self.pending {
            if chance() {
                let whole = chance();
                change.apply(&mut image, || whole || chance());
            }
        }
        let lost = self.name == Name::Absent || (self.name == Name::Perhaps && chance());
        (!lost).then_some(image)
    }

    /// The disk after a failure that left this file, or none.
    fn restarted(image: Option<Vec<u8>>) -> Self {
        let name = if image.is_some() { Name::Durable } else { Name::Absent };
        let contents = image.unwrap_or_default();
        Self { name, current: contents.clone(), durable: contents, pending: Vec::new(), left: 0 }
    }
}

#[derive(Debug, Clone)]
struct Disk(Arc<Mutex<State>>);

impl FileSystem for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Device>> {
        let mut state = self.0.lock();
        if state.name == Name::Absent {
            // HDF5 has just laid the file out, and nothing is synchronised.
            state.current = fs::read(path)?;
            let bytes = state.current.clone();
            (state.durable, state.pending) = (Vec::new(), vec![Change::Write { offset: 0, bytes }]);
        }
        drop(state);
        Ok(Box::new(self.clone()))
    }

    fn rename(&self, from: &Path, to: &Path, _: bool) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        state.name = Name::Perhaps;
        fs::rename(from, to)
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        state.name = Name::Durable;
        Ok(())
    }
}

impl Device for Disk {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.lock().change(Change::Write { offset: offset as usize, bytes: bytes.into() })
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (state, offset) = (self.0.lock(), offset as usize);
        let bytes = state.current.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        state.pending.clear();
        state.durable = state.current.clone();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().change(Change::Length(len as usize))
    }

    fn is_at(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }
}

/// One run of a program, and its end.
#[derive(Debug, Clone)]
struct Session {
    level: SyncLevel,
    /// Counted frames that it writes again.
    again: u64,
    /// Frames that it writes.
    frames: u64,
    /// Operations until it ends, if it does not end by itself.
    operations: usize,
    /// It finishes its file if it gets so far.
    finish: bool,
    /// The end is a power failure, which keeps what this seed chooses. Otherwise it is a kill.
    power: Option<u64>,
}

fn session() -> impl Strategy<Value = Session> {
    let level = prop_oneof![
        1 => Just(SyncLevel::None),
        2 => Just(SyncLevel::End),
        4 => Just(SyncLevel::Frame)
    ];
    let operations = prop_oneof![5 => 0..45_usize, 1 => Just(usize::MAX)];
    let frames = prop_oneof![2 => Just(FRAMES), 1 => 0..FRAMES];
    let power = prop::option::weighted(0.75, any::<u64>());
    (level, 0..4_u64, frames, operations, prop::bool::weighted(0.8), power).prop_map(
        |(level, again, frames, operations, finish, power)| Session {
            level,
            again,
            frames,
            operations,
            finish,
            power,
        },
    )
}

/// A file on the disk.
struct Trial {
    _folder: tempfile::TempDir,
    path: PathBuf,
    options: FileOptions,
    disk: Disk,
    known: Known,
}

/// What the users of the file may rely on.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Frames that a call has acknowledged, of a program that was not hit by a power failure.
    acknowledged: u64,
    /// The frames that survive a power failure; `None` as long as nothing at all is promised.
    promised: Option<u64>,
    /// Frames that were written since the last power failure, or survived it.
    sound: u64,
    /// No power failure has left frames that were not promised.
    whole: bool,
}

impl Known {
    const NOTHING: Self = Self { acknowledged: 0, promised: None, sound: 0, whole: true };
}

impl Trial {
    fn new(compress: Option<u8>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let options =
            FileOptions::new(&path).frames(FRAMES).frame_shape(&[LEN]).stamps(true).compress(compress);
        let disk = Disk(Arc::new(Mutex::new(State::restarted(None))));
        Self { _folder: folder, path, options, disk, known: Known::NOTHING }
    }

    /// Runs a session and checks the file after its end. `false` if nothing was promised and the trial is
    /// over.
    fn run(&mut self, session: &Session) -> bool {
        self.disk.0.lock().left = session.operations;
        if session.level == SyncLevel::None {
            self.known.promised = None;
        }
        let creating = !self.path.exists();
        let opened = self.open(session).map(|writer| self.write(session, writer)).is_ok();
        // A session that ends before it has opened the file leaves the state of the one before it.
        let level = if opened || creating { session.level } else { SyncLevel::End };
        match session.power {
            None => self.check_after_kill(),
            Some(seed) => return self.check_after_power_failure(level, creating && !opened, seed),
        }
        true
    }

    fn open(&mut self, session: &Session) -> Result<Writer<f32>> {
        let options = self.options.clone().sync(session.level);
        if !self.path.exists() {
            self.known = Known::NOTHING;
            let writer = options.create_on(&self.disk)?;
            self.known.promised = (session.level != SyncLevel::None).then_some(0);
            return Ok(writer);
        }
        let from = self.known.sound.min(self.known.acknowledged).saturating_sub(session.again);
        let writer = options.resume_on(&self.disk, from)?;
        if session.level == SyncLevel::Frame {
            self.known.promised = Some(self.known.sound.min(writer.stored_frames()));
        }
        Ok(writer)
    }

    fn write(&mut self, session: &Session, mut writer: Writer<f32>) {
        for i in (writer.next_frame()..FRAMES).take(session.frames as usize) {
            if writer.append(&noise(i, LEN), stamp(i)).is_err() {
                break;
            }
            self.known.acknowledged = writer.stored_frames();
            self.known.sound = self.known.sound.max(i + 1);
            if session.level == SyncLevel::Frame {
                self.known.promised = Some(self.known.sound.min(self.known.acknowledged));
            }
        }
        if !session.finish {
            self.disk.0.lock().left = 0;
        }
        if let Ok(summary) = writer.finish()
            && session.level != SyncLevel::None
        {
            self.known.promised = Some(self.known.sound.min(summary.stored_frames));
        }
    }

    fn check_after_kill(&mut self) {
        let state = self.disk.0.lock();
        if state.name == Name::Absent {
            assert!(!self.path.exists() && self.known.acknowledged == 0);
            return;
        }
        fs::write(&self.path, &state.current).unwrap();
        drop(state);
        self.check_all();
    }

    /// Checks several files that the power failure may leave, and goes on with the last one.
    fn check_after_power_failure(&mut self, level: SyncLevel, creating: bool, seed: u64) -> bool {
        let mut x = seed;
        let mut chance = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x >> 63 == 1
        };
        let images: Vec<_> = {
            let state = self.disk.0.lock();
            (0..3).map(|_| state.after_power_failure(&mut chance)).collect()
        };
        let before = self.known;
        let mut promised = true;
        for image in images {
            match &image {
                Some(image) => fs::write(&self.path, image).unwrap(),
                None => drop(fs::remove_file(&self.path)),
            }
            self.known = before;
            promised = self.check_image(level, creating, image.is_some());
            *self.disk.0.lock() = State::restarted(image);
        }
        promised
    }

    /// Checks the file that a power failure has left, if it has left one. `false` if nothing was promised.
    fn check_image(&mut self, level: SyncLevel, creating: bool, exists: bool) -> bool {
        match self.known.promised {
            // A file that is made durable has its name only when it is complete.
            None if creating && exists && level != SyncLevel::None => assert_eq!(self.check(0), 0),
            None => return creating && !exists,
            Some(promised) => {
                assert!(exists, "the file is gone, with {promised} frames");
                if level == SyncLevel::Frame {
                    self.check_all();
                } else {
                    let stored = self.check(promised);
                    assert!(stored >= promised, "{stored} frames, {promised} were promised");
                    self.known = Known { acknowledged: stored, sound: promised, whole: false, ..self.known };
                }
                self.known.promised = Some(self.known.sound.min(self.known.acknowledged));
            }
        }
        true
    }

    /// Checks that every counted frame is there, also for HDF5, and no acknowledged one is missing.
    fn check_all(&mut self) {
        let stored = self.check(0);
        assert!(
            stored >= self.known.acknowledged,
            "{stored} frames, {} were acknowledged",
            self.known.acknowledged
        );
        assert!(stored <= self.known.acknowledged + 1);
        self.known.acknowledged = stored;
        if !self.known.whole {
            self.check(self.known.sound.min(stored));
            return;
        }
        self.check(stored);
        self.known.sound = stored;
        let file = hdf5::File::open(&self.path).unwrap();
        let all = file.dataset("matrix").unwrap().read_raw::<f32>().unwrap();
        assert_eq!(all.len(), FRAMES as usize * LEN);
        for (i, found) in all.chunks(LEN).take(stored as usize).enumerate() {
            assert!(found == noise(i as u64, LEN), "HDF5 finds another frame {i}");
        }
    }

    /// Checks that the file opens and holds the first frames, and returns its count.
    fn check(&self, frames: u64) -> u64 {
        let reader = Reader::open(&self.path).unwrap();
        for i in 0..frames {
            assert!(reader.read_frame::<f32>(i).unwrap().as_slice().unwrap() == noise(i, LEN), "frame {i}");
            assert_eq!(reader.stamp(i).unwrap(), Some(stamp(i)));
        }
        reader.stored_frames().unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_promised_survives_power_failures_and_kills(
        compress in prop::bool::ANY,
        sessions in prop::collection::vec(session(), 1..5),
    ) {
        let _deadline = testing::deadline();
        let mut trial = Trial::new(compress.then_some(1));
        for session in &sessions {
            if !trial.run(session) {
                break;
            }
        }
    }
}

/// The simulation itself notices a write that was not synchronised.
#[test]
fn the_simulated_disk_forgets_what_was_not_synchronised() {
    let _deadline = testing::deadline();
    let disk = Disk(Arc::new(Mutex::new(State { left: 9, ..State::restarted(Some(Vec::new())) })));
    disk.write_all_at(&[1; 4], 0).unwrap();
    Device::sync(&disk).unwrap();
    disk.write_all_at(&[2; 4], 2).unwrap();
    disk.set_len(20).unwrap();
    let mut byte = [0];
    disk.read_exact_at(&mut byte, 3).unwrap();
    assert_eq!(byte, [2]);
    let left = |chance| disk.0.lock().after_power_failure(|| chance).unwrap();
    assert_eq!(left(false), [1; 4]);
    assert_eq!(left(true)[..6], [1, 1, 2, 2, 2, 2]);
    assert_eq!(left(true).len(), 20);
    disk.0.lock().left = 0;
    assert!(disk.write_all_at(&[3; 4], 0).is_err() && Device::sync(&disk).is_err());
    assert_eq!(left(true)[..6], [1, 1, 2, 2, 2, 2]);
}
