//! The text of a shader.

use super::{
    combine::Combine,
    coordinates::{self, coordinate},
    error::WgslError,
    functions::Functions,
    layout::Layout,
    names::name,
    points, reduce,
    text::{Binding, Wgsl},
};
use crate::{
    fold::Fold,
    number::Kind,
    operation::{Binary, Compare, Edge, Id, Operation, Unary, What},
    recording::{Body, Recording},
};
use std::fmt::Write as _;

/// The shader of a recording.
pub(super) fn print(recording: &Recording, immediates: usize) -> Result<Wgsl, WgslError> {
    let body = &recording.body;
    let needed = needed(body);
    let operations = || needed.iter().map(|&id| (id, body.operations[id as usize]));
    let loads: Vec<usize> = operations()
        .filter_map(
            |(_, operation)| if let What::Load(load) = operation.what { Some(load as usize) } else { None },
        )
        .collect();
    let bindings = bindings(body, &loads);
    let layout = layout(body, &loads, operations(), immediates);
    let mut printer = Printer { body, text: String::new(), functions: Functions::default() };
    for (id, operation) in operations() {
        printer.operation(id, operation)?;
    }
    let Printer { text: operations_text, mut functions, .. } = printer;
    let combines = reduce::combines(body);
    let around = match combines.is_empty() {
        true => points::entry_of_recording(at_once(body, &loads)),
        false => reduce::print(body, &bindings, at_once(body, &loads), &mut functions),
    };
    let mut text = layout.declare();
    for (number, binding) in bindings.iter().enumerate() {
        let access = if binding.is_written { "read_write" } else { "read" };
        let (binding_number, operand, kind) = (number + 1, binding.operand, name(binding.kind));
        let _ = writeln!(
            text,
            "@group(0) @binding({binding_number}) var<storage, {access}> operand{operand}: array<{kind}>;"
        );
    }
    text += &functions.text();
    text += &point(body, &operations_text);
    text += &around;
    let kinds = || {
        let reduced = combines.iter().map(Combine::kind);
        let bound = bindings.iter().map(|binding| binding.kind).chain(reduced);
        operations().map(|(_, operation)| operation.kind).chain(bound)
    };
    let needs_f64 = kinds().any(|kind| kind == Kind::F64);
    let needs_i64 = functions.needs_i64() || kinds().any(|kind| matches!(kind, Kind::I64 | Kind::U64));
    let loads = loads.iter().map(|&load| body.loads[load]).collect::<Vec<_>>();
    let Body { dimensions, ends_at_leaves, .. } = *body;
    let folds = body.folds.clone();
    Ok(Wgsl {
        text,
        bindings,
        layout,
        loads,
        folds,
        needs_f64,
        needs_i64,
        dimensions,
        combines,
        ends_at_leaves,
    })
}

/// The functions for one point: `results` computes what is stored and combined there, and `store` stores it.
fn point(body: &Body, operations: &str) -> String {
    let mut ids = body.stores.iter().map(|&(_, id)| id).collect::<Vec<_>>();
    ids.sort_unstable();
    ids.dedup();
    let mut fields = String::new();
    for &id in &ids {
        let _ = writeln!(fields, "    v{id}: {},", name(body.operations[id as usize].kind));
    }
    let mut values = ids.iter().map(|id| format!("v{id}")).collect::<Vec<_>>().join(", ");
    if ids.is_empty() {
        // A structure has a field.
        (fields, values) = ("    nothing: u32,\n".to_string(), "0u".to_string());
    }
    let mut stores = String::new();
    for (operand, id) in body.results() {
        let at = format!("(z * launch.extent{operand}_y + y) * launch.extent{operand}_x + x");
        let _ = writeln!(stores, "    operand{operand}[{at}] = point.v{id};");
    }
    format!(
        "
struct Results {{
{fields}}}

fn results(z: u32, y: u32, x: u32) -> Results {{
{operations}    return Results({values});
}}

fn store(point: Results, z: u32, y: u32, x: u32) {{
{stores}}}
"
    )
}

