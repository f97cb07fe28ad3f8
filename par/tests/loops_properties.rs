//! Loops give what sequential iterators give, whatever the threads, schedules and chunks.

mod common;

use anabranch_par::{IntoParallel, LoopError, prelude::*};
use common::*;
use proptest::{collection::vec, prelude::*};
use std::{convert::Infallible, fmt::Debug, ops::Range};

fn any_way() -> impl Strategy<Value = How> {
    let chunks = prop_oneof![
        Just(Chunks::Auto),
        (1..40_usize).prop_map(Chunks::Size),
        (1..40_usize).prop_map(Chunks::Count),
        (1..40_usize).prop_map(Chunks::AtLeast),
        Just(Chunks::OneByOne),
    ];
    let threads = prop::sample::select(vec![1, 2, 3, 4, 8]);
    (threads, prop::sample::select(SCHEDULES.to_vec()), chunks, 1..9_usize)
        .prop_map(|(threads, schedule, chunks, limit)| How { threads, schedule, chunks, limit })
}

/// 2 × 2 matrices modulo a prime: multiplication is associative and does not commute.
type Matrix = [u64; 4];

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    const P: u64 = 1_000_003;
    let cell = |row: usize, column: usize| (a[2 * row] * b[column] + a[2 * row + 1] * b[column + 2]) % P;
    [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
}

fn matrices() -> impl Strategy<Value = Vec<Matrix>> {
    vec(prop::array::uniform4(0..1_000_003_u64), 0..200)
}

