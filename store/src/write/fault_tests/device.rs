//! A device that records its operations and can be made to fail, and a writer on it.

use crate::{
    FileOptions, Reader, Stamp, Writer,
    file::{
        device::Device,
        layout::Layout,
        system::{FileSystem, System},
    },
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::{fs::File, io, path::Path, sync::Arc};

pub(super) const LEN: usize = 600;
pub(super) const FRAME: usize = LEN * 4;

/// An operation of a device, or of the file system that it is on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// A write of frame data.
    Frame,
    /// A write of a few bytes at this position.
    Small(u64),
    /// The file got this length.
    Length(u64),
    Sync,
    /// A part of this many bytes begins to go to the device.
    BeginSync(u64),
    /// Space of this many bytes is reserved.
    Reserve(u64),
    Rename,
    SyncFolder,
}

/// The operations in their order.
pub(super) type Log = Arc<Mutex<Vec<Op>>>;

/// The operating system's files, with a log.
pub(super) struct Logged(pub(super) Log);

impl FileSystem for Logged {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Device>> {
        let file = File::options().read(true).write(true).open(path)?;
        let log = Arc::clone(&self.0);
        Ok(Box::new(Faulty { file, state: Mutex::new((0, Box::new(|_| Ok(())))), log }))
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        self.0.lock().push(Op::Rename);
        System.rename(from, to, replace)
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.0.lock().push(Op::SyncFolder);
        Ok(())
    }
}

type Before = Box<dyn FnMut(usize) -> io::Result<()> + Send>;

/// A file that calls a function in the middle of each write of frame data, with the number of the write.
pub(super) struct Faulty {
    file: File,
    state: Mutex<(usize, Before)>,
    log: Log,
}

impl Device for Faulty {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.len() < 200 {
            self.log.lock().push(Op::Small(offset));
            return Device::write_all_at(&self.file, bytes, offset);
        }
        self.log.lock().push(Op::Frame);
        let mut state = self.state.lock();
        let k = state.0;
        state.0 += 1;
        // A failing write leaves half of the bytes.
        Device::write_all_at(&self.file, &bytes[..bytes.len() / 2], offset)?;
        (state.1)(k)?;
        Device::write_all_at(&self.file, bytes, offset)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        Device::read_exact_at(&self.file, buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.log.lock().push(Op::Sync);
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) {
        self.log.lock().push(Op::Reserve(len));
        self.file.reserve(offset, len);
    }

    fn begin_sync(&self, offset: u64, len: u64) {
        self.log.lock().push(Op::BeginSync(len));
        self.file.begin_sync(offset, len);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.log.lock().push(Op::Length(len));
        Device::set_len(&self.file, len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

/// No process starts while there is a bench. A process that starts has all open files of this one for a
/// moment, with the locks of HDF5 on them. So the file of a bench could not be opened again.
pub(super) static STARTING_PROCESS: RwLock<()> = RwLock::new(());

pub(super) struct Bench {
    _no_process_starts: RwLockReadGuard<'static, ()>,
    _folder: tempfile::TempDir,
    pub(super) options: FileOptions,
    pub(super) log: Log,
    pub(super) layout: Layout,
}

/// A writer for 20 frames on a device that calls `before` in the middle of each frame.
pub(super) fn bench(
    adjust: impl FnOnce(FileOptions) -> FileOptions,
    before: impl FnMut(usize) -> io::Result<()> + Send + 'static,
) -> (Bench, Writer<f32>) {
    let no_process_starts = STARTING_PROCESS.read_recursive();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = adjust(FileOptions::new(&path).frames(20).frame_shape(&[LEN]).stamps(true));
    std::fs::write(&path, "").unwrap();
    let layout = Layout::create::<f32>(&options, &path).unwrap();
    let log = Arc::default();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let device = Faulty { file, state: Mutex::new((0, Box::new(before))), log: Arc::clone(&log) };
    let writer = Writer::new(Box::new(device), &options, &layout, 0, 0).unwrap();
    (Bench { _no_process_starts: no_process_starts, _folder: folder, options, log, layout }, writer)
}

/// Noise, so that compressed frames are large too.
pub(super) fn frame(index: u64) -> Vec<f32> {
    noise(index, LEN)
}

/// Noise of its own for each frame.
pub(super) fn noise(index: u64, len: usize) -> Vec<f32> {
    let mut x = index as u32 + 1;
    let mut next = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(x >> 2)
    };
    (0..len).map(|_| next()).collect()
}

pub(super) fn stamp(index: u64) -> Stamp {
    Stamp { step: index, time: index as f64 }
}

impl Bench {
    pub(super) fn assert_holds(&self, frames: u64) {
        let reader = Reader::open(&self.options.path).unwrap();
        assert_eq!(reader.stored_frames().unwrap(), frames);
        for i in 0..frames {
            assert_eq!(reader.read_frame::<f32>(i).unwrap().as_slice().unwrap(), frame(i));
            assert_eq!(reader.stamp(i).unwrap(), Some(stamp(i)));
        }
        drop(reader);
        let file = hdf5::File::open(&self.options.path).unwrap();
        assert_eq!(file.dataset("matrix").unwrap().read_raw::<f32>().unwrap().len(), 20 * LEN);
    }
}
