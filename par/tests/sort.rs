//! Parallel sorting gives the order of the standard library, is stable where it says so, and loses no
//! element, on 1 to 8 threads.

use anabranch_par::prelude::*;
use proptest::prelude::*;
use std::{
    cell::Cell,
    cmp::{Ordering, Reverse},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

fn pools() -> [ThreadPool; 5] {
    [1, 2, 3, 4, 8].map(|threads| ThreadPool::new(threads).unwrap())
}

/// A length that needs several rounds of merging.
const LONG: usize = 34_000;

/// Half of the slices have fewer than 8,192 elements, so the calling thread sorts them alone. The others need
/// several threads and rounds of merging.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        prop::collection::vec(any::<u64>(), 0..8_192),
        prop::collection::vec(any::<u64>(), 8_192..LONG)
    ]
}

/// Calls `f` on each pool, to sort a copy of `input`. All sorted copies must be equal.
fn on_all_pools<T: Clone + PartialEq + std::fmt::Debug + Send>(input: &[T], f: impl Fn(&mut [T])) -> Vec<T> {
    let pools = pools();
    let mut results = pools.iter().map(|pool| {
        let mut copy = input.to_vec();
        pool.install(|| f(&mut copy));
        copy
    });
    let first = results.next().unwrap();
    for other in results {
        assert!(other == first, "the result depends on the pool");
    }
    first
}

/// Pseudo-random numbers below `values`.
fn numbers(len: usize, values: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % values
    };
    (0..len).map(next).collect()
}

fn numbered(keys: Vec<u64>) -> Vec<(u64, usize)> {
    keys.into_iter().enumerate().map(|(i, key)| (key, i)).collect()
}

fn check_all_forms(keys: Vec<u64>) {
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(on_all_pools(&keys, |v| v.par_sort()), sorted);
    assert_eq!(on_all_pools(&keys, |v| v.par_sort_unstable()), sorted);

    let pairs = numbered(keys);
    let mut up = pairs.clone();
    up.sort_by_key(|p| p.0);
    assert_eq!(on_all_pools(&pairs, |v| v.par_sort_by_key(|p| p.0)), up);
    let mut down = pairs.clone();
    down.sort_by_key(|p| Reverse(p.0));
    assert_eq!(on_all_pools(&pairs, |v| v.par_sort_by(|a, b| b.0.cmp(&a.0))), down);

    let mut up = on_all_pools(&pairs, |v| v.par_sort_unstable_by_key(|p| p.0));
    assert!(up.is_sorted_by_key(|p| p.0));
    up.sort_by_key(|p| p.1);
    assert_eq!(up, pairs, "the elements have changed");
    let down = on_all_pools(&pairs, |v| v.par_sort_unstable_by(|a, b| b.0.cmp(&a.0)));
    assert!(down.is_sorted_by_key(|p| Reverse(p.0)));
}

proptest! {
    // 8, unless `PROPTEST_CASES` says otherwise than proptest's default of 256.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(32), ..ProptestConfig::default() })]

    #[test]
    fn any_slice_is_sorted_as_the_standard_library_does(keys in keys()) {
        let _deadline = testing::deadline();
        check_all_forms(keys);
    }

    #[test]
    fn equal_elements_keep_their_order(
        values in 1_u64..300,
        keys in keys(),
    ) {
        let _deadline = testing::deadline();
        check_all_forms(keys.into_iter().map(|key| key % values).collect());
    }

    #[test]
    fn patterns_are_sorted(
        parts in prop::collection::vec((0_usize..12_000, 0..4_u8, 1_u64..100_000), 1..6),
    ) {
        let _deadline = testing::deadline();
        let keys = parts.into_iter().flat_map(|(len, pattern, values)| {
            let mut part = numbers(len, values);
            match pattern {
                0 => part.sort(),
                1 => part.sort_by(|a, b| b.cmp(a)),
                2 => part.fill(values),
                _ => {}
            }
            part
        });
        check_all_forms(keys.collect());
    }
}

#[test]
fn long_slices_are_sorted() {
    let _deadline = testing::deadline();
    let len = if cfg!(debug_assertions) { 150_001 } else { 1_000_000 };
    for values in [1, 2, 100, u64::MAX] {
        check_all_forms(numbers(len, values));
    }
}

