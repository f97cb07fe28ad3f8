//! The generated part of a shader: the block of a launch, the buffers, the functions for the text, and the
//! entry point.

use super::{
    names,
    scan::scan,
    source::{Operand, ShaderSource, coordinates},
};
use crate::{
    number::Kind,
    wgsl::{
        Binding, BlockPlace,
        layout::{UNIFORM, width},
        name, points,
    },
};
use std::fmt::Write as _;

/// The words of the status: whether there was an access outside, the operand, and the index.
pub(super) const STATUS: usize = 5;

/// A shader with its generated part.
#[derive(Clone, Debug)]
pub struct Printed {
    pub(super) source: ShaderSource,
    text: String,
    pub(super) fields: Vec<Field>,
    pub(super) place: BlockPlace,
    /// The bytes of the block, without the list of boxes.
    pub(super) bytes: usize,
    /// Whether the block ends with a list of boxes.
    pub(super) has_list: bool,
    needs_f64: bool,
    needs_i64: bool,
}

/// A field of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// One of the numbers that differ between the dispatches of a launch.
    Head(usize),
    /// The first point, along a dimension.
    First(usize),
    /// The point behind the last one.
    End(usize),
    /// The extent of an operand, along a dimension.
    Extent(usize, usize),
    /// The first element that the task declares: of the smallest box around all of them.
    Min(usize, usize),
    /// The number of elements of this box along a dimension. An operand without dimensions has a 1 if the
    /// task declares its element.
    Size(usize, usize),
    /// Where the boxes of an operand begin in the list, and where they end.
    Boxes(usize),
    BoxesEnd(usize),
    Parameter(usize),
}

/// The names of the numbers that differ between the dispatches of groups: the groups of the launch, and the
/// number of the first one of the dispatch.
pub(super) const GROUP_HEAD: [&str; 4] = ["groups_z", "groups_y", "groups_x", "first_group"];

const DIMS: [&str; 3] = ["z", "y", "x"];

impl Printed {
    /// The text: that of the program, and behind it the generated part. Its entry point is
    /// [`ENTRY`](Self::ENTRY).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the entry point.
    pub const ENTRY: &str = "anabranch_main";

    /// The number of bytes of the text that are the program's.
    pub fn own(&self) -> usize {
        self.source.text.len()
    }

    /// The first line of the function that the program writes.
    pub fn signature(&self) -> String {
        self.source.signature()
    }

    /// The operands, all of them: storage buffers of group 0. The first one is binding 1, and so on. Binding
    /// 0 is the block, unless it is immediate data. The status, which the shader writes, is binding 0 of
    /// group 1.
    pub fn bindings(&self) -> impl Iterator<Item = (Binding, u64)> {
        self.source.operands.iter().enumerate().map(|(operand, of)| {
            let binding = Binding { operand, kind: of.element.kind, is_written: of.is_written };
            (binding, of.element.bytes())
        })
    }

    /// Where the shader has its block.
    pub fn block_place(&self) -> BlockPlace {
        self.place
    }

    /// The bytes of a block that is immediate data, a multiple of 16.
    pub fn block_bytes(&self) -> usize {
        self.bytes.next_multiple_of(16)
    }

    /// The invocations of a group along the dimensions x, y and z.
    pub fn group(&self) -> [u32; 3] {
        let [z, y, x] = self.source.group.unwrap_or([1, 1, crate::wgsl::GROUP]);
        [x, y, z]
    }

    /// Whether the variables that the invocations of a group share are zeros when it begins.
    pub fn zeroes_workgroup(&self) -> bool {
        self.source.zeroes_workgroup
    }

    /// Whether the shader computes with 64-bit floating-point numbers.
    pub fn needs_f64(&self) -> bool {
        self.needs_f64
    }

    /// Whether the shader computes with 64-bit integers.
    pub fn needs_i64(&self) -> bool {
        self.needs_i64
    }
}

