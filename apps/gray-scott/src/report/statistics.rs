//! The statistics of a run: as JSON, and as the verdict that is printed at its end.

use crate::{
    error::Error,
    report::{shell, units},
};
use anabranch_store::Stats;
use serde::Serialize;
use std::{fs, path::Path, time::Duration};

/// The statistics of one run of `simulate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunStats {
    /// The program's version.
    pub version: &'static str,
    /// Rows of the grid.
    pub rows: usize,
    /// Columns of the grid.
    pub cols: usize,
    /// Steps that this run computed.
    pub steps: u64,
    /// Frames that this run computed.
    pub frames: u64,
    /// Threads that computed.
    pub threads: usize,
    /// The instruction set of the kernel.
    pub simd: String,
    /// Whether the run ended early, on request.
    pub interrupted: bool,
    /// From the start of the program to its end.
    pub seconds_total: f64,
    /// Time in which the simulation advanced.
    pub seconds_compute: f64,
    /// Time in which the simulation waited for storage.
    pub seconds_waiting_for_storage: f64,
    /// Time before the first step: threads, memory, the initial state, the file's layout.
    pub seconds_start_up: f64,
    /// Compute time (elapsed time, not the sum over threads) per cell and step, in nanoseconds.
    pub ns_per_cell_step: f64,
    /// Bytes of the frames that were written.
    pub bytes_written: u64,
    /// Frames in the file, from this run and the runs before it.
    pub stored_frames: u64,
    /// The largest resident memory of the process; `None` where the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// The statistics of storage; `None` when nothing was stored.
    pub storage: Option<StorageStats>,
}

/// The statistics of storage in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StorageStats {
    /// Time spent writing frames.
    pub seconds_writing: f64,
    /// Time in which there was nothing to write.
    pub seconds_waiting_for_compute: f64,
    /// Bytes per second of that time.
    pub bytes_per_second: f64,
    /// Bytes of the frames in the file: fewer than `bytes_written` if they are compressed.
    pub bytes_in_file: u64,
    /// Bytes of frames that were copied in memory on their way from the buffer to the file.
    pub bytes_copied: u64,
}

impl From<&Stats> for StorageStats {
    fn from(stats: &Stats) -> Self {
        Self {
            seconds_writing: stats.writing.as_secs_f64(),
            seconds_waiting_for_compute: stats.idle.as_secs_f64(),
            bytes_per_second: stats.bytes_per_second(),
            bytes_in_file: stats.bytes_in_file,
            bytes_copied: stats.bytes_copied,
        }
    }
}

impl RunStats {
    /// Sets `ns_per_cell_step` from the other fields.
    pub fn with_rate(mut self) -> Self {
        let updates = self.rows as f64 * self.cols as f64 * self.steps as f64;
        self.ns_per_cell_step = if updates > 0.0 { self.seconds_compute * 1e9 / updates } else { 0.0 };
        self
    }

    /// Writes the statistics as one JSON object.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).expect("numbers and text are always JSON");
        text.push('\n');
        fs::write(path, text).map_err(Error::io("write", path))
    }

    /// Two lines: how the time was spent; and which side was the limit, with the command that renders
    /// `output`.
    pub fn verdict(&self, output: Option<&Path>) -> String {
        let mut lines = format!("{}\n{}", self.time_line(), self.limit_line());
        if let Some(path) = output.filter(|_| self.stored_frames > 0) {
            lines += &format!(" Pictures: {}", shell::command("render", path));
        }
        lines
    }

    fn time_line(&self) -> String {
        let part = |name: &str, seconds: f64| {
            let percent = 100.0 * seconds / self.seconds_total.max(f64::MIN_POSITIVE);
            format!("{name} {} ({percent:.0} %)", units::duration(Duration::from_secs_f64(seconds.max(0.0))))
        };
        let other = self.seconds_other();
        let other = if other > 0.01 * self.seconds_total {
            format!(", {}", part("other", other))
        } else {
            String::new()
        };
        format!(
            "{} frames in {}: {}, {}, {}{other}; {:.3} ns per cell and step on {} thread{} ({}).",
            self.frames,
            units::duration(Duration::from_secs_f64(self.seconds_total.max(0.0))),
            part("compute", self.seconds_compute),
            part("waiting for storage", self.seconds_waiting_for_storage),
            part("start-up", self.seconds_start_up),
            self.ns_per_cell_step,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.simd,
        )
    }

    /// Time that is neither compute nor waiting nor start-up: the overhead between them.
    fn seconds_other(&self) -> f64 {
        self.seconds_total - self.seconds_compute - self.seconds_waiting_for_storage - self.seconds_start_up
    }

    /// The limit is the side that was busy for longer. The ratio is how much faster the other side was.
    fn limit_line(&self) -> String {
        let Some(storage) = self.storage else {
            return "Compute was the limit: nothing was stored.".into();
        };
        let (compute, writing) = (self.seconds_compute, storage.seconds_writing);
        if self.seconds_other() + self.seconds_start_up > compute.max(writing) {
            return "Neither compute nor storage was the limit: the frames are too small or too few.".into();
        }
        let speed = units::rate(storage.bytes_per_second, "B");
        if writing > compute {
            format!(
                "Storage was the limit, at {speed}: compute alone was {} times as fast.",
                ratio(writing, compute)
            )
        } else {
            format!(
                "Compute was the limit: storage alone, at {speed}, was {} times as fast.",
                ratio(compute, writing)
            )
        }
    }
}

