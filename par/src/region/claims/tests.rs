use super::{stopwatch::stopped, *};
use std::{cell::Cell, ops::Range, time::Duration};

const KINDS: fn(usize) -> [Kind; 6] = |participants| {
    [
        Kind::Dynamic { grain: 3 },
        Kind::Guided { participants, grain: 1 },
        Kind::Guided { participants, grain: 5 },
        Kind::Greedy { most: 16 },
        Kind::Blocks { participants, grain: 2 },
        Kind::RoundRobin { participants },
    ]
};

#[test]
fn every_unit_is_claimed_once_by_claimers_in_turns() {
    for participants in [1, 2, 3, 8] {
        for units in [0, 1, 2, 7, 64, 1000] {
            for kind in KINDS(participants) {
                let partition = Partition::new(units, kind);
                let counters = Counters::new(participants);
                counters.lay_out(&partition);
                let mut claimers: Vec<_> =
                    (0..participants).map(|i| Claimer::new(partition, &counters, i)).collect();
                let mut claimed = vec![0; units];
                let mut open = true;
                while open {
                    open = false;
                    for claimer in &mut claimers {
                        for unit in claimer.claim(usize::MAX).into_iter().flatten() {
                            claimed[unit] += 1;
                            open = true;
                        }
                    }
                }
                assert!(claimed.iter().all(|&t| t == 1), "{kind:?} {units} {claimed:?}");
            }
        }
    }
}

#[test]
fn all_units_before_the_limit_are_claimed_and_none_after_it() {
    for kind in KINDS(3) {
        let partition = Partition::new(100, kind);
        let counters = Counters::new(3);
        counters.lay_out(&partition);
        let mut claimed = [false; 100];
        for own_block in 0..3 {
            let mut claimer = Claimer::new(partition, &counters, own_block);
            while let Some(run) = claimer.claim(40) {
                assert!(run.start < 40);
                run.for_each(|unit| claimed[unit] = true);
            }
        }
        assert!(claimed[..40].iter().all(|&t| t), "{kind:?}");
    }
}

#[test]
fn guided_runs_become_shorter() {
    let partition = Partition::new(1000, Kind::Guided { participants: 2, grain: 3 });
    let lengths: Vec<_> = partition.runs(0).map(|run| partition.units_of(0, run).len()).collect();
    assert_eq!(lengths.iter().sum::<usize>(), 1000);
    assert_eq!(lengths[..6], [250, 250, 125, 125, 63, 62]);
    assert!(lengths.windows(2).all(|pair| pair[1] <= pair[0] + 1));
}

