//! The options of `simulate`.
//!
//! Parameters of the simulation are optional here: one that is not given comes from the
//! file when a run is resumed, and from [`Parameters::default`] otherwise. [`ParameterArgs::over`]
//! merges the two.

use crate::{
    commands::arguments::{MAX_COUNT, MAX_SIDE, MAX_THREADS, real, whole},
    files::checkpoint,
    model::{
        Edges,
        presets::{self, PRESETS, Preset},
    },
    parameters::Parameters,
    run::Checkpoints,
};
use anabranch_store::SyncLevel;
use clap::{
    ArgAction, Args, ValueEnum,
    builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser},
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Options of `simulate`.
#[derive(Args, Clone, Debug)]
pub struct SimulateArgs {
    /// The parameters of the simulation.
    #[command(flatten)]
    pub parameters: ParameterArgs,

    /// List the presets and exit
    #[arg(long, exclusive = true)]
    pub list_presets: bool,

    /// Compute threads [default: ANABRANCH_NUM_THREADS, or all cores]
    #[arg(short = 'j', long, value_name = "N", value_parser = whole(1, MAX_THREADS), allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Compute on a device: host, auto (a GPU if there is one), gpu, or a part of a name that
    /// `gray-scott devices` lists [default: ANABRANCH_DEVICE, or host]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub device: Option<String>,

    /// End the run at the first frame with a value that is infinite or NaN, before it is stored
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true", require_equals = true)]
    pub check_finite: bool,

    /// The output file.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Print nothing but errors
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
    #[arg(short, long, value_name = "N", value_parser = whole(1, MAX_SIDE), allow_negative_numbers = true)]
    pub rows: Option<usize>,

    /// Columns of the grid [default: 1920]
    #[arg(short, long, value_name = "N", value_parser = whole(1, MAX_SIDE), allow_negative_numbers = true)]
    pub cols: Option<usize>,

    /// Frames to store [default: 100]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1, MAX_COUNT), allow_negative_numbers = true)]
    pub frames: Option<u64>,

    /// Time steps from one frame to the next [default: 32]
    #[arg(short = 'e', long, value_name = "N", value_parser = whole(1, MAX_COUNT), allow_negative_numbers = true)]
    pub steps_per_frame: Option<u64>,

    /// Length of a time step [default: 1]
    #[arg(short = 't', long, value_name = "X", value_parser = real(1e-6, 100.0), allow_negative_numbers = true)]
    pub dt: Option<f32>,

    /// Feed rate F [default: 0.014]
    #[arg(short, long, value_name = "X", value_parser = real(0.0, 1.0), allow_negative_numbers = true)]
    pub feed: Option<f32>,

    /// Kill rate k [default: 0.054]
    #[arg(short, long, value_name = "X", value_parser = real(0.0, 1.0), allow_negative_numbers = true)]
    pub kill: Option<f32>,

    /// Diffusion coefficient of U [default: 0.1]
    #[arg(long, value_name = "X", value_parser = real(0.0, 10.0), allow_negative_numbers = true)]
    pub du: Option<f32>,

    /// Diffusion coefficient of V [default: 0.05]
    #[arg(long, value_name = "X", value_parser = real(0.0, 10.0), allow_negative_numbers = true)]
    pub dv: Option<f32>,

    /// Feed and kill rates by name (see --list-presets); --feed and --kill override them
    #[arg(long, value_name = "NAME", value_parser = preset_parser(), hide_possible_values = true)]
    pub preset: Option<Preset>,

    /// The values outside the grid [default: absorbing]
    #[arg(long, value_name = "KIND")]
    pub edges: Option<Edges>,

    /// Add noise to the initial state; equal seeds give equal noise [default: no noise]
    #[arg(long, value_name = "SEED")]
    pub noise: Option<u64>,
}

/// The options of the output file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// The HDF5 file to write
    #[arg(short, long, value_name = "PATH", default_value = "output.h5")]
    pub output: PathBuf,

    /// Simulate without storing anything
    #[arg(long, conflicts_with_all = ["output", "force", "resume"])]
    pub no_output: bool,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Continue an interrupted run from the checkpoint beside its file. The parameters come from the file:
    /// `gray-scott simulate --resume -o run.h5` is enough. With more --frames than the file has room for, a
    /// run is extended, also a complete one
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,

    /// Frames that may wait for the disk before the simulation waits for it. With --no-output a device keeps
    /// this number of frames until their check has ended
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = whole(0usize, 1024), allow_negative_numbers = true)]
    pub io_buffer: usize,

    /// When frames are made safe against a power failure (stored frames survive a kill in any case)
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub sync: SyncArg,

    /// Compress frames (deflate): 1 is fast, 9 is small; both are far slower than no compression
    #[arg(long, value_name = "LEVEL", value_parser = whole(1u8, 9), allow_negative_numbers = true)]
    pub compress: Option<u8>,

    /// Frames between two checkpoints, each about as large as two frames; 0 for none [default: 50]
    #[arg(long, value_name = "N", value_parser = whole(0, MAX_COUNT), allow_negative_numbers = true)]
    pub checkpoint_every: Option<u64>,

    /// Seconds between two checkpoints, also within a frame; 0 for none. Ctrl-C writes one in any case
    /// [default: 300]
    #[arg(long, value_name = "X", value_parser = real(0.0, 1e9), allow_negative_numbers = true)]
    pub checkpoint_seconds: Option<f32>,
}

