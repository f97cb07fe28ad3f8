//! The random programs of the runtime's oracle, with kernels on a GPU: results are those of serial execution.
//!
//! `anabranch/tests/oracle` has the programs, the model and the variables that say which programs run.

#[path = "../../../anabranch/tests/common/mod.rs"]
mod common;
#[path = "../../../anabranch/tests/oracle/model/mod.rs"]
mod model;
#[path = "../../../anabranch/tests/oracle/program/mod.rs"]
mod program;
#[path = "../../../anabranch/tests/oracle/run/mod.rs"]
mod run;
#[path = "../../../anabranch/tests/oracle/seeds.rs"]
mod seeds;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../anabranch/tests/oracle/watch.rs"]
mod watch;

use program::{Program, Setup};
use run::{on_device::Devices, replays};
use seeds::{THREADS, bytes, check, print_count, report_on_threads, seeds};
use std::{sync::Arc, time::Instant};
use support::gpu;
use watch::Watch;

/// The number of programs in an ordinary run.
const PROGRAMS: u64 = 500;

/// Each program has 1 to 3 devices, which are handles of one GPU: each has memory of its own.
#[test]
fn on_gpus() {
    const TEST: &str = "on_gpus";
    let Some(opened) = (0..3).map(|_| gpu()).collect::<Option<Vec<_>>>() else { return };
    let (seeds, begin, watch) = (seeds(PROGRAMS), Instant::now(), Watch::begin(TEST));
    for seed in seeds.clone() {
        let threads = THREADS[seed as usize % THREADS.len()];
        let count = 1 + seed as usize / 7 % opened.len();
        let setup = if seed.is_multiple_of(4) { Setup::seeded(seed) } else { Setup::number(seed / 5) };
        let setup = setup.with_devices(count);
        let setup = if seed.is_multiple_of(3) { setup.calm() } else { setup };
        let fails = |bytes: &[u8]| {
            watch.program(seed);
            let rt = setup.builder(threads).build().map_err(|error| error.to_string());
            let devices = Devices::given(opened[..count].to_vec());
            rt.and_then(|rt| check(&Program::from_bytes(bytes, setup), Arc::new(rt), None, devices)).err()
        };
        if let Some(error) = fails(&bytes(seed)) {
            report_on_threads(TEST, seed, threads, setup, &error, fails);
        }
    }
    let programs = seeds.end - seeds.start;
    let batches: u64 = opened.iter().map(|device| device.timeline().submitted()).sum();
    let in_sequences = replays::on_devices(false);
    let what = format!("on GPUs ({batches} batches, {in_sequences} kernels in sequences)");
    print_count(&what, programs, &seeds, begin);
    // Few programs may have no kernel for a device.
    assert!(programs < 20 || batches > 2 * programs, "the devices had little to do");
    assert!(programs < 200 || 20 * in_sequences > programs, "sequences had {in_sequences} kernels there");
}
