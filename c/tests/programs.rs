//! The C programs in `examples/` build against the library, as any other C program would, and run.
//!
//! Cargo builds the static and the shared library for this test and puts them beside it.
#![cfg(target_os = "linux")]

use std::{
    env,
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use testing::deadline;

/// The system libraries that the static library needs.
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

#[derive(Clone, Copy, Debug)]
enum Linking {
    Static,
    Dynamic,
}

/// Reports a test that skips itself. The test harness does not capture the report, so `./check` lists it.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The C compiler, if there is one.
fn compiler() -> Option<OsString> {
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let found = Command::new(&cc).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skip(&format!("there is no C compiler {cc:?}; install one, or name it in the variable CC"));
    }
    found.then_some(cc)
}

/// The folder of this test's program, which has the libraries, too.
fn libraries() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    for library in ["libanabranch_c.a", "libanabranch_c.so"] {
        assert!(folder.join(library).is_file(), "cargo has not built {library} in {}", folder.display());
    }
    folder
}

/// Builds an example with all warnings as errors. Returns its path.
fn build(cc: &OsString, example: &str, linking: Linking, more: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{example}-{linking:?}{}", more.len()));
    let libraries = libraries();
    let mut command = Command::new(cc);
    command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]).args(more);
    command.arg("-I").arg(root.join("include")).arg("-o").arg(&program);
    command.arg(root.join("examples").join(example).with_extension("c"));
    match linking {
        Linking::Static => command.arg(libraries.join("libanabranch_c.a")).args(SYSTEM_LIBRARIES),
        Linking::Dynamic => {
            let mut run_path = OsString::from("-Wl,-rpath,");
            run_path.push(&libraries);
            command.arg("-L").arg(&libraries).arg("-lanabranch_c").arg(run_path)
        }
    };
    succeed(&mut command);
    program
}

/// Runs a command, which must succeed. Returns its output.
fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

#[test]
fn loops_jobs_and_errors_behave_as_the_header_says() {
    let _deadline = deadline();
    let Some(cc) = compiler() else { return };
    for linking in [Linking::Static, Linking::Dynamic] {
        let printed = succeed(&mut Command::new(build(&cc, "parallel_for", linking, &[])));
        let expected: String =
            [1, 2, 3, 4, 8].map(|threads| format!("{threads} threads: all right\n")).concat();
        assert_eq!(printed, expected, "{linking:?}");
    }
}

#[test]
fn a_forked_child_gets_an_error() {
    let _deadline = deadline();
    let Some(cc) = compiler() else { return };
    for linking in [Linking::Static, Linking::Dynamic] {
        succeed(&mut Command::new(build(&cc, "fork", linking, &[])));
    }
}

/// Memory that Valgrind reports as "still reachable" at the end is kept for the next thread on purpose. The
/// memory reported as "possibly lost" is the standard library's handle of the main thread, which only an
/// interior pointer refers to. The options count neither as an error, so the test needs no suppressions.
#[test]
fn valgrind_finds_no_error() {
    let _deadline = deadline();
    let Some(cc) = compiler() else { return };
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("valgrind is not installed");
        return;
    }
    let program = build(&cc, "parallel_for", Linking::Dynamic, &["-g"]);
    let options =
        ["--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"];
    // Few elements, because Valgrind runs one thread at a time, and slowly.
    succeed(
        Command::new("valgrind")
            .args(options)
            .arg("--show-leak-kinds=definite,indirect")
            .arg(program)
            .arg("2000"),
    );
}

#[test]
fn the_benchmark_of_callbacks_prints_its_five_rows() {
    let _deadline = deadline();
    const ROWS: [&str; 5] = [
        "control (inline, no call)",
        "regular C call (C -> C)",
        "callback on a runtime thread",
        "callback on a foreign thread, attached",
        "the same, with attach and detach each time",
    ];
    let Some(cc) = compiler() else { return };
    for linking in [Linking::Static, Linking::Dynamic] {
        let program = build(&cc, "callbacks", linking, &[]);
        let printed = succeed(Command::new(program).args(["10000", "3"]));
        let mut lines = printed.lines().skip(1);
        for row in ROWS {
            let figures =
                lines.next().and_then(|line| line.strip_prefix(row)).unwrap_or_else(|| panic!("{printed}"));
            assert!(figures.split_whitespace().all(|figure| figure.parse::<f64>().is_ok()), "{printed}");
        }
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn the_header_compiles_as_cxx() {
    let _deadline = deadline();
    let cxx = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if !Command::new(&cxx).arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip(&format!("there is no C++ compiler {cxx:?}"));
        return;
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/anabranch.h");
    succeed(
        Command::new(cxx)
            .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
            .arg(header),
    );
}
