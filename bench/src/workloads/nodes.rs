//! Work of several processes that `mpirun` starts: this program, started with [`WORD`] as its first argument.
//!
//! One process prints the figures. `peers/mpi.cpp` does the same by hand.

use std::{
    env,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use anabranch::prelude::*;
use rustix::time::ClockId;

use crate::{clock::seconds, harness::Failure};

/// The first argument that makes this program one of the processes. The workload and the numbers of samples
/// and of operations in a sample follow.
pub const WORD: &str = "run-on-nodes";

/// The bytes of the buffer that all processes gather.
const GATHERED: usize = 8 << 20;

/// How often a visit times an operation.
#[derive(Clone, Copy)]
pub struct Visit {
    /// The name of the work.
    pub workload: &'static str,
    pub processes: u16,
    pub samples: usize,
    /// The number of operations of a sample.
    pub batch: usize,
}

impl Visit {
    /// Starts the processes of this program.
    ///
    /// # Errors
    /// If a process fails, or if `mpirun` is missing.
    pub fn ours(&self) -> Result<Vec<f64>, Failure> {
        self.run(&env::current_exe()?, &[WORD])
    }

    /// Starts the processes of the program by hand.
    ///
    /// # Errors
    /// As [`ours`](Self::ours).
    pub fn by_hand(&self, program: &Path) -> Result<Vec<f64>, Failure> {
        self.run(program, &[])
    }

    fn run(&self, program: &Path, first: &[&str]) -> Result<Vec<f64>, Failure> {
        let (samples, batch) = (self.samples.to_string(), self.batch.to_string());
        let output = launch(self.processes, program)
            .args(first)
            .args([self.workload, &samples, &batch])
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            return Err(format!(
                "{} ended with {}: {}",
                program.display(),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )
            .into());
        }
        let text = String::from_utf8(output.stdout)?;
        Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }
}

/// Whether processes can be started; if not, what to install.
///
/// # Errors
/// If they cannot.
pub fn check_mpirun() -> Result<(), String> {
    let mpirun = mpirun();
    match Command::new(&mpirun).arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "no `{mpirun}` ({error}); install an MPI (Debian: apt install openmpi-bin), or set MPIRUN"
        )),
    }
}

/// The command that starts MPI programs.
fn mpirun() -> String {
    env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into())
}

/// Starts a program as this number of processes. Each is bound to a core, if there are enough.
pub fn launch(processes: u16, program: &Path) -> Command {
    let mpirun = mpirun();
    let mut command = Command::new(&mpirun);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if usize::from(processes) <= cores {
        command.args(["-bind-to", "core"]);
    } else if is_open_mpi(&mpirun) {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command
        .args(["-n", &processes.to_string()])
        .arg(program)
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command
}

fn is_open_mpi(mpirun: &str) -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let version = Command::new(mpirun).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
    })
}

