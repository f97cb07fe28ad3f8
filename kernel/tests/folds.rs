//! Kernels with folds and with operands of any rank, against a plain evaluation point by point. All bits must
//! agree, on all instruction sets.

mod array;
mod loops;
#[allow(dead_code, reason = "the steps of kernels without folds")]
mod plain;

use anabranch_kernel::{
    Program, RecordError, Recording, Tape, Value,
    wgsl::{Wgsl, WgslError},
};
use loops::{
    kernels,
    run::{check, run},
};
use proptest::prelude::*;
use testing::deadline;

macro_rules! oracles {
    ($($name:ident $number:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    kernel in kernels::<$number>(700),
                    seed in any::<u64>(),
                    longest in prop_oneof![Just(usize::MAX), 1_usize..300],
                ) {
                    let _deadline = deadline();
                    check(&kernel, seed, longest)?;
                }
            )*
        }
    };
}

oracles!(
    folds_of_f32_agree f32,
    folds_of_f64_agree f64,
    folds_of_i32_agree i32,
    folds_of_u32_agree u32,
    folds_of_i64_agree i64,
    folds_of_u64_agree u64
);

fn product(inner: usize) -> Recording {
    let tape = Tape::new(2);
    let (a, b, c) = (tape.input::<f64, 2>(), tape.input::<f64, 2>(), tape.output::<f64, 2>());
    let (row, col) = (c.point(0), c.point(1));
    c.set(c.fold(0..inner, 0.0, |sum, k| sum + a.get([row, k]) * b.get([k, col])));
    tape.finish().expect("the kernel is right")
}

#[test]
fn a_matrix_product_of_any_length_is_one_program_and_has_the_bits_of_loops() {
    let _deadline = deadline();
    let first = product(3);
    for [rows, inner, cols] in [[3, 4, 5], [1, 700, 1], [2, 0, 9], [5, 3, 2100]] {
        let recording = product(inner);
        assert!(Program::new(&first).is_of(&recording));
        assert_eq!(first.program_hash(), recording.program_hash());
        let draw = |count: usize| (0..count).map(|i| (i * 37 % 101) as f64 / 8.0 - 6.0).collect::<Vec<_>>();
        let inputs = [draw(rows * inner), draw(inner * cols)];
        let extents = [[1, rows, inner], [1, inner, cols], [1, rows, cols]];
        for output in run(&recording, [[0; 3], extents[2]], &inputs, &extents, usize::MAX) {
            for (at, &ours) in output.iter().enumerate() {
                let term = |k: usize| inputs[0][at / cols * inner + k] * inputs[1][k * cols + at % cols];
                assert_eq!(ours, (0..inner).map(term).fold(0.0, |sum, term| sum + term));
            }
        }
    }
    // The sum is one chain: nothing is copied from one iteration to the next.
    assert_eq!(Program::new(&first).size(), (2, 2));
}

#[test]
fn a_state_has_values_of_different_types_and_all_change_at_once() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f64, 1>(), tape.output::<f64, 1>());
    // The smallest element and its place, and two Fibonacci numbers.
    let first = (f64::INFINITY, 0, 0_u64, u.here().literal(1.0).convert::<u64>());
    let (least, at, fib, _) = v.fold(1..8, first, |(least, at, a, b), k| {
        let element = u.get([k]);
        let is_less = element.lt(least);
        (is_less.select(element, least), is_less.select(k.value().convert::<i32>(), at), b, a + b)
    });
    v.set(least + 100.0 * at.convert::<f64>() + 10_000.0 * fib.convert::<f64>());
    let recording = tape.finish().expect("the kernel is right");
    let input = vec![-100.0, 4.0, 2.0, -3.0, 8.0, -3.0, 0.0, 1.0];
    for output in run(&recording, [[0; 3], [1, 1, 8]], &[input], &[[1, 1, 8]; 2], usize::MAX) {
        assert_eq!(output, [-3.0 + 300.0 + 130_000.0; 8]);
    }
}

