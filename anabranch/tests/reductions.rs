//! A reduction has the same bits on any number of threads, with every operator and shape. Wrong use is an
//! error.

mod common;

use anabranch::{Cause, Error, Operator, grid::split_1d, prelude::*};
use common::{runtime, runtimes};
use std::fmt::Debug;
use testing::deadline;

/// The documented tree: at most `chunks` chunks along the first dimension (64 by default, if the index space
/// is small). Each is folded from its first point to its last; then neighbours are combined pairwise.
fn tree<T: Copy>(values: &[T], chunks: usize, operator: &impl Operator<T>) -> T {
    let chunk = |range: GridBox<1>| {
        let values = &values[range.min()[0]..range.max()[0]];
        values.iter().fold(operator.identity(), |a, b| operator.combine(a, *b))
    };
    let mut level: Vec<T> =
        split_1d(&GridBox::full(values.len()), chunks, 1).into_iter().map(chunk).collect();
    while level.len() > 1 {
        let pair =
            |pair: &[T]| pair.iter().copied().reduce(|a, b| operator.combine(a, b)).expect("never empty");
        level = level.chunks(2).map(pair).collect();
    }
    level.pop().unwrap_or_else(|| operator.identity())
}

fn reduced<T, O>(rt: &Runtime, values: &[T], operator: O) -> T
where
    T: anabranch::Element,
    O: Operator<T>,
{
    let (u, total) = (rt.buffer_from(values).unwrap(), rt.buffer::<T, 0>([]));
    rt.task("reduce")
        .over([values.len()])
        .read(&u, one_to_one())
        .reduce(&total, operator)
        .kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))
        .unwrap();
    rt.fence(&total).unwrap().wait().unwrap()[[]]
}

#[test]
fn floating_point_sums_have_the_bits_of_one_tree() {
    let _deadline = deadline();
    let values: Vec<f64> = (0..1000).map(|i| f64::from(i).sin() * 1e3_f64.powi(i % 7 - 3)).collect();
    for len in [0, 1, 2, 63, 64, 65, 129, 1000] {
        let expected = tree(&values[..len], 64, &sum());
        for rt in runtimes() {
            assert_eq!(
                reduced(&rt, &values[..len], sum()).to_bits(),
                expected.to_bits(),
                "{len} values, {rt:?}"
            );
        }
    }
}