/// The shader with its generated part.
pub(super) fn print(source: &ShaderSource, immediates: usize, has_list: bool) -> Printed {
    let fields = fields(source, has_list);
    let field_width =
        |field: &Field| if let Field::Parameter(n) = field { width(source.parameters[*n].1) } else { 4 };
    let bytes = fields
        .iter()
        .fold(0_usize, |bytes, field| bytes.next_multiple_of(field_width(field)) + field_width(field));
    // Not every device that has immediate data has numbers of 8 bytes there.
    let is_narrow = fields.iter().all(|field| field_width(field) == 4);
    let place = if has_list {
        BlockPlace::Storage
    } else if is_narrow && bytes.next_multiple_of(16) <= immediates {
        BlockPlace::Immediate
    } else if bytes <= UNIFORM {
        BlockPlace::Uniform
    } else {
        BlockPlace::Storage
    };
    let mut text = format!("{}\n", source.text);
    declare(source, &fields, place, has_list, &mut text);
    functions(source, has_list, &mut text);
    entry(source, &mut text);
    let needs = |kinds: &[Kind], words: &[&str]| {
        let operands = source.operands.iter().map(|operand| operand.element.kind);
        operands.chain(source.parameters.iter().map(|&(_, kind)| kind)).any(|kind| kinds.contains(&kind))
            || scan(&source.text).is_ok_and(|tokens| tokens.iter().any(|token| words.contains(&token.text)))
    };
    let (needs_f64, needs_i64) =
        (needs(&[Kind::F64], &["f64"]), needs(&[Kind::I64, Kind::U64], &["i64", "u64"]));
    Printed { source: source.clone(), text, fields, place, bytes, has_list, needs_f64, needs_i64 }
}

/// The fields of the block, those of 8 bytes behind the others.
fn fields(source: &ShaderSource, has_list: bool) -> Vec<Field> {
    let heads = if source.group.is_some() { GROUP_HEAD.len() } else { points::HEAD.len() };
    let mut fields: Vec<_> = (0..heads).map(Field::Head).collect();
    let dims = |dimensions: usize| 3 - dimensions..3;
    fields.extend(dims(source.dimensions).map(Field::First));
    fields.extend(dims(source.dimensions).map(Field::End));
    for (operand, of) in source.operands.iter().enumerate() {
        fields.extend(dims(of.dimensions).map(|dim| Field::Extent(operand, dim)));
        fields.extend(dims(of.dimensions).map(|dim| Field::Min(operand, dim)));
        fields.extend(dims(of.dimensions.max(1)).map(|dim| Field::Size(operand, dim)));
        if has_list && of.dimensions > 0 {
            fields.extend([Field::Boxes(operand), Field::BoxesEnd(operand)]);
        }
    }
    let mut parameters: Vec<_> = (0..source.parameters.len()).collect();
    parameters.sort_by_key(|&parameter| width(source.parameters[parameter].1));
    fields.extend(parameters.into_iter().map(Field::Parameter));
    fields
}

/// The name of a field, and its type.
fn field_name(source: &ShaderSource, field: Field) -> (String, &'static str) {
    let name_of = |what: &str, operand: usize, dim: usize| (format!("{what}{operand}_{}", DIMS[dim]), "u32");
    match field {
        Field::Head(at) if source.group.is_some() => (GROUP_HEAD[at].to_string(), "u32"),
        Field::Head(at) => (points::HEAD[at].to_string(), "u32"),
        Field::First(dim) => (format!("begin_{}", DIMS[dim]), "u32"),
        Field::End(dim) => (format!("end_{}", DIMS[dim]), "u32"),
        Field::Extent(operand, dim) => name_of("extent", operand, dim),
        Field::Min(operand, dim) => name_of("min", operand, dim),
        Field::Size(operand, dim) => name_of("size", operand, dim),
        Field::Boxes(operand) => (format!("boxes{operand}"), "u32"),
        Field::BoxesEnd(operand) => (format!("boxes{operand}_end"), "u32"),
        Field::Parameter(number) => (format!("parameter{number}"), name(source.parameters[number].1)),
    }
}

