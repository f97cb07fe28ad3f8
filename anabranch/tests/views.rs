//! A view gives access to the points of its region and to no others, whatever the region is.

mod common;

use anabranch::{
    grid::{Chunk, RangeMapper},
    prelude::*,
};
use common::runtime;
use proptest::prelude::*;
use std::{hint::black_box, marker::PhantomData};
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

/// The ways in which a kernel goes over the points of its tile. The compiler may check a whole row at once.
#[derive(Clone, Copy, Debug)]
enum Way {
    ForEach,
    Sum,
    RowsAndColumns,
    For,
}

impl Way {
    const ALL: [Self; 4] = [Self::ForEach, Self::Sum, Self::RowsAndColumns, Self::For];

    fn go(self, tile: &Tile<2>, mut at: impl FnMut([usize; 2]) -> f64) {
        match self {
            Self::ForEach => tile.points().for_each(|point| _ = at(point)),
            Self::Sum => _ = black_box(tile.points().map(&mut at).sum::<f64>()),
            Self::RowsAndColumns => {
                for y in tile.rows() {
                    for x in tile.cols() {
                        at([y, x]);
                    }
                }
            }
            Self::For => {
                for point in tile.points() {
                    at(point);
                }
            }
        }
    }
}

/// However a loop goes over its points, and wherever its accesses are checked: it ends at the first access
/// outside the region, and the error names the point.
#[test]
fn a_loop_that_leaves_its_region_fails_at_the_first_point_outside() {
    let _deadline = deadline();
    const ROWS: usize = 12;
    const COLS: usize = 40;
    for (threads, way) in [1, 2, 3].into_iter().flat_map(|threads| Way::ALL.map(|way| (threads, way))) {
        let rt = runtime(threads);
        let (u, v) = (rt.buffer::<f64, 2>([ROWS, COLS]).named("u"), rt.buffer([ROWS, COLS]).named("v"));
        let over = |name: &'static str| {
            let fill = rt.task("fill").over([ROWS, COLS]).write(&u, one_to_one());
            fill.kernel(|tile, (u,)| tile.points().for_each(|point| u.set(point, 1.0))).unwrap();
            rt.task(name).over([ROWS, COLS]).chunks(4)
        };
        let fails = |accessed: &str, task: Result<TaskHandle, Error>| {
            let error = task.unwrap().wait().unwrap_err().to_string();
            let expected = format!("it accessed {accessed} in chunk [0..3, 0..40], but declared [0..");
            assert!(error.contains(&expected), "{way:?} on {threads} threads: {error}");
        };
        // The row below each point: the first chunk has rows 0 to 2.
        let task =
            over("below").read(&u, one_to_one()).write(&v, one_to_one()).kernel(move |tile, (u, v)| {
                way.go(tile, |[y, x]| {
                    v.set([y, x], u[[y + 1, x]]);
                    0.0
                });
            });
        fails("[3, 0] of buffer \"u\"", task);
        // A region with the shape of a cross: the point to the right of the last column.
        let cross = over("right").read(&u, neighborhood([1, 1])).write(&v, one_to_one());
        let task = cross.kernel(move |tile, (u, v)| {
            way.go(tile, |[y, x]| {
                v.set([y, x], u[[y, x + usize::from(y == 1)]]);
                0.0
            });
        });
        fails("[1, 40] of buffer \"u\"", task);
        let task = over("write").write(&v, one_to_one()).kernel(move |tile, (v,)| {
            way.go(tile, |[y, x]| {
                v.set([y, x + usize::from(y == 1)], 2.0);
                0.0
            });
        });
        fails("[1, 40] of buffer \"v\"", task);
        let task = over("update").update(&u, one_to_one()).kernel(move |tile, (u,)| {
            way.go(tile, |[y, x]| {
                u[[y, x]] += 1.0;
                u[[y + usize::from(x == 7), x]]
            });
        });
        fails("[3, 7] of buffer \"u\"", task);
        let _ = rt.wait();
    }
}