#[test]
fn what_an_iteration_does_not_change_is_computed_once() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    v.set(v.fold(0..1000, 0.0, |sum, _| sum + u.here().sqrt()));
    let recording = tape.finish().expect("the kernel is right");
    // The root, the copy of the first state, and the sum.
    assert_eq!(Program::new(&recording).size(), (3, 3));
    let text = Wgsl::new(&recording).expect("WGSL has these operations").text().to_string();
    // The last loop is that of the fold.
    assert!(
        text.find("sqrt").expect("it has a root") < text.rfind("for (").expect("it has a loop"),
        "{text}"
    );
}

#[test]
fn mistakes_of_folds_name_the_lines() {
    let _deadline = deadline();
    let line = |line: u32| format!("{}:{line}:", file!());
    let tape = Tape::new(1);
    let v = tape.output::<f32, 1>();
    let mut outside: Option<Value<'_, f32>> = None;
    let fold = v.fold(0..4, 0.0, |sum, k| {
        outside = Some(sum + k.value().convert::<f32>());
        sum
    });
    let begin = line!() - 4;
    v.set(fold + outside.expect("the closure has run"));
    let error = tape.finish().expect_err("the value has no meaning there");
    assert!(matches!(error, RecordError::OutsideOfFold { .. }) && error.to_string().contains(&line(begin)));

    let tape = Tape::new(1);
    let v = tape.output::<f32, 1>();
    v.fold(0..4, 0.0, |sum: Value<'_, f32>, k| {
        v.set(sum * k.value().convert::<f32>());
        sum
    });
    assert!(matches!(tape.finish(), Err(RecordError::OutsideOfFold { .. })));

    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    let mut counter = None;
    v.fold(0..4, 0.0, |sum: Value<'_, f32>, k| {
        counter = Some(k);
        sum
    });
    v.set(u.get([counter.expect("the closure has run")]));
    assert!(matches!(tape.finish(), Err(RecordError::OutsideOfFold { .. })));

    let tape = Tape::new(2);
    let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
    v.set(u.get([v.point(0) + v.point(1), 0.into()]));
    let sum = line!() - 1;
    let error = tape.finish().expect_err("no coordinate is such a sum");
    assert!(
        matches!(error, RecordError::SumOfCoordinates { .. }) && error.to_string().starts_with(&line(sum))
    );

    let tape = Tape::new(1);
    let v = tape.output::<u32, 1>();
    v.set(v.fold(0..usize::MAX, 0, |sum: Value<'_, u32>, _| sum + 1));
    let large = line!() - 1;
    let error = tape.finish().expect_err("there are too many iterations");
    assert!(
        matches!(error, RecordError::NumberTooLarge { .. }) && error.to_string().starts_with(&line(large))
    );
}

#[test]
fn accesses_of_folds_have_the_numbers_of_all_iterations_and_none_without_iterations() {
    let _deadline = deadline();
    let reached = |outer: usize, inner: std::ops::Range<usize>| {
        let tape = Tape::new(2);
        let (u, v) = (tape.input_of_rank::<f32, 3, 2>(), tape.output::<f32, 2>());
        v.set(v.fold(0..outer, 0.0, |sum, _| {
            v.fold(inner.clone(), sum, |sum, k| sum + u.get([k + 2, v.point(0) + k - 1, 7.into()]))
        }));
        let recording = tape.finish().expect("the kernel is right");
        let [access] = &recording.accesses().collect::<Vec<_>>()[..] else { panic!("there is one access") };
        access.along.clone().map(|along| (along.point, along.numbers))
    };
    assert_eq!(reached(3, 2..6), [(None, 4..8), (Some(1), 1..5), (None, 7..8)]);
    for [z, ..] in [reached(0, 2..6), reached(3, 6..6)] {
        assert!(z.1.is_empty());
    }
}

#[test]
fn a_shader_refuses_iterations_that_lead_out_of_a_buffer() {
    let _deadline = deadline();
    let shader = Wgsl::new(&product(2)).expect("WGSL has these operations");
    let launch = |inner: usize, extent: usize| {
        let extents = [[1, 4, extent], [1, extent, 4], [1, 4, 4]];
        shader.dispatches([[0; 3], [1, 4, 4]], &extents, product(inner).parameters(), 65535)
    };
    assert!(launch(8, 8).is_ok() && launch(0, 0).is_ok());
    assert!(matches!(launch(9, 8), Err(WgslError::Outside { operand: 0, end: [1, 4, 9], .. })));
}
