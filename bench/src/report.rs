//! Prints the figures: an aligned table for people, a JSON array for programs.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::{
    harness::{Outcome, Samples},
    row::{Direction, Row},
};

/// A row's figure, judged by its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The better figure is reached.
    Better,
    /// The bar is met.
    Met,
    /// The bar is missed.
    Missed,
    /// The row has no bar, or the peer that the bar depends on was left out.
    NoBar,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Better => "met, and better",
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::NoBar => "-",
        }
    }
}

/// The figures of a peer, or of a quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The name of the peer or the quantity.
    pub name: String,
    /// The figure that is compared.
    pub median: f64,
    min: f64,
    max: f64,
}

impl Figures {
    fn new(name: &str, samples: &Samples) -> Self {
        let [median, min, max] = [samples.median(), samples.min(), samples.max()].map(rounded);
        Self { name: name.into(), median, min, max }
    }

    /// The minimum, or the maximum of a speed.
    pub fn best(&self, lower_is_better: bool) -> f64 {
        if lower_is_better { self.min } else { self.max }
    }
}

/// Six digits. The rest is noise.
pub fn rounded(figure: f64) -> f64 {
    format!("{figure:.5e}").parse().expect("a number in scientific notation")
}

/// A measured row. Every figure that is compared is a median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the row.
    pub name: String,
    /// The unit of all figures, except of quantities.
    pub unit: String,
    lower_is_better: bool,
    ours_median: f64,
    ours_min: f64,
    ours_max: f64,
    bar: Option<f64>,
    better: Option<f64>,
    /// `null` if there is no bar.
    met: Option<bool>,
    /// The peers that were measured.
    pub peers: Vec<Figures>,
    /// The quantities whose medians our figure is computed from. Their names contain their units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<Figures>,
    /// The peers that were not measured, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

impl Entry {
    /// Judges the outcome of `row`.
    pub fn new(row: &Row, outcome: Outcome) -> Self {
        let ours = outcome.ours.median();
        let figures = |all: &[(String, Samples)]| {
            all.iter().map(|(name, samples)| Figures::new(name, samples)).collect()
        };
        let mut entry = Self {
            name: row.name.clone(),
            unit: row.unit.into(),
            lower_is_better: row.direction == Direction::Lower,
            ours_median: rounded(ours),
            ours_min: rounded(outcome.ours.min()),
            ours_max: rounded(outcome.ours.max()),
            bar: None,
            better: None,
            met: None,
            peers: figures(&outcome.peers),
            quantities: figures(&outcome.quantities),
            left_out: outcome.left_out.iter().map(ToString::to_string).collect(),
        };
        entry.judge(row);
        entry
    }

    /// Judges the figures by the present bars of `row`.
    pub fn judge(&mut self, row: &Row) {
        let medians: Vec<(String, f64)> =
            self.peers.iter().map(|peer| (peer.name.clone(), peer.median)).collect();
        let bar = row.bar_for(&medians);
        self.bar = bar.map(rounded);
        self.better = row.better_for(&medians).map(rounded);
        self.met = bar.map(|bar| row.reaches(self.ours_median, bar));
    }

    /// Our median.
    pub fn ours(&self) -> f64 {
        self.ours_median
    }

    /// Our minimum, or the maximum of a speed; `None` for a figure that is computed from medians.
    pub fn ours_best(&self) -> Option<f64> {
        let best = if self.lower_is_better { self.ours_min } else { self.ours_max };
        self.quantities.is_empty().then_some(best)
    }

    /// Whether small figures are good.
    pub fn lower_is_better(&self) -> bool {
        self.lower_is_better
    }

    /// The figure that must be reached.
    pub fn bar(&self) -> Option<f64> {
        self.bar
    }

    /// The figure that would be better than the bar.
    pub fn better(&self) -> Option<f64> {
        self.better
    }

