//! A benchmark is a row: a stable name, a unit, the figure to reach, and a function that measures.
//!
//! ```text
//! Row::lower("region/empty-hot", "ns", "an empty parallel region", empty_hot).bar(1000.0).better(100.0)
//! Row::higher("store/memory-fs", "MB/s", "frames to memory", memory_fs).bar(times(0.9, "plain write"))
//! ```
//!
//! Peers that cannot be installed here are [quoted](Row::quoted): their figures were measured elsewhere, and the report
//! marks them.

use crate::harness::{Context, Failure, Outcome, Samples};

/// Whether small or large figures are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Small figures are good: times, memory.
    Lower,
    /// Large figures are good: speeds.
    Higher,
}

/// The figure that is compared, of many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest or the largest: right where the work is always the same and other programs only slow it down.
    Best,
    /// The median: right where the measured quantity itself varies.
    Median,
}

/// A figure to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A figure in the row's unit.
    Figure(f64),
    /// A multiple of the figure of a peer.
    Times(f64, &'static str),
    /// A multiple of the best figure of the peers that were measured.
    TimesBest(f64),
}

impl From<f64> for Limit {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

/// `factor` times the figure of `peer`, measured in the same run or quoted.
pub fn times(factor: f64, peer: &'static str) -> Limit {
    Limit::Times(factor, peer)
}

/// `factor` times the best figure of all peers in the same run. Quoted figures do not count.
pub fn times_best(factor: f64) -> Limit {
    Limit::TimesBest(factor)
}

type Measure = Box<dyn Fn(&Context) -> Result<Outcome, Failure>>;

/// One benchmark.
pub struct Row {
    /// The name. It never changes: figures are compared by name.
    pub name: String,
    /// The unit of all figures.
    pub unit: &'static str,
    /// A line of description for `list`.
    pub about: &'static str,
    /// Whether small or large figures are good.
    pub direction: Direction,
    /// The figure that is compared.
    pub statistic: Statistic,
    bars: Vec<Limit>,
    betters: Vec<Limit>,
    /// Peers that are not measured here, with their figures.
    pub quoted: Vec<(&'static str, f64)>,
    run: Measure,
}

impl Row {
    /// A row where small figures are good; the minimum is compared.
    pub fn lower(
        name: impl Into<String>,
        unit: &'static str,
        about: &'static str,
        run: impl Fn(&Context) -> Result<Outcome, Failure> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            unit,
            about,
            direction: Direction::Lower,
            statistic: Statistic::Best,
            bars: Vec::new(),
            betters: Vec::new(),
            quoted: Vec::new(),
            run: Box::new(run),
        }
    }

    /// A row where large figures are good; the maximum is compared.
    pub fn higher(
        name: impl Into<String>,
        unit: &'static str,
        about: &'static str,
        run: impl Fn(&Context) -> Result<Outcome, Failure> + 'static,
    ) -> Self {
        Self { direction: Direction::Higher, ..Self::lower(name, unit, about, run) }
    }

    /// Compares medians instead.
    pub fn median(mut self) -> Self {
        self.statistic = Statistic::Median;
        self
    }

    /// Adds a figure that must be reached. Of several, the strictest counts.
    pub fn bar(mut self, limit: impl Into<Limit>) -> Self {
        self.bars.push(limit.into());
        self
    }

    /// Adds a figure that would be better than the bar. Of several, the strictest counts.
    pub fn better(mut self, limit: impl Into<Limit>) -> Self {
        self.betters.push(limit.into());
        self
    }

    /// Adds the figure of a peer that was measured elsewhere. Bars can depend on it.
    pub fn quoted(mut self, peer: &'static str, figure: f64) -> Self {
        self.quoted.push((peer, figure));
        self
    }

    /// Measures the row.
    ///
    /// # Errors
    /// If the row cannot be measured.
    pub fn measure(&self, context: &Context) -> Result<Outcome, Failure> {
        (self.run)(context)
    }

    /// The figure of `samples` that is compared.
    pub fn figure(&self, samples: &Samples) -> f64 {
        match (self.statistic, self.direction) {
            (Statistic::Median, _) => samples.median(),
            (Statistic::Best, Direction::Lower) => samples.min(),
            (Statistic::Best, Direction::Higher) => samples.max(),
        }
    }

    /// Whether `figure` is at least as good as `limit`.
    pub fn reaches(&self, figure: f64, limit: f64) -> bool {
        match self.direction {
            Direction::Lower => figure <= limit,
            Direction::Higher => figure >= limit,
        }
    }

