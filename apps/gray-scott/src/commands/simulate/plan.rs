//! The plan that is printed before a run: what is simulated, and what is written where.

use crate::{commands::simulate::arguments::OutputArgs, error::Error, parameters::Parameters};
use anabranch_store::{SyncLevel, available_bytes};
use indicatif::DecimalBytes;

/// Describes the run from `first_frame` on. `processor` names the threads and the instruction set.
///
/// # Errors
/// When the free space on the disk cannot be read.
pub fn describe(
    p: &Parameters,
    args: &OutputArgs,
    first_frame: u64,
    processor: &str,
) -> Result<String, Error> {
    let noise = p.noise.map_or(String::new(), |seed| format!(", noise {seed}"));
    let mut text = format!(
        "Simulating {} × {} cells, {} frames of {} steps, F {}, k {}, {} edges{noise}, on {processor}",
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

/// Describes the output file, and the room on its disk.
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
    let free = free.map_or(String::new(), |bytes| format!("; {} free there", DecimalBytes(bytes)));
    Ok(format!(
        "{verb} {}: {}{compression} ({} frames of {}{already}), {safety}{free}",
        path.display(),
        DecimalBytes(p.total_bytes()),
        p.frames,
        DecimalBytes(p.frame_bytes()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: OutputArgs,
    }

    fn output_args(args: &[&str]) -> OutputArgs {
        CommandLine::parse_from(["simulate"].iter().chain(args)).args
    }

    #[test]
    fn the_plan_names_the_file_and_its_size() {
        let text =
            describe(&Parameters::default(), &output_args(&["-o", "nowhere.h5"]), 0, "2 threads").unwrap();
        for part in
            ["1080 × 1920", "100 frames of 32 steps", "Writing nowhere.h5: 829.44 MB", "2 threads", "free"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("Warning"));
    }

    #[test]
    fn the_plan_warns_of_a_time_step_that_is_too_long() {
        let p = Parameters { dt: 8.0, ..Parameters::default() };
        let text = describe(&p, &output_args(&["--no-output"]), 0, "2 threads").unwrap();
        assert!(text.contains("Warning") && text.contains("--dt") && text.contains("Storing nothing"));
    }
}
