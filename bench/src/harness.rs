//! Measures a figure: many samples of our side and of each peer, taken in turns.
//!
//! A [`Contest`] has one contender of ours and any number of peers. [`Contest::run`] visits them round after
//! round (A B C, A B C, …), so that a machine whose speed drifts does so for all of them. The first round
//! warms up and does not count. A visit returns samples; the figure of a contender is the median of the
//! samples of all visits. The usual visit is [`Load::time`], which times batches of an operation: a sample is
//! the mean of one batch.
//!
//! [`Quantities`] are measured in the same way, for a figure that is computed from several of them: always
//! from their medians, never from the single visits.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The reason why a row could not be measured. Rows call many crates, whose errors it holds.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The pause between two visits, in which the threads of the last contender fall asleep.
const REST: Duration = Duration::from_millis(10);

/// The settings of this run.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The number of threads of the rows whose names do not state it.
    pub threads: usize,
    /// Whether to finish in a moment, with figures that mean little.
    pub smoke: bool,
    /// Whether the peers are measured beside our side.
    pub peers: bool,
}

impl Context {
    /// Returns `smoke` in a smoke run and `full` otherwise.
    pub fn pick<T>(&self, full: T, smoke: T) -> T {
        if self.smoke { smoke } else { full }
    }
}

/// The figures of one contender, in ascending order; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Sorts the figures; `None` if there are none, or if one is infinite or NaN.
    pub fn new(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        (!figures.is_empty() && figures.iter().all(|x| x.is_finite())).then_some(Self(figures))
    }

    /// The smallest figure.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest figure.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The figure in the middle, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let n = self.0.len();
        (self.0[(n - 1) / 2] + self.0[n / 2]) / 2.0
    }
}

/// How often a visit times an operation.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The number of samples of a visit.
    pub samples: usize,
    /// The number of operations of a sample, back to back.
    pub batch: usize,
    /// How long the calling thread spins before each sample.
    pub pause: Duration,
}

impl Load {
    /// `samples` samples of `batch` operations each, without pauses.
    pub fn back_to_back(samples: usize, batch: usize) -> Self {
        Self { samples, batch, pause: Duration::ZERO }
    }

    /// Returns the nanoseconds of one operation, once per sample, after a batch that does not count.
    pub fn time(&self, mut operation: impl FnMut()) -> Vec<f64> {
        (0..self.batch).for_each(|_| operation());
        (0..self.samples)
            .map(|_| {
                let pause = Instant::now();
                while pause.elapsed() < self.pause {}
                let begin = Instant::now();
                (0..self.batch).for_each(|_| operation());
                begin.elapsed().as_secs_f64() * 1e9 / self.batch as f64
            })
            .collect()
    }

    /// Like [`time`](Self::time), for operations that can fail.
    ///
    /// # Errors
    /// The first error; the operation is not called after it.
    pub fn try_time<E>(&self, mut operation: impl FnMut() -> Result<(), E>) -> Result<Vec<f64>, E> {
        let mut result = Ok(());
        let times = self.time(|| {
            if result.is_ok() {
                result = operation();
            }
        });
        result.map(|()| times)
    }
}

type Visit<'a> = Box<dyn FnMut() -> Result<Vec<f64>, Failure> + 'a>;

/// A contender that cannot take part here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{peer} left out: {why}")]
pub struct LeftOut {
    /// The name of the peer.
    pub peer: String,
    /// The reason, and what to do about it.
    pub why: String,
}

/// The result of a contest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Our figures.
    pub ours: Samples,
    /// The names and figures of the peers, in the order of their entry.
    pub peers: Vec<(String, Samples)>,
    /// The quantities whose medians our figure is computed from; empty if it is measured directly.
    pub quantities: Vec<(String, Samples)>,
    /// The peers that could not take part.
    pub left_out: Vec<LeftOut>,
}

