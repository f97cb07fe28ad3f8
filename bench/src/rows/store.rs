//! Storage: frames into a file on a memory file system, where nothing but the writer's own work is slow.

use std::{fs::File, io::Write, path::Path, time::Instant};

use anabranch_store::{FileOptions, Stamp};
use tempfile::TempDir;

use crate::{
    harness::{Contest, Context, Failure, Outcome},
    row::{Row, times},
};

const PLAIN: &str = "plain write";

pub fn rows() -> Vec<Row> {
    let row = |name: &str, about, way| {
        Row::higher(name, "MB/s", about, move |context: &Context| memory_fs(context, way))
            .bar(times(0.9, PLAIN))
            .better(times(1.0, PLAIN))
    };
    vec![
        row("store/memory-fs", "200 frames of 1080x1920 f32 with FrameWriter::store", Way::Store),
        row("store/memory-fs-append", "the same with FrameWriter::append", Way::Append),
    ]
}

fn memory_fs(context: &Context, way: Way) -> Result<Outcome, Failure> {
    let frames = Frames { count: context.pick(200, 4), shape: [1080, 1920] };
    let speed = move |way| Ok(vec![frames.bytes() as f64 / 1e6 / frames.seconds(way)?]);
    Contest::ours(move || speed(way)).peer(PLAIN, move || speed(Way::Plain)).run(context.pick(7, 1))
}

/// How frames get into a file.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// On the calling thread, from the caller's memory.
    Store,
    /// Copied and queued for the writer's thread.
    Append,
    /// `write` into a file without structure.
    Plain,
}

/// Frames of `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// How many.
    pub count: u64,
    /// Rows and columns of each.
    pub shape: [usize; 2],
}

impl Frames {
    fn bytes(&self) -> u64 {
        self.count * (self.shape[0] * self.shape[1] * size_of::<f32>()) as u64
    }

    /// How long it takes to write them into a new file on the memory file system, from its creation until it is
    /// closed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn seconds(&self, way: Way) -> Result<f64, Failure> {
        let folder = memory_folder()?;
        let path = folder.path().join("frames");
        let frame: Vec<f32> = (0..self.shape[0] * self.shape[1]).map(|i| i as f32).collect();
        let begin = Instant::now();
        match way {
            Way::Store | Way::Append => self.write_hdf5(&path, &frame, matches!(way, Way::Append))?,
            Way::Plain => self.write_plain(&path, &frame)?,
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    fn write_hdf5(&self, path: &Path, frame: &[f32], queued: bool) -> Result<(), Failure> {
        let options = FileOptions::new(path).frames(self.count).frame_shape(&self.shape).stamps(true);
        let mut writer = options.create::<f32>()?;
        for step in 0..self.count {
            let stamp = Stamp { step, time: step as f64 };
            if queued { writer.append(frame, stamp) } else { writer.store(frame, stamp) }?;
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

/// A new folder on a memory file system; it is removed with all that is in it when the value is dropped.
///
/// # Errors
/// Where there is no such file system.
pub fn memory_folder() -> Result<TempDir, Failure> {
    const MEMORY: &str = "/dev/shm";
    tempfile::Builder::new()
        .prefix("anabranch-bench-")
        .tempdir_in(MEMORY)
        .map_err(|error| format!("no folder on the memory file system {MEMORY}: {error}").into())
}
