use super::*;

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