#[test]
fn large_index_spaces_have_leaves_for_more_than_64_threads() {
    let _deadline = deadline();
    // Its result shows the shape of the tree.
    let mix = || {
        operator(0, |a: u64, b| match (a, b) {
            (0, x) | (x, 0) => x,
            _ => (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
    };
    for (space, elements, leaves) in [
        ([1 << 21, 1], 1, 64),
        ([1 << 22, 1], 1, 128),
        ([1 << 22, 1], 100, 81),
        ([1 << 22, 1], 1 << 12, 64),
        ([3000, 1 << 12], 1, 375),
        ([100, 1 << 16], 1, 100),
    ] {
        let chunks = split_1d(&GridBox::full(space), leaves, 1);
        let values: Vec<u64> = chunks.iter().map(|chunk| chunk.max()[0] as u64).collect();
        let expected = tree(&values, leaves, &mix());
        for rt in runtimes() {
            let (total, other) = (rt.buffer::<u64, 1>([elements]), rt.buffer::<u64, 0>([]));
            rt.task("reduce")
                .over(space)
                .reduce(&other, sum())
                .reduce(&total, mix())
                .kernel(|tile, (other, total)| {
                    other.combine([], 1);
                    total.combine([0], tile.range().max()[0] as u64);
                })
                .unwrap();
            let (other, total) = rt.fence((&other, &total)).unwrap().wait().unwrap();
            assert_eq!((other[[]], total[[0]]), (leaves as u64, expected), "{space:?}, {rt:?}");
        }
    }
}

#[test]
fn operators_need_not_commute() {
    let _deadline = deadline();
    // Keeps the first and the last value: associative, but not commutative.
    let first_and_last = || {
        operator([u32::MAX; 2], |a: [u32; 2], b| match (a[0], b[0]) {
            (u32::MAX, _) => b,
            (_, u32::MAX) => a,
            _ => [a[0], b[1]],
        })
    };
    let values: Vec<[u32; 2]> = (0..777).map(|i| [i, i]).collect();
    for rt in runtimes() {
        assert_eq!(reduced(&rt, &values, first_and_last()), [0, 776]);
    }
}

#[test]
fn each_built_in_operator_combines_and_has_its_identity() {
    let _deadline = deadline();
    fn check<T: anabranch::Element + PartialEq + Debug, O: Operator<T> + Copy>(
        rt: &Runtime,
        operator: O,
        cases: &[(&[T], T)],
    ) {
        for (values, expected) in cases {
            assert_eq!(reduced(rt, values, operator), *expected, "{values:?}");
        }
    }
    for rt in runtimes() {
        check(&rt, and(), &[(&[true, true], true), (&[true, false, true], false), (&[], true)]);
        check(&rt, or(), &[(&[false, false], false), (&[false, true], true), (&[], false)]);
        check(&rt, and(), &[(&[0b110_u8, 0b011], 0b010), (&[], 0xff)]);
        check(&rt, or(), &[(&[0b100_i64, 0b001], 0b101), (&[], 0)]);
        check(&rt, sum(), &[(&[200_u8, 100], 44), (&[], 0)]);
        check(&rt, product(), &[(&[3_i32, -4], -12), (&[], 1)]);
        check(&rt, min(), &[(&[3_i8, -4], -4), (&[], i8::MAX)]);
        check(&rt, max(), &[(&[3_usize, 4], 4), (&[], 0)]);
        let nan = f32::NAN;
        check(&rt, min(), &[(&[nan, 2.0, nan, -1.0], -1.0), (&[], f32::INFINITY), (&[2.0, nan], 2.0)]);
        check(&rt, max(), &[(&[nan, 2.0, nan, -1.0], 2.0), (&[], f32::NEG_INFINITY), (&[nan, -2.0], -2.0)]);
        check(&rt, sum(), &[(&[0.5_f64, 0.25], 0.75)]);
        assert_eq!(reduced::<f64, _>(&rt, &[], sum()).to_bits(), (-0.0_f64).to_bits());
        assert!(reduced(&rt, &[1.0, f64::NAN], sum()).is_nan());
    }
}

#[test]
fn each_element_of_a_buffer_of_any_rank_has_its_own_tree() {
    let _deadline = deadline();
    const N: [usize; 3] = [9, 4, 5];
    let cube = ndarray::Array3::from_shape_fn(N, |(z, y, x)| (100 * z + 10 * y + x) as u64);
    for rt in runtimes() {
        let u = rt.buffer_from(&cube).unwrap();
        let (planes, columns) =
            (rt.buffer::<u64, 1>([9]), rt.buffer_from(&ndarray::Array2::from_elem((4, 5), 1_u64)).unwrap());
        let copy = rt.buffer::<u64, 3>(N);
        rt.task("sums")
            .over(N)
            .tiles(1, 2)
            .read(&u, one_to_one())
            .reduce(&planes, sum())
            .reduce_into(&columns, max())
            .write(&copy, one_to_one())
            .kernel(|tile, (u, planes, columns, copy)| {
                assert_eq!((planes.extent(), columns.extent()), (Extent([9]), Extent([4, 5])));
                for [z, y, x] in tile.points() {
                    planes.combine([z], u[[z, y, x]]);
                    columns.combine([y, x], u[[z, y, x]]);
                    assert!(planes[[z]] >= u[[z, y, x]]);
                    copy.set([z, y, x], u[[z, y, x]]);
                }
            })
            .unwrap();
        let (planes, columns, copy) = rt.fence((&planes, &columns, &copy)).unwrap().wait().unwrap();
        assert_eq!(planes.into_array(), cube.sum_axis(ndarray::Axis(2)).sum_axis(ndarray::Axis(1)));
        assert_eq!(columns.into_array(), cube.fold_axis(ndarray::Axis(0), 1, |a, b| *a.max(b)));
        assert_eq!(copy.into_array(), cube);
    }
}

#[test]
fn a_zero_dimensional_index_space_combines_once() {
    let _deadline = deadline();
    for rt in runtimes() {
        let total = rt.buffer_from(&ndarray::arr0(40)).unwrap();
        rt.task("one")
            .over([])
            .reduce_into(&total, sum())
            .kernel(|_, (total,)| total.combine([], 2))
            .unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 42);
    }
}

#[test]
fn an_empty_index_space_gives_the_identity_or_the_previous_contents() {
    let _deadline = deadline();
    for rt in runtimes() {
        let (a, b) = (rt.buffer_from(&[7, 7]).unwrap(), rt.buffer_from(&[7, 7]).unwrap());
        rt.task("none")
            .over([0])
            .reduce(&a, product())
            .reduce_into(&b, product())
            .kernel(|_, _| unreachable!("there is no chunk"))
            .unwrap();
        let (a, b) = rt.fence((&a, &b)).unwrap().wait().unwrap();
        assert_eq!((a.as_slice(), b.as_slice()), (&[1, 1][..], &[7, 7][..]));
        let empty = rt.buffer::<i32, 2>([0, 3]);
        rt.task("into nothing")
            .over([5])
            .reduce(&empty, sum())
            .kernel(|_, (e,)| assert!(e.as_mut_slice().is_empty()))
            .unwrap();
        assert!(rt.fence(&empty).unwrap().wait().unwrap().as_slice().is_empty());
    }
}

#[test]
fn the_program_may_choose_the_shape_of_the_tree() {
    let _deadline = deadline();
    let values: Vec<f32> = (0..100).map(|i| 0.1 + i as f32 * 1e-3).collect();
    for chunks in [1, 3, 100, 1000] {
        let expected = tree(&values, chunks, &sum());
        for rt in runtimes() {
            let (u, total) = (rt.buffer_from(&values).unwrap(), rt.buffer::<f32, 0>([]));
            rt.task("sum")
                .over([100])
                .chunks(chunks)
                .read(&u, one_to_one())
                .reduce(&total, sum())
                .kernel(|tile, (u, total)| tile.points().for_each(|p| total.combine([], u[p])))
                .unwrap();
            assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]].to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn a_point_outside_the_buffer_fails_the_task() {
    let _deadline = deadline();
    for rt in runtimes() {
        let total = rt.buffer::<u32, 1>([3]).named("total");
        let task = rt.task("too far").over([8]).reduce(&total, sum()).kernel(|tile, (total,)| {
            tile.points().for_each(|[i]| total.combine([if i == 5 { 3 } else { 0 }], 1));
        });
        let error = task.unwrap().wait().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("it accessed [3] of buffer \"total\" in chunk [5..6], but declared [0..3]"),
            "{error}"
        );
        let Error::Failed(failures) = error else { panic!() };
        assert!(matches!(failures.iter().next().unwrap().cause, Cause::OutsideDeclared { .. }));
        assert!(rt.wait().is_err());
        assert!(rt.fence(&total).unwrap().wait().is_err());
    }
}

#[test]
fn an_operator_that_panics_fails_the_task() {
    let _deadline = deadline();
    for rt in runtimes() {
        let total = rt.buffer::<u32, 0>([]);
        // The operator panics in a chunk, when partial results are combined, and when the previous contents
        // are included.
        for limit in [3, 30, 1000] {
            let picky = operator(0, move |a: u32, b: u32| {
                if a + b > limit && limit < 1000 || a == 5000 {
                    std::panic::resume_unwind(Box::new("too much"));
                }
                a + b
            });
            let begin = if limit == 1000 { 5000 } else { 0 };
            rt.task("set").once().write(&total, all()).host(move |(total,)| total.fill(begin)).unwrap();
            let task = rt.task("count").over([64]).chunks(16).reduce_into(&total, picky);
            let task =
                task.kernel(|tile, (total,)| tile.points().for_each(|_| total.combine([], 1))).unwrap();
            let error = task.wait().unwrap_err().to_string();
            assert!(error.ends_with("too much"), "{error}");
            assert!(rt.fence(&total).unwrap().wait().is_err());
            assert!(rt.wait().is_err());
        }
    }
}

#[test]
fn a_buffer_cannot_be_read_and_reduced_in_one_task() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer_from(&[1, 2, 3]).unwrap().named("u");
    let error = rt
        .task("both")
        .over([3])
        .read(&u, one_to_one())
        .reduce(&u, sum())
        .kernel(|_, _| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("declares two accesses to [0..3] of buffer \"u\""), "{error}");
    let never = rt.buffer::<i32, 1>([3]).named("never");
    let error = rt.task("on").over([3]).reduce_into(&never, sum()).kernel(|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("buffer \"never\", which was never written"), "{error}");
    rt.wait().unwrap();
}

/// One node and many nodes combine in the same tree, whatever the number of leaves.
#[test]
fn the_runtime_and_command_graphs_use_the_same_tree() {
    let _deadline = deadline();
    let mix = |a: u64, b: u64| (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let rt = anabranch::Runtime::builder().threads(2).build().unwrap();
    for leaves in 1..40_u32 {
        let total = rt.buffer::<u64, 0>([]);
        rt.task("mix")
            .over([leaves as usize])
            .chunks(leaves as usize)
            .reduce(&total, operator(0, mix))
            .kernel(|tile, (total,)| tile.points().for_each(|[i]| total.combine([], i as u64)))
            .unwrap();
        let parts = (0..leaves).map(|i| (i..i + 1, mix(0, u64::from(i))));
        let expected = anabranch::graph::command::combine(0..leaves, parts, mix);
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], expected, "{leaves} leaves");
    }
}

