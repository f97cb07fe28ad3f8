//! What a run shows on standard error: lines, and its progress.

use crate::{
    commands::simulate::arguments::SimulateArgs,
    kernel::Simd,
    report::progress::{Mode, Progress, Work},
    start::Start,
};
use anabranch::device::Device;
use std::{fmt, sync::Arc};

/// What computes.
#[derive(Clone)]
pub(super) struct Processor {
    pub(super) nodes: u16,
    /// Of each node.
    pub(super) threads: usize,
    pub(super) simd: Simd,
    /// The device that computes instead of the threads.
    pub(super) device: Option<Arc<dyn Device>>,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = &self.device {
            if self.nodes > 1 {
                write!(f, "{} nodes with ", self.nodes)?;
            }
            return f.write_str(&device.info().name);
        }
        let s = if self.threads == 1 { "" } else { "s" };
        if self.nodes > 1 {
            write!(f, "{} nodes of ", self.nodes)?;
        }
        write!(f, "{} thread{s} with {}", self.threads, self.simd)
    }
}

/// The progress of a run from `start` to the frame `until`.
pub(super) fn show_progress(args: &SimulateArgs, start: &Start, until: u64) -> Progress {
    let p = &start.parameters;
    let bytes_per_frame = if args.output.no_output { 0 } else { p.frame_bytes() };
    let work = Work { steps_per_frame: p.steps_per_frame, cells: p.cells(), bytes_per_frame };
    let rates = move |frames, elapsed| work.rates(frames, elapsed);
    Progress::in_steps(start.step, until, p.steps_per_frame, Mode::detect(args.quiet), rates)
}

/// Prints to standard error, unless `--quiet` was given. Standard output is for results that another program
/// may read.
pub(super) fn say(args: &SimulateArgs, text: &str) {
    if !args.quiet {
        eprintln!("{text}");
    }
}
