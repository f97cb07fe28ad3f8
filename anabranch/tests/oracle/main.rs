//! The oracle: results are those of serial execution, and failures follow the data. The runtime runs random programs on 1 to 8
//! threads and in orders drawn from seeds; a plain model runs the same programs. The observations of every step must agree, bit
//! for bit.
//!
//! Each seed always makes the same program. `PROPTEST_CASES=n` runs `n` programs. `ANABRANCH_SEED=n` begins with seed `n`, and
//! runs only that program unless `PROPTEST_CASES` is set, too. Each test prints how many programs of which seeds it has run. A
//! program that takes longer than [`DEADLINE`] ends the process with its seed.

mod inner;
mod model;
mod program;
mod results;
mod run;

use anabranch::{Runtime, TaskGroup};
use model::Model;
use program::{Program, RECORD};
use std::{
    io::Write as _,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The number of programs in an ordinary run.
const PROGRAMS: u64 = 5000;
/// A program takes some milliseconds, or a second under the sanitizers on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// The number of programs at once, each from a thread of its own.
const SUBMITTERS: u64 = 3;
const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

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

/// The bytes of a program of up to 40 steps.
fn bytes(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let records = 2 + random.next() as usize % 40;
    (0..records * RECORD).map(|_| random.next() as u8).collect()
}

/// Runs the program, in a group if there is one, and compares what the runtime did with the model. The error describes the first
/// difference.
fn check(program: &Program, rt: &Arc<Runtime>, group: Option<&TaskGroup>) -> Result<(), String> {
    let seen = run::run(program, rt, group).map_err(|error| error.to_string())?;
    let expected = Model::expected(program, &seen);
    for (i, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        if seen != expected {
            return Err(format!("step {i}: {:?}\n    is: {seen:?}\nshould: {expected:?}", program.steps[i]));
        }
    }
    Ok(())
}

fn builder() -> anabranch::Builder {
    Runtime::builder().max_in_flight(20)
}

fn check_seeded(bytes: &[u8], seed: u64) -> Result<(), String> {
    let rt =
        builder().threads(1 + seed as usize % 8).seeded(seed).build().map_err(|error| error.to_string())?;
    check(&Program::from_bytes(bytes), &Arc::new(rt), None)
        .map_err(|error| format!("seeded({seed}): {error}"))
}

/// Removes steps as long as the program still fails.
fn shrunk(mut bytes: Vec<u8>, fails: impl Fn(&[u8]) -> Option<String>) -> (Program, String) {
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
    (Program::from_bytes(&bytes), why)
}

fn report(seed: u64, error: &str, fails: impl Fn(&[u8]) -> Option<String>) -> ! {
    let (program, why) = shrunk(bytes(seed), fails);
    panic!("ANABRANCH_SEED={seed}: {error}\n\nshrunk: {why}\n{program:#?}");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of this run.
fn seeds() -> std::ops::Range<u64> {
    let first = number("ANABRANCH_SEED");
    let count = number("PROPTEST_CASES").unwrap_or(if first.is_some() { 1 } else { PROGRAMS });
    let first = first.unwrap_or(1);
    first..first + count
}

/// Says which program runs, so that a hang ends with its seed.
struct Watch(Arc<Mutex<(u64, Instant)>>);

impl Watch {
    fn begin() -> Self {
        let current = Arc::new(Mutex::new((0, Instant::now())));
        let watched = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = watched.upgrade() {
                let (seed, since) = *current.lock().unwrap();
                if since.elapsed() > DEADLINE {
                    let _ = writeln!(std::io::stderr(), "ANABRANCH_SEED={seed}: the program hangs");
                    std::process::abort();
                }
                drop(current);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Self(current)
    }

    fn program(&self, seed: u64) {
        *self.0.lock().unwrap() = (seed, Instant::now());
    }
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
    let (seeds, begin, watch) = (seeds(), Instant::now(), Watch::begin());
    for seed in seeds.clone() {
        for order in [seed, !seed] {
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check_seeded(bytes, order).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                report(seed, &error, fails);
            }
        }
    }
    print_count("in seeded orders", 2 * (seeds.end - seeds.start), &seeds, begin);
}

/// Each program runs on one of the numbers of threads; a single one runs on all.
#[test]
fn on_threads() {
    let (seeds, begin, watch) = (seeds(), Instant::now(), Watch::begin());
    let single = seeds.end - seeds.start == 1;
    let mut programs = 0;
    for (at, threads) in (0..).zip(THREADS) {
        // One runtime for many programs: the state that one leaves behind must not affect the next.
        let rt = Arc::new(builder().threads(threads).build().unwrap());
        for seed in seeds.clone().filter(|seed| single || seed % THREADS.len() as u64 == at) {
            programs += 1;
            let fails = |bytes: &[u8]| {
                watch.program(seed);
                check(&Program::from_bytes(bytes), &rt, None).err()
            };
            if let Some(error) = fails(&bytes(seed)) {
                // Threads may take another order the next time, so each shrunk program is tried 20 times.
                report(seed, &format!("{threads} threads: {error}"), |bytes| {
                    (0..20).find_map(|_| fails(bytes))
                });
            }
        }
    }
    print_count("on threads", programs, &seeds, begin);
}

/// Several threads submit programs of their own to one runtime at the same time, each in a group of its own.
#[test]
fn from_several_threads() {
    let (seeds, begin, watch) = (seeds(), Instant::now(), Watch::begin());
    let single = seeds.end - seeds.start == 1;
    let mut programs = 0;
    for (at, threads) in (0..).zip(THREADS) {
        let rt = Arc::new(builder().threads(threads).build().unwrap());
        // Every third seed: each run takes three.
        for seed in seeds.clone().step_by(3).filter(|seed| single || seed / 3 % THREADS.len() as u64 == at) {
            watch.program(seed);
            programs += SUBMITTERS;
            let submit = |seed: u64| {
                let group = rt.group(format!("seed {seed}"));
                check(&Program::from_bytes(&bytes(seed)), &rt, Some(&group))
                    .map_err(|error| format!("seed {seed}: {error}"))
            };
            let result = std::thread::scope(|scope| {
                let threads: Vec<_> = (seed..seed + SUBMITTERS)
                    .map(|seed| {
                        scope.spawn({
                            let submit = &submit;
                            move || submit(seed)
                        })
                    })
                    .collect();
                threads.into_iter().try_for_each(|thread| thread.join().unwrap())
            });
            if let Err(error) = result {
                panic!("ANABRANCH_SEED={seed}: {threads} threads, {SUBMITTERS} programs at once: {error}");
            }
        }
    }
    print_count("from several threads", programs, &seeds, begin);
}
