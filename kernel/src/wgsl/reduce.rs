//! Shaders with reductions: a group of [`LANES`] invocations for each leaf, and a shader that combines the
//! results of leaves.
//!
//! The tree is that of [`Leaves`]. The shader of the recording leaves the result of each leaf in a buffer.
//! The other one combines up to [`COMBINED`] results that lie side by side; launched again and again, it
//! comes to one result.
//!
//! A compiler that sees a sum of products could make one operation of a product and a sum, and round once. So
//! a value goes through an operation on its bits that changes nothing, which the compiler cannot know.

use super::{
    block::Dispatch,
    combine::{COMBINED, Combine},
    error::WgslError,
    functions::Functions,
    names::name,
    text::{Binding, Wgsl},
};
use crate::{
    leaves::{LANES, LEAF, Leaves},
    number::{Kind, Scalar},
    operation::{Id, What},
    operator::Operator,
    recording::Body,
    reduction::Reduction,
};
use std::fmt::Write as _;

/// The invocations of a group that combines results.
const COMBINING: u32 = 256;

/// The most points of a launch, so that the number of each one and the sums of two such numbers have 32 bits.
const MOST_POINTS: usize = (u32::MAX - (1 << 20)) as usize;

/// What comes behind the functions `results` and `store` of a point: the bindings of the leaves, and the
/// entry point. Where a lane has `at_once` points or more, it computes the results of as many before it
/// combines them.
pub(super) fn print(body: &Body, bindings: &[Binding], at_once: u32, functions: &mut Functions) -> String {
    let (mut outside, mut start, mut end) = (String::new(), String::new(), String::new());
    for (at, (reduction, _)) in body.reductions().enumerate() {
        let Reduction { operand, kind, operator, includes_current } = reduction;
        let (number, binding) = (name(kind), bindings.len() + 1 + at);
        let _ = write!(
            outside,
            "\n@group(0) @binding({binding}) var<storage, read_write> leaves{operand}: array<{number}>;
var<workgroup> lanes{operand}: array<{number}, {LANES}>;
{}",
            combine_function(&format!("combine{operand}"), operator, kind, functions)
        );
        let _ = writeln!(start, "    var total{operand} = {};", identity(operator, kind, functions));
        let _ = writeln!(end, "    lanes{operand}[lane] = total{operand};");
        let _ = write!(
            end,
            "    workgroupBarrier();
    for (var half = {half}u; half > 0u; half = half / 2u) {{
        if lane < half {{
            lanes{operand}[lane] = combine{operand}(lanes{operand}[lane], lanes{operand}[lane + half]);
        }}
        workgroupBarrier();
    }}
",
            half = LANES / 2
        );
        let result = match includes_current {
            true => format!(
                "select(lanes{operand}[0], combine{operand}(operand{operand}[0], lanes{operand}[0]), leaf == 0u)"
            ),
            false => format!("lanes{operand}[0]"),
        };
        let _ = writeln!(
            end,
            "    if lane == 0u && is_leaf {{\n        leaves{operand}[leaf] = {result};\n    }}"
        );
    }
    let geometry = &GEOMETRIES[body.dimensions.max(1) - 1];
    let points = points(body, geometry, at_once, functions);
    let text = TEXT
        .replace("ROWS", geometry.rows)
        .replace("ROW", geometry.row)
        .replace("START", geometry.start)
        .replace("LEAF", &LEAF.to_string())
        .replace("LANES", &LANES.to_string());
    let (before, after) = text.split_once("POINTS\n").expect("the text has the place");
    format!("{outside}{before}{start}{points}{after}{end}}}\n")
}

/// The loops over the points of a lane: one with several points at once, and one for the rest.
fn points(body: &Body, geometry: &Geometry, at_once: u32, functions: &mut Functions) -> String {
    let mut loops = String::new();
    let sizes = if at_once > 1 { vec![at_once, 1] } else { vec![1] };
    for size in sizes {
        let _ = writeln!(
            loops,
            "    for (; at + {}u < end; at += {}u) {{",
            (size - 1) * LANES as u32,
            size * LANES as u32
        );
        for at in 0..size {
            let _ = writeln!(
                loops,
                "    let z{at} = launch.first_z + plane;
    let y{at} = launch.first_y + line;
    let x{at} = launch.first_x + column;
    let point{at} = results(z{at}, y{at}, x{at});"
            );
            loops += &geometry.next.replace("LANES", &LANES.to_string());
        }
        for at in 0..size {
            for (Reduction { operand, kind, operator, .. }, id) in body.reductions() {
                let value = value(body, operator, kind, id, &format!("point{at}.v{id}"), functions);
                let _ = writeln!(loops, "    total{operand} = combine{operand}(total{operand}, {value});");
            }
            let _ = writeln!(loops, "    store(point{at}, z{at}, y{at}, x{at});");
        }
        loops += "    }\n";
    }
    loops
}

