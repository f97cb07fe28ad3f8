//! Reductions on a GPU: the bits of the documented tree, which are those of the host.

mod support;
#[path = "../../kernel/tests/tree/mod.rs"]
mod tree;

use anabranch::{
    device::{Batch, Device, DeviceKind, DeviceProgram, DeviceStep, Launch, Operand, Source},
    prelude::*,
};
use anabranch_kernel::{LEAF, Leaves, Number, Operator, Recording, Tape, Value, wgsl::COMBINED};
use std::sync::Arc;
use support::{Array, Elemental, Elements, gpu, on_gpu, on_processor, plain::Plain, run_on_gpu};
use testing::deadline;
use tree::Tree;

/// Index spaces of no points, of one, around the length of a leaf, and of short and long rows.
const SPACES: [(usize, [usize; 3]); 14] = [
    (0, [1, 1, 1]),
    (1, [1, 1, 0]),
    (1, [1, 1, 1]),
    (1, [1, 1, 65]),
    (1, [1, 1, LEAF]),
    (1, [1, 1, LEAF + 1]),
    (1, [1, 1, 100_003]),
    (2, [1, 5, 0]),
    (2, [1, 37, 29]),
    (2, [1, 200, 130]),
    (2, [1, 3, 9001]),
    (3, [3, 4, 5]),
    (3, [9, 40, 30]),
    (3, [3, 70, 71]),
];

/// An element: of all kinds, or a fraction whose sums depend on their order.
trait Element: Plain + Elemental {
    fn fraction(at: u64) -> Self;
}

macro_rules! elements {
    ($($float:ident)*; $($integer:ident)*) => {
        $(
            impl Element for $float {
                fn fraction(at: u64) -> Self {
                    (at.wrapping_mul(7919) % 10_007) as Self / 7.0 - 700.0
                }
            }
        )*
        $(
            impl Element for $integer {
                fn fraction(at: u64) -> Self {
                    Self::draw(5, at)
                }
            }
        )*
    };
}

elements!(f32 f64; i32 u32 i64 u64);

fn operators<T: Number>() -> impl Iterator<Item = Operator> {
    let all = [Operator::Sum, Operator::Product, Operator::Min, Operator::Max, Operator::And, Operator::Or];
    all.into_iter().filter(|operator| operator.is_for(T::KIND))
}

/// Two reductions by an operator: of the elements, and of a product where a mask is true, with the number
/// that is there.
fn record<T: Number>(dimensions: usize, operator: Operator) -> Recording
where
    for<'t> Value<'t, T>: std::ops::Mul<Output = Value<'t, T>>,
{
    let tape = Tape::new(dimensions);
    let (u, factor) = (tape.input::<T, 3>().here(), tape.input::<T, 3>().here());
    tape.accumulator(operator, false).combine(u);
    tape.accumulator(operator, true).combine_if(!u.lt(factor), u * factor);
    tape.output::<T, 3>().set(u * factor);
    tape.finish().expect("the kernel is right")
}

fn check<T: Element>(gpu: &dyn Device)
where
    Vec<T>: Into<Elements>,
    for<'t> Value<'t, T>: std::ops::Mul<Output = Value<'t, T>>,
{
    for (dimensions, operator) in
        (0..=3).flat_map(|rank| operators::<T>().map(move |operator| (rank, operator)))
    {
        // Compiled once, because that takes the driver longer than most of the launches.
        let recording = record::<T>(dimensions, operator);
        let [whole, leaves] = [recording.clone(), recording.ending_at_leaves()].map(|recording| {
            let program = gpu.compile(Source::Recording(&recording));
            (recording, program.expect("the device has these operations"))
        });
        for (_, extent) in SPACES.into_iter().filter(|space| space.0 == dimensions) {
            same::<T>(gpu, &whole, extent, [[0; 3], extent], 1);
            for points in parts(dimensions, extent) {
                // One number more, which no leaf reaches.
                same::<T>(gpu, &leaves, extent, points, Leaves::new(dimensions, points).count() + 1);
            }
        }
    }
}

