//! Each operation on a GPU gives what it gives on the processor.

mod support;

use anabranch::device::{DeviceError, DeviceInfo, DeviceKind};
use anabranch_kernel::{Recording, Tape, Value};
use support::{Array, Elemental, gpu, on_gpu, on_processor, plain::Plain};
use testing::deadline;

/// What a result may differ by.
trait Near: Plain + Elemental {
    /// Whether a result of the GPU is near enough to that of the processor, where the bits differ. `bound` is relative.
    fn is_near(self, other: Self, bound: f64) -> bool;

    /// Whether this is an angle that drivers have no sine of.
    fn is_large(self) -> bool;
}

macro_rules! near {
    ($($number:ident $is_near:expr;)*) => {
        $(
            impl Near for $number {
                fn is_near(self, other: Self, bound: f64) -> bool {
                    let is_near: fn(Self, Self, f64) -> bool = $is_near;
                    is_near(self, other, bound)
                }

                fn is_large(self) -> bool {
                    (self as f64).abs() > 4096.0
                }
            }
        )*
    };
}

near! {
    f32 |a, b, bound| f64_near(a.into(), b.into(), bound, f32::MIN_POSITIVE.into());
    f64 |a, b, bound| f64_near(a, b, bound, f64::MIN_POSITIVE);
    i32 |a, b, _| a == b;
    u32 |a, b, _| a == b;
    i64 |a, b, _| a == b;
    u64 |a, b, _| a == b;
}

/// A driver may take numbers below the smallest normal one as zero.
fn f64_near(a: f64, b: f64, bound: f64, smallest: f64) -> bool {
    (a - b).abs() <= bound * b.abs() || (a.abs() < smallest && b.abs() <= smallest)
}

fn recorded<T: Near>(operation: usize) -> Recording {
    let tape = Tape::new(1);
    let (a, b): (Value<'_, T>, Value<'_, T>) = (tape.input::<T, 1>().here(), tape.input::<T, 1>().here());
    tape.output::<T, 1>().set(T::record(operation, a, b));
    tape.finish().expect("the kernel is right")
}

/// The relative error that an operation may have, by its place in the list of `plain`; `None` if all bits must agree. Exact are also
/// chains such as `a * b + a`, if the driver does not make one operation of two.
fn bound(operation: usize, is_float: bool, is_software: bool) -> Option<f64> {
    match operation {
        _ if !is_float => None,
        7 => Some(1e-4),
        8 | 20 | 21 | 25 => Some(1e-5),
        22..=24 => Some(1e-3),
        0..=2 | 4..=6 | 13 | 14 | 16..=19 => None,
        _ if is_software => None,
        _ => Some(1e-5),
    }
}

/// The list of `plain` has the sine, the cosine and the tangent here.
const ANGLES: std::ops::RangeInclusive<usize> = 22..=24;

fn check<T: Near>(is_float: bool)
where
    Vec<T>: Into<support::Elements>,
{
    let Some(gpu) = gpu() else { return };
    let is_software = gpu.info().kind == DeviceKind::Software;
    let lengths = [1, 63, 64, 3001];
    for (operation, n) in (0..T::OPERATIONS).flat_map(|operation| lengths.map(|n| (operation, n))) {
        let draw = |salt: u64| (0..n as u64).map(|at| T::draw(salt, at)).collect::<Vec<T>>();
        let mut arrays = [1, 2, 3].map(|salt| Array::row(draw(salt)));
        let mut expected = arrays.clone();
        let recording = recorded::<T>(operation);
        let points = [[0; 3], [1, 1, n]];
        match on_gpu(&*gpu, &recording, points, &mut arrays) {
            Err(DeviceError::Unsupported { why, .. }) if is_refused(gpu.info(), operation, &why) => continue,
            result => result.expect("the device has the operation"),
        }
        on_processor(&recording, points, &mut expected);
        let (a, b) = (arrays[0].get::<T>(), arrays[1].get::<T>());
        let results = arrays[2].get::<T>().iter().zip(expected[2].get::<T>()).enumerate();
        for (at, (&ours, &theirs)) in results {
            let is_far = ANGLES.contains(&operation) && is_float && a[at].is_large();
            let is_right = match bound(operation, is_float, is_software) {
                _ if is_far || ours.same_bits(theirs) => true,
                Some(bound) => ours.is_near(theirs, bound),
                None => !is_software && ours.is_near(theirs, 0.0),
            };
            assert!(
                is_right,
                "operation {operation} of {:?} and {:?} is {ours:?}, not {theirs:?}",
                a[at], b[at]
            );
        }
    }
}

/// Whether a device may refuse an operation for this reason.
fn is_refused(info: &DeviceInfo, operation: usize, why: &str) -> bool {
    let is_function = [7, 8, 20, 21, 22, 23, 24, 25].contains(&operation);
    (is_function && why.starts_with("WGSL has no"))
        || (!info.has_f64 && why.contains("floating"))
        || (!info.has_i64 && why.contains("integers"))
}

macro_rules! checks {
    ($($name:ident $number:ident $is_float:literal),*) => {
        $(
            #[test]
            fn $name() {
                let _deadline = deadline();
                check::<$number>($is_float);
            }
        )*
    };
}

checks!(
    operations_on_f32_agree f32 true,
    operations_on_f64_agree f64 true,
    operations_on_i32_agree i32 false,
    operations_on_u32_agree u32 false,
    operations_on_i64_agree i64 false,
    operations_on_u64_agree u64 false
);