/// The entry point: its leaf, and its way through the points of a lane.
const TEXT: &str = "
@compute @workgroup_size(LANES, 1, 1)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let leaf = group.y * launch.fold + group.x;
    let row = ROW;
    let rows_of_band = max(LEAFu / max(row, 1u), 1u);
    let per_band = max((row + LEAFu - 1u) / LEAFu, 1u);
    let first_row = min(leaf / per_band * rows_of_band, ROWS);
    let is_leaf = leaf == 0u || first_row < ROWS;
    let begin = leaf % per_band * LEAFu;
    let end = min(begin + LEAFu, min(rows_of_band, ROWS - first_row) * row);
START
    var at = begin + lane;
POINTS
";

/// How the points of a band are numbered, for an index space of 1, 2 and 3 dimensions.
struct Geometry {
    /// The number of rows along the first dimension, and the points of each.
    rows: &'static str,
    row: &'static str,
    /// The first point of a lane, relative to the first one of the launch.
    start: &'static str,
    /// The next one. The sums carry to the dimension before, so that it needs no division.
    next: &'static str,
}

const GEOMETRIES: [Geometry; 3] = [
    Geometry {
        rows: "launch.columns",
        row: "1u",
        start: "    let plane = 0u;
    let line = 0u;
    var column = first_row + begin + lane;",
        next: "    column += LANESu;
",
    },
    Geometry {
        rows: "launch.rows",
        row: "launch.columns",
        start: "    let plane = 0u;
    var line = first_row + (begin + lane) / launch.columns;
    var column = (begin + lane) % launch.columns;",
        next: "    line += LANESu / launch.columns;
    column += LANESu % launch.columns;
    if column >= launch.columns {
        column -= launch.columns;
        line += 1u;
    }
",
    },
    Geometry {
        rows: "launch.planes",
        row: "(launch.rows * launch.columns)",
        start: "    var plane = first_row + (begin + lane) / launch.columns / launch.rows;
    var line = (begin + lane) / launch.columns % launch.rows;
    var column = (begin + lane) % launch.columns;",
        next: "    plane += LANESu / launch.columns / launch.rows;
    line += LANESu / launch.columns % launch.rows;
    column += LANESu % launch.columns;
    if column >= launch.columns {
        column -= launch.columns;
        line += 1u;
    }
    if line >= launch.rows {
        line -= launch.rows;
        plane += 1u;
    }
",
    },
];

/// The shaders that combine the results of leaves.
pub(super) fn combines(body: &Body) -> Vec<Combine> {
    let combine = |(reduction, _): (Reduction, Id)| {
        let Reduction { operand, kind, operator, .. } = reduction;
        let mut functions = Functions::default();
        let function = combine_function("combine", operator, kind, &mut functions);
        let text = COMBINE
            .replace("NUMBER", name(kind))
            .replace("COMBINED", &COMBINED.to_string())
            .replace("COMBINING", &COMBINING.to_string());
        Combine { operand, kind, text: format!("{}{function}{text}", functions.text()) }
    };
    body.reductions().map(combine).collect()
}

/// Neighbours first, then neighbours of those.
const COMBINE: &str = "
@group(0) @binding(0) var<storage, read> values: array<NUMBER>;
@group(0) @binding(1) var<storage, read_write> results: array<NUMBER>;
var<workgroup> together: array<NUMBER, COMBINED>;

@compute @workgroup_size(COMBINING, 1, 1)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * COMBINEDu;
    let count = min(arrayLength(&values) - first, COMBINEDu);
    for (var at = lane; at < count; at += COMBININGu) {
        together[at] = values[first + at];
    }
    workgroupBarrier();
    for (var distance = 1u; distance < COMBINEDu; distance *= 2u) {
        for (var at = lane * 2u * distance; at + distance < count; at += COMBININGu * 2u * distance) {
            together[at] = combine(together[at], together[at + distance]);
        }
        workgroupBarrier();
    }
    if lane == 0u {
        results[group.x] = together[0];
    }
}
";

/// A function with two parameters that combines them.
fn combine_function(function: &str, operator: Operator, kind: Kind, functions: &mut Functions) -> String {
    let is_float = matches!(kind, Kind::F32 | Kind::F64);
    let extreme = |sign: char, functions: &mut Functions| {
        let test = format!("is_nan_{}", name(kind));
        let or_nan = if is_float { format!(" || {test}(a)") } else { String::new() };
        if is_float {
            functions.add_named(&test);
        }
        format!("select(a, b, b {sign} a{or_nan})")
    };
    let result = match operator {
        Operator::Sum => "a + b".to_string(),
        Operator::Product => "a * b".to_string(),
        Operator::Min => extreme('<', functions),
        Operator::Max => extreme('>', functions),
        Operator::And => "a & b".to_string(),
        Operator::Or => "a | b".to_string(),
    };
    let number = name(kind);
    format!("\nfn {function}(a: {number}, b: {number}) -> {number} {{\n    return {result};\n}}\n")
}

