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
mod watch;

use anabranch::{Runtime, TaskGroup};
use model::{Model, Observed, is_possible};
use program::{Program, RECORD, Setup};
use std::{
    any::Any,
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
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
const THREADS: [usize; 5] = [1, 2, 3, 4, 8];
/// The number of setups: see [`Setup::number`].
const SETUPS: u64 = 4;

/// The SplitMix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The bytes of a program of up to 40 records.
fn bytes(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let records = 2 + random.next() as usize % 40;
    (0..records * RECORD).map(|_| random.next() as u8).collect()
}

/// Runs the program, in a group if there is one.
fn observe(program: &Program, rt: Arc<Runtime>, group: Option<&TaskGroup>) -> Result<Vec<Observed>, String> {
    // A panic must not hide the seed of the program.
    let run = catch_unwind(AssertUnwindSafe(|| run::run(program, rt, group)));
    run.unwrap_or_else(|payload| Err(message(&*payload)))
}

/// Runs the program and compares what the runtime did with the model. The error describes the first
/// difference.
fn check(program: &Program, rt: Arc<Runtime>, group: Option<&TaskGroup>) -> Result<(), String> {
    let node = rt.node();
    let seen = observe(program, rt, group)?;
    let expected = Model::expected(program, &seen, node);
    for (i, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        let agree = match program.setup.faults {
            None => seen == expected,
            Some(_) => is_possible(program, i, seen, expected),
        };
        if !agree {
            return Err(format!("step {i}: {:?}\n    is: {seen:?}\nshould: {expected:?}", program.steps[i]));
        }
    }
    Ok(())
}

/// The message of a panic.
fn message(payload: &(dyn Any + Send)) -> String {
    let text =
        payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("(no message)"))
}

fn check_seeded(bytes: &[u8], order: u64) -> Result<(), String> {
    let setup = Setup::seeded(order);
    let rt = setup.builder(1 + order as usize % 8).build().map_err(|error| error.to_string())?;
    check(&Program::from_bytes(bytes, setup), Arc::new(rt), None)
        .map_err(|error| format!("seeded({order}): {error}"))
}

/// Removes steps as long as the program still fails.
fn shrunk(mut bytes: Vec<u8>, fails: impl Fn(&[u8]) -> Option<String>) -> (Vec<u8>, String) {
    let mut why = "it does not fail again".to_string();
    let mut size = bytes.len() / RECORD;
    while size > 0 {
        let mut at = RECORD;
        while at < bytes.len() {
            let end = (at + size * RECORD).min(bytes.len());
            let shorter = [&bytes[..at], &bytes[end..]].concat();
            match fails(&shorter) {
                Some(reason) => (bytes, why) = (shorter, reason),
                None => at += size * RECORD,
            }
        }
        size /= 2;
    }
    (bytes, why)
}

fn report(test: &str, seed: u64, setup: Setup, error: &str, fails: impl Fn(&[u8]) -> Option<String>) -> ! {
    let (bytes, why) = shrunk(bytes(seed), fails);
    let program = match setup.nodes {
        None => Program::from_bytes(&bytes, setup),
        Some(_) => nodes::program(&bytes, setup),
    };
    panic!("{error}\n\nshrunk: {why}\n{program:#?}\n\nTo run it again: {}", replay(test, seed));
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of this run, of which there are `usual` in an ordinary one.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = number("ANABRANCH_SEED");
    let count = number("PROPTEST_CASES").unwrap_or(if first.is_some() { 1 } else { usual });
    let first = first.unwrap_or(1);
    first..first + count
}

/// A runtime with this number of threads for each setup. Many programs use it: the state that one leaves
/// behind must not affect the next.
fn runtimes(threads: usize) -> Vec<(Setup, Arc<Runtime>)> {
    let runtime = |setup: Setup| (setup, Arc::new(setup.builder(threads).build().unwrap()));
    (0..SETUPS).map(Setup::number).map(runtime).collect()
}

/// Prints what a test has done, past the capture of the test harness. `./check --deep` reads it.
fn print_count(what: &str, programs: u64, seeds: &std::ops::Range<u64>, begin: Instant) {
    let (first, last, seconds) = (seeds.start, seeds.end - 1, begin.elapsed().as_secs_f64());
    let rate = programs as f64 / seconds;
    let line = format!("random programs {what}: {programs} (seeds {first} to {last}, {rate:.0} a second)");
    let _ = writeln!(std::io::stderr(), "{line}");
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
                report(TEST, seed, Setup::seeded(order), &error, fails);
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
                check(&Program::from_bytes(bytes, *setup), Arc::clone(rt), None).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                // Threads may take another order the next time, so each shrunk program is tried 20 times.
                report(TEST, seed, *setup, &format!("{threads} threads: {error}"), |bytes| {
                    (0..20).find_map(|_| fails(bytes))
                });
            }
        }
    }
    print_count("on threads", programs, &seeds, begin);
}

/// Each program has 1 to 3 devices, on which many of its kernels run, and one of the numbers of threads.
#[test]
fn on_devices() {
    const TEST: &str = "on_devices";
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    for (at, threads) in (0..).zip(THREADS) {
        let runtimes = runtimes(threads);
        for seed in seeds.clone().filter(|seed| seed % THREADS.len() as u64 == at) {
            let (setup, rt) = &runtimes[(seed / THREADS.len() as u64 % SETUPS) as usize];
            let setup = setup.with_devices(1 + seed as usize / 7 % 3);
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check(&Program::from_bytes(bytes, setup), Arc::clone(rt), None).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                report(TEST, seed, setup, &format!("{threads} threads: {error}"), |bytes| {
                    (0..20).find_map(|_| fails(bytes))
                });
            }
        }
    }
    let (programs, (launches, copies)) = (seeds.end - seeds.start, run::on_device::work(false));
    print_count(&format!("with devices ({launches} launches, {copies} copies)"), programs, &seeds, begin);
    // Few programs may have no kernel for a device.
    assert!(programs < 20 || 2 * launches > programs && copies > programs, "the devices had little to do");
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
            rt.and_then(|rt| check(&Program::from_bytes(bytes, setup), Arc::new(rt), None)).err()
        };
        if let Some(error) = fails(&bytes(seed)) {
            report(TEST, seed, setup, &format!("{threads} threads: {error}"), |bytes| {
                (0..20).find_map(|_| fails(bytes))
            });
        }
    }
    let (programs, work) = (seeds.end - seeds.start, run::on_device::work_with_faults());
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
                check(&Program::from_bytes(&bytes(seed), *setup), Arc::clone(rt), Some(&group))
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
