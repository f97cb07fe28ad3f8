//! Programs on several nodes: in this process, with messages that are late and overtake each other, and as
//! processes that `mpirun` has started. Each node compares what it observes with the model.

use crate::{
    model::{Captured, Model, Observation, Observed, OnNodes},
    program::{Nodes, Program, Setup, Step},
    run::{
        on_device::{self, Devices},
        replays,
    },
    seeds::{bytes, check, observe, print_count, report, seeds},
    watch::{Watch, replay},
};
use anabranch::{Runtime, Status, local_nodes};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap, env, fs, ops::Range, panic::catch_unwind, path::Path, process::Command, sync::Arc,
    time::Instant,
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// The number of programs on local nodes in an ordinary run.
const PROGRAMS: u64 = 300;
/// The number of programs with failing tasks.
const FAILING: u64 = 100;
/// One program runs under `mpirun`, for each number of processes, for this many programs of an ordinary run
/// elsewhere.
const SHARE_OF_MPI: u64 = 15;
/// The number of processes, set for the processes that `mpirun` starts.
const TASK: &str = "ANABRANCH_MPI_TASK";
/// Where each of them leaves what it has seen of programs with failures and cancellations. Without it, their
/// programs have none.
const FOLDER: &str = "ANABRANCH_MPI_FOLDER";

/// The program of these bytes on nodes. Without the steps that the runtime refuses, unless its tasks may
/// fail.
pub fn program(bytes: &[u8], setup: Setup) -> Program {
    let mut program = Program::from_bytes(bytes, setup);
    if !setup.nodes.is_some_and(|nodes| nodes.fails) {
        let refused = Model::refused(&program);
        let mut steps = 0..;
        program.steps.retain(|_| steps.next().is_some_and(|step| !refused.contains(&step)));
    }
    program
}

/// Runs the function on local nodes, and returns the errors of all nodes as one.
fn on_each_node(setup: &Setup, run: impl Fn(Runtime) -> Result<(), String> + Sync) -> Result<(), String> {
    let Nodes { count, threads, delays, seed, .. } = setup.nodes.expect("a setup on nodes");
    let local = local_nodes(count).builder(setup.builder(threads)).delays(delays, seed);
    let results = local.run(|rt| Ok(run(rt)));
    let error = |(node, result): (usize, _)| match result {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("node {node} of {count}: {error}")),
        Err(error) => Some(format!("node {node} of {count} has no runtime: {error}")),
    };
    let errors: Vec<String> = results.into_iter().enumerate().filter_map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

fn check_local(bytes: &[u8], setup: Setup) -> Result<(), String> {
    let program = program(bytes, setup);
    on_each_node(&setup, |rt| check(&program, Arc::new(rt), None, Devices::of(&setup)))
}

/// Runs a program in which tasks fail, are refused or are cancelled, and checks it.
fn check_failing(bytes: &[u8], setup: Setup) -> Result<(), String> {
    let program = program(bytes, setup);
    let all = Mutex::new(BTreeMap::new());
    on_each_node(&setup, |rt| {
        let node = rt.node();
        let seen = observe(&program, Arc::new(rt), None, Devices::of(&setup))?;
        all.lock().insert(node, seen);
        Ok(())
    })?;
    compare(&program, &all.into_inner().into_values().collect::<Vec<_>>())
}

/// Checks what all nodes have seen of a program in which tasks fail, are refused or are cancelled: see
/// [`OnNodes`]. What concerns all nodes must be the same on all of them, and a task that fails must fail on
/// one of them.
fn compare(program: &Program, all: &[Vec<Observed>]) -> Result<(), String> {
    let models: Vec<_> = (0..).zip(all).map(|(node, _)| OnNodes::new(program, all, node)).collect();
    for (i, step) in program.steps.iter().enumerate() {
        for (node, (seen, model)) in all.iter().zip(&models).enumerate() {
            let what = &seen[i].what;
            if !model.is_possible(i, &seen[i]) {
                return Err(format!(
                    "node {node} of {}, step {i}: {step:?}\n    is: {what:?}\n model: {}",
                    all.len(),
                    model.describe(i)
                ));
            }
            if !agree(step, what, &all[0][i].what) {
                return Err(format!("step {i}: {step:?}: {:?}, but on node {node} {what:?}", all[0][i].what));
            }
        }
        let fails = |what: &Observation| matches!(what, Observation::Task(Status::Failed, _));
        if fails(&models[0].expected[i].what) && !all.iter().any(|seen| fails(&seen[i].what)) {
            return Err(format!("step {i}: {step:?}: it must fail on a node"));
        }
    }
    Ok(())
}

