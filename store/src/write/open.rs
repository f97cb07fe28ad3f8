//! Creating a file, and resuming one.

use crate::{
    Result, StoreError,
    element::Element,
    file::{
        device::{Device, read_u64_at},
        layout::{FramesAt, Layout},
        library::open_hdf5,
        lock::WriteLock,
        partial::{Partial, Placing, existing_folder, sync_folder_of},
        space::{available_bytes, occupied_bytes},
        system::{FileSystem, System},
    },
    options::{FileOptions, SyncLevel},
    write::writer::Writer,
};
use std::{fs::File, path::Path, thread};

impl FileOptions {
    /// Creates the file. It appears under its name when it is laid out completely; until then it is beside
    /// it, as `.NAME.PID-NUMBER.partial`.
    ///
    /// # Errors
    /// When the options do not make sense or lack something, another writer has the file
    /// ([`StoreError::Busy`]), the path is taken or cannot be created, or the file system lacks room for the
    /// complete file. The size of a compressed file is not known beforehand: there a full disk shows only
    /// while writing.
    pub fn create<T: Element>(&self) -> Result<Writer<T>> {
        self.create_on(&System)
    }

    pub(crate) fn create_on<T: Element>(&self, system: &dyn FileSystem) -> Result<Writer<T>> {
        self.validate::<T>()?;
        existing_folder(&self.path)?;
        let lock = WriteLock::acquire_to("create", &self.path)?;
        self.check_path()?;
        let partial = Partial::create(&self.path)?;
        let reclaims = self.check_space::<T>(self.frames, occupied_bytes(&self.path))?;
        let layout = Layout::create::<T>(self, partial.temporary())?;
        let device = open_for_writing(system, partial.temporary())?;
        // Windows does not replace a file that is open.
        let frees_later = cfg!(unix) && self.force && !reclaims;
        let replaced = frees_later.then(|| File::open(&self.path).ok()).flatten();
        partial.place(system, &*device, Placing { durable: self.is_durable(), replace: self.force })?;
        if let Some(replaced) = replaced {
            free_later(replaced);
        }
        Ok(Writer::new(device, self, &layout, 0, 0)?.holding(lock))
    }

    /// Opens an incomplete file to go on with frame `from_frame`, which is at most the number
    /// of stored frames. Frames from there on are written (again) at their places, and the
    /// count never goes down: recomputed frames are expected to be the same.
    ///
    /// # Errors
    /// When another writer has the file ([`StoreError::Busy`]), when the file's shape, element type, stamps
    /// or any attribute given here differ from these options (the error names it, with both values), or
    /// frames before `from_frame` are not stored.
    pub fn resume<T: Element>(&self, from_frame: u64) -> Result<Writer<T>> {
        self.resume_on(&System, from_frame)
    }

    pub(crate) fn resume_on<T: Element>(
        &self,
        system: &dyn FileSystem,
        from_frame: u64,
    ) -> Result<Writer<T>> {
        self.validate::<T>()?;
        let path = &self.path;
        // The lock is beside the file itself, so that all the symbolic links to it lead to one lock.
        let real = path.canonicalize().map_err(|e| StoreError::io("open", path, e))?;
        let lock = WriteLock::acquire_to("lock", &real)?;
        let hdf5 = open_hdf5(path)?;
        let layout = Layout::read_matching::<T>(&hdf5, self)?;
        hdf5.close().map_err(|e| StoreError::hdf5("close", path, e))?;
        let device = open_for_writing(system, path)?;
        // An earlier writer may have promised less than this one.
        if self.sync == SyncLevel::Frame {
            device.sync().map_err(|e| StoreError::io("synchronise", path, e))?;
        }
        if self.is_durable() {
            sync_folder_of(system, &real)?;
        }
        let stored = read_u64_at(&*device, layout.count_at).map_err(|e| StoreError::io("read", path, e))?;
        let frames = layout.frames;
        if stored > frames {
            return Err(StoreError::format(
                path,
                format!("it counts {stored} frames and has room for {frames}"),
            ));
        }
        if from_frame > stored {
            return Err(StoreError::NotStored { path: path.clone(), frame: from_frame - 1, stored, frames });
        }
        // The space that a compressed file still needs is unknown, whatever these options say.
        if matches!(layout.frames_at, FramesAt::Contiguous(_)) {
            self.check_space::<T>(frames - stored, 0)?;
        }
        Ok(Writer::new(device, self, &layout, stored, from_frame)?.holding(lock))
    }

    /// Whether anything is promised about power failures.
    fn is_durable(&self) -> bool {
        self.sync != SyncLevel::None
    }

    fn check_path(&self) -> Result<()> {
        match self.path.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(StoreError::NotAFile { path: self.path.clone() }),
            Ok(_) if !self.force => Err(StoreError::Exists { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// An error if the file system lacks room for `frames` more frames. `reclaimed` bytes count as free.
    /// Returns whether the frames need these, as far as it is known.
    fn check_space<T: Element>(&self, frames: u64, reclaimed: u64) -> Result<bool> {
        let rest = Self { frames, ..self.clone() };
        let needed = rest.required_bytes::<T>().unwrap_or(u64::MAX);
        let Some(free) = available_bytes(&self.path)? else { return Ok(true) };
        let available = free.saturating_add(reclaimed);
        if self.compress.is_none() && needed > available {
            return Err(StoreError::NoSpace { needed, available, path: self.path.clone() });
        }
        Ok(self.compress.is_some() || needed > free)
    }
}

/// Closes a file that was replaced. Its space is freed then, which takes a while for a large file: another
/// thread does it.
fn free_later(replaced: File) {
    // Without another thread this one does it.
    let _ = thread::Builder::new().name("anabranch-free".into()).spawn(move || drop(replaced));
}

fn open_for_writing(system: &dyn FileSystem, path: &Path) -> Result<Box<dyn Device>> {
    system.open(path).map_err(|e| StoreError::io("open for writing", path, e))
}
