//! Programs from bytes, run in an order drawn from a seed, and compared with the oracle's model.
#![no_main]

#[path = "../../anabranch/tests/oracle/inner.rs"]
mod inner;
#[path = "../../anabranch/tests/oracle/model.rs"]
mod model;
#[path = "../../anabranch/tests/oracle/program.rs"]
mod program;
#[path = "../../anabranch/tests/oracle/results.rs"]
mod results;
#[path = "../../anabranch/tests/oracle/run.rs"]
mod run;

use anabranch::Runtime;
use libfuzzer_sys::fuzz_target;
use program::Program;
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
    let program = Program::from_bytes(bytes);
    let seed = u64::from(input.seed);
    let threads = 1 + input.seed as usize % 8;
    let rt = Runtime::builder().threads(threads).max_in_flight(20).seeded(seed).build().expect("threads");
    let seen = run::run(&program, &Arc::new(rt), None).expect("the runtime accepts the program");
    let expected = model::Model::expected(&program, &seen);
    for (i, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(seen, expected, "step {i}: {:?} of {program:#?}", program.steps[i]);
    }
});
