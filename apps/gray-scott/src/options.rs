//! The command line.
//!
//! Parameters of the simulation are optional here: one that is not given comes from the
//! checkpoint when a run is resumed, and from [`Parameters::default`] otherwise. [`ParameterArgs::over`]
//! is where the two meet.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::model::Edges;
use crate::parameters::Parameters;
use crate::presets::{self, PRESETS, Preset};
use crate::render::{Palette, Scale, ValueRange};

/// Gray-Scott reaction-diffusion: simulate it, keep every frame, look at it.
#[derive(Debug, Parser)]
#[command(name = "gray-scott", version, arg_required_else_help = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Advance a simulation and store its frames in an HDF5 file
    Simulate(SimulateArgs),
    /// Turn the frames of a file into pictures or an animation
    Render(RenderArgs),
    /// Say what is in a file, and whether it is complete
    Info(InfoArgs),
    /// Measure the speed of the simulation on this machine
    Bench(BenchArgs),
}

/// Options of `simulate`.
#[derive(Args, Clone, Debug)]
pub struct SimulateArgs {
    /// What is simulated.
    #[command(flatten)]
    pub parameters: ParameterArgs,

    /// List the presets and exit
    #[arg(long, exclusive = true)]
    pub list_presets: bool,

    /// Worker threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1usize, 1024), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// What is stored, and how.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Show neither plan, progress nor verdict; errors only
    #[arg(short, long, help_heading = "Reports")]
    pub quiet: bool,

    /// Write the run's statistics to this file, as one JSON object
    #[arg(long, value_name = "PATH", help_heading = "Reports")]
    pub stats_json: Option<PathBuf>,
}

/// The options that set [`Parameters`].
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Simulation")]
pub struct ParameterArgs {
    /// Rows of the grid [default: 1080]
    #[arg(short, long, value_name = "N", value_parser = whole(1usize, MAX_SIDE), allow_negative_numbers = true)]
    pub rows: Option<usize>,

    /// Columns of the grid [default: 1920]
    #[arg(short, long, value_name = "N", value_parser = whole(1usize, MAX_SIDE), allow_negative_numbers = true)]
    pub cols: Option<usize>,

    /// Frames to store [default: 100]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1u64, MAX_COUNT), allow_negative_numbers = true)]
    pub frames: Option<u64>,

    /// Time steps from one frame to the next [default: 32]
    #[arg(short = 'e', long, value_name = "N", value_parser = whole(1u64, MAX_COUNT), allow_negative_numbers = true)]
    pub steps_per_frame: Option<u64>,

    /// Length of a time step [default: 1]
    #[arg(short = 't', long, value_name = "X", value_parser = real(1e-6f32, 100.0), allow_negative_numbers = true)]
    pub dt: Option<f32>,

    /// Feed rate F [default: 0.014]
    #[arg(short, long, value_name = "X", value_parser = real(0f32, 1.0), allow_negative_numbers = true)]
    pub feed: Option<f32>,

    /// Kill rate k [default: 0.054]
    #[arg(short, long, value_name = "X", value_parser = real(0f32, 1.0), allow_negative_numbers = true)]
    pub kill: Option<f32>,

    /// Diffusion coefficient of U [default: 0.1]
    #[arg(long, value_name = "X", value_parser = real(0f32, 10.0), allow_negative_numbers = true)]
    pub du: Option<f32>,

    /// Diffusion coefficient of V [default: 0.05]
    #[arg(long, value_name = "X", value_parser = real(0f32, 10.0), allow_negative_numbers = true)]
    pub dv: Option<f32>,

    /// Feed and kill rates by name (see --list-presets); --feed and --kill override them
    #[arg(long, value_name = "NAME", value_parser = preset_parser(), hide_possible_values = true)]
    pub preset: Option<Preset>,

    /// What lies outside the grid [default: absorbing]
    #[arg(long, value_name = "KIND")]
    pub edges: Option<Edges>,

    /// Add noise to the initial state, the same for the same seed [default: no noise]
    #[arg(long, value_name = "SEED")]
    pub noise: Option<u64>,
}

