//! Frames of `f32`, written to a file in memory or on a disk.

use std::{
    env,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use anabranch_store::{FileOptions, Stamp, SyncLevel};
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

/// Where files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the memory file system `/dev/shm`.
    Memory,
    /// In the folder of this program, which is on a disk.
    Disk,
}

impl Place {
    /// Creates a folder. Dropping the value removes the folder and its contents.
    ///
    /// # Errors
    /// If there is no such place, or if the place for the disk is in memory.
    pub fn folder(self) -> Result<TempDir, Failure> {
        let parent = match self {
            Self::Memory => PathBuf::from(MEMORY),
            Self::Disk => {
                let program = env::current_exe()?;
                program.parent().ok_or("this program has no folder")?.to_owned()
            }
        };
        let folder = tempfile::Builder::new().prefix("anabranch-bench-").tempdir_in(&parent);
        let folder = folder.map_err(|error| format!("no folder in {}: {error}", parent.display()))?;
        #[cfg(target_os = "linux")]
        if self == Self::Disk && rustix::fs::statfs(folder.path())?.f_type as u64 == TMPFS {
            return Err(format!("{} is in memory, not on a disk", parent.display()).into());
        }
        Ok(folder)
    }
}

const MEMORY: &str = "/dev/shm";

/// The number by which Linux names its memory file system.
#[cfg(target_os = "linux")]
const TMPFS: u64 = 0x0102_1994;

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

    /// Writes the frames to a new file. Returns the seconds from the creation of the file until it is closed;
    /// HDF5 files are then safe on the device.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn seconds(&self, way: Way, place: Place) -> Result<f64, Failure> {
        let folder = place.folder()?;
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
        FileOptions::new(path).frames(self.count).frame_shape(&self.shape).stamps(true).sync(SyncLevel::End)
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
