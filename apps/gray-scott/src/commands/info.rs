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
use serde::Serialize;
use serde_json::{Map, Value};
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

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints a description of the file.
///
/// # Errors
/// When the file cannot be read, or holds no frames.
pub fn run(args: &InfoArgs) -> Result<(), Error> {
    let contents = Contents::read(&args.file)?;
    if args.json {
        let text = serde_json::to_string_pretty(&contents).expect("numbers and text are always JSON");
        return console::print(&(text + "\n"));
    }
    console::print(&contents.describe())
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contents {
    /// The file.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The frames that it has room for.
    pub frames: u64,
    /// The frames that it holds.
    pub stored_frames: u64,
    /// Whether these are the same.
    pub complete: bool,
    /// The extents of a frame.
    pub frame_shape: Vec<usize>,
    /// The type of its elements.
    pub element: String,
    /// Whether the frames are compressed.
    pub compressed: bool,
    /// The attributes of the file: the parameters of the run.
    pub attributes: Map<String, Value>,
    /// The first frame, if one is stored.
    pub first_frame: Option<FrameInfo>,
    /// The newest frame, if one is stored.
    pub newest_frame: Option<FrameInfo>,
    /// The smallest and the largest value of the newest frame, if it holds `f32`.
    pub newest_values: Option<[f32; 2]>,
    /// The checkpoint beside the file.
    pub checkpoint: Option<PathBuf>,
    /// The command that goes on with an incomplete run of this program.
    pub to_continue: Option<String>,
}

/// A stored frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrameInfo {
    /// Its number, counted from 0.
    pub number: u64,
    /// The steps up to it.
    pub step: u64,
    /// The time of the simulation.
    pub time: f64,
}

impl Contents {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no frames.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let reader = Reader::open(path)?;
        let (stored, frames) = (reader.stored_frames()?, reader.frames());
        let newest = stored.checked_sub(1);
        let info = |number: Option<u64>| -> Result<Option<FrameInfo>, Error> {
            let Some(number) = number else { return Ok(None) };
            let stamp = reader.stamp(number)?;
            Ok(stamp.map(|stamp| FrameInfo { number, step: stamp.step, time: stamp.time }))
        };
        let attributes = reader.attributes().iter().map(|(name, value)| (name.clone(), json(value)));
        let checkpoint = Some(checkpoint::path_of(path)).filter(|checkpoint| checkpoint.exists());
        let ours = parameters_of(&reader).is_some();
        Ok(Self {
            file: path.to_owned(),
            bytes: fs::metadata(path).map_err(Error::io("read", path))?.len(),
            frames,
            stored_frames: stored,
            complete: stored == frames,
            frame_shape: reader.frame_shape().to_vec(),
            element: reader.element().to_owned(),
            compressed: reader.is_compressed(),
            attributes: attributes.collect(),
            first_frame: info(newest.map(|_| 0))?,
            newest_frame: info(newest)?,
            newest_values: values(&reader, newest)?,
            checkpoint,
            to_continue: (stored < frames && ours).then(|| shell::resume_command(path)),
        })
    }

    /// Describes the contents, one property on each line.
    pub fn describe(&self) -> String {
        let mut lines = Lines::default();
        lines.add("file", self.file.display());
        lines.add("size", DecimalBytes(self.bytes));
        let state = if self.complete { "complete" } else { "incomplete" };
        lines.add("frames", format!("{} of {} stored: {state}", self.stored_frames, self.frames));
        let extents: Vec<String> = self.frame_shape.iter().map(usize::to_string).collect();
        lines.add("shape of a frame", format!("{} {}", extents.join(" × "), self.element));
        lines.add("compression", if self.compressed { "deflate" } else { "none" });
        for (name, value) in &self.attributes {
            let name = name.replace('_', " ");
            match value {
                Value::String(text) => lines.add(&name, text),
                number => lines.add(&name, number),
            }
        }
        for (name, frame) in [("first frame", self.first_frame), ("newest frame", self.newest_frame)] {
            if let Some(FrameInfo { number, step, time }) = frame {
                lines.add(name, format!("number {number}, after {step} steps, at time {time}"));
            }
        }
        if let Some([min, max]) = self.newest_values {
            lines.add("its values", format!("{min} to {max}"));
        }
        match self.complete {
            true => lines.add("pictures", shell::command("render", &self.file)),
            false => lines.add("to continue", self.continuation()),
        }
        lines.0
    }

    /// The command that goes on with an incomplete run.
    fn continuation(&self) -> String {
        let Some(command) = &self.to_continue else {
            return "impossible with this program, which did not write the file".into();
        };
        let from = match &self.checkpoint {
            Some(checkpoint) => format!("from {}", checkpoint.display()),
            None => "from the beginning, there is no checkpoint".into(),
        };
        format!("{command} ({from})")
    }
}

/// The smallest and the largest value of a frame of `f32`.
fn values(reader: &Reader, frame: Option<u64>) -> Result<Option<[f32; 2]>, Error> {
    let Some(number) = frame.filter(|_| reader.element() == "f32") else { return Ok(None) };
    let mut frame = vec![0.0; reader.frame_shape().iter().product()];
    reader.read_frame_into(number, &mut frame)?;
    let ValueRange { min, max } = ValueRange::of(&frame);
    Ok(Some([min, max]))
}

/// An attribute as JSON. An `f32` keeps its short form: 0.014, not 0.014000000432.
fn json(value: &Attr) -> Value {
    match value {
        Attr::String(text) => text.as_str().into(),
        Attr::F32(number) => number.to_string().parse::<f64>().map_or(Value::Null, Value::from),
        Attr::F64(number) => (*number).into(),
        Attr::U64(number) => (*number).into(),
        Attr::I64(number) => (*number).into(),
        other => other.to_string().into(),
    }
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
        let text = Contents::read(&path).unwrap().describe();
        for part in
            ["2 of 3 stored: incomplete", "2 × 3 f32", "0.014", "absorbing", "0 to 0.5", "after 64 steps"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("simulate --resume -o") && text.contains("there is no checkpoint"), "{text}");
        let json = serde_json::to_value(Contents::read(&path).unwrap()).unwrap();
        assert_eq!(
            (&json["stored_frames"], &json["frames"], &json["complete"]),
            (&2.into(), &3.into(), &false.into())
        );
        assert_eq!(
            (&json["attributes"]["feed"], &json["attributes"]["edges"]),
            (&0.014.into(), &"absorbing".into())
        );
        assert_eq!((&json["newest_frame"]["step"], &json["newest_values"][1]), (&64.into(), &0.5.into()));
        assert_eq!((&json["frame_shape"], &json["checkpoint"]), (&vec![2, 3].into(), &Value::Null));
        fs::write(checkpoint::path_of(&path), "").unwrap();
        assert!(Contents::read(&path).unwrap().describe().contains("run.h5.checkpoint"));
    }

    #[test]
    fn empty_and_complete_files_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        file(&path, 0);
        assert!(Contents::read(&path).unwrap().describe().contains("0 of 3 stored: incomplete"));
        let path = folder.path().join("whole.h5");
        file(&path, 3);
        let text = Contents::read(&path).unwrap().describe();
        assert!(text.contains("complete") && text.contains(" render "), "{text}");
    }
}