/// How many times the smaller time goes into the larger one.
fn ratio(larger: f64, smaller: f64) -> String {
    match larger / smaller {
        r if r < 9.95 => format!("{r:.1}"),
        r if r < 1000.0 => format!("{r:.0}"),
        _ => "over 1000".into(),
    }
}

/// The largest resident memory of this process; `None` where the system does not report it.
pub fn peak_rss_bytes() -> Option<u64> {
    if cfg!(target_os = "linux") {
        return parse_peak_rss(&fs::read_to_string("/proc/self/status").ok()?);
    }
    None
}

/// The high-water mark of resident memory, from the text of Linux's `/proc/self/status`.
fn parse_peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(compute: f64, waiting: f64, writing: f64) -> RunStats {
        let storage = StorageStats {
            seconds_writing: writing,
            bytes_per_second: 829e6 / writing,
            ..Default::default()
        };
        RunStats {
            rows: 1080,
            cols: 1920,
            steps: 3200,
            frames: 100,
            threads: 2,
            simd: "avx512".into(),
            seconds_total: compute + waiting + 0.1,
            seconds_compute: compute,
            seconds_waiting_for_storage: waiting,
            seconds_start_up: 0.1,
            bytes_written: 829_440_000,
            stored_frames: 100,
            storage: Some(storage),
            ..RunStats::default()
        }
        .with_rate()
    }

    #[test]
    fn the_verdict_names_the_times_the_limit_and_the_next_command() {
        let text = stats(1.2, 0.7, 1.8).verdict(Some(Path::new("run.h5")));
        let (text, pictures) = text.split_once(" Pictures: ").unwrap();
        assert!(pictures.ends_with(" render run.h5"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "100 frames in 2.00 s: compute 1.20 s (60 %), waiting for storage 0.700 s (35 %), \
                 start-up 0.100 s (5 %); 0.181 ns per cell and step on 2 threads (avx512).",
                "Storage was the limit, at 461 MB/s: compute alone was 1.5 times as fast.",
            ]
        );
    }

    #[test]
    fn the_busier_side_is_the_limit() {
        assert!(stats(2.0, 0.0, 0.5).verdict(None).contains("Compute was the limit: storage alone"));
        assert!(stats(2.0, 0.0, 0.5).verdict(None).contains("was 4.0 times as fast"));
        let tiny = RunStats { seconds_total: 9.0, ..stats(2.0, 0.0, 0.5) };
        assert!(tiny.verdict(None).contains("other 6.90 s (77 %)") && tiny.verdict(None).contains("Neither"));
        let unstored = RunStats { storage: None, ..stats(2.0, 0.0, 0.5) };
        assert!(unstored.verdict(None).contains("nothing was stored"));
    }

    #[test]
    fn the_json_object_has_the_documented_names() {
        let json = serde_json::to_value(stats(1.0, 0.0, 0.5)).unwrap();
        for name in [
            "rows",
            "cols",
            "steps",
            "frames",
            "threads",
            "simd",
            "seconds_total",
            "seconds_compute",
            "seconds_waiting_for_storage",
            "ns_per_cell_step",
            "bytes_written",
            "stored_frames",
            "peak_rss_bytes",
        ] {
            assert!(json.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn peak_memory_is_read_in_bytes() {
        assert_eq!(parse_peak_rss("VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(parse_peak_rss("nothing"), None);
        assert_eq!(peak_rss_bytes().is_some(), cfg!(target_os = "linux"));
    }
}
