//! The shaders of recordings are WGSL that naga, the compiler of wgpu, accepts.

mod accepted;

use accepted::assert_accepted as validate;
use anabranch_kernel::{
    Float, LEAF, Number, Operator, Recording, Scalar, Signed, Tape, Value,
    wgsl::{BlockPlace, GROUP, Wgsl, WgslError},
};
use testing::deadline;

fn recorded(dimensions: usize, record: impl FnOnce(&Tape)) -> Recording {
    let tape = Tape::new(dimensions);
    record(&tape);
    tape.finish().expect("the kernel is right")
}

fn conversions<T: Number>(tape: &Tape) {
    let from = tape.input::<T, 1>();
    tape.output::<f32, 1>().set(from.here().convert::<f32>());
    tape.output::<f64, 1>().set(from.here().convert::<f64>());
    tape.output::<i32, 1>().set(from.here().convert::<i32>());
    tape.output::<u32, 1>().set(from.here().convert::<u32>());
    tape.output::<i64, 1>().set(from.here().convert::<i64>());
    tape.output::<u64, 1>().set(from.here().convert::<u64>());
}

fn exact<'t, T: Float + Signed>(
    tape: &'t Tape,
    operators: impl Fn(Value<'t, T>, Value<'t, T>) -> Value<'t, T>,
) {
    let (a, b) = (tape.input::<T, 2>().at_periodic([-3, 2]), tape.input::<T, 2>().at_clamped([0, 1]));
    let mut sum = operators(a, b).min(a).max(b);
    for value in [a.sqrt(), a.floor(), a.ceil(), a.round_ties_even(), a.trunc(), a.abs(), -a] {
        sum = operators(sum, value);
    }
    let mask = (a.lt(b) & a.differs(b)) | (!a.le(b) ^ a.equals(b));
    tape.output::<T, 2>().set(mask.select(sum, b));
}

#[test]
fn all_operations_and_conversions_are_accepted() {
    let _deadline = deadline();
    let all = [
        recorded(1, conversions::<f32>),
        recorded(1, conversions::<f64>),
        recorded(1, conversions::<i32>),
        recorded(1, conversions::<u32>),
        recorded(1, conversions::<i64>),
        recorded(1, conversions::<u64>),
        recorded(2, |tape| exact::<f32>(tape, |a, b| a + b * a - a / b + a % b)),
        recorded(2, |tape| exact::<f64>(tape, |a, b| a + b * a - a / b + a % b)),
        recorded(1, |tape| {
            let (a, b) = (tape.input::<f32, 1>().here(), tape.input::<f32, 1>().at_or([2], -1.0));
            let functions =
                a.exp() + a.ln() + a.sin() + a.cos() + a.tan() + a.tanh() + a.powf(b) + a.atan2(b);
            tape.output::<f32, 1>().set(functions);
        }),
    ];
    for recording in &all {
        validate(&Wgsl::new(recording).expect("WGSL has these operations"));
    }
}

#[test]
fn a_precise_shader_adds_to_each_product_what_its_compiler_does_not_know() {
    let _deadline = deadline();
    let recording = recorded(2, |tape| {
        let (a, b) = (tape.input::<f32, 2>().here(), tape.input::<f32, 2>().here());
        let (c, d) = (tape.input::<f64, 2>().here(), tape.input::<i32, 2>().here());
        let output = tape.output::<f32, 2>();
        output.set(output.fold(0..3, a * b + a, |sum, _| sum * a - b * b));
        tape.output::<f64, 2>().set(c * c + c);
        tape.output::<i32, 2>().set(d * d + d);
    });
    let precise = recording.precise();
    // Two literals, and a sum for each of the four products of floats.
    assert_eq!(precise.len(), recording.len() + 2 + 4);
    assert_ne!(precise.program_hash(), recording.program_hash());
    let zeros = &precise.parameters()[recording.parameters().len()..];
    assert!(
        matches!(zeros, [Scalar::F32(a), Scalar::F64(b)] if a.to_bits() == 1 << 31 && b.to_bits() == 1 << 63)
    );
    let shader = Wgsl::new(&precise).expect("WGSL has these operations");
    validate(&shader);
    let lines: Vec<&str> = shader.text().lines().map(str::trim).collect();
    let products = lines.iter().enumerate().filter(|(_, line)| line.contains(" * v"));
    let is_float = |at: usize| lines[at + 1].ends_with("+ v0;") || lines[at + 1].ends_with("+ v1;");
    assert_eq!(products.filter(|&(at, _)| is_float(at)).count(), 4, "{}", shader.text());
    // Without products it is the same kernel.
    let sum = recorded(1, |tape| tape.output::<f32, 1>().set(tape.input::<f32, 1>().here() + 1.0));
    assert_eq!(sum.precise().program_hash(), sum.program_hash());
}

