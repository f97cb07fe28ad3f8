//! Creating a file, and resuming one.

use crate::{
    Result, StoreError,
    element::Element,
    file::{
        device::read_u64_at,
        layout::{FramesAt, Layout},
        library::open_hdf5,
        partial::Partial,
        space::{available_bytes, occupied_bytes},
    },
    options::{FileOptions, SyncLevel},
    write::writer::Writer,
};
use std::{fs::File, path::Path};

impl FileOptions {
    /// Creates the file. It appears under its name when it is laid out completely; until then it is beside
    /// it, as `.NAME.PID.partial`.
    ///
    /// # Errors
    /// When the options do not make sense, the path is taken or cannot be created, or the file
    /// system lacks room for the complete file. The size of a compressed file is not known
    /// beforehand: there a full disk shows only while writing.
    pub fn create<T: Element>(&self) -> Result<Writer<T>> {
        self.validate::<T>()?;
        self.check_path()?;
        let partial = Partial::create(&self.path)?;
        self.check_space::<T>(self.frames, occupied_bytes(&self.path))?;
        let layout = Layout::create::<T>(self, partial.temporary())?;
        let file = open_for_writing(partial.temporary())?;
        let durable = self.sync != SyncLevel::None;
        if durable {
            file.sync_all().map_err(|e| StoreError::io("synchronise", &self.path, e))?;
        }
        partial.place(durable)?;
        Writer::new(Box::new(file), self, &layout, 0, 0)
    }

    /// Opens an incomplete file to go on with frame `from_frame`, which is at most the number
    /// of stored frames. Frames from there on are written (again) at their places, and the
    /// count never goes down: recomputed frames are expected to be the same.
    ///
    /// # Errors
    /// When the file's shape, element type, stamps or any attribute given here differ from
    /// these options (the error names it, with both values), or frames before `from_frame` are
    /// not stored.
    pub fn resume<T: Element>(&self, from_frame: u64) -> Result<Writer<T>> {
        self.validate::<T>()?;
        let path = &self.path;
        let hdf5 = open_hdf5(path)?;
        let layout = Layout::read_matching::<T>(&hdf5, self)?;
        hdf5.close().map_err(|e| StoreError::hdf5("close", path, e))?;
        let file = open_for_writing(path)?;
        let stored = read_u64_at(&file, layout.count_at).map_err(|e| StoreError::io("read", path, e))?;
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
        Writer::new(Box::new(file), self, &layout, stored, from_frame)
    }

    fn check_path(&self) -> Result<()> {
        match self.path.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(StoreError::NotAFile { path: self.path.clone() }),
            Ok(_) if !self.force => Err(StoreError::Exists { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// An error if the file system lacks room for `frames` more frames. `reclaimed` bytes count as free.
    fn check_space<T: Element>(&self, frames: u64, reclaimed: u64) -> Result<()> {
        let rest = Self { frames, ..self.clone() };
        let needed = rest.required_bytes::<T>().unwrap_or(u64::MAX);
        let Some(free) = available_bytes(&self.path)? else { return Ok(()) };
        let available = free.saturating_add(reclaimed);
        if self.compress.is_none() && needed > available {
            return Err(StoreError::NoSpace { needed, available, path: self.path.clone() });
        }
        Ok(())
    }
}

fn open_for_writing(path: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    file.map_err(|e| StoreError::io("open for writing", path, e))
}
