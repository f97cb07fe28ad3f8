//! The shapes that mappers promise: their regions have them, and the numbers of a shape say which points a
//! region contains.

mod common;

use anabranch_grid::*;
use common::{Bitmap, SIDE, any_box, boxes, cases_in, full_box, space};
use proptest::prelude::*;

/// Whether the interval of the line of a point contains the point.
fn is_told<S: RegionShape<D>, const D: usize>(shape: &S, point: [usize; D]) -> bool {
    let (first, size) = shape.on_line(point);
    point.last().unwrap_or(&0).wrapping_sub(first) < size
}

/// Checks the shape of a region: it fits, and its intervals have the points of the region and no others.
fn check_region<S: RegionShape<D>, const D: usize>(region: &Region<D>) -> Result<(), TestCaseError> {
    prop_assert!(S::fits(region.boxes()), "{region} is not {}", S::WORDS);
    let (shape, bits) = (S::new(region.boxes()), Bitmap::of(region.boxes()));
    for point in space::<D>().points() {
        let is_told = is_told(&shape, point.0);
        prop_assert!(bits.has(point) || !is_told, "{region} does not have {point}");
        prop_assert!(!bits.has(point) || is_told || !S::IS_EXACT, "{region} has {point}");
    }
    // Far away, and where the difference to the first point overflows.
    for far in [SIDE, usize::MAX] {
        for axis in 0..D {
            let mut point = region.boxes().first().map_or([0; D], |range| range.min().0);
            point[axis] = far;
            prop_assert!(!is_told(&shape, point), "{region} does not have {point:?}");
        }
    }
    Ok(())
}

fn check_mapper<M: RangeMapper<K, K>, const K: usize>(
    mapper: M,
    chunk: &Chunk<K>,
    buffer: Extent<K>,
) -> Result<(), TestCaseError> {
    // Some mappers leave the buffer.
    let region = mapper.map(chunk, buffer).intersection(&space().into());
    check_region::<M::Shape, K>(&region)
}

fn check_mappers<const K: usize>(
    range: GridBox<K>,
    some: Vec<GridBox<K>>,
    buffer: [usize; K],
    radius: [usize; K],
) -> Result<(), TestCaseError> {
    let (chunk, buffer, near) = (Chunk { range, global: space() }, Extent(buffer), neighborhood(radius));
    check_mapper(one_to_one(), &chunk, buffer)?;
    check_mapper(all(), &chunk, buffer)?;
    check_mapper(even_split(), &chunk, buffer)?;
    check_mapper(permuted(std::array::from_fn(|axis| K - 1 - axis)), &chunk, buffer)?;
    for axis in 0..K {
        check_mapper(slice(axis), &chunk, buffer)?;
    }
    check_mapper(fixed(range), &chunk, buffer)?;
    check_mapper(fixed(Region::from_boxes(some.clone())), &chunk, buffer)?;
    check_mapper(near, &chunk, buffer)?;
    check_mapper(near.any_boxes(), &chunk, buffer)?;
    check_mapper(near.along_axes(), &chunk, buffer)?;
    check_mapper(near.any_boxes().along_axes(), &chunk, buffer)?;
    check_mapper(near.periodic(), &chunk, buffer)?;
    check_mapper(near.along_axes().periodic(), &chunk, buffer)?;
    check_mapper(near.periodic().along_axes(), &chunk, buffer)?;
    check_mapper(|chunk: &Chunk<K>, _: Extent<K>| chunk.range, &chunk, buffer)?;
    let several = |_: &Chunk<K>, _: Extent<K>| Region::from_boxes(some.clone());
    check_mapper(several, &chunk, buffer)
}

/// Checks that a shape fits no region that has other points than its intervals.
fn check_fits<S: RegionShape<D>, const D: usize>(region: &Region<D>) -> Result<(), TestCaseError> {
    match S::fits(region.boxes()) {
        true => check_region::<S, D>(region),
        false => Ok(()),
    }
}

macro_rules! in_dimensions {
    ($($name:ident: $d:literal),*) => {$(
        mod $name {
            use super::*;
            proptest! {
                #![proptest_config(cases_in($d))]

                #[test]
                fn regions_have_the_shapes_that_their_mappers_promise(
                    range in full_box::<$d>(), some in boxes::<$d>(), buffer in any::<[u8; $d]>(), radius in any::<[u8; $d]>(),
                ) {
                    let buffer = buffer.map(|size| usize::from(size) % (SIDE + 1));
                    check_mappers(range, some, buffer, radius.map(|radius| usize::from(radius) % 3))?;
                }

                #[test]
                fn a_shape_fits_only_regions_of_its_intervals(some in boxes::<$d>(), one in any_box::<$d>()) {
                    let (region, one) = (Region::from_boxes(some), Region::from(one));
                    check_fits::<OneBox<$d>, $d>(&region)?;
                    check_fits::<OneBox<$d>, $d>(&one)?;
                    check_fits::<Cross<$d>, $d>(&region)?;
                    check_fits::<AnyBoxes<$d>, $d>(&region)?;
                }
            }
        }
    )*};
}

in_dimensions!(one: 1, two: 2, three: 3, four: 4);

#[test]
fn a_box_of_no_dimensions_has_one_point() {
    let (none, point) = (Region::<0>::empty(), Region::from(GridBox::full([])));
    for (region, has) in [(none, false), (point, true)] {
        assert_eq!(is_told(&OneBox::new(region.boxes()), []), has);
        assert_eq!(is_told(&Cross::new(region.boxes()), []), has);
        assert_eq!(is_told(&AnyBoxes::new(region.boxes()), []), has);
    }
}

#[test]
fn two_boxes_side_by_side_are_neither_one_box_nor_a_cross() {
    let region = Region::from_boxes([GridBox::new([0, 0], [2, 2]), GridBox::new([0, 4], [2, 6])]);
    assert!(!OneBox::fits(region.boxes()));
    assert!(!Cross::fits(region.boxes()));
    assert!(AnyBoxes::fits(region.boxes()));
}