/// The number of points whose results an invocation computes before it stores or combines the first of them.
/// A GPU waits long for each element, and a device cannot know that the elements of the next point are not
/// those that it stores here.
fn at_once(body: &Body, loads: &[usize]) -> u32 {
    let is_small = body.folds.is_empty() && body.operations.len() <= MOST_OPERATIONS;
    match loads.len() {
        1..=2 if is_small && body.results().next().is_none() => 8,
        1..=4 if is_small => 4,
        5..=8 if is_small => 2,
        _ => 1,
    }
}

/// The most operations of a kernel of which a shader has several copies.
const MOST_OPERATIONS: usize = 64;

/// The operations that the results need, in their order.
fn needed(body: &Body) -> Vec<Id> {
    let mut is_needed = vec![false; body.operations.len()];
    for &(_, id) in &body.stores {
        is_needed[id as usize] = true;
    }
    for id in (0..body.operations.len()).rev() {
        if is_needed[id] {
            body.inputs(id as Id, |input| is_needed[input as usize] = true);
        }
    }
    (0..body.operations.len() as Id).filter(|&id| is_needed[id as usize]).collect()
}

fn bindings(body: &Body, loads: &[usize]) -> Vec<Binding> {
    let all = body.operands.iter().enumerate();
    all.filter_map(|(operand, of)| {
        let is_written = body.results().any(|(stored, _)| stored == operand);
        let includes_current = of.reduction.is_some_and(|reduction| reduction.includes_current);
        let is_read = includes_current || loads.iter().any(|&load| body.loads[load].operand == operand);
        (is_written || is_read).then_some(Binding { operand, kind: of.kind, is_written })
    })
    .collect()
}

fn layout(
    body: &Body,
    loads: &[usize],
    operations: impl Iterator<Item = (Id, Operation)>,
    immediates: usize,
) -> Layout {
    let mut extents: Vec<usize> = loads.iter().map(|&load| body.loads[load].operand).collect();
    extents.extend(body.results().map(|(operand, _)| operand));
    extents.sort_unstable();
    extents.dedup();
    let shifts = loads.iter().map(|&load| (load, body.loads[load]));
    let shifts = shifts.filter(|(_, load)| load.edge == Edge::Periodic).collect();
    let mut parameters = Vec::new();
    for (_, Operation { what, kind }) in operations {
        match what {
            What::Parameter(number) => parameters.push((number, kind)),
            What::BeginIteration(fold) => {
                let range = body.folds[fold as usize].range;
                parameters.extend(range.map(|number| (number, Kind::U32)));
            }
            What::Load(load) => {
                let load = &body.loads[load as usize];
                let numbers = load.along.iter().filter_map(|along| along.number);
                parameters.extend(numbers.map(|number| (number, Kind::U32)));
                if let Edge::Parameter(number) = load.edge {
                    parameters.push((number, kind));
                }
            }
            _ => {}
        }
    }
    Layout::new(extents, shifts, parameters, immediates)
}

struct Printer<'a> {
    body: &'a Body,
    text: String,
    functions: Functions,
}

