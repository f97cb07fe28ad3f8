//! The state that a run starts from.

use crate::{model, parameters::Parameters};

/// The state that a run starts from, and the parameters of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The parameters of the whole run.
    pub parameters: Parameters,
    /// The number of steps before this state. It may lie between two frames.
    pub step: u64,
    /// U, row after row.
    pub u: Vec<f32>,
    /// V, row after row.
    pub v: Vec<f32>,
}

impl Start {
    /// The initial state of a run.
    pub fn initial(parameters: Parameters) -> Self {
        let (u, v) = model::initial(parameters.rows, parameters.cols, parameters.noise);
        Self { parameters, step: 0, u, v }
    }

    /// The frames before this state, all of which were complete.
    pub fn frames(&self) -> u64 {
        self.step / self.parameters.steps_per_frame
    }
}
