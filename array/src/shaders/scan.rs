//! Scans of lines. Each invocation folds a part of a line, the results are scanned in the same way, and then each invocation scans its part
//! from there (G. E. Blelloch, *Prefix sums and their applications*, CMU-CS-90-190, 1990).

use super::{INVOCATIONS, operator::Known, parameter};
use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape::Lines,
};
use anabranch::{device::Wgsl, prelude::one_to_one};

/// The least number of elements that one invocation scans, if there are as many.
const LEAST: usize = 32;

/// Where the part of an invocation is: from `at` to `end` along the line whose first element is `first`.
const PART: &str = "
        let column = x % inner();
        let row = x / inner();
        let part = row % count();
        let first = row / count() * positions() * inner() + column;
        var at = part * depth();
        let end = min(at + depth(), positions());
        var result = from_get(first + at * inner());
";

/// Scans each line of an array that has elements.
#[track_caller]
pub(crate) fn lines<T: Numeric, const D: usize>(
    operator: Known,
    from: &Array<T, D>,
    to: &Array<T, D>,
    lines: Lines,
    call: Call,
) -> Result<(), ArrayError> {
    let Lines { outer, len, inner } = lines;
    let count = (INVOCATIONS / (outer * inner)).clamp(1, len.div_ceil(LEAST));
    let depth = len.div_ceil(count);
    let count = len.div_ceil(depth);
    let with_parameters = |shader: Wgsl| {
        let shader = shader.parameter("positions", parameter(len)).parameter("inner", parameter(inner));
        shader.parameter("count", parameter(count)).parameter("depth", parameter(depth))
    };
    let invocations = outer * count * inner;
    let combine = operator.text::<T>();
    let before = match count {
        1 => None,
        _ => {
            let text = format!(
                "{combine} fn each(x: u32) {{ {PART}
                for (at = at + 1u; at < end; at = at + 1u) {{
                    result = combine(result, from_get(first + at * inner()));
                }}
                sums_set(x, result); }}"
            );
            let sums = to.arrays().empty::<T, 1>([invocations], call)?;
            let task = to.group().task("scan").over([invocations]).read(from.buffer(), from.whole());
            let task = to.place().of(task.write(sums.buffer(), one_to_one()));
            task.shader(with_parameters(Wgsl::new(text).names(["from", "sums"]))).submit()?;
            let scanned = to.arrays().empty::<T, 1>([invocations], call)?;
            self::lines(operator, &sums, &scanned, Lines { len: count, ..lines }, call)?;
            Some(scanned)
        }
    };
    let scan = "to_set(first + at * inner(), result);
        for (at = at + 1u; at < end; at = at + 1u) {
            result = combine(result, from_get(first + at * inner()));
            to_set(first + at * inner(), result);
        }";
    let task = to.group().task("scan").over([invocations]).read(from.buffer(), from.whole());
    match before {
        None => {
            let text = format!("{combine} fn each(x: u32) {{ {PART} {scan} }}");
            let shader = with_parameters(Wgsl::new(text).names(["from", "to"]));
            to.place().of(task.write(to.buffer(), to.whole())).shader(shader).submit()?;
        }
        Some(before) => {
            let text = format!(
                "{combine} fn each(x: u32) {{ {PART}
                if (part > 0u) {{ result = combine(before_get(x - inner()), result); }}
                {scan} }}"
            );
            let shader = with_parameters(Wgsl::new(text).names(["from", "before", "to"]));
            let task = task.read(before.buffer(), before.whole()).write(to.buffer(), to.whole());
            to.place().of(task).shader(shader).submit()?;
        }
    }
    Ok(())
}
