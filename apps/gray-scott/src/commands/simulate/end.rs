//! The end of a run: its statistics, the verdict, and what is saved of a run that fails.
//!
//! A run that fails says, too, what it has done. What goes wrong here is reported beside the failure, never
//! instead of it.

use crate::{
    Outcome,
    commands::simulate::{
        arguments::SimulateArgs,
        show::{Processor, say, show_progress},
    },
    error::{Error, describe},
    files::{checkpoint, whole::WholeFile},
    memory,
    not_finite::NotFinite,
    parameters::Parameters,
    report::{shell, statistics::RunStats},
    run::{Accounts, Checkpoints, FrameOutput, Interrupt, Run, RunOutcome},
    start::Start,
};
use anabranch_store::Monitor;
use std::path::Path;

/// What the reports need to know about a run.
pub(super) struct End<'a> {
    pub(super) args: &'a SimulateArgs,
    pub(super) parameters: &'a Parameters,
    pub(super) processor: Processor,
    pub(super) interrupt: &'a Interrupt,
    pub(super) accounts: &'a Accounts,
    /// The steps before the run.
    pub(super) first: u64,
    /// The progress of the writer; `None` if nothing is stored.
    pub(super) monitor: Option<Monitor>,
}

impl End<'_> {
    /// Writes the statistics, prints the verdict, and saves the last good state of a run that is not finite.
    ///
    /// # Errors
    /// That of the run, and those of the reports.
    pub(super) fn report(&self, run: Result<RunOutcome, Error>) -> Result<Outcome, Error> {
        let stats = self.statistics(&run);
        let written = self.write_json(&stats);
        self.print(&stats);
        match run {
            Err(error) => Err(error.and(written)),
            Ok(RunOutcome { not_finite: Some(place), .. }) => Err(self.not_finite(place).and(written)),
            Ok(run) => written.map(|()| if run.interrupted { Outcome::Interrupted } else { Outcome::Done }),
        }
    }

    fn statistics(&self, run: &Result<RunOutcome, Error>) -> RunStats {
        let (p, storage) = (self.parameters, self.monitor.as_ref().map(Monitor::stats));
        let (steps, frames, error) = match run {
            Ok(run) => (run.steps, run.frames, run.not_finite.map(|place| place.to_string())),
            Err(error) => {
                let (steps, frames) = self.done_before_failure();
                (steps, frames, Some(describe(error)))
            }
        };
        RunStats {
            version: env!("CARGO_PKG_VERSION"),
            rows: p.rows,
            cols: p.cols,
            steps,
            frames,
            nodes: self.processor.nodes,
            threads: self.processor.threads,
            simd: self.processor.simd.to_string(),
            device: self.processor.device.as_ref().map(|device| device.info().name.clone()),
            interrupted: run.as_ref().is_ok_and(|run| run.interrupted),
            error,
            stored_frames: self.monitor.as_ref().map_or(0, Monitor::stored_frames),
            peak_rss_bytes: memory::peak_rss_bytes(),
            ..RunStats::default()
        }
        .with_times(&self.accounts.times(), storage.as_ref())
    }

    /// The whole steps and the frames of a run that has failed: those that were computed and, if frames are
    /// stored, are in the file.
    fn done_before_failure(&self) -> (u64, u64) {
        if self.processor.nodes > 1 {
            // This node counts the steps of its own rows only.
            let stored = self.monitor.as_ref().map_or(0, Monitor::stored_frames);
            let frames = stored.saturating_sub(self.first / self.parameters.steps_per_frame);
            return (frames * self.parameters.steps_per_frame, frames);
        }
        let steps = self.accounts.updates() / self.parameters.cells();
        let computed = (self.first + steps) / self.parameters.steps_per_frame;
        let stored = self.monitor.as_ref().map_or(u64::MAX, Monitor::stored_frames);
        (steps, computed.min(stored).saturating_sub(self.first / self.parameters.steps_per_frame))
    }

    fn write_json(&self, stats: &RunStats) -> Result<(), Error> {
        let Some(path) = &self.args.stats_json else { return Ok(()) };
        stats.write_json(WholeFile::create(path).map_err(Error::io("write", path))?)
    }

    /// Prints the verdict and, after an interruption, the command that goes on.
    fn print(&self, stats: &RunStats) {
        let path = self.args.output.path();
        say(self.args, &stats.verdict(path));
        if let (true, Some(path)) = (stats.interrupted, path) {
            let (stored, frames) = (stats.stored_frames, self.parameters.frames);
            let command = shell::resume_command(path);
            say(self.args, &format!("Stopped with {stored} of {frames} frames stored. To go on: {command}"));
        }
    }

    /// The error of a run that is not finite. The state before that frame is saved.
    fn not_finite(&self, place: NotFinite) -> Error {
        let Some(output) = self.args.output.path().filter(|_| place.frame > 0) else {
            return Error::NotFinite { place, saved: None };
        };
        let stored = format!(", with {} frames stored", place.frame);
        if self.processor.nodes > 1 {
            return Error::NotFinite { place, saved: Some(stored) };
        }
        let path = checkpoint::path_of(output);
        match self.save_last_good(&path, place) {
            Ok(step) => {
                let saved = format!("{stored}, and {} holds the state after {step} steps", path.display());
                Error::NotFinite { place, saved: Some(saved) }
            }
            Err(error) => Error::NotFinite { place, saved: Some(stored) }.and::<()>(Err(error)),
        }
    }

    /// Saves the state before the frame that is not finite, and returns its step. That state was overwritten
    /// since, so it is computed again, from the last checkpoint or from the beginning.
    fn save_last_good(&self, path: &Path, place: NotFinite) -> Result<u64, Error> {
        let good = place.frame * self.parameters.steps_per_frame;
        let saved = checkpoint::load(path)?.filter(|saved| saved.step <= good);
        let start = saved.unwrap_or_else(|| Start::initial(self.parameters.clone()));
        if start.step < good {
            say(
                self.args,
                &format!(
                    "Computing steps {} to {good} again, to save the last state that is finite",
                    start.step
                ),
            );
            self.compute_again(path, start, place.frame)?;
        }
        Ok(checkpoint::load(path)?.map_or(0, |saved| saved.step))
    }

    /// Computes the first `until` frames from `start` on, and saves the state after them.
    fn compute_again(&self, path: &Path, start: Start, until: u64) -> Result<(), Error> {
        let progress = show_progress(self.args, &start, until);
        let again = Run {
            start: Start { parameters: self.parameters.clone(), ..start },
            until,
            threads: self.processor.threads,
            simd: self.processor.simd,
            device: self.processor.device.clone(),
            queue: 0,
            check_finite: false,
            writer: None,
            frames: FrameOutput::Nowhere,
            checkpoints: Some(Checkpoints::on_interruption(path.to_owned())),
            progress: &progress,
            interrupt: self.interrupt,
            accounts: &Accounts::default(),
        }
        .run();
        progress.finish();
        again.map(drop)
    }
}
