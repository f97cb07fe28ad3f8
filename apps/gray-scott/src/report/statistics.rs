//! The statistics of a run: as JSON, and as the verdict that is printed at its end.
//!
//! Both are made from the same [`Times`], so that they cannot contradict each other.

use crate::{
    error::Error,
    files::whole::WholeFile,
    report::{shell, units},
    run::Times,
};
use anabranch_store::Stats;
use serde::Serialize;
use std::{fmt, io::Write, path::Path, time::Duration};

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
    /// Frames that this run completed.
    pub frames: u64,
    /// Nodes that computed. Of several, the times are those of node 0.
    pub nodes: u16,
    /// Threads of each node that computed.
    pub threads: usize,
    /// The instruction set of the kernel on the processor.
    pub simd: String,
    /// The device that computed; `None` for the processor.
    pub device: Option<String>,
    /// Whether the run ended early, on request.
    pub interrupted: bool,
    /// What ended the run early, if it has failed.
    pub error: Option<String>,
    /// Where the time went.
    #[serde(flatten)]
    pub seconds: Seconds,
    /// Compute time (elapsed time, not the sum over threads) per cell and step, in nanoseconds.
    pub ns_per_cell_step: f64,
    /// Bytes of the frames that were written.
    pub bytes_written: u64,
    /// Frames in the file, from this run and the runs before it.
    pub stored_frames: u64,
    /// The largest resident memory of the process; `None` where the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// The side that took the most time.
    pub limit: Limit,
    /// The statistics of storage; `None` when nothing was stored.
    pub storage: Option<StorageStats>,
}

/// Where the time went, in seconds. The total is the sum of the five parts after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// From the start of the program to its end.
    #[serde(rename = "seconds_total")]
    pub total: f64,
    /// Time in which the simulation advanced.
    #[serde(rename = "seconds_compute")]
    pub compute: f64,
    /// Time in which the simulation waited for storage: something was stored and nothing computed.
    #[serde(rename = "seconds_waiting_for_storage")]
    pub waiting_for_storage: f64,
    /// On several nodes: time after the start in which this node computed and stored nothing.
    #[serde(rename = "seconds_waiting_for_nodes")]
    pub waiting_for_nodes: f64,
    /// Time before the first step: threads, memory, the initial state, the file's layout.
    #[serde(rename = "seconds_start_up")]
    pub start_up: f64,
    /// On one node: time after the start in which nothing was computed and nothing stored.
    #[serde(rename = "seconds_other")]
    pub other: f64,
}

/// The side of a run that took the most time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Computing.
    #[default]
    Compute,
    /// Storing.
    Storage,
    /// Waiting for other nodes.
    Nodes,
    /// The time before the first step.
    StartUp,
    /// The time in which nothing was computed and nothing stored.
    Other,
}

impl Limit {
    /// The side that took the most time. Computing and storing count in full, also where they ran at the same
    /// time.
    pub fn of(times: &Times) -> Self {
        let sides = [
            (Self::Compute, times.computing()),
            (Self::Storage, times.storing()),
            (Self::Nodes, times.waiting_for_nodes),
            (Self::StartUp, times.start_up),
            (Self::Other, times.other),
        ];
        let first_longest = |longest: (Self, Duration), side: (Self, Duration)| {
            if side.1 > longest.1 { side } else { longest }
        };
        sides.into_iter().reduce(first_longest).expect("there are five").0
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Compute => "compute",
            Self::Storage => "storage",
            Self::Nodes => "nodes",
            Self::StartUp => "start-up",
            Self::Other => "other",
        })
    }
}

/// The statistics of storage in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StorageStats {
    /// Time spent storing: frames, the completion of the file, and checkpoints.
    pub seconds_storing: f64,
    /// The part of that time in which the simulation advanced too.
    pub seconds_storing_while_computing: f64,
    /// The part of the time spent storing that went into checkpoints.
    pub seconds_checkpoints: f64,
    /// Bytes of frames per second of storing, without checkpoints.
    pub bytes_per_second: f64,
    /// Bytes of the frames in the file: fewer than `bytes_written` if they are compressed.
    pub bytes_in_file: u64,
    /// Bytes of frames that were copied in memory on their way from the buffer to the file.
    pub bytes_copied: u64,
}

