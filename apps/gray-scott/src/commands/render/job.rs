//! The passes over the frames of a file.

use crate::{
    commands::{
        arguments::threads,
        render::{
            animation::{Animation, Format},
            arguments::{Pictures, RenderArgs},
            frames::for_each_frame,
            memory, older,
            paint::{Painter, ValueRange},
            picture,
        },
    },
    error::Error,
    files::whole::WholeFile,
    report::{
        progress::{Mode, Progress},
        units,
    },
};
use anabranch_store::Reader;
use indicatif::DecimalBytes;
use parking_lot::Mutex;
use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// The state that the passes over the frames share.
pub(super) struct Job<'a> {
    args: &'a RenderArgs,
    reader: Reader,
    frames: Vec<u64>,
    threads: usize,
    painter: Painter,
    palette: Vec<u8>,
}

impl<'a> Job<'a> {
    /// Opens the file and selects the frames. Refuses pictures that are too large. The range of values is
    /// still empty, unless it is given.
    pub(super) fn new(args: &'a RenderArgs) -> Result<Self, Error> {
        let reader = Reader::open(&args.file)?;
        let &[rows, cols] = reader.frame_shape() else {
            let shape = reader.frame_shape();
            return Err(Error::Usage(format!(
                "{}: frames of shape {shape:?} cannot be rendered, only frames of two dimensions",
                args.file.display()
            )));
        };
        let frames = selected(args, reader.stored_frames()?)?;
        let range = args.range.unwrap_or(ValueRange::EMPTY);
        let painter = Painter { shape: [rows, cols], scale: args.scale, range };
        let threads = threads(args.threads)?;
        memory::Need {
            painter,
            frames: frames.len(),
            threads,
            in_order: args.animation.is_some() || args.pictures() == Pictures::StandardOutput,
            compressed: reader.is_compressed(),
        }
        .check()?;
        Ok(Self { args, reader, frames, threads, painter, palette: args.palette.colours() })
    }

    /// Creates the folder, and refuses one in which the pictures cannot be written.
    pub(super) fn prepare(&self, folder: &Path) -> Result<(), Error> {
        picture::sides(self.painter.size()).map_err(Error::io("write pictures to", folder))?;
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        let path = folder.join(self.name(self.frames[0]));
        WholeFile::create(&path).map(drop).map_err(Error::io("write", &path))
    }

    /// Starts the file of the animation.
    pub(super) fn begin_animation(&self, path: &Path, format: Format) -> Result<Animation, Error> {
        Animation::create(path, format, self.painter.size(), &self.palette, self.frames.len(), self.args.fps)
            .map_err(Error::io("write", path))
    }

    /// Finds the smallest and the largest value in all selected frames, unless the range is given.
    pub(super) fn find_range(&mut self) -> Result<(), Error> {
        if self.args.range.is_some() {
            return Ok(());
        }
        let range = Mutex::new(ValueRange::EMPTY);
        let progress = self.progress("looking for the range of values");
        for_each_frame(
            &self.frames,
            self.threads,
            || Ok(self.frame()),
            |frame, _, number| {
                self.reader.read_frame_into(number, frame)?;
                let found = ValueRange::of(frame);
                let mut range = range.lock();
                *range = range.join(found);
                progress.one_more();
                Ok::<_, Error>(())
            },
        )?;
        progress.clear();
        self.painter.range = range.into_inner();
        Ok(())
    }

    /// The name of the picture of a frame.
    fn name(&self, frame: u64) -> String {
        let digits = (self.reader.frames().saturating_sub(1)).to_string().len().max(4);
        format!("frame-{frame:0digits$}.png")
    }

    /// Writes a file for each picture. Older pictures in the folder are removed with `--clean`, and otherwise
    /// counted.
    pub(super) fn write_pictures(&self, folder: &Path) -> Result<(), Error> {
        let progress = self.progress("writing pictures");
        let scratch = || Ok((self.frame(), Vec::new()));
        for_each_frame(&self.frames, self.threads, scratch, |(frame, pixels), _, number| {
            self.reader.read_frame_into(number, frame)?;
            self.painter.paint(frame, pixels);
            let path = folder.join(self.name(number));
            picture::write(&path, self.painter.size(), &self.palette, pixels)
                .map_err(Error::io("write", &path))?;
            progress.one_more();
            Ok::<_, Error>(())
        })?;
        progress.clear();
        let written = self.frames.iter().map(|&number| self.name(number)).collect();
        let older = older::pictures(folder, &written)?;
        if self.args.clean {
            older::remove(&older)?;
        }
        self.say(format!("Wrote {} to {}", count(self.frames.len()), folder.display()));
        if !self.args.quiet && !older.is_empty() {
            let (pictures, folder) = (count(older.len()), folder.display());
            match self.args.clean {
                true => eprintln!("Removed {pictures} of earlier renderings from {folder}"),
                false => eprintln!(
                    "{folder} also holds {pictures} of earlier renderings; --clean removes such pictures"
                ),
            }
        }
        Ok(())
    }

