//! Each rule of a residence by itself. `graph/tests/residence.rs` shows that they are enough.

use super::*;
use anabranch_grid::{Extent, GridBox, Region};

const HOST: MemoryId = MemoryId::HOST;
const A: MemoryId = MemoryId(1);
const B: MemoryId = MemoryId(2);
const SIZE: usize = 100;

fn residence() -> Residence<u64> {
    Residence::new(Extent([SIZE, 1, 1]))
}

fn interval(low: usize, high: usize) -> Region<3> {
    GridBox::new([low, 0, 0], [high, 1, 1]).into()
}

fn all() -> Region<3> {
    interval(0, SIZE)
}

fn copy(from: MemoryId, to: MemoryId, region: Region<3>) -> MemoryCopy {
    MemoryCopy { from, to, region }
}

/// Submits the copies that are missing, with ids from `first` on. Returns them.
fn bring(
    residence: &mut Residence<u64>,
    memory: MemoryId,
    region: &Region<3>,
    first: u64,
) -> Vec<MemoryCopy> {
    let copies = residence.missing(memory, region);
    copies.iter().zip(first..).for_each(|(copy, id)| residence.copied(copy, id));
    copies
}

fn made_by(residence: &Residence<u64>, memory: MemoryId, region: &Region<3>) -> Vec<u64> {
    residence.made_by(memory, region).copied().collect()
}

#[test]
fn a_new_version_is_current_on_the_host_alone() {
    let residence = residence();
    assert!(residence.is_only_on_host());
    assert_eq!(residence.missing(HOST, &all()), []);
    assert_eq!(residence.missing(A, &all()), [copy(HOST, A, all())]);
    assert_eq!(made_by(&residence, HOST, &all()), []);
}

#[test]
fn an_empty_buffer_and_an_empty_region_need_no_copy() {
    let mut empty = Residence::<u64>::new(Extent([0, 5, 1]));
    assert_eq!(empty.missing(A, &all()), []);
    empty.written(A, &all());
    assert!(empty.is_only_on_host());
    assert_eq!(residence().missing(A, &Region::empty()), []);
    assert_eq!(residence().missing(A, &interval(SIZE, SIZE + 1)), []);
}

#[test]
fn only_the_elements_that_are_not_current_are_copied() {
    let mut residence = residence();
    bring(&mut residence, A, &interval(20, 40), 1);
    let rest =
        Region::from_boxes([GridBox::new([10, 0, 0], [20, 1, 1]), GridBox::new([40, 0, 0], [50, 1, 1])]);
    assert_eq!(residence.missing(A, &interval(10, 50)), [copy(HOST, A, rest)]);
    assert_eq!(residence.missing(A, &interval(25, 30)), []);
}

#[test]
fn an_access_waits_for_the_copies_in_its_region_until_they_are_done() {
    let mut residence = residence();
    bring(&mut residence, A, &interval(0, 10), 1);
    bring(&mut residence, A, &interval(10, 20), 2);
    bring(&mut residence, B, &interval(0, 20), 3);
    assert_eq!(made_by(&residence, A, &interval(0, 20)), [1, 2]);
    assert_eq!(made_by(&residence, A, &interval(5, 8)), [1]);
    assert_eq!(made_by(&residence, B, &all()), [3]);
    assert_eq!(made_by(&residence, HOST, &all()), []);
    residence.done(&1);
    assert_eq!(made_by(&residence, A, &all()), [2]);
    assert_eq!(residence.missing(A, &interval(0, 20)), []);
}

#[test]
fn one_copy_is_named_once_though_its_target_is_in_many_boxes() {
    let mut residence = residence();
    bring(&mut residence, A, &all(), 1);
    bring(&mut residence, B, &interval(30, 60), 2);
    assert_eq!(made_by(&residence, A, &all()), [1]);
}