    /// The better of two figures.
    pub fn best(&self, a: f64, b: f64) -> f64 {
        if self.reaches(a, b) { a } else { b }
    }

    /// The figure that must be reached, given the figures of the peers. `None` if the row has no bar, or if the peer that
    /// the bar depends on was left out.
    pub fn bar_for(&self, peers: &[(String, f64)]) -> Option<f64> {
        self.strictest(&self.bars, peers)
    }

    /// The better figure, as [`bar_for`](Self::bar_for) the one that must be reached.
    pub fn better_for(&self, peers: &[(String, f64)]) -> Option<f64> {
        self.strictest(&self.betters, peers)
    }

    fn strictest(&self, limits: &[Limit], peers: &[(String, f64)]) -> Option<f64> {
        let figure = |limit: &Limit| match *limit {
            Limit::Figure(figure) => Some(figure),
            Limit::Times(factor, peer) => {
                let measured = peers.iter().map(|(name, figure)| (name.as_str(), *figure));
                let mut all = measured.chain(self.quoted.iter().copied());
                all.find(|(name, _)| *name == peer).map(|(_, figure)| factor * figure)
            }
            Limit::TimesBest(factor) => {
                let measured = peers.iter().map(|(_, figure)| *figure);
                measured.reduce(|a, b| self.best(a, b)).map(|best| factor * best)
            }
        };
        limits.iter().filter_map(figure).reduce(|a, b| self.best(a, b))
    }

    /// The bars as text: `1000`, or `0.333 × rayon`.
    pub fn bar_text(&self) -> String {
        text(&self.bars)
    }

    /// The better figures as text.
    pub fn better_text(&self) -> String {
        text(&self.betters)
    }
}

fn text(limits: &[Limit]) -> String {
    let times = |factor: f64, peer: &str| format!("{} × {peer}", (factor * 1000.0).round() / 1000.0);
    let limit = |limit: &Limit| match *limit {
        Limit::Figure(figure) => format!("{figure}"),
        Limit::Times(factor, peer) => times(factor, peer),
        Limit::TimesBest(factor) => times(factor, "the best peer"),
    };
    match limits {
        [] => "-".into(),
        limits => limits.iter().map(limit).collect::<Vec<_>>().join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(_: &Context) -> Result<Outcome, Failure> {
        Err("this row is never measured".into())
    }

    #[test]
    fn the_strictest_bar_counts_and_the_bar_of_an_absent_peer_does_not() {
        let peers = |figure| [("rayon".to_string(), figure)];
        let row = Row::lower("a", "ns", "", never).bar(10.0).bar(times(0.5, "rayon"));
        assert_eq!(row.bar_for(&peers(100.0)), Some(10.0));
        assert_eq!(row.bar_for(&peers(8.0)), Some(4.0));
        assert_eq!(row.bar_for(&[]), Some(10.0));
        assert_eq!(row.bar_text(), "10 and 0.5 × rayon");
        let row = Row::higher("a", "MB/s", "", never).bar(10.0).bar(times(0.5, "rayon"));
        assert_eq!(row.bar_for(&peers(100.0)), Some(50.0));
        assert_eq!(row.better_for(&peers(100.0)), None);
    }

    #[test]
    fn a_bar_may_depend_on_a_quoted_figure() {
        let row = Row::lower("a", "ns", "", never).bar(times(0.5, "Celerity")).quoted("Celerity", 8.0);
        assert_eq!(row.bar_for(&[]), Some(4.0));
    }

    #[test]
    fn a_bar_may_depend_on_the_best_peer_that_was_measured() {
        let peers = [("rayon".to_string(), 8.0), ("TBB".to_string(), 6.0)];
        let row = Row::lower("a", "ns", "", never).bar(times_best(1.5)).quoted("Celerity", 1.0);
        assert_eq!(row.bar_for(&peers), Some(9.0));
        assert_eq!(row.bar_for(&[]), None);
        assert_eq!(row.bar_text(), "1.5 × the best peer");
        assert_eq!(Row::higher("a", "MB/s", "", never).bar(times_best(0.5)).bar_for(&peers), Some(4.0));
    }

    #[test]
    fn the_best_figure_depends_on_the_direction() {
        let samples = Samples::new(vec![1.0, 2.0, 6.0]).unwrap();
        assert_eq!(Row::lower("a", "ns", "", never).figure(&samples), 1.0);
        assert_eq!(Row::higher("a", "MB/s", "", never).figure(&samples), 6.0);
        assert_eq!(Row::higher("a", "MB/s", "", never).median().figure(&samples), 2.0);
        assert!(Row::lower("a", "ns", "", never).reaches(1.0, 1.0));
    }
}
