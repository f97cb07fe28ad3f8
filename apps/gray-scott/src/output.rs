//! The output file: what is in it besides the frames, and what is said about it before the start.
//!
//! Frame i holds V after (i + 1) × steps-per-frame steps. The parameters and the program's version are attributes of
//! the file, under the options' names with `_` for `-`; rows, columns and frames are the shape of `/matrix`.

use std::path::Path;

use anabranch_store::{Attr, FileOptions, Reader, Stamp, SyncLevel, available_bytes};

use crate::error::Error;
use crate::human;
use crate::options::{OutputArgs, SyncArg};
use crate::parameters::Parameters;

/// The dataset that holds the frames.
pub const DATASET: &str = "matrix";

/// The file that these parameters and options ask for.
///
/// The version of the program is recorded when a file is created, and may differ when it is resumed.
pub fn file_options(parameters: &Parameters, args: &OutputArgs) -> FileOptions {
    let mut options = FileOptions::new(&args.output)
        .dataset(DATASET)
        .frames(parameters.frames)
        .frame_shape(&[parameters.rows, parameters.cols])
        .stamps(true)
        .force(args.force)
        .sync(args.sync.into())
        .compress(args.compress);
    for (name, value) in attributes(parameters) {
        options = options.attribute(name, value);
    }
    if args.resume {
        return options;
    }
    options.attribute("program", env!("CARGO_PKG_NAME")).attribute("version", env!("CARGO_PKG_VERSION"))
}