/// Our side and its peers, to be measured in turns.
pub struct Contest<'a> {
    contenders: Vec<(String, Visit<'a>)>,
    left_out: Vec<LeftOut>,
}

impl<'a> Contest<'a> {
    /// Begins a contest with our contender. Each call of `visit` returns some figures.
    pub fn ours(visit: impl FnMut() -> Result<Vec<f64>, Failure> + 'a) -> Self {
        Self { contenders: vec![("ours".into(), Box::new(visit))], left_out: Vec::new() }
    }

    /// Adds a peer.
    pub fn peer(mut self, name: &str, visit: impl FnMut() -> Result<Vec<f64>, Failure> + 'a) -> Self {
        self.contenders.push((name.into(), Box::new(visit)));
        self
    }

    /// Adds a peer that may not be installed.
    pub fn peer_if<P: 'a>(
        mut self,
        peer: Result<P, LeftOut>,
        name: &str,
        mut visit: impl FnMut(&mut P) -> Result<Vec<f64>, Failure> + 'a,
    ) -> Self {
        match peer {
            Ok(mut peer) => self.peer(name, move || visit(&mut peer)),
            Err(left_out) => {
                self.left_out.push(LeftOut { peer: name.into(), ..left_out });
                self
            }
        }
    }

    /// Visits all contenders in turn, once to warm up and then `rounds` times. Without
    /// [peers](Context::peers), visits our side alone.
    ///
    /// # Errors
    /// The first failure of a visit, with the name of the contender.
    pub fn run(mut self, context: &Context, rounds: usize) -> Result<Outcome, Failure> {
        if !context.peers {
            self.contenders.truncate(1);
            self.left_out.clear();
        }
        let mut results = take_turns(self.contenders, rounds)?.into_iter();
        let (_, ours) = results.next().expect("our side is the first contender");
        Ok(Outcome { ours, peers: results.collect(), quantities: Vec::new(), left_out: self.left_out })
    }
}

/// Several quantities of our side, from which one figure is computed.
pub struct Quantities<'a>(Vec<(String, Visit<'a>)>);

impl<'a> Quantities<'a> {
    /// Begins without any.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a quantity. The name ends with its unit.
    pub fn quantity(mut self, name: &str, visit: impl FnMut() -> Result<Vec<f64>, Failure> + 'a) -> Self {
        self.0.push((name.into(), Box::new(visit)));
        self
    }

    /// Measures all quantities in turns, once to warm up and then `rounds` times, and computes the figure
    /// from their medians.
    ///
    /// # Errors
    /// The first failure of a visit, with the name of the quantity. A figure that is infinite or NaN.
    pub fn run(self, rounds: usize, figure: impl FnOnce(&[f64]) -> f64) -> Result<Outcome, Failure> {
        let quantities = take_turns(self.0, rounds)?;
        let medians: Vec<f64> = quantities.iter().map(|(_, samples)| samples.median()).collect();
        let ours = Samples::new(vec![figure(&medians)]).ok_or("the figure is not a number")?;
        Ok(Outcome { ours, peers: Vec::new(), quantities, left_out: Vec::new() })
    }
}

