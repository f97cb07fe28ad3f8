//! `render`: the frames of a file as pictures, or as an animation.
//!
//! Every stored frame can be rendered at any time, also while the file is still growing. Each pass over the
//! frames is parallel: one for the range of values, unless it is given, and one for each kind of output.

mod animation;
mod paint;
mod picture;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use anabranch_store::Reader;

use crate::error::Error;
use crate::frames::for_each_frame;
use crate::human;
use crate::options::{self, RenderArgs};
use crate::progress::{Mode, Progress};

pub use animation::{Animation, Format};
pub use paint::{Painter, Palette, Scale, ValueRange};

/// Renders the frames that `args` select.
///
/// # Errors
/// When the file cannot be read, a frame that was asked for is not stored, or a picture cannot be written.
pub fn run(args: &RenderArgs) -> Result<(), Error> {
    let format = args.animation.as_deref().map(animation_format).transpose()?;
    let job = Job::new(args)?;
    if let Some(folder) = pictures_folder(args) {
        job.write_pictures(folder)?;
    }
    if let (Some(path), Some(format)) = (&args.animation, format) {
        job.write_animation(path, format)?;
    }
    Ok(())
}

/// Where single pictures go, if they are wanted: an animation alone needs none.
fn pictures_folder(args: &RenderArgs) -> Option<&Path> {
    match (&args.output, &args.animation) {
        (Some(folder), _) => Some(folder),
        (None, Some(_)) => None,
        (None, None) => Some(Path::new("frames")),
    }
}

fn animation_format(path: &Path) -> Result<Format, Error> {
    Format::of(path).ok_or_else(|| {
        Error::Usage(format!(
            "--animation: the name must end in .gif, .png or .apng, not as in {}",
            path.display()
        ))
    })
}

/// Everything that the passes over the frames share.
struct Job<'a> {
    args: &'a RenderArgs,
    reader: Reader,
    frames: Vec<u64>,
    threads: usize,
    painter: Painter,
    palette: Vec<u8>,
}

impl<'a> Job<'a> {
    fn new(args: &'a RenderArgs) -> Result<Self, Error> {
        let reader = Reader::open(&args.file)?;
        let &[rows, cols] = reader.frame_shape() else {
            let shape = reader.frame_shape();
            return Err(Error::Usage(format!(
                "{}: frames of shape {shape:?} are no pictures",
                args.file.display()
            )));
        };
        let frames = selected(args, reader.stored_frames()?)?;
        let mut job = Self {
            args,
            reader,
            frames,
            threads: options::threads(args.threads),
            painter: Painter { shape: [rows, cols], scale: args.scale, range: ValueRange::EMPTY },
            palette: args.palette.colours(),
        };
        job.painter.range = match args.range {
            Some(range) => range,
            None => job.find_range()?,
        };
        Ok(job)
    }

    /// The smallest and the largest value in all frames that are rendered.
    fn find_range(&self) -> Result<ValueRange, Error> {
        let range = Mutex::new(ValueRange::EMPTY);
        let progress = self.progress("looking for the range of values");
        for_each_frame(
            &self.frames,
            self.threads,
            || Ok(self.frame()),
            |frame, _, number| {
                self.reader.read_frame_into(number, frame)?;
                let found = ValueRange::of(frame);
                let mut range = range.lock().expect("joining ranges does not panic");
                *range = range.join(found);
                progress.one_more();
                Ok::<_, Error>(())
            },
        )?;
        progress.clear();
        Ok(range.into_inner().expect("joining ranges does not panic"))
    }

    fn write_pictures(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(Error::io("make the folder", folder))?;
        let progress = self.progress("writing pictures");
        let digits = (self.reader.frames().saturating_sub(1)).to_string().len().max(4);
        let scratch = || Ok((self.frame(), Vec::new()));
        for_each_frame(&self.frames, self.threads, scratch, |(frame, pixels), _, number| {
            self.reader.read_frame_into(number, frame)?;
            self.painter.paint(frame, pixels);
            let path = folder.join(format!("frame-{number:0digits$}.png"));
            picture::write(&path, self.painter.size(), &self.palette, pixels)
                .map_err(Error::io("write", &path))?;
            progress.one_more();
            Ok::<_, Error>(())
        })?;
        progress.clear();
        let s = if self.frames.len() == 1 { "" } else { "s" };
        self.say(format!("Wrote {} picture{s} to {}", self.frames.len(), folder.display()));
        Ok(())
    }