/// Compares a recording on a GPU with the processor, for arrays of this extent and this number of results.
fn same<T: Element>(
    gpu: &dyn Device,
    (recording, program): &(Recording, DeviceProgram),
    extent: [usize; 3],
    points: [[usize; 3]; 2],
    numbers: usize,
) where
    Vec<T>: Into<Elements>,
{
    for of_all_kinds in [true, false] {
        let mut arrays = arrays::<T>(extent, of_all_kinds, numbers);
        let mut expected = arrays.clone();
        run_on_gpu(gpu, (recording, program), points, &mut arrays).expect("it is launched");
        on_processor(recording, points, &mut expected);
        for (operand, (ours, theirs)) in arrays.iter().zip(&expected).enumerate() {
            for (&ours, &theirs) in ours.get::<T>().iter().zip(theirs.get::<T>()) {
                assert!(
                    ours.same_bits(theirs),
                    "{recording:?} over {points:?}, {of_all_kinds}: operand {operand} is {ours:?}, not {theirs:?}"
                );
            }
        }
    }
}

/// The operands of a recording. NaN stays NaN in a sum, and its bits are not promised.
fn arrays<T: Element>(extent: [usize; 3], of_all_kinds: bool, numbers: usize) -> [Array; 5]
where
    Vec<T>: Into<Elements>,
{
    let points = extent.iter().product::<usize>() as u64;
    let element = |salt: u64, at: u64| match of_all_kinds {
        true => T::draw(salt, at),
        false => T::fraction(at + salt),
    };
    let fill = |salt: u64| (0..points).map(|at| element(salt, at)).collect::<Vec<T>>();
    let results = || Array::row(vec![T::fraction(3); numbers]);
    [
        Array::new(extent, fill(1)),
        Array::new(extent, fill(2)),
        results(),
        results(),
        Array::new(extent, fill(3)),
    ]
}

/// The whole of an index space, and what comes behind its first band.
fn parts(dimensions: usize, extent: [usize; 3]) -> [[[usize; 3]; 2]; 2] {
    let bands = Leaves::new(dimensions, [[0; 3], extent]).rows_of_band();
    let (mut behind, axis) = ([0; 3], (3 - dimensions).min(2));
    behind[axis] = bands.min(extent[axis]);
    [[[0; 3], extent], [behind, extent]]
}

fn has_all(_: &dyn Device) -> bool {
    true
}

fn has_f64(gpu: &dyn Device) -> bool {
    gpu.info().has_f64 && gpu.info().has_i64
}

fn has_i64(gpu: &dyn Device) -> bool {
    gpu.info().has_i64
}

macro_rules! types {
    ($($name:ident $number:ident $needs:ident;)*) => {
        $(
            #[test]
            fn $name() {
                let _deadline = deadline();
                let Some(gpu) = gpu() else { return };
                // Another driver may take denormal numbers for zeros, and infinities for anything.
                if $needs(&*gpu) && gpu.info().kind == DeviceKind::Software {
                    check::<$number>(&*gpu);
                }
            }
        )*
    };
}

types!(
    reductions_of_f32_have_the_bits_of_the_host f32 has_all;
    reductions_of_f64_have_the_bits_of_the_host f64 has_f64;
    reductions_of_i32_have_the_bits_of_the_host i32 has_all;
    reductions_of_u32_have_the_bits_of_the_host u32 has_all;
    reductions_of_i64_have_the_bits_of_the_host i64 has_i64;
    reductions_of_u64_have_the_bits_of_the_host u64 has_i64;
);

