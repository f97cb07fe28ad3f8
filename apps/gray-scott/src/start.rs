//! The state that a run starts from.

use crate::{error::Error, model, parameters::Parameters};
use anabranch_store::checkpoint::SavedCheckpoint;
use std::{ops::Range, path::PathBuf};

/// The state that a run starts from, and the parameters of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The parameters of the whole run.
    pub parameters: Parameters,
    /// The number of steps before this state. It may lie between two frames.
    pub step: u64,
    /// U and V.
    pub fields: Fields,
}

/// The values of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Fields {
    /// Those of the initial state.
    Initial,
    /// Those of a checkpoint. Each node reads its rows.
    Saved(PathBuf),
    /// These.
    Given {
        /// U, row after row.
        u: Vec<f32>,
        /// V, row after row.
        v: Vec<f32>,
    },
}

impl Start {
    /// The initial state of a run.
    pub fn initial(parameters: Parameters) -> Self {
        Self { parameters, step: 0, fields: Fields::Initial }
    }

    /// The frames before this state, all of which were complete.
    pub fn frames(&self) -> u64 {
        self.step / self.parameters.steps_per_frame
    }

    /// Writes some rows of the state to `u` and `v`.
    ///
    /// # Errors
    /// When the checkpoint cannot be read.
    pub fn rows(&self, rows: Range<usize>, u: &mut [f32], v: &mut [f32]) -> Result<(), Error> {
        let p = &self.parameters;
        match &self.fields {
            Fields::Initial => model::initial_rows([p.rows, p.cols], p.noise, rows, u, v),
            Fields::Saved(path) => {
                let saved = SavedCheckpoint::open(path)?;
                saved.read_rows("u", rows.clone(), u)?;
                saved.read_rows("v", rows, v)?;
            }
            Fields::Given { u: all_u, v: all_v } => {
                let cells = rows.start * p.cols..rows.end * p.cols;
                u.copy_from_slice(&all_u[cells.clone()]);
                v.copy_from_slice(&all_v[cells]);
            }
        }
        Ok(())
    }

    /// The whole state: U and V, row after row.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn whole(&self) -> Result<(Vec<f32>, Vec<f32>), Error> {
        let rows = self.parameters.rows;
        let cells = rows * self.parameters.cols;
        let (mut u, mut v) = (vec![0.0; cells], vec![0.0; cells]);
        self.rows(0..rows, &mut u, &mut v)?;
        Ok((u, v))
    }
}
