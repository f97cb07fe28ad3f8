//! Random kernels, a step of Gray-Scott and odd shapes on a GPU, against the processor.

mod support;

use anabranch::device::DeviceKind;
use anabranch_kernel::{Input, Recording, Tape, Value};
use proptest::prelude::*;
use support::{
    Array, Elemental, Elements, gpu, on_gpu, on_processor,
    plain::{self, Edge, Node, Plain, Step, nodes},
};
use testing::deadline;

/// A grid, a part of it, and a kernel.
#[derive(Clone, Debug)]
struct Case<T> {
    extent: [usize; 3],
    part: [[usize; 3]; 2],
    seed: u64,
    nodes: Vec<Node<T>>,
}

fn case<T: Plain>() -> impl Strategy<Value = Case<T>> {
    let extent =
        (1_usize..4, 1_usize..20, prop_oneof![1_usize..12, 60_usize..140]).prop_map(|(z, y, x)| [z, y, x]);
    (extent, any::<u64>(), nodes::<T>()).prop_flat_map(|(extent, seed, nodes)| {
        let range = |size: usize| (0..size).prop_flat_map(move |min| (Just(min), min + 1..=size));
        let part = (range(extent[0]), range(extent[1]), range(extent[2]));
        part.prop_map(move |(z, y, x)| Case {
            extent,
            part: [[z.0, y.0, x.0], [z.1, y.1, x.1]],
            seed,
            nodes: nodes.clone(),
        })
    })
}

/// The operations of `plain` that floats do without rounding, if they are small whole numbers: drivers
/// compute `a * b + a * c` as `a * (b + c)`, and `a - a` as 0 even where `a` is NaN.
const EXACT: [usize; 10] = [0, 1, 2, 5, 6, 13, 14, 16, 17, 19];

/// Records an operation. A remainder keeps floats small.
fn operation<'t, T: Plain>(at: usize, is_float: bool, a: Value<'t, T>, b: Value<'t, T>) -> Value<'t, T> {
    const REMAINDER: usize = 4;
    if !is_float {
        return T::record(at, a, b);
    }
    T::record(REMAINDER, T::record(EXACT[at % EXACT.len()], a, b), a.literal(T::from_index(1021)))
}

/// A literal: a small whole number, if it is a float.
fn literal<T: Plain>(value: T, other: usize, is_float: bool) -> T {
    if is_float { T::from_index(other % 7) } else { value }
}

fn record<T: Plain>(nodes: &[Node<T>], is_float: bool) -> Recording {
    let tape = Tape::new(3);
    let inputs = [tape.input::<T, 3>(), tape.input::<T, 3>()];
    let (output, changed) = (tape.output::<T, 3>(), tape.input_output::<T, 3>());
    let mut values: Vec<Value<'_, T>> = vec![changed.here()];
    for node in nodes {
        let of = |at: usize| values[at % values.len()];
        let value = match node.step {
            Step::Load { input, offset, edge } => match edge {
                Edge::Clamped => inputs[input].at_clamped(offset),
                Edge::Periodic => inputs[input].at_periodic(offset),
                Edge::Or(value) => inputs[input].at_or(offset, literal(value, node.c, is_float)),
            },
            Step::Here { input } => inputs[input].here(),
            Step::Literal(value) => of(node.a).literal(literal(value, node.b, is_float)),
            Step::Index(dim) => output.index(dim).convert(),
            Step::Operation(operation) => self::operation(operation, is_float, of(node.a), of(node.b)),
            Step::Select(compare) => {
                plain::mask(compare, of(node.a), of(node.b), of(node.c)).select(of(node.b), of(node.c))
            }
        };
        values.push(value);
    }
    output.set(values[values.len() - 1]);
    changed.set(values[values.len() - 2]);
    tape.finish().expect("the kernel is right")
}