macro_rules! integers {
    ($($number:ident),*) => {
        #[test]
        fn operations_on_integers_are_accepted() {
            let _deadline = deadline();
            $(
                let recording = recorded(3, |tape| {
                    let changed = tape.input_output::<$number, 3>();
                    let (a, b) = (changed.here(), tape.input::<$number, 3>().at_or([1, -2, 1 << 40], 7));
                    let bits = (a & b) | (a ^ !b);
                    let sum = (a << b) + (a >> b) * 3 - a / b + a % b + bits.min(a).max(b);
                    changed.set(sum + changed.index(1).convert());
                });
                validate(&Wgsl::new(&recording).expect("WGSL has these operations"));
            )*
        }
    };
}

integers!(i32, u32, i64, u64);

#[test]
fn functions_of_f64_are_refused_by_name() {
    let _deadline = deadline();
    let recording = recorded(1, |tape| tape.output::<f64, 1>().set(tape.input::<f64, 1>().here().tanh()));
    let error = Wgsl::new(&recording).expect_err("WGSL has no such function");
    assert!(matches!(&error, WgslError::Unsupported { operation, .. } if operation == "tanh"));
    assert_eq!(error.to_string(), "WGSL has no `tanh` for f64");
}

#[test]
fn a_shader_has_only_what_its_results_need() {
    let _deadline = deadline();
    let recording = recorded(1, |tape| {
        let (unused, u, v) = (tape.input::<f64, 1>(), tape.input::<f32, 1>(), tape.output::<f32, 1>());
        let _not_needed = unused.here().tanh();
        v.set(u.here() + 1.0);
    });
    let shader = Wgsl::new(&recording).expect("the tangent is not needed");
    validate(&shader);
    assert!(!shader.needs_f64());
    assert_eq!(
        shader.bindings().iter().map(|b| (b.operand, b.is_written)).collect::<Vec<_>>(),
        [(1, false), (2, true)]
    );
}

#[test]
fn a_shader_that_stores_nothing_is_accepted() {
    let _deadline = deadline();
    let recording = recorded(1, |tape| {
        let u = tape.input::<f32, 1>();
        let _not_needed = u.here() + 1.0;
    });
    validate(&Wgsl::new(&recording).expect("WGSL has these operations"));
}

fn axpy(factor: f32) -> Recording {
    recorded(1, |tape| {
        let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
        v.set(factor * u.at_periodic([-1]));
    })
}

#[test]
fn another_literal_is_another_block_of_the_same_shader() {
    let _deadline = deadline();
    let recordings = [axpy(2.0), axpy(3.0)];
    let [one, other] =
        recordings.each_ref().map(|recording| Wgsl::new(recording).expect("WGSL has these operations"));
    assert_eq!(one.text(), other.text());
    let blocks = recordings.each_ref().map(|recording| {
        let points = [[0; 3], [1, 1, 10]];
        let mut all =
            one.dispatches(points, &[[1, 1, 10]; 2], recording.parameters(), 65535).expect("it is small");
        assert_eq!((all.len(), all[0].groups), (1, [1, 1, 1]));
        all.remove(0).block
    });
    let words = blocks.each_ref().map(|block| {
        assert_eq!(block.len(), one.block_bytes());
        let words =
            block.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        words.collect::<Vec<_>>()
    });
    // The first point, the counts, rows of 16 invocations, no fold, one turn, two extents, a shift, the
    // literal, and padding.
    let expected = [0, 0, 0, 1, 1, 10, 4, 0, 1, 1, 1, 10, 1, 1, 10, 0, 0, 9, 2.0_f32.to_bits(), 0];
    assert_eq!(words[0], expected);
    assert_eq!(words[1][18], 3.0_f32.to_bits());
}

