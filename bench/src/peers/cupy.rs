//! CuPy on the GPU of NVIDIA's driver: a program in Python, which answers requests for figures line by line.

use std::process::{Command, Stdio};

use super::program::Program;
use crate::harness::{Failure, LeftOut, Load};

/// The name of the peer in the report.
pub const CUPY: &str = "CuPy";

/// A running program.
pub struct Cupy(Program);

impl Cupy {
    /// Starts it.
    ///
    /// # Errors
    /// The peer is left out if Python, CuPy or the GPU is missing.
    pub fn start() -> Result<Self, LeftOut> {
        let mut command = Command::new("python3");
        command.args(["-c", include_str!("../../peers/cupy.py")]).stderr(Stdio::null());
        let mut start = || -> Result<Self, Failure> {
            let mut started = Self(Program::start(&mut command)?);
            started.time("sum", 1, Load::back_to_back(1, 1))?;
            Ok(started)
        };
        start().map_err(|_| LeftOut {
            peer: CUPY.into(),
            why: "`python3` has no CuPy, or CuPy finds no GPU; install the package cupy-cuda13x".into(),
        })
    }

    /// Requests the nanoseconds of an operation on `f32`, one figure per sample.
    ///
    /// # Errors
    /// The program has ended.
    pub fn time(&mut self, operation: &str, elements: usize, load: Load) -> Result<Vec<f64>, Failure> {
        let Load { samples, batch, .. } = load;
        self.0.ask(&format!("{operation} {elements} {samples} {batch}"), samples)
    }
}