    /// Judges our figure.
    pub fn verdict(&self) -> Verdict {
        let reaches = |limit: f64| match self.lower_is_better {
            true => self.ours_median <= limit,
            false => self.ours_median >= limit,
        };
        match self.met {
            None => Verdict::NoBar,
            Some(false) => Verdict::Missed,
            Some(true) if self.better.is_some_and(reaches) => Verdict::Better,
            Some(true) => Verdict::Met,
        }
    }

    /// Our figure divided by that of the best peer.
    fn ratio(&self) -> Option<f64> {
        let best = |a: f64, b: f64| if self.lower_is_better { a.min(b) } else { a.max(b) };
        self.peers.iter().map(|peer| peer.median).reduce(best).map(|best| self.ours_median / best)
    }

    /// The figure and the verdict, in one line.
    pub fn summary(&self) -> String {
        let bar = self
            .bar
            .map_or(String::new(), |bar| format!("; bar {}: {}", figure_text(bar), self.verdict().text()));
        format!("{} {}{bar}", figure_text(self.ours_median), self.unit)
    }

    /// The lines of the table: ours, the quantities that it is computed from, and the peers.
    fn cells(&self) -> Vec<[String; 8]> {
        let optional = |figure: Option<f64>| figure.map_or("-".into(), figure_text);
        let ours = [
            self.name.clone(),
            self.unit.clone(),
            figure_text(self.ours_median),
            optional(self.ours_best()),
            optional(self.ratio()),
            optional(self.bar),
            optional(self.better),
            self.verdict().text().into(),
        ];
        let below = self.quantities.iter().chain(&self.peers).map(|figures| {
            let mut cells = <[String; 8]>::default();
            cells[0] = format!("  {}", figures.name);
            cells[2] = figure_text(figures.median);
            cells[3] = figure_text(figures.best(self.lower_is_better));
            cells
        });
        std::iter::once(ours).chain(below).collect()
    }
}

/// The table, peers below our side, followed by the peers that were left out.
pub fn table(entries: &[Entry]) -> String {
    let head = ["benchmark", "unit", "median", "minimum*", "ours/peer", "bar", "better", "verdict"];
    let mut rows = vec![head.map(String::from)];
    rows.extend(entries.iter().flat_map(Entry::cells));
    let mut text = aligned(&rows);
    text.push_str(
        "* the maximum for speeds; ours/peer: our median divided by that of the best peer measured\n",
    );
    for left_out in left_out(entries) {
        let _ = writeln!(text, "{left_out}");
    }
    text
}

