//! Scans compute prefix sums with any associative operator, in order, and drop every value once.

mod common;

use anabranch_par::prelude::*;
use common::*;

type Text = String;

fn append(a: &Text, b: &Text) -> Text {
    format!("{a}{b}")
}

#[test]
fn scans_keep_the_order_of_operands() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        for items in [0, 1, 2, 3, 16, 57, 130] {
            let text = |i: usize| {
                linger_at_some(i);
                char::from(b'a' + (i % 26) as u8).to_string()
            };
            let all: Text = (0..items).map(text).collect();
            let inclusive = config.apply((0..items).par()).map(text).scan(append);
            assert!(inclusive.iter().eq((1..=items).map(|i| &all[..i])), "{items} items, {config:?}");
            let exclusive = config.apply((0..items).par()).map(text).exclusive_scan("<".into(), append);
            let expected = (0..items).map(|i| format!("<{}", &all[..i]));
            assert!(exclusive.into_iter().eq(expected), "{items} items, {config:?}");
        }
    }
}

#[test]
fn long_scans_of_numbers_are_right() {
    let _deadline = testing::deadline();
    for config in all_schedules() {
        let expected: Vec<u64> = (1..=20_000).map(|i| i * (i + 1) / 2).collect();
        assert_eq!(config.apply((1..20_001_u64).par()).scan(|a, b| a + b), expected);
        let exclusive = config.apply((1..20_001_u64).par()).exclusive_scan(7, |a, b| a + b);
        assert_eq!(exclusive[0], 7);
        assert!(exclusive[1..].iter().zip(&expected).all(|(a, b)| *a == b + 7));
    }
}

#[test]
fn values_of_a_scan_are_dropped_exactly_once() {
    let _deadline = testing::deadline();
    for config in all_configs() {
        for bad in [1, 20, 80, 1000] {
            let drops = DropCounter::new();
            let op = |a: &Counted<'_>, b: &Counted<'_>| {
                assert!(a.value + b.value < bad || bad == 1000, "too much");
                drops.add(a.value + b.value)
            };
            let scan = || config.apply((0..60_usize).par()).map(|i| drops.add(i % 4)).scan(op);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(scan));
            assert_eq!(result.is_ok(), bad == 1000);
            drop(result);
            assert!(drops.all_dropped(), "{config:?}");
        }
    }
}