/// More leaves than one group combines, and sums of products that a compiler would like to contract. This
/// holds on each GPU.
#[test]
fn a_sum_of_many_leaves_has_the_bits_of_the_tree() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let points = (COMBINED as usize + 3) * LEAF + 77;
    let rt = Runtime::new().unwrap();
    let (u, total) = (rt.buffer::<f32, 1>([points]), rt.buffer::<f32, 0>([]));
    rt.task("fill")
        .over([points])
        .on(&gpu)
        .write(&u, one_to_one())
        .each(|(u,)| {
            u.set((u.index(0) % 8191).convert::<f32>());
        })
        .unwrap();
    let sum_on = |device: Option<&Arc<dyn Device>>| {
        let task = rt.task("sum").over([points]).read(&u, one_to_one());
        let task = match device {
            Some(device) => task.on(device),
            None => task.on_host(),
        };
        task.reduce(&total, sum()).each(|(u, total)| total.combine(u.here() * 0.001)).unwrap();
        rt.fence(&total).unwrap().wait().unwrap()[[]].to_bits()
    };
    let add = Tree::<f32> { identity: -0.0, combine: |a, b| a + b };
    let of = |[_, _, x]: [usize; 3]| (x % 8191) as f32 * 0.001;
    let expected = add.total(1, [[0; 3], [1, 1, points]], of).unwrap().to_bits();
    assert_eq!(sum_on(None), expected);
    assert_eq!(sum_on(Some(&gpu)), expected);
}

/// The memory of what the results of leaves go to is checked before the launch.
#[test]
fn results_of_leaves_need_memory_of_their_own() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let recording = record::<i32>(1, Operator::Sum).ending_at_leaves();
    let points = 2 * LEAF;
    let line = || Array::row(vec![1_i32; points]);
    let mut small = [line(), line(), Array::row(vec![0_i32; 1]), Array::row(vec![0_i32; 2]), line()];
    let error = on_gpu(&*gpu, &recording, [[0; 3], [1, 1, points]], &mut small).unwrap_err();
    assert!(error.to_string().contains("operand 2 gets 2 numbers of 4 bytes"), "{error}");
    let program = gpu.compile(Source::Recording(&recording)).unwrap();
    let memory = [8, 4 * points as u64].map(|bytes| gpu.allocate(bytes).unwrap());
    let operand =
        |of: usize| Operand { memory: memory[of].clone(), extent: [1, 1, points], declared: vec![] };
    let launch = Launch {
        program,
        points: [[0; 3], [1, 1, points]],
        operands: vec![operand(1), operand(1), operand(0), operand(0), operand(1)].into(),
        parameters: recording.parameters().into(),
        groups: [0; 3],
    };
    let value = gpu.submit(Batch::from([DeviceStep::Launch(launch)]));
    let error = gpu.timeline().wait(value, || gpu.poll()).unwrap_err();
    assert!(error.to_string().contains("another one is the same buffer"), "{error}");
}

/// Results of one launch are inputs of the next, in one batch and in many.
#[test]
fn results_stay_on_the_device_for_the_next_reduction() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    for threads in [1, 3] {
        let rt = Runtime::builder().threads(threads).build().unwrap();
        let (u, total) = (rt.buffer::<i32, 2>([50, 300]), rt.buffer::<i32, 0>([]));
        rt.task("fill").over([50, 300]).on(&gpu).write(&u, one_to_one()).each(|(u,)| u.set(2)).unwrap();
        rt.task("zero").over([]).write(&total, one_to_one()).each(|(total,)| total.set(0)).unwrap();
        for _ in 0..100 {
            let task = rt.task("add").over([50, 300]).on(&gpu).read(&u, one_to_one());
            task.reduce_into(&total, sum()).each(|(u, total)| total.combine(u.here())).unwrap();
        }
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 100 * 50 * 300 * 2);
        let task = rt.task("greatest").over([50, 300]).on(&gpu).read(&u, one_to_one());
        task.reduce(&total, max()).each(|(u, total)| total.combine(u.here())).unwrap();
        assert_eq!(rt.fence(&total).unwrap().wait().unwrap()[[]], 2);
    }
}
