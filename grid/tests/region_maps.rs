//! Region maps against an array of values, in 0 to 3 dimensions.

mod common;

use anabranch_grid::{GridBox, RegionMap};
use common::{SIDE, any_box, index, space};
use proptest::collection::vec;
use proptest::prelude::*;

/// A change of a map.
#[derive(Clone, Copy, Debug)]
enum Change {
    Update(u8),
    Replace(u8),
    Apply(fn(&u8) -> u8),
    Modify(fn(&u8) -> u8),
    /// Changes values in place, and then merges equal entries everywhere.
    ModifyAndMerge(fn(&u8) -> u8),
}

impl Change {
    fn of(self, old: u8) -> u8 {
        match self {
            Change::Update(value) | Change::Replace(value) => value,
            Change::Apply(change) | Change::Modify(change) | Change::ModifyAndMerge(change) => change(&old),
        }
    }

    fn apply_to<const D: usize>(self, map: &mut RegionMap<D, u8>, range: &GridBox<D>) {
        match self {
            Change::Update(value) => map.update(range, value),
            Change::Apply(change) => map.apply(range, change),
            Change::Modify(change) => map.modify(range, |value| *value = change(value)),
            Change::ModifyAndMerge(change) => {
                map.modify(range, |value| *value = change(value));
                map.merge();
            }
            Change::Replace(value) => {
                let mut old = map.query(range).map(|(_, value)| *value).collect::<Vec<_>>();
                let mut seen = Vec::new();
                map.replace(range, value, |value| seen.push(*value));
                old.sort_unstable();
                seen.sort_unstable();
                assert_eq!(seen, old);
            }
        }
    }
}

/// Mostly bands along one axis, sometimes any box.
fn band<const D: usize>() -> impl Strategy<Value = GridBox<D>> {
    (any_box::<D>(), 0..10usize).prop_map(|(any, kind)| {
        if kind == 0 || D == 0 || any.is_empty() {
            return any;
        }
        let (mut min, mut max) = ([0; D], [SIDE; D]);
        (min[D - 1], max[D - 1]) = (any.min()[D - 1], any.max()[D - 1]);
        GridBox::new(min, max)
    })
}

fn changes<const D: usize>() -> impl Strategy<Value = Vec<(GridBox<D>, Change)>> {
    changes_of(any_box::<D>())
}

fn changes_of<const D: usize>(
    boxes: impl Strategy<Value = GridBox<D>>,
) -> impl Strategy<Value = Vec<(GridBox<D>, Change)>> {
    let change = prop_oneof![
        (0..4u8).prop_map(Change::Replace),
        Just(Change::Modify(|v| v + 1)),
        Just(Change::ModifyAndMerge(|v| v / 3)),
        Just(Change::Modify(|v| v / 2)),
        (0..4u8).prop_map(Change::Update),
        Just(Change::Apply(|v| v + 1)),
        Just(Change::Apply(|v| v / 2)),
        Just(Change::Apply(|v| *v)),
    ];
    vec((boxes, change), 0..40)
}

fn check<const D: usize>(changes: &[(GridBox<D>, Change)], probe: GridBox<D>) -> Result<(), TestCaseError> {
    let mut map = RegionMap::new([SIDE; D], 0u8);
    let mut array = vec![0u8; space::<D>().len()];
    for (range, change) in changes {
        change.apply_to(&mut map, range);
        for point in range.points() {
            array[index(point)] = change.of(array[index(point)]);
        }
        check_entries(&map, space(), &array)?;
    }
    check_query(&map, probe, &array)
}

/// Checks that the entries cover the space once, with the right values.
fn check_entries<const D: usize>(
    map: &RegionMap<D, u8>,
    space: GridBox<D>,
    array: &[u8],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(map.entries().len(), map.len());
    prop_assert_eq!(map.entries().map(|(range, _)| range.len()).sum::<usize>(), space.len());
    check_query(map, space, array)
}

