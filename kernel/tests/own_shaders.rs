//! Shaders that a program writes: what is generated for them is WGSL that naga accepts, launches give them
//! what they declare, and wrong texts are errors.

mod accepted;

use accepted::module;
use anabranch_kernel::{
    Kind, Scalar,
    shader::{ElementType, Operand, Outside, Printed, Shader, ShaderError, ShaderLaunch, ShaderSource},
    wgsl::BlockPlace,
};
use proptest::prelude::*;
use testing::deadline;

/// Two operands of these dimensions, and a parameter.
fn source(
    text: &str,
    kind: Kind,
    length: Option<u32>,
    dimensions: [usize; 2],
    group: Option<[u32; 3]>,
) -> ShaderSource {
    let operand = |name: &str, dimensions, is_written| Operand {
        name: name.into(),
        element: ElementType { kind, length },
        dimensions,
        is_read: true,
        is_written,
    };
    ShaderSource {
        text: text.into(),
        operands: vec![operand("u", dimensions[0], false), operand("v", dimensions[1], true)],
        parameters: vec![("p".into(), kind), ("q".into(), Kind::F32)],
        dimensions: 2,
        group,
        zeroes_workgroup: true,
    }
}

/// Panics unless naga accepts the shader. Returns the bytes of its block, without a list at the end.
fn validate(shader: &Printed) -> u32 {
    let module = module(shader.text(), shader.needs_f64(), shader.needs_i64(), shader.block_place())
        .unwrap_or_else(|error| panic!("{error}"));
    let block = module.types.iter().find(|(_, of)| of.name.as_deref() == Some("AnabranchLaunch")).unwrap();
    let naga::TypeInner::Struct { span, .. } = block.1.inner else { panic!("a block is a structure") };
    span
}

#[test]
fn what_is_generated_is_accepted_for_all_types_and_dimensions() {
    let _deadline = deadline();
    let kinds = [Kind::F32, Kind::F64, Kind::I32, Kind::U32, Kind::I64, Kind::U64];
    let indices = ["", "1u", "1u, 2u", "1u, 2u, 3u"];
    for (kind, length) in kinds.into_iter().flat_map(|kind| [(kind, None), (kind, Some(3))]) {
        for (of_u, of_v) in (0..4).flat_map(|of_u| (0..4).map(move |of_v| (of_u, of_v))) {
            let comma = if of_v > 0 { ", " } else { "" };
            let extent = if of_u > 0 { "let e = u_extent();" } else { "" };
            let body = format!(
                "{extent} let at = first_point() + end_point(); let all = q() + f32(p()); v_set({}{comma}u_get({}));",
                indices[of_v], indices[of_u]
            );
            for (text, group) in [
                (format!("fn each(y: u32, x: u32) {{ {body} }} // `/*`"), None),
                (format!("fn group(id: vec3u, local: vec3u, index: u32) {{ {body} }}"), Some([2, 4, 8])),
            ] {
                let shader = Shader::new(source(&text, kind, length, [of_u, of_v], group)).unwrap();
                for (immediates, several) in [(0, false), (256, false), (256, true)] {
                    let printed = shader.print(immediates, several);
                    let bytes = validate(&printed) as usize;
                    let declared = vec![vec![[[0; 3], [1; 3]]]; 2];
                    let launch = ShaderLaunch {
                        points: [[0; 3], [1, 5, 70]],
                        extents: &[[1; 3]; 2],
                        declared: &declared,
                        parameters: &[scalar(kind), Scalar::F32(0.5)],
                        groups: [1, 2, 3],
                    };
                    for dispatch in printed.dispatches(&launch, 65535).unwrap() {
                        assert!(dispatch.block.len() >= bytes, "{} {bytes}", dispatch.block.len());
                        assert_eq!(dispatch.block.len() % 16, 0);
                        if printed.block_place() == BlockPlace::Immediate {
                            assert_eq!(dispatch.block.len(), printed.block_bytes());
                        }
                    }
                }
            }
        }
    }
}

fn scalar(kind: Kind) -> Scalar {
    match kind {
        Kind::F32 => Scalar::F32(1.0),
        Kind::F64 => Scalar::F64(1.0),
        Kind::I32 => Scalar::I32(1),
        Kind::U32 => Scalar::U32(1),
        Kind::I64 => Scalar::I64(1),
        Kind::U64 => Scalar::U64(1),
        Kind::Bool => unreachable!(),
    }
}

fn grouped() -> Printed {
    let text = "fn group(id: vec3u, local: vec3u, index: u32) {}";
    Shader::new(source(text, Kind::F32, None, [1, 1], Some([1, 1, 4]))).unwrap().print(0, false)
}