impl StorageStats {
    fn new(times: &Times, stats: &Stats) -> Self {
        let frames = (times.storing() - times.checkpoints).as_secs_f64();
        Self {
            seconds_storing: times.storing().as_secs_f64(),
            seconds_storing_while_computing: times.computing_and_storing.as_secs_f64(),
            seconds_checkpoints: times.checkpoints.as_secs_f64(),
            bytes_per_second: if frames > 0.0 { stats.bytes as f64 / frames } else { 0.0 },
            bytes_in_file: stats.bytes_in_file,
            bytes_copied: stats.bytes_copied,
        }
    }
}

impl RunStats {
    /// Sets everything that follows from the times, and from the statistics of the writer.
    pub fn with_times(mut self, times: &Times, storage: Option<&Stats>) -> Self {
        self.seconds = Seconds {
            total: times.total().as_secs_f64(),
            compute: times.computing().as_secs_f64(),
            waiting_for_storage: times.only_storing.as_secs_f64(),
            waiting_for_nodes: times.waiting_for_nodes.as_secs_f64(),
            start_up: times.start_up.as_secs_f64(),
            other: times.other.as_secs_f64(),
        };
        self.limit = Limit::of(times);
        self.storage = storage.map(|stats| StorageStats::new(times, stats));
        self.bytes_written = storage.map_or(0, |stats| stats.bytes);
        let updates = self.rows as f64 * self.cols as f64 * self.steps as f64;
        self.ns_per_cell_step = if updates > 0.0 { self.seconds.compute * 1e9 / updates } else { 0.0 };
        self
    }

    /// Writes the statistics as one JSON object, and completes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_json(&self, mut file: WholeFile) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).expect("numbers and text are always JSON");
        text.push('\n');
        let path = file.path().to_owned();
        file.write_all(text.as_bytes()).and_then(|()| file.place()).map_err(Error::io("write", &path))
    }

    /// Two or three lines: how the time was spent; which side was the limit; and, if frames are stored, the
    /// command that renders `output`.
    pub fn verdict(&self, output: Option<&Path>) -> String {
        let mut lines = format!("{}\n{}", self.time_line(), self.limit_line());
        if let Some(path) = output.filter(|_| self.stored_frames > 0) {
            lines += &format!("\nPictures: {}", shell::command("render", path));
        }
        lines
    }

    fn time_line(&self) -> String {
        let Seconds { total, compute, waiting_for_storage, waiting_for_nodes, start_up, other } =
            self.seconds;
        let part = |name: &str, seconds: f64| {
            let percent = 100.0 * seconds / total.max(f64::MIN_POSITIVE);
            format!("{name} {} ({percent:.0} %)", time(seconds))
        };
        let other = if other > 0.01 * total { format!(", {}", part("other", other)) } else { String::new() };
        let several = self.nodes > 1;
        format!(
            "{} frames in {}: {}, {}{}, {}{other}; {:.3} ns per cell and step on {}.",
            self.frames,
            time(total),
            part("compute", compute),
            part("waiting for storage", waiting_for_storage),
            if several {
                format!(", {}", part("waiting for other nodes", waiting_for_nodes))
            } else {
                String::new()
            },
            part("start-up", start_up),
            self.ns_per_cell_step,
            self.processor(),
        )
    }

    /// What computed.
    fn processor(&self) -> String {
        if let Some(device) = &self.device {
            return device.clone();
        }
        let s = if self.threads == 1 { "" } else { "s" };
        let nodes = if self.nodes > 1 { format!("{} nodes of ", self.nodes) } else { String::new() };
        format!("{nodes}{} thread{s} ({})", self.threads, self.simd)
    }

    /// The limit, and the time of both sides where both took part.
    fn limit_line(&self) -> String {
        let limit = match self.limit {
            Limit::Compute => "Compute was the limit",
            Limit::Storage => "Storage was the limit",
            Limit::Nodes => "Waiting for other nodes was the limit",
            Limit::StartUp => "The start-up took longest: the frames are too small or too few to tell more",
            Limit::Other => "Neither compute nor storage was the limit: the frames are too small",
        };
        let Some(storage) = self.storage else {
            return format!("{limit}; nothing was stored.");
        };
        let StorageStats { seconds_storing: storing, seconds_storing_while_computing: both, .. } = storage;
        let (compute, nodes) = (self.seconds.compute, self.seconds.waiting_for_nodes);
        let compared = match self.limit {
            Limit::Compute => format!("; storing took {}", share(storing, compute)),
            Limit::Storage => format!("; computing took {}", share(compute, storing)),
            Limit::Nodes => format!("; computing took {}", share(compute, nodes)),
            Limit::StartUp | Limit::Other => String::new(),
        };
        let checkpoints = match storage.seconds_checkpoints {
            seconds if seconds > 0.0 => format!(", {} of it for checkpoints", time(seconds)),
            _ => String::new(),
        };
        format!(
            "{limit}{compared}. Stored for {}, {} of it while computing{checkpoints}; frames at {}.",
            time(storing),
            time(both),
            units::rate(storage.bytes_per_second, "B"),
        )
    }
}

