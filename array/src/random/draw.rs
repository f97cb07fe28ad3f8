//! Numbers of random words.

use anabranch::recorded::{Float, Value};
use std::f64::consts::TAU;

/// A number that is drawn from one word or two: an integer from all of its type, a float from `0.0..1.0`.
pub trait Draw: Sized {
    /// The number of words.
    #[doc(hidden)]
    const WORDS: usize;

    /// The number of the words. The lower one comes first.
    #[doc(hidden)]
    fn of_words(low: u32, high: u32) -> Self;

    /// The same in a recorded kernel.
    #[doc(hidden)]
    fn of_recorded_words<'t>(low: Value<'t, u32>, high: Value<'t, u32>) -> Value<'t, Self>;
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn joined_values<'t>(low: Value<'t, u32>, high: Value<'t, u32>) -> Value<'t, u64> {
    low.convert::<u64>() | high.convert::<u64>() << 32
}

/// 2⁻²⁴, the distance of neighbours among the `f32` that are drawn.
const STEP_F32: f32 = 1.0 / (1 << 24) as f32;
/// 2⁻⁵³
const STEP_F64: f64 = 1.0 / (1_u64 << 53) as f64;

macro_rules! draws {
    ($($number:ident $words:literal $drawn:expr, $recorded:expr;)*) => {$(
        impl Draw for $number {
            const WORDS: usize = $words;

            #[inline]
            fn of_words(low: u32, high: u32) -> Self {
                let drawn: fn(u32, u32) -> Self = $drawn;
                drawn(low, high)
            }

            fn of_recorded_words<'t>(low: Value<'t, u32>, high: Value<'t, u32>) -> Value<'t, Self> {
                let recorded: fn(Value<'t, u32>, Value<'t, u32>) -> Value<'t, Self> = $recorded;
                recorded(low, high)
            }
        }
    )*};
}

draws! {
    u32 1 |word, _| word, |word, _| word;
    i32 1 |word, _| word as i32, |word, _| word.convert();
    u64 2 joined, joined_values;
    i64 2 |low, high| joined(low, high) as i64, |low, high| joined_values(low, high).convert();
    f32 1 |word, _| (word >> 8) as f32 * STEP_F32, |word, _| (word >> 8).convert::<f32>() * STEP_F32;
    f64 2 |low, high| (joined(low, high) >> 11) as f64 * STEP_F64,
        |low, high| (joined_values(low, high) >> 11).convert::<f64>() * STEP_F64;
}

/// A floating-point number that is drawn from the normal distribution with the mean 0 and the variance 1.
///
/// Two uniform numbers give two normal ones: G. E. P. Box and M. E. Muller, *A note on the generation of
/// random normal deviates*, Annals of Mathematical Statistics 29 (1958),
/// <https://doi.org/10.1214/aoms/1177706645>.
pub trait Normal: Draw + Float {
    /// Two numbers of two that are uniform in `0.0..1.0`.
    #[doc(hidden)]
    fn pair(first: Self, second: Self) -> [Self; 2];

    /// The same in a recorded kernel.
    #[doc(hidden)]
    fn recorded_pair<'t>(first: Value<'t, Self>, second: Value<'t, Self>) -> [Value<'t, Self>; 2];
}

macro_rules! normals {
    ($($number:ident $step:ident)*) => {$(
        impl Normal for $number {
            #[inline]
            fn pair(first: Self, second: Self) -> [Self; 2] {
                // Above 0, so that the logarithm is finite.
                let radius = ((first + $step).ln() * -2.0).sqrt();
                let angle = second * TAU as Self;
                [radius * angle.cos(), radius * angle.sin()]
            }

            fn recorded_pair<'t>(first: Value<'t, Self>, second: Value<'t, Self>) -> [Value<'t, Self>; 2] {
                let radius = ((first + $step).ln() * -2.0).sqrt();
                let angle = second * TAU as Self;
                [radius * angle.cos(), radius * angle.sin()]
            }
        }
    )*};
}

normals!(f32 STEP_F32 f64 STEP_F64);