    /// Writes the pictures to standard output, one after the other. A reader that closes it early is no
    /// error.
    pub(super) fn write_to_standard_output(&self) -> Result<(), Error> {
        let progress = self.progress("writing pictures");
        let mut out = io::stdout().lock();
        let size = self.painter.size();
        let done = self.in_order(
            |pixels| {
                let mut png = Vec::new();
                picture::encode(&mut png, size, &self.palette, pixels)?;
                *pixels = png;
                Ok(())
            },
            |png| {
                progress.one_more();
                out.write_all(png)
            },
            Path::new("standard output"),
        );
        progress.clear();
        match done.and_then(|()| out.flush().map_err(Error::io("write to", Path::new("standard output")))) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Writes the pictures of the animation, and completes it.
    pub(super) fn write_animation(&self, mut animation: Animation) -> Result<(), Error> {
        let (format, size, path) = (animation.format(), self.painter.size(), animation.path().to_owned());
        let failed = || Error::io("write", &path);
        let progress = self.progress("writing the animation");
        let encode = |pixels: &mut Vec<u8>| {
            format.encode(size, pixels);
            Ok(())
        };
        let add = |encoded: &[u8]| {
            progress.one_more();
            animation.add(encoded)
        };
        self.in_order(encode, add, &path)?;
        animation.finish().map_err(failed())?;
        progress.clear();
        let bytes = fs::metadata(&path).map_err(failed())?.len();
        self.say(format!(
            "Wrote {} of {} frames, {}",
            path.display(),
            self.frames.len(),
            DecimalBytes(bytes)
        ));
        Ok(())
    }

    /// Paints and encodes pictures, a few at a time in parallel, and passes them on in order. Errors name
    /// `to`.
    fn in_order(
        &self,
        encode: impl Fn(&mut Vec<u8>) -> io::Result<()> + Sync,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
        to: &Path,
    ) -> Result<(), Error> {
        let window = memory::WINDOW * self.threads;
        let prepared: Vec<Mutex<Vec<u8>>> = (0..window).map(|_| Mutex::default()).collect();
        for frames in self.frames.chunks(window) {
            for_each_frame(
                frames,
                self.threads,
                || Ok(self.frame()),
                |frame, at, number| {
                    self.reader.read_frame_into(number, frame)?;
                    let mut pixels = prepared[at].lock();
                    self.painter.paint(frame, &mut pixels);
                    encode(&mut pixels).map_err(Error::io("write", to))
                },
            )?;
            for slot in &prepared[..frames.len()] {
                take(&slot.lock()).map_err(Error::io("write", to))?;
            }
        }
        Ok(())
    }

    /// Memory for one frame.
    fn frame(&self) -> Vec<f32> {
        vec![0.0; self.painter.shape.iter().product()]
    }

    fn progress(&self, what: &'static str) -> Progress {
        Progress::new(self.frames.len() as u64, Mode::detect(self.args.quiet), move |frames, elapsed| {
            format!("{what}, {}", units::rate(frames / elapsed.as_secs_f64(), "frames"))
        })
    }

    /// Prints `what` was written, with the size and the colours of the pictures.
    fn say(&self, what: String) {
        if !self.args.quiet {
            let [height, width] = self.painter.size();
            let ValueRange { min, max } = self.painter.range;
            let text = format!("{what} ({width} × {height} pixels, colours for values from {min} to {max})");
            match self.args.pictures() {
                Pictures::StandardOutput => eprintln!("{text}"),
                _ => println!("{text}"),
            }
        }
    }
}

/// `1 picture`, `2 pictures`.
fn count(pictures: usize) -> String {
    format!("{pictures} picture{}", if pictures == 1 { "" } else { "s" })
}

/// The numbers of the selected frames, of which `stored` are stored.
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
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: RenderArgs,
    }

    fn select(args: &str, stored: u64) -> Result<Vec<u64>, String> {
        let words = ["render", "run.h5"].into_iter().chain(args.split_whitespace());
        selected(&CommandLine::parse_from(words).args, stored).map_err(|error| error.to_string())
    }

    #[test]
    fn first_last_and_every_select_frames() {
        assert_eq!(select("", 4), Ok(vec![0, 1, 2, 3]));
        assert_eq!(select("--first 1 --every 2", 6), Ok(vec![1, 3, 5]));
        assert_eq!(select("--last 1", 6), Ok(vec![0, 1]));
    }

    #[test]
    fn an_option_that_selects_a_frame_that_is_not_stored_is_named() {
        assert!(select("", 0).unwrap_err().contains("no frame is stored yet"));
        assert!(select("--last 6", 6).unwrap_err().contains("--last 6: run.h5 has frames 0 to 5"));
        assert!(select("--first 9", 6).unwrap_err().contains("--first 9"));
        assert!(select("--first 3 --last 2", 6).unwrap_err().contains("before --first 3"));
    }
}