/// The options about the output file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// The HDF5 file to write
    #[arg(short, long, value_name = "PATH", default_value = "output.h5")]
    pub output: PathBuf,

    /// Store nothing: simulate only
    #[arg(long, conflicts_with_all = ["output", "force", "resume"])]
    pub no_output: bool,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Continue an interrupted run from the checkpoint beside its file. What is not given comes
    /// from there: `gray-scott simulate --resume -o run.h5` is enough
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,

    /// Frames that may wait for the disk before the simulation waits; 0 hands each over directly
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = whole(0usize, 1024), allow_negative_numbers = true)]
    pub io_buffer: usize,

    /// When frames are made safe against a power failure (they survive a kill in any case)
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub sync: SyncArg,

    /// Compress frames (deflate): 1 is fast, 9 is small; slower by far than not to compress
    #[arg(long, value_name = "LEVEL", value_parser = whole(1u8, 9), allow_negative_numbers = true)]
    pub compress: Option<u8>,

    /// Frames between two checkpoints (each is about as large as two frames); 0 for one at Ctrl-C only
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole(0u64, MAX_COUNT), allow_negative_numbers = true)]
    pub checkpoint_every: u64,
}

/// When frames are made safe against a power failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SyncArg {
    /// When the system sees fit
    None,
    /// At the end of the run
    #[default]
    End,
    /// Each, before it counts as stored
    Frame,
}

/// Options of `render`.
#[derive(Args, Clone, Debug)]
pub struct RenderArgs {
    /// The HDF5 file to read; it may be incomplete, or still growing
    pub file: PathBuf,

    /// The folder for the pictures, made if need be [default: frames, or none with --animation]
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

    /// Take every Nth frame
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = whole(1u64, MAX_COUNT), allow_negative_numbers = true)]
    pub every: u64,

    /// The first frame to take, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,

    /// The last frame to take [default: the last that is stored]
    #[arg(long, value_name = "N")]
    pub last: Option<u64>,

    /// The values of the first and the last colour [default: smallest and largest value in the frames taken]
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub range: Option<ValueRange>,

    /// Size of the pictures: N for N×N pixels per cell, 1/N for a pixel per N×N cells (their mean)
    #[arg(short, long, value_name = "N|1/N", default_value_t)]
    pub scale: Scale,

    /// Worker threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1usize, 1024), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `info`.
#[derive(Args, Clone, Debug)]
pub struct InfoArgs {
    /// The HDF5 file to read
    pub file: PathBuf,
}

/// Options of `bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Measure with this many threads only [default: 1, 2, 4 … all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1usize, 1024), allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// The most rows or columns.
const MAX_SIDE: usize = 1_000_000_000;
/// The most of anything that is counted.
const MAX_COUNT: u64 = 1_000_000_000_000;

impl OutputArgs {
    /// The file to write, if any is to be written.
    pub fn path(&self) -> Option<&Path> {
        (!self.no_output).then_some(&self.output)
    }
}

impl ParameterArgs {
    /// `base` with everything that was given on the command line put in its place.
    pub fn over(&self, base: &Parameters) -> Parameters {
        let preset = self.preset;
        Parameters {
            rows: self.rows.unwrap_or(base.rows),
            cols: self.cols.unwrap_or(base.cols),
            frames: self.frames.unwrap_or(base.frames),
            steps_per_frame: self.steps_per_frame.unwrap_or(base.steps_per_frame),
            dt: self.dt.unwrap_or(base.dt),
            feed: self.feed.or(preset.map(|p| p.feed)).unwrap_or(base.feed),
            kill: self.kill.or(preset.map(|p| p.kill)).unwrap_or(base.kill),
            du: self.du.unwrap_or(base.du),
            dv: self.dv.unwrap_or(base.dv),
            edges: self.edges.unwrap_or(base.edges),
            noise: self.noise.or(base.noise),
        }
    }
}

/// The number of threads to use: as asked, or one per core.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// A parser for whole numbers from `low` to `high`, whose error says so.
fn whole<T: Number>(low: T, high: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| within(text, low, high).ok_or_else(|| format!("must be a whole number from {low} to {high}"))
}

/// A parser for real numbers from `low` to `high`, whose error says so.
fn real(low: f32, high: f32) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| within(text, low, high).ok_or_else(|| format!("must be a number from {low} to {high}"))
}

