//! Programs in C++ that execute a graph. They get it as numbers, so that all sides have the same
//! dependencies.

use super::{Graph, KEPT, System};
use crate::{
    harness::{Failure, LeftOut},
    peers::program::{Program, TASK_BENCH_MPI, TASK_BENCH_OPENMP},
    workloads::nodes::{check_mpirun, launch},
};

/// A program with a graph.
pub struct Peer(Program);

impl Peer {
    /// Processes with MPI.
    ///
    /// # Errors
    /// The peer is left out if it cannot be compiled or started.
    pub fn mpi(graph: Graph, processes: usize) -> Result<Self, LeftOut> {
        let path = TASK_BENCH_MPI.path()?;
        let left_out = |why| LeftOut { peer: TASK_BENCH_MPI.name.into(), why };
        check_mpirun().map_err(left_out)?;
        let processes = u16::try_from(processes).map_err(|error| left_out(error.to_string()))?;
        let program =
            Program::start(&mut launch(processes, &path)).map_err(|error| left_out(error.to_string()))?;
        Self(program).with(graph, processes.into()).map_err(|error| left_out(error.to_string()))
    }

    /// Threads with OpenMP.
    ///
    /// # Errors
    /// The peer is left out if it cannot be compiled or started.
    pub fn openmp(graph: Graph, threads: usize) -> Result<Self, LeftOut> {
        let program = TASK_BENCH_OPENMP.start()?;
        let left_out =
            |error: Failure| LeftOut { peer: TASK_BENCH_OPENMP.name.into(), why: error.to_string() };
        Self(program).with(graph, threads).map_err(left_out)
    }

    fn with(mut self, graph: Graph, threads: usize) -> Result<Self, Failure> {
        self.0.ask(&format!("{threads} {KEPT} {}", graph.text()), 0)?;
        Ok(self)
    }

    fn figure(&mut self, request: &str) -> Result<f64, Failure> {
        Ok(self.0.ask(request, 1)?[0])
    }
}

impl System for Peer {
    fn alone(&mut self) -> Result<f64, Failure> {
        self.figure("alone 0 0")
    }

    fn run(&mut self, steps: usize, iterations: u64) -> Result<f64, Failure> {
        self.figure(&format!("run {steps} {iterations}"))
    }
}
