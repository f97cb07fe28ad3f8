//! Regions against a bitmap, in 0 to 3 dimensions.

mod common;

use anabranch_grid::{GridBox, Point, Region};
use common::{Bitmap, SIDE, boxes, space};
use proptest::prelude::*;
use std::collections::HashSet;

/// The region and the bitmap of the same boxes.
fn both<const D: usize>(boxes: &[GridBox<D>]) -> (Region<D>, Bitmap<D>) {
    (Region::from_boxes(boxes.iter().copied()), Bitmap::of(boxes))
}

fn check_operations<const D: usize>(a: &[GridBox<D>], b: &[GridBox<D>]) -> Result<(), TestCaseError> {
    let ((a, bits_a), (b, bits_b)) = (both(a), both(b));
    let same = |region: &Region<D>, bits: Bitmap<D>| {
        check_region(region)?;
        prop_assert_eq!(Bitmap::of(region.boxes()), bits);
        Ok(())
    };
    same(&a, bits_a.clone())?;
    same(&a.union(&b), bits_a.zip(&bits_b, |a, b| a || b))?;
    same(&a.intersection(&b), bits_a.zip(&bits_b, |a, b| a && b))?;
    same(&a.difference(&b), bits_a.zip(&bits_b, |a, b| a && !b))?;
    prop_assert_eq!(a == b, bits_a == bits_b);
    prop_assert_eq!(a.intersects(&b), bits_a.zip(&bits_b, |a, b| a && b).any());
    prop_assert_eq!(a.contains(&b), !bits_b.zip(&bits_a, |b, a| b && !a).any());
    prop_assert!(a.union(&b).contains(&a) && a.contains(&a.difference(&b)));
    Ok(())
}

/// Checks that the boxes are disjoint, non-empty and ordered.
fn check_region<const D: usize>(region: &Region<D>) -> Result<(), TestCaseError> {
    let boxes = region.boxes();
    prop_assert!(boxes.iter().all(|b| !b.is_empty()));
    prop_assert!(boxes.is_sorted_by_key(|b| b.min()));
    for (index, b) in boxes.iter().enumerate() {
        prop_assert!(boxes[index + 1..].iter().all(|other| !b.intersects(other)), "{region}");
    }
    Ok(())
}

fn check_queries<const D: usize>(a: &[GridBox<D>], probe: GridBox<D>) -> Result<(), TestCaseError> {
    let (region, bits) = both(a);
    prop_assert_eq!(region.len(), bits.points().count());
    prop_assert_eq!(region.is_empty(), !bits.any());
    prop_assert_eq!(region.contains_box(&probe), probe.points().all(|p| bits.has(p)));
    for point in space::<D>().points() {
        prop_assert_eq!(region.contains_point(point), bits.has(point));
    }
    let unit = |p: Point<D>| GridBox::new(p, p.0.map(|c| c + 1));
    let bounds = bits.points().map(unit).reduce(|a, b| a.bounding(&b)).unwrap_or(GridBox::EMPTY);
    prop_assert_eq!(region.bounding_box(), bounds);
    Ok(())
}

/// Checks that the same set, built point by point in any order, is the same value.
fn check_uniqueness<const D: usize>(a: &[GridBox<D>], seed: u64) -> Result<(), TestCaseError> {
    let (region, bits) = both(a);
    let mut points: Vec<_> = bits.points().collect();
    points.sort_by_key(|p| common::hash(seed, p));
    let unit = |p: &Point<D>| GridBox::new(*p, p.0.map(|c| c + 1));
    let one_by_one = points.iter().fold(Region::empty(), |region, p| region.union(&unit(p).into()));
    prop_assert_eq!(&one_by_one, &region);
    prop_assert_eq!(&points.iter().map(unit).collect::<Region<D>>(), &region);

    let complement =
        points.iter().fold(Region::from(space::<D>()), |rest, p| rest.difference(&unit(p).into()));
    prop_assert_eq!(&Region::from(space::<D>()).difference(&complement), &region);
    prop_assert_eq!(HashSet::from([one_by_one, region]).len(), 1);
    Ok(())
}

fn check_embedding<const D: usize, const E: usize>(
    a: &[GridBox<D>],
    b: &[GridBox<D>],
) -> Result<(), TestCaseError> {
    let ((a, _), (b, _)) = (both(a), both(b));
    prop_assert_eq!(a.cast::<E>().cast::<D>(), a.clone());
    prop_assert_eq!(a.cast::<E>().union(&b.cast()), a.union(&b).cast());
    prop_assert_eq!(a.cast::<E>().difference(&b.cast()), a.difference(&b).cast());
    Ok(())
}

macro_rules! in_dimensions {
    ($($name:ident: $d:literal),*) => {$(
        mod $name {
            use super::*;
            proptest! {
                #[test]
                fn operations_are_those_of_sets(a in boxes::<$d>(), b in boxes::<$d>()) {
                    check_operations(&a, &b)?;
                }

                #[test]
                fn queries_are_those_of_sets(a in boxes::<$d>(), probe in common::any_box::<$d>()) {
                    check_queries(&a, probe)?;
                }

                #[test]
                fn one_set_has_one_representation(a in boxes::<$d>(), seed: u64) {
                    check_uniqueness(&a, seed)?;
                }

                #[test]
                fn lower_dimensions_embed(a in boxes::<$d>(), b in boxes::<$d>()) {
                    check_embedding::<$d, 3>(&a, &b)?;
                }
            }
        }
    )*};
}

in_dimensions!(zero: 0, one: 1, two: 2, three: 3);

proptest! {
    #[test]
    fn box_operations_are_those_of_sets(a in common::any_box::<3>(), b in common::any_box::<3>()) {
        let points = |b: GridBox<3>| b.points().collect::<HashSet<_>>();
        let (in_a, in_b) = (points(a), points(b));
        prop_assert_eq!(a.len(), in_a.len());
        prop_assert_eq!(points(a.intersection(&b)), &in_a & &in_b);
        prop_assert_eq!(a.intersects(&b), !in_a.is_disjoint(&in_b));
        prop_assert_eq!(a.contains(&b), in_a.is_superset(&in_b));
        prop_assert!(points(a.bounding(&b)).is_superset(&(&in_a | &in_b)));
        prop_assert!(space::<3>().points().all(|p| a.contains_point(p) == in_a.contains(&p)));
        prop_assert!(a.points().is_sorted());
    }
}

#[test]
fn the_space_of_the_tests_has_all_its_points() {
    assert_eq!(space::<3>().len(), SIDE * SIDE * SIDE);
    assert_eq!(space::<0>().len(), 1);
}
