//! A benchmark is a row: a stable name, a unit, the figure to reach, and a function that measures.
//!
//! ```text
//! Row::lower("region/empty-hot", "ns", "an empty parallel region", empty_hot).bar(1000.0).better(100.0)
//! Row::higher("store/memory-fs", "MB/s", "frames to memory", memory_fs).bar(times(0.9, "plain write"))
//! ```
//!
//! The figure of every contender is the median of its samples. Only what this program measured itself is a
//! figure: nothing is quoted.

use crate::harness::{Context, Failure, Outcome};

/// Whether small or large figures are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Small figures are good: times, memory.
    Lower,
    /// Large figures are good: speeds.
    Higher,
}

/// A figure to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A figure in the row's unit.
    Figure(f64),
    /// A multiple of the figure of a peer.
    Times(f64, &'static str),
    /// The figure of a peer and this much more, in the row's unit.
    Plus(f64, &'static str),
    /// A multiple of the best figure of the peers that were measured.
    TimesBest(f64),
}

impl From<f64> for Limit {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

/// `factor` times the figure of `peer` in the same run.
pub fn times(factor: f64, peer: &'static str) -> Limit {
    Limit::Times(factor, peer)
}

/// The figure of `peer` in the same run, and `more`.
pub fn plus(more: f64, peer: &'static str) -> Limit {
    Limit::Plus(more, peer)
}

/// `factor` times the best figure of all peers in the same run.
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
    /// What exactly is measured, in a line: how often, from where, and which threads are awake.
    pub about: &'static str,
    /// Whether small or large figures are good.
    pub direction: Direction,
    bars: Vec<Limit>,
    betters: Vec<Limit>,
    available: fn() -> Result<(), String>,
    recorded: Option<fn() -> bool>,
    run: Measure,
}

impl Row {
    /// A row where small figures are good.
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
            bars: Vec::new(),
            betters: Vec::new(),
            available: || Ok(()),
            recorded: None,
            run: Box::new(run),
        }
    }

    /// A row where large figures are good.
    pub fn higher(
        name: impl Into<String>,
        unit: &'static str,
        about: &'static str,
        run: impl Fn(&Context) -> Result<Outcome, Failure> + 'static,
    ) -> Self {
        Self { direction: Direction::Higher, ..Self::lower(name, unit, about, run) }
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

    /// Sets the function that says whether this machine has what our side needs; if not, what is missing and
    /// what to install.
    pub fn if_available(self, available: fn() -> Result<(), String>) -> Self {
        Self { available, ..self }
    }

    /// Whether the row can be measured on this machine.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_available(&self) -> Result<(), String> {
        (self.available)()
    }

    /// Sets the function that says whether a figure of this machine belongs into the record. Without such a
    /// function, all do.
    pub fn record_if(self, recorded: fn() -> bool) -> Self {
        Self { recorded: Some(recorded), ..self }
    }

    /// Whether a figure of this machine belongs into the record.
    pub fn is_recorded_here(&self) -> bool {
        self.recorded.is_none_or(|recorded| recorded())
    }

    /// Whether every record has the row, wherever it was taken.
    #[cfg(test)]
    pub fn is_always_recorded(&self) -> bool {
        self.recorded.is_none()
    }

    /// Measures the row.
    ///
    /// # Errors
    /// If the row cannot be measured, or if a bar names a peer that the row does not have.
    pub fn measure(&self, context: &Context) -> Result<Outcome, Failure> {
        let outcome = (self.run)(context)?;
        for limit in self.bars.iter().chain(&self.betters) {
            let (Limit::Times(_, peer) | Limit::Plus(_, peer)) = *limit else { continue };
            let measured = outcome.peers.iter().any(|(name, _)| name == peer);
            let left_out = outcome.left_out.iter().any(|left_out| left_out.peer == peer);
            if context.peers && !measured && !left_out {
                return Err(format!("a bar names the peer `{peer}`, which this row does not have").into());
            }
        }
        Ok(outcome)
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

    /// The figure that must be reached, given the figures of the peers. `None` if the row has no bar, or if
    /// the peer that the bar depends on was left out.
    pub fn bar_for(&self, peers: &[(String, f64)]) -> Option<f64> {
        self.strictest(&self.bars, peers)
    }

    /// The better figure, as [`bar_for`](Self::bar_for) the one that must be reached.
    pub fn better_for(&self, peers: &[(String, f64)]) -> Option<f64> {
        self.strictest(&self.betters, peers)
    }

    fn strictest(&self, limits: &[Limit], peers: &[(String, f64)]) -> Option<f64> {
        let of = |peer| peers.iter().find(|(name, _)| name == peer).map(|(_, figure)| figure);
        let figure = |limit: &Limit| match *limit {
            Limit::Figure(figure) => Some(figure),
            Limit::Times(factor, peer) => of(peer).map(|figure| factor * figure),
            Limit::Plus(more, peer) => of(peer).map(|figure| figure + more),
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
        Limit::Plus(more, peer) => format!("{peer} + {more}"),
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
    use crate::harness::{Contest, LeftOut};

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
        let row = Row::lower("a", "us", "", never).bar(plus(5.0, "rayon"));
        assert_eq!((row.bar_for(&peers(0.5)), row.bar_for(&[])), (Some(5.5), None));
        assert_eq!(row.bar_text(), "rayon + 5");
        let row = Row::higher("a", "MB/s", "", never).bar(10.0).bar(times(0.5, "rayon"));
        assert_eq!(row.bar_for(&peers(100.0)), Some(50.0));
        assert_eq!(row.better_for(&peers(100.0)), None);
    }

    #[test]
    fn a_bar_that_names_an_unknown_peer_is_an_error() {
        let context = Context { threads: 1, smoke: true, peers: true };
        let run = |context: &Context| {
            let missing: Result<(), _> = Err(LeftOut { peer: "oneTBB".into(), why: "not here".into() });
            Contest::ours(|| Ok(vec![1.0]))
                .peer("rayon", || Ok(vec![2.0]))
                .peer_if(missing, "TBB static", |()| Ok(vec![]))
                .run(context, 1)
        };
        let row = |peer| Row::lower("a", "ns", "", run).bar(times(1.0, peer));
        assert!(row("rayon").measure(&context).is_ok());
        assert!(row("TBB static").measure(&context).is_ok());
        assert!(row("chili").measure(&Context { peers: false, ..context }).is_ok());
        let error = row("chili").measure(&context).unwrap_err().to_string();
        assert_eq!(error, "a bar names the peer `chili`, which this row does not have");
    }

    #[test]
    fn a_bar_may_depend_on_the_best_peer_that_was_measured() {
        let peers = [("rayon".to_string(), 8.0), ("TBB".to_string(), 6.0)];
        let row = Row::lower("a", "ns", "", never).bar(times_best(1.5));
        assert_eq!(row.bar_for(&peers), Some(9.0));
        assert_eq!(row.bar_for(&[]), None);
        assert_eq!(row.bar_text(), "1.5 × the best peer");
        assert_eq!(Row::higher("a", "MB/s", "", never).bar(times_best(0.5)).bar_for(&peers), Some(4.0));
    }

    #[test]
    fn the_best_figure_depends_on_the_direction() {
        let [low, high] = [Row::lower("a", "ns", "", never), Row::higher("a", "MB/s", "", never)];
        assert_eq!((low.best(1.0, 6.0), high.best(1.0, 6.0)), (1.0, 6.0));
        assert!(low.reaches(1.0, 1.0) && high.reaches(1.0, 1.0) && !low.reaches(6.0, 1.0));
    }
}