fn time(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds.max(0.0)))
}

/// The smaller time as a share of the larger one.
fn share(smaller: f64, larger: f64) -> String {
    match 100.0 * smaller / larger.max(f64::MIN_POSITIVE) {
        percent if percent < 1.0 => "less than 1 % of that time".into(),
        percent => format!("{percent:.0} % of that time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statistics of 100 frames, from seconds of: start, computing only, both, storing only, neither.
    fn stats(parts: [f64; 5], checkpoints: f64) -> RunStats {
        stats_on(1, parts, checkpoints)
    }

    fn stats_on(nodes: u16, parts: [f64; 5], checkpoints: f64) -> RunStats {
        let [start_up, only_computing, computing_and_storing, only_storing, neither] =
            parts.map(Duration::from_secs_f64);
        let (waiting_for_nodes, other) =
            if nodes > 1 { (neither, Duration::ZERO) } else { (Duration::ZERO, neither) };
        let times = Times {
            start_up,
            only_computing,
            computing_and_storing,
            only_storing,
            waiting_for_nodes,
            other,
            checkpoints: Duration::from_secs_f64(checkpoints),
        };
        let storage = Stats { bytes: 829_440_000, ..Stats::default() };
        RunStats {
            rows: 1080,
            cols: 1920,
            steps: 3200,
            frames: 100,
            nodes,
            threads: 2,
            simd: "avx512".into(),
            stored_frames: 100,
            ..RunStats::default()
        }
        .with_times(&times, Some(&storage))
    }

    #[test]
    fn the_verdict_names_the_times_the_limit_and_the_next_command() {
        let text = stats([0.1, 0.1, 1.1, 0.7, 0.0], 0.0).verdict(Some(Path::new("run.h5")));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "100 frames in 2.00 s: compute 1.20 s (60 %), waiting for storage 0.700 s (35 %), \
                 start-up 0.100 s (5 %); 0.181 ns per cell and step on 2 threads (avx512).",
                "Storage was the limit; computing took 67 % of that time. Stored for 1.80 s, 1.10 s of it while \
                 computing; frames at 461 MB/s.",
            ]
        );
        assert!(lines[2].starts_with("Pictures: ") && lines[2].ends_with(" render run.h5"));
    }

    #[test]
    fn the_verdict_names_the_device_that_computed() {
        let device = Some("a GPU".to_owned());
        let stats = RunStats { device, ..stats([0.1, 0.1, 1.1, 0.7, 0.0], 0.0) };
        let verdict = stats.verdict(None);
        assert!(verdict.contains("0.181 ns per cell and step on a GPU."), "{verdict}");
    }

    #[test]
    fn the_longest_side_is_the_limit() {
        let cases = [
            ([0.1, 2.0, 0.5, 0.0, 0.0], "Compute was the limit; storing took 20 % of that time. "),
            ([0.1, 0.0, 0.1, 5.0, 0.0], "Storage was the limit; computing took 2 % of that time. "),
            ([9.0, 2.0, 0.5, 0.0, 0.0], "The start-up took longest: "),
            ([0.1, 2.0, 0.5, 0.0, 9.0], "Neither compute nor storage was the limit: "),
        ];
        for (parts, text) in cases {
            let verdict = stats(parts, 0.0).verdict(None);
            assert!(verdict.lines().nth(1).unwrap().starts_with(text), "{verdict}");
        }
        let unstored = RunStats { storage: None, ..stats([0.0, 2.0, 0.0, 0.0, 0.0], 0.0) };
        assert!(unstored.verdict(None).ends_with("Compute was the limit; nothing was stored."));
    }

    #[test]
    fn on_several_nodes_the_time_between_computing_and_storing_is_waiting_for_other_nodes() {
        let verdict = stats_on(4, [0.1, 0.4, 0.1, 0.1, 1.3], 0.0).verdict(None);
        let lines: Vec<&str> = verdict.lines().collect();
        assert_eq!(
            lines,
            [
                "100 frames in 2.00 s: compute 0.500 s (25 %), waiting for storage 0.100 s (5 %), \
                 waiting for other nodes 1.30 s (65 %), start-up 0.100 s (5 %); 0.075 ns per cell and step on 4 nodes \
                 of 2 threads (avx512).",
                "Waiting for other nodes was the limit; computing took 38 % of that time. Stored for 0.200 s, 0.100 s \
                 of it while computing; frames at 4.15 GB/s.",
            ]
        );
        let busy = stats_on(2, [0.1, 1.4, 0.1, 0.1, 0.3], 0.0).verdict(None);
        assert!(busy.contains("waiting for other nodes 0.300 s (15 %)"), "{busy}");
        assert!(busy.contains("Compute was the limit") && !busy.contains("other 0"), "{busy}");
    }

    #[test]
    fn checkpoints_are_told_apart_from_frames() {
        let stats = stats([0.1, 0.0, 0.1, 2.0, 0.0], 1.1);
        let verdict = stats.verdict(None);
        assert!(
            verdict
                .contains("Stored for 2.10 s, 0.100 s of it while computing, 1.10 s of it for checkpoints")
        );
        assert!(verdict.contains("frames at 829 MB/s"), "{verdict}");
    }

    #[test]
    fn the_lines_and_the_json_agree_for_every_split_of_the_time() {
        let seconds = [0.0, 0.5, 3.0];
        for at in 0..2 * 3_usize.pow(5) {
            let parts = [1, 3, 9, 27, 81].map(|power| seconds[at / power % 3]);
            let nodes = if at < 3_usize.pow(5) { 1 } else { 3 };
            let stats = stats_on(nodes, parts, 0.0);
            let json = serde_json::to_value(&stats).unwrap();
            let of = |name: &str| json[name].as_f64().unwrap();
            let sum = of("seconds_compute")
                + of("seconds_waiting_for_storage")
                + of("seconds_waiting_for_nodes")
                + of("seconds_start_up")
                + of("seconds_other");
            assert!((of("seconds_total") - sum).abs() < 1e-9, "{json}");
            let storing = json["storage"]["seconds_storing"].as_f64().unwrap();
            let neither = of("seconds_waiting_for_nodes") + of("seconds_other");
            let longest = of("seconds_compute").max(storing).max(of("seconds_start_up")).max(neither);
            let side = match json["limit"].as_str().unwrap() {
                "compute" => of("seconds_compute"),
                "storage" => storing,
                "start-up" => of("seconds_start_up"),
                "other" => of("seconds_other"),
                "nodes" => of("seconds_waiting_for_nodes"),
                limit => panic!("unknown limit {limit}"),
            };
            assert_eq!(side, longest, "{json}");
            let line = stats.verdict(None).lines().nth(1).unwrap().to_lowercase();
            assert!(
                line.starts_with(&stats.limit.to_string())
                    || line.contains(&format!("{} took", stats.limit))
                    || stats.limit == Limit::Nodes && line.starts_with("waiting for other nodes")
                    || stats.limit == Limit::Other && line.starts_with("neither"),
                "{line}"
            );
            assert!(nodes == 1 || stats.limit != Limit::Other, "{line}");
        }
    }

    #[test]
    fn the_json_object_has_the_documented_names() {
        let json = serde_json::to_value(stats([0.0, 1.0, 0.0, 0.5, 0.0], 0.0)).unwrap();
        for name in [
            "rows",
            "cols",
            "steps",
            "frames",
            "threads",
            "simd",
            "device",
            "seconds_total",
            "seconds_compute",
            "seconds_waiting_for_storage",
            "seconds_waiting_for_nodes",
            "seconds_start_up",
            "seconds_other",
            "nodes",
            "limit",
            "ns_per_cell_step",
            "bytes_written",
            "stored_frames",
            "peak_rss_bytes",
        ] {
            assert!(json.get(name).is_some(), "{name}");
        }
    }
}
