//! The mistakes of a shader, found on the thread that submits its task: with the line of the program's text.

use anabranch::device::DeviceInfo;
use anabranch_kernel::shader::Printed;
use std::{
    error::Error,
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
};
use wgpu::naga::{
    Span,
    front::wgsl,
    valid::{Capabilities, ValidationFlags, Validator},
};

/// Checks a shader as wgpu will.
pub(crate) fn validate(shader: &Printed, info: &DeviceInfo) -> Result<(), String> {
    // The compiler is not ours, and the text may be anything.
    catch_unwind(AssertUnwindSafe(|| compile(shader, info)))
        .unwrap_or_else(|_| Err("the compiler has panicked".to_string()))
}

fn compile(shader: &Printed, info: &DeviceInfo) -> Result<(), String> {
    let module = wgsl::parse_str(shader.text()).map_err(|error| {
        let mut labels = error.labels();
        let (span, label) = labels.next().map_or((None, ""), |(span, label)| (Some(span), label));
        let notes = error.notes().map(str::to_string).collect::<Vec<_>>();
        message(shader, span, error.message(), label, &notes)
    })?;
    let mut capabilities = Capabilities::all();
    capabilities.set(Capabilities::FLOAT64, info.has_f64);
    capabilities.set(Capabilities::SHADER_INT64, info.has_i64);
    // As wgpu: which barriers are in uniform control flow is not checked.
    let flags = ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY;
    let checked = Validator::new(flags, capabilities).validate(&module);
    checked.map(drop).map_err(|error| {
        // The innermost function or expression comes first.
        let first = error.spans().next().cloned();
        let (span, label) = first.map_or((None, String::new()), |(span, label)| (Some(span), label));
        let mut sources = Vec::new();
        let mut source = error.as_inner().source();
        while let Some(inner) = source {
            sources.push(inner.to_string());
            source = inner.source();
        }
        message(shader, span, &error.as_inner().to_string(), &label, &sources)
    })
}

/// What is wrong, the line, its text, and what else the compiler says.
fn message(shader: &Printed, span: Option<Span>, what: &str, label: &str, notes: &[String]) -> String {
    let text = shader.text();
    let location = span.filter(|span| span.is_defined()).map(|span| span.location(text));
    let mut message = what.to_string();
    let mut add = |note: &str| {
        if !note.is_empty() && !message.contains(note) {
            let _ = write!(message, ": {note}");
        }
    };
    add(label);
    notes.iter().for_each(|note| add(note));
    let Some(at) = location.filter(|at| (at.offset as usize) < shader.own()) else {
        return format!("{message}; its function must be `{}`", shader.signature());
    };
    let number = at.line_number;
    let line = text.split('\n').nth(number as usize - 1).unwrap_or_default().trim_end();
    let column = text[..at.offset as usize].chars().rev().take_while(|&c| c != '\n').count();
    format!("line {number}: {message}\n{number:>5} | {line}\n      | {}^", " ".repeat(column))
}