#[test]
fn dispatches_cover_each_point_once() {
    let _deadline = deadline();
    let shader = Wgsl::new(&axpy(2.0)).expect("WGSL has these operations");
    let groups = GROUP as usize;
    for (points, most) in [
        ([[0; 3], [1, 1, 1]], 1),
        ([[0, 0, 5], [1, 1, 40 * groups + 3]], 3),
        ([[0, 2, 0], [1, 45, 3]], 2),
        ([[0, 2, 0], [1, 3, 300]], 2),
        ([[0, 2, 1], [1, 45, 300]], 2),
        ([[0, 0, 3], [1, 1, (2 << 13) * groups + 5]], 200),
        ([[0, 1, 0], [2, 9000, 129]], 3000),
        ([[1, 0, 7], [6, 9, 200]], 2),
    ] {
        let [min, max] = points;
        let mut seen = std::collections::HashMap::<[u32; 3], u32>::new();
        let all = shader.dispatches(points, &[max; 2], &[Scalar::F32(1.0)], most).expect("it is small");
        for dispatch in &all {
            assert!(dispatch.groups.iter().all(|&groups| groups > 0 && groups <= most), "{dispatch:?}");
            let at = |word: usize| {
                u32::from_le_bytes(dispatch.block[4 * word..][..4].try_into().expect("four bytes"))
            };
            let (width, fold, turns) = (at(6), at(7), at(8));
            let [x, y, z] = dispatch.groups;
            let ids = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
            // As the shader finds its point.
            let lanes = ids.flat_map(|id| (0..GROUP).map(move |lane| (id, lane)));
            for (([x, y, z], lane), turn) in lanes.flat_map(|at| (0..turns).map(move |turn| (at, turn))) {
                let block = (x + z * fold) * turns + turn;
                let column = (block << width) | (lane & ((1 << width) - 1));
                let row = (y << (GROUP.trailing_zeros() - width)) | (lane >> width);
                if column < at(5) && row < at(4) {
                    let plane = if fold > 0 { 0 } else { z };
                    *seen.entry([at(0) + plane, at(1) + row, at(2) + column]).or_default() += 1;
                }
            }
        }
        let count = (0..3).map(|dim| max[dim] - min[dim]).product::<usize>();
        assert_eq!(seen.len(), count, "{points:?}");
        assert!(seen.values().all(|&times| times == 1));
        let inside =
            |point: &[u32; 3]| (0..3).all(|dim| (min[dim]..max[dim]).contains(&(point[dim] as usize)));
        assert!(seen.keys().all(inside));
    }
}

#[test]
fn what_32_bits_do_not_hold_is_refused() {
    let _deadline = deadline();
    let shader = Wgsl::new(&axpy(2.0)).expect("WGSL has these operations");
    let launch = |end: usize, extent: [usize; 3], parameters: &[Scalar]| {
        shader.dispatches([[0; 3], [1, 1, end]], &[extent, [1, 1, 4]], parameters, 65535)
    };
    let literal = [Scalar::F32(1.0)];
    assert_eq!(launch(0, [1, 1, 4], &literal), Ok(Vec::new()));
    assert!(matches!(
        launch(1, [1, 1 << 20, 1 << 12], &literal),
        Err(WgslError::TooManyElements { operand: 0, .. })
    ));
    assert!(matches!(launch((1 << 32) + 1, [1, 1, 4], &literal), Err(WgslError::TooManyPoints { .. })));
    assert!(matches!(launch(1, [1, 1, 0], &literal), Err(WgslError::Empty { operand: 0 })));
    assert!(matches!(launch(1, [1, 1, 4], &[]), Err(WgslError::Mismatch { .. })));
    assert!(matches!(launch(1, [1, 1, 4], &[Scalar::I32(1)]), Err(WgslError::Mismatch { .. })));
    let outside = WgslError::Outside { operand: 1, extent: [1, 1, 4], from: [0; 3], end: [1, 1, 5] };
    assert_eq!(launch(5, [1, 1, 4], &literal), Err(outside));
}