#[test]
fn arrays_are_combined_element_by_element() {
    let _deadline = deadline();
    let values: Vec<[f64; 3]> =
        (0..500).map(|i| [f64::from(i), -f64::from(i), f64::from(i * 37 % 101)]).collect();
    for rt in runtimes() {
        let u = rt.buffer_from(&values).unwrap();
        let [total, least, most] = [(); 3].map(|()| rt.buffer::<[f64; 3], 0>([]));
        let pairs = rt.buffer::<[[u32; 2]; 2], 0>([]);
        let bits = rt.buffer::<[u8; 2], 0>([]);
        rt.task("reduce")
            .over([500])
            .read(&u, one_to_one())
            .reduce(&total, sum())
            .reduce(&least, min())
            .reduce(&most, max())
            .reduce(&pairs, max())
            .reduce(&bits, or())
            .kernel(|tile, (u, total, least, most, pairs, bits)| {
                for [i] in tile.points() {
                    total.combine([], u[[i]]);
                    least.combine([], u[[i]]);
                    most.combine([], u[[i]]);
                    pairs.combine([], [[i as u32, 1], [i as u32 % 7, 0]]);
                    bits.combine([], [1, i as u8 & 6]);
                }
            })
            .unwrap();
        let (total, least, most, pairs, bits) =
            rt.fence((&total, &least, &most, &pairs, &bits)).unwrap().wait().unwrap();
        assert_eq!(total[[]], [124_750.0, -124_750.0, values.iter().map(|v| v[2]).sum()]);
        assert_eq!((least[[]], most[[]]), ([0.0, -499.0, 0.0], [499.0, 0.0, 100.0]));
        assert_eq!((pairs[[]], bits[[]]), ([[499, 1], [6, 0]], [1, 6]));
    }
}