/// The moment at which frames are made safe against a power failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SyncArg {
    /// When the operating system writes them
    None,
    /// At the end of the run
    #[default]
    End,
    /// Each frame, before it counts as stored
    Frame,
}

impl From<SyncArg> for SyncLevel {
    fn from(sync: SyncArg) -> Self {
        match sync {
            SyncArg::None => Self::None,
            SyncArg::End => Self::End,
            SyncArg::Frame => Self::Frame,
        }
    }
}

impl SimulateArgs {
    /// Frames that may wait for storage. A device checks frames that are not stored: they wait until the host
    /// knows whether they are finite, so that the device has the next steps before that.
    pub fn queue(&self, on_device: bool) -> usize {
        let wait = !self.output.no_output || on_device && self.check_finite;
        if wait { self.output.io_buffer } else { 0 }
    }
}

impl OutputArgs {
    /// The checkpoints of the run; `None` with `--no-output`.
    pub fn checkpoints(&self) -> Option<Checkpoints> {
        let seconds = Some(self.checkpoint_seconds.unwrap_or(300.0)).filter(|&seconds| seconds > 0.0);
        Some(Checkpoints {
            path: checkpoint::path_of(self.path()?),
            every: self.checkpoint_every.unwrap_or(50),
            interval: seconds.map(Duration::from_secs_f32),
        })
    }

    /// The file to write; `None` with `--no-output`.
    pub fn path(&self) -> Option<&Path> {
        (!self.no_output).then_some(&self.output)
    }
}

impl ParameterArgs {
    /// `base`, with every parameter that was given on the command line in its place.
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

/// A parser for the names of the presets.
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
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: SimulateArgs,
    }

    fn parse(args: &str) -> Result<SimulateArgs, String> {
        let words = ["simulate"].into_iter().chain(args.split_whitespace());
        CommandLine::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_command_line_means_the_defaults() {
        let args = parse("").unwrap();
        assert_eq!(args.parameters.over(&Parameters::default()), Parameters::default());
        assert_eq!(args.output.output, PathBuf::from("output.h5"));
        assert_eq!(args.output.io_buffer, 2);
    }

    #[test]
    fn frames_that_are_not_stored_wait_on_a_device_that_checks_them() {
        for (words, queues) in
            [("", [5, 5]), ("--no-output", [5, 0]), ("--no-output --check-finite=false", [0, 0])]
        {
            let args = parse(&format!("-i 5 {words}")).unwrap();
            assert_eq!([true, false].map(|on_device| args.queue(on_device)), queues, "{words}");
        }
    }

    #[test]
    fn short_options_are_those_of_the_public_programs() {
        let args = parse("-r 7 -c 5 -n 3 -e 2 -t 0.5 -f 0.03 -k 0.06 -o x.h5 -i 0 -j 2 -q").unwrap();
        let p = args.parameters.over(&Parameters::default());
        assert_eq!((p.rows, p.cols, p.frames, p.steps_per_frame), (7, 5, 3, 2));
        assert_eq!((p.dt, p.feed, p.kill), (0.5, 0.03, 0.06));
        assert_eq!((args.output.io_buffer, args.threads, args.quiet), (0, Some(2), true));
    }

    #[test]
    fn a_preset_sets_both_rates_unless_they_are_given() {
        let args = parse("--preset u-skate --feed 0.05").unwrap();
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
            ("--checkpoint-seconds -1", "--checkpoint-seconds", "from 0 to"),
            ("-j 0", "--threads", "from 1 to 1024"),
            ("--edges soft", "--edges", "periodic"),
            ("--preset nothing", "--preset", "possible values"),
        ];
        for (args, option, range) in cases {
            let error = parse(args).unwrap_err();
            assert!(error.contains(option) && error.contains(range), "{args}: {error}");
        }
    }

    #[test]
    fn finite_values_are_checked_unless_that_is_turned_off() {
        for (args, check) in [("", true), ("--check-finite", true), ("--check-finite=false", false)] {
            assert_eq!(parse(args).unwrap().check_finite, check, "{args}");
        }
        parse("--check-finite=maybe").unwrap_err();
    }

    #[test]
    fn checkpoints_are_written_by_frames_by_time_or_not_at_all() {
        let checkpoints = |args| parse(args).unwrap().output.checkpoints().map(|c| (c.every, c.interval));
        assert_eq!(checkpoints(""), Some((50, Some(Duration::from_secs(300)))));
        assert_eq!(checkpoints("--checkpoint-every 0 --checkpoint-seconds 0"), Some((0, None)));
        let half = Duration::from_millis(500);
        assert_eq!(checkpoints("--checkpoint-every 3 --checkpoint-seconds 0.5"), Some((3, Some(half))));
        assert_eq!(checkpoints("--no-output"), None);
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for args in ["--resume --force", "--resume --no-output", "--no-output -o x.h5", "--list-presets -q"] {
            let error = parse(args).unwrap_err();
            assert!(error.contains("cannot be used with"), "{args}: {error}");
        }
    }
}