fn declare(source: &ShaderSource, fields: &[Field], place: BlockPlace, has_list: bool, text: &mut String) {
    text.push_str("struct AnabranchLaunch {\n");
    for &field in fields {
        let (name, kind) = field_name(source, field);
        let _ = writeln!(text, "    {name}: {kind},");
    }
    if has_list {
        text.push_str("    boxes: array<u32>,\n");
    }
    let variable = match place {
        BlockPlace::Immediate => "var<immediate>",
        BlockPlace::Uniform => "@group(0) @binding(0) var<uniform>",
        BlockPlace::Storage => "@group(0) @binding(0) var<storage, read>",
    };
    let _ = writeln!(text, "}}\n{variable} anabranch_launch: AnabranchLaunch;");
    for (number, operand) in source.operands.iter().enumerate() {
        let access = if operand.is_written { "read_write" } else { "read" };
        let (binding, element) = (number + 1, element(operand));
        let _ = writeln!(
            text,
            "@group(0) @binding({binding}) var<storage, {access}> anabranch_{number}: array<{element}>;"
        );
    }
    let _ = writeln!(
        text,
        "struct AnabranchStatus {{\n    is_taken: atomic<u32>,\n    words: array<u32, {}>,\n}}\n\
         @group(1) @binding(0) var<storage, read_write> anabranch_status: AnabranchStatus;",
        STATUS - 1
    );
}

fn element(operand: &Operand) -> String {
    let number = name(operand.element.kind);
    operand.element.length.map_or(number.to_string(), |length| format!("array<{number}, {length}u>"))
}

/// A number for each dimension: a `u32`, or a vector with `x` for the last dimension.
fn vector(fields: impl DoubleEndedIterator<Item = String>) -> (String, String) {
    let fields: Vec<_> = fields.rev().map(|field| format!("anabranch_launch.{field}")).collect();
    match fields.len() {
        1 => ("u32".to_string(), fields.join("")),
        length => (format!("vec{length}<u32>"), format!("vec{length}<u32>({})", fields.join(", "))),
    }
}

/// An invocation keeps an access outside in a variable of its own, and writes it to the status at its end. So
/// an access writes to no memory that others see, and a device may ask for the next element before it has
/// this one.
const OUTSIDE: &str = "
var<private> anabranch_is_outside: bool;
var<private> anabranch_outside: vec4<u32>;

fn anabranch_report() {
    if anabranch_is_outside && atomicExchange(&anabranch_status.is_taken, 1u) == 0u {
        anabranch_status.words[0] = anabranch_outside.x;
        anabranch_status.words[1] = anabranch_outside.y;
        anabranch_status.words[2] = anabranch_outside.z;
        anabranch_status.words[3] = anabranch_outside.w;
    }
}
";

fn functions(source: &ShaderSource, has_list: bool, text: &mut String) {
    text.push_str(OUTSIDE);
    if source.dimensions > 0 {
        for (function, what) in [("first_point", "begin"), ("end_point", "end")] {
            let (of, value) = vector(
                coordinates(source.dimensions)
                    .map(|at| format!("{what}_{at}"))
                    .collect::<Vec<_>>()
                    .into_iter(),
            );
            let _ = writeln!(text, "\nfn {function}() -> {of} {{\n    return {value};\n}}");
        }
    }
    for (number, operand) in source.operands.iter().enumerate() {
        accessors(number, operand, has_list, text);
    }
    for (number, (name, kind)) in source.parameters.iter().enumerate() {
        let kind = crate::wgsl::name(*kind);
        let _ =
            writeln!(text, "\nfn {name}() -> {kind} {{\n    return anabranch_launch.parameter{number};\n}}");
    }
}

