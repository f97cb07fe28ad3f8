//! Scans of lines. Parts of the lines are folded, the results are scanned in the same way, and then each part
//! is scanned from there (G. E. Blelloch, *Prefix sums and their applications*, CMU-CS-90-190, 1990).
//!
//! A group has a part of a long line whose elements lie side by side, and an invocation a part of any other.

use super::{GROUP, INVOCATIONS, fold, operator::Known, parameter, wgsl};
use crate::{
    array::Array,
    error::{ArrayError, Call},
    numeric::Numeric,
    shape::Lines,
};
use anabranch::{device::Wgsl, prelude::one_to_one};

/// One invocation scans a line that is not longer.
const SHORT: usize = 256;
/// The least number of elements that one invocation scans, if there are as many.
const LEAST: usize = 32;

/// Scans each line of an array that has elements.
#[track_caller]
pub(crate) fn lines<T: Numeric, const D: usize>(
    operator: Known,
    from: &Array<T, D>,
    to: &Array<T, D>,
    lines: Lines,
    call: Call,
) -> Result<(), ArrayError> {
    if lines.inner == 1 && lines.len > SHORT {
        by_groups(operator, from, to, lines, call)
    } else {
        by_invocations(operator, from, to, lines, call)
    }
}

/// The elements of a part that a group has, for each invocation. All devices have the memory for them.
fn elements_of_lane<T>() -> usize {
    32 / size_of::<T>()
}

#[track_caller]
fn by_groups<T: Numeric, const D: usize>(
    operator: Known,
    from: &Array<T, D>,
    to: &Array<T, D>,
    lines: Lines,
    call: Call,
) -> Result<(), ArrayError> {
    let depth = GROUP * elements_of_lane::<T>();
    let count = lines.len.div_ceil(depth);
    let before = match count {
        1 => None,
        _ => {
            let folds = Lines { len: count, ..lines };
            let sums = to.arrays().empty::<T, 1>([folds.elements()], call)?;
            let (whole, target) = (from.whole(), sums.buffer());
            fold::by_groups(to.arrays(), operator, from.buffer(), whole, target, lines, depth)?;
            let scanned = to.arrays().empty::<T, 1>([folds.elements()], call)?;
            self::lines(operator, &sums, &scanned, folds, call)?;
            Some(scanned)
        }
    };
    let shader = Wgsl::new(of_group::<T>(operator, before.is_some()));
    let shader = shader.groups([GROUP as u32], [lines.outer * count]).uninitialized_workgroup();
    let shader = shader.parameter("positions", parameter(lines.len)).parameter("count", parameter(count));
    scan_parts(from, before.as_ref(), to, lines.outer * count, shader)
}

/// Scans the parts, each from the scanned fold of those before it on. The shader runs over as many points as
/// there are parts.
#[track_caller]
fn scan_parts<T: Numeric, const D: usize>(
    from: &Array<T, D>,
    before: Option<&Array<T, 1>>,
    to: &Array<T, D>,
    parts: usize,
    shader: Wgsl,
) -> Result<(), ArrayError> {
    let task = to.group().task("scan").over([parts]).read(from.buffer(), from.whole());
    match before {
        None => {
            let task = to.place().of(task.write(to.buffer(), to.whole()));
            task.shader(shader.names(["from", "to"])).submit()?;
        }
        Some(before) => {
            let task = task.read(before.buffer(), before.whole()).write(to.buffer(), to.whole());
            to.place().of(task).shader(shader.names(["from", "before", "to"])).submit()?;
        }
    }
    Ok(())
}

/// The text for groups. Neighbouring invocations read and write neighbouring elements; in between, each one
/// scans elements that lie side by side in the memory of the group. There each 33rd place is empty, so that
/// the invocations find theirs in different banks.
fn of_group<T: Numeric>(operator: Known, has_before: bool) -> String {
    let elements = elements_of_lane::<T>();
    let each = |text: &dyn Fn(usize) -> String| (0..elements).map(text).collect::<String>();
    let asked = each(&|at| format!("let next{at} = from_get(first + index + {}u);\n", at * GROUP));
    let kept = each(&|at| format!("part[place(index + {}u)] = next{at};\n", at * GROUP));
    let before = match has_before {
        true => {
            "if (id.x % count() > 0u) {
                    before = before_get(id.x - 1u);
                    if (index > 0u) { before = combine(before, lanes[index - 1u]); }
                } else if (index > 0u) { before = lanes[index - 1u]; }"
        }
        false => "if (index > 0u) { before = lanes[index - 1u]; }",
    };
    let is_first = if has_before { "index == 0u && id.x % count() == 0u" } else { "index == 0u" };
    format!(
        "{combine}
        var<workgroup> part: array<{number}, {padded}>;
        var<workgroup> lanes: array<{number}, {GROUP}>;

        fn place(at: u32) -> u32 {{ return at + at / 32u; }}

        fn group(id: vec3u, local: vec3u, index: u32) {{
            let begin = id.x % count() * {depth}u;
            let first = id.x / count() * positions() + begin;
            let len = min({depth}u, positions() - begin);
            if (len == {depth}u) {{
                {asked}{kept}
            }} else {{
                for (var at = index; at < len; at = at + {GROUP}u) {{
                    part[place(at)] = from_get(first + at);
                }}
            }}
            workgroupBarrier();
            let own = index * {elements}u;
            let end = min(own + {elements}u, len);
            if (own < end) {{
                var result = part[place(own)];
                for (var at = own + 1u; at < end; at = at + 1u) {{
                    result = combine(result, part[place(at)]);
                    part[place(at)] = result;
                }}
                lanes[index] = result;
            }}
            workgroupBarrier();
            for (var distance = 1u; distance < {GROUP}u; distance = distance * 2u) {{
                let takes = index >= distance && own < end;
                var result = {number}();
                if (takes) {{ result = combine(lanes[index - distance], lanes[index]); }}
                workgroupBarrier();
                if (takes) {{ lanes[index] = result; }}
                workgroupBarrier();
            }}
            if (own < end && !({is_first})) {{
                var before = {number}();
                {before}
                for (var at = own; at < end; at = at + 1u) {{
                    part[place(at)] = combine(before, part[place(at)]);
                }}
            }}
            workgroupBarrier();
            for (var at = index; at < len; at = at + {GROUP}u) {{
                to_set(first + at, part[place(at)]);
            }}
        }}",
        combine = operator.text::<T>(),
        number = wgsl::<T>(),
        depth = GROUP * elements,
        padded = GROUP * elements / 32 * 33,
    )
}

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

#[track_caller]
fn by_invocations<T: Numeric, const D: usize>(
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
    let from_before = match before {
        None => "",
        Some(_) => "if (part > 0u) { result = combine(before_get(x - inner()), result); }",
    };
    let text = format!("{combine} fn each(x: u32) {{ {PART} {from_before} {scan} }}");
    scan_parts(from, before.as_ref(), to, invocations, with_parameters(Wgsl::new(text)))
}
