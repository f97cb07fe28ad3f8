//! Programs from bytes, run in an order drawn from a seed, and compared with the oracle's model.
#![no_main]

#[path = "../../anabranch/tests/common/mod.rs"]
mod common;
#[path = "../../anabranch/tests/oracle/model/mod.rs"]
mod model;
#[path = "../../anabranch/tests/oracle/program/mod.rs"]
mod program;
#[path = "../../anabranch/tests/oracle/run/mod.rs"]
mod run;

use libfuzzer_sys::fuzz_target;
use program::{Program, Setup};
use run::on_device::Devices;
use std::sync::Arc;

/// The maximum length of a program. Longer ones are slower and find no more.
const STEPS: usize = 60;

/// The seed of the order, and the program.
#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'b> {
    seed: u16,
    bytes: &'b [u8],
}

fuzz_target!(|input: Input<'_>| {
    let bytes = &input.bytes[..input.bytes.len().min(STEPS * program::RECORD)];
    let seed = u64::from(input.seed);
    let setup = Setup::seeded(seed);
    let program = Program::from_bytes(bytes, setup);
    let rt = setup.builder(1 + input.seed as usize % 8).build().expect("threads");
    let seen = run::run(&program, Arc::new(rt), None, Devices::of(&setup))
        .unwrap_or_else(|error| panic!("{error}: {program:#?}"));
    let expected = model::Model::expected(&program, &seen, 0);
    for (i, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(seen, expected, "step {i}: {:?} of {program:#?}", program.steps[i]);
    }
});
