//! The options of `render`.

use crate::commands::{
    arguments::{MAX_COUNT, MAX_THREADS, whole},
    render::paint::{Palette, Scale, ValueRange},
};
use clap::Args;
use std::path::{Path, PathBuf};

/// Options of `render`.
#[derive(Args, Clone, Debug)]
pub struct RenderArgs {
    /// The HDF5 file to read; it may be incomplete, or still growing
    pub file: PathBuf,

    /// The folder for the pictures, created if it does not exist, or - to write them one after the other to
    /// standard output [default: frames, or none with --animation]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Remove the pictures of earlier renderings from the folder
    #[arg(long)]
    pub clean: bool,

    /// Write an animation: a GIF, or an animated PNG if the name ends in .png or .apng
    #[arg(short, long, value_name = "PATH")]
    pub animation: Option<PathBuf>,

    /// Frames per second of the animation
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole(1u16, 100), allow_negative_numbers = true)]
    pub fps: u16,

    /// Colours, from the smallest value to the largest
    #[arg(short, long, value_name = "NAME", value_enum, default_value_t)]
    pub palette: Palette,

    /// Render every Nth frame
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = whole(1, MAX_COUNT), allow_negative_numbers = true)]
    pub every: u64,

    /// The first frame to render, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,

    /// The last frame to render [default: the last stored frame]
    #[arg(long, value_name = "N")]
    pub last: Option<u64>,

    /// The values of the first and the last colour [default: smallest and largest value in these frames]
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub range: Option<ValueRange>,

    /// Size of the pictures: N for N×N pixels per cell, 1/N for a pixel per N×N cells (their mean)
    #[arg(short, long, value_name = "N|1/N", default_value_t)]
    pub scale: Scale,

    /// Threads [default: ANABRANCH_NUM_THREADS, or all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1, MAX_THREADS), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl RenderArgs {
    /// The destination of the single pictures.
    pub fn pictures(&self) -> Pictures<'_> {
        match (&self.output, &self.animation) {
            (Some(folder), _) if folder == Path::new("-") => Pictures::StandardOutput,
            (Some(folder), _) => Pictures::Folder(folder),
            (None, Some(_)) => Pictures::None,
            (None, None) => Pictures::Folder(Path::new("frames")),
        }
    }
}

/// The destination of single pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures<'a> {
    /// Files in a folder.
    Folder(&'a Path),
    /// Standard output, one after the other.
    StandardOutput,
    /// No pictures: only an animation is wanted.
    None,
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

    fn parse(args: &str) -> Result<RenderArgs, String> {
        let words = ["render"].into_iter().chain(args.split_whitespace());
        CommandLine::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn pictures_go_to_a_folder_to_standard_output_or_nowhere() {
        let cases = [
            ("run.h5", Pictures::Folder(Path::new("frames"))),
            ("run.h5 -o some", Pictures::Folder(Path::new("some"))),
            ("run.h5 -o -", Pictures::StandardOutput),
            ("run.h5 -a a.gif", Pictures::None),
            ("run.h5 -a a.gif -o -", Pictures::StandardOutput),
        ];
        for (args, pictures) in cases {
            assert_eq!(parse(args).unwrap().pictures(), pictures, "{args}");
        }
    }

    #[test]
    fn ranges_and_scales_are_parsed() {
        let args = parse("run.h5 --range -0.5..1 --scale 1/4 --palette viridis").unwrap();
        assert_eq!(args.range, Some(ValueRange { min: -0.5, max: 1.0 }));
        assert_eq!(args.scale.to_string(), "1/4");
        for bad in ["run.h5 --range 1..0", "run.h5 --scale 0", "run.h5 --scale 1/0", "run.h5 --every 0", ""] {
            parse(bad).unwrap_err();
        }
    }
}
