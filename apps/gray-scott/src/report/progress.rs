//! The progress of a command, in frames and in the steps between them.
//!
//! A terminal shows a bar with the time left and rates. A log file or a batch job gets a plain line every few
//! seconds. With `--quiet` nothing is shown. [`Progress::done`] and [`Progress::steps`] may be called from
//! any thread, for every frame and every few steps: the display changes only a few times per second.
//!
//! ```
//! use gray_scott::report::progress::{Mode, Progress, Work};
//!
//! let work = Work { steps_per_frame: 32, cells: 1080 * 1920, bytes_per_frame: 8_294_400 };
//! let progress = Progress::new(100, Mode::Quiet, move |frames, elapsed| work.rates(frames, elapsed));
//! progress.done(40);
//! progress.finish();
//! ```

use crate::report::{
    terminal::{Terminal, style},
    units,
};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget};
use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A bar that is redrawn in place.
    Bar,
    /// A line every few seconds.
    Lines,
    /// Nothing.
    Quiet,
}

impl Mode {
    /// A bar if standard error is a terminal, and lines otherwise. Nothing if `quiet`.
    pub fn detect(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }

    /// The time between two changes of the display.
    fn interval(self) -> Duration {
        match self {
            Self::Bar => Duration::from_millis(100),
            Self::Lines => Duration::from_secs(5),
            Self::Quiet => Duration::MAX,
        }
    }
}

/// The work in one frame of a simulation. The rates follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Time steps from one frame to the next.
    pub steps_per_frame: u64,
    /// Cells of the grid.
    pub cells: u64,
    /// Bytes stored per frame; 0 if nothing is stored.
    pub bytes_per_frame: u64,
}

impl Work {
    /// Steps, cell updates and bytes per second after `frames` frames: `2830 steps/s, 5.88 Gcell/s, 744
    /// MB/s`.
    pub fn rates(&self, frames: f64, elapsed: Duration) -> String {
        let frames_per_second = frames / elapsed.as_secs_f64();
        let steps = frames_per_second * self.steps_per_frame as f64;
        let mut text =
            format!("{}, {}", units::rate(steps, "steps"), units::rate(steps * self.cells as f64, "cell"));
        if self.bytes_per_frame > 0 {
            text += &format!(", {}", units::rate(frames_per_second * self.bytes_per_frame as f64, "B"));
        }
        text
    }
}

/// Shows how many frames and steps are done. Clones share one display.
#[derive(Clone)]
pub struct Progress(Arc<Display>);

/// Turns the frames done since the start, and the time that they took, into text. A frame of which some steps
/// are done counts in part.
type Rates = Box<dyn Fn(f64, Duration) -> String + Send + Sync>;

struct Display {
    mode: Mode,
    bar: ProgressBar,
    rates: Rates,
    start: Instant,
    /// Frames in total.
    total: u64,
    steps_per_frame: u64,
    /// The steps that were done before.
    first: u64,
    /// Frames done.
    done: AtomicU64,
    /// Steps done.
    steps: AtomicU64,
    /// The time of the next change, in milliseconds after `start`.
    next: AtomicU64,
}

impl Progress {
    /// Progress towards `total` frames. `rates` gets the frames done and the time since this call.
    pub fn new(
        total: u64,
        mode: Mode,
        rates: impl Fn(f64, Duration) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::in_steps(0, total, 1, mode, rates)
    }

    /// Progress towards `total` frames of `steps_per_frame` steps each. The first `first` steps were done
    /// before, and do not count in the rates.
    pub fn in_steps(
        first: u64,
        total: u64,
        steps_per_frame: u64,
        mode: Mode,
        rates: impl Fn(f64, Duration) -> String + Send + Sync + 'static,
    ) -> Self {
        let progress = Self(Arc::new(Display {
            mode,
            bar: bar(mode, total * steps_per_frame),
            rates: Box::new(rates),
            start: Instant::now(),
            total,
            steps_per_frame,
            first,
            done: AtomicU64::new(first / steps_per_frame),
            steps: AtomicU64::new(first),
            // A bar is shown at once, the first line after one interval.
            next: AtomicU64::new(if mode == Mode::Bar { 0 } else { mode.interval().as_millis() as u64 }),
        }));
        if mode == Mode::Bar {
            progress.0.show(Duration::ZERO);
            progress.0.bar.enable_steady_tick(Duration::from_millis(500));
        }
        progress
    }

    /// Records that `frames` frames in total are done. A smaller number than before changes nothing.
    pub fn done(&self, frames: u64) {
        self.0.done.fetch_max(frames, Ordering::Relaxed);
        self.steps(frames * self.0.steps_per_frame);
    }

    /// Records that `steps` steps in total are done. A smaller number than before changes nothing.
    pub fn steps(&self, steps: u64) {
        let display = &*self.0;
        display.steps.fetch_max(steps, Ordering::Relaxed);
        let elapsed = display.start.elapsed();
        if display.is_due(elapsed) {
            display.show(elapsed);
        }
    }

    /// Records that one more frame is done, for frames that finish in any order.
    pub fn one_more(&self) {
        let before = self.0.done.fetch_add(1, Ordering::Relaxed);
        self.done(before + 1);
    }

