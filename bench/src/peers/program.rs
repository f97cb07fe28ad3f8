//! Peers written in C++: small programs that answer requests for figures line by line.
//!
//! Their sources are part of this program (`peers/*.cpp`; `peer.hpp` defines the requests). They are compiled
//! when they are first needed; the executables are kept beside that of this program. Without a compiler or
//! the library, the peer is left out.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::harness::{Failure, LeftOut, Load};

/// The headers that the sources include.
const HEADERS: [(&str, &str); 2] = [
    ("peer.hpp", include_str!("../../peers/peer.hpp")),
    ("task_bench.hpp", include_str!("../../peers/task_bench.hpp")),
];

/// The reason to leave out a peer for AVX-512.
pub const NO_AVX512: &str = "this processor has no AVX-512";

/// A peer in C++.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of the peer in the report.
    pub name: &'static str,
    file: &'static str,
    text: &'static str,
    flags: &'static [&'static str],
    install: &'static str,
    needs_avx512: bool,
    /// The command that compiles it.
    compiler: fn() -> String,
}

/// oneAPI Threading Building Blocks.
pub const TBB: Source = Source {
    name: "TBB",
    file: "tbb",
    text: include_str!("../../peers/tbb.cpp"),
    flags: &["-ltbb"],
    install: "install oneTBB with its headers (Debian: apt install libtbb-dev)",
    needs_avx512: false,
    compiler,
};

/// The loops of TBB. Neither the loops of this program nor these are compiled with `-march`: both sides use
/// the vector instructions that every x86-64 processor has.
pub const TBB_LOOPS: Source = Source {
    file: "tbb-loops",
    text: include_str!("../../peers/tbb_loops.cpp"),
    flags: &["-fopenmp-simd", "-ltbb"],
    ..TBB
};

/// The OpenMP of the C++ compiler.
pub const OPENMP: Source = Source {
    name: "OpenMP",
    file: "openmp",
    text: include_str!("../../peers/openmp.cpp"),
    flags: &["-fopenmp"],
    install: "install a compiler with OpenMP (Debian: apt install g++)",
    needs_avx512: false,
    compiler,
};

/// Programs on several processes with MPI by hand. They answer no requests: see `workloads/nodes.rs`.
pub const MPI: Source = Source {
    name: "MPI",
    file: "mpi",
    text: include_str!("../../peers/mpi.cpp"),
    flags: &[],
    install: "install an MPI with its headers (Debian: apt install libopenmpi-dev openmpi-bin)",
    needs_avx512: false,
    compiler: || env::var("MPICXX").unwrap_or_else(|_| "mpicxx".into()),
};

/// Task Bench on processes with MPI, which answer requests of their own: see `workloads/task_bench/peer.rs`.
pub const TASK_BENCH_MPI: Source =
    Source { file: "task-bench-mpi", text: include_str!("../../peers/task_bench_mpi.cpp"), ..MPI };

/// Task Bench on threads with the tasks of OpenMP.
pub const TASK_BENCH_OPENMP: Source = Source {
    name: "OpenMP tasks",
    file: "task-bench-openmp",
    text: include_str!("../../peers/task_bench_openmp.cpp"),
    ..OPENMP
};

/// The loops of OpenMP.
pub const OPENMP_LOOPS: Source =
    Source { file: "openmp-loops", text: include_str!("../../peers/openmp_loops.cpp"), ..OPENMP };

/// Gray-Scott with OpenMP, for processors with AVX-512.
pub const OPENMP_GRAY_SCOTT: Source = Source {
    file: "openmp-gray-scott",
    text: include_str!("../../peers/openmp_gray_scott.cpp"),
    flags: &[
        "-fopenmp",
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mprefer-vector-width=512",
        "-ffp-contract=fast",
    ],
    needs_avx512: true,
    ..OPENMP
};

/// Whether this processor has the vector instructions that peers for AVX-512 use.
pub fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

impl Source {
    /// Starts the program; compiles it first if necessary.
    ///
    /// # Errors
    /// The peer is left out if there is no compiler, if the compiler lacks the library, if the processor
    /// lacks AVX-512 and the peer needs it, or if the program does not start.
    pub fn start(&self) -> Result<Program, LeftOut> {
        Program::start(&mut Command::new(self.path()?)).map_err(|error| self.left_out(&error.to_string()))
    }

    /// The path of the program; compiles it first if necessary.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn path(&self) -> Result<PathBuf, LeftOut> {
        if self.needs_avx512 && !has_avx512() {
            return Err(LeftOut { peer: self.name.into(), why: NO_AVX512.into() });
        }
        self.executable().map_err(|why| self.left_out(&why))
    }

    fn left_out(&self, why: &str) -> LeftOut {
        LeftOut { peer: self.name.into(), why: format!("{why}; {}", self.install) }
    }

    fn executable(&self) -> Result<PathBuf, String> {
        let folder = cache_folder();
        let path = folder.join(format!("{}-{:016x}", self.file, self.fingerprint()));
        if !path.exists() {
            self.compile(&folder, &path)?;
        }
        Ok(path)
    }

    /// A hash of everything that the executable depends on.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (HEADERS, self.text, self.flags, (self.compiler)()).hash(&mut hasher);
        hasher.finish()
    }

    fn compile(&self, folder: &Path, path: &Path) -> Result<(), String> {
        // The folder belongs to this call, so that two runs or threads at the same time do not write the same
        // file.
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let (process, call) = (std::process::id(), CALLS.fetch_add(1, Relaxed));
        let work = folder.join(format!("{}-{process}-{call}.tmp", self.file));
        let prepare = || -> io::Result<()> {
            fs::create_dir_all(&work)?;
            HEADERS.iter().try_for_each(|(name, text)| fs::write(work.join(name), text))?;
            fs::write(work.join("peer.cpp"), self.text)
        };
        let compiler = (self.compiler)();
        let result = prepare()
            .map_err(|error| format!("cannot write to {}: {error}", work.display()))
            .and_then(|()| {
                // The variable that names it may contain flags.
                let mut words = compiler.split_whitespace();
                let output = Command::new(words.next().unwrap_or_default())
                    .args(words)
                    .current_dir(&work)
                    .args(["-std=c++17", "-O3", "peer.cpp", "-o", "peer"])
                    .args(self.flags)
                    .output()
                    .map_err(|error| {
                        format!(
                            "no C++ compiler `{compiler}` ({error}); set CXX (for MPI: MPICXX) to another one"
                        )
                    })?;
                if !output.status.success() {
                    return Err(first_error(&String::from_utf8_lossy(&output.stderr)));
                }
                fs::rename(work.join("peer"), path).map_err(|error| error.to_string())
            });
        // A folder that cannot be removed is small and harmless.
        let _ = fs::remove_dir_all(&work);
        result
    }
}