#[test]
fn elements_outside_of_a_buffer_without_an_edge_are_refused() {
    let _deadline = deadline();
    let recording = recorded(1, |tape| {
        let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
        v.set(u.at([-1]));
    });
    let shader = Wgsl::new(&recording).expect("WGSL has these operations");
    let launch = |points| shader.dispatches(points, &[[1, 1, 4]; 2], &[], 65535);
    assert!(launch([[0, 0, 1], [1, 1, 4]]).is_ok());
    let outside = WgslError::Outside { operand: 0, extent: [1, 1, 4], from: [0, 0, -1], end: [1, 1, 3] };
    assert_eq!(launch([[0; 3], [1, 1, 4]]), Err(outside));
}

#[test]
fn a_small_block_without_wide_numbers_is_immediate_data() {
    let _deadline = deadline();
    let place = |recording: &Recording, bytes: usize| {
        let shader = Wgsl::with_immediates(recording, bytes).expect("WGSL has these operations");
        validate(&shader);
        shader.block_place()
    };
    let small = axpy(2.0);
    let bytes = Wgsl::new(&small).expect("WGSL has these operations").block_bytes();
    assert_eq!(place(&small, 0), BlockPlace::Uniform);
    assert_eq!(place(&small, bytes - 1), BlockPlace::Uniform);
    assert_eq!(place(&small, bytes), BlockPlace::Immediate);
    let wide = recorded(1, |tape| tape.output::<f64, 1>().set(tape.input::<f64, 1>().here() * 3.0));
    assert_eq!(place(&wide, 1 << 20), BlockPlace::Uniform);
}

/// All operators, each one of an element, of a computed value and with a number that is there already.
fn reductions<T: Number>(dimensions: usize) -> Recording
where
    for<'t> Value<'t, T>: std::ops::Mul<Output = Value<'t, T>>,
{
    recorded(dimensions, |tape| {
        let (u, v) = (tape.input::<T, 3>(), tape.output::<T, 3>());
        let all =
            [Operator::Sum, Operator::Product, Operator::Min, Operator::Max, Operator::And, Operator::Or];
        for operator in all.into_iter().filter(|operator| operator.is_for(T::KIND)) {
            tape.accumulator(operator, false).combine(u.here());
            tape.accumulator(operator, true).combine(u.here() * u.at_clamped([0, 0, 1]));
            tape.accumulator(operator, false).combine_if(u.index(0).lt(3), u.here());
        }
        v.set(u.here());
    })
}

#[test]
fn reductions_are_accepted() {
    let _deadline = deadline();
    for dimensions in 0..4 {
        let all = [
            reductions::<f32>(dimensions.max(1)),
            reductions::<f64>(dimensions.max(1)),
            reductions::<i32>(dimensions.max(1)),
            reductions::<u32>(dimensions.max(1)),
            reductions::<i64>(dimensions.max(1)),
            reductions::<u64>(dimensions.max(1)),
            recorded(dimensions, |tape| tape.accumulator::<f64>(Operator::Sum, true).combine(0.5)),
        ];
        for recording in &all {
            let shader = Wgsl::with_immediates(recording, 128).expect("WGSL has these operations");
            assert_eq!(shader.combines().len(), recording.reductions().count());
            assert!(!shader.ends_at_leaves());
            validate(&shader);
            let at_leaves = Wgsl::with_immediates(&recording.ending_at_leaves(), 128);
            let at_leaves = at_leaves.expect("WGSL has these operations");
            assert!(at_leaves.ends_at_leaves());
            validate(&at_leaves);
        }
    }
}

