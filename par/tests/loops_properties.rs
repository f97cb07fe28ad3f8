//! Loops give the same results as sequential iterators, with any threads, schedules and chunks.

mod common;

use anabranch_par::{IntoParallel, LoopError, prelude::*};
use common::*;
use proptest::{collection::vec, prelude::*};
use std::{convert::Infallible, fmt::Debug, ops::Range};

fn any_config() -> impl Strategy<Value = Config> {
    let chunks = prop_oneof![
        Just(Chunks::Auto),
        (1..40_usize).prop_map(Chunks::Size),
        (1..40_usize).prop_map(Chunks::Count),
        (1..40_usize).prop_map(Chunks::AtLeast),
        Just(Chunks::OneByOne),
    ];
    let threads = prop::sample::select(vec![1, 2, 3, 4, 8]);
    (threads, prop::sample::select(SCHEDULES.to_vec()), chunks, 1..9_usize)
        .prop_map(|(threads, schedule, chunks, limit)| Config { threads, schedule, chunks, limit })
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
fn items<I>(config: Config, range: I) -> Vec<<I::Source as anabranch_par::Source>::Item>
where
    I: IntoParallel,
    <I::Source as anabranch_par::Source>::Item: Send + Debug,
{
    config.apply(range.par()).collect()
}

proptest! {
    // 48, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig { cases: (ProptestConfig::default().cases * 3).div_ceil(16), ..ProptestConfig::default() })]

    #[test]
    fn map_and_collect_give_the_results_of_iterators(config in any_config(), values in vec(any::<u32>(), 0..300)) {
        let _deadline = testing::deadline();
        let f = |x: &u32| { linger_at_some(*x as usize); (x.wrapping_mul(7)).to_string() };
        let expected: Vec<_> = values.iter().map(f).collect();
        prop_assert_eq!(&config.apply(values.par()).map(f).collect(), &expected);

        let mut appended = vec!["before".to_string()];
        config.apply(values.par()).map(f).collect_into(&mut appended);
        prop_assert_eq!(&appended[..1], ["before"]);
        prop_assert_eq!(&appended[1..], &expected);

        let mut written = vec![String::from("old"); values.len()];
        config.apply(values.par()).map(f).write_to(&mut written);
        prop_assert_eq!(&written, &expected);

        let mut in_place = values.clone();
        config.apply(in_place.par_mut()).for_each(|x| *x = x.wrapping_mul(7));
        prop_assert!(in_place.iter().map(u32::to_string).eq(expected));
    }

    #[test]
    fn try_collect_gives_the_result_of_iterators(config in any_config(), values in vec(0..100_u32, 0..100), bad in 0..400_u32) {
        let _deadline = testing::deadline();
        let f = |x: &u32| { linger_at_some(*x as usize); if *x == bad { Err(*x) } else { Ok(x + 1) } };
        let expected: Result<Vec<_>, _> = values.iter().map(f).collect();
        match (config.apply(values.par()).map(f).try_collect(), expected) {
            (Ok(results), Ok(expected)) => prop_assert_eq!(results, expected),
            (Err(LoopError::Item { index, error }), Err(expected)) => {
                prop_assert_eq!(error, expected);
                prop_assert_eq!(Some(index), values.iter().position(|x| *x == bad));
            }
            (results, expected) => prop_assert!(false, "{results:?} is not {expected:?}"),
        }
    }

    #[test]
    fn zip_and_enumerate_give_the_items_of_iterators(config in any_config(), values in vec(any::<i16>(), 0..200)) {
        let _deadline = testing::deadline();
        let others: Vec<i32> = values.iter().map(|x| i32::from(*x) * 3).collect();
        let expected: Vec<_> = values.iter().zip(&others).enumerate().map(|(i, (a, b))| (i, *a, *b)).collect();
        let zipped = config.apply(values.par()).zip(&others).unwrap().enumerate();
        prop_assert_eq!(config.apply(zipped).map(|(i, (a, b))| (i, *a, *b)).collect(), expected);

        let mut sums = others.clone();
        config.apply(sums.par_mut()).zip(&values).unwrap().for_each(|(sum, x)| *sum += i32::from(*x));
        prop_assert!(sums.iter().zip(&others).zip(&values).all(|((s, o), x)| *s == o + i32::from(*x)));
        let longer = values.len() + 1;
        let error = values.par().zip(0..longer).unwrap_err();
        prop_assert_eq!((error.left, error.right), (values.len(), longer));
    }

    #[test]
    fn chunks_of_slices_are_those_of_the_standard_library(config in any_config(), values in vec(any::<u8>(), 0..300), size in 1..50_usize) {
        let _deadline = testing::deadline();
        let expected: Vec<Vec<u8>> = values.chunks(size).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(config.apply(values.par_chunks(size)).map(<[u8]>::to_vec).collect(), expected);
        let (mut ours, mut expected) = (values.clone(), values);
        config.apply(ours.par_chunks_mut(size)).enumerate().for_each(|(i, part)| { linger_at_some(i); part.reverse() });
        expected.chunks_mut(size).for_each(<[u8]>::reverse);
        prop_assert_eq!(ours, expected);
    }

    #[test]
    fn ranges_and_boxes_visit_their_points_in_order(config in any_config(), a in -20..20_i32, b in -20..20_i32, c in -5..5_i32, d in -5..5_i32, e in -3..3_i32, f in -3..3_i32) {
        let _deadline = testing::deadline();
        prop_assert_eq!(items(config, a..b), (a..b).collect::<Vec<_>>());
        let plane: Vec<_> = (a..b).flat_map(|i| (c..d).map(move |j| (i, j))).collect();
        prop_assert_eq!(items(config, (a..b, c..d)), plane);
        let space: Vec<_> = (c..d).flat_map(|i| (a..b).flat_map(move |j| (e..f).map(move |k| (i, j, k)))).collect();
        prop_assert_eq!(items(config, (c..d, a..b, e..f)), space);
    }

    #[test]
    fn reductions_keep_the_order(config in any_config(), values in vec(0..1000_u32, 0..200)) {
        let _deadline = testing::deadline();
        let text = |x: &u32| { linger_at_some(*x as usize); format!("{x};") };
        let expected: String = values.iter().map(text).collect();
        let reduced = config.apply(values.par()).map(text).reduce(|a, b| a + &b);
        prop_assert_eq!(reduced, (!values.is_empty()).then(|| expected.clone()));
        let from = config.apply(values.par()).map(text).reduce_from("<".into(), |a, b| a + &b);
        prop_assert_eq!(from, format!("<{expected}"));
        let folded = config.apply(values.par()).fold(String::new, |a, x| a + &text(x), |a, b| a + &b);
        prop_assert_eq!(folded, expected.clone());
        let tried = config.apply(values.par()).map(|x| Ok::<_, Infallible>(text(x))).try_reduce(|a, b| a + &b);
        prop_assert_eq!(tried.unwrap().unwrap_or_default(), expected);
    }

    #[test]
    fn products_of_matrices_keep_the_order(config in any_config(), values in matrices()) {
        let _deadline = testing::deadline();
        let expected = values.iter().copied().reduce(|a, b| product(&a, &b));
        prop_assert_eq!(config.apply(values.par()).map(|m| *m).reduce(|a, b| product(&a, &b)), expected);
        let unit = || [1, 0, 0, 1];
        let folded = config.apply(values.par()).fold(unit, |a, m| product(&a, m), |a, b| product(&a, &b));
        prop_assert_eq!(folded, expected.unwrap_or(unit()));
    }

    #[test]
    fn unordered_folds_include_every_item(config in any_config(), values in vec(any::<u64>(), 0..300)) {
        let _deadline = testing::deadline();
        let xor = config.apply(values.par()).unordered().fold(|| 0, |a, x| a ^ x, |a, b| a ^ b);
        prop_assert_eq!(xor, values.iter().fold(0, |a, x| a ^ x));
    }

    #[test]
    fn searches_find_the_first_match(config in any_config(), values in vec(0..50_u32, 0..300), wanted in 0..60_u32, bad in 0..60_u32) {
        let _deadline = testing::deadline();
        let is = |x: u32| { linger_at_some(x as usize); x == wanted };
        let expected = values.iter().position(|x| *x == wanted);
        prop_assert_eq!(config.apply(values.par()).position(|x| is(*x)), expected);
        let found = config.apply(values.par()).enumerate().find(|(_, x)| is(**x)).map(|(i, _)| i);
        prop_assert_eq!(found, expected);
        let tried = config.apply(values.par()).enumerate().try_find(|(_, x)| Ok::<_, Infallible>(is(**x)));
        prop_assert_eq!(tried.unwrap().map(|(i, _)| i), expected);
        // The result is the first match or the first error, whichever has the lower index.
        let bad = values.iter().position(|x| *x == bad && bad != wanted);
        let look = |(i, x): &(usize, &u32)| if Some(*i) == bad { Err(*i) } else { Ok(is(**x)) };
        match config.apply(values.par()).enumerate().try_find(look) {
            Ok(found) => {
                prop_assert_eq!(found.map(|(i, _)| i), expected);
                prop_assert!(bad.is_none() || expected < bad && expected.is_some());
            }
            Err(error) => {
                prop_assert_eq!(error.index(), bad);
                prop_assert!(expected.is_none() || bad < expected);
            }
        }
        prop_assert_eq!(config.apply(values.par()).any(|x| is(*x)), expected.is_some());
        prop_assert_eq!(config.apply(values.par()).all(|x| !is(*x)), expected.is_none());
    }

    #[test]
    fn numeric_reductions_give_the_results_of_iterators(config in any_config(), values in vec(-1000..1000_i64, 0..300)) {
        let _deadline = testing::deadline();
        prop_assert_eq!(config.apply(values.par()).sum(), values.iter().sum::<i64>());
        prop_assert_eq!(config.apply(values.par()).copied().reduce(i64::max), values.iter().copied().max());
        let sign = |x: &i64| 1 - 2 * (x & 1);
        prop_assert_eq!(config.apply(values.par()).map(sign).product(), values.iter().map(sign).product::<i64>());
        prop_assert_eq!(config.apply(values.par()).min(), values.iter().copied().min());
        prop_assert_eq!(config.apply(values.par()).max(), values.iter().copied().max());
        let squares: i64 = values.iter().map(|x| x * x).sum();
        prop_assert_eq!(config.apply(values.par()).dot(&values).unwrap(), squares);
    }

    #[test]
    fn floats_have_the_same_bits_on_any_threads_and_schedule(config in any_config(), values in vec(prop::num::f64::NORMAL, 0..2000)) {
        let _deadline = testing::deadline();
        // The shape of the tree depends on the chunks, but not on threads and schedules.
        let alone = Config { threads: 1, schedule: Schedule::Serial, limit: 1, ..config };
        let small = |x: &f64| x % 1e3 + 0.1;
        let bits = |config: Config| {
            let l = || config.apply(values.par());
            let lingering = |x: &f64| { linger_at_some(x.to_bits() as usize); small(x) };
            let summed = values.par().map(small).collect();
            [
                l().map(lingering).sum(),
                l().map(small).map(|x| x * 0.7).sum(),
                config.apply(summed.par()).dot(&summed).unwrap(),
                l().fold(|| 0.0, |a, x| a + small(x), |a, b| a + b),
                l().map(small).reduce(|a, b| a * 0.5 + b).unwrap_or(0.0),
                l().map(small).scan(|a, b| a + b).last().copied().unwrap_or(0.0),
                l().map(small).exclusive_scan(0.3, |a, b| a + b).iter().sum(),
            ].map(f64::to_bits)
        };
        prop_assert_eq!(bits(config), bits(alone));
    }
}

#[test]
fn minimum_and_maximum_of_floats_ignore_nan() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        let mut values = vec![f64::NAN; 100];
        assert_eq!(config.apply(values.par()).min(), Some(f64::INFINITY));
        assert_eq!(config.apply(values.par()).max(), Some(f64::NEG_INFINITY));
        values[17] = -2.5;
        values[99] = 4.0;
        assert_eq!(
            (config.apply(values.par()).min(), config.apply(values.par()).max()),
            (Some(-2.5), Some(4.0))
        );
        assert!(config.apply(values.par()).sum().is_nan());
        assert_eq!(config.apply(values[..0].par()).min(), None);
    }
}