/// The command that compiles C++ for one process.
pub fn compiler() -> String {
    env::var("CXX").ok().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "c++".into())
}

/// The folder of the executables, beside this program in the build's folder.
fn cache_folder() -> PathBuf {
    let beside =
        env::current_exe().ok().and_then(|exe| exe.parent().map(|folder| folder.join("bench-peers")));
    beside.unwrap_or_else(|| env::temp_dir().join("bench-peers"))
}

/// The line of a compiler's output that reports the error.
fn first_error(output: &str) -> String {
    let line = output.lines().find(|line| line.contains("error") || line.contains("cannot find"));
    line.or(output.lines().next()).unwrap_or("the compiler failed without a message").trim().to_string()
}

/// A running peer program. Dropping the value ends the program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts a program by this command.
    ///
    /// # Errors
    /// If the command is not there.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, requests, answers })
    }

    /// Requests the figures of `benchmark`, one per sample: the nanoseconds of one operation (a region of
    /// `size` items, a graph of `size` tasks), or the quantity that the benchmark counts.
    ///
    /// # Errors
    /// If the program ends, or if its answer is not `load.samples` figures.
    pub fn time(
        &mut self,
        benchmark: &str,
        size: usize,
        threads: usize,
        load: Load,
    ) -> Result<Vec<f64>, Failure> {
        self.time_grid(benchmark, [size, 1], threads, load)
    }

    /// As [`time`](Self::time), for a benchmark whose size is that of a grid: rows and columns.
    ///
    /// # Errors
    /// As [`time`](Self::time).
    pub fn time_grid(
        &mut self,
        benchmark: &str,
        [size, columns]: [usize; 2],
        threads: usize,
        load: Load,
    ) -> Result<Vec<f64>, Failure> {
        let Load { samples, batch, pause } = load;
        let request =
            format!("{benchmark} {size} {columns} {threads} {samples} {batch} {}", pause.as_nanos());
        self.ask(&request, samples)
    }

    /// Sends a line, and returns the figures of the answer.
    ///
    /// # Errors
    /// If the program ends, or if its answer is not this number of figures.
    pub fn ask(&mut self, request: &str, count: usize) -> Result<Vec<f64>, Failure> {
        let requests = self.requests.as_mut().expect("the pipe is open until the value is dropped");
        writeln!(requests, "{request}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let figures: Result<Vec<f64>, _> = answer.split_whitespace().map(str::parse).collect();
        match figures {
            Ok(figures) if figures.len() == count && answer.ends_with('\n') => Ok(figures),
            _ => Err(format!("its program answered `{}` to `{request}`", answer.trim()).into()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.requests.take());
        // The program ends at the end of its input. Its exit status does not matter.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_compiler_is_found() {
        let _deadline = testing::deadline();
        let output = "peer.cpp: In function\npeer.cpp:4:10: fatal error: tbb/x.h: No such file\n";
        assert_eq!(first_error(output), "peer.cpp:4:10: fatal error: tbb/x.h: No such file");
        assert_eq!(first_error(""), "the compiler failed without a message");
    }

    #[test]
    fn threads_that_compile_a_peer_at_the_same_time_do_not_disturb_each_other() {
        let _deadline = testing::deadline();
        let text = format!(
            "// {}\n#include \"peer.hpp\"\nint main() {{ return peer::serve({{}}); }}\n",
            std::process::id()
        );
        let source = Source {
            name: "Nothing",
            file: "nothing",
            text: text.leak(),
            flags: &[],
            install: "install a C++ compiler",
            needs_avx512: false,
            compiler,
        };
        if Command::new(compiler()).arg("--version").output().is_err() {
            return eprintln!("skipped: no C++ compiler");
        }
        std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| source.executable()));
            for thread in threads {
                assert!(thread.join().unwrap().unwrap().exists());
            }
        });
        fs::remove_file(source.executable().unwrap()).unwrap();
    }

    #[test]
    fn a_peer_that_does_not_compile_is_left_out_with_a_reason_and_a_remedy() {
        let _deadline = testing::deadline();
        let source = Source {
            name: "Nothing",
            file: "nothing",
            text: "#include <no/such/header>\n",
            flags: &[],
            install: "install nothing",
            needs_avx512: false,
            compiler,
        };
        let left_out = source.start().unwrap_err().to_string();
        assert!(left_out.starts_with("Nothing left out: "), "{left_out}");
        assert!(left_out.ends_with("; install nothing"), "{left_out}");
    }
}