    /// Writes a line to standard error, above the bar. Quiet mode writes it too.
    pub fn println(&self, line: impl AsRef<str>) {
        match self.0.mode {
            Mode::Bar => self.0.bar.suspend(|| eprintln!("{}", line.as_ref())),
            Mode::Lines | Mode::Quiet => eprintln!("{}", line.as_ref()),
        }
    }

    /// Stops and removes the bar.
    pub fn clear(&self) {
        self.0.bar.finish_and_clear();
    }

    /// Shows the last state and stops. The bar stays on the screen, and what is printed next begins a new
    /// line.
    pub fn finish(&self) {
        self.0.show(self.0.start.elapsed());
        self.0.bar.abandon();
        if self.0.mode == Mode::Bar {
            eprintln!();
        }
    }
}

impl Display {
    /// True once per interval, for one of the threads that call.
    fn is_due(&self, elapsed: Duration) -> bool {
        let now = elapsed.as_millis() as u64;
        let next = self.next.load(Ordering::Relaxed);
        let then = elapsed.saturating_add(self.mode.interval()).as_millis() as u64;
        now >= next && self.next.compare_exchange(next, then, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn show(&self, elapsed: Duration) {
        if self.mode == Mode::Quiet {
            return;
        }
        let (done, steps) = (self.done.load(Ordering::Relaxed), self.steps.load(Ordering::Relaxed));
        let message = self.message(done, steps, elapsed);
        if self.mode == Mode::Lines {
            return eprintln!("{message}");
        }
        self.bar.set_position(steps);
        self.bar.set_message(message);
    }

    /// The state, the time left, and the rates: the most important first, because a narrow terminal cuts the
    /// end.
    fn message(&self, done: u64, steps: u64, elapsed: Duration) -> String {
        let all = self.total * self.steps_per_frame;
        let (fresh, left) = (steps.saturating_sub(self.first), all.saturating_sub(steps));
        let frames = fresh as f64 / self.steps_per_frame as f64;
        let mut text = format!("{done}/{}", self.total);
        if self.steps_per_frame > 1 && frames < elapsed.as_secs_f64() {
            // Frames that take longer than a second show how far they are.
            text += &format!(", step {steps}/{all}");
        }
        if fresh > 0 && left > 0 {
            let left = elapsed.mul_f64(left as f64 / fresh as f64);
            text += &format!(", {} left", HumanDuration(left));
        }
        format!("{text}, {}", (self.rates)(frames, elapsed))
    }
}

/// The bar. It is hidden unless the mode is [`Mode::Bar`].
fn bar(mode: Mode, steps: u64) -> ProgressBar {
    let target = match mode {
        Mode::Bar => ProgressDrawTarget::term_like_with_hz(Box::new(Terminal::stderr()), 20),
        Mode::Lines | Mode::Quiet => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(Some(steps), target).with_style(style())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_work_in_a_frame() {
        let _deadline = testing::deadline();
        let work = Work { steps_per_frame: 32, cells: 1_000_000, bytes_per_frame: 4_000_000 };
        assert_eq!(work.rates(50.0, Duration::from_secs(2)), "800 steps/s, 800 Mcell/s, 100 MB/s");
        let unstored = Work { bytes_per_frame: 0, ..work };
        assert_eq!(unstored.rates(50.0, Duration::from_secs(2)), "800 steps/s, 800 Mcell/s");
    }

    #[test]
    fn the_time_left_counts_only_the_steps_of_this_run() {
        let _deadline = testing::deadline();
        let progress = Progress::in_steps(400, 100, 10, Mode::Quiet, |frames, _| format!("{frames} frames"));
        let message = |done, steps, seconds| progress.0.message(done, steps, Duration::from_secs(seconds));
        assert_eq!(message(60, 600, 10), "60/100, 20 seconds left, 20 frames");
        assert_eq!(message(40, 400, 0), "40/100, 0 frames");
        assert_eq!(message(100, 1000, 10), "100/100, 60 frames");
    }

    #[test]
    fn a_long_frame_shows_its_steps() {
        let _deadline = testing::deadline();
        let progress = Progress::in_steps(0, 2, 1000, Mode::Quiet, |frames, _| format!("{frames} frames"));
        let text = progress.0.message(0, 250, Duration::from_secs(10));
        assert_eq!(text, "0/2, step 250/2000, 70 seconds left, 0.25 frames");
    }

    #[test]
    fn steps_and_frames_never_go_back() {
        let _deadline = testing::deadline();
        let progress = Progress::in_steps(0, 9, 10, Mode::Quiet, |_, _| String::new());
        progress.steps(25);
        progress.done(2);
        assert_eq!(progress.0.steps.load(Ordering::Relaxed), 25);
        progress.done(3);
        progress.steps(27);
        assert_eq!(progress.0.steps.load(Ordering::Relaxed), 30);
        assert_eq!(progress.0.done.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn many_threads_may_count() {
        let _deadline = testing::deadline();
        let progress = Progress::new(400, Mode::Quiet, |_, _| String::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| progress.one_more()));
            }
        });
        assert_eq!(progress.0.done.load(Ordering::Relaxed), 400);
        progress.finish();
    }
}
