//! The promises of splits and range mappers, on random index spaces.

mod common;

use anabranch_grid::*;
use common::{Bitmap, SIDE, cases_in, full_box};
use proptest::prelude::*;

/// Checks that pieces are non-empty, disjoint, in order, and cover the range.
fn check_partition<const D: usize>(range: GridBox<D>, pieces: &[GridBox<D>]) -> Result<(), TestCaseError> {
    prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && range.contains(piece)));
    prop_assert!(pieces.is_sorted_by_key(|piece| piece.min()));
    prop_assert_eq!(pieces.iter().map(GridBox::len).sum::<usize>(), range.len());
    prop_assert_eq!(Region::from_boxes(pieces.iter().copied()), range.into());
    Ok(())
}

/// Checks that sizes along `axis` are multiples of the granularity, except at the end, and differ by at most
/// one unit.
fn check_sizes<const D: usize>(
    range: GridBox<D>,
    pieces: &[GridBox<D>],
    axis: usize,
    granularity: usize,
) -> Result<(), TestCaseError> {
    let size = |piece: &GridBox<D>| piece.extent()[axis];
    let at_end = |piece: &GridBox<D>| piece.max()[axis] == range.max()[axis];
    prop_assert!(pieces.iter().all(|piece| at_end(piece) || size(piece) % granularity == 0));
    let units = pieces.iter().map(|piece| size(piece).div_ceil(granularity));
    prop_assert!(units.clone().max().unwrap() - units.min().unwrap() <= 1);
    Ok(())
}

proptest! {
    #[test]
    fn splits_in_one_dimension_partition(
        (start, len) in (0..50usize, 1..60usize), count in 1..12usize, granularity in 1..9usize,
    ) {
        let range = GridBox::new([start, 2], [start + len, 5]);
        let pieces = split_1d(&range, count, granularity);
        check_partition(range, &pieces)?;
        check_sizes(range, &pieces, 0, granularity)?;
        prop_assert_eq!(pieces.len(), count.min(len.div_ceil(granularity)));
    }

    #[test]
    fn splits_in_two_dimensions_partition(
        start in 0..9usize, size in [1..40usize, 1..40], count in 1..20usize, granularity in [1..6usize, 1..6],
    ) {
        let range = GridBox::new([start, 3, 1], [start + size[0], 3 + size[1], 3]);
        let tiles = split_2d(&range, count, granularity);
        check_partition(range, &tiles)?;
        check_sizes(range, &tiles, 0, granularity[0])?;
        check_sizes(range, &tiles, 1, granularity[1])?;
        prop_assert!(tiles.len() <= count);
    }
}

fn extent<const D: usize>() -> impl Strategy<Value = Extent<D>> {
    proptest::collection::vec(0..=SIDE, D).prop_map(|sizes| Extent(std::array::from_fn(|axis| sizes[axis])))
}

fn radius<const D: usize>() -> impl Strategy<Value = [usize; D]> {
    proptest::collection::vec(0..=SIDE + 2, D).prop_map(|radii| std::array::from_fn(|axis| radii[axis]))
}

fn part<const K: usize>(whole: &Chunk<K>, range: GridBox<K>) -> Chunk<K> {
    Chunk { range: whole.range.intersection(&range), global: whole.global }
}

/// Checks that a part of a chunk maps to a part of its region.
fn check_monotonic<const K: usize, const B: usize>(
    mapper: &dyn RangeMapper<K, B>,
    whole: &Chunk<K>,
    range: GridBox<K>,
    buffer: Extent<B>,
) -> Result<(), TestCaseError> {
    let (all, some) = (mapper.map(whole, buffer), mapper.map(&part(whole, range), buffer));
    prop_assert!(all.contains(&some), "{mapper:?} on {buffer}: {all} does not contain {some}");
    Ok(())
}

fn check_inside<const K: usize, const B: usize>(
    mapper: &dyn RangeMapper<K, B>,
    whole: &Chunk<K>,
    buffer: Extent<B>,
) -> Result<(), TestCaseError> {
    let region = mapper.map(whole, buffer);
    prop_assert!(Region::from(GridBox::full(buffer)).contains(&region), "{mapper:?} on {buffer}: {region}");
    Ok(())
}

fn neighborhoods<const K: usize>(radius: [usize; K]) -> [Box<dyn RangeMapper<K, K>>; 4] {
    let near = neighborhood(radius);
    [
        Box::new(near),
        Box::new(near.along_axes()),
        Box::new(near.periodic()),
        Box::new(near.along_axes().periodic()),
    ]
}

fn check_mappers<const K: usize>(
    whole: GridBox<K>,
    range: GridBox<K>,
    buffer: Extent<K>,
    radius: [usize; K],
) -> Result<(), TestCaseError> {
    let whole = Chunk::whole(whole);
    for mapper in neighborhoods(radius) {
        check_monotonic(&*mapper, &whole, range, buffer)?;
        check_inside(&*mapper, &whole, buffer)?;
    }
    let reversed = permuted(std::array::from_fn(|axis| K - 1 - axis));
    let mappers: [&dyn RangeMapper<K, K>; 5] =
        [&one_to_one(), &all(), &even_split(), &reversed, &fixed(GridBox::full(buffer))];
    for mapper in mappers {
        check_monotonic(mapper, &whole, range, buffer)?;
    }
    for dim in 0..K {
        check_monotonic(&slice(dim), &whole, range, buffer)?;
    }
    check_inside(&all(), &whole, buffer)?;
    check_inside(&even_split(), &whole, buffer)
}