/// Collects the items of a range or box.
fn items<I>(how: How, range: I) -> Vec<<I::Source as anabranch_par::Source>::Item>
where
    I: IntoParallel,
    <I::Source as anabranch_par::Source>::Item: Send + Debug,
{
    how.run(range.par()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn map_and_collect(how in any_way(), values in vec(any::<u32>(), 0..300)) {
        let f = |x: &u32| { now_and_then(*x as usize); (x.wrapping_mul(7)).to_string() };
        let expected: Vec<_> = values.iter().map(f).collect();
        prop_assert_eq!(&how.run(values.par()).map(f).collect(), &expected);

        let mut appended = vec!["before".to_string()];
        how.run(values.par()).map(f).collect_into(&mut appended);
        prop_assert_eq!(&appended[..1], ["before"]);
        prop_assert_eq!(&appended[1..], &expected);

        let mut written = vec![String::from("old"); values.len()];
        how.run(values.par()).map(f).write_to(&mut written);
        prop_assert_eq!(&written, &expected);

        let mut in_place = values.clone();
        how.run(in_place.par_mut()).for_each(|x| *x = x.wrapping_mul(7));
        prop_assert!(in_place.iter().map(u32::to_string).eq(expected));
    }

    #[test]
    fn try_collect_is_that_of_iterators(how in any_way(), values in vec(0..100_u32, 0..100), bad in 0..400_u32) {
        let f = |x: &u32| { now_and_then(*x as usize); if *x == bad { Err(*x) } else { Ok(x + 1) } };
        let expected: Result<Vec<_>, _> = values.iter().map(f).collect();
        match (how.run(values.par()).map(f).try_collect(), expected) {
            (Ok(results), Ok(expected)) => prop_assert_eq!(results, expected),
            (Err(LoopError::Item { index, error }), Err(expected)) => {
                prop_assert_eq!(error, expected);
                prop_assert_eq!(Some(index), values.iter().position(|x| *x == bad));
            }
            (results, expected) => prop_assert!(false, "{results:?} is not {expected:?}"),
        }
    }

    #[test]
    fn zip_and_enumerate(how in any_way(), values in vec(any::<i16>(), 0..200)) {
        let others: Vec<i32> = values.iter().map(|x| i32::from(*x) * 3).collect();
        let expected: Vec<_> = values.iter().zip(&others).enumerate().map(|(i, (a, b))| (i, *a, *b)).collect();
        let zipped = how.run(values.par()).zip(&others).unwrap().enumerate();
        prop_assert_eq!(how.run(zipped).map(|(i, (a, b))| (i, *a, *b)).collect(), expected);

        let mut sums = others.clone();
        how.run(sums.par_mut()).zip(&values).unwrap().for_each(|(sum, x)| *sum += i32::from(*x));
        prop_assert!(sums.iter().zip(&others).zip(&values).all(|((s, o), x)| *s == o + i32::from(*x)));
        let longer = values.len() + 1;
        let error = values.par().zip(0..longer).unwrap_err();
        prop_assert_eq!((error.left, error.right), (values.len(), longer));
    }

    #[test]
    fn parts_of_slices(how in any_way(), values in vec(any::<u8>(), 0..300), size in 1..50_usize) {
        let expected: Vec<Vec<u8>> = values.chunks(size).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(how.run(values.par_chunks(size)).map(<[u8]>::to_vec).collect(), expected);
        let (mut ours, mut expected) = (values.clone(), values);
        how.run(ours.par_chunks_mut(size)).enumerate().for_each(|(i, part)| { now_and_then(i); part.reverse() });
        expected.chunks_mut(size).for_each(<[u8]>::reverse);
        prop_assert_eq!(ours, expected);
    }

    #[test]
    fn ranges_and_boxes(how in any_way(), a in -20..20_i32, b in -20..20_i32, c in -5..5_i32, d in -5..5_i32, e in -3..3_i32, f in -3..3_i32) {
        prop_assert_eq!(items(how, a..b), (a..b).collect::<Vec<_>>());
        let plane: Vec<_> = (a..b).flat_map(|i| (c..d).map(move |j| (i, j))).collect();
        prop_assert_eq!(items(how, (a..b, c..d)), plane);
        let space: Vec<_> = (c..d).flat_map(|i| (a..b).flat_map(move |j| (e..f).map(move |k| (i, j, k)))).collect();
        prop_assert_eq!(items(how, (c..d, a..b, e..f)), space);
    }

    #[test]
    fn reductions_keep_the_order(how in any_way(), values in vec(0..1000_u32, 0..200)) {
        let text = |x: &u32| { now_and_then(*x as usize); format!("{x};") };
        let expected: String = values.iter().map(text).collect();
        let reduced = how.run(values.par()).map(text).reduce(|a, b| a + &b);
        prop_assert_eq!(reduced, (!values.is_empty()).then(|| expected.clone()));
        let from = how.run(values.par()).map(text).reduce_from("<".into(), |a, b| a + &b);
        prop_assert_eq!(from, format!("<{expected}"));
        let folded = how.run(values.par()).fold(String::new, |a, x| a + &text(x), |a, b| a + &b);
        prop_assert_eq!(folded, expected.clone());
        let tried = how.run(values.par()).map(|x| Ok::<_, Infallible>(text(x))).try_reduce(|a, b| a + &b);
        prop_assert_eq!(tried.unwrap().unwrap_or_default(), expected);
    }

    #[test]
    fn products_of_matrices(how in any_way(), values in matrices()) {
        let expected = values.iter().copied().reduce(|a, b| product(&a, &b));
        prop_assert_eq!(how.run(values.par()).map(|m| *m).reduce(|a, b| product(&a, &b)), expected);
        let unit = || [1, 0, 0, 1];
        let folded = how.run(values.par()).fold(unit, |a, m| product(&a, m), |a, b| product(&a, &b));
        prop_assert_eq!(folded, expected.unwrap_or(unit()));
    }

    #[test]
    fn unordered_folds_lose_nothing(how in any_way(), values in vec(any::<u64>(), 0..300)) {
        let xor = how.run(values.par()).unordered().fold(|| 0, |a, x| a ^ x, |a, b| a ^ b);
        prop_assert_eq!(xor, values.iter().fold(0, |a, x| a ^ x));
    }

    #[test]
    fn searches_find_the_first(how in any_way(), values in vec(0..50_u32, 0..300), wanted in 0..60_u32, bad in 0..60_u32) {
        let is = |x: u32| { now_and_then(x as usize); x == wanted };
        let expected = values.iter().position(|x| *x == wanted);
        prop_assert_eq!(how.run(values.par()).position(|x| is(*x)), expected);
        let found = how.run(values.par()).enumerate().find(|(_, x)| is(**x)).map(|(i, _)| i);
        prop_assert_eq!(found, expected);
        let tried = how.run(values.par()).enumerate().try_find(|(_, x)| Ok::<_, Infallible>(is(**x)));
        prop_assert_eq!(tried.unwrap().map(|(i, _)| i), expected);
        // Whichever comes first: what is looked for, or an error.
        let bad = values.iter().position(|x| *x == bad && bad != wanted);
        let look = |(i, x): &(usize, &u32)| if Some(*i) == bad { Err(*i) } else { Ok(is(**x)) };
        match how.run(values.par()).enumerate().try_find(look) {
            Ok(found) => {
                prop_assert_eq!(found.map(|(i, _)| i), expected);
                prop_assert!(bad.is_none() || expected < bad && expected.is_some());
            }
            Err(error) => {
                prop_assert_eq!(error.index(), bad);
                prop_assert!(expected.is_none() || bad < expected);
            }
        }
        prop_assert_eq!(how.run(values.par()).any(|x| is(*x)), expected.is_some());
        prop_assert_eq!(how.run(values.par()).all(|x| !is(*x)), expected.is_none());
    }

    #[test]
    fn numbers(how in any_way(), values in vec(-1000..1000_i64, 0..300)) {
        prop_assert_eq!(how.run(values.par()).sum(), values.iter().sum::<i64>());
        prop_assert_eq!(how.run(values.par()).copied().reduce(i64::max), values.iter().copied().max());
        let sign = |x: &i64| 1 - 2 * (x & 1);
        prop_assert_eq!(how.run(values.par()).map(sign).product(), values.iter().map(sign).product::<i64>());
        prop_assert_eq!(how.run(values.par()).min(), values.iter().copied().min());
        prop_assert_eq!(how.run(values.par()).max(), values.iter().copied().max());
        let squares: i64 = values.iter().map(|x| x * x).sum();
        prop_assert_eq!(how.run(values.par()).dot(&values).unwrap(), squares);
    }

    #[test]
    fn floats_have_the_same_bits(way in any_way(), values in vec(prop::num::f64::NORMAL, 0..2000)) {
        // Chunks are part of the shape; threads and schedules are not.
        let alone = How { threads: 1, schedule: Schedule::Serial, limit: 1, ..way };
        let small = |x: &f64| x % 1e3 + 0.1;
        let bits = |how: How| {
            let l = || how.run(values.par());
            let lingering = |x: &f64| { now_and_then(x.to_bits() as usize); small(x) };
            let summed = values.par().map(small).collect();
            [
                l().map(lingering).sum(),
                l().map(small).map(|x| x * 0.7).sum(),
                how.run(summed.par()).dot(&summed).unwrap(),
                l().fold(|| 0.0, |a, x| a + small(x), |a, b| a + b),
                l().map(small).reduce(|a, b| a * 0.5 + b).unwrap_or(0.0),
                l().map(small).scan(|a, b| a + b).last().copied().unwrap_or(0.0),
                l().map(small).exclusive_scan(0.3, |a, b| a + b).iter().sum(),
            ].map(f64::to_bits)
        };
        prop_assert_eq!(bits(way), bits(alone));
    }
}

#[test]
fn extremes_of_floats_pass_over_what_is_no_number() {
    for how in every_way() {
        let mut values = vec![f64::NAN; 100];
        assert_eq!(how.run(values.par()).min(), Some(f64::INFINITY));
        assert_eq!(how.run(values.par()).max(), Some(f64::NEG_INFINITY));
        values[17] = -2.5;
        values[99] = 4.0;
        assert_eq!((how.run(values.par()).min(), how.run(values.par()).max()), (Some(-2.5), Some(4.0)));
        assert!(how.run(values.par()).sum().is_nan());
        assert_eq!(how.run(values[..0].par()).min(), None);
    }
}

#[test]
fn exact_results_do_not_depend_on_chunks() {
    let expected: String = (0..100).map(|i| i.to_string()).collect();
    for how in every_way() {
        let text = how.run((0..100).par()).map(|i| i.to_string());
        assert_eq!(text.reduce(|a, b| a + &b).as_ref(), Some(&expected), "{how:?}");
        assert_eq!(how.run((0..1000_u64).par()).sum(), 499_500, "{how:?}");
    }
}

/// Ranges as long as can be counted: what is looked for is found, wherever it is.
#[test]
fn ranges_at_the_edge_of_what_can_be_counted() {
    fn first<I>(how: How, range: Range<I>) -> Option<usize>
    where
        Range<I>: IntoParallel,
        <<Range<I> as IntoParallel>::Source as anabranch_par::Source>::Item: Send,
    {
        how.run(range.par()).position(|_| true)
    }
    for how in every_schedule() {
        for chunks in [
            Chunks::Auto,
            Chunks::Size(usize::MAX / 3),
            Chunks::Count(7),
            Chunks::OneByOne,
            Chunks::AtLeast(usize::MAX),
        ] {
            let how = How { chunks, ..how };
            assert_eq!(first(how, 0..usize::MAX), Some(0), "{how:?}");
            assert_eq!(first(how, 0..usize::MAX / 2), Some(0), "{how:?}");
            assert_eq!(first(how, isize::MIN..isize::MAX), Some(0), "{how:?}");
            assert_eq!(first(how, u64::MAX - 1..u64::MAX), Some(0), "{how:?}");
            assert_eq!(how.run((i8::MIN..i8::MAX).par()).map(i64::from).sum(), -255, "{how:?}");
        }
        let ends: Vec<_> = how.run((i64::MAX - 3..i64::MAX).par()).collect();
        assert_eq!(ends, [i64::MAX - 3, i64::MAX - 2, i64::MAX - 1]);
    }
}

#[test]
fn a_box_without_points_may_be_as_large_as_it_likes() {
    let all = 0..usize::MAX;
    let boxes = [
        (0..0, all.clone(), all.clone()),
        (all.clone(), 3..3, all.clone()),
        (all.clone(), all.clone(), 1..1),
    ];
    for points in boxes {
        assert_eq!(points.par().map(|_| ()).collect(), []);
    }
    assert_eq!((all.clone(), 0..0).par().map(|_| ()).collect(), []);
    assert_eq!((0..0, all.clone()).par().map(|_| ()).collect(), []);
    assert!(std::panic::catch_unwind(|| (0..usize::MAX, 0..2_usize).par()).is_err());
    assert!(std::panic::catch_unwind(|| (0..3, 0..usize::MAX, 0..1_usize).par()).is_err());
}

/// Elements without a size can be more than there are addresses.
#[test]
fn parts_of_slices_of_nothing() {
    let nothing = [(); usize::MAX];
    let size = usize::MAX / 2 + 1;
    assert_eq!(nothing.par_chunks(size).map(<[()]>::len).collect(), [size, size - 1]);
    let mut few = [(); 10];
    assert_eq!(few.par_chunks_mut(usize::MAX).map(|part| part.len()).collect(), [10]);
}
