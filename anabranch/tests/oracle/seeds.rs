//! Programs that follow from seeds, and how they are compared with the model. The tests on a GPU share this
//! module.

use crate::{
    model::{Model, Observed, is_possible},
    program::{Program, RECORD, Setup},
    run::{self, on_device::Devices},
    watch::replay,
};
use anabranch::{Runtime, TaskGroup};
use std::{
    any::Any,
    io::Write as _,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

/// The numbers of threads of programs.
pub const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

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
pub fn bytes(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let records = 2 + random.next() as usize % 40;
    (0..records * RECORD).map(|_| random.next() as u8).collect()
}

/// Runs the program, in a group if there is one, on these devices.
pub fn observe(
    program: &Program,
    rt: Arc<Runtime>,
    group: Option<&TaskGroup>,
    devices: Devices,
) -> Result<Vec<Observed>, String> {
    // A panic must not hide the seed of the program.
    let run = catch_unwind(AssertUnwindSafe(|| run::run(program, rt, group, devices)));
    run.unwrap_or_else(|payload| Err(message(&*payload)))
}

/// Runs the program and compares what the runtime did with the model. The error describes the first
/// difference.
pub fn check(
    program: &Program,
    rt: Arc<Runtime>,
    group: Option<&TaskGroup>,
    devices: Devices,
) -> Result<(), String> {
    let node = rt.node();
    let seen = observe(program, rt, group, devices)?;
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

/// Panics with a message that shows the program of a seed which fails, and the shortest one that still does.
/// `program` makes the program from its bytes.
pub fn report(
    test: &str,
    seed: u64,
    error: &str,
    program: impl Fn(&[u8]) -> Program,
    fails: impl Fn(&[u8]) -> Option<String>,
) -> ! {
    let (bytes, why) = shrunk(bytes(seed), fails);
    let program = program(&bytes);
    panic!("{error}\n\nshrunk: {why}\n{program:#?}\n\nTo run it again: {}", replay(test, seed));
}

/// As [`report`], for a program on this number of threads, which may take another order the next time: each
/// shorter one is tried 20 times.
pub fn report_on_threads(
    test: &str,
    seed: u64,
    threads: usize,
    setup: Setup,
    error: &str,
    fails: impl Fn(&[u8]) -> Option<String>,
) -> ! {
    let program = |bytes: &[u8]| Program::from_bytes(bytes, setup);
    let fails = |bytes: &[u8]| (0..20).find_map(|_| fails(bytes));
    report(test, seed, &format!("{threads} threads: {error}"), program, fails)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of this run, of which there are `usual` in an ordinary one.
pub fn seeds(usual: u64) -> Range<u64> {
    let first = number("ANABRANCH_SEED");
    let count = number("PROPTEST_CASES").unwrap_or(if first.is_some() { 1 } else { usual });
    let first = first.unwrap_or(1);
    first..first + count
}

/// Prints what a test has done, past the capture of the test harness. `./check --deep` reads it.
pub fn print_count(what: &str, programs: u64, seeds: &Range<u64>, begin: Instant) {
    let (first, last, seconds) = (seeds.start, seeds.end - 1, begin.elapsed().as_secs_f64());
    let rate = programs as f64 / seconds;
    let line = format!("random programs {what}: {programs} (seeds {first} to {last}, {rate:.0} a second)");
    let _ = writeln!(std::io::stderr(), "{line}");
}
