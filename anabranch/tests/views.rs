//! A view gives access to the points of its region and to no others, whatever the region is.

mod common;

use anabranch::{
    grid::{Chunk, RangeMapper},
    prelude::*,
};
use common::runtime;
use proptest::prelude::*;
use std::marker::PhantomData;
use testing::deadline;

const SIDE: usize = 5;

/// Regions of up to four boxes in a buffer; some are empty.
fn regions<const D: usize>() -> impl Strategy<Value = Region<D>> {
    let side = (0..SIDE, 0..=3_usize).prop_map(|(low, len)| (low, (low + len).min(SIDE)));
    let range = proptest::collection::vec(side, D).prop_map(|sides| {
        GridBox::<D>::new(std::array::from_fn(|d| sides[d].0), std::array::from_fn(|d| sides[d].1))
    });
    proptest::collection::vec(range, 0..4).prop_map(Region::from_boxes)
}

/// Gives this region, and promises the shape `S`.
#[derive(Clone)]
struct Promise<S, const D: usize>(Region<D>, PhantomData<S>);

impl<S: RegionShape<D>, const D: usize> RangeMapper<0, D> for Promise<S, D> {
    type Shape = S;

    fn map(&self, _: &Chunk<0>, _: Extent<D>) -> Region<D> {
        self.0.clone()
    }

    fn describe(&self) -> String {
        "the mapper".into()
    }
}

fn check<const D: usize>(region: &Region<D>) -> Result<(), TestCaseError> {
    check_shape::<OneBox<D>, D>(region)?;
    check_shape::<Cross<D>, D>(region)?;
    check_shape::<AnyBoxes<D>, D>(region)
}

/// Asks an update for each point in and beside the buffer, in the three ways, in a task for each. A task
/// whose region has another shape than promised is refused.
fn check_shape<S: RegionShape<D>, const D: usize>(region: &Region<D>) -> Result<(), TestCaseError> {
    let rt = runtime(1);
    let mapper = Promise::<S, D>(region.clone(), PhantomData);
    let number = |point: [usize; D]| {
        point.iter().fold(1, |number: u64, i| number.wrapping_mul(10).wrapping_add(*i as u64))
    };
    let u = rt.buffer::<u64, D>([SIDE; D]).named("u");
    let start = || rt.task("start").once().write(&u, all()).host(move |(u,)| u.fill_with(number)).unwrap();
    start();
    if !S::fits(region.boxes()) {
        let error = rt.task("refused").once().read(&u, mapper).host(|(_,)| ()).unwrap_err().to_string();
        let promise = format!(
            "the mapper promises that each region of buffer \"u\" is {}, but gives {region}",
            S::WORDS
        );
        prop_assert!(error.contains(&promise), "{error}");
        return Ok(());
    }
    // Coordinates that wrap around when the first one of a box is subtracted.
    let beside = [[usize::MAX; D], [1 << 63; D], [usize::MAX - 1; D]];
    let points = GridBox::full([SIDE + 1; D]).points().map(|point| point.0);
    for point in points.chain(beside.into_iter().filter(|_| D > 0)) {
        for way in 0..3 {
            let task = rt.task("access").once().update(&u, mapper.clone());
            task.host(move |(u,)| match way {
                0 => assert_eq!(u[point], number(point)),
                1 => u[point] += 0,
                _ => u.set(point, number(point)),
            })
            .unwrap();
            let result = rt.wait();
            if region.boxes().iter().any(|range| range.contains_point(point)) {
                prop_assert!(result.is_ok(), "{result:?}");
                continue;
            }
            let message = result.expect_err("the point is outside").to_string();
            let expected = format!("accessed {} of buffer \"u\", but declared {region}", Point(point));
            prop_assert!(message.contains(&expected), "{message}");
            start(); // the task has poisoned the buffer
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn accesses_by_point_are_those_of_the_region((line, plane, space) in (regions::<1>(), regions::<2>(), regions::<3>())) {
        let _deadline = deadline();
        check(&line)?;
        check(&plane)?;
        check(&space)?;
    }
}

#[test]
fn a_region_without_dimensions_is_a_point_or_nothing() {
    let _deadline = deadline();
    check::<0>(&Region::from(GridBox::full([]))).unwrap();
    check::<0>(&Region::empty()).unwrap();
}
