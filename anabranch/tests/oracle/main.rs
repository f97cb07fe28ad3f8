//! The oracle: results are those of serial execution, and failures follow the data. The runtime runs random programs on 1 to 8
//! threads and in orders drawn from seeds; a plain model runs the same programs. The observations of every step must agree, bit
//! for bit.
//!
//! Each seed always makes the same program. `PROPTEST_CASES=n` runs `n` programs. `ANABRANCH_SEED=n` begins with seed `n`, and
//! runs only that program unless `PROPTEST_CASES` is set, too.

mod model;
mod program;
mod run;

use anabranch::Runtime;
use model::Model;
use program::{Program, RECORD};
use std::sync::Arc;

/// The number of programs in an ordinary run. One of `THREADED` programs also runs on threads.
const PROGRAMS: u64 = 5000;
const THREADED: u64 = 8;
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

/// Runs the program, and compares what the runtime did with the model. The error describes the first difference.
fn check(program: &Program, rt: &Arc<Runtime>) -> Result<(), String> {
    let seen = run::run(program, rt).map_err(|error| error.to_string())?;
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
    check(&Program::from_bytes(bytes), &Arc::new(rt)).map_err(|error| format!("seeded({seed}): {error}"))
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

#[test]
fn in_orders_drawn_from_seeds() {
    for seed in seeds() {
        let bytes = bytes(seed);
        for order in [seed, !seed] {
            if let Err(error) = check_seeded(&bytes, order) {
                report(seed, &error, |bytes| check_seeded(bytes, order).err());
            }
        }
    }
}

#[test]
fn on_threads() {
    let seeds = seeds();
    let step = if seeds.end - seeds.start > 1 { THREADED } else { 1 };
    for threads in THREADS {
        // One runtime for all programs: the state that one leaves behind must not affect the next.
        let rt = Arc::new(builder().threads(threads).build().unwrap());
        for seed in seeds.clone().step_by(step as usize) {
            let fails = |bytes: &[u8]| check(&Program::from_bytes(bytes), &rt).err();
            if let Some(error) = fails(&bytes(seed)) {
                // Threads may take another order the next time, so each shrunk program is tried 20 times.
                report(seed, &format!("{threads} threads: {error}"), |bytes| {
                    (0..20).find_map(|_| fails(bytes))
                });
            }
        }
    }
}
