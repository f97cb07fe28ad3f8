//! Random programs on 1 to 16 simulated nodes: every chunk reads current data, whatever the order of execution.

mod command_support;

use command_support::{nodes::simulate, program::Builder};
use proptest::prelude::*;

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_node_works_on_current_data(
        nodes in prop_oneof![1..5u16, 1..17u16],
        steps in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 48), 1..16),
        seed in any::<u64>(),
    ) {
        let (actions, last) = Builder::program(nodes, &steps);
        simulate(nodes, &actions, &last, seed);
    }
}