/// The points within `radius` of `from` that a stencil reads on an axis of `size`, as if on the infinite
/// line.
fn stencil(from: usize, radius: usize, size: usize, periodic: bool) -> Vec<usize> {
    let (from, radius, size) = (from as isize, radius as isize, size as isize);
    let line = from - radius..=from + radius;
    if periodic {
        line.map(|at| at.rem_euclid(size) as usize).collect()
    } else {
        line.filter(|at| (0..size).contains(at)).map(|at| at as usize).collect()
    }
}

/// The union of the stencils of all points, one by one.
fn neighborhood_by_points<const K: usize>(
    range: GridBox<K>,
    buffer: Extent<K>,
    radius: [usize; K],
    along_axes: bool,
    periodic: bool,
) -> Bitmap<K> {
    let shapes: Vec<[usize; K]> = match along_axes {
        true => (0..K).map(|axis| std::array::from_fn(|d| if d == axis { radius[d] } else { 0 })).collect(),
        false => vec![radius],
    };
    let mut units = Vec::new();
    for (point, shape) in range.points().flat_map(|p| shapes.iter().map(move |shape| (p, shape))) {
        let mut reached = vec![[0; K]];
        for axis in 0..K {
            let on_axis = stencil(point[axis], shape[axis], buffer[axis], periodic);
            reached = reached
                .into_iter()
                .flat_map(|at| {
                    on_axis.iter().map(move |&c| std::array::from_fn(|d| if d == axis { c } else { at[d] }))
                })
                .collect();
        }
        units.extend(reached.into_iter().map(|at: [usize; K]| GridBox::new(at, at.map(|c| c + 1))));
    }
    Bitmap::of(&units)
}

fn check_neighborhood<const K: usize>(
    range: GridBox<K>,
    buffer: Extent<K>,
    radius: [usize; K],
) -> Result<(), TestCaseError> {
    if buffer.is_empty() {
        return Ok(());
    }
    let chunk = Chunk { range, global: common::space() };
    for (index, mapper) in neighborhoods(radius).into_iter().enumerate() {
        let (along_axes, periodic) = (index % 2 == 1, index >= 2);
        let expected = neighborhood_by_points(range, buffer, radius, along_axes, periodic);
        let region = mapper.map(&chunk, buffer);
        prop_assert_eq!(Bitmap::of(region.boxes()), expected, "{:?} on {}: {}", mapper, buffer, region);
    }
    Ok(())
}

macro_rules! in_dimensions {
    ($($name:ident: $d:literal),*) => {$(
        mod $name {
            use super::*;
            proptest! {
                #![proptest_config(cases_in($d))]

                #[test]
                fn mappers_are_monotonic(
                    whole in full_box::<$d>(), range in full_box::<$d>(), buffer in extent::<$d>(), radius in radius::<$d>(),
                ) {
                    check_mappers(whole, range, buffer, radius)?;
                }

                #[test]
                fn neighborhoods_are_the_stencils_of_their_points(
                    range in full_box::<$d>(), buffer in extent::<$d>(), radius in radius::<$d>(),
                ) {
                    check_neighborhood(range, buffer, radius)?;
                }
            }
        }
    )*};
}

in_dimensions!(one: 1, two: 2, three: 3);

proptest! {
    #[test]
    fn even_splits_partition_the_buffer(
        (start, len) in (0..20usize, 1..40usize), count in 1..9usize, rows in 0..50usize,
    ) {
        let global = GridBox::new(start, start + len);
        let buffer = Extent([rows, 3]);
        let pieces: Vec<Region<2>> = split_1d(&global, count, 1)
            .into_iter()
            .map(|range| even_split().map(&Chunk { range, global }, buffer))
            .collect();
        prop_assert_eq!(pieces.iter().map(Region::len).sum::<usize>(), buffer.len());
        prop_assert_eq!(pieces.into_iter().collect::<Region<2>>(), GridBox::full(buffer).into());
    }
}

#[test]
fn a_scalar_belongs_to_exactly_one_piece_of_an_even_split() {
    let global = GridBox::full(10);
    let owners = split_1d(&global, 4, 1)
        .into_iter()
        .filter(|&range| !even_split().map(&Chunk { range, global }, Extent([])).is_empty());
    assert_eq!(owners.count(), 1);
}

#[test]
fn chunks_beyond_the_buffer_are_visible_or_clamped_as_documented() {
    let chunk = Chunk::whole(GridBox::full([8, 8]));
    let buffer = Extent([4, 4]);
    assert_eq!(one_to_one().map(&chunk, buffer), GridBox::full([8, 8]).into());
    assert_eq!(slice(1).map(&chunk, buffer), GridBox::full([8, 4]).into());
    assert_eq!(neighborhood([1, 1]).map(&chunk, buffer), GridBox::full([4, 4]).into());
}

#[test]
fn mappers_change_dimensions() {
    let chunk = Chunk { range: GridBox::new([2, 0], [4, 9]), global: GridBox::full([8, 9]) };
    let scalar: Region<0> = all().map(&chunk, Extent([]));
    assert_eq!(scalar, GridBox::full([]).into());
    assert_eq!(even_split().map(&chunk, Extent([16])), GridBox::new(4, 8).into());
    let rows = mapper(|chunk, _| GridBox::new(chunk.range.min()[0], chunk.range.max()[0]));
    assert_eq!(rows.map(&chunk, Extent([8])), GridBox::new(2, 4).into());
    let point: Chunk<0> = Chunk::whole(GridBox::full([]));
    assert_eq!(even_split().map(&point, Extent([5, 5])), GridBox::full([5, 5]).into());
    assert_eq!(one_to_one().map(&point, Extent([])), GridBox::full([]).into());
}