/// The functions of an operand.
fn accessors(number: usize, operand: &Operand, has_list: bool, text: &mut String) {
    let Operand { name, dimensions, is_read, is_written, .. } = operand;
    let (dimensions, element) = (*dimensions, element(operand));
    let parameters = coordinates(dimensions).map(|at| format!("{at}: u32")).collect::<Vec<_>>().join(", ");
    let arguments = coordinates(dimensions).collect::<Vec<_>>().join(", ");
    has(number, operand, &parameters, has_list, text);
    let all =
        DIMS.map(|at| if coordinates(dimensions).any(|known| known == at) { at } else { "0u" }).join(", ");
    let element_at = match dimensions {
        0 => "0u".to_string(),
        1 => "x".to_string(),
        2 => format!("y * anabranch_launch.extent{number}_x + x"),
        _ => format!("(z * anabranch_launch.extent{number}_y + y) * anabranch_launch.extent{number}_x + x"),
    };
    let check = format!(
        "    let is_inside = anabranch_has{number}({arguments});
    if !is_inside {{
        anabranch_is_outside = true;
        anabranch_outside = vec4<u32>({number}u, {all});
    }}
"
    );
    if *is_read {
        // The first element is always there. An array is not what `select` takes.
        let result = match operand.element.length {
            None => format!(
                "    return select({element}(), anabranch_{number}[select(0u, {element_at}, is_inside)], is_inside);"
            ),
            Some(_) => format!(
                "    if !is_inside {{\n        return {element}();\n    }}\n    return anabranch_{number}[{element_at}];"
            ),
        };
        let _ = writeln!(text, "\nfn {name}_get({parameters}) -> {element} {{\n{check}{result}\n}}");
    }
    if *is_written {
        let comma = if dimensions > 0 { ", " } else { "" };
        let _ = writeln!(
            text,
            "\nfn {name}_set({parameters}{comma}value: {element}) {{
{check}    if is_inside {{
        anabranch_{number}[{element_at}] = value;
    }}
}}"
        );
    }
    if dimensions > 0 {
        let fields = coordinates(dimensions).map(|at| format!("extent{number}_{at}")).collect::<Vec<_>>();
        let (of, value) = vector(fields.into_iter());
        let _ = writeln!(text, "\nfn {name}_extent() -> {of} {{\n    return {value};\n}}");
    }
}

/// The function that says whether the task declares an element.
fn has(number: usize, operand: &Operand, parameters: &str, has_list: bool, text: &mut String) {
    let _ = writeln!(text, "\nfn anabranch_has{number}({parameters}) -> bool {{");
    let launch = "anabranch_launch";
    // Below the first element the difference wraps around, and is larger than any size.
    let inside = coordinates(operand.dimensions)
        .map(|at| format!("{at} - {launch}.min{number}_{at} < {launch}.size{number}_{at}"))
        .collect::<Vec<_>>();
    let inside =
        if inside.is_empty() { format!("{launch}.size{number}_x > 0u") } else { inside.join(" && ") };
    if !has_list || operand.dimensions == 0 {
        let _ = writeln!(text, "    return {inside};\n}}");
        return;
    }
    let step = 2 * operand.dimensions;
    let in_box = coordinates(operand.dimensions)
        .enumerate()
        .map(|(dim, at)| {
            let (min, size) = (2 * dim, 2 * dim + 1);
            format!("{at} - {launch}.boxes[at + {min}u] < {launch}.boxes[at + {size}u]")
        })
        .collect::<Vec<_>>()
        .join(" && ");
    let _ = writeln!(
        text,
        "    if !({inside}) {{\n        return false;\n    }}\n    \
         for (var at = {launch}.boxes{number}; at < {launch}.boxes{number}_end; at += {step}u) {{\n        \
         if {in_box} {{\n            return true;\n        }}\n    }}\n    return false;\n}}"
    );
}

fn entry(source: &ShaderSource, text: &mut String) {
    let main = Printed::ENTRY;
    let Some([z, y, x]) = source.group else {
        let arguments = coordinates(source.dimensions).collect::<Vec<_>>().join(", ");
        *text += &points::entry(main, "anabranch_launch");
        let _ = writeln!(text, "    each({arguments});\n    anabranch_report();");
        *text += points::END;
        return;
    };
    let _ = write!(
        text,
        "
@compute @workgroup_size({x}, {y}, {z})
fn {main}(
    @builtin(workgroup_id) {prefix}at: vec3<u32>,
    @builtin(num_workgroups) {prefix}count: vec3<u32>,
    @builtin(local_invocation_id) {prefix}local: vec3<u32>,
    @builtin(local_invocation_index) {prefix}index: u32,
) {{
    let {prefix}rows = {prefix}launch.groups_y;
    let {prefix}columns = {prefix}launch.groups_x;
    let {prefix}number = {prefix}launch.first_group + ({prefix}at.z * {prefix}count.y + {prefix}at.y) * {prefix}count.x + {prefix}at.x;
    if {prefix}number >= {prefix}launch.groups_z * {prefix}rows * {prefix}columns {{
        return;
    }}
    let {prefix}row = {prefix}number / {prefix}columns;
    group(
        vec3<u32>({prefix}number % {prefix}columns, {prefix}row % {prefix}rows, {prefix}row / {prefix}rows),
        {prefix}local,
        {prefix}index,
    );
    {prefix}report();
}}
",
        prefix = names::PREFIX,
    );
}
