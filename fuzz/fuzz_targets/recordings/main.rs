//! Recorded kernels from bytes, run in pieces and with all vector instructions, and compared bit for bit with
//! a plain evaluation point by point. Their shaders are WGSL that naga accepts.
#![no_main]

#[path = "../../../kernel/tests/accepted/mod.rs"]
mod accepted;
#[allow(dead_code, reason = "the operands of the tests")]
#[path = "../../../kernel/tests/array/mod.rs"]
mod array;
mod drawn;
#[allow(dead_code, reason = "the strategies of the tests")]
#[path = "../../../kernel/tests/grids/mod.rs"]
mod grids;
#[allow(dead_code, reason = "the strategies of the tests")]
#[path = "../../../kernel/tests/loops/mod.rs"]
mod loops;
#[allow(dead_code, reason = "the strategies of the tests")]
#[path = "../../../kernel/tests/plain/mod.rs"]
mod plain;

use anabranch_kernel::{Recording, wgsl::Wgsl};
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use plain::Plain;
/// The bytes of immediate data that a device takes.
const IMMEDIATES: usize = 128;

/// Panics unless naga accepts the shader of a kernel. WGSL lacks some functions of `f64`.
fn check_shader(recording: &Recording) {
    if let Ok(shader) = Wgsl::with_immediates(recording, IMMEDIATES) {
        accepted::assert_accepted(&shader);
    }
}

/// Checks a kernel over a grid.
fn on_a_grid<T: Plain>(bytes: &mut Unstructured<'_>) {
    let Ok(case) = drawn::case::<T>(bytes) else { return };
    check_shader(&case.record());
    grids::check(&case).unwrap_or_else(|error| panic!("{error}: {case:#?}"));
}

/// Checks a kernel with folds and operands of any rank.
fn with_folds<T: Plain>(bytes: &mut Unstructured<'_>) {
    let Ok((seed, longest)) = bytes.arbitrary::<(u8, u8)>() else { return };
    let Ok(kernel) = drawn::kernel::<T>(bytes) else { return };
    check_shader(&kernel.record());
    let longest = if longest == 0 { usize::MAX } else { longest.into() };
    loops::run::check(&kernel, seed.into(), longest).unwrap_or_else(|error| panic!("{error}: {kernel:#?}"));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((sort, bytes)) = bytes.split_first() else { return };
    let mut bytes = Unstructured::new(bytes);
    let check = match sort % 12 {
        0 => on_a_grid::<f32>,
        1 => on_a_grid::<f64>,
        2 => on_a_grid::<i32>,
        3 => on_a_grid::<u32>,
        4 => on_a_grid::<i64>,
        5 => on_a_grid::<u64>,
        6 => with_folds::<f32>,
        7 => with_folds::<f64>,
        8 => with_folds::<i32>,
        9 => with_folds::<u32>,
        10 => with_folds::<i64>,
        _ => with_folds::<u64>,
    };
    check(&mut bytes);
});