/// If this process was started as one of several, does its work and returns its exit code.
pub fn run_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [word, workload, samples, batch] = arguments.as_slice() else { return None };
    if word != WORD {
        return None;
    }
    let work = || -> Result<(), Failure> {
        let node = Node {
            rt: Runtime::builder().threads(1).build()?,
            samples: samples.parse()?,
            batch: batch.parse()?,
        };
        node.work(workload)
    };
    Some(match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

struct Node {
    rt: Runtime,
    samples: usize,
    batch: usize,
}

impl Node {
    fn work(&self, workload: &str) -> Result<(), Failure> {
        match workload {
            "start" => print(self.rt.node() == 0, 0.0)?,
            "barrier" => self.measure(|| self.rt.wait())?,
            "stencil-1024" => self.stencil(1 << 10)?,
            "stencil-1048576" => self.stencil(1 << 20)?,
            "all-gather" => self.all_gather()?,
            "effects" => self.effects()?,
            "barriers" => self.barriers()?,
            "waiting-cpu" => self.wait_a_second(|used, _| used)?,
            "waiting-late" => self.wait_a_second(|_, late| late)?,
            other => return Err(format!("no workload is called `{other}`").into()),
        }
        Ok(())
    }

    /// Prints the microseconds of one operation for each sample, after a batch that does not count.
    fn measure(&self, mut operation: impl FnMut() -> Result<(), Error>) -> Result<(), Failure> {
        for sample in 0..=self.samples {
            self.rt.wait()?;
            let begin = Instant::now();
            for _ in 0..self.batch {
                operation()?;
            }
            self.rt.wait()?;
            let micros = begin.elapsed().as_secs_f64() * 1e6 / self.batch as f64;
            print(self.rt.node() == 0 && sample > 0, micros)?;
        }
        Ok(())
    }

    /// Steps of a stencil of three points.
    fn stencil(&self, cells: usize) -> Result<(), Failure> {
        let buffers = [(); 2].map(|()| self.rt.buffer::<f32, 1>([cells]));
        for buffer in &buffers {
            let fill = self.rt.task("fill").over([cells]).write(buffer, one_to_one());
            fill.kernel(|_, (part,)| part.fill(1.0))?;
        }
        let [mut before, mut after] = buffers;
        self.measure(|| {
            let step = self.rt.task("step").over([cells]);
            step.read(&before, neighborhood([1])).write(&after, one_to_one()).kernel(
                move |tile, (old, new)| {
                    // Wider than the tile by a cell on each side, except at the ends of the buffer.
                    let old = old.as_slice().expect("one dimension");
                    let new = new.as_mut_slice().expect("one dimension");
                    let at_begin = usize::from(tile.range().min()[0] == 0);
                    let at_end = usize::from(tile.range().max()[0] == cells);
                    let last = new.len() - 1;
                    let around =
                        |before: f32, here: f32, after: f32| 0.25 * before + 0.5 * here + 0.25 * after;
                    if at_begin == 1 {
                        new[0] = around(old[0], old[0], old[1]);
                    }
                    if at_end == 1 {
                        let end = old.len() - 1;
                        new[last] = around(old[end - 1], old[end], old[end]);
                    }
                    let inner = &mut new[at_begin..=last - at_end];
                    for (new, old) in inner.iter_mut().zip(old.windows(3)) {
                        *new = around(old[0], old[1], old[2]);
                    }
                },
            )?;
            std::mem::swap(&mut before, &mut after);
            Ok(())
        })
    }

    /// Each process writes its part of a buffer, and reads all of it.
    fn all_gather(&self) -> Result<(), Failure> {
        let buffer = self.rt.buffer::<u8, 1>([GATHERED]);
        self.measure(|| {
            let write = self.rt.task("write").over([GATHERED]).write(&buffer, one_to_one());
            write.kernel(|_, (part,)| part.fill(1))?;
            self.rt.task("gather").collective().read(&buffer, all()).host(|_, (_,)| {})?;
            Ok(())
        })
    }

    /// Host tasks on all processes, in sequence.
    fn effects(&self) -> Result<(), Failure> {
        let object = self.rt.host_object(0_u64);
        self.measure(|| {
            let task = self.rt.task("count").collective().effect(&object, sequential());
            task.host(|_, (count,)| *count += 1)?;
            Ok(())
        })
    }

    /// Host tasks on all processes, with a barrier after each.
    fn barriers(&self) -> Result<(), Failure> {
        self.measure(|| {
            self.rt.task("count").collective().host(|_, ()| {})?;
            self.rt.wait()
        })
    }

    /// The last process waits for a second for the first. Prints one of: the seconds of processor time that
    /// this takes, and how many milliseconds the process is late.
    fn wait_a_second(&self, figure: fn(f64, f64) -> f64) -> Result<(), Failure> {
        let clock = self.rt.buffer::<f64, 1>([1]);
        let last = self.rt.nodes() - 1;
        for _ in 0..self.samples {
            self.rt.wait()?;
            let used = seconds(ClockId::ProcessCPUTime);
            self.rt.task("sleep").once().write(&clock, all()).host(|(clock,)| {
                thread::sleep(Duration::from_secs(1));
                clock.set([0], seconds(ClockId::Monotonic));
            })?;
            let late = self.rt.host_object(0.0);
            let look = self.rt.task("look").once().on_node(last)?;
            look.read(&clock, all()).effect(&late, sequential()).host(|(clock, late)| {
                *late = (seconds(ClockId::Monotonic) - clock[[0]]) * 1e3;
            })?;
            let late = self.rt.fence(&late)?.wait()?;
            let used = seconds(ClockId::ProcessCPUTime) - used;
            print(self.rt.node() == last, figure(used, late))?;
        }
        Ok(())
    }
}

/// Prints a figure, if this process is the one that prints.
fn print(prints: bool, figure: f64) -> io::Result<()> {
    if !prints {
        return Ok(());
    }
    let mut output = io::stdout().lock();
    write!(output, "{figure:.6} ")?;
    output.flush()
}
