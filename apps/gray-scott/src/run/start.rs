//! The state that a run starts from.

use crate::{model, parameters::Parameters};

/// The state that a run starts from, and the parameters of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The parameters of the whole run.
    pub parameters: Parameters,
    /// The index of the first frame to compute: the number of frames before this state.
    pub first_frame: u64,
    /// U, row after row.
    pub u: Vec<f32>,
    /// V, row after row.
    pub v: Vec<f32>,
}

impl Start {
    /// The initial state of a run.
    pub fn initial(parameters: Parameters) -> Self {
        let (u, v) = model::initial(parameters.rows, parameters.cols, parameters.noise);
        Self { parameters, first_frame: 0, u, v }
    }

    /// Whether the run has no frame left to compute.
    pub fn is_complete(&self) -> bool {
        self.first_frame >= self.parameters.frames
    }
}
