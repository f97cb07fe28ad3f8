//! Prints the figures: an aligned table for people, a JSON array for programs.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;

use crate::{
    harness::{LeftOut, Outcome, Samples},
    row::{Direction, Row},
};

/// A row's figure, judged by its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The better figure is reached.
    Better,
    /// The bar is met.
    Met,
    /// The bar is not met.
    Missed,
    /// The row has no bar, or the peer that the bar depends on was left out.
    NoBar,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Better => "met, and better",
            Self::Met => "met",
            Self::Missed => "NOT MET",
            Self::NoBar => "-",
        }
    }
}

/// A measured row.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    name: String,
    unit: &'static str,
    /// The minimum, maximum or median, whichever the row compares; so are the figures of the peers.
    ours: f64,
    peers: BTreeMap<String, f64>,
    /// Figures that were measured elsewhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    quoted: BTreeMap<&'static str, f64>,
    bar: Option<f64>,
    better: Option<f64>,
    ours_min: f64,
    ours_median: f64,
    ours_max: f64,
    /// Whether small figures are good.
    lower_is_better: bool,
    /// `null` if there is no bar.
    met: Option<bool>,
    #[serde(skip)]
    verdict: Verdict,
    /// Our figure divided by that of the best peer.
    #[serde(skip)]
    ratio: Option<f64>,
    #[serde(skip)]
    lines: Vec<Line>,
    #[serde(skip)]
    left_out: Vec<LeftOut>,
}

/// One contender's line in the table.
#[derive(Clone, Debug)]
struct Line {
    name: String,
    /// `None` if the figure is quoted.
    best: Option<f64>,
    median: f64,
}

impl Entry {
    /// Judges the outcome of `row`.
    pub fn new(row: &Row, outcome: Outcome) -> Self {
        let figures: Vec<(String, f64)> =
            outcome.peers.iter().map(|(name, samples)| (name.clone(), row.figure(samples))).collect();
        let ours = row.figure(&outcome.ours);
        let (bar, better) = (row.bar_for(&figures), row.better_for(&figures));
        let reaches = |limit: f64| row.reaches(ours, limit);
        let verdict = match bar {
            None => Verdict::NoBar,
            Some(bar) if !reaches(bar) => Verdict::Missed,
            Some(_) if better.is_some_and(reaches) => Verdict::Better,
            Some(_) => Verdict::Met,
        };
        let line = |name: &str, samples: &Samples| {
            let best = match row.direction {
                Direction::Lower => samples.min(),
                Direction::Higher => samples.max(),
            };
            Line { name: name.into(), best: Some(best), median: samples.median() }
        };
        let peers = outcome.peers.iter().map(|(name, samples)| line(&format!("  {name}"), samples));
        let quoted = row.quoted.iter().map(|&(name, figure)| Line {
            name: format!("  {name} (quoted)"),
            best: None,
            median: figure,
        });
        Self {
            name: row.name.clone(),
            unit: row.unit,
            ours,
            bar,
            better,
            ours_min: outcome.ours.min(),
            ours_median: outcome.ours.median(),
            ours_max: outcome.ours.max(),
            lower_is_better: row.direction == Direction::Lower,
            met: bar.map(reaches),
            verdict,
            ratio: figures
                .iter()
                .map(|(_, figure)| *figure)
                .reduce(|a, b| row.best(a, b))
                .map(|best| ours / best),
            lines: std::iter::once(line(&row.name, &outcome.ours)).chain(peers).chain(quoted).collect(),
            quoted: row.quoted.iter().copied().collect(),
            peers: figures.into_iter().collect(),
            left_out: outcome.left_out,
        }
    }

    /// The figure and the verdict, in one line.
    pub fn summary(&self) -> String {
        let bar = self
            .bar
            .map_or(String::new(), |bar| format!("; bar {}: {}", figure_text(bar), self.verdict.text()));
        format!("{} {}{bar}", figure_text(self.ours), self.unit)
    }

    fn cells(&self) -> Vec<[String; 8]> {
        let optional = |figure: Option<f64>| figure.map_or("-".into(), figure_text);
        let mut rows: Vec<[String; 8]> = self
            .lines
            .iter()
            .map(|line| {
                let (best, median) = (optional(line.best), figure_text(line.median));
                let [name, unit] = [line.name.clone(), String::new()];
                [name, unit, best, median, String::new(), String::new(), String::new(), String::new()]
            })
            .collect();
        let ours = &mut rows[0];
        ours[1] = self.unit.into();
        ours[4] = optional(self.ratio);
        ours[5] = optional(self.bar);
        ours[6] = optional(self.better);
        ours[7] = self.verdict.text().into();
        rows
    }
}