/// The peers that were left out of any row, each once, with the reasons.
pub fn left_out<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<&'a str> {
    let mut missing: Vec<&str> = Vec::new();
    for left_out in entries.into_iter().flat_map(|entry| &entry.left_out) {
        if !missing.contains(&left_out.as_str()) {
            missing.push(left_out);
        }
    }
    missing
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
    use crate::{
        harness::{Context, LeftOut, Quantities},
        row::times,
    };

    fn outcome(ours: &[f64], peer: &[f64]) -> Outcome {
        let samples = |figures: &[f64]| Samples::new(figures.to_vec()).unwrap();
        let missing = LeftOut { peer: "TBB".into(), why: "no header; install it".into() };
        Outcome {
            ours: samples(ours),
            peers: vec![("rayon".into(), samples(peer))],
            quantities: Vec::new(),
            left_out: vec![missing],
        }
    }

    fn entry(row: Row) -> Entry {
        Entry::new(&row, outcome(&[1.0, 2.0, 4.0], &[8.0, 10.0, 20.0]))
    }

    fn never(_: &Context) -> Result<Outcome, crate::harness::Failure> {
        Err("this row is never measured".into())
    }

    #[test]
    fn a_row_is_judged_by_its_median() {
        let verdict = |row: Row| entry(row).verdict();
        let row = || Row::lower("a", "ns", "", never);
        assert_eq!(verdict(row()), Verdict::NoBar);
        assert_eq!(verdict(row().bar(1.0)), Verdict::Missed);
        assert_eq!(verdict(row().bar(2.0)), Verdict::Met);
        assert_eq!(verdict(row().bar(3.0).better(2.0)), Verdict::Better);
        assert_eq!(verdict(row().bar(times(0.1, "rayon"))), Verdict::Missed);
        assert_eq!(verdict(row().bar(times(0.2, "rayon"))), Verdict::Met);
        assert_eq!(verdict(row().bar(times(1.0, "TBB"))), Verdict::NoBar);
        assert_eq!(verdict(Row::higher("a", "MB/s", "", never).bar(3.0)), Verdict::Missed);
        assert_eq!(verdict(Row::higher("a", "MB/s", "", never).bar(2.0)), Verdict::Met);
    }

    #[test]
    fn a_measured_row_is_judged_again_by_other_bars() {
        let row = || Row::lower("a", "ns", "", never);
        let mut entry = entry(row().bar(2.0).better(1.0));
        assert_eq!((entry.verdict(), entry.better()), (Verdict::Met, Some(1.0)));
        entry.judge(&row().bar(times(0.1, "rayon")));
        assert_eq!((entry.verdict(), entry.bar(), entry.better()), (Verdict::Missed, Some(1.0), None));
    }

    #[test]
    fn the_json_has_the_documented_fields_and_can_be_read_again() {
        let row = Row::lower("region/x", "ns", "", never).bar(3.0).better(1.0);
        let entries = [entry(row)];
        let text = json(&entries);
        let expected = serde_json::json!([{
            "name": "region/x", "unit": "ns", "lower_is_better": true,
            "ours_median": 2.0, "ours_min": 1.0, "ours_max": 4.0, "bar": 3.0, "better": 1.0, "met": true,
            "peers": [{"name": "rayon", "median": 10.0, "min": 8.0, "max": 20.0}],
            "left_out": ["TBB left out: no header; install it"],
        }]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
        assert_eq!(serde_json::from_str::<Vec<Entry>>(&text).unwrap(), entries);
    }

    #[test]
    fn the_table_is_aligned_and_names_the_peers_left_out() {
        let text = table(&[entry(Row::lower("region/x", "ns", "", never).bar(1.0).better(0.5))]);
        let expected = "\
benchmark  unit  median  minimum*  ours/peer   bar  better  verdict
region/x   ns      2.00      1.00      0.200  1.00   0.500  MISSED
  rayon            10.0      8.00
* the maximum for speeds; ours/peer: our median divided by that of the best peer measured
TBB left out: no header; install it
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_figure_that_is_computed_from_medians_has_no_minimum() {
        let row = Row::lower("a/overlap", "x", "", never).bar(1.5);
        let both = Quantities::new().quantity("both (s)", || Ok(vec![3.0, 4.0, 9.0]));
        let outcome = both.quantity("one (s)", || Ok(vec![2.0])).run(1, |m| m[0] / m[1]).unwrap();
        let entry = Entry::new(&row, outcome);
        assert_eq!((entry.ours(), entry.ours_best(), entry.verdict()), (2.0, None, Verdict::Missed));
        let text = table(&[entry]);
        let line = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(begin)).expect(begin);
            line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
        };
        assert_eq!(line("a/overlap"), ["a/overlap", "x", "2.00", "-", "-", "1.50", "-", "MISSED"]);
        assert_eq!(line("  both"), ["both", "(s)", "4.00", "3.00"]);
    }

    #[test]
    fn figures_have_about_three_digits_and_keep_six() {
        let texts = [12345.6, 99.96, 12.345, 9.999, 0.28, 0.0].map(figure_text);
        assert_eq!(texts, ["12346", "100", "12.3", "10.0", "0.280", "0.000"]);
        assert_eq!([0.123456789, 1234567.8, 0.0].map(rounded), [0.123457, 1234570.0, 0.0]);
    }
}
