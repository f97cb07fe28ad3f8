//! Starting a program as the processes of an MPI program.

use std::{
    io::{self, Write as _},
    path::Path,
    process::{Command, Output},
};

/// An MPI that may be installed.
#[derive(Debug)]
pub struct Mpi {
    mpirun: &'static str,
    arguments: &'static [&'static str],
    package: &'static str,
}

/// Open MPI. The processes may be more than the processors, and may be those of root.
pub const OPEN_MPI: Mpi = Mpi {
    mpirun: "mpirun.openmpi",
    arguments: &["--oversubscribe", "--bind-to", "none"],
    package: "openmpi-bin",
};

/// MPICH.
pub const MPICH: Mpi = Mpi { mpirun: "mpirun.mpich", arguments: &[], package: "mpich" };

impl Mpi {
    /// The name of its launcher.
    pub fn mpirun(&self) -> &'static str {
        self.mpirun
    }

    /// The command that starts a program `nodes` times. The launcher and the processes have `folder` for
    /// their temporary files. Each launcher needs a folder of its own: Open MPI may fail if two launchers
    /// create their folder in the same place at the same time.
    pub fn command(&self, nodes: u16, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(self.mpirun);
        command
            .args(self.arguments)
            .args(["-n", &nodes.to_string()])
            .arg(program)
            .env("TMPDIR", folder)
            .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        if let Ok(options) = std::env::var("ASAN_OPTIONS") {
            // MPI libraries do not free all of their memory.
            command.env("ASAN_OPTIONS", options + ":detect_leaks=0");
        }
        command
    }

    /// Starts a program `nodes` times, with what `more` adds to the command, and waits for its end. Returns
    /// `None` if this MPI is not installed, and says so.
    ///
    /// # Panics
    /// If it is installed and cannot be started, or if no temporary folder can be created.
    pub fn run(&self, nodes: u16, program: &Path, more: impl FnOnce(&mut Command)) -> Option<Output> {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let mut command = self.command(nodes, program, folder.path());
        more(&mut command);
        output(&mut command, &format!("tests with {}", self.mpirun), self.package)
    }

    /// Starts the test `test` of this test program `nodes` times: see [`run`](Self::run).
    ///
    /// # Panics
    /// As `run`.
    pub fn run_test(&self, nodes: u16, test: &str, more: impl FnOnce(&mut Command)) -> Option<Output> {
        let program = std::env::current_exe().expect("a test program has a path");
        self.run(nodes, &program, |command| {
            more(command.args([test, "--exact", "--nocapture", "--test-threads=1"]));
        })
    }
}

/// What a command has printed; `None` if it is not installed. Then this says that `what` is skipped, and
/// which package it needs.
fn output(command: &mut Command, what: &str, package: &str) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Past the capture of the test harness.
            let _ = writeln!(io::stderr(), "skipped: {what} (needs the package {package})");
            None
        }
        Err(error) => panic!("{} cannot be started: {error}", command.get_program().display()),
    }
}

/// Compiles C with the compiler of an MPI, without a warning. Returns `false` if it is not installed, and
/// says that `what` is skipped.
///
/// # Panics
/// If it is installed, and cannot be started or prints a warning.
pub fn compile(mpicc: &str, package: &str, what: &str, arguments: impl FnOnce(&mut Command)) -> bool {
    let mut command = Command::new(mpicc);
    arguments(command.args(["-Wall", "-Werror"]));
    let output = output(&mut command, what, package);
    if let Some(output) = &output {
        assert!(output.status.success(), "{}", text(output));
    }
    output.is_some()
}

/// Checks that a program finds MPI at run time, and links none.
///
/// # Panics
/// If it links an MPI library.
pub fn assert_nothing_is_linked(program: &Path) {
    let Ok(output) = Command::new("ldd").arg(program).output() else {
        let _ = writeln!(io::stderr(), "skipped: the libraries that a program needs (there is no `ldd`)");
        return;
    };
    let libraries = text(&output);
    assert!(libraries.contains("libc") && !libraries.contains("mpi"), "{libraries}");
}

/// What a program has printed, to both of its outputs.
pub fn text(output: &Output) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    lossy(&output.stdout) + &lossy(&output.stderr)
}