fn check<T: Plain + Elemental>(case: &Case<T>, is_float: bool) -> Result<(), TestCaseError>
where
    Vec<T>: Into<Elements>,
{
    let Some(gpu) = gpu() else { return Ok(()) };
    let info = gpu.info();
    // The conversions of the list need all types.
    if !info.has_f64 || !info.has_i64 {
        return Ok(());
    }
    let recording = record(&case.nodes, is_float);
    let cells = case.extent.iter().product::<usize>() as u64;
    let fill = |salt: u64| {
        (0..cells)
            .map(|at| literal(T::draw(case.seed ^ salt, at), (at * salt) as usize, is_float))
            .collect::<Vec<T>>()
    };
    let mut arrays = [1, 2, 3, 4].map(|salt| Array::new(case.extent, fill(salt)));
    let mut expected = arrays.clone();
    let result = on_gpu(&*gpu, &recording, case.part, &mut arrays);
    prop_assert!(result.is_ok(), "{result:?}");
    on_processor(&recording, case.part, &mut expected);
    for (operand, (ours, theirs)) in arrays.iter().zip(&expected).enumerate() {
        for (at, (&ours, &theirs)) in ours.get::<T>().iter().zip(theirs.get::<T>()).enumerate() {
            prop_assert!(ours == theirs, "operand {operand} at {at} is {ours:?}, not {theirs:?}");
        }
    }
    Ok(())
}

macro_rules! oracles {
    ($($name:ident $number:ident $is_float:literal),*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(case in case::<$number>()) {
                    let _deadline = deadline();
                    check(&case, $is_float)?;
                }
            )*
        }
    };
}

oracles!(
    kernels_of_f32_agree f32 true,
    kernels_of_f64_agree f64 true,
    kernels_of_i32_agree i32 false,
    kernels_of_u32_agree u32 false,
    kernels_of_i64_agree i64 false,
    kernels_of_u64_agree u64 false
);

fn laplacian<'t>(of: Input<'t, f32, 2>) -> Value<'t, f32> {
    let [up, down] = [[-1, 0], [1, 0]].map(|offset| of.at_periodic(offset));
    let [left, right] = [[0, -1], [0, 1]].map(|offset| of.at_periodic(offset));
    up + down + left + right - of.here() * 4.0
}

#[test]
fn steps_of_gray_scott_agree() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let tape = Tape::new(2);
    let (u, v) = (tape.input::<f32, 2>(), tape.input::<f32, 2>());
    let (next_u, next_v) = (tape.output::<f32, 2>(), tape.output::<f32, 2>());
    let reaction = u.here() * v.here() * v.here();
    next_u.set(u.here() + 0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u.here()));
    next_v.set(v.here() + 0.08 * laplacian(v) + reaction - 0.1 * v.here());
    let recording = tape.finish().expect("the kernel is right");
    let precise = recording.precise();
    let extent = [1, 67, 129];
    let draw =
        |salt: usize| (0..67 * 129).map(|at| ((at * 7919 + salt) % 1000) as f32 / 1000.0).collect::<Vec<_>>();
    let mut arrays = [1, 2, 3, 4].map(|salt| Array::new(extent, draw(salt)));
    for _ in 0..5 {
        let mut expected = arrays.clone();
        let mut rounded = arrays.clone();
        on_gpu(&*gpu, &recording, [[0; 3], extent], &mut arrays).expect("the device has these operations");
        on_gpu(&*gpu, &precise, [[0; 3], extent], &mut rounded).expect("the device has these operations");
        on_processor(&recording, [[0; 3], extent], &mut expected);
        for (ours, theirs) in rounded.iter().zip(&expected) {
            assert_eq!(
                ours.get::<f32>(),
                theirs.get::<f32>(),
                "a precise kernel has the bits of the processor"
            );
        }
        for (ours, theirs) in arrays.iter().zip(&expected) {
            let far = |(a, b): (&f32, &f32)| (a - b).abs() > 1e-5;
            assert!(!ours.get::<f32>().iter().zip(theirs.get::<f32>()).any(far));
            if gpu.info().kind == DeviceKind::Software {
                assert_eq!(ours.get::<f32>(), theirs.get::<f32>());
            }
        }
        arrays.swap(0, 2);
        arrays.swap(1, 3);
    }
}