/// Whether two nodes may observe this in the same step. What concerns all nodes is the same on all of them.
fn agree(step: &Step, what: &Observation, other: &Observation) -> bool {
    let same = what == other;
    match step {
        Step::Wait(_) | Step::GroupReports | Step::NestResult => same,
        Step::Fence { set, .. } | Step::Barrier { set, .. } if set.is_the_same_on_all() => {
            // Only the home of an object of the whole cluster has the value.
            same || set.of_cluster().is_some() && has_values(what) && has_values(other)
        }
        _ => true,
    }
}

fn has_values(what: &Observation) -> bool {
    let (Observation::Captured(captured) | Observation::Report(None, Some(captured))) = what else {
        return false;
    };
    matches!(captured, Captured::Values(_))
}

/// Runs programs with these seeds until one fails.
fn run_all(
    test: &'static str,
    what: &str,
    usual: u64,
    setup: fn(u64) -> Setup,
    check: fn(&[u8], Setup) -> Result<(), String>,
) {
    let (seeds, begin, watch) = (seeds(usual), Instant::now(), Watch::begin(test));
    for seed in seeds.clone() {
        let setup = setup(seed);
        let fails = |bytes: &[u8]| {
            watch.program(seed);
            // The model panics if it finds a contradiction in what the nodes have seen. The message is on
            // standard error.
            let checked = catch_unwind(|| check(bytes, setup));
            checked.unwrap_or_else(|_| Err("a panic, of the model or of the runtime".into())).err()
        };
        if let Some(error) = fails(&bytes(seed)) {
            // Threads may take another order the next time, so each shrunk program is tried several times.
            report(
                test,
                seed,
                &error,
                |bytes| program(bytes, setup),
                |bytes| (0..8).find_map(|_| fails(bytes)),
            );
        }
    }
    print_count(what, seeds.end - seeds.start, &seeds, begin);
}

/// In two thirds of the programs, kernels run on devices of some nodes.
#[test]
fn on_local_nodes() {
    run_all("on_local_nodes", "on local nodes", PROGRAMS, |seed| Setup::on_nodes(seed, None), check_local);
    let (programs, (launches, copies)) = (seeds(PROGRAMS).count() as u64, on_device::work(true));
    assert!(
        programs < 20 || launches > programs && copies > programs,
        "{launches} launches, {copies} copies"
    );
    let in_sequences = replays::on_devices(true);
    assert!(programs < 100 || 5 * in_sequences > programs, "sequences had {in_sequences} kernels on devices");
}

#[test]
fn failures_are_the_same_on_all_local_nodes() {
    let setup = |seed| Setup::on_nodes(seed, None).failing();
    run_all(
        "failures_are_the_same_on_all_local_nodes",
        "with failures on local nodes",
        FAILING,
        setup,
        check_failing,
    );
}

/// Groups and tasks are cancelled on one node, on some or on all, before their tasks begin or meanwhile. In a
/// third of the programs, tasks fail, too.
#[test]
fn cancellations_go_with_the_data_on_local_nodes() {
    let setup = |seed: u64| {
        let setup = Setup::on_nodes(seed, None).cancelling();
        if seed.is_multiple_of(3) { setup.failing() } else { setup }
    };
    run_all(
        "cancellations_go_with_the_data_on_local_nodes",
        "with cancellations on local nodes",
        FAILING,
        setup,
        check_failing,
    );
}

/// Fewer seeds, because `mpirun` and MPI take their time.
fn seeds_of_mpi() -> Range<u64> {
    let seeds = seeds(PROGRAMS);
    seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(SHARE_OF_MPI)
}

/// The runtime of a process, for this setup.
fn connect(setup: &Setup) -> Arc<Runtime> {
    let Nodes { count, threads, .. } = setup.nodes.expect("a setup on nodes");
    let rt = setup.builder(threads).build().unwrap();
    assert_eq!(rt.nodes(), count);
    Arc::new(rt)
}