#[test]
fn values_go_from_a_device_to_another_through_the_host() {
    let mut residence = residence();
    residence.written(A, &interval(0, 50));
    let copies = bring(&mut residence, B, &interval(0, 50), 1);
    assert_eq!(copies, [copy(A, HOST, interval(0, 50)), copy(HOST, B, interval(0, 50))]);
    assert_eq!(made_by(&residence, HOST, &all()), [1]);
    assert_eq!(made_by(&residence, B, &all()), [2]);
    assert_eq!(residence.missing(HOST, &all()), []); // the host has the values now
}

#[test]
fn the_host_is_the_source_if_it_is_current() {
    let mut residence = residence();
    residence.written(A, &all());
    bring(&mut residence, HOST, &all(), 1);
    assert_eq!(residence.missing(B, &all()), [copy(HOST, B, all())]);
}

#[test]
fn elements_from_one_memory_wait_for_no_other() {
    let mut residence = residence();
    residence.written(A, &interval(0, 10));
    residence.written(B, &interval(10, 20));
    let c = MemoryId(3);
    let expected = [
        copy(HOST, c, interval(20, 30)),
        copy(A, HOST, interval(0, 10)),
        copy(HOST, c, interval(0, 10)),
        copy(B, HOST, interval(10, 20)),
        copy(HOST, c, interval(10, 20)),
    ];
    assert_eq!(bring(&mut residence, c, &interval(0, 30), 1), expected);
}

#[test]
fn a_write_makes_one_memory_current_and_forgets_copies() {
    let mut residence = residence();
    bring(&mut residence, A, &all(), 1);
    residence.written(B, &interval(0, 50));
    assert_eq!(made_by(&residence, A, &interval(0, 50)), []);
    assert_eq!(residence.missing(B, &interval(0, 50)), []);
    assert_eq!(residence.missing(HOST, &all()), [copy(B, HOST, interval(0, 50))]);
    assert_eq!(made_by(&residence, A, &all()), [1]); // elsewhere
    assert!(!residence.is_only_on_host());
    residence.written(HOST, &all());
    assert!(residence.is_only_on_host());
    assert_eq!(residence.tracked(), 1);
}

#[test]
fn a_failed_copy_is_made_again() {
    let mut residence = residence();
    bring(&mut residence, A, &interval(0, 50), 1);
    residence.failed(&1);
    assert!(residence.is_only_on_host());
    assert_eq!(made_by(&residence, A, &all()), []);
    assert_eq!(bring(&mut residence, A, &all(), 2), [copy(HOST, A, all())]);
}

#[test]
fn both_copies_of_a_failed_chain_are_struck_out_in_any_order() {
    for order in [[1, 2], [2, 1]] {
        let mut residence = residence();
        residence.written(A, &all());
        let copies = bring(&mut residence, B, &all(), 1);
        order.iter().for_each(|id| residence.failed(id));
        assert_eq!(residence.missing(A, &all()), []);
        assert_eq!(residence.missing(B, &all()), copies);
        assert_eq!(residence.tracked(), 1);
    }
}

/// The failure of the first copy of a chain is known, and that of the second is not.
#[test]
fn a_copy_whose_chain_has_failed_is_no_source() {
    let mut residence = residence();
    residence.written(B, &all());
    bring(&mut residence, A, &all(), 1);
    residence.failed(&1);
    assert_eq!(made_by(&residence, A, &all()), [2]); // what comes after the second copy is skipped with it
    assert_eq!(residence.missing(HOST, &all()), [copy(B, HOST, all())]); // not from memory 1, which has the smaller id
}

#[test]
fn the_end_of_a_copy_whose_target_was_overwritten_changes_nothing() {
    let ends: [fn(&mut Residence<u64>); 2] =
        [|residence| residence.failed(&1), |residence| residence.done(&1)];
    for end in ends {
        let mut residence = residence();
        bring(&mut residence, A, &all(), 1);
        residence.written(A, &interval(0, 30)); // current because of the write
        residence.written(HOST, &interval(30, 60));
        bring(&mut residence, A, &interval(30, 60), 2); // current because of another copy
        end(&mut residence);
        assert_eq!(residence.missing(A, &interval(0, 60)), []);
        assert_eq!(made_by(&residence, A, &interval(0, 60)), [2]);
    }
}

