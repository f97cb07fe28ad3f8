//! The functions that a shader needs beside those of WGSL.

use super::names::name;
use crate::number::Kind;

/// The functions of a shader, in an order in which each one comes after those that it calls.
#[derive(Default)]
pub(super) struct Functions {
    texts: Vec<String>,
    needs_i64: bool,
}

/// The functions with a name, and the functions that they call.
const NAMED: [(&str, &[&str], &str); 15] = [
    ("is_nan_f32", &[], IS_NAN_F32),
    ("is_nan_f64", &[], IS_NAN_F64),
    ("special", &[], SPECIAL),
    ("odd", &[], ODD),
    ("rem_f32", &["special"], REM_F32),
    ("rem_f64", &[], REM_F64),
    ("exp_f32", &["is_nan_f32", "special"], EXP),
    ("ln_f32", &["special"], LN),
    ("sin_f32", &["special"], SIN),
    ("cos_f32", &["special"], COS),
    ("tan_f32", &["special"], TAN),
    ("tanh_f32", &["is_nan_f32"], TANH),
    ("arc", &[], ARC),
    ("atan2_f32", &["is_nan_f32", "arc"], ATAN2),
    ("powf_f32", &["is_nan_f32", "special", "odd"], POWF),
];

/// The text of a function, and the functions that it calls.
pub(super) fn text_of(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    NAMED.iter().find(|&&(known, ..)| known == name).map(|&(_, calls, text)| (calls, text))
}

impl Functions {
    pub(super) fn add(&mut self, text: &str) {
        self.needs_i64 |= text.contains("u64");
        if !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_string());
        }
    }

    pub(super) fn add_named(&mut self, name: &str) {
        let (calls, text) = text_of(name).expect("the list has all functions");
        calls.iter().for_each(|call| self.add_named(call));
        self.add(text);
    }

    /// Adds the conversion of a float to an integer: cut towards zero, limited to the range, and 0 for NaN.
    /// Returns the name of the function.
    pub(super) fn add_truncation(&mut self, from: Kind, to: Kind) -> String {
        let test = format!("is_nan_{}", name(from));
        self.add_named(&test);
        let suffix = if from == Kind::F64 { "lf" } else { "f" };
        // The first float above the range, the one at its lower end, and the integers at its ends.
        let (above, below, most, least) = match to {
            Kind::I32 => ("2147483648.0", "-2147483648.0", "2147483647i", "(-2147483647i - 1i)"),
            Kind::U32 => ("4294967296.0", "0.0", "4294967295u", "0u"),
            Kind::I64 => (
                "9223372036854775808.0",
                "-9223372036854775808.0",
                "9223372036854775807li",
                "(-9223372036854775807li - 1li)",
            ),
            Kind::U64 => ("18446744073709551616.0", "0.0", "18446744073709551615lu", "0lu"),
            Kind::Bool | Kind::F32 | Kind::F64 => unreachable!("{to} is no integer"),
        };
        let (from, to) = (name(from), name(to));
        let function = format!("{from}_to_{to}");
        self.add(&format!(
            "
fn {function}(a: {from}) -> {to} {{
    if {test}(a) {{
        return {to}(0);
    }}
    if a >= {above}{suffix} {{
        return {most};
    }}
    if a <= {below}{suffix} {{
        return {least};
    }}
    return {to}(a);
}}
"
        ));
        function
    }

    pub(super) fn needs_i64(&self) -> bool {
        self.needs_i64
    }

    pub(super) fn text(&self) -> String {
        self.texts.concat()
    }
}

/// Tests the bits, because a driver may assume that no value is NaN.
const IS_NAN_F32: &str = "
fn is_nan_f32(a: f32) -> bool {
    return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u;
}
";

const IS_NAN_F64: &str = "
fn is_nan_f64(a: f64) -> bool {
    return !(a == a);
}
";

/// A float by its bits, which no compiler refuses as a constant that is not finite.
const SPECIAL: &str = "
fn special(bits: u32) -> f32 {
    var at_run_time = bits;
    return bitcast<f32>(at_run_time);
}
";

/// Whether a float is an odd number.
const ODD: &str = "
fn odd(a: f32) -> bool {
    let half = abs(a) * 0.5;
    return abs(a) < 16777216.0 && trunc(a) == a && !(trunc(half) == half);
}
";