/// What each process runs that `mpirun` starts; no test otherwise.
#[test]
fn one_process() {
    let Ok(count) = env::var(TASK) else { return };
    let count = Some(count.parse().unwrap());
    match env::var_os(FOLDER) {
        None => check_programs(count),
        Some(folder) => leave_observations(count, Path::new(&folder)),
    }
}

fn check_programs(count: Option<u16>) {
    const TEST: &str = "nodes::under_mpirun";
    let watch = Watch::begin(TEST);
    for seed in seeds_of_mpi() {
        watch.program(seed);
        let setup = Setup::on_nodes(seed, count);
        let rt = connect(&setup);
        let place = format!("node {} of {}", rt.node(), rt.nodes());
        if let Err(error) = check(&program(&bytes(seed), setup), rt, None, Devices::of(&setup)) {
            panic!("{place}, seed {seed}: {error}\n\nTo run it again: {}", replay(TEST, seed));
        }
    }
}

/// A setup of programs with failures and cancellations.
fn troubled(seed: u64, count: Option<u16>) -> Setup {
    let setup = Setup::on_nodes(seed, count);
    match seed % 3 {
        0 => setup.failing(),
        1 => setup.cancelling(),
        _ => setup.failing().cancelling(),
    }
}

fn leave_observations(count: Option<u16>, folder: &Path) {
    let watch = Watch::begin(TROUBLED);
    for seed in seeds_of_mpi() {
        watch.program(seed);
        let setup = troubled(seed, count);
        let rt = connect(&setup);
        let node = rt.node();
        match observe(&program(&bytes(seed), setup), rt, None, Devices::of(&setup)) {
            Ok(seen) => {
                fs::write(folder.join(format!("{seed} {node}")), serde_json::to_vec(&seen).unwrap()).unwrap()
            }
            Err(error) => {
                panic!("node {node}, seed {seed}: {error}\n\nTo run it again: {}", replay(TROUBLED, seed))
            }
        }
    }
}

/// Starts processes, with what `more` adds to the command. False if this MPI is not installed.
fn run_under(mpi: &Mpi, count: u16, more: impl FnOnce(&mut Command)) -> bool {
    let test = "nodes::one_process";
    let output = mpi.run_test(count, test, |command| more(command.env(TASK, count.to_string())));
    let Some(output) = output else { return false };
    assert!(output.status.success(), "{count} nodes of {}: {}", mpi.mpirun(), text(&output));
    true
}

/// The MPIs, and the numbers of processes.
const MPIS: [(&Mpi, u16); 4] = [(&OPEN_MPI, 2), (&OPEN_MPI, 3), (&OPEN_MPI, 4), (&MPICH, 2)];

#[test]
fn under_mpirun() {
    let _deadline = deadline();
    for (mpi, count) in MPIS {
        let (seeds, begin) = (seeds_of_mpi(), Instant::now());
        if run_under(mpi, count, |_| ()) {
            let what = format!("on {count} nodes of {}", mpi.mpirun());
            print_count(&what, seeds.end - seeds.start, &seeds, begin);
        }
    }
}

const TROUBLED: &str = "failures_and_cancellations_under_mpirun";

/// The processes leave what they have seen, and this one compares it with the model, which needs what all
/// have seen.
#[test]
fn failures_and_cancellations_under_mpirun() {
    let _deadline = deadline();
    for (mpi, count) in MPIS {
        let (seeds, begin, folder) = (seeds_of_mpi(), Instant::now(), tempfile::tempdir().unwrap());
        if !run_under(mpi, count, |command| _ = command.env(FOLDER, folder.path())) {
            continue;
        }
        for seed in seeds.clone() {
            let of_node = |node| fs::read_to_string(folder.path().join(format!("{seed} {node}"))).unwrap();
            let all: Vec<_> = (0..count).map(|node| serde_json::from_str(&of_node(node)).unwrap()).collect();
            let program = program(&bytes(seed), troubled(seed, Some(count)));
            if let Err(error) = compare(&program, &all) {
                panic!("seed {seed}: {error}\n{program:#?}\n\nTo run it again: {}", replay(TROUBLED, seed));
            }
        }
        let what = format!("with failures and cancellations on {count} nodes of {}", mpi.mpirun());
        print_count(&what, seeds.end - seeds.start, &seeds, begin);
    }
}
