//! The oracle: results are those of serial execution, and failures follow the data. The runtime runs random
//! programs on 1 to 8 threads and in orders drawn from seeds; a plain model runs the same programs. The
//! observations of every step must agree, bit for bit. So they do on several nodes, in this process and under
//! `mpirun`.
//!
//! Each seed always makes the same program. `PROPTEST_CASES=n` runs `n` programs. `ANABRANCH_SEED=n` begins
//! with seed `n`, and runs only that program unless `PROPTEST_CASES` is set, too. Each test prints how many
//! programs of which seeds it has run. A program that hangs ends the process with its seed;
//! `ANABRANCH_TEST_SECONDS` says how long one may take.

#[path = "../common/mod.rs"]
mod common;
mod model;
mod nodes;
mod program;
mod run;
mod seeds;
mod watch;

use anabranch::Runtime;
use program::{Program, Setup};
use run::{
    on_device::{self, Devices},
    replays,
};
use seeds::{THREADS, bytes, check, print_count, report, report_on_threads, seeds};
use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use watch::{Watch, replay};

/// The number of programs in an ordinary run.
const PROGRAMS: u64 = 2500;
/// The number of programs whose devices fail.
const FAILING: u64 = 750;
/// The number of programs at once, each from a thread of its own.
const SUBMITTERS: u64 = 3;
/// The number of setups: see [`Setup::number`].
const SETUPS: u64 = 4;

fn check_seeded(bytes: &[u8], order: u64) -> Result<(), String> {
    let setup = Setup::seeded(order);
    let rt = setup.builder(1 + order as usize % 8).build().map_err(|error| error.to_string())?;
    check(&Program::from_bytes(bytes, setup), Arc::new(rt), None, Devices::of(&setup))
        .map_err(|error| format!("seeded({order}): {error}"))
}

/// A runtime with this number of threads for each setup. Many programs use it: the state that one leaves
/// behind must not affect the next.
fn runtimes(threads: usize) -> Vec<(Setup, Arc<Runtime>)> {
    let runtime = |setup: Setup| (setup, Arc::new(setup.builder(threads).build().unwrap()));
    (0..SETUPS).map(Setup::number).map(runtime).collect()
}

#[test]
fn in_orders_drawn_from_seeds() {
    const TEST: &str = "in_orders_drawn_from_seeds";
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    for seed in seeds.clone() {
        for order in [seed, !seed] {
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check_seeded(bytes, order).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                let program = |bytes: &[u8]| Program::from_bytes(bytes, Setup::seeded(order));
                report(TEST, seed, &error, program, fails);
            }
        }
    }
    print_count("in seeded orders", 2 * (seeds.end - seeds.start), &seeds, begin);
}

/// Each program runs on one of the numbers of threads, with one of the setups; a single one runs on all
/// numbers of threads.
#[test]
fn on_threads() {
    const TEST: &str = "on_threads";
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    let single = seeds.end - seeds.start == 1;
    let mut programs = 0;
    for (at, threads) in (0..).zip(THREADS) {
        let runtimes = runtimes(threads);
        for seed in seeds.clone().filter(|seed| single || seed % THREADS.len() as u64 == at) {
            programs += 1;
            let (setup, rt) = &runtimes[(seed / THREADS.len() as u64 % SETUPS) as usize];
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check(&Program::from_bytes(bytes, *setup), Arc::clone(rt), None, Devices::of(setup)).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                report_on_threads(TEST, seed, threads, *setup, &error, fails);
            }
        }
    }
    print_count("on threads", programs, &seeds, begin);
}

/// Each program has 1 to 3 devices, on which many of its kernels run, and one of the numbers of threads. A
/// third of the programs, in which nothing fails, has sequences with such kernels.
#[test]
fn on_devices() {
    const TEST: &str = "on_devices";
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    for (at, threads) in (0..).zip(THREADS) {
        let runtimes = runtimes(threads);
        for seed in seeds.clone().filter(|seed| seed % THREADS.len() as u64 == at) {
            let (setup, rt) = &runtimes[(seed / THREADS.len() as u64 % SETUPS) as usize];
            let setup = setup.with_devices(1 + seed as usize / 7 % 3);
            let setup = if seed.is_multiple_of(3) { setup.calm() } else { setup };
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check(&Program::from_bytes(bytes, setup), Arc::clone(rt), None, Devices::of(&setup)).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                report_on_threads(TEST, seed, threads, setup, &error, fails);
            }
        }
    }
    let (programs, (launches, copies)) = (seeds.end - seeds.start, on_device::work(false));
    let in_sequences = replays::on_devices(false);
    let what = format!("with devices ({launches} launches, {copies} copies, {in_sequences} in sequences)");
    print_count(&what, programs, &seeds, begin);
    // Few programs may have no kernel for a device.
    assert!(programs < 20 || 2 * launches > programs && copies > programs, "the devices had little to do");
    assert!(programs < 500 || 20 * in_sequences > programs, "sequences had {in_sequences} kernels there");
}