#[test]
fn exact_results_do_not_depend_on_chunks() {
    let _deadline = testing::deadline();
    let expected: String = (0..100).map(|i| i.to_string()).collect();
    for config in all_configs() {
        let text = config.apply((0..100).par()).map(|i| i.to_string());
        assert_eq!(text.reduce(|a, b| a + &b).as_ref(), Some(&expected), "{config:?}");
        assert_eq!(config.apply((0..1000_u64).par()).sum(), 499_500, "{config:?}");
    }
}

/// Ranges with the largest possible number of items, and at the limits of their types.
#[test]
fn the_longest_ranges_work() {
    let _deadline = testing::deadline();
    fn first<I>(config: Config, range: Range<I>) -> Option<usize>
    where
        Range<I>: IntoParallel,
        <<Range<I> as IntoParallel>::Source as anabranch_par::Source>::Item: Send,
    {
        config.apply(range.par()).position(|_| true)
    }
    for config in all_schedules() {
        for chunks in [
            Chunks::Auto,
            Chunks::Size(usize::MAX / 3),
            Chunks::Count(7),
            Chunks::OneByOne,
            Chunks::AtLeast(usize::MAX),
        ] {
            let config = Config { chunks, ..config };
            assert_eq!(first(config, 0..usize::MAX), Some(0), "{config:?}");
            assert_eq!(first(config, 0..usize::MAX / 2), Some(0), "{config:?}");
            assert_eq!(first(config, isize::MIN..isize::MAX), Some(0), "{config:?}");
            assert_eq!(first(config, u64::MAX - 1..u64::MAX), Some(0), "{config:?}");
            assert_eq!(config.apply((i8::MIN..i8::MAX).par()).map(i64::from).sum(), -255, "{config:?}");
        }
        let ends: Vec<_> = config.apply((i64::MAX - 3..i64::MAX).par()).collect();
        assert_eq!(ends, [i64::MAX - 3, i64::MAX - 2, i64::MAX - 1]);
    }
}

#[test]
fn an_empty_box_may_have_any_extents() {
    let _deadline = testing::deadline();
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

/// A slice of elements without size may have more elements than there are addresses.
#[test]
fn chunks_of_slices_of_elements_without_size_work() {
    let _deadline = testing::deadline();
    let units = [(); usize::MAX];
    let size = usize::MAX / 2 + 1;
    assert_eq!(units.par_chunks(size).map(<[()]>::len).collect(), [size, size - 1]);
    let mut few = [(); 10];
    assert_eq!(few.par_chunks_mut(usize::MAX).map(|part| part.len()).collect(), [10]);
}
