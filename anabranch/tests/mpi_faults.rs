//! Faults of processes that `mpirun` has started: whatever happens to one of them, the others end with an
//! error that says so, or the launcher ends them. No process stays behind.

use anabranch::prelude::*;
use std::{
    env, fs, mem,
    path::Path,
    process::{self, Command, Output},
    thread,
    time::Duration,
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// The fault that the processes run into; set by the tests below.
const TASK: &str = "ANABRANCH_MPI_TASK";
/// A folder in which each process leaves its number, and what it ends with.
const FOLDER: &str = "ANABRANCH_MPI_FOLDER";
/// The node that has the fault.
const ODD: u16 = 1;

/// Runs the processes of a fault; `None` if this MPI is not installed. When this returns, no process is left.
fn run(mpi: &Mpi, nodes: u16, fault: &str, folder: &Path, timeout: &str) -> Option<Output> {
    let output = mpi.run_test(nodes, "one_process", |command| {
        let variables = [("ANABRANCH_NUM_THREADS", "2"), ("ANABRANCH_NODE_TIMEOUT", timeout)];
        command.env(TASK, fault).env(FOLDER, folder).envs(variables);
    })?;
    for number in notes(folder, "process") {
        // A process that the launcher has ended may be there for another moment. The deadline of the test
        // ends this.
        while Path::new("/proc").join(&number).exists() {
            thread::sleep(Duration::from_millis(5));
        }
    }
    Some(output)
}

/// Leaves a note of a kind in the folder.
fn leave(kind: &str, node: u16, note: &str) {
    let folder = env::var_os(FOLDER).unwrap();
    // The file is complete when it has its name.
    let [part, whole] =
        ["part", kind].map(|kind| Path::new(&folder).join(format!("{kind} of {node} {}", process::id())));
    fs::write(&part, note).unwrap();
    fs::rename(part, whole).unwrap();
}

/// The notes of a kind.
fn notes(folder: &Path, kind: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut paths: Vec<_> = entries.filter(|path| name(path).starts_with(&format!("{kind} of "))).collect();
    paths.sort_unstable();
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Leaves the error with which a node ends, and ends the process when `nodes` nodes have left theirs.
fn end_with(node: u16, nodes: usize, error: &Error) -> ! {
    leave("error", node, &error.to_string());
    wait_for_errors(nodes);
    process::exit(1);
}

/// The launcher ends all processes when the first one has ended after a failure.
fn wait_for_errors(nodes: usize) {
    let folder = env::var_os(FOLDER).unwrap();
    while notes(Path::new(&folder), "error").len() < nodes {
        thread::sleep(Duration::from_millis(5));
    }
}

/// What each process runs; no test otherwise.
#[test]
fn one_process() {
    let _deadline = deadline();
    let Ok(fault) = env::var(TASK) else { return };
    let before: u16 = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"]
        .iter()
        .find_map(|name| env::var(name).ok()?.parse().ok())
        .expect("the launcher numbers its processes");
    leave("process", before, &process::id().to_string());
    if fault == "fails before it has a runtime" && before == ODD {
        process::exit(1);
    }
    let rt = Runtime::new().unwrap();
    let (node, nodes) = (rt.node(), usize::from(rt.nodes()));
    let is_odd = node == ODD;
    match fault.as_str() {
        "is killed" => {
            let _ = steps(&rt, usize::MAX, |step| {
                if is_odd && step == 50 {
                    signal("KILL");
                }
            });
        }
        "stops in the middle" => {
            let error = steps(&rt, usize::MAX, |step| {
                if is_odd && step == 50 {
                    signal("STOP");
                }
            });
            drop(rt);
            end_with(node, nodes - 1, &error.unwrap_err());
        }
        "leaves early" => {
            let result = steps(&rt, if is_odd { 30 } else { 60 }, |_| ());
            if is_odd {
                result.unwrap();
                drop(rt);
                return wait_for_errors(nodes - 1);
            }
            end_with(node, nodes - 1, &result.and_then(|()| rt.wait()).unwrap_err());
        }
        "exits in the middle" => {
            let exit = |step| {
                if is_odd && step == 50 {
                    process::exit(0)
                }
            };
            steps(&rt, usize::MAX, exit).unwrap_err();
            drop(rt);
            process::exit(1);
        }
        "panics in a kernel" => {
            let u = rt.buffer_from(&[1_u64; 60]).unwrap();
            let panics = move |tile: &Tile<1>| assert!(!is_odd || tile.range().is_empty(), "no luck");
            let kernel = rt.task("may panic").over([60]).update(&u, one_to_one());
            let submitted = kernel.kernel(move |tile, (_u,)| panics(tile));
            let error = submitted.and_then(|_| steps(&rt, 20, |_| ())).and_then(|_| rt.drain(u.capture()));
            end_with(node, nodes, &error.map(drop).unwrap_err());
        }
        "is slow" => {
            // The program and a task take longer than the timeout of the nodes. The runtime answers
            // meanwhile.
            let long = Duration::from_millis(2500);
            let sleeps = move |_: &Tile<1>, ()| {
                if is_odd {
                    thread::sleep(long)
                }
            };
            rt.task("sleeps").collective().blocking().host(sleeps).unwrap();
            let pause = |step| {
                if is_odd && step == 10 {
                    thread::sleep(long)
                }
            };
            steps(&rt, 20, pause).unwrap();
            rt.wait().unwrap();
            leave("end", node, "after all");
        }
        _ => leave("end", node, "has a runtime"),
    }
}

/// Sends a signal to this process, and waits for its effect.
fn signal(name: &str) {
    Command::new("kill").args([&format!("-{name}"), &process::id().to_string()]).status().unwrap();
    // Another thread of this process may get the signal and be late with it. A stopped process goes on when
    // the launcher ends it.
    loop {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Some steps of a stencil, with a fence now and then.
fn steps(rt: &Runtime, count: usize, mut before: impl FnMut(usize)) -> Result<(), Error> {
    let mut u = rt.buffer_from(&(0..60_u64).collect::<Vec<_>>())?;
    let mut u2 = rt.buffer::<u64, 1>([60]);
    for step in 0..count {
        before(step);
        rt.task("step").over([60]).read(&u, neighborhood([1])).write(&u2, one_to_one()).kernel(
            |tile, (u, u2)| {
                tile.points().for_each(|[i]| u2.set([i], u[[i.max(1) - 1]] + u[[(i + 1).min(59)]] % 7))
            },
        )?;
        mem::swap(&mut u, &mut u2);
        if step % 10 == 9 {
            rt.fence(&u)?.wait()?;
        }
    }
    Ok(())
}

/// Runs a fault with both implementations of MPI. If the first process that ends has succeeded, MPICH's
/// launcher ends the others and reports success.
fn with_each(fault: &str, timeout: &str, check: impl Fn(&Path, &Output, usize)) {
    for (mpi, nodes) in [(&OPEN_MPI, 3), (&MPICH, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(mpi, nodes, fault, folder.path(), timeout) else { continue };
        check(folder.path(), &output, nodes.into());
    }
}

#[test]
fn a_killed_process_ends_all() {
    let _deadline = deadline();
    with_each("is killed", "60", |folder, output, nodes| {
        let text = text(output);
        assert!(!output.status.success(), "{text}");
        assert_eq!(notes(folder, "process").len(), nodes, "{text}");
    });
}

/// The launcher or the other nodes notice it.
#[test]
fn a_process_that_exits_in_the_middle_ends_all() {
    let _deadline = deadline();
    with_each("exits in the middle", "2", |folder, output, nodes| {
        assert_eq!(notes(folder, "process").len(), nodes, "{}", text(output));
    });
}

#[test]
fn a_process_that_fails_before_it_has_a_runtime_ends_all() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    // MPICH's launcher does not notice a process that ends before it has initialised MPI.
    let fault = "fails before it has a runtime";
    let Some(output) = run(&OPEN_MPI, 3, fault, folder.path(), "60") else { return };
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(notes(folder.path(), "end").is_empty(), "{text}");
}

#[test]
fn a_process_that_stops_in_the_middle_is_named() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(&OPEN_MPI, 3, "stops in the middle", folder.path(), "2") else { return };
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    let errors = notes(folder.path(), "error");
    assert_eq!(errors.len(), 2, "{text}");
    assert!(errors.iter().all(|error| error.contains("node 1 has not answered for ")), "{errors:?}");
}

#[test]
fn a_process_that_leaves_early_is_an_error_on_the_others() {
    let _deadline = deadline();
    with_each("leaves early", "60", |folder, output, nodes| {
        let text = text(output);
        let errors = notes(folder, "error");
        assert_eq!(errors.len(), nodes - 1, "{text}");
        for error in errors {
            assert!(error.contains("of the program is ") && error.contains("node 1"), "{error}");
        }
    });
}

#[test]
fn a_kernel_that_panics_on_one_node_is_an_error_on_all() {
    let _deadline = deadline();
    with_each("panics in a kernel", "60", |folder, output, nodes| {
        let text = text(output);
        assert!(!output.status.success(), "{text}");
        let errors = notes(folder, "error");
        assert_eq!(errors.len(), nodes, "{text}");
        for error in errors {
            assert!(error.contains("task \"may panic\"") && error.contains("no luck"), "{error}");
        }
    });
}

#[test]
fn a_slow_node_is_waited_for() {
    let _deadline = deadline();
    with_each("is slow", "1", |folder, output, nodes| {
        let text = text(output);
        assert!(output.status.success(), "{text}");
        assert_eq!(notes(folder, "end").len(), nodes, "{text}");
    });
}