impl Printer<'_> {
    /// Prints an operation, whose result is the variable `v` and its number.
    fn operation(&mut self, id: Id, Operation { what, kind }: Operation) -> Result<(), WgslError> {
        let value = match what {
            What::Load(load) => {
                self.load(id, load as usize);
                return Ok(());
            }
            What::BeginIteration(fold) => {
                self.begin_fold(id, fold);
                return Ok(());
            }
            What::EndIteration(fold) => {
                self.end_fold(fold);
                return Ok(());
            }
            What::State(fold, at) | What::Folded(fold, at) => format!("state{fold}_{at}"),
            What::Parameter(number) => format!("launch.literal{number}"),
            What::Index(dim) => ["z", "y", "x"][dim].to_string(),
            What::Unary(what, a) => self.unary(what, kind, a)?,
            What::Binary(what, a, b) => self.binary(what, kind, a, b)?,
            What::Compare(what, a, b) => compare(what, a, b),
            What::Select(mask, a, b) => format!("select(v{b}, v{a}, v{mask})"),
            What::Convert(a) => self.convert(self.body.operations[a as usize].kind, kind, a),
        };
        let _ = writeln!(self.text, "    let v{id} = {value};");
        Ok(())
    }

    /// Begins the loop of a fold.
    fn begin_fold(&mut self, id: Id, fold: u32) {
        let Fold { range: [from, to], states, .. } = &self.body.folds[fold as usize];
        for (at, state) in states.iter().enumerate() {
            let _ = writeln!(self.text, "    var state{fold}_{at} = v{};", state.first);
        }
        let _ = writeln!(
            self.text,
            "    for (var v{id} = launch.literal{from}; v{id} < launch.literal{to}; v{id}++) {{"
        );
    }

    /// Ends it. What an iteration has computed is in variables that do not change.
    fn end_fold(&mut self, fold: u32) {
        for (at, state) in self.body.folds[fold as usize].states.iter().enumerate() {
            let _ = writeln!(self.text, "    state{fold}_{at} = v{};", state.next);
        }
        self.text += "    }\n";
    }

    fn load(&mut self, id: Id, number: usize) {
        let load = &self.body.loads[number];
        let [z, y, x] = [0, 1, 2].map(|dim| coordinate(load, number, dim, &self.body.folds));
        for function in [coordinates::CLAMPED_UP, coordinates::CLAMPED_DOWN, coordinates::PERIODIC] {
            let (_, name) = function.split_once("fn ").expect("a function has a name");
            let name = &name[..=name.find('(').expect("a function has parameters")];
            if [&z, &y, &x].iter().any(|at| at.text.starts_with(name)) {
                self.functions.add(function);
            }
        }
        let operand = load.operand;
        let at = format!(
            "({} * launch.extent{operand}_y + {}) * launch.extent{operand}_x + {}",
            z.text, y.text, x.text
        );
        let inside: Vec<_> = [z, y, x].into_iter().filter_map(|at| at.inside).collect();
        let (Edge::Parameter(outside), false) = (load.edge, inside.is_empty()) else {
            let _ = writeln!(self.text, "    let v{id} = operand{operand}[{at}];");
            return;
        };
        let _ = writeln!(
            self.text,
            "    var v{id} = launch.literal{outside};\n    if {} {{\n        v{id} = operand{operand}[{at}];\n    }}",
            inside.join(" && ")
        );
    }

    fn unary(&mut self, what: Unary, kind: Kind, a: Id) -> Result<String, WgslError> {
        let kind_name = name(kind);
        let is_float = matches!(kind, Kind::F32 | Kind::F64);
        Ok(match what {
            Unary::Neg => format!("-v{a}"),
            Unary::Not if kind == Kind::Bool => format!("!v{a}"),
            Unary::Not => format!("~v{a}"),
            Unary::Abs if is_float => format!("abs(v{a})"),
            Unary::Abs => format!("select(v{a}, -v{a}, v{a} < {kind_name}(0))"),
            Unary::Sqrt => format!("sqrt(v{a})"),
            Unary::Floor => format!("floor(v{a})"),
            Unary::Ceil => format!("ceil(v{a})"),
            Unary::Round if kind == Kind::F64 => round_f64(a),
            Unary::Round => format!("round(v{a})"),
            // As `round`, some drivers have a `trunc` that loses the sign of a zero in double precision.
            Unary::Trunc if kind == Kind::F64 => {
                format!("select(ceil(v{a}), floor(v{a}), v{a} > f64(0))")
            }
            Unary::Trunc => format!("trunc(v{a})"),
            Unary::Exp | Unary::Ln | Unary::Sin | Unary::Cos | Unary::Tan | Unary::Tanh => {
                let function = match what {
                    Unary::Exp => "exp",
                    Unary::Ln => "ln",
                    Unary::Sin => "sin",
                    Unary::Cos => "cos",
                    Unary::Tan => "tan",
                    _ => "tanh",
                };
                self.function(function, kind)?;
                format!("{function}_f32(v{a})")
            }
        })
    }

    fn binary(&mut self, what: Binary, kind: Kind, a: Id, b: Id) -> Result<String, WgslError> {
        let is_float = matches!(kind, Kind::F32 | Kind::F64);
        let bits = if matches!(kind, Kind::I64 | Kind::U64) { 63 } else { 31 };
        // The lower 32 bits of a count are enough.
        let count = format!("({} & {bits}u)", self.convert(kind, Kind::U32, b));
        Ok(match what {
            Binary::Add => format!("v{a} + v{b}"),
            Binary::Sub => format!("v{a} - v{b}"),
            Binary::Mul => format!("v{a} * v{b}"),
            // Of integers, WGSL divides by zero and negates the least one as the processor does here.
            Binary::Div => format!("v{a} / v{b}"),
            Binary::Rem if !is_float => format!("v{a} % v{b}"),
            Binary::Rem => {
                self.functions.add_named(&format!("rem_{}", name(kind)));
                format!("rem_{}(v{a}, v{b})", name(kind))
            }
            Binary::Min | Binary::Max => {
                let sign = if what == Binary::Min { '<' } else { '>' };
                let not_a_number = if is_float { self.is_nan(kind, a) } else { "false".to_string() };
                format!("select(v{a}, v{b}, v{b} {sign} v{a} || {not_a_number})")
            }
            Binary::Pow => {
                self.function("powf", kind)?;
                format!("powf_f32(v{a}, v{b})")
            }
            Binary::Atan2 => {
                self.function("atan2", kind)?;
                format!("atan2_f32(v{a}, v{b})")
            }
            Binary::BitAnd => format!("v{a} & v{b}"),
            Binary::BitOr => format!("v{a} | v{b}"),
            Binary::BitXor => format!("v{a} ^ v{b}"),
            Binary::Shl => format!("v{a} << {count}"),
            Binary::Shr => format!("v{a} >> {count}"),
        })
    }

    /// Adds a function that only `f32` has.
    fn function(&mut self, function: &str, kind: Kind) -> Result<(), WgslError> {
        if kind != Kind::F32 {
            return Err(WgslError::Unsupported { operation: function.to_string(), kind });
        }
        self.functions.add_named(&format!("{function}_f32"));
        Ok(())
    }

    fn is_nan(&mut self, kind: Kind, a: Id) -> String {
        self.functions.add_named(&format!("is_nan_{}", name(kind)));
        format!("is_nan_{}(v{a})", name(kind))
    }

    /// A conversion as `as` does it.
    fn convert(&mut self, from: Kind, to: Kind, a: Id) -> String {
        let is_float = |kind| matches!(kind, Kind::F32 | Kind::F64);
        let (is_wide, is_signed) =
            (|kind| matches!(kind, Kind::I64 | Kind::U64), |kind| matches!(kind, Kind::I32 | Kind::I64));
        if from == to {
            return format!("v{a}");
        }
        if is_float(from) && !is_float(to) {
            return format!("{}(v{a})", self.functions.add_truncation(from, to));
        }
        if is_float(to) || is_signed(from) == is_signed(to) {
            return format!("{}(v{a})", name(to));
        }
        // The width changes first, which extends the sign of the value; then the sign does.
        let wide = match (is_signed(from), is_wide(to)) {
            (true, true) => Kind::I64,
            (true, false) => Kind::I32,
            (false, true) => Kind::U64,
            (false, false) => Kind::U32,
        };
        if wide == from {
            return format!("bitcast<{}>(v{a})", name(to));
        }
        format!("bitcast<{}>({}(v{a}))", name(to), name(wide))
    }
}