#[test]
fn points_of_large_launches_are_taken_once() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let tape = Tape::new(2);
    let (u, v) = (tape.input_output::<u32, 2>(), tape.input_output::<u32, 2>());
    u.set(u.here() * 3 + v.here());
    v.set(v.here() + 1);
    let recording = tape.finish().expect("the kernel is right");
    // An invocation has one, two and four points of a row, and the last ones have fewer.
    for extent in [[1, 1, 300], [1, 1, (2 << 21) + 259], [1, 1, (4 << 21) + 777], [1, 150, 30_001]] {
        let len: usize = extent.iter().product();
        let elements = || (0..len as u32).map(|at| at.wrapping_mul(2_654_435_761)).collect::<Vec<_>>();
        let mut arrays = [elements(), elements()].map(|elements| Array::new(extent, elements));
        let points = [[0, 0, 1], extent];
        on_gpu(&*gpu, &recording, points, &mut arrays).expect("the device has these operations");
        let (ours_u, ours_v) = (arrays[0].get::<u32>(), arrays[1].get::<u32>());
        for (at, old) in elements().into_iter().enumerate() {
            let is_outside = at % extent[2] == 0;
            let new = if is_outside { [old, old] } else { [old.wrapping_mul(4), old.wrapping_add(1)] };
            assert_eq!([ours_u[at], ours_v[at]], new, "point {at} of {extent:?}");
        }
    }
}

#[test]
fn far_offsets_and_small_buffers_have_their_edges() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    for offset in [-(1_isize << 40), -9, -1, 0, 1, 9, (1 << 32) - 1, 1 << 40] {
        let tape = Tape::new(1);
        let u = tape.input::<i32, 1>();
        let value = u.at_clamped([offset]) + u.at_periodic([offset]) * 10 + u.at_or([offset], -100) * 100;
        tape.output::<i32, 1>().set(value);
        let recording = tape.finish().expect("the kernel is right");
        // The index space is larger than the buffer that the kernel takes its elements from.
        for size in [1, 2, 5] {
            let mut arrays = [Array::row((1..=size).collect::<Vec<i32>>()), Array::row(vec![0_i32; 9])];
            let mut expected = arrays.clone();
            let points = [[0; 3], [1, 1, 9]];
            on_gpu(&*gpu, &recording, points, &mut arrays).expect("the device has these operations");
            on_processor(&recording, points, &mut expected);
            assert_eq!(arrays[1].get::<i32>(), expected[1].get::<i32>(), "{offset} in {size}");
        }
    }
}

#[test]
fn no_points_and_empty_buffers_are_no_work() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let tape = Tape::new(1);
    let (from, to) = (tape.input::<u32, 1>(), tape.output::<u32, 1>());
    to.set(from.at_or([0], 7));
    let recording = tape.finish().expect("the kernel is right");
    let mut arrays = [Array::row(Vec::<u32>::new()), Array::row(vec![1_u32, 2])];
    on_gpu(&*gpu, &recording, [[0; 3], [1, 1, 0]], &mut arrays).expect("there is nothing to do");
    assert_eq!(arrays[1].get::<u32>(), [1, 2]);
    on_gpu(&*gpu, &recording, [[0; 3], [1, 1, 2]], &mut arrays).expect("all elements are outside");
    assert_eq!(arrays[1].get::<u32>(), [7, 7]);
}

#[test]
fn comparisons_of_what_is_not_a_number_agree() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let special = [0.0, -0.0, 1.0, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX];
    let pairs = || special.iter().flat_map(|&a| special.map(|b| (a, b)));
    for compare in 0..plain::COMPARISONS {
        let tape = Tape::new(1);
        let (a, b) = (tape.input::<f32, 1>(), tape.input::<f32, 1>());
        let to = tape.output::<i32, 1>();
        to.set(plain::mask(compare, a.here(), b.here(), a.at_periodic([1])).select(1, 2));
        let recording = tape.finish().expect("the kernel is right");
        let (a, b) = pairs().unzip::<_, _, Vec<_>, Vec<_>>();
        let mut arrays = [Array::row(a), Array::row(b), Array::row(vec![0_i32; 64])];
        let mut expected = arrays.clone();
        let points = [[0; 3], [1, 1, 64]];
        on_gpu(&*gpu, &recording, points, &mut arrays).expect("the device has these operations");
        on_processor(&recording, points, &mut expected);
        assert_eq!(arrays[2].get::<i32>(), expected[2].get::<i32>(), "comparison {compare}");
    }
}
