//! Random programs on 1 to 16 simulated nodes: every chunk reads current data, in every order that keeps the
//! dependencies. All pairs of commands that must not run in another order are checked.

mod command_support;

use command_support::{nodes::simulate, program::Builder};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use std::collections::BTreeMap;

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

fn steps() -> impl Strategy<Value = Vec<Vec<u16>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u16>(), 48), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_node_works_on_current_data(
        nodes in prop_oneof![1..5u16, 1..17u16],
        steps in steps(),
        seed in any::<u64>(),
    ) {
        let (actions, last) = Builder::program(nodes, &steps);
        simulate(nodes, &actions, &last, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5 * cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_node_works_on_current_data_in_programs_that_repeat(
        nodes in prop_oneof![1..5u16, 1..17u16],
        first in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 48), 2..6),
        orders in proptest::collection::vec(any::<u16>(), 16..80),
        seed in any::<u64>(),
    ) {
        let (actions, last) = Builder::repetitive_program(nodes, &first, &orders);
        simulate(nodes, &actions, &last, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases().div_ceil(50), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_nodes_work_on_current_data(nodes in 17..150u16, steps in steps(), seed in any::<u64>()) {
        let (actions, last) = Builder::program(nodes, &steps);
        simulate(nodes, &actions, &last, seed);
    }
}

#[test]
fn the_programs_have_commands_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let mut all = BTreeMap::new();
    for seed in 0..300 {
        let steps = steps().new_tree(&mut runner).expect("a program").current();
        let (actions, last) = Builder::program(6, &steps);
        for (kind, count) in simulate(6, &actions, &last, seed) {
            *all.entry(kind).or_insert(0) += count;
        }
    }
    let kinds = [
        "Execute",
        "Push",
        "AwaitPush",
        "exchange",
        "PushPartials",
        "AwaitPartials",
        "Reduce",
        "Fence",
        "Epoch",
        "Horizon",
    ];
    for kind in kinds {
        assert!(all.get(kind).is_some_and(|&count| count > 100), "{kind}: {all:?}");
    }
}
