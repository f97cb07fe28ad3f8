//! Texts of shaders from bytes. Each one is refused with a line that it has, or is a shader whose generated
//! part is what it is for a text that does nothing: then no function of the text reaches a buffer, and the
//! generated ones check each access.
#![no_main]

#[allow(dead_code, reason = "the target has no device")]
#[path = "../../../gpu/src/program/validate.rs"]
mod validate;

mod reach;
mod text;

use anabranch::device::{DeviceInfo, DeviceKind};
use anabranch_kernel::{
    Kind,
    shader::{ElementType, Operand, Shader, ShaderError, ShaderSource},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use text::Text;

/// The bytes of immediate data that a device takes.
const IMMEDIATES: usize = 128;

/// A shader without its text.
#[derive(Arbitrary, Debug)]
struct Setup {
    dimensions: u8,
    is_grouped: bool,
    operands: [(u8, u8, Option<u8>, u8); 2],
    parameter: u8,
    has_f64: bool,
    has_i64: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'b> {
    setup: Setup,
    text: Text<'b>,
}

impl Setup {
    fn kind(&self, of: u8) -> Kind {
        let mut kinds = vec![Kind::F32, Kind::U32, Kind::I32];
        kinds.extend(self.has_f64.then_some(Kind::F64));
        kinds.extend(self.has_i64.then_some([Kind::I64, Kind::U64]).into_iter().flatten());
        kinds[usize::from(of) % kinds.len()]
    }

    fn source(&self, text: &str) -> ShaderSource {
        let operand = |name: &str, (kind, dimensions, length, access): (u8, u8, Option<u8>, u8)| Operand {
            name: name.into(),
            element: ElementType {
                kind: self.kind(kind),
                length: length.map(|length| 1 + u32::from(length % 5)),
            },
            dimensions: usize::from(dimensions % 4),
            is_read: access % 3 != 0,
            is_written: access % 3 != 1,
        };
        let [u, v] = self.operands;
        ShaderSource {
            text: text.into(),
            operands: vec![operand("u", u), operand("v", v)],
            parameters: vec![("p".into(), self.kind(self.parameter))],
            dimensions: usize::from(self.dimensions % 4),
            group: self.is_grouped.then_some([1, 2, 32]),
            zeroes_workgroup: true,
        }
    }

    /// A text that does nothing.
    fn nothing(&self) -> Shader {
        let parameters = match (self.is_grouped, self.dimensions % 4) {
            (true, _) => "id: vec3u, local: vec3u, index: u32",
            (_, 0) => "",
            (_, 1) => "x: u32",
            (_, 2) => "y: u32, x: u32",
            _ => "z: u32, y: u32, x: u32",
        };
        let name = if self.is_grouped { "group" } else { "each" };
        Shader::new(self.source(&format!("fn {name}({parameters}) {{}}"))).expect("it is right")
    }
}

/// Panics unless an error names a line that the text has.
fn check_error(error: &ShaderError, text: &str) {
    let (ShaderError::Taken { line, text: quoted, .. }
    | ShaderError::Forbidden { line, text: quoted, .. }
    | ShaderError::Unbalanced { line, text: quoted, .. }
    | ShaderError::TooLarge { line, text: quoted, .. }) = error
    else {
        return assert!(matches!(error, ShaderError::NoFunction { .. }), "{error}");
    };
    let lines: Vec<_> = text.split('\n').collect();
    assert_eq!(lines[*line as usize - 1].trim_end(), quoted, "{error}");
}

/// Panics unless an error of the compiler names a line that the text has, or says which function it must
/// have.
fn check_message(message: &str, text: &str) {
    let line = message.strip_prefix("line ").and_then(|rest| rest.split(':').next());
    match line.and_then(|line| line.parse::<usize>().ok()) {
        Some(line) => assert!(0 < line && line <= text.split('\n').count(), "{message}"),
        None => {
            assert!(message.contains("function must be") || message.contains("has panicked"), "{message}")
        }
    }
}

thread_local! {
    /// Whether the compiler runs, whose panics are errors.
    static COMPILES: Cell<bool> = const { Cell::new(false) };
}

/// A panic of the compiler does not end the process. All others do.
fn keep_panics_of_the_compiler() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !COMPILES.get() {
            end(panic);
        }
    }));
}

fuzz_target!(init: keep_panics_of_the_compiler(), |input: Input<'_>| {
    let Input { setup, text } = input;
    let text = text.written();
    let shader = match Shader::new(setup.source(&text)) {
        Ok(shader) => shader,
        Err(error) => return check_error(&error, &text),
    };
    let info = DeviceInfo {
        name: "a device".to_string(),
        kind: DeviceKind::Other,
        memory: None,
        largest_buffer: 1 << 30,
        has_f64: setup.has_f64,
        has_i64: setup.has_i64,
    };
    for (immediates, has_list) in [(0, false), (IMMEDIATES, false), (0, true)] {
        let printed = shader.print(immediates, has_list);
        COMPILES.set(true);
        let validated = validate::validate(&printed, &info);
        COMPILES.set(false);
        match validated {
            Ok(()) => reach::check(&printed, &setup.nothing().print(immediates, has_list)),
            Err(message) => check_message(&message, &text),
        }
    }
});