/// Step and time of a frame, which is counted from 0.
pub fn stamp(parameters: &Parameters, frame: u64) -> Stamp {
    let step = parameters.step_of_frame(frame);
    Stamp { step, time: step as f64 * f64::from(parameters.dt) }
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

/// The parameters that are attributes of the file.
pub(crate) fn attributes(p: &Parameters) -> Vec<(&'static str, Attr)> {
    let mut attributes = vec![
        ("steps_per_frame", p.steps_per_frame.into()),
        ("dt", p.dt.into()),
        ("feed", p.feed.into()),
        ("kill", p.kill.into()),
        ("du", p.du.into()),
        ("dv", p.dv.into()),
        ("edges", p.edges.name().into()),
    ];
    attributes.extend(p.noise.map(|seed| ("noise", seed.into())));
    attributes
}

/// The parameters of the run in a file. `None` if this program did not write it.
pub fn parameters_of(reader: &Reader) -> Option<Parameters> {
    read_parameters(reader.frames(), reader.frame_shape(), reader.attributes())
}

/// The same for parameters that are attributes elsewhere.
pub(crate) fn read_parameters(
    frames: u64,
    frame_shape: &[usize],
    attributes: &[(String, Attr)],
) -> Option<Parameters> {
    let find = |name: &str| attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let real = |name: &str| match find(name) {
        Some(&Attr::F32(value)) => Some(value),
        _ => None,
    };
    let count = |name: &str| match find(name) {
        Some(&Attr::U64(value)) => Some(value),
        _ => None,
    };
    let &[rows, cols] = frame_shape else { return None };
    let Some(Attr::String(edges)) = find("edges") else { return None };
    Some(Parameters {
        rows,
        cols,
        frames,
        steps_per_frame: count("steps_per_frame")?,
        dt: real("dt")?,
        feed: real("feed")?,
        kill: real("kill")?,
        du: real("du")?,
        dv: real("dv")?,
        edges: edges.parse().ok()?,
        noise: count("noise"),
    })
}

/// Says what is about to happen: what is simulated, on what, and what is written where.
///
/// # Errors
/// When the system cannot tell the room on the disk.
pub fn plan(p: &Parameters, args: &OutputArgs, first_frame: u64, on: &str) -> Result<String, Error> {
    let noise = p.noise.map_or(String::new(), |seed| format!(", noise {seed}"));
    let mut text = format!(
        "Simulating {} × {} cells, {} frames of {} steps, F {}, k {}, {} edges{noise}, on {on}",
        p.rows,
        p.cols,
        p.frames - first_frame,
        p.steps_per_frame,
        p.feed,
        p.kill,
        p.edges,
    );
    if !p.is_stable() {
        text += &format!(
            "\nWarning: diffusion is unstable for dt × D above 0.5, and here it is {}: choose a smaller --dt",
            p.dt * p.du.max(p.dv)
        );
    }
    if args.no_output {
        return Ok(text + "\nStoring nothing (--no-output)");
    }
    Ok(text + "\n" + &storage_plan(p, args, first_frame)?)
}

/// What is written where, and how much room there is.
fn storage_plan(p: &Parameters, args: &OutputArgs, first_frame: u64) -> Result<String, Error> {
    let path = &args.output;
    let verb = match path.exists() {
        true if args.resume => "Continuing",
        true if args.force => "Replacing",
        _ => "Writing",
    };
    let compression =
        args.compress.map_or(String::new(), |level| format!(" before compression at level {level}"));
    let already =
        if first_frame > 0 { format!(", going on with number {first_frame}") } else { String::new() };
    let safety = match SyncLevel::from(args.sync) {
        SyncLevel::None => "left to the system",
        SyncLevel::End => "safe on the device at the end",
        SyncLevel::Frame => "each safe on the device before the next",
    };
    let free = available_bytes(path)?;
    let free = free.map_or(String::new(), |bytes| format!("; {} free there", human::bytes(bytes)));
    Ok(format!(
        "{verb} {}: {}{compression} ({} frames of {}{already}), {safety}{free}",
        path.display(),
        human::bytes(p.total_bytes()),
        p.frames,
        human::bytes(p.frame_bytes()),
    ))
}

/// Refuses a new file whose checkpoint would have no room beside it. That the frames have room is seen to when the
/// file is created.
///
/// # Errors
/// When there is no room, or the system cannot tell.
pub fn check_room(p: &Parameters, args: &OutputArgs) -> Result<(), Error> {
    let path = &args.output;
    if path.exists() {
        return Ok(());
    }
    let frames = if args.compress.is_some() { 0 } else { p.total_bytes() };
    // A checkpoint is two frames large, and the old one is there until the new one is complete.
    let needed = frames.saturating_add(4 * p.frame_bytes());
    if let Some(available) = available_bytes(path)?
        && needed > available
    {
        return Err(Error::NoSpace { path: path.clone(), needed, available });
    }
    Ok(())
}

/// The command that continues the run that is stored at `path`.
pub fn resume_command(path: &Path) -> String {
    human::command("simulate --resume -o", path)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Cli, Command};

    fn output_args(args: &[&str]) -> OutputArgs {
        let words = ["gray-scott", "simulate"].into_iter().chain(args.iter().copied());
        match Cli::parse_from(words).command {
            Command::Simulate(args) => args.output,
            other => panic!("not simulate: {other:?}"),
        }
    }

    #[test]
    fn parameters_survive_the_file() {
        let shape = |p: &Parameters| [p.rows, p.cols];
        for noise in [None, Some(7)] {
            let p = Parameters { noise, kill: 0.06093, rows: 7, ..Parameters::default() };
            let attributes: Vec<_> = attributes(&p).into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
            assert_eq!(read_parameters(p.frames, &shape(&p), &attributes), Some(p.clone()));
            assert_eq!(read_parameters(p.frames, &shape(&p), &attributes[1..]), None);
        }
    }

    #[test]
    fn the_plan_says_what_is_written_where_and_how_large_it_gets() {
        let text = plan(&Parameters::default(), &output_args(&["-o", "nowhere.h5"]), 0, "2 threads").unwrap();
        for part in
            ["1080 × 1920", "100 frames of 32 steps", "Writing nowhere.h5: 829 MB", "2 threads", "free"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("Warning"));
    }

    #[test]
    fn the_plan_warns_of_a_time_step_that_is_too_long() {
        let p = Parameters { dt: 8.0, ..Parameters::default() };
        let text = plan(&p, &output_args(&["--no-output"]), 0, "2 threads").unwrap();
        assert!(text.contains("Warning") && text.contains("--dt") && text.contains("Storing nothing"));
    }

    #[test]
    fn frames_are_stamped_with_the_steps_and_the_time_behind_them() {
        let p = Parameters { dt: 0.5, ..Parameters::default() };
        assert_eq!((stamp(&p, 0).step, stamp(&p, 0).time), (32, 16.0));
        assert_eq!(stamp(&p, 99).step, 3200);
    }
}