/// The identity of an operator.
fn identity(operator: Operator, kind: Kind, functions: &mut Functions) -> String {
    let float = match operator {
        Operator::Sum => -0.0_f32,
        Operator::Product => 1.0,
        Operator::Min => f32::INFINITY,
        _ => f32::NEG_INFINITY,
    };
    match (kind, operator) {
        (Kind::F32 | Kind::F64, _) => {
            functions.add_named("special");
            format!("{}(special({}u))", name(kind), float.to_bits())
        }
        (_, Operator::Sum | Operator::Or) => format!("{}(0)", name(kind)),
        (_, Operator::Product) => format!("{}(1)", name(kind)),
        (_, Operator::And) => format!("~{}(0)", name(kind)),
        (Kind::I32, Operator::Min) => "2147483647i".to_string(),
        (Kind::I32, _) => "(-2147483647i - 1i)".to_string(),
        (Kind::I64, Operator::Min) => "9223372036854775807li".to_string(),
        (Kind::I64, _) => "(-9223372036854775807li - 1li)".to_string(),
        (_, Operator::Min) => format!("~{}(0)", name(kind)),
        (..) => format!("{}(0)", name(kind)),
    }
}

/// The value of a point, whose result is `text`: see the top.
fn value(
    body: &Body,
    operator: Operator,
    kind: Kind,
    id: Id,
    text: &str,
    functions: &mut Functions,
) -> String {
    let is_computed = !matches!(body.operations[id as usize].what, What::Load(_) | What::Parameter(_));
    match kind {
        Kind::F32 if is_computed && operator == Operator::Sum => {
            functions.add(ROUNDED_F32);
            format!("rounded_f32({text})")
        }
        Kind::F64 if is_computed && operator == Operator::Sum => {
            functions.add(ROUNDED_F64);
            format!("rounded_f64({text})")
        }
        _ => text.to_string(),
    }
}

/// `width` is 0 in all launches with reductions.
const ROUNDED_F32: &str = "
fn rounded_f32(a: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(a) ^ launch.width);
}
";

const ROUNDED_F64: &str = "
fn rounded_f64(a: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(a) ^ u64(launch.width));
}
";

impl Wgsl {
    /// The shaders that combine the results of the leaves, for each reduction in the order of the operands.
    /// The shader of the recording leaves these results in storage buffers that it writes: that of the first
    /// reduction has the binding after those of the [operands](Self::bindings), and so on. If the recording
    /// [ends at leaves](Self::ends_at_leaves), these are the buffers of the operands.
    pub fn combines(&self) -> &[Combine] {
        &self.combines
    }

    /// Whether the results of the leaves are what the operands get, and nothing is combined.
    pub fn ends_at_leaves(&self) -> bool {
        self.ends_at_leaves
    }

    /// The number of results of leaves that a launch for these points leaves for each reduction. If they are
    /// combined, it is at least one, which is the identity of the operator or the number that the operand had
    /// if there are no points.
    pub fn leaves(&self, points: [[usize; 3]; 2]) -> usize {
        let least = usize::from(!self.ends_at_leaves);
        Leaves::new(self.dimensions, points).count().max(least)
    }

    /// The dispatch of a launch with reductions.
    pub(super) fn dispatch_leaves(
        &self,
        points: [[usize; 3]; 2],
        extents: &[[usize; 3]],
        parameters: &[Scalar],
        most: u32,
    ) -> Result<Vec<Dispatch>, WgslError> {
        let [min, max] = points;
        let extent = [0, 1, 2].map(|dim| max[dim].saturating_sub(min[dim]));
        let count = extent.into_iter().fold(1, usize::saturating_mul);
        let most = most as usize;
        let leaves = self.leaves(points);
        if leaves == 0 {
            return Ok(Vec::new());
        }
        if count > MOST_POINTS || max.iter().any(|&end| end > 1 << 32) || leaves.div_ceil(most) > most {
            return Err(WgslError::TooManyPoints { end: max });
        }
        let groups_y = leaves.div_ceil(most);
        let groups_x = leaves.div_ceil(groups_y);
        let head = [min, extent].into_iter().flatten().chain([0, groups_x, 1]);
        let mut block: Vec<u8> = head.flat_map(|word| (word as u32).to_le_bytes()).collect();
        if count > 0 {
            self.add_tail(&mut block, extents, parameters)?;
            self.check(points, extents, parameters)?;
        }
        // Without points none takes an element, so no edge needs one.
        block.resize(self.layout.bytes, 0);
        Ok(vec![Dispatch { block, groups: [groups_x as u32, groups_y as u32, 1] }])
    }
}
