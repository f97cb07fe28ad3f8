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

    /// The folder for the pictures, created if it does not exist [default: frames, or none with --animation]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

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

    /// Worker threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1, MAX_THREADS), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl RenderArgs {
    /// The folder of the single pictures. `None` if only an animation is wanted.
    pub fn pictures_folder(&self) -> Option<&Path> {
        match (&self.output, &self.animation) {
            (Some(folder), _) => Some(folder),
            (None, Some(_)) => None,
            (None, None) => Some(Path::new("frames")),
        }
    }
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
    fn ranges_and_scales_are_parsed() {
        let args = parse("run.h5 --range -0.5..1 --scale 1/4 --palette viridis").unwrap();
        assert_eq!(args.range, Some(ValueRange { min: -0.5, max: 1.0 }));
        assert_eq!(args.scale.to_string(), "1/4");
        for bad in ["run.h5 --range 1..0", "run.h5 --scale 0", "run.h5 --scale 1/0", "run.h5 --every 0", ""] {
            parse(bad).unwrap_err();
        }
    }
}
