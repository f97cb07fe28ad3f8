//! `info`: the contents of a file, whether it is complete, and the command that goes on.

use crate::{
    commands::render::ValueRange,
    error::Error,
    files::{attributes::parameters_of, checkpoint},
    report::{console, shell},
};
use anabranch_store::{Attr, Reader};
use clap::Args;
use indicatif::DecimalBytes;
use std::{
    fmt::{Display, Write},
    fs,
    path::{Path, PathBuf},
};

/// Options of `info`.
#[derive(Args, Clone, Debug)]
pub struct InfoArgs {
    /// The HDF5 file to read
    pub file: PathBuf,
}

/// Prints a description of the file.
///
/// # Errors
/// When the file cannot be read, or holds no frames.
pub fn run(args: &InfoArgs) -> Result<(), Error> {
    console::print(&describe(&args.file)?)
}

/// Describes a file, one property on each line.
///
/// # Errors
/// When the file cannot be read, or holds no frames.
pub fn describe(path: &Path) -> Result<String, Error> {
    let reader = Reader::open(path)?;
    let stored = reader.stored_frames()?;
    let mut lines = Lines::default();
    lines.add("file", path.display());
    lines.add("size", DecimalBytes(fs::metadata(path).map_err(Error::io("read", path))?.len()));
    lines.add("frames", completeness(stored, reader.frames()));
    lines.add("shape of a frame", shape(&reader));
    lines.add("compression", if reader.is_compressed() { "deflate" } else { "none" });
    for (name, value) in reader.attributes() {
        let name = name.replace('_', " ");
        match value {
            Attr::String(text) => lines.add(&name, text),
            number => lines.add(&name, number),
        }
    }
    if let Some(newest) = stored.checked_sub(1) {
        describe_frames(&reader, newest, &mut lines)?;
    }
    if stored < reader.frames() {
        lines.add("to continue", continuation(path, &reader));
    } else {
        lines.add("pictures", shell::command("render", path));
    }
    Ok(lines.0)
}

fn completeness(stored: u64, frames: u64) -> String {
    let state = if stored == frames { "complete" } else { "incomplete" };
    format!("{stored} of {frames} stored: {state}")
}

fn shape(reader: &Reader) -> String {
    let extents: Vec<String> = reader.frame_shape().iter().map(usize::to_string).collect();
    format!("{} {}", extents.join(" × "), reader.element())
}

/// Describes the step and time of the first and the newest frame, and the values of the newest.
fn describe_frames(reader: &Reader, newest: u64, lines: &mut Lines) -> Result<(), Error> {
    for (name, frame) in [("first frame", 0), ("newest frame", newest)] {
        if let Some(stamp) = reader.stamp(frame)? {
            lines.add(name, format!("number {frame}, after {} steps, at time {}", stamp.step, stamp.time));
        }
    }
    if reader.element() == "f32" {
        let mut frame = vec![0.0; reader.frame_shape().iter().product()];
        reader.read_frame_into(newest, &mut frame)?;
        let ValueRange { min, max } = ValueRange::of(&frame);
        lines.add("its values", format!("{min} to {max}"));
    }
    Ok(())
}

/// The command that goes on with an incomplete run.
fn continuation(path: &Path, reader: &Reader) -> String {
    if parameters_of(reader).is_none() {
        return "impossible with this program, which did not write the file".into();
    }
    let checkpoint = checkpoint::path_of(path);
    let from = match checkpoint.exists() {
        true => format!("from {}", checkpoint.display()),
        false => "from the beginning, there is no checkpoint".into(),
    };
    format!("{} ({from})", shell::resume_command(path))
}

/// Lines of a name and a value, with the values aligned.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: impl Display) {
        writeln!(self.0, "{name:<18}{value}").expect("writing to a string cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        files::attributes::{attributes, stamp},
        parameters::Parameters,
    };
    use anabranch_store::FileOptions;

    /// Writes a file with room for 3 frames, and stores the first `stored` of them.
    fn file(path: &Path, stored: u64) {
        let parameters = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        let mut options = FileOptions::new(path).frames(3).frame_shape(&[2, 3]).stamps(true);
        for (name, value) in attributes(&parameters) {
            options = options.attribute(name, value);
        }
        let mut writer = options.create::<f32>().unwrap();
        for frame in 0..stored {
            writer.append(&[0.0, 0.25, 0.5, 0.1, 0.1, 0.1], stamp(&parameters, frame)).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn an_incomplete_file_is_described_with_the_command_that_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        file(&path, 2);
        let text = describe(&path).unwrap();
        for part in
            ["2 of 3 stored: incomplete", "2 × 3 f32", "0.014", "absorbing", "0 to 0.5", "after 64 steps"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("simulate --resume -o") && text.contains("there is no checkpoint"), "{text}");
        fs::write(checkpoint::path_of(&path), "").unwrap();
        assert!(describe(&path).unwrap().contains("run.h5.checkpoint"));
    }

    #[test]
    fn empty_and_complete_files_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        file(&path, 0);
        assert!(describe(&path).unwrap().contains("0 of 3 stored: incomplete"));
        let path = folder.path().join("whole.h5");
        file(&path, 3);
        let text = describe(&path).unwrap();
        assert!(text.contains("complete") && text.contains(" render "), "{text}");
    }
}
