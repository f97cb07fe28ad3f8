//! The plan that is printed before a run: what is simulated, and what is written where.

use crate::{
    commands::simulate::{arguments::OutputArgs, start::Choice},
    error::Error,
};
use anabranch_store::{SyncLevel, available_bytes};
use indicatif::DecimalBytes;

/// Describes the run. `processor` names the threads and the instruction set.
///
/// # Errors
/// When the free space on the disk cannot be read.
pub fn describe(choice: &Choice, args: &OutputArgs, processor: &str) -> Result<String, Error> {
    let p = &choice.start.parameters;
    let noise = p.noise.map_or(String::new(), |seed| format!(", noise {seed}"));
    let mut text = format!(
        "Simulating {} × {} cells, {} frames of {} steps, F {}, k {}, {} edges{noise}, on {processor}",
        p.rows,
        p.cols,
        p.frames - choice.start.frames(),
        p.steps_per_frame,
        p.feed,
        p.kill,
        p.edges,
    );
    if !p.is_stable() {
        text += &format!(
            "\nWarning: --dt {} is beyond the limit of stability for these rates, which is {:.3}: the values will \
             oscillate and grow",
            p.dt,
            p.longest_stable_dt()
        );
    }
    if args.no_output {
        return Ok(text + "\nStoring nothing (--no-output)");
    }
    Ok(text + "\n" + &storage_plan(choice, args)?)
}

/// Describes the output file, and the room on its disk.
fn storage_plan(choice: &Choice, args: &OutputArgs) -> Result<String, Error> {
    let Choice { start, stored, .. } = choice;
    let p = &start.parameters;
    let path = &args.output;
    let verb = match path.exists() {
        true if choice.extends.is_some() => "Extending",
        true if args.resume => "Continuing",
        true if args.force => "Replacing",
        _ => "Writing",
    };
    let compression =
        args.compress.map_or(String::new(), |level| format!(" before compression at level {level}"));
    let already = if *stored > 0 { format!(", going on with number {stored}") } else { String::new() };
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
    use crate::{parameters::Parameters, start::Start};
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: OutputArgs,
    }

    fn fresh(parameters: Parameters) -> Choice {
        Choice { start: Start::initial(parameters), stored: 0, extends: None, note: None }
    }

    fn output_args(args: &[&str]) -> OutputArgs {
        CommandLine::parse_from(["simulate"].iter().chain(args)).args
    }

    #[test]
    fn the_plan_names_the_file_and_its_size() {
        let text = describe(&fresh(Parameters::default()), &output_args(&["-o", "nowhere.h5"]), "2 threads")
            .unwrap();
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
        let text = describe(&fresh(p), &output_args(&["--no-output"]), "2 threads").unwrap();
        assert!(
            text.contains("Warning: --dt 8 ")
                && text.contains("which is 4.831")
                && text.contains("Storing nothing")
        );
    }
}
