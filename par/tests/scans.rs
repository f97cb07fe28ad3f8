//! Prefix sums of anything associative.

mod common;

use anabranch_par::prelude::*;
use common::*;

type Text = String;

fn append(a: &Text, b: &Text) -> Text {
    format!("{a}{b}")
}

#[test]
fn scans_keep_the_order_of_what_does_not_commute() {
    for how in every_way() {
        for items in [0, 1, 2, 3, 16, 57, 130] {
            let text = |i: usize| {
                now_and_then(i);
                char::from(b'a' + (i % 26) as u8).to_string()
            };
            let all: Text = (0..items).map(text).collect();
            let inclusive = how.run((0..items).par()).map(text).scan(append);
            assert!(inclusive.iter().eq((1..=items).map(|i| &all[..i])), "{items} items, {how:?}");
            let exclusive = how.run((0..items).par()).map(text).exclusive_scan("<".into(), append);
            let expected = (0..items).map(|i| format!("<{}", &all[..i]));
            assert!(exclusive.into_iter().eq(expected), "{items} items, {how:?}");
        }
    }
}

#[test]
fn long_scans_of_numbers() {
    for how in every_schedule() {
        let expected: Vec<u64> = (1..=20_000).map(|i| i * (i + 1) / 2).collect();
        assert_eq!(how.run((1..20_001_u64).par()).scan(|a, b| a + b), expected);
        let exclusive = how.run((1..20_001_u64).par()).exclusive_scan(7, |a, b| a + b);
        assert_eq!(exclusive[0], 7);
        assert!(exclusive[1..].iter().zip(&expected).all(|(a, b)| *a == b + 7));
    }
}

#[test]
fn values_of_a_scan_are_dropped_exactly_once() {
    for how in every_way() {
        for bad in [1, 20, 80, 1000] {
            let census = Census::new();
            let op = |a: &Counted<'_>, b: &Counted<'_>| {
                assert!(a.value + b.value < bad || bad == 1000, "too much");
                census.add(a.value + b.value)
            };
            let scan = || how.run((0..60_usize).par()).map(|i| census.add(i % 4)).scan(op);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(scan));
            assert_eq!(result.is_ok(), bad == 1000);
            drop(result);
            assert!(census.is_over(), "{how:?}");
        }
    }
}