/// Visits all contenders in turns, once to warm up and then `rounds` times.
fn take_turns(
    mut contenders: Vec<(String, Visit<'_>)>,
    rounds: usize,
) -> Result<Vec<(String, Samples)>, Failure> {
    let mut figures = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for ((name, visit), figures) in contenders.iter_mut().zip(&mut figures) {
            let visited = visit().map_err(|failure| format!("{name}: {failure}"))?;
            if round > 0 {
                figures.extend(visited);
            }
            thread::sleep(REST);
        }
    }
    let named = contenders.into_iter().zip(figures).map(|((name, _), figures)| {
        let samples = Samples::new(figures)
            .ok_or_else(|| format!("{name} returned no figures, or some that are not numbers"))?;
        Ok((name, samples))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const CONTEXT: Context = Context { threads: 1, smoke: true, peers: true };

    #[test]
    fn the_median_is_in_the_middle() {
        let samples = |figures: &[f64]| Samples::new(figures.to_vec());
        let odd = samples(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min(), odd.median(), odd.max()), (1.0, 2.0, 3.0));
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).unwrap().median(), 2.5);
        assert_eq!(samples(&[7.0]).unwrap().median(), 7.0);
        assert_eq!(samples(&[]), None);
        assert_eq!(samples(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn contenders_take_turns_and_the_first_round_does_not_count() {
        let order = RefCell::new(String::new());
        let mut next = 0.0;
        let missing: Result<(), _> = Err(LeftOut { peer: "c".into(), why: "not here".into() });
        let outcome = Contest::ours(|| {
            order.borrow_mut().push('a');
            next += 1.0;
            Ok(vec![next])
        })
        .peer("b", || {
            order.borrow_mut().push('b');
            Ok(vec![5.0, 7.0])
        })
        .peer_if(missing, "c", |()| Ok(vec![]))
        .run(&CONTEXT, 2)
        .unwrap();
        assert_eq!(order.into_inner(), "ababab");
        assert_eq!((outcome.ours.min(), outcome.ours.max()), (2.0, 3.0));
        assert_eq!(outcome.peers, [("b".to_string(), Samples(vec![5.0, 5.0, 7.0, 7.0]))]);
        assert_eq!(outcome.left_out[0].to_string(), "c left out: not here");
    }

    #[test]
    fn our_side_runs_alone_if_the_peers_are_not_wanted() {
        let alone = Context { peers: false, ..CONTEXT };
        let contest = Contest::ours(|| Ok(vec![1.0])).peer("rival", || panic!("the peer was visited"));
        assert!(contest.run(&alone, 1).unwrap().peers.is_empty());
    }

    /// The median of the quotients of the visits, and the least of them, would be 1.
    #[test]
    fn a_figure_of_several_quantities_is_computed_from_their_medians() {
        let visits = |figures: [f64; 4]| {
            let mut figures = figures.into_iter();
            move || Ok(vec![figures.next().expect("four visits")])
        };
        let outcome = Quantities::new()
            .quantity("whole (s)", visits([9.0, 4.0, 3.0, 2.0]))
            .quantity("part (s)", visits([9.0, 4.0, 1.0, 2.0]))
            .run(3, |medians| medians[0] / medians[1])
            .unwrap();
        let ours = &outcome.ours;
        assert_eq!((ours.min(), ours.median(), ours.max()), (1.5, 1.5, 1.5));
        let names: Vec<&str> = outcome.quantities.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["whole (s)", "part (s)"]);
        assert_eq!(outcome.quantities[0].1, Samples(vec![2.0, 3.0, 4.0]));
        assert!(Quantities::new().quantity("nothing", || Ok(vec![0.0])).run(1, |m| m[0] / 0.0).is_err());
    }

    #[test]
    fn a_failure_names_the_contender() {
        let contest = Contest::ours(|| Ok(vec![1.0])).peer("rival", || Err("broke down".into()));
        assert_eq!(contest.run(&CONTEXT, 1).unwrap_err().to_string(), "rival: broke down");
    }

    #[test]
    fn a_load_takes_the_requested_samples_and_does_not_time_the_pause() {
        let mut calls = 0;
        let load = Load { samples: 3, batch: 2, pause: Duration::from_millis(2) };
        let times = load.time(|| calls += 1);
        assert_eq!((times.len(), calls), (3, 8));
        assert!(Samples::new(times).unwrap().min() < 1e6);
    }

    #[test]
    fn a_load_stops_at_the_first_failure() {
        let mut calls = 0;
        let mut third_fails = || {
            calls += 1;
            if calls == 3 { Err("third") } else { Ok(()) }
        };
        assert_eq!(Load::back_to_back(5, 2).try_time(&mut third_fails), Err("third"));
        assert_eq!(calls, 3);
    }
}