/// The table, peers below our side, followed by the peers that were left out.
pub fn table(entries: &[Entry]) -> String {
    let head = ["benchmark", "unit", "minimum*", "median", "ours/peer", "bar", "better", "verdict"];
    let mut rows = vec![head.map(String::from)];
    rows.extend(entries.iter().flat_map(Entry::cells));
    let mut text = aligned(&rows);
    text.push_str(
        "* the maximum for speeds; ours/peer: our figure divided by that of the best peer measured\n",
    );
    if entries.iter().any(|entry| !entry.quoted.is_empty()) {
        text.push_str("(quoted): measured elsewhere, on a machine of this kind, not in this run\n");
    }
    let mut missing: Vec<&LeftOut> = Vec::new();
    for left_out in entries.iter().flat_map(|entry| &entry.left_out) {
        if !missing.contains(&left_out) {
            missing.push(left_out);
        }
    }
    for left_out in missing {
        let _ = writeln!(text, "{left_out}");
    }
    text
}

/// Aligns the first two columns and the last to the left, all others to the right.
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match column < 2 || column == N - 1 {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a figure with about three significant digits.
pub fn figure_text(figure: f64) -> String {
    match figure.abs() {
        x if x >= 99.95 => format!("{figure:.0}"),
        x if x >= 9.995 => format!("{figure:.1}"),
        x if x >= 0.9995 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// The figures as a JSON array.
pub fn json(entries: &[Entry]) -> String {
    let mut text =
        serde_json::to_string_pretty(entries).expect("names and finite figures can be written as JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{harness::Context, row::times};

    fn outcome(ours: &[f64], peer: &[f64]) -> Outcome {
        let samples = |figures: &[f64]| Samples::new(figures.to_vec()).unwrap();
        let missing = LeftOut { peer: "TBB".into(), why: "no header; install it".into() };
        Outcome { ours: samples(ours), peers: vec![("rayon".into(), samples(peer))], left_out: vec![missing] }
    }

    fn entry(row: Row) -> Entry {
        Entry::new(&row, outcome(&[1.0, 2.0, 4.0], &[8.0, 10.0, 20.0]))
    }

    fn never(_: &Context) -> Result<Outcome, crate::harness::Failure> {
        Err("this row is never measured".into())
    }

    #[test]
    fn a_row_is_judged_by_the_figure_that_it_compares() {
        let verdict = |row: Row| entry(row).verdict;
        let row = || Row::lower("a", "ns", "", never);
        assert_eq!(verdict(row()), Verdict::NoBar);
        assert_eq!(verdict(row().bar(1.0)), Verdict::Met);
        assert_eq!(verdict(row().median().bar(1.0)), Verdict::Missed);
        assert_eq!(verdict(row().median().bar(3.0).better(2.0)), Verdict::Better);
        assert_eq!(verdict(row().bar(times(0.1, "rayon"))), Verdict::Missed);
        assert_eq!(verdict(row().bar(times(1.0, "TBB"))), Verdict::NoBar);
        assert_eq!(verdict(Row::higher("a", "MB/s", "", never).bar(3.0)), Verdict::Met);
    }

    #[test]
    fn the_json_has_the_documented_fields() {
        let row = Row::lower("region/x", "ns", "", never).median().bar(3.0).better(1.0);
        let json: serde_json::Value = serde_json::from_str(&json(&[entry(row)])).unwrap();
        let expected = serde_json::json!([{
            "name": "region/x", "unit": "ns", "ours": 2.0, "peers": {"rayon": 10.0}, "bar": 3.0, "better": 1.0,
            "ours_min": 1.0, "ours_median": 2.0, "ours_max": 4.0, "lower_is_better": true, "met": true,
        }]);
        assert_eq!(json, expected);
    }

    #[test]
    fn the_table_is_aligned_and_names_the_peers_left_out() {
        let text = table(&[entry(Row::lower("region/x", "ns", "", never).bar(3.0).better(0.5))]);
        let expected = "\
benchmark  unit  minimum*  median  ours/peer   bar  better  verdict
region/x   ns        1.00    2.00      0.125  3.00   0.500  met
  rayon              8.00    10.0
* the maximum for speeds; ours/peer: our figure divided by that of the best peer measured
TBB left out: no header; install it
";
        assert_eq!(text, expected);
    }

    #[test]
    fn quoted_figures_are_marked_and_do_not_enter_the_ratio() {
        let row = Row::lower("region/x", "ns", "", never).bar(times(0.5, "StarPU")).quoted("StarPU", 3.0);
        let entry = entry(row);
        assert_eq!((entry.bar, entry.ratio), (Some(1.5), Some(0.125)));
        let text = table(std::slice::from_ref(&entry));
        let line = text.lines().find(|line| line.contains("StarPU")).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["StarPU", "(quoted)", "-", "3.00"]);
        assert!(text.contains("(quoted): measured elsewhere"));
        let json: serde_json::Value = serde_json::from_str(&json(&[entry])).unwrap();
        assert_eq!((&json[0]["quoted"]["StarPU"], &json[0]["peers"]["StarPU"]), (&3.0.into(), &().into()));
    }

    #[test]
    fn figures_have_about_three_digits() {
        let texts = [12345.6, 99.96, 12.345, 9.999, 0.28, 0.0].map(figure_text);
        assert_eq!(texts, ["12346", "100", "12.3", "10.0", "0.280", "0.000"]);
    }
}
