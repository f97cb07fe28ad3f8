//! What a shader reaches: the same as one whose text does nothing.

use anabranch_kernel::shader::Printed;
use std::{collections::BTreeMap, fmt::Write as _};
use wgpu::naga::{
    AddressSpace, Block, Expression, Function, Handle, Module, Statement, Type, TypeInner, front::wgsl,
};

/// Panics unless the buffers, the entry point and the generated functions are those of the other shader, and
/// no other function uses a buffer.
pub fn check(shader: &Printed, nothing: &Printed) {
    let [module, expected] = [shader, nothing].map(|shader| Shape::of(shader.text()));
    let text = shader.text();
    assert_eq!(module.buffers, expected.buffers, "{text}");
    assert_eq!(module.entry_points, expected.entry_points, "{text}");
    let own = |name: &str| name == "each" || name == "group";
    for (name, function) in expected.functions.iter().filter(|(name, _)| !own(name)) {
        assert_eq!(module.functions.get(name).map(|of| &of.shape), Some(&function.shape), "{name} in {text}");
    }
    for (name, function) in &module.functions {
        let is_generated = !own(name) && expected.functions.contains_key(name);
        assert!(is_generated || !function.uses_buffers, "{name} uses a buffer in {text}");
    }
}

/// A module, without the numbers of what is in it.
struct Shape {
    buffers: Vec<String>,
    entry_points: Vec<String>,
    functions: BTreeMap<String, OfFunction>,
}

struct OfFunction {
    shape: String,
    uses_buffers: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let module = wgsl::parse_str(text).expect("it was accepted");
        let names = Names(&module);
        let buffers = module.global_variables.iter().filter(|(_, of)| is_shared(of.space));
        let buffers = buffers
            .map(|(_, of)| format!("{:?} {:?} {:?} {}", of.name, of.space, of.binding, names.of_type(of.ty)));
        let entry_points = module.entry_points.iter().map(|of| {
            format!("{} {:?} {:?} {}", of.name, of.stage, of.workgroup_size, names.of_function(&of.function))
        });
        let functions = module.functions.iter().map(|(_, of)| {
            let shape = names.of_function(of);
            let uses_buffers = of.expressions.iter().any(|(_, expression)| {
                matches!(expression, Expression::GlobalVariable(of) if is_shared(module.global_variables[*of].space))
            });
            (of.name.clone().expect("functions have names"), OfFunction { shape, uses_buffers })
        });
        // The compiler sorts them by their uses.
        let mut buffers: Vec<_> = buffers.collect();
        buffers.sort();
        Self { buffers, entry_points: entry_points.collect(), functions: functions.collect() }
    }
}

/// Whether a variable outside of functions is more than memory of a group or an invocation.
fn is_shared(space: AddressSpace) -> bool {
    !matches!(space, AddressSpace::WorkGroup | AddressSpace::Private | AddressSpace::Function)
}

/// Names instead of numbers, which depend on what else a module has.
struct Names<'m>(&'m Module);

impl Names<'_> {
    fn of_type(&self, of: Handle<Type>) -> String {
        let Type { name, inner } = &self.0.types[of];
        match inner {
            TypeInner::Struct { members, span } => {
                let members = members.iter().map(|of| {
                    format!("{:?} {:?} {} {}", of.name, of.binding, of.offset, self.of_type(of.ty))
                });
                format!("{name:?} {span} {{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            TypeInner::Array { base, size, stride } => {
                format!("array {} {size:?} {stride}", self.of_type(*base))
            }
            TypeInner::Pointer { base, space } => format!("pointer {} {space:?}", self.of_type(*base)),
            other => format!("{other:?}"),
        }
    }

    fn of_callee(&self, of: Handle<Function>) -> &str {
        self.0.functions[of].name.as_deref().unwrap_or_default()
    }

    fn of_function(&self, of: &Function) -> String {
        let mut shape = String::new();
        for argument in &of.arguments {
            let (name, binding) = (&argument.name, &argument.binding);
            let _ = writeln!(shape, "{name:?} {binding:?} {}", self.of_type(argument.ty));
        }
        if let Some(result) = &of.result {
            let _ = writeln!(shape, "{:?} {}", result.binding, self.of_type(result.ty));
        }
        for (_, local) in of.local_variables.iter() {
            let _ = writeln!(shape, "{:?} {:?} {}", local.name, local.init, self.of_type(local.ty));
        }
        for (_, expression) in of.expressions.iter() {
            let _ = match expression {
                Expression::Compose { ty, components } => {
                    writeln!(shape, "{} {components:?}", self.of_type(*ty))
                }
                Expression::ZeroValue(ty) => writeln!(shape, "{}", self.of_type(*ty)),
                Expression::GlobalVariable(of) => writeln!(shape, "{:?}", self.0.global_variables[*of].name),
                Expression::CallResult(of) => writeln!(shape, "{}", self.of_callee(*of)),
                Expression::AtomicResult { ty, comparison } => {
                    writeln!(shape, "{} {comparison}", self.of_type(*ty))
                }
                other => writeln!(shape, "{other:?}"),
            };
        }
        self.add_block(&of.body, &mut shape);
        shape
    }

    fn add_block(&self, block: &Block, shape: &mut String) {
        shape.push_str("{\n");
        for statement in block.iter() {
            match statement {
                Statement::Block(inside) => self.add_block(inside, shape),
                Statement::If { condition, accept, reject } => {
                    let _ = writeln!(shape, "if {condition:?}");
                    [accept, reject].into_iter().for_each(|block| self.add_block(block, shape));
                }
                Statement::Switch { selector, cases } => {
                    let _ = writeln!(shape, "switch {selector:?}");
                    cases.iter().for_each(|case| self.add_block(&case.body, shape));
                }
                Statement::Loop { body, continuing, break_if } => {
                    let _ = writeln!(shape, "loop {break_if:?}");
                    [body, continuing].into_iter().for_each(|block| self.add_block(block, shape));
                }
                Statement::Call { function, arguments, result } => {
                    let _ = writeln!(shape, "{} {arguments:?} {result:?}", self.of_callee(*function));
                }
                other => {
                    let _ = writeln!(shape, "{other:?}");
                }
            }
        }
        shape.push_str("}\n");
    }
}