#[test]
fn ascending_and_descending_slices_are_sorted() {
    let _deadline = testing::deadline();
    for len in [8192, LONG, LONG + 1] {
        let up: Vec<u64> = (0..len as u64).collect();
        let down: Vec<u64> = up.iter().rev().copied().collect();
        for input in [&up, &down] {
            check_all_forms(input.clone());
        }
        // Descending except for one pair of equal elements. Reversing this slice would not be stable.
        for place in [1, len / 2, len - 1] {
            let mut input = down.clone();
            input[place] = input[place - 1];
            check_all_forms(input);
        }
        // Ascending except for one element.
        for place in [0, len / 2, len - 1] {
            let mut input = up.clone();
            input[place] = len as u64 / 3;
            check_all_forms(input);
        }
    }
}

#[test]
fn strings_are_sorted() {
    let _deadline = testing::deadline();
    let strings: Vec<String> = numbers(LONG, 30_000).iter().map(u64::to_string).collect();
    let mut sorted = strings.clone();
    sorted.sort();
    assert_eq!(on_all_pools(&strings, |v| v.par_sort()), sorted);
    assert_eq!(on_all_pools(&strings, |v| v.par_sort_unstable()), sorted);
}

/// An element that counts its drops.
struct Counted<'a> {
    key: u64,
    id: usize,
    drops: &'a [AtomicUsize],
    /// On the heap, so that every memory checker sees a second drop.
    _heap: Box<usize>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.drops[self.id].fetch_add(1, Relaxed);
    }
}

/// Sorts elements that count their drops; `sort` may panic. Returns the message of the panic, if any, and the
/// keys.
fn sort_counted<'a>(
    keys: &[u64],
    drops: &'a [AtomicUsize],
    sort: impl FnOnce(&mut [Counted<'a>]),
) -> (Option<&'static str>, Vec<u64>) {
    let elements = keys.iter().enumerate();
    let mut elements: Vec<_> =
        elements.map(|(id, &key)| Counted { key, id, drops, _heap: Box::new(id) }).collect();
    let result = catch_unwind(AssertUnwindSafe(|| sort(&mut elements)));
    let mut ids: Vec<_> = elements.iter().map(|e| e.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..keys.len()), "the slice has each element once");
    assert!(drops.iter().all(|d| d.load(Relaxed) == 0), "an element was dropped");
    let sorted = elements.iter().map(|e| e.key).collect();
    drop(elements);
    assert!(drops.iter().all(|d| d.load(Relaxed) == 1), "not every element was dropped once");
    (result.err().map(|payload| *payload.downcast_ref::<&str>().unwrap_or(&"another panic")), sorted)
}

fn counters(len: usize) -> Vec<AtomicUsize> {
    (0..len).map(|_| AtomicUsize::new(0)).collect()
}

/// Panics at comparison number `at`, counted by `count`, without printing a message.
fn count_up_to(count: &AtomicUsize, at: usize) {
    if count.fetch_add(1, Relaxed) + 1 == at {
        resume_unwind(Box::new("enough"));
    }
}

/// Sorts on the pool, with the stable or the unstable form.
fn sort_on<T: Send>(pool: &ThreadPool, stable: bool, v: &mut [T], cmp: impl Fn(&T, &T) -> Ordering + Sync) {
    pool.install(|| if stable { v.par_sort_by(cmp) } else { v.par_sort_unstable_by(cmp) });
}

#[test]
fn a_comparison_that_panics_loses_no_element() {
    let _deadline = testing::deadline();
    let pools = pools();
    let mut almost: Vec<u64> = (0..LONG as u64).collect();
    almost.swap(100, 30_000);
    for keys in [numbers(LONG, u64::MAX), numbers(LONG, 50), almost, (0..LONG as u64).rev().collect()] {
        for (pool, stable) in pools.iter().flat_map(|pool| [(pool, true), (pool, false)]) {
            let sort = |at| {
                let count = AtomicUsize::new(0);
                let drops = counters(keys.len());
                let (panic, _) = sort_counted(&keys, &drops, |v| {
                    sort_on(pool, stable, v, |a, b| {
                        count_up_to(&count, at);
                        a.key.cmp(&b.key)
                    });
                });
                (panic, count.into_inner())
            };
            let (_, all) = sort(usize::MAX);
            for at in [1, 3].into_iter().chain((1..=5).map(|k| all * k / 5)) {
                let (panic, _) = sort(at);
                assert_eq!(panic, Some("enough"), "comparison {at} of {all}");
            }
        }
    }
}

