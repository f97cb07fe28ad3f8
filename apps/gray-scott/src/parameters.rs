//! The parameters of a run: everything that its result depends on.
//!
//! The same [`Parameters`] are on the command line, in the output file's
//! attributes and in the checkpoint. Their [`entries`](Parameters::entries) are text, by the name of
//! the option that sets each; two sets are compared by them when a run is resumed.

use crate::model::{Edges, Params};
use serde::{Deserialize, Serialize};

/// The parameters of one simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Rows of the grid.
    pub rows: usize,
    /// Columns of the grid.
    pub cols: usize,
    /// Frames of the whole run.
    pub frames: u64,
    /// Time steps from one frame to the next.
    pub steps_per_frame: u64,
    /// Length of a time step.
    pub dt: f32,
    /// Feed rate F.
    pub feed: f32,
    /// Kill rate k.
    pub kill: f32,
    /// Diffusion coefficient of U.
    pub du: f32,
    /// Diffusion coefficient of V.
    pub dv: f32,
    /// The values outside the grid.
    pub edges: Edges,
    /// Seed of the noise in the initial state; `None` for no noise.
    pub noise: Option<u64>,
}

impl Default for Parameters {
    fn default() -> Self {
        let Params { du, dv, feed, kill, dt } = Params::default();
        Self {
            rows: 1080,
            cols: 1920,
            frames: 100,
            steps_per_frame: 32,
            dt,
            feed,
            kill,
            du,
            dv,
            edges: Edges::default(),
            noise: None,
        }
    }
}

/// A parameter that differs between two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The option's name, without dashes.
    pub name: &'static str,
    /// Its value in the first set.
    pub first: String,
    /// Its value in the second set.
    pub second: String,
}

impl Parameters {
    /// The constants of the model.
    pub fn constants(&self) -> Params {
        Params { du: self.du, dv: self.dv, feed: self.feed, kill: self.kill, dt: self.dt }
    }

    /// Cells of the grid.
    pub fn cells(&self) -> u64 {
        self.rows as u64 * self.cols as u64
    }

    /// Steps of the whole run.
    pub fn steps(&self) -> u64 {
        self.frames * self.steps_per_frame
    }

    /// Steps from the initial state to frame `frame`, which is counted from 0.
    pub fn step_of_frame(&self, frame: u64) -> u64 {
        (frame + 1) * self.steps_per_frame
    }

    /// Bytes of one stored frame.
    pub fn frame_bytes(&self) -> u64 {
        self.cells() * size_of::<f32>() as u64
    }

    /// Bytes of all frames.
    pub fn total_bytes(&self) -> u64 {
        self.frame_bytes() * self.frames
    }

    /// Whether the totals of bytes and of steps fit into 63 bits, so that sizes and counts do not overflow.
    pub fn is_representable(&self) -> bool {
        let limit = i64::MAX as u128;
        let bytes = self.rows as u128 * self.cols as u128 * 4;
        bytes <= limit
            && bytes * self.frames as u128 <= limit
            && self.frames as u128 * self.steps_per_frame as u128 <= limit
    }

    /// The longest time step for which the state without V (U = 1, V = 0) is stable.
    ///
    /// An explicit step multiplies a wave in U by 1 - dt (s Du + F), and a wave in V by 1 - dt (s Dv + F +
    /// k), where s is from 0 (the longest waves) to 4 (the shortest). These factors must stay above -1.
    pub fn longest_stable_dt(&self) -> f64 {
        let [feed, kill, du, dv] = [self.feed, self.kill, self.du, self.dv].map(f64::from);
        2.0 / (4.0 * du + feed).max(4.0 * dv + feed + kill)
    }

    /// Whether the time step is within [`longest_stable_dt`](Self::longest_stable_dt).
    pub fn is_stable(&self) -> bool {
        f64::from(self.dt) <= self.longest_stable_dt()
    }

    /// Every parameter as text, by the name of its option.
    pub fn entries(&self) -> [(&'static str, String); 11] {
        [
            ("rows", self.rows.to_string()),
            ("cols", self.cols.to_string()),
            ("frames", self.frames.to_string()),
            ("steps-per-frame", self.steps_per_frame.to_string()),
            ("dt", self.dt.to_string()),
            ("feed", self.feed.to_string()),
            ("kill", self.kill.to_string()),
            ("du", self.du.to_string()),
            ("dv", self.dv.to_string()),
            ("edges", self.edges.to_string()),
            ("noise", self.noise.map_or("none".to_owned(), |seed| seed.to_string())),
        ]
    }

    /// The first parameter in which `self` and `other` differ.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let pairs = self.entries().into_iter().zip(other.entries());
        pairs
            .filter(|((_, a), (_, b))| a != b)
            .map(|((name, first), (_, second))| Difference { name, first, second })
            .next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_stable_and_store_less_than_a_gigabyte() {
        let p = Parameters::default();
        assert_eq!((p.cells(), p.steps(), p.total_bytes()), (2_073_600, 3200, 829_440_000));
        assert!(p.is_stable() && p.is_representable());
        assert_eq!(p.step_of_frame(0), 32);
    }

    #[test]
    fn a_time_step_beyond_the_limit_is_unstable() {
        let p = Parameters::default();
        assert!((p.longest_stable_dt() - 2.0 / 0.414).abs() < 1e-4);
        assert!(Parameters { dt: 4.8, ..p.clone() }.is_stable());
        // Diffusion alone would be stable up to 5.
        assert!(!Parameters { dt: 4.9, ..p.clone() }.is_stable());
        let still = Parameters { feed: 0.0, kill: 0.0, du: 0.0, dv: 0.0, ..p };
        assert_eq!(still.longest_stable_dt(), f64::INFINITY);
    }

    #[test]
    fn sizes_beyond_63_bits_are_recognised() {
        let huge = Parameters { rows: 1 << 31, cols: 1 << 31, ..Parameters::default() };
        assert!(!huge.is_representable());
        let endless = Parameters { frames: u64::MAX, rows: 1, cols: 1, ..Parameters::default() };
        assert!(!endless.is_representable());
    }

    #[test]
    fn a_difference_names_the_option_and_both_values() {
        let file = Parameters::default();
        assert_eq!(file.difference(&file.clone()), None);
        let requested = Parameters { feed: 0.03, ..file.clone() };
        let difference = file.difference(&requested).unwrap();
        assert_eq!((difference.name, &*difference.first, &*difference.second), ("feed", "0.014", "0.03"));
    }

    #[test]
    fn parameters_are_read_back_from_json() {
        let p = Parameters { kill: 0.06093, dt: 1.0 / 3.0, ..Parameters::default() };
        let text = serde_json::to_string(&p).unwrap();
        assert_eq!(serde_json::from_str::<Parameters>(&text).unwrap(), p);
    }
}