fn check_query<const D: usize>(
    map: &RegionMap<D, u8>,
    probe: GridBox<D>,
    array: &[u8],
) -> Result<(), TestCaseError> {
    let mut seen = vec![0; array.len()];
    map.for_each(&probe, |part, &value| {
        assert!(probe.contains(&part) && !part.is_empty());
        for point in part.points() {
            seen[index(point)] += 1;
            assert_eq!(value, array[index(point)], "at {point} of {map:?}");
        }
    });
    for point in space::<D>().points() {
        prop_assert_eq!(seen[index(point)], usize::from(probe.contains_point(point)));
    }
    Ok(())
}

macro_rules! in_dimensions {
    ($($name:ident: $d:literal),*) => {$(
        proptest! {
            #[test]
            fn $name(changes in changes::<$d>(), probe in any_box::<$d>()) {
                check(&changes, probe)?;
            }
        }
    )*};
}

in_dimensions!(
    zero_dimensional_maps_are_arrays: 0,
    one_dimensional_maps_are_arrays: 1,
    two_dimensional_maps_are_arrays: 2,
    three_dimensional_maps_are_arrays: 3
);

proptest! {
    #[test]
    fn maps_of_bands_are_arrays(changes in changes_of::<3>(band()), probe in any_box::<3>()) {
        check(&changes, probe)?;
    }
}

/// The number of maximal runs of equal values.
fn runs(array: &[u8]) -> usize {
    array.chunk_by(|a, b| a == b).count()
}

proptest! {
    /// In one dimension the map is minimal, also if it is one axis of a 3-D map.
    #[test]
    fn intervals_are_maximal(changes in changes::<1>(), axis in 0..3usize) {
        let mut extent = [1; 3];
        extent[axis] = SIDE;
        let mut map = RegionMap::<3, u8>::new(extent, 0);
        let mut array = [0; SIDE];
        for (range, change) in &changes {
            let (low, high) = (range.min()[0], range.max()[0]);
            let (mut min, mut max) = ([0; 3], [1; 3]);
            (min[axis], max[axis]) = (low, high);
            change.apply_to(&mut map, &GridBox::new(min, max));
            array[low..high].iter_mut().for_each(|value| *value = change.of(*value));
            prop_assert_eq!(map.len(), runs(&array));
        }
    }
}

#[test]
fn a_tile_that_is_restored_leaves_no_trace() {
    let mut map = RegionMap::new([9, 9], 0);
    map.update(&GridBox::new([3, 3], [6, 6]), 1);
    assert_eq!(map.len(), 5);
    map.update(&GridBox::new([3, 3], [6, 6]), 0);
    assert_eq!(map.len(), 1);
}

#[test]
fn equal_tiles_become_one_entry() {
    let mut map = RegionMap::new([8, 8, 8], 0);
    for tile in GridBox::full([4, 4, 4]).points() {
        map.update(&GridBox::new(tile.0.map(|c| 2 * c), tile.0.map(|c| 2 * c + 2)), 7);
    }
    assert_eq!(map.entries().collect::<Vec<_>>(), [(GridBox::full([8, 8, 8]), &7)]);
}

#[test]
fn tiles_that_become_equal_are_merged_when_asked() {
    let mut map = RegionMap::new([8, 8, 8], 0);
    for (i, tile) in GridBox::full([4, 4, 4]).points().enumerate() {
        map.update(&GridBox::new(tile.0.map(|c| 2 * c), tile.0.map(|c| 2 * c + 2)), i);
    }
    map.modify(&GridBox::full([8, 8, 8]), |value| *value = 7);
    map.merge();
    assert_eq!(map.entries().collect::<Vec<_>>(), [(GridBox::full([8, 8, 8]), &7)]);
}

#[test]
fn points_outside_the_extent_are_ignored() {
    let mut map = RegionMap::new([4, 4], 0);
    map.update(&GridBox::new([2, 0], [9, 9]), 1);
    map.apply(&GridBox::new([4, 4], [9, 9]), |_| unreachable!());
    assert_eq!(map.query(&GridBox::full([9, 9])).map(|(range, _)| range.len()).sum::<usize>(), 16);

    let mut nothing = RegionMap::new([0, 4], 0);
    nothing.update(&GridBox::full([4, 4]), 1);
    assert!(nothing.is_empty() && nothing.query(&GridBox::full([4, 4])).next().is_none());
}