/// The head of a dispatch, and its groups.
type Dispatched = ([u32; 4], [u32; 3]);

/// The dispatches of this number of groups.
fn dispatched(groups: [usize; 3], most: u32) -> Result<Vec<Dispatched>, ShaderError> {
    let declared = vec![vec![[[0; 3], [1, 1, 1]]]; 2];
    let launch = ShaderLaunch {
        points: [[0; 3], [1; 3]],
        extents: &[[1; 3]; 2],
        declared: &declared,
        parameters: &[Scalar::F32(1.0), Scalar::F32(0.5)],
        groups,
    };
    let word = |block: &[u8], at: usize| u32::from_le_bytes(block[4 * at..][..4].try_into().unwrap());
    let dispatches = grouped().dispatches(&launch, most)?;
    Ok(dispatches.into_iter().map(|of| ([0, 1, 2, 3].map(|at| word(&of.block, at)), of.groups)).collect())
}

proptest! {
    #[test]
    fn the_dispatches_of_groups_have_each_group_once(
        groups in [0_usize..12, 0_usize..12, 0_usize..40], most in 1_u32..20,
    ) {
        let _deadline = deadline();
        let mut seen = vec![0; groups.iter().product()];
        for ([z, y, x, from], size) in dispatched(groups, most).unwrap() {
            prop_assert_eq!([z, y, x].map(|along| along as usize), groups);
            prop_assert!(size.iter().all(|&along| 0 < along && along <= most));
            // What the entry point computes.
            for number in from..from + size.iter().product::<u32>() {
                if number < z * y * x {
                    seen[number as usize] += 1;
                }
            }
        }
        prop_assert!(seen.iter().all(|&times| times == 1));
    }

    #[test]
    fn arbitrary_text_is_checked_without_a_panic(text in ".{0,200}") {
        let _deadline = deadline();
        let _ = Shader::new(source(&text, Kind::F32, None, [1, 1], None));
    }

    #[test]
    fn arbitrary_words_are_checked_without_a_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "fn", "var", "<", ">", "workgroup", "struct", "{", "}", "(", ")", "each", "u", "u_get", "min", "@", "group",
                "binding", "/*", "*/", "//", "\n", ";", ":", "anabranch_u", "x", "1u", "é", "[", "]",
            ]),
            0..40,
        ),
    ) {
        let _deadline = deadline();
        let text = words.join(" ");
        if let Ok(shader) = Shader::new(source(&text, Kind::F32, None, [1, 1], None)) {
            // What is accepted ends before the generated part, whose declarations the compiler finds.
            let printed = shader.print(0, false);
            let _ = naga::front::wgsl::parse_str(printed.text());
            prop_assert!(text.contains("each"));
        }
    }
}

/// The error of a text with an operand `u` and one `v`, both of `f32`.
fn error_of(text: &str) -> ShaderError {
    Shader::new(source(text, Kind::F32, None, [1, 1], None)).expect_err(text)
}

#[test]
fn marks_of_a_direction_hide_no_declaration() {
    let _deadline = deadline();
    // WGSL counts them as space. With another `f32` the elements would be larger, and lie outside of what the
    // task declares.
    for mark in ['\u{200e}', '\u{200f}'] {
        for declaration in [
            "alias /f32 = vec4<u32>;",
            "fn /select() {}",
            "struct/u32 { a: i32 }",
            "var<private> /array: u32;",
        ] {
            let text =
                format!("fn each(y: u32, x: u32) {{}}\n{}", declaration.replace('/', &mark.to_string()));
            assert!(matches!(error_of(&text), ShaderError::Taken { line: 2, .. }), "{declaration}");
        }
        for declaration in
            ["@/compute @/workgroup_size(1) fn a() {}", "var/<storage> a: u32;", "var</storage> a: u32;"]
        {
            let text =
                format!("fn each(y: u32, x: u32) {{}}\n{}", declaration.replace('/', &mark.to_string()));
            assert!(matches!(error_of(&text), ShaderError::Forbidden { line: 2, .. }), "{declaration}");
        }
    }
}

#[test]
fn a_text_has_no_entry_point_of_any_stage() {
    let _deadline = deadline();
    for stage in
        ["vertex", "fragment", "compute", "task", "mesh", "ray_generation", "any_hit", "closest_hit", "miss"]
    {
        let text = format!(
            "enable wgpu_ray_tracing_pipeline;\nfn each(y: u32, x: u32) {{}}\n@{stage} fn other() {{}}"
        );
        assert!(matches!(error_of(&text), ShaderError::Forbidden { line: 3, .. }), "{stage}");
    }
}