#[test]
fn a_copy_that_is_done_cannot_fail_any_more() {
    let mut residence = residence();
    bring(&mut residence, A, &all(), 1);
    residence.done(&1);
    residence.failed(&1);
    assert_eq!(residence.missing(A, &all()), []);
}

#[test]
#[should_panic(
    expected = "copy of [0..100, 0..1, 0..1] from the host to memory 1: in [20..30, 0..1, 0..1], memory 1 is current"
)]
fn a_copy_that_nobody_needs_is_refused() {
    let mut residence = residence();
    let copies = residence.missing(A, &all());
    bring(&mut residence, A, &interval(20, 30), 1);
    residence.copied(&copies[0], 2);
}

#[test]
#[should_panic(
    expected = "in [0..10, 0..1, 0..1], the host is not current; ask for the missing copies again"
)]
fn a_copy_of_values_that_are_not_current_is_refused() {
    let mut residence = residence();
    let copies = residence.missing(A, &all());
    residence.written(B, &interval(0, 10));
    residence.copied(&copies[0], 1);
}

#[test]
#[should_panic(expected = "a residence tells 64 memories apart, with ids below that: there is no memory 64")]
fn an_access_in_a_memory_beyond_the_last_is_refused() {
    let _ = residence().missing(MemoryId(64), &all());
}

#[test]
fn the_last_memory_can_be_used() {
    let mut residence = residence();
    residence.written(MemoryId(63), &all());
    assert_eq!(bring(&mut residence, HOST, &all(), 1), [copy(MemoryId(63), HOST, all())]);
}

#[test]
fn boxes_merge_when_their_copies_are_done() {
    let mut residence = residence();
    for id in 0..SIZE as u64 {
        bring(&mut residence, A, &interval(id as usize, id as usize + 1), id);
    }
    assert_eq!(residence.tracked(), 2 * SIZE);
    (0..SIZE as u64).for_each(|id| residence.done(&(id * 7 % SIZE as u64)));
    assert_eq!(residence.tracked(), 1);
}

/// The device writes a part and the host reads everything, a million times. The ends of the copies are
/// reported at once, late, or never.
#[test]
fn an_endless_program_needs_bounded_memory() {
    const LATE: u64 = 50;
    let reports: [fn(u64) -> Option<u64>; 3] = [Some, |id| id.checked_sub(LATE), |_| None];
    for report in reports {
        let mut residence = residence();
        for id in 0..1_000_000 {
            let low = (id * 7 % 9) as usize * 10;
            residence.written(A, &interval(low, low + 20));
            assert_eq!(bring(&mut residence, HOST, &all(), id).len(), 1);
            match report(id) {
                Some(ended) if ended % 3 == 0 => residence.failed(&ended),
                Some(ended) => residence.done(&ended),
                None => {}
            }
            assert!(residence.tracked() <= 2 * 10 + LATE as usize);
        }
    }
}

/// In two dimensions, boxes that overlap in all ways leave many small ones behind.
#[test]
fn an_endless_program_on_tiles_needs_bounded_memory() {
    const SIDE: usize = 24;
    let mut residence = Residence::new(Extent([SIDE, SIDE, 1]));
    let whole = Region::from(GridBox::full([SIDE, SIDE, 1]));
    for id in 0..50_000u64 {
        let hash = (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let [x, y, w, h] = [8, 16, 24, 32].map(|shift| (hash >> shift) as usize % SIDE);
        let tile = GridBox::new([x, y, 0], [(x + w / 3 + 1).min(SIDE), (y + h / 3 + 1).min(SIDE), 1]);
        residence.written(MemoryId((hash >> 60) as u16 % 3), &tile.into());
        bring(&mut residence, HOST, &whole, id);
        residence.done(&id);
        assert!(residence.tracked() < SIDE * SIDE / 4);
    }
    residence.written(HOST, &whole);
    assert_eq!(residence.tracked(), 1);
}