    /// Pictures are prepared a few at a time in parallel, and added in order.
    fn write_animation(&self, path: &Path, format: Format) -> Result<(), Error> {
        let size = self.painter.size();
        let failed = || Error::io("write", path);
        let mut animation =
            Animation::create(path, format, size, &self.palette, self.frames.len(), self.args.fps)
                .map_err(failed())?;
        let progress = self.progress("writing the animation");
        let window = 4 * self.threads;
        let prepared: Vec<Mutex<Vec<u8>>> = (0..window).map(|_| Mutex::default()).collect();
        for frames in self.frames.chunks(window) {
            for_each_frame(
                frames,
                self.threads,
                || Ok(self.frame()),
                |frame, at, number| {
                    self.reader.read_frame_into(number, frame)?;
                    let mut pixels = prepared[at].lock().expect("each slot has one thread");
                    self.painter.paint(frame, &mut pixels);
                    format.encode(size, &mut pixels);
                    Ok::<_, Error>(())
                },
            )?;
            for slot in &prepared[..frames.len()] {
                animation.add(&slot.lock().expect("each slot has one thread")).map_err(failed())?;
                progress.one_more();
            }
        }
        animation.finish().map_err(failed())?;
        progress.clear();
        let bytes = fs::metadata(path).map_err(failed())?.len();
        self.say(format!(
            "Wrote {} of {} frames, {}",
            path.display(),
            self.frames.len(),
            human::bytes(bytes)
        ));
        Ok(())
    }

    /// Room for one frame.
    fn frame(&self) -> Vec<f32> {
        vec![0.0; self.painter.shape.iter().product()]
    }

    fn progress(&self, what: &'static str) -> Progress {
        Progress::new(self.frames.len() as u64, Mode::detect(self.args.quiet), move |frames, elapsed| {
            format!("{what}, {}", human::rate(frames as f64 / elapsed.as_secs_f64(), "frames"))
        })
    }

    /// Prints what was written, with how it was painted.
    fn say(&self, what: String) {
        if !self.args.quiet {
            let [height, width] = self.painter.size();
            let ValueRange { min, max } = self.painter.range;
            println!("{what} ({width} × {height} pixels, colours for values from {min} to {max})");
        }
    }
}

/// The numbers of the frames to render, of those that are stored.
fn selected(args: &RenderArgs, stored: u64) -> Result<Vec<u64>, Error> {
    let file = args.file.display();
    let Some(newest) = stored.checked_sub(1) else {
        return Err(Error::Usage(format!("{file}: no frame is stored yet")));
    };
    for (option, frame) in [("--first", Some(args.first)), ("--last", args.last)] {
        if let Some(frame) = frame.filter(|&frame| frame > newest) {
            return Err(Error::Usage(format!("{option} {frame}: {file} has frames 0 to {newest} stored")));
        }
    }
    let last = args.last.unwrap_or(newest);
    if last < args.first {
        return Err(Error::Usage(format!("--last {last}: must not be before --first {}", args.first)));
    }
    let every = usize::try_from(args.every).unwrap_or(usize::MAX);
    Ok((args.first..=last).step_by(every).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Cli, Command};

    fn select(args: &str, stored: u64) -> Result<Vec<u64>, String> {
        let words = ["gray-scott", "render", "run.h5"].into_iter().chain(args.split_whitespace());
        let Command::Render(args) = Cli::parse_from(words).command else { panic!("not render") };
        selected(&args, stored).map_err(|error| error.to_string())
    }

    #[test]
    fn frames_are_selected_by_first_last_and_every() {
        assert_eq!(select("", 4), Ok(vec![0, 1, 2, 3]));
        assert_eq!(select("--first 1 --every 2", 6), Ok(vec![1, 3, 5]));
        assert_eq!(select("--last 1", 6), Ok(vec![0, 1]));
    }

    #[test]
    fn frames_that_are_not_stored_are_refused_by_the_name_of_the_option() {
        assert!(select("", 0).unwrap_err().contains("no frame is stored yet"));
        assert!(select("--last 6", 6).unwrap_err().contains("--last 6: run.h5 has frames 0 to 5"));
        assert!(select("--first 9", 6).unwrap_err().contains("--first 9"));
        assert!(select("--first 3 --last 2", 6).unwrap_err().contains("before --first 3"));
    }
}
