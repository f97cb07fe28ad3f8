//! The scenarios on local nodes, and what only a local network can do.

mod conformance;

use anabranch_wire::{
    Begun, Event, Layout, Memory, MemoryMut, Options, Pace, Tag, WireError, local::Network,
};
use conformance::{ENDS, SCENARIOS, Scenario, node::Node};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

fn run(scenarios: &[Scenario], nodes: &[u16], delays: &[u32]) {
    run_with(&Options::new(), scenarios, nodes, delays);
}

fn run_with(options: &Options, scenarios: &[Scenario], nodes: &[u16], delays: &[u32]) {
    for &nodes in nodes {
        for &delays in delays {
            for Scenario { name, run } in scenarios {
                let network = Network::new(nodes).options(options.clone());
                let network = network.seed(u64::from(nodes)).delays(delays);
                let result = catch_unwind(AssertUnwindSafe(|| network.run(run)));
                assert!(result.is_ok(), "{name} failed with {nodes} nodes and delays up to {delays}");
            }
        }
    }
}

#[test]
fn all_scenarios_without_delays() {
    let _deadline = testing::deadline();
    run(SCENARIOS, &[1, 2, 3, 4, 7, 16], &[0]);
}

#[test]
fn all_scenarios_with_messages_that_overtake_each_other() {
    let _deadline = testing::deadline();
    run(SCENARIOS, &[2, 3, 4, 7], &[6]);
}

#[test]
fn all_scenarios_with_small_transfers_from_place_to_place() {
    let _deadline = testing::deadline();
    for eager in [0, 100] {
        let options = Options::new().eager(eager);
        // In this scenario small transfers are to go in messages.
        let scenarios = SCENARIOS.iter().filter(|scenario| scenario.name != "a_flood_stays_with_its_sender");
        run_with(&options, &Vec::from_iter(scenarios.cloned()), &[2, 3, 4], &[0, 6]);
    }
}

#[test]
fn the_limit_says_what_goes_in_one_message() {
    let _deadline = testing::deadline();
    for (eager, bytes, in_one) in [(0, 0, true), (0, 1, false), (100, 100, true), (100, 101, false)] {
        let network = Network::new(2).options(Options::new().eager(eager));
        let ends = network.run(|mut wire| {
            let mut data = vec![7_u8; bytes];
            let (tag, layout) = (Tag::new(1, 1, 0), [Layout::contiguous(0, bytes)]);
            let begun = match wire.place().node {
                // SAFETY: `data` stays until the network has ended, and nothing else uses it.
                0 => wire.send(1, tag, unsafe { Memory::new(data.as_ptr(), bytes) }, &layout)?,
                // SAFETY: as above.
                _ => wire.expect(tag, unsafe { MemoryMut::new(data.as_mut_ptr(), bytes) }, bytes)?,
            };
            let (mut events, mut pace) = (Vec::new(), Pace::new());
            while let Begun::Later(ticket) = begun
                && !events.contains(&Event::Done(ticket))
            {
                pace.after(wire.poll(&mut events)?);
            }
            let in_one = wire.place().node == 1 || begun == Begun::Done;
            wire.finish()?;
            Ok::<_, WireError>(in_one)
        });
        assert_eq!(ends, [Ok(in_one), Ok(true)], "{bytes} bytes, limit {eager}");
    }
}

#[test]
fn all_ends() {
    let _deadline = testing::deadline();
    run(ENDS, &[2, 3, 7], &[0]);
    run(ENDS, &[3], &[5]);
}

#[test]
fn a_panic_reaches_every_node() {
    let _deadline = testing::deadline();
    let network = Network::new(3);
    let program = |wire| {
        let mut node = Node::new(wire);
        assert!(node.me() != 2, "deliberately");
        assert_eq!(node.failure(), WireError::Left { node: 2, panicked: true });
    };
    let result = catch_unwind(AssertUnwindSafe(|| network.run(program)));
    let payload = result.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"deliberately"));
}

#[test]
fn a_silent_node_is_named_on_every_other_node() {
    let _deadline = testing::deadline();
    let network = Network::new(4).options(Options::new().timeout(Duration::from_secs(3)));
    let mut ends = network.run(|wire| {
        let mut node = Node::new(wire);
        if node.me() == 2 {
            network.silence(2);
            return None;
        }
        match node.failure() {
            WireError::Lost { node, silence } => Some((node, silence)),
            other => panic!("{other}"),
        }
    });
    ends.remove(2);
    for end in ends {
        let (node, silence) = end.unwrap();
        assert_eq!(node, 2);
        assert!(silence >= Duration::from_secs(3));
    }
}

#[test]
fn the_same_seed_gives_the_same_order_of_events() {
    let _deadline = testing::deadline();
    // All nodes on this thread.
    let order = |seed| {
        let mut ends = Network::new(4).seed(seed).delays(20).endpoints();
        for round in 0..10_u8 {
            for from in 0..4_u16 {
                for to in 0..4 {
                    ends[usize::from(from)].post(to, &[round]).unwrap();
                }
            }
        }
        let mut events = Vec::new();
        while events.len() < 160 {
            for end in &mut ends {
                end.poll(&mut events).unwrap();
            }
        }
        events
            .into_iter()
            .map(|event| match event {
                Event::Post { from, message } => (from, message),
                other => unreachable!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
