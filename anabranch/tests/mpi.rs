//! Programs on several nodes under a real `mpirun`: this test program starts itself as the processes of an
//! MPI program.

use anabranch::{NodeError, WireError, local_nodes, prelude::*};
use std::{
    env, fs,
    io::{self, Write},
    mem,
    path::Path,
    process::{self, Command, Output},
    thread,
    time::Duration,
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// What the processes run; set by the tests below.
const TASK: &str = "ANABRANCH_MPI_TASK";
/// A folder in which each process leaves its result.
const FOLDER: &str = "ANABRANCH_MPI_FOLDER";

/// Runs a task on the nodes of an MPI program; `None` if this MPI is not installed.
fn run(mpi: &Mpi, nodes: u16, task: &str, folder: &Path, variables: &[(&str, &str)]) -> Option<Output> {
    mpi.run_test(nodes, "one_process", |command| {
        let variables = variables.iter().copied().chain([("ANABRANCH_NUM_THREADS", "2")]);
        command.env(TASK, task).env(FOLDER, folder).envs(variables);
    })
}

/// What the nodes have left, in the order of the nodes.
fn results(folder: &Path) -> Vec<(u16, Vec<u8>)> {
    let read = |entry: fs::DirEntry| {
        let node = entry.file_name().into_string().unwrap().parse().ok()?;
        Some((node, fs::read(entry.path()).unwrap()))
    };
    let mut results: Vec<_> =
        fs::read_dir(folder).unwrap().filter_map(|entry| read(entry.unwrap())).collect();
    results.sort_unstable();
    results
}

fn leave(node: u16, result: impl AsRef<[u8]>) {
    let folder = env::var_os(FOLDER).unwrap();
    // The file is complete when it has its name.
    let (part, whole) = (format!("part of {node}"), node.to_string());
    let [part, whole] = [part, whole].map(|name| Path::new(&folder).join(name));
    fs::write(&part, result).unwrap();
    fs::rename(part, whole).unwrap();
}

/// Leaves the error of a run that has failed on all nodes, and ends the process like a `main` that returns
/// it.
fn leave_error(node: u16, nodes: u16, error: &Error) -> ! {
    leave(node, error.to_string());
    let folder = env::var_os(FOLDER).unwrap();
    // The launcher ends all processes when the first one has ended like this.
    while results(Path::new(&folder)).len() < nodes.into() {
        thread::sleep(Duration::from_millis(5));
    }
    process::exit(1);
}

/// What each process of an MPI program runs; no test otherwise.
#[test]
fn one_process() {
    let _deadline = deadline();
    let Ok(task) = env::var(TASK) else { return };
    if task == "refused" {
        // The program ends before it computes anything.
        let rt = Runtime::new().unwrap_or_else(|error| {
            eprintln!("{error}");
            process::exit(1);
        });
        return leave(rt.node(), "has run");
    }
    if task == "alone" {
        let rt = Runtime::new().unwrap();
        return leave(process::id() as u16, [rt.node(), rt.nodes()].map(|n| n as u8));
    }
    let rt = Runtime::new().unwrap();
    let (node, nodes) = (rt.node(), rt.nodes());
    let error = match task.as_str() {
        "everything" => return everything(rt),
        "failures" => return leave(node, failures(rt).unwrap()),
        "one log" => return leave(node, one_log(rt).unwrap()),
        "graphs" => return drop(heat(rt).unwrap()),
        "memory" => return leave(node, memory(rt).unwrap().to_string()),
        "programs differ" => programs_differ(&rt),
        "a node stops" => a_node_stops(&rt),
        other => panic!("no task {other}"),
    };
    assert!(rt.wait().is_err(), "the run is over");
    drop(rt);
    let again = Runtime::new().unwrap_err();
    let Error::Connect(why) = &again else { panic!("{again}") };
    assert_eq!(**why, WireError::Disconnected);
    leave_error(node, nodes, &error);
}

/// Several programs one after the other, and what a process cannot do meanwhile.
fn everything(rt: Runtime) {
    let (node, nodes) = (rt.node(), rt.nodes());
    assert!(matches!(Runtime::new(), Err(Error::SecondRuntime)));
    let mut result = heat(rt).unwrap();
    result.extend(turned(Runtime::new().unwrap()).unwrap());
    // Nodes in this process have nothing to do with the others.
    for here in local_nodes(2).threads(1).run(|rt| Ok(rt.nodes())) {
        assert_eq!(here.unwrap(), 2);
    }
    let rt = Runtime::builder().threads(1).build().unwrap();
    assert_eq!((rt.node(), rt.nodes()), (node, nodes));
    result.extend(waves(rt).unwrap());
    result.extend(sums(Runtime::new().unwrap()).unwrap());
    leave(node, result);
}

/// What `everything` computes, by a process alone.
fn everything_alone() -> Vec<u8> {
    let alone = || Runtime::new().unwrap();
    [heat(alone()), turned(alone()), waves(alone()), sums(alone())].map(Result::unwrap).concat()
}

/// A stencil over two buffers of 256 MiB. Returns the largest memory of this process so far, in MiB.
#[cfg(target_os = "linux")]
fn memory(rt: Runtime) -> Result<u64, Error> {
    const N: usize = 64 << 20;
    let (u, v) = (rt.buffer::<f32, 1>([N]), rt.buffer::<f32, 1>([N]));
    rt.task("fill").over([N]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
    rt.task("step").over([N]).read(&u, neighborhood([1])).write(&v, one_to_one()).kernel(|_, (u, v)| {
        v.fill_with(|[i]| u[[i.saturating_sub(1)]] + u[[i]]);
    })?;
    let middle = rt.fence(&v.part(GridBox::new(N / 2 - 1, N / 2 + 1)))?.wait()?;
    assert_eq!(middle.into_vec(), [2.0, 2.0]);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10)
}

fn bits(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect()
}

/// A stencil whose frames a host task keeps on one node, which the others get in the end.
fn heat(rt: Runtime) -> Result<Vec<u8>, Error> {
    const N: usize = 30;
    let hot = ndarray(N, |y, x| if x == 0 { 1.0 } else { y as f64 * 1e-3 });
    let mut plate = rt.buffer_from(&hot)?.named("plate");
    let mut next = rt.buffer::<f64, 2>([N, N]).named("next");
    let frames = rt.buffer::<f64, 1>([N]).named("frames");
    let log = rt.host_object(Vec::new());
    for step in 0..40 {
        rt.task("spread").over([N, N]).read(&plate, neighborhood([1, 1])).write(&next, one_to_one()).kernel(
            |tile, (old, new)| {
                for [y, x] in tile.points() {
                    let inside = y > 0 && y < N - 1 && x > 0 && x < N - 1;
                    let around = || old[[y - 1, x]] + old[[y + 1, x]] + old[[y, x - 1]] + old[[y, x + 1]];
                    let change = if inside { 0.2 * (around() - 4.0 * old[[y, x]]) } else { 0.0 };
                    new.set([y, x], old[[y, x]] + change);
                }
            },
        )?;
        if step % 10 == 0 {
            rt.task("keep").once().read(&next, all()).write(&frames, all()).effect(&log, sequential()).host(
                move |(plate, frames, log)| {
                    frames.fill_with(|[y]| plate[[y, N / 2]]);
                    log.push(step);
                },
            )?;
        }
        mem::swap(&mut plate, &mut next);
    }
    let expected: &[i32] = if rt.node() == 0 { &[0, 10, 20, 30] } else { &[] };
    let (plate, frames, log) = rt.drain((plate.capture(), frames.capture(), log.capture()))?;
    assert_eq!(log, expected, "the host task runs on node 0");
    Ok([bits(plate.as_slice()), bits(frames.as_slice())].concat())
}

/// Each node needs columns of all others, in large boxes and in many short rows.
fn turned(rt: Runtime) -> Result<Vec<u8>, Error> {
    const N: usize = 300;
    let u = rt.buffer_from(&ndarray(N, |y, x| (y * N + x) as f64))?;
    let v = rt.buffer::<f64, 2>([N, N]);
    for _ in 0..3 {
        for (from, to) in [(&u, &v), (&v, &u)] {
            rt.task("turn").over([N, N]).read(from, transposed()).write(to, one_to_one()).kernel(
                |tile, (from, to)| tile.points().for_each(|[y, x]| to.set([y, x], from[[x, y]] + 1.0)),
            )?;
        }
    }
    let column = rt.fence(&u.part(GridBox::new([0, 7], [N, 8])))?.wait()?;
    Ok([bits(column.as_slice()), bits(rt.drain(u.capture())?.as_slice())].concat())
}

/// The program decides by a value that all nodes have.
fn waves(rt: Runtime) -> Result<Vec<u8>, Error> {
    const N: usize = 200;
    let start: Vec<f64> = (0..N).map(|i| (i as f64 * 0.1).sin()).collect();
    let mut now = rt.buffer_from(&start)?;
    let mut old = rt.buffer_from(&start)?;
    for step in 0.. {
        rt.task("wave").over([N]).read(&now, neighborhood([1])).update(&old, one_to_one()).kernel(
            |tile, (now, old)| {
                for [i] in tile.points() {
                    let around = now[[i.max(1) - 1]] - 2.0 * now[[i]] + now[[(i + 1).min(N - 1)]];
                    old[[i]] = 2.0 * now[[i]] - old[[i]] + 0.2 * around;
                }
            },
        )?;
        mem::swap(&mut now, &mut old);
        if step % 7 == 0 && rt.fence(&now.part(GridBox::new(10, 11)))?.wait()?[[10]] < 0.5 {
            break;
        }
    }
    rt.wait()?;
    Ok(bits(rt.drain(now.capture())?.as_slice()))
}

/// Sums whose bits depend on the order of the additions.
fn sums(rt: Runtime) -> Result<Vec<u8>, Error> {
    const N: usize = 5_000;
    let u = rt.buffer_from(&(1..=N).map(|i| 1.0 / i as f64).collect::<Vec<_>>())?;
    let total = rt.buffer::<f64, 0>([]);
    for _ in 0..5 {
        rt.task("sum")
            .over([N])
            .read(&u, one_to_one())
            .reduce(&total, sum())
            .kernel(|tile, (u, total)| tile.points().for_each(|i| total.combine([], u[i])))?;
        rt.task("scale")
            .over([N])
            .read(&total, all())
            .update(&u, one_to_one())
            .kernel(|tile, (total, u)| tile.points().for_each(|i| u[i] /= 0.3 * total[[]]))?;
    }
    Ok([bits(rt.fence(&total)?.wait()?.as_slice()), bits(rt.drain(u.capture())?.as_slice())].concat())
}

fn ndarray(n: usize, value: impl Fn(usize, usize) -> f64) -> anabranch::ndarray::Array2<f64> {
    anabranch::ndarray::Array2::from_shape_fn((n, n), |(y, x)| value(y, x))
}

/// Node 1 fails in several ways; the others have work that needs its data. Returns the errors, which must be
/// the same on all nodes.
fn failures(rt: Runtime) -> Result<String, Error> {
    const N: usize = 300;
    let node = rt.node();
    let (u, v) = (rt.buffer::<u64, 2>([N, N]), rt.buffer::<u64, 2>([N, N]));
    let total = rt.buffer::<u64, 0>([]);
    let mut texts = Vec::new();
    for (round, fails) in [true, false].map(|fails| fails && node == 1).into_iter().enumerate() {
        rt.task("fill").over([N, N]).write(&u, one_to_one()).kernel(move |_, (u,)| {
            assert!(!fails, "no luck");
            u.fill(3);
        })?;
        rt.task("turn")
            .over([N, N])
            .read(&u, transposed())
            .write(&v, one_to_one())
            .kernel(|tile, (u, v)| tile.points().for_each(|[y, x]| v.set([y, x], u[[x, y]] + 1)))?;
        rt.task("sum")
            .over([N, N])
            .read(&v, one_to_one())
            .reduce(&total, sum())
            .kernel(|tile, (v, total)| tile.points().for_each(|i| total.combine([], v[i])))?;
        let save = rt.task("save").collective().read(&v, all());
        let save = save.host(move |_, (_,)| if node == 1 { Err("no disk") } else { Ok(()) })?;
        texts.push(rt.agree_result(save.wait()).unwrap_err().to_string());
        match (rt.fence(&total)?.wait(), round) {
            (Err(error), 0) => texts.push(error.to_string()),
            (Ok(sum), 1) => assert_eq!(sum[[]], 4 * (N * N) as u64),
            (other, _) => panic!("{other:?}"),
        }
        texts.push(rt.wait().unwrap_err().to_string());
        rt.wait()?;
    }
    // A step that one node cannot do, and a signal that came to one node.
    texts.push(rt.agree_result(if node == 1 { Err("no file") } else { Ok(()) }).unwrap_err().to_string());
    assert!(rt.agree(node + 1 == rt.nodes())?.contains(&true));
    for step in 0.. {
        rt.task("step")
            .collective()
            .host(move |_, ()| if node == 1 && step == 3 { Err("late") } else { Ok(()) })?;
        if let Err(error) = rt.check() {
            texts.push(format!("step {step}: {error}"));
            break;
        }
    }
    rt.wait()?;
    assert_eq!(rt.drain(v.capture())?[[7, 9]], 4);
    Ok(texts.join("\n"))
}

/// All nodes write a file one after the other, in the order of the tasks; the last node has the log. Returns
/// the log, or why it broke.
fn one_log(rt: Runtime) -> Result<String, Error> {
    let (node, nodes) = (rt.node(), rt.nodes());
    let file = Path::new(&env::var_os(FOLDER).unwrap()).join("lines");
    let log = rt.cluster_object(nodes - 1, || {
        fs::write(&file, "").unwrap();
        Vec::new()
    })?;
    for step in 0..20 {
        let lines = file.clone();
        let write = rt.task("write").collective().effect(&log, sequential());
        write.host(move |_, (_,)| -> io::Result<()> {
            // Another node than before is late.
            if step % nodes == node {
                thread::sleep(Duration::from_millis(2));
            }
            writeln!(fs::File::options().append(true).open(lines)?, "{step}")
        })?;
        let lines = file.clone();
        rt.task("count").once().effect(&log, sequential()).host(move |(log,)| -> io::Result<()> {
            log.push(fs::read_to_string(lines)?.lines().count());
            Ok(())
        })?;
    }
    let seen = rt.fence(&log)?.wait()?;
    let each = (1..=20).map(|step| step * usize::from(nodes)).collect::<Vec<_>>();
    assert_eq!(seen, (node + 1 == nodes).then_some(each));
    let fails = node == 0;
    let write = rt.task("fail").collective().effect(&log, sequential());
    write.host(move |_, (_,)| if fails { Err("no disk") } else { Ok(()) })?;
    rt.task("count").once().effect(&log, sequential()).host(|(log,)| log.push(0))?;
    let fence = rt.fence(&log)?.wait().unwrap_err();
    let text = format!("{fence}\n{}", rt.wait().unwrap_err());
    assert_eq!(log.into_inner().unwrap().is_some(), node + 1 == nodes);
    Ok(text)
}

/// Node 1 leaves a task out.
fn programs_differ(rt: &Runtime) -> Error {
    let program = || {
        let u = rt.buffer_from(&[1_u64; 64])?;
        for step in 0..5 {
            if rt.node() != 1 || step != 3 {
                let name = format!("step {step}");
                rt.task(name).over([64]).update(&u, one_to_one()).kernel(|_, _| ())?;
            }
            rt.task("read").over([64]).read(&u, all()).kernel(|_, _| ())?;
        }
        rt.wait()
    };
    program().unwrap_err()
}

/// Node 1 is stopped while the others wait for it.
fn a_node_stops(rt: &Runtime) -> Error {
    rt.wait().unwrap();
    if rt.node() == 1 {
        Command::new("kill").args(["-STOP", &process::id().to_string()]).status().unwrap();
        // Another thread of this process may get the signal and be late with it. The launcher ends this
        // process when the others have ended.
        loop {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let error = rt.wait().unwrap_err();
    let Error::Nodes(why) = &error else { panic!("{error}") };
    let NodeError::Transport(WireError::Lost { node: 1, .. }) = &**why else { panic!("{error}") };
    // It leaves nothing.
    if rt.node() == 0 {
        leave(1, "");
    }
    error
}

fn same_bits(mpi: &Mpi, counts: &[u16]) {
    let expected = everything_alone();
    for &nodes in counts {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(mpi, nodes, "everything", folder.path(), &[]) else { return };
        let text = text(&output);
        assert!(output.status.success(), "{nodes} nodes: {text}");
        let results = results(folder.path());
        assert_eq!(results.len(), usize::from(nodes), "{text}");
        for (node, result) in results {
            assert!(result == expected, "node {node} of {nodes} has other bits: {text}");
        }
    }
}

#[test]
fn the_same_bits_with_open_mpi() {
    let _deadline = deadline();
    same_bits(&OPEN_MPI, &[2, 3, 4]);
}

#[test]
fn the_same_bits_with_mpich() {
    let _deadline = deadline();
    same_bits(&MPICH, &[2]);
}

/// Runs a task that ends with an error on all nodes, and returns the errors.
fn errors(mpi: &Mpi, nodes: u16, task: &str, variables: &[(&str, &str)]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let output = run(mpi, nodes, task, folder.path(), variables)?;
    let text = text(&output);
    assert!(!output.status.success(), "{task}: {text}");
    let errors = results(folder.path());
    assert_eq!(errors.len(), usize::from(nodes), "{task}: {text}");
    Some(errors.into_iter().map(|(_, error)| String::from_utf8(error).unwrap()).collect())
}

/// Two buffers of 256 MiB on four nodes: each has a quarter of them.
#[cfg(target_os = "linux")]
#[test]
fn a_process_has_the_memory_of_its_part() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(&OPEN_MPI, 4, "memory", folder.path(), &[]) else { return };
    let results = results(folder.path());
    assert_eq!(results.len(), 4, "{}", text(&output));
    for (node, mebibytes) in results {
        let mebibytes: u64 = String::from_utf8(mebibytes).unwrap().parse().unwrap();
        assert!((128..256).contains(&mebibytes), "node {node} has used {mebibytes} MiB");
    }
}

#[test]
fn failures_are_the_same_errors_on_all_nodes_and_the_program_goes_on() {
    let _deadline = deadline();
    for (mpi, nodes) in [(&OPEN_MPI, 2), (&OPEN_MPI, 3), (&MPICH, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(mpi, nodes, "failures", folder.path(), &[]) else { continue };
        let text = text(&output);
        assert!(output.status.success(), "{text}");
        let results = results(folder.path());
        assert_eq!(results.len(), usize::from(nodes), "{text}");
        let errors = String::from_utf8(results[0].1.clone()).unwrap();
        assert!(results.iter().all(|(_, other)| *other == results[0].1), "{results:?}");
        let errors: Vec<_> = errors.lines().collect();
        for (error, parts) in errors.iter().zip([
            ["task \"save\"", "task \"turn\"", "task \"fill\"", "on node 1: it panicked"],
            ["task \"sum\"", "task \"turn\"", "task \"fill\"", "no luck"],
            [
                "task \"fill\"",
                "on node 1",
                "no luck",
                "parts of tasks that depend on failed tasks were skipped",
            ],
            ["task \"save\"", "on node 1", "no disk", "(on node 1)"],
            ["task \"save\"", "on node 1", "no disk", ""],
            ["no file", "(on node 1)", "", ""],
            ["step ", "task \"step\"", "on node 1", "late"],
        ]) {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        assert_eq!(errors.len(), 7, "{errors:?}");
    }
}

#[test]
fn effects_on_one_object_are_ordered_over_all_processes() {
    let _deadline = deadline();
    for (mpi, nodes) in [(&OPEN_MPI, 2), (&OPEN_MPI, 4), (&MPICH, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(mpi, nodes, "one log", folder.path(), &[]) else { continue };
        let text = text(&output);
        assert!(output.status.success(), "{text}");
        let results = results(folder.path());
        assert_eq!(results.len(), usize::from(nodes), "{text}");
        assert!(results.iter().all(|(_, other)| *other == results[0].1), "{results:?}");
        let errors = String::from_utf8(results[0].1.clone()).unwrap();
        let parts = ["task \"count\"", "task \"fail\"", "failed on node 0: no disk", "1 part of a task"];
        assert!(parts.iter().all(|part| errors.contains(part)), "{errors}");
    }
}

#[test]
fn different_programs_are_an_error_on_all_nodes() {
    let _deadline = deadline();
    for (mpi, nodes) in [(&OPEN_MPI, 3), (&MPICH, 2)] {
        for error in errors(mpi, nodes, "programs differ", &[]).into_iter().flatten() {
            assert!(error.contains("submission 7 of the program is task"), "{error}");
        }
    }
}

#[test]
fn a_stopped_node_is_named_after_the_timeout_of_the_environment() {
    let _deadline = deadline();
    let variables = [("ANABRANCH_NODE_TIMEOUT", "2")];
    let Some(errors) = errors(&OPEN_MPI, 3, "a node stops", &variables) else { return };
    for node in [0, 2] {
        assert!(errors[node].contains("node 1 has not answered for "), "{}", errors[node]);
    }
}

#[test]
fn processes_without_a_usable_mpi_do_not_run() {
    let _deadline = deadline();
    for (variable, value, why) in [
        ("ANABRANCH_MPI_LIBRARY", "libno-such-mpi.so", "no MPI library was found"),
        ("ANABRANCH_MPI_LIBRARY", "libc.so.6", "cannot be used as an MPI library"),
        ("ANABRANCH_TRANSPORT", "pigeons", "ANABRANCH_TRANSPORT is \"pigeons\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(&OPEN_MPI, 2, "refused", folder.path(), &[(variable, value)]) else { return };
        let text = text(&output);
        assert!(!output.status.success() && results(folder.path()).is_empty(), "{text}");
        assert!(text.contains("the runtime cannot join the other nodes: "), "{text}");
        assert!(text.contains(why), "{text}");
        if why.starts_with("no") {
            for way in ["apt install openmpi-bin", "ANABRANCH_MPI_LIBRARY", "ANABRANCH_TRANSPORT=none"] {
                assert!(text.contains(way), "{text}");
            }
        }
    }
}

#[test]
fn processes_run_alone_if_there_is_one_or_if_the_user_says_so() {
    let _deadline = deadline();
    for (nodes, transport) in [(1, ""), (2, "none")] {
        let folder = tempfile::tempdir().unwrap();
        let variables = [("ANABRANCH_TRANSPORT", transport)];
        let Some(output) = run(&OPEN_MPI, nodes, "alone", folder.path(), &variables) else { return };
        assert!(output.status.success(), "{}", text(&output));
        let results = results(folder.path());
        assert_eq!(results.len(), usize::from(nodes));
        assert!(results.iter().all(|(_, place)| place == &[0, 1]), "{results:?}");
    }
}

#[cfg(feature = "print")]
#[test]
fn node_0_alone_writes_the_graphs() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let graphs = folder.path().join("graphs.dot");
    let variables = [("ANABRANCH_PRINT_GRAPHS", graphs.to_str().unwrap()), ("ANABRANCH_DRY_RUN_NODES", "5")];
    let Some(output) = run(&OPEN_MPI, 2, "graphs", folder.path(), &variables) else { return };
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("dry run for 5 nodes").count(), 1, "{text}");
    assert!(fs::read_to_string(graphs).unwrap().contains("spread"));
}