#[test]
fn no_word_that_wgsl_keeps_is_a_parameter() {
    let _deadline = deadline();
    for name in ["filter", "pass", "set", "while", "u32", "min"] {
        let mut source = source("fn each(y: u32, x: u32) {}", Kind::F32, None, [1, 1], None);
        source.parameters[0].0 = name.into();
        assert!(matches!(Shader::new(source), Err(ShaderError::Name { what: "a parameter", .. })), "{name}");
    }
}

#[test]
fn the_compiler_has_the_stack_for_every_text_that_is_accepted() {
    let _deadline = deadline();
    // The depths are near the limits, and those behind them are errors: without these the compiler would end
    // the process.
    let expression =
        |value: &str| format!("fn each(y: u32, x: u32) {{ let a = true; let b = 1f; let c = {value}; }}");
    let branches = |turns: usize| {
        let branches = "else if y == 1 {}".repeat(turns);
        format!("fn each(y: u32, x: u32) {{ if x == 0 {{}} {branches} }}")
    };
    let constants = |many: usize| {
        let others = (1..many).rev().map(|at| format!("const c{at} = c{};\n", at - 1)).collect::<String>();
        format!("{others}const c0 = 1;\nfn each(y: u32, x: u32) {{}}")
    };
    for (few, many) in [
        (expression(&format!("{}a", "!".repeat(900))), expression(&format!("{}a", "!".repeat(20_000)))),
        (expression(&format!("{}b", "b+".repeat(450))), expression(&format!("{}b", "b+".repeat(20_000)))),
        (branches(230), branches(20_000)),
        (constants(1900), constants(20_000)),
    ] {
        let shader = Shader::new(source(&few, Kind::F32, None, [1, 1], None)).unwrap();
        validate(&shader.print(0, false));
        assert!(matches!(error_of(&many), ShaderError::TooLarge { .. }));
    }
}

#[test]
fn there_may_be_too_many_groups() {
    let _deadline = deadline();
    assert!(matches!(dispatched([1, 1 << 20, 1 << 20], 65535), Err(ShaderError::TooManyGroups { .. })));
    assert_eq!(dispatched([usize::MAX, 0, usize::MAX], 65535), Ok(vec![]));
    assert_eq!(dispatched([1, 1, 70_000], 65535).unwrap(), [([1, 1, 70_000, 0], [65535, 2, 1])]);
}

#[test]
fn a_launch_that_does_not_fit_is_an_error() {
    let _deadline = deadline();
    let shader = Shader::new(source("fn each(y: u32, x: u32) {}", Kind::F32, None, [2, 1], None)).unwrap();
    let (declared, parameters) = (vec![vec![[[0; 3], [1, 2, 3]]]; 2], [Scalar::F32(1.0), Scalar::F32(0.5)]);
    let launch = ShaderLaunch {
        points: [[0; 3], [1, 2, 3]],
        extents: &[[1, 2, 3]; 2],
        declared: &declared,
        parameters: &parameters,
        groups: [0; 3],
    };
    let error =
        |launch: &ShaderLaunch<'_>| shader.print(0, false).dispatches(launch, 65535).unwrap_err().to_string();
    assert!(shader.print(0, false).dispatches(&launch, 65535).is_ok());
    let several = vec![vec![[[0; 3], [1, 1, 1]], [[0, 1, 1], [1, 2, 2]]]; 2];
    for (launch, part) in [
        (ShaderLaunch { declared: &several, ..launch }, "one box of operand `u`"),
        (ShaderLaunch { extents: &[[1, 2, 2]; 2], ..launch }, "boxes inside of operand `u`"),
        (ShaderLaunch { extents: &[[1, 2, 2]], ..launch }, "2 operands"),
        (ShaderLaunch { parameters: &[Scalar::U32(1), Scalar::F32(0.5)], ..launch }, "parameters [F32, F32]"),
        (ShaderLaunch { extents: &[[1, 1 << 20, 1 << 20]; 2], ..launch }, "4294967295 elements"),
        (ShaderLaunch { points: [[0; 3], [1, 2, 1 << 40]], ..launch }, "no points up to"),
    ] {
        let error = error(&launch);
        assert!(error.contains(part), "{error}\nlacks {part}");
    }
}

#[test]
fn a_status_names_the_access() {
    let _deadline = deadline();
    let bytes = |words: [u32; 5]| words.map(u32::to_le_bytes).concat();
    assert_eq!(Outside::of(&bytes([0, 1, 2, 3, 4])), None);
    assert_eq!(Outside::of(&bytes([1, 1, 2, 3, 4])), Some(Outside { operand: 1, index: [2, 3, 4] }));
    assert_eq!(Printed::STATUS_BYTES, 20);
}