#[test]
fn a_reduction_has_a_group_for_each_leaf() {
    let _deadline = deadline();
    let recording = reductions::<f32>(1);
    let shader = Wgsl::new(&recording).expect("WGSL has these operations");
    let groups = |points: usize, most: u32| {
        let dispatches =
            shader.dispatches([[0; 3], [1, 1, points]], &[[1, 1, points]; 16], recording.parameters(), most);
        dispatches.map(|dispatches| {
            let [dispatch] = &dispatches[..] else { panic!("a reduction is one dispatch") };
            assert_eq!(dispatch.block.len(), shader.block_bytes());
            dispatch.groups
        })
    };
    assert_eq!(groups(0, 8), Ok([1, 1, 1]));
    assert_eq!(groups(LEAF, 8), Ok([1, 1, 1]));
    assert_eq!(groups(8 * LEAF, 8), Ok([8, 1, 1]));
    assert_eq!(groups(8 * LEAF + 1, 8), Ok([5, 2, 1]));
    assert_eq!(groups(64 * LEAF, 8), Ok([8, 8, 1]));
    let at_leaves = Wgsl::new(&recording.ending_at_leaves()).expect("WGSL has these operations");
    for (points, leaves) in [(0, 0), (LEAF, 1), (9 * LEAF + 1, 10)] {
        let points = [[0; 3], [1, 1, points]];
        assert_eq!((at_leaves.leaves(points), shader.leaves(points)), (leaves, leaves.max(1)));
        let dispatches = at_leaves.dispatches(points, &[points[1]; 16], recording.parameters(), 16);
        assert_eq!(
            dispatches.map(|dispatches| dispatches.len()),
            Ok(leaves.min(1)),
            "nothing without leaves"
        );
    }
    assert!(matches!(groups(64 * LEAF + 1, 8), Err(WgslError::TooManyPoints { .. })));
    assert!(matches!(groups(u32::MAX as usize, 65535), Err(WgslError::TooManyPoints { .. })));
}

#[test]
fn folds_and_operands_of_other_ranks_are_accepted() {
    let _deadline = deadline();
    let recording = recorded(2, |tape| {
        let (a, b) = (tape.input_of_rank::<f32, 1, 2>(), tape.input_of_rank::<i32, 3, 2>());
        let (factor, v) = (tape.input_of_rank::<f32, 0, 2>(), tape.output::<f32, 2>());
        let (sum, count) = v.fold(2..9, (0.0, 0_i32), |(sum, count), k| {
            let inner = v.fold(0..3, sum, |inner, l| {
                let at = [v.point(0) + l, k - 3, 2.into()];
                inner + (b.get_periodic(at) + b.get_or(at, -1)).convert::<f32>() * a.get_clamped([l + 1])
            });
            (inner * factor.value(), count + k.value().convert::<i32>() - b.get_clamped([0.into(), k, k - 1]))
        });
        v.set(sum + count.convert::<f32>());
    });
    validate(&Wgsl::new(&recording).expect("WGSL has these operations"));
}

#[test]
fn reductions_of_folds_are_accepted() {
    let _deadline = deadline();
    for dimensions in 1..4 {
        let recording = recorded(dimensions, |tape| {
            let (a, number) = (tape.input_of_rank::<f32, 1, 1>(), tape.input_of_rank::<i32, 0, 1>());
            let (sum, greatest) =
                (tape.accumulator(Operator::Sum, true), tape.accumulator(Operator::Max, false));
            let folded = sum.fold(0..5, (0.0, 1), |(sum, count), k| {
                (sum + a.get_periodic([k + 1]) * a.get_clamped([a.point(0) + k]), count + number.value())
            });
            sum.combine(folded.0);
            greatest.combine_if(folded.0.lt(3.0), folded.1);
        });
        let shader = Wgsl::with_immediates(&recording, 128).expect("WGSL has these operations");
        assert_eq!(shader.combines().len(), 2);
        validate(&shader);
    }
}
