//! Frames of `f32`, written to a file on a memory file system.

use std::{fs::File, io::Write, path::Path, time::Instant};

use anabranch_store::{FileOptions, Stamp};
use tempfile::TempDir;

use crate::harness::Failure;

/// How frames are written.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// To HDF5 on the calling thread, from the caller's memory.
    Direct,
    /// To HDF5 on the writer's thread; each frame is copied and queued for it.
    Queued,
    /// By plain `write` calls, to a file without structure.
    Plain,
}

/// A number of frames of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// The number of frames.
    pub count: u64,
    /// Rows and columns of each frame.
    pub shape: [usize; 2],
}

impl Frames {
    /// The size of all frames together.
    pub fn bytes(&self) -> u64 {
        self.count * (self.shape[0] * self.shape[1] * size_of::<f32>()) as u64
    }

    /// Writes the frames to a new file on the memory file system. Returns the seconds from the creation of the file
    /// until it is closed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn seconds(&self, way: Way) -> Result<f64, Failure> {
        let folder = memory_folder()?;
        let path = folder.path().join("frames");
        let frame: Vec<f32> = (0..self.shape[0] * self.shape[1]).map(|i| i as f32).collect();
        let begin = Instant::now();
        match way {
            Way::Direct => self.write_directly(&path, &frame)?,
            Way::Queued => self.write_queued(&path, &frame)?,
            Way::Plain => self.write_plain(&path, &frame)?,
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    fn options(&self, path: &Path) -> FileOptions {
        FileOptions::new(path).frames(self.count).frame_shape(&self.shape).stamps(true)
    }

    fn stamps(&self) -> impl Iterator<Item = Stamp> {
        (0..self.count).map(|step| Stamp { step, time: step as f64 })
    }

    fn write_directly(&self, path: &Path, frame: &[f32]) -> Result<(), Failure> {
        let mut writer = self.options(path).create::<f32>()?;
        for stamp in self.stamps() {
            writer.append(frame, stamp)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn write_queued(&self, path: &Path, frame: &[f32]) -> Result<(), Failure> {
        let mut writer = self.options(path).create::<f32>()?.queued(2)?;
        for stamp in self.stamps() {
            writer.append(frame, stamp)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn write_plain(&self, path: &Path, frame: &[f32]) -> Result<(), Failure> {
        let mut file = File::create_new(path)?;
        for _ in 0..self.count {
            file.write_all(bytemuck::cast_slice(frame))?;
        }
        Ok(())
    }
}

/// Creates a folder on a memory file system. Dropping the value removes the folder and its contents.
///
/// # Errors
/// If there is no such file system.
pub fn memory_folder() -> Result<TempDir, Failure> {
    const MEMORY: &str = "/dev/shm";
    tempfile::Builder::new()
        .prefix("anabranch-bench-")
        .tempdir_in(MEMORY)
        .map_err(|error| format!("no folder on the memory file system {MEMORY}: {error}").into())
}
