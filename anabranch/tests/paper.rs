//! The example programs of "Declarative data flow in a graph-based distributed memory runtime system" (the
//! paper behind side effects, epochs and captures), on one node, on several in this process, and as processes
//! that `mpirun` has started: the same results everywhere.

use anabranch::{local_nodes, prelude::*};
use std::{
    collections::BTreeSet,
    env,
    io::{Read, Seek, Write},
    sync::{Arc, Mutex},
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// The number of processes, set for the processes of `under_mpirun`.
const TASK: &str = "ANABRANCH_MPI_TASK";

const N: usize = 24;

/// Listing 1, with the shutdown of listings 5 and 6 (figures 1 and 4): two diagonal matrices, their product,
/// and a reduction that verifies the product. `drain` captures what the reduction has found.
fn matrix_product(rt: Runtime) -> Result<bool, Error> {
    let matrix = |name| rt.buffer::<f32, 2>([N, N]).named(name);
    let (a, b, c) = (matrix("A"), matrix("B"), matrix("C"));
    let ok = rt.buffer::<bool, 0>([]).named("ok");
    for (matrix, value) in [(&a, 2.0), (&b, 3.0)] {
        rt.task("diag").over([N, N]).write(matrix, one_to_one()).kernel(move |_, (matrix,)| {
            matrix.fill_with(|[y, x]| if y == x { value } else { 0.0 });
        })?;
    }
    let product = rt.task("mul").over([N, N]).read(&a, slice(1)).read(&b, slice(0)).write(&c, one_to_one());
    product.kernel(|tile, (a, b, c)| {
        for [y, x] in tile.points() {
            c.set([y, x], (0..N).map(|k| a[[y, k]] * b[[k, x]]).sum());
        }
    })?;
    rt.task("verify").over([N, N]).read(&c, one_to_one()).reduce(&ok, and()).kernel(|tile, (c, ok)| {
        for [y, x] in tile.points() {
            ok.combine([], c[[y, x]] == if y == x { 6.0 } else { 0.0 });
        }
    })?;
    Ok(rt.drain(ok.capture())?[[]])
}

/// Listings 2 and 3: a file is a host object, and host tasks write to it in the order of the program. Each
/// node has a file of its own, and the tasks write to that of node 0. The fence and the barrier of figure 3
/// leave the order as it is.
fn log_file(rt: Runtime) -> Result<String, Error> {
    let log = rt.host_object(tempfile::tempfile().expect("a temporary file")).named("log");
    let u = rt.buffer_from(&[0_u64; N])?.named("u");
    for step in 0..6 {
        rt.task("grow").over([N]).update(&u, one_to_one()).kernel(|tile, (u,)| {
            tile.points().for_each(|[i]| u[[i]] += i as u64);
        })?;
        let task = rt.task("log").once().read(&u, all()).effect(&log, sequential());
        task.host(move |(u, log)| writeln!(log, "step {step}: {}", u.as_array().sum()))?;
        match step {
            2 => rt.barrier().wait()?,
            4 => drop(rt.fence(&u)?),
            _ => {}
        }
    }
    let is_first = rt.node() == 0;
    let mut log = rt.drain(log.capture())?;
    let mut text = String::new();
    log.rewind().and_then(|()| log.read_to_string(&mut text)).expect("a temporary file can be read");
    assert_eq!(text.is_empty(), !is_first, "the host tasks run on node 0");
    Ok(text)
}

/// Figure 2: tasks with sequential, exclusive and relaxed effects on one object of each node. Returns what is
/// in order: the first and the last task, and the set of those between them.
fn orders(rt: Runtime) -> Result<(String, BTreeSet<String>, String), Error> {
    let seen = rt.host_object(Arc::new(Mutex::new(Vec::new()))).named("H");
    for (name, order) in [("1", 's'), ("2", 'e'), ("3", 'r'), ("4", 'r'), ("5", 'e'), ("6", 's')] {
        let note = move |seen: &Arc<Mutex<Vec<String>>>| seen.lock().unwrap().push(name.to_string());
        let task = rt.task(name).collective();
        match order {
            's' => task.effect(&seen, sequential()).host(move |_, (seen,)| note(seen))?,
            'e' => task.effect(&seen, exclusive()).host(move |_, (seen,)| note(seen))?,
            _ => task.effect(&seen, relaxed()).host(move |_, (seen,)| note(seen))?,
        };
    }
    let seen = rt.drain(seen.capture())?;
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    let (last, first) = (seen.pop().unwrap(), seen.remove(0));
    Ok((first, seen.into_iter().collect(), last))
}

/// The log of the program that writes one.
fn expected_log() -> String {
    let sum: usize = (0..N).sum();
    (0..6).map(|step| format!("step {step}: {}\n", (step + 1) * sum)).collect()
}

/// Checks the results of all programs on a node. `runtime` makes a runtime for each.
fn check(runtime: impl Fn() -> Runtime) {
    assert!(matrix_product(runtime()).unwrap());
    let rt = runtime();
    let node = rt.node();
    assert_eq!(log_file(rt).unwrap(), if node == 0 { expected_log() } else { String::new() });
    check_orders(orders(runtime()).unwrap());
}

fn check_orders((first, between, last): (String, BTreeSet<String>, String)) {
    assert_eq!((first.as_str(), last.as_str()), ("1", "6"));
    assert_eq!(between, BTreeSet::from(["2", "3", "4", "5"].map(String::from)));
}

#[test]
fn on_one_node() {
    let _deadline = deadline();
    for threads in [1, 2, 3, 4, 8] {
        check(|| Runtime::builder().threads(threads).build().unwrap());
    }
}

#[test]
fn on_local_nodes() {
    let _deadline = deadline();
    for nodes in [2, 4] {
        for threads in [1, 2, 3] {
            let local = local_nodes(nodes).threads(threads).delays(5, 1);
            assert!(local.run(matrix_product).into_iter().all(Result::unwrap));
            let logs: Vec<_> = local.run(log_file).into_iter().map(Result::unwrap).collect();
            assert_eq!(logs[0], expected_log());
            local.run(orders).into_iter().for_each(|seen| check_orders(seen.unwrap()));
        }
    }
}

/// What each process of `under_mpirun` runs; no test otherwise.
#[test]
fn one_process() {
    let _deadline = deadline();
    let Ok(count) = env::var(TASK) else { return };
    check(|| {
        let rt = Runtime::new().unwrap();
        assert_eq!(rt.nodes().to_string(), count);
        rt
    });
}

fn run_under(mpi: &Mpi, count: u16) {
    let variables = [(TASK, count.to_string()), ("ANABRANCH_NUM_THREADS", "2".into())];
    let Some(output) = mpi.run_test(count, "one_process", |command| _ = command.envs(variables)) else {
        return;
    };
    assert!(output.status.success(), "{count} nodes of {}: {}", mpi.mpirun(), text(&output));
}

#[test]
fn under_mpirun() {
    let _deadline = deadline();
    run_under(&OPEN_MPI, 2);
    run_under(&OPEN_MPI, 4);
    run_under(&MPICH, 2);
}
