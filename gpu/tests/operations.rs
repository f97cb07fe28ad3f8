//! Each operation on a GPU gives what it gives on the processor.

mod support;

use anabranch::device::{Device, DeviceError, DeviceInfo, DeviceKind};
use anabranch_kernel::{Recording, Tape, Value};
use support::{Array, Elemental, gpu, on_gpu, on_processor, plain::Plain};
use testing::deadline;

/// What a result may differ by.
trait Near: Plain + Elemental {
    /// Whether a result of the GPU is near enough to that of the processor, where the bits differ. `bound` is
    /// relative, and `slack` is not. Numbers below `smallest` may be zero.
    fn is_near(self, other: Self, bound: f64, slack: f64, smallest: f64) -> bool;

    /// The smallest normal number.
    const SMALLEST: f64;

    /// Zero for a number below the smallest normal one, with its sign.
    fn flushed(self) -> Self;

    fn to_f64(self) -> f64;
}

macro_rules! near {
    ($($number:ident $smallest:expr, $is_near:expr;)*) => {
        $(
            impl Near for $number {
                const SMALLEST: f64 = $smallest;

                fn is_near(self, other: Self, bound: f64, slack: f64, smallest: f64) -> bool {
                    let is_near: fn(Self, Self, [f64; 3]) -> bool = $is_near;
                    is_near(self, other, [bound, slack, smallest])
                }

                fn flushed(self) -> Self {
                    if (self as f64).abs() < Self::SMALLEST { self * (0 as Self) } else { self }
                }

                fn to_f64(self) -> f64 {
                    self as f64
                }
            }
        )*
    };
}

near! {
    f32 f32::MIN_POSITIVE as f64, |a, b, bounds| f64_near(a.into(), b.into(), bounds);
    f64 f64::MIN_POSITIVE, f64_near;
    i32 0.0, |a, b, _| a == b;
    u32 0.0, |a, b, _| a == b;
    i64 0.0, |a, b, _| a == b;
    u64 0.0, |a, b, _| a == b;
}

fn f64_near(a: f64, b: f64, [bound, slack, smallest]: [f64; 3]) -> bool {
    (a - b).abs() <= bound * b.abs() + slack || (a.abs() < smallest && b.abs() <= smallest)
}

fn recorded<T: Near>(operation: usize) -> Recording {
    let tape = Tape::new(1);
    let (a, b): (Value<'_, T>, Value<'_, T>) = (tape.input::<T, 1>().here(), tape.input::<T, 1>().here());
    tape.output::<T, 1>().set(T::record(operation, a, b));
    tape.finish().expect("the kernel is right")
}

/// The relative error that an operation may have, by its place in the list of `plain`; `None` if all bits
/// must agree. Exact are also chains such as `a * b + a`, if the driver does not make one operation of two.
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

/// The list of `plain` has the sine, the cosine and the tangent here. Drivers have none of large angles.
const ANGLES: std::ops::RangeInclusive<usize> = 22..=24;

/// What a result of a GPU may differ by where it is small beside the operands, or where Vulkan and its like
/// bound the error itself.
fn slack(operation: usize, a: f64, b: f64) -> f64 {
    match operation {
        9 | 10 => 1e-6 * (1.0 + a.abs()),
        11 | 12 => 1e-6 * (a.abs() + (a * b).abs()),
        21 => 1e-6,
        22..=25 => 5e-4,
        _ => 0.0,
    }
}

/// Whether drivers need not give a result that means something: a quotient by a number near the largest, an
/// angle of a point that may be taken as the origin, and the tangent where it is large.
fn is_undefined<T: Near>(operation: usize, a: T, b: T) -> bool {
    let is_near_largest = |x: T| x.to_f64().abs() > 1.0 / T::SMALLEST;
    match operation {
        3 => is_near_largest(b),
        8 => a.flushed().to_f64() == 0.0 && b.flushed().to_f64() == 0.0,
        24 => a.to_f64().tan().abs() > 100.0,
        _ => false,
    }
}

/// The list of `plain` has the conversion to the other floating-point type and back here.
const OTHER_FLOAT: usize = 28;

fn check<T: Near>(is_float: bool)
where
    Vec<T>: Into<support::Elements>,
{
    let Some(gpu) = gpu() else { return };
    let lengths = [1, 63, 64, 3001];
    let all = (0..T::OPERATIONS).flat_map(|operation| lengths.map(|n| (operation, n)));
    let wrong = all.filter_map(|(operation, n)| find_wrong::<T>(&*gpu, operation, n, is_float));
    let wrong = wrong.collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first wrong result of an operation on `n` elements. A GPU may take numbers below the smallest normal
/// one as zero, and a product with such a number may then be quite another one. So its results are compared
/// with those for zeros, too.
fn find_wrong<T: Near>(gpu: &dyn Device, operation: usize, n: usize, is_float: bool) -> Option<String>
where
    Vec<T>: Into<support::Elements>,
{
    let is_software = gpu.info().kind == DeviceKind::Software;
    let draw = |salt: u64| (0..n as u64).map(|at| T::draw(salt, at)).collect::<Vec<T>>();
    let mut arrays = [1, 2, 3].map(|salt| Array::row(draw(salt)));
    let mut expected = arrays.clone();
    let mut flushed = [1, 2, 3].map(|salt| Array::row(draw(salt).into_iter().map(T::flushed).collect()));
    let recording = recorded::<T>(operation);
    let points = [[0; 3], [1, 1, n]];
    match on_gpu(gpu, &recording, points, &mut arrays) {
        Err(DeviceError::Unsupported { why, .. }) if is_refused(gpu.info(), operation, &why) => return None,
        result => result.expect("the device has the operation"),
    }
    on_processor(&recording, points, &mut expected);
    on_processor(&recording, points, &mut flushed);
    let smallest =
        if operation == OTHER_FLOAT { T::SMALLEST.max(f32::MIN_POSITIVE.into()) } else { T::SMALLEST };
    let is_right = |ours: T, theirs: T, slack: f64| match bound(operation, is_float, is_software) {
        _ if ours.same_bits(theirs) => true,
        Some(bound) => ours.is_near(theirs, bound, slack, smallest),
        None => !is_software && ours.is_near(theirs, 0.0, slack, smallest),
    };
    let (a, b) = (arrays[0].get::<T>(), arrays[1].get::<T>());
    let [ours, theirs, with_zeros] = [&arrays, &expected, &flushed].map(|arrays| arrays[2].get::<T>());
    let at = (0..n).find(|&at| {
        let is_far = is_float && ANGLES.contains(&operation) && a[at].to_f64().abs() > 4096.0;
        if is_far || (is_float && !is_software && is_undefined(operation, a[at], b[at])) {
            return false;
        }
        let slack = if is_software { 0.0 } else { slack(operation, a[at].to_f64(), b[at].to_f64()) };
        let is_zero_right = !is_software && is_right(ours[at], with_zeros[at], slack);
        !is_right(ours[at], theirs[at], slack) && !is_zero_right
    })?;
    Some(format!(
        "operation {operation} of {:?} and {:?} is {:?}, not {:?}",
        a[at], b[at], ours[at], theirs[at]
    ))
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