fn compare(what: Compare, a: Id, b: Id) -> String {
    match what {
        Compare::Lt => format!("v{a} < v{b}"),
        Compare::Le => format!("v{a} <= v{b}"),
        Compare::Eq => format!("v{a} == v{b}"),
        // Compilers of WGSL turn `!=` into an ordered comparison, which is false for NaN.
        Compare::Ne => format!("!(v{a} == v{b})"),
        Compare::And => format!("v{a} && v{b}"),
        Compare::Or => format!("v{a} || v{b}"),
        Compare::Xor => format!("v{a} != v{b}"),
    }
}

/// Rounds in double precision by `floor`. Some drivers (lavapipe of Mesa 22 on processors without AVX-512)
/// have a `round` that loses the sign of a zero and leaves large numbers as they are.
fn round_f64(a: Id) -> String {
    let (whole, part) = (format!("floor(v{a})"), format!("(v{a} - floor(v{a}))"));
    let is_odd = format!("floor({whole} / f64(2)) * f64(2) != {whole}");
    let up = format!("select(f64(0), f64(1), {part} > f64(0.5) || ({part} == f64(0.5) && {is_odd}))");
    let is_small = format!("v{a} < f64(0) && v{a} >= f64(-0.5)");
    format!("select(select({whole} + {up}, -f64(0), {is_small}), v{a}, v{a} == f64(0))")
}