#[test]
fn sorting_drops_no_element() {
    let _deadline = testing::deadline();
    let pools = pools();
    let keys = numbers(LONG, 1000);
    for pool in &pools {
        for stable in [true, false] {
            let drops = counters(keys.len());
            let (panic, sorted) = sort_counted(&keys, &drops, |v| {
                sort_on(pool, stable, v, |a, b| a.key.cmp(&b.key));
            });
            assert_eq!(panic, None);
            assert!(sorted.is_sorted());
        }
    }
}

#[test]
fn an_inconsistent_comparison_loses_no_element() {
    let _deadline = testing::deadline();
    let pools = pools();
    let mix = |a: u64, b: u64| (a ^ b.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    let disorders: [&(dyn Fn(u64, u64) -> Ordering + Sync); 5] = [
        &|_, _| Ordering::Less,
        &|_, _| Ordering::Greater,
        &|a, b| mix(a, b).cmp(&3),
        &|a, b| (a % 3).cmp(&((b + 1) % 3)),
        // Consistent except for about every 50th pair.
        &|a, b| if mix(a, b) + mix(b, a) == 14 { b.cmp(&a) } else { a.cmp(&b) },
    ];
    let keys = numbers(LONG, u64::MAX);
    for (pool, cmp) in pools.iter().flat_map(|pool| disorders.iter().map(move |cmp| (pool, cmp))) {
        for stable in [true, false] {
            let drops = counters(keys.len());
            // The sort may panic.
            sort_counted(&keys, &drops, |v| sort_on(pool, stable, v, |a, b| cmp(a.key, b.key)));
        }
    }
}

/// An element that is not `Sync`: each comparison replaces the value in its cell.
struct CellKey(Cell<Option<Box<u64>>>);

impl CellKey {
    fn key(&self) -> u64 {
        let key =
            *self.0.take().expect("two threads compare the element at the same time, or it is a stale copy");
        self.0.set(Some(Box::new(key)));
        key
    }
}

#[test]
fn a_comparison_may_change_the_value_in_a_cell() {
    let _deadline = testing::deadline();
    let pools = pools();
    let keys = numbers(LONG, 1000);
    let mut sorted = keys.clone();
    sorted.sort();
    for pool in &pools {
        for at in [usize::MAX, 50_000, 400_000, 600_000] {
            for stable in [true, false] {
                let count = AtomicUsize::new(0);
                let mut v: Vec<_> = keys.iter().map(|&k| CellKey(Cell::new(Some(Box::new(k))))).collect();
                let cmp = |a: &CellKey, b: &CellKey| {
                    count_up_to(&count, at);
                    a.key().cmp(&b.key())
                };
                let result = catch_unwind(AssertUnwindSafe(|| sort_on(pool, stable, &mut v, cmp)));
                let mut found: Vec<_> = v.iter().map(CellKey::key).collect();
                if result.is_err() {
                    found.sort();
                }
                assert_eq!(found, sorted);
            }
        }
    }
}

#[test]
fn slices_of_elements_without_size_may_be_sorted() {
    let _deadline = testing::deadline();
    let pools = pools();
    for pool in &pools {
        let mut units = [(); 100_000];
        pool.install(|| units.par_sort());
        pool.install(|| units.par_sort_unstable_by(|(), ()| Ordering::Less));
        assert_eq!(units.len(), 100_000);
    }
}

#[test]
fn large_elements_are_sorted() {
    let _deadline = testing::deadline();
    let rows: Vec<[u64; 40]> = numbers(10_000, 500).into_iter().map(|key| [key; 40]).collect();
    let mut sorted = rows.clone();
    sorted.sort();
    assert_eq!(on_all_pools(&rows, |v| v.par_sort()), sorted);
    assert_eq!(on_all_pools(&rows, |v| v.par_sort_unstable()), sorted);
}

#[test]
fn sorting_works_inside_a_loop() {
    let _deadline = testing::deadline();
    let pool = ThreadPool::new(3).unwrap();
    (0..8).par().on(&pool).chunking(false).for_each(|i| {
        let mut v = numbers(10_000 + i, 1_000_000);
        v.par_sort();
        assert!(v.is_sorted());
    });
}
