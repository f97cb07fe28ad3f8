//! Runs of the program on several nodes, under Open MPI.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
};
use tempfile::TempDir;
use testing::mpi::OPEN_MPI;

/// A run on several nodes. It ends when this is dropped.
pub struct Run {
    /// `None` after its end.
    mpirun: Option<Child>,
    /// For the files of Open MPI.
    _files: TempDir,
}

/// Starts the program on several nodes in `folder`. `None` if there is no MPI.
pub fn start(nodes: u16, folder: &Path, args: &str) -> Option<Run> {
    let files = tempfile::tempdir().unwrap();
    let mut command = OPEN_MPI.command(nodes, Path::new(env!("CARGO_BIN_EXE_gray-scott")), files.path());
    command
        .args(args.split_whitespace())
        .current_dir(folder)
        .env("ANABRANCH_NUM_THREADS", "1")
        .env_remove("ANABRANCH_DEVICE");
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(mpirun) => Some(Run { mpirun: Some(mpirun), _files: files }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "skipped: tests with {}", OPEN_MPI.mpirun());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Run {
    /// The process of a node.
    pub fn process(&self, node: u16) -> u32 {
        let mpirun = self.mpirun.as_ref().expect("only `wait` ends the run");
        let (parent, rank) = (mpirun.id().to_string(), format!("OMPI_COMM_WORLD_RANK={node}"));
        let is_ours = |process: &Path| {
            let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1)) == Some(&parent)
                && environment.split(|&byte| byte == 0).any(|variable| variable == rank.as_bytes())
        };
        let mut processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let found = processes.find(|process| is_ours(process)).expect("the node runs");
        found.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    /// Waits for the end of the run.
    pub fn wait(mut self) -> Output {
        let mpirun = self.mpirun.take().expect("only `wait` ends the run");
        mpirun.wait_with_output().unwrap()
    }
}

impl Drop for Run {
    /// A test that has failed leaves no processes. Open MPI ends those that it has started.
    fn drop(&mut self) {
        if let Some(mpirun) = &mut self.mpirun {
            let _ = Command::new("kill").arg(mpirun.id().to_string()).status();
            let _ = mpirun.wait();
        }
    }
}

/// Sends a signal to the process of a node.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap();
    assert!(status.success());
}