/// What the parsers above need of a number.
trait Number: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static {}
impl<T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static> Number for T {}

/// The number, if it is one from `low` to `high`. NaN lies in no range.
fn within<T: Number>(text: &str, low: T, high: T) -> Option<T> {
    text.parse().ok().filter(|value| low <= *value && *value <= high)
}

/// A parser for the names of presets.
fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(PRESETS.map(|preset| preset.name))
        .map(|name| presets::find(&name).expect("only names of presets pass the parser"))
}

impl ValueEnum for Edges {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Absorbing => "nothing: U = V = 0",
            Self::Periodic => "the opposite side",
            Self::Clamped => "the nearest cell, repeated",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn simulate(args: &str) -> Result<SimulateArgs, String> {
        let words = ["gray-scott", "simulate"].into_iter().chain(args.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Simulate(args) => Ok(args),
            other => panic!("not simulate: {other:?}"),
        }
    }

    fn render(args: &str) -> Result<RenderArgs, String> {
        let words = ["gray-scott", "render"].into_iter().chain(args.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Render(args) => Ok(args),
            other => panic!("not render: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn nothing_given_means_the_defaults() {
        let args = simulate("").unwrap();
        assert_eq!(args.parameters.over(&Parameters::default()), Parameters::default());
        assert_eq!(args.output.output, PathBuf::from("output.h5"));
        assert_eq!(args.output.io_buffer, 2);
    }

    #[test]
    fn short_options_are_those_of_the_public_programs() {
        let args = simulate("-r 7 -c 5 -n 3 -e 2 -t 0.5 -f 0.03 -k 0.06 -o x.h5 -i 0 -j 2 -q").unwrap();
        let p = args.parameters.over(&Parameters::default());
        assert_eq!((p.rows, p.cols, p.frames, p.steps_per_frame), (7, 5, 3, 2));
        assert_eq!((p.dt, p.feed, p.kill), (0.5, 0.03, 0.06));
        assert_eq!((args.output.io_buffer, args.threads, args.quiet), (0, Some(2), true));
    }

    #[test]
    fn a_preset_sets_both_rates_unless_they_are_given() {
        let args = simulate("--preset u-skate --feed 0.05").unwrap();
        let p = args.parameters.over(&Parameters::default());
        assert_eq!((p.feed, p.kill), (0.05, 0.06093));
    }

    #[test]
    fn bad_values_name_the_option_and_the_range() {
        let cases = [
            ("--rows 0", "--rows", "from 1 to 1000000000"),
            ("-c -3", "--cols", "from 1 to"),
            ("-n 0", "--frames", "from 1 to"),
            ("-e 0", "--steps-per-frame", "from 1 to"),
            ("--feed 1.5", "--feed", "from 0 to 1"),
            ("--kill -0.1", "--kill", "from 0 to 1"),
            ("--dt nan", "--dt", "from 0.000001 to 100"),
            ("--du inf", "--du", "from 0 to 10"),
            ("--io-buffer many", "--io-buffer", "from 0 to 1024"),
            ("-j 0", "--threads", "from 1 to 1024"),
            ("--edges soft", "--edges", "periodic"),
            ("--preset nothing", "--preset", "possible values"),
        ];
        for (args, option, range) in cases {
            let error = simulate(args).unwrap_err();
            assert!(error.contains(option) && error.contains(range), "{args}: {error}");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for args in ["--resume --force", "--resume --no-output", "--no-output -o x.h5", "--list-presets -q"] {
            let error = simulate(args).unwrap_err();
            assert!(error.contains("cannot be used with"), "{args}: {error}");
        }
    }

    #[test]
    fn render_reads_ranges_and_scales() {
        let args = render("run.h5 --range -0.5..1 --scale 1/4 --palette viridis").unwrap();
        assert_eq!(args.range, Some(ValueRange { min: -0.5, max: 1.0 }));
        assert_eq!(args.scale.to_string(), "1/4");
        for bad in ["run.h5 --range 1..0", "run.h5 --scale 0", "run.h5 --scale 1/0", "run.h5 --every 0", ""] {
            render(bad).unwrap_err();
        }
    }
}
