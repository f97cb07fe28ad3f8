//! The rank of a number: an integer by which numbers compare as they do on the host. That of a float is made
//! from its bits, because a driver may take it that no value is NaN, and may compare subnormal numbers as
//! zeros. All NaNs have the same rank, whatever their bits are.

use super::{run_in, wgsl};
use crate::{numeric::Numeric, place::Place};

/// How special floats rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Specials {
    /// Both zeros have the same rank. NaN is greater than all numbers.
    NanIsGreatest,
    /// Both zeros have the same rank. NaN is less than all numbers.
    NanIsLeast,
    /// `-0.0` comes before `0.0`, and NaN after all numbers.
    Sorted,
}

/// Whether the device of a place can rank these numbers. The rank of an `f64` needs another type of integers.
pub(crate) fn is_known_in<T: Numeric>(place: &Place) -> bool {
    run_in::<T>(place) && (!is_f64::<T>() || run_in::<i64>(place))
}

/// The function `rank` in WGSL.
pub(super) fn text<T: Numeric>(specials: Specials) -> String {
    let number = wgsl::<T>();
    if !T::IS_FLOAT {
        return format!("fn rank(a: {number}) -> {number} {{ return a; }}");
    }
    let (integer, most, infinity) = match is_f64::<T>() {
        true => ("i64", "0x7fffffffffffffffli", "0x7ff0000000000000li"),
        false => ("i32", "0x7fffffffi", "0x7f800000i"),
    };
    let (of_nan, negative) = match specials {
        Specials::NanIsGreatest => ("", "-size"),
        Specials::NanIsLeast => ("-", "-size"),
        Specials::Sorted => ("", "~size"),
    };
    format!(
        "fn rank(a: {number}) -> {integer} {{
            let bits = bitcast<{integer}>(a);
            let size = bits & {most};
            if (size > {infinity}) {{ return {of_nan}{most}; }}
            if (bits < {integer}(0)) {{ return {negative}; }}
            return size;
        }}"
    )
}

fn is_f64<T: Numeric>() -> bool {
    T::IS_FLOAT && size_of::<T>() == 8
}