/// Each program has 1 to 3 devices of its own, which refuse memory, fail batches and are lost, and a runtime
/// of its own.
#[test]
fn on_devices_that_fail() {
    const TEST: &str = "on_devices_that_fail";
    let (seeds, begin, watch) = (seeds(FAILING), Instant::now(), Watch::begin(TEST));
    for seed in seeds.clone() {
        let threads = THREADS[seed as usize % THREADS.len()];
        let setup = if seed.is_multiple_of(4) { Setup::seeded(seed) } else { Setup::number(seed / 5) };
        let setup = setup.with_devices(1 + seed as usize / 7 % 3).with_faults(seed);
        let fails = |bytes: &[u8]| {
            watch.program(seed);
            let rt = setup.builder(threads).build().map_err(|error| error.to_string());
            let program = Program::from_bytes(bytes, setup);
            rt.and_then(|rt| check(&program, Arc::new(rt), None, Devices::of(&setup))).err()
        };
        if let Some(error) = fails(&bytes(seed)) {
            report_on_threads(TEST, seed, threads, setup, &error, fails);
        }
    }
    let (programs, work) = (seeds.end - seeds.start, on_device::work_with_faults());
    print_count(&format!("with devices that fail ({work:?})"), programs, &seeds, begin);
    let count = |faults: &AtomicU64| faults.load(Ordering::Relaxed);
    let rarest = [&work.refused, &work.failed, &work.lost].map(count).into_iter().min();
    assert!(programs < 100 || rarest > Some(programs / 10), "the devices failed seldom: {work:?}");
}

/// Several threads submit programs of their own to one runtime at the same time, each in a group of its own.
#[test]
fn from_several_threads() {
    const TEST: &str = "from_several_threads";
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    let single = seeds.end - seeds.start == 1;
    let mut programs = 0;
    for (at, threads) in (0..).zip(THREADS) {
        let runtimes = runtimes(threads);
        // Every third seed: each run takes three.
        for seed in seeds.clone().step_by(3).filter(|seed| single || seed / 3 % THREADS.len() as u64 == at) {
            watch.program(seed);
            programs += SUBMITTERS;
            let (setup, rt) = &runtimes[(seed / 3 / THREADS.len() as u64 % SETUPS) as usize];
            let submit = |seed: u64| {
                let group = rt.group(format!("seed {seed}"));
                let program = Program::from_bytes(&bytes(seed), *setup);
                check(&program, Arc::clone(rt), Some(&group), Devices::of(setup))
                    .map_err(|error| format!("seed {seed}: {error}"))
            };
            let result = std::thread::scope(|scope| {
                let submit = &submit;
                let threads: Vec<_> =
                    (seed..seed + SUBMITTERS).map(|seed| scope.spawn(move || submit(seed))).collect();
                threads.into_iter().try_for_each(|thread| thread.join().unwrap())
            });
            if let Err(error) = result {
                panic!(
                    "{threads} threads, {SUBMITTERS} programs at once: {error}\n\nTo run it again: {}",
                    replay(TEST, seed)
                );
            }
        }
    }
    print_count("from several threads", programs, &seeds, begin);
}

/// Runs itself in a child process, in which a program hangs.
#[test]
fn a_program_that_hangs_ends_with_its_seed() {
    const TEST: &str = "a_program_that_hangs_ends_with_its_seed";
    const CHILD: &str = "ANABRANCH_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let watch = Watch::begin(TEST);
        watch.program(7);
        std::thread::sleep(Duration::from_secs(3600));
    }
    let _deadline = testing::deadline();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact"])
        .env(CHILD, "1")
        .env("ANABRANCH_TEST_SECONDS", "0.1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let ended = child.unwrap().wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(message.contains("the program of seed 7 hangs"), "{message}");
    assert!(message.contains(&replay(TEST, 7)), "{message}");
}