/// The remainder, to the bit: the mantissa of `x` takes the place of the quotient's bits, eight at a time.
const REM_F32: &str = "
fn rem_f32(x: f32, y: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let sign = bits & 0x80000000u;
    let a = bits & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    if a >= 0x7f800000u || b > 0x7f800000u || b == 0u {
        return special(0x7fc00000u);
    }
    if a < b {
        return x;
    }
    let exponent_a = max(a >> 23u, 1u);
    var exponent = max(b >> 23u, 1u);
    var rest = select(a & 0x7fffffu, (a & 0x7fffffu) | 0x800000u, a >= 0x800000u);
    let divisor = select(b & 0x7fffffu, (b & 0x7fffffu) | 0x800000u, b >= 0x800000u);
    rest = rest % divisor;
    var places = exponent_a - exponent;
    while places > 0u && rest > 0u {
        let step = min(places, 8u);
        rest = (rest << step) % divisor;
        places = places - step;
    }
    if rest == 0u {
        return special(sign);
    }
    let up = min(countLeadingZeros(rest) - 8u, exponent - 1u);
    rest = rest << up;
    exponent = exponent - up;
    if rest < 0x800000u {
        return special(sign | rest);
    }
    return special(sign | (exponent << 23u) | (rest & 0x7fffffu));
}
";

/// The same, eleven bits at a time.
const REM_F64: &str = "
fn rem_f64(x: f64, y: f64) -> f64 {
    let bits = bitcast<u64>(x);
    let sign = bits & 0x8000000000000000lu;
    let a = bits & 0x7ffffffffffffffflu;
    let b = bitcast<u64>(y) & 0x7ffffffffffffffflu;
    if a >= 0x7ff0000000000000lu || b > 0x7ff0000000000000lu || b == 0lu {
        var not_a_number = 0x7ff8000000000000lu;
        return bitcast<f64>(not_a_number);
    }
    if a < b {
        return x;
    }
    let exponent_a = max(u32(a >> 52u), 1u);
    var exponent = max(u32(b >> 52u), 1u);
    var rest = a & 0xffffffffffffflu;
    if exponent_a > 1u || a >= 0x10000000000000lu {
        rest = rest | 0x10000000000000lu;
    }
    var divisor = b & 0xffffffffffffflu;
    if exponent > 1u || b >= 0x10000000000000lu {
        divisor = divisor | 0x10000000000000lu;
    }
    rest = rest % divisor;
    var places = exponent_a - exponent;
    while places > 0u && rest > 0lu {
        let step = min(places, 11u);
        rest = (rest << step) % divisor;
        places = places - step;
    }
    var result = sign;
    if rest > 0lu {
        while rest < 0x10000000000000lu && exponent > 1u {
            rest = rest << 1u;
            exponent = exponent - 1u;
        }
        result = sign | rest;
        if rest >= 0x10000000000000lu {
            result = sign | (u64(exponent) << 52u) | (rest & 0xffffffffffffflu);
        }
    }
    return bitcast<f64>(result);
}
";

const EXP: &str = "
fn exp_f32(a: f32) -> f32 {
    if is_nan_f32(a) {
        return a;
    }
    if a > 88.72284 {
        return special(0x7f800000u);
    }
    if a < -104.0 {
        return 0.0;
    }
    // The driver may compute `exp2(a * 1.44)`, whose error grows with `a`: the exponent is taken off first.
    let whole = round(a * 1.442695);
    let rest = (a - whole * 0.693359375) + whole * 2.1219444e-4;
    // Two factors, because one may be too large or too small for a float.
    let half = i32(whole) / 2;
    return exp(rest) * power_of_two(half) * power_of_two(i32(whole) - half);
}

fn power_of_two(exponent: i32) -> f32 {
    return bitcast<f32>(u32(exponent + 127) << 23u);
}
";

const LN: &str = "
fn ln_f32(a: f32) -> f32 {
    let bits = bitcast<u32>(a);
    if (bits & 0x7fffffffu) == 0u {
        return special(0xff800000u);
    }
    if bits > 0x7f800000u {
        return special(0x7fc00000u);
    }
    if bits == 0x7f800000u {
        return a;
    }
    if bits < 0x800000u {
        // Below the normal numbers the bits are a multiple of 2 to the power of -149.
        return log(f32(bits)) - 103.27893;
    }
    return log(a);
}
";

const SIN: &str = "
fn sin_f32(a: f32) -> f32 {
    if (bitcast<u32>(a) & 0x7fffffffu) >= 0x7f800000u {
        return special(0x7fc00000u);
    }
    return sin(a);
}
";

