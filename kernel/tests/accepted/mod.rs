//! What naga, the compiler of wgpu, accepts.

use anabranch_kernel::wgsl::{BlockPlace, Wgsl};
use naga::{
    Module,
    valid::{Capabilities, ValidationFlags, Validator},
};

/// The shader as naga has it, or what it says about the text. It may use what is needed, and nothing else.
pub fn module(text: &str, has_f64: bool, has_i64: bool, place: BlockPlace) -> Result<Module, String> {
    let module = naga::front::wgsl::parse_str(text)
        .map_err(|error| format!("{}\n{text}", error.emit_to_string(text)))?;
    let mut needed = Capabilities::empty();
    needed.set(Capabilities::FLOAT64, has_f64);
    needed.set(Capabilities::SHADER_INT64, has_i64);
    needed.set(Capabilities::IMMEDIATES, place == BlockPlace::Immediate);
    match Validator::new(ValidationFlags::all(), needed).validate(&module) {
        Ok(_) => Ok(module),
        Err(error) => Err(format!("{}\n{text}", error.emit_to_string(text))),
    }
}

/// Panics unless naga accepts the shader of a recording, and those that combine its results.
#[allow(dead_code, reason = "shaders of programs are no recordings")]
pub fn assert_accepted(shader: &Wgsl) {
    let texts = shader.combines().iter().map(|combine| combine.text());
    for text in texts.chain([shader.text()]) {
        let module = module(text, shader.needs_f64(), shader.needs_i64(), shader.block_place());
        module.unwrap_or_else(|error| panic!("{error}"));
    }
}