#[test]
fn round_robin_gives_every_nth() {
    let partition = Partition::new(7, Kind::RoundRobin { participants: 3 });
    let of =
        |block| partition.runs(block).flat_map(move |run| partition.units_of(block, run)).collect::<Vec<_>>();
    assert_eq!([of(0), of(1), of(2)], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
}

#[test]
fn a_lone_participant_claims_all_units_in_order() {
    let mut claimer = Claimer::alone(Partition::new(10, Kind::Dynamic { grain: 1 }), 4);
    assert_eq!(
        [claimer.claim(9), claimer.claim(9), claimer.claim(9), claimer.claim(9)],
        [Some(0..4), Some(4..8), Some(8..10), None]
    );
}

/// What an opener that begins alone does: the runs, the partition that it opens the region for and what it
/// tells.
type Probed = (Vec<Range<usize>>, Option<Partition>, Option<u64>);

/// Runs a loop as an opener that begins alone. `time` is that of a unit.
fn probe(units: usize, time: impl Fn(usize) -> Duration, was_short: bool) -> Probed {
    probe_for(WORTH_SHARING, units, time, was_short)
}

/// The same, where only units that take one thread `worth` nanoseconds are shared.
fn probe_for(worth: u64, units: usize, time: impl Fn(usize) -> Duration, was_short: bool) -> Probed {
    probe_with(worth, units, time, was_short, None)
}

/// The same for a loop that was short, whose opener looks at the clock once and measures if `look` says so.
fn probe_after_a_look(units: usize, time: impl Fn(usize) -> Duration, look: &dyn Fn(u64) -> bool) -> Probed {
    probe_with(WORTH_SHARING, units, time, true, Some(look))
}

fn probe_with(
    worth: u64,
    units: usize,
    time: impl Fn(usize) -> Duration,
    was_short: bool,
    look: Option<&dyn Fn(u64) -> bool>,
) -> Probed {
    let (opened, told) = (Cell::new(None), Cell::new(None));
    let counters = Counters::new(1);
    let open = |rest: Partition| {
        counters.lay_out(&rest);
        opened.set(Some(rest));
        Some(&counters)
    };
    let tell = |time| told.set(Some(time));
    let partition = Partition::new(units, Kind::Dynamic { grain: 1 });
    let mut measuring = Measuring::probing(stopped::stopwatch(), &open, was_short, worth, &tell);
    look.into_iter().for_each(|look| measuring.look_first(look));
    let mut claimer = Claimer::probing(partition, &mut measuring);
    let mut runs = Vec::new();
    while let Some(run) = claimer.claim(usize::MAX) {
        stopped::advance(run.clone().map(&time).sum());
        runs.push(run);
    }
    assert!(runs.iter().cloned().flatten().eq(0..units), "{runs:?}");
    (runs, opened.get(), told.get())
}

#[test]
fn a_loop_that_was_short_and_takes_long_is_shared_after_its_first_run() {
    for (units, first) in [(3, 1), (15, 1), (100, 2), (1000, 16)] {
        let (runs, opened, told) = probe(units, |_| Duration::from_micros(5), true);
        assert_eq!(runs[0], 0..first);
        let rest = opened.expect("the units left are worth sharing");
        assert_eq!((rest.first, rest.units), (first, units - first));
        assert!(told.unwrap() >= 4_000 * units as u64, "{told:?}");
    }
}

#[test]
fn a_loop_that_was_short_and_becomes_long_is_shared_as_soon_as_it_has_taken_long() {
    for (units, long, shared) in [(8, 1, 2), (15, 2, 4), (100, 2, 16), (1000, 20, 128), (1000, 100, 128)] {
        let time = |unit| if unit < long { Duration::ZERO } else { Duration::from_micros(5) };
        let (_, opened, told) = probe(units, time, true);
        let rest = opened.expect("the units left are worth sharing");
        assert_eq!((rest.first, rest.units), (shared, units - shared));
        assert!(told.unwrap() >= WORTH_SHARING, "{told:?}");
    }
}

#[test]
fn one_unit_that_is_left_is_not_shared() {
    let (_, opened, told) = probe(2, |_| Duration::from_micros(5), true);
    assert!(opened.is_none() && told.unwrap() >= 9_000, "{told:?}");
}

#[test]
fn a_loop_that_was_short_and_is_short_again_stays_with_its_opener() {
    for (units, expected) in
        [(2, vec![0..1, 1..2]), (15, vec![0..1, 1..2, 2..4, 4..8, 8..15]), (100, vec![0..2, 2..16, 16..100])]
    {
        let (runs, opened, told) = probe(units, |_| Duration::ZERO, true);
        assert!(runs == expected && opened.is_none() && told.is_none(), "{runs:?} {opened:?} {told:?}");
    }
}

#[test]
fn an_opener_that_looks_at_the_clock_measures_only_if_there_is_a_reason() {
    let five = |_| Duration::from_micros(5);
    for (units, expected) in [(2, vec![0..1, 1..2]), (15, vec![0..2, 2..15]), (100, vec![0..13, 13..100])] {
        let looked = Cell::new(0);
        let (runs, opened, told) = probe_after_a_look(units, five, &|now| {
            looked.set(looked.get() + 1);
            assert_eq!(now, 5_000 * expected[0].len() as u64);
            false
        });
        assert!(runs == expected && opened.is_none() && told.is_none(), "{runs:?} {opened:?} {told:?}");
        assert_eq!(looked.get(), 1);
    }
    for (units, shared) in [(4, 2), (15, 3), (100, 15), (1000, 141)] {
        let (runs, opened, told) = probe_after_a_look(units, five, &|_| true);
        let rest = opened.unwrap_or_else(|| panic!("the units left are worth sharing: {runs:?}"));
        assert_eq!((rest.first, rest.units), (shared, units - shared), "{runs:?}");
        assert!(told.unwrap() >= 4_000 * units as u64, "{told:?}");
    }
    // The last units alone are long.
    let time = |unit| if unit < 50 { Duration::ZERO } else { Duration::from_micros(5) };
    let (_, opened, told) = probe_after_a_look(100, time, &|_| true);
    assert!(opened.is_none() && told.unwrap() >= 200_000, "{told:?}");
}

#[test]
fn a_loop_whose_first_unit_is_short_is_not_taken_for_a_short_loop() {
    let long = Duration::from_micros(20);
    for units in [2, 8, 30, 200] {
        let time = |unit| if unit == 0 { Duration::ZERO } else { long };
        for was_short in [false, true] {
            let (_, _, told) = probe(units, time, was_short);
            assert!(told.unwrap() >= WORTH_SHARING, "{units} units: {told:?}");
        }
    }
}

#[test]
fn a_loop_of_which_nothing_is_known_is_shared_if_its_units_are_long() {
    let (runs, opened, told) = probe(1000, |_| Duration::from_micros(1), false);
    assert_eq!((runs[0].clone(), opened.unwrap().first), (0..1, 1));
    assert!(told.unwrap() >= 900_000, "{told:?}");
}

#[test]
fn an_opener_that_has_to_wake_a_worker_shares_only_more_work() {
    for was_short in [false, true] {
        for units in [2, 8, 30, 200] {
            let time = |whole: u64| move |_| Duration::from_nanos(whole / units as u64);
            let (_, opened, told) = probe_for(WORTH_WAKING, units, time(WORTH_WAKING - 1000), was_short);
            assert!(opened.is_none() && told.unwrap() < WORTH_WAKING, "{units} units: {told:?}");
            let (_, opened, told) = probe_for(WORTH_WAKING, units, time(3 * WORTH_WAKING), was_short);
            assert!(opened.is_some() == (units > 2), "{units} units");
            assert!(told.unwrap() >= WORTH_WAKING, "{units} units: {told:?}");
        }
    }
}

#[test]
fn an_opener_that_shares_measures_its_first_run() {
    let told = Cell::new(None);
    let tell = |time| told.set(Some(time));
    let partition = Partition::new(3, Kind::Dynamic { grain: 2 });
    let counters = Counters::new(1);
    counters.lay_out(&partition);
    let mut measuring = Measuring::sharing(stopped::stopwatch(), &tell);
    let mut claimer = Claimer::new(partition, &counters, 0);
    claimer.measure(&mut measuring);
    assert_eq!((claimer.claim(usize::MAX), told.get()), (Some(0..2), None));
    stopped::advance(Duration::from_millis(2));
    assert_eq!(claimer.claim(usize::MAX), Some(2..3));
    let time = told.take().unwrap();
    assert!((2_900_000..3_000_000).contains(&time), "{time}");
    assert_eq!((claimer.claim(usize::MAX), told.get()), (None, None));
}