const COS: &str = "
fn cos_f32(a: f32) -> f32 {
    if (bitcast<u32>(a) & 0x7fffffffu) >= 0x7f800000u {
        return special(0x7fc00000u);
    }
    return cos(a);
}
";

const TAN: &str = "
fn tan_f32(a: f32) -> f32 {
    if (bitcast<u32>(a) & 0x7fffffffu) >= 0x7f800000u {
        return special(0x7fc00000u);
    }
    return sin(a) / cos(a);
}
";

/// Near zero a polynomial (that of Cephes), because a quotient of exponential functions loses digits there.
const TANH: &str = "
fn tanh_f32(a: f32) -> f32 {
    if is_nan_f32(a) {
        return a;
    }
    let size = abs(a);
    if size > 9.1 {
        return sign(a);
    }
    if size < 0.625 {
        let square = a * a;
        let p = (((-5.70498872745e-3 * square + 2.06390887954e-2) * square - 5.37397155531e-2) * square
            + 1.33314422036e-1) * square - 3.33332819422e-1;
        return a + a * (square * p);
    }
    return sign(a) * (1.0 - 2.0 / (exp(2.0 * size) + 1.0));
}
";

/// The angle whose tangent is a number from 0 to 1: the polynomial of Cephes.
const ARC: &str = "
fn arc(tangent: f32) -> f32 {
    var t = tangent;
    var offset = 0.0;
    if t > 0.41421357 {
        t = (t - 1.0) / (t + 1.0);
        offset = 0.7853982;
    }
    let square = t * t;
    let p = ((8.05374449538e-2 * square - 1.38776856032e-1) * square + 1.99777106478e-1) * square - 3.33329491539e-1;
    return offset + (t + t * (square * p));
}
";

const ATAN2: &str = "
fn atan2_f32(y: f32, x: f32) -> f32 {
    if is_nan_f32(x) {
        return x;
    }
    if is_nan_f32(y) {
        return y;
    }
    let size_x = bitcast<u32>(x) & 0x7fffffffu;
    let size_y = bitcast<u32>(y) & 0x7fffffffu;
    // The inverse of a number from 2^126 on is so small that a driver may take it as zero.
    let scale = select(1.0, 0.0625, max(size_x, size_y) >= 0x7e800000u);
    let scaled = vec2(abs(x), abs(y)) * scale;
    var angle = 0.0;
    if size_x == size_y {
        // Also two zeros and two infinities.
        angle = select(0.7853982, 0.0, size_x == 0u);
    } else if size_y < size_x {
        angle = select(arc(scaled.y / scaled.x), 0.0, size_x == 0x7f800000u);
    } else {
        angle = 1.5707964 - select(arc(scaled.x / scaled.y), 0.0, size_y == 0x7f800000u);
    }
    if bitcast<u32>(x) > 0x7fffffffu {
        angle = 3.1415927 - angle;
    }
    return bitcast<f32>(bitcast<u32>(angle) | (bitcast<u32>(y) & 0x80000000u));
}
";

const POWF: &str = "
fn powf_f32(x: f32, y: f32) -> f32 {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    let size_y = bitcast<u32>(y) & 0x7fffffffu;
    if size_y == 0u || bitcast<u32>(x) == 0x3f800000u {
        return 1.0;
    }
    if is_nan_f32(x) || is_nan_f32(y) {
        return special(0x7fc00000u);
    }
    let is_negative = bitcast<u32>(x) > 0x7fffffffu;
    let sign = select(0u, 0x80000000u, is_negative && odd(y));
    let grows = bitcast<u32>(y) < 0x80000000u;
    if size_y == 0x7f800000u {
        if size == 0x3f800000u {
            return 1.0;
        }
        return special(select(0u, 0x7f800000u, (size > 0x3f800000u) == grows));
    }
    if size == 0u {
        return special(sign | select(0x7f800000u, 0u, grows));
    }
    if size == 0x7f800000u {
        return special(sign | select(0u, 0x7f800000u, grows));
    }
    if is_negative && !(trunc(y) == y) {
        return special(0x7fc00000u);
    }
    if bitcast<u32>(y) == 0x3f800000u {
        return x;
    }
    var logarithm = log2(abs(x));
    if size < 0x800000u {
        logarithm = log2(f32(size)) - 149.0;
    }
    let exponent = y * logarithm;
    var power = exp2(exponent);
    if exponent >= 128.0 {
        power = special(0x7f800000u);
    } else if exponent < -150.0 {
        power = 0.0;
    }
    return bitcast<f32>(bitcast<u32>(power) | sign);
}
";
