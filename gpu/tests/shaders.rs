//! Shaders of the program: results, types, groups, parameters, and what is refused, with the line.

mod support;

use anabranch::{
    Cause,
    device::{Device, Simulated, Wgsl},
    interface::ShaderElement,
    prelude::*,
};
use std::{fmt::Debug, sync::Arc};
use support::gpu;
use testing::deadline;

/// One step of a smoothing in two dimensions.
const SMOOTH: &str = "
fn each(y: u32, x: u32) {
    let last = u_extent() - 1u;
    let across = u_get(y, max(x, 1u) - 1u) + u_get(y, min(x + 1u, last.x));
    let along = u_get(max(y, 1u) - 1u, x) + u_get(min(y + 1u, last.y), x);
    next_set(y, x, u_get(y, x) + rate() * (across + along - 4.0 * u_get(y, x)));
}
";

fn smooth(rate: f32) -> Wgsl {
    Wgsl::new(SMOOTH).names(["u", "next"]).parameter("rate", rate)
}

/// Some steps, with the device of the runtime or on the host.
fn smoothed(rt: &Runtime, shape: [usize; 2]) -> Vec<f32> {
    let [rows, cols] = shape;
    let start = (0..rows * cols).map(|at| ((at * 37) % 256) as f32).collect::<Vec<_>>();
    let start = anabranch::ndarray::Array2::from_shape_vec(shape, start).unwrap();
    let (mut u, mut next) = (rt.buffer_from(&start).unwrap(), rt.buffer(shape));
    for step in 0..6 {
        let rate = [0.25, 0.125][step % 2];
        let task = rt.task("smooth").over(shape).read(&u, neighborhood([1, 1])).write(&next, one_to_one());
        task.shader(smooth(rate))
            .kernel(move |tile, (u, next)| {
                for [y, x] in tile.points() {
                    let at = |y: usize, x: usize| u[[y, x]];
                    let across = at(y, x.max(1) - 1) + at(y, (x + 1).min(cols - 1));
                    let along = at(y.max(1) - 1, x) + at((y + 1).min(rows - 1), x);
                    next.set([y, x], at(y, x) + rate * (across + along - 4.0 * at(y, x)));
                }
            })
            .unwrap();
        std::mem::swap(&mut u, &mut next);
    }
    rt.fence(&u).unwrap().wait().unwrap().into_vec()
}

fn runtime(device: &Arc<dyn Device>, threads: usize) -> Runtime {
    Runtime::builder().threads(threads).device(device).build().unwrap()
}

#[test]
fn a_shader_computes_what_the_kernel_of_the_host_computes() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    for shape in [[1, 1], [1, 300], [300, 1], [7, 5], [61, 45], [64, 64], [3, 1000]] {
        let host = smoothed(&Runtime::builder().threads(2).build().unwrap(), shape);
        for threads in [1, 2, 3, 4, 8] {
            let device = smoothed(&runtime(&gpu, threads), shape);
            // The values are multiples of a power of two, so nothing is rounded.
            assert_eq!(device, host, "{shape:?}");
        }
    }
}

/// Doubles each element, in `D` dimensions and with one type.
fn doubled<T>(gpu: &Arc<dyn Device>, doubled: &str, elements: [T; 12]) -> Vec<Vec<T>>
where
    T: ShaderElement + PartialEq + Debug,
{
    let rt = runtime(gpu, 2);
    let (one, two) = (rt.buffer_from(&elements[..]).unwrap(), rt.buffer::<T, 1>([12]));
    let text = |arguments: &str, indices: &str| {
        let value = doubled.replace('a', &format!("u_get({indices})"));
        format!("fn each({arguments}) {{\n    u_set({indices}, {value});\n}}\n")
    };
    let shader = Wgsl::new("fn each(x: u32) { let e = one_get(x); two_set(x, e); }").names(["one", "two"]);
    let copy = rt.task("copy").over([12]).read(&one, one_to_one()).write(&two, one_to_one());
    copy.shader(shader).submit().unwrap();
    let shader = Wgsl::new(text("x: u32", "x")).names(["u"]);
    rt.task("double").over([12]).update(&two, one_to_one()).shader(shader).submit().unwrap();
    let plane = anabranch::ndarray::Array2::from_shape_vec([3, 4], elements.to_vec()).unwrap();
    let plane = rt.buffer_from(&plane).unwrap();
    let shader = Wgsl::new(text("y: u32, x: u32", "y, x")).names(["u"]);
    rt.task("double").over([3, 4]).update(&plane, one_to_one()).shader(shader).submit().unwrap();
    let space = anabranch::ndarray::Array3::from_shape_vec([2, 3, 2], elements.to_vec()).unwrap();
    let space = rt.buffer_from(&space).unwrap();
    let shader = Wgsl::new(text("z: u32, y: u32, x: u32", "z, y, x")).names(["u"]);
    rt.task("double").over([2, 3, 2]).update(&space, one_to_one()).shader(shader).submit().unwrap();
    let (row, plane, space) = rt.fence((&two, &plane, &space)).unwrap().wait().unwrap();
    vec![row.into_vec(), plane.into_vec(), space.into_vec()]
}

#[test]
fn elements_have_all_types_and_buffers_one_to_three_dimensions() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    macro_rules! check {
        ($($number:ident $text:literal),*) => {$(
            let elements: [$number; 12] = std::array::from_fn(|at| at as $number * (1 << 20) as $number);
            for all in doubled(&gpu, $text, elements) {
                assert_eq!(all, elements.map(|element| element * 2 as $number), stringify!($number));
            }
            let pairs: [[$number; 3]; 12] = std::array::from_fn(|at| [0, 1, 2].map(|part| (3 * at + part) as $number));
            let rt = runtime(&gpu, 1);
            let u = rt.buffer_from(&pairs[..]).unwrap();
            let text = "fn each(x: u32) { var e = u_get(x); for (var at = 0u; at < 3u; at++) { e[at] += e[at]; } u_set(x, e); }";
            let task = rt.task("double").over([12]).update(&u, one_to_one());
            task.shader(Wgsl::new(text).names(["u"])).submit().unwrap();
            let found = rt.fence(&u).unwrap().wait().unwrap().into_vec();
            assert_eq!(found, pairs.map(|pair| pair.map(|part| part * 2 as $number)));
        )*};
    }
    check!(f32 "a + a", i32 "a + a", u32 "a + a");
    if gpu.info().has_f64 {
        check!(f64 "a + a");
    }
    if gpu.info().has_i64 {
        check!(i64 "a + a", u64 "a + a");
    }
}

#[test]
fn groups_share_memory_and_wait_for_each_other() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let text = "
var<workgroup> part: array<u32, 64>;

fn group(id: vec3u, local: vec3u, index: u32) {
    let at = id.x * 64u + index;
    var value = 0u;
    if at < end_point() {
        value = u_get(at);
    }
    part[index] = value;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if index < half {
            part[index] += part[index + half];
        }
    }
    if index == 0u {
        sums_set(id.x, part[0]);
    }
}
";
    for length in [1_usize, 63, 64, 65, 1000, 70_000 * 64 - 5] {
        let rt = runtime(&gpu, 2);
        let elements = (0..length as u32).map(|at| at.wrapping_mul(2_654_435_761)).collect::<Vec<_>>();
        let groups = length.div_ceil(64);
        let (u, sums) = (rt.buffer_from(&elements).unwrap(), rt.buffer::<u32, 1>([groups]));
        rt.task("sums")
            .over([length])
            .read(&u, all())
            .write(&sums, all())
            .shader(Wgsl::new(text).names(["u", "sums"]).groups([64], [groups]))
            .submit()
            .unwrap();
        let sums = rt.fence(&sums).unwrap().wait().unwrap().into_vec();
        let expected = elements.chunks(64).map(|part| part.iter().fold(0_u32, |sum, &e| sum.wrapping_add(e)));
        assert!(sums.into_iter().eq(expected), "{length}");
    }
}

#[test]
fn an_access_outside_the_declaration_fails_the_task_as_on_the_host() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = runtime(&gpu, 2);
    let check = |text: &str, parts: [&str; 2]| {
        let u = rt.buffer_from(&(0..20).collect::<Vec<u32>>()).unwrap().named("u");
        let v = rt.buffer::<u32, 2>([4, 5]).named("v");
        let none = rt.buffer::<u32, 1>([3]).named("none");
        rt.task("zero").over([4, 5]).write(&v, one_to_one()).each(|(v,)| v.set(0)).unwrap();
        rt.task("zero").over([3]).write(&none, one_to_one()).each(|(none,)| none.set(0)).unwrap();
        let task = rt
            .task("leaves")
            .over([3])
            .read(&u, fixed(Region::from_boxes([GridBox::new(2, 5), GridBox::new(9, 12)])))
            .update(&v, fixed(GridBox::new([1, 1], [3, 4])))
            .read(&none, mapper(|_, _| Region::empty()));
        let error =
            task.shader(Wgsl::new(text).names(["u", "v", "none"])).submit().unwrap().wait().unwrap_err();
        let error = error.to_string();
        for part in parts.into_iter().chain(["task \"leaves\"", "shaders.rs"]) {
            assert!(error.contains(part), "{error}: {part}");
        }
        assert!(rt.fence(&v).unwrap().wait().is_err());
        assert!(rt.wait().is_err());
    };
    let in_u = "of buffer \"u\", but declared [2..5] + [9..12]";
    for (call, part) in [
        ("u_get(1u)", "[1]"),
        ("u_get(5u)", "[5]"),
        ("u_get(8u)", "[8]"),
        ("u_get(12u)", "[12]"),
        ("u_get(x - x - 1u)", "[-1]"),
        ("u_get(20u)", "[20]"),
        ("u_get(4000000000u)", "[-294967296]"),
    ] {
        check(&format!("fn each(x: u32) {{ v_set(2u, 2u, {call}); }}"), [in_u, part]);
    }
    let in_v = "of buffer \"v\", but declared [1..3, 1..4]";
    for (call, part) in [
        ("v_set(0u, 1u, 7u)", "[0, 1]"),
        ("v_set(1u, 4u, 7u)", "[1, 4]"),
        ("v_set(3u, 3u, 7u)", "[3, 3]"),
        ("v_set(1u, 0u - 1u, v_get(1u, 1u))", "[1, -1]"),
        ("v_set(1u, 1u, v_get(7u, 1u))", "[7, 1]"),
    ] {
        check(&format!("fn each(x: u32) {{ {call}; }}"), [in_v, part]);
    }
    check("fn each(x: u32) { v_set(1u, 1u, none_get(0u)); }", ["[0] of buffer \"none\"", "but declared"]);
}

#[test]
fn an_access_outside_of_the_only_box_of_each_operand_fails_the_task() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = runtime(&gpu, 2);
    let u = rt.buffer_from(&(0..20).collect::<Vec<u32>>()).unwrap().named("u");
    let run = |call: &str| {
        let v = rt.buffer_from(&anabranch::ndarray::Array2::from_elem((4, 5), 7_u32)).unwrap().named("v");
        let task = rt.task("box").over([1]).read(&u, fixed(GridBox::new(2, 5)));
        let task = task.update(&v, fixed(GridBox::new([1, 1], [3, 4])));
        let text = format!("fn each(x: u32) {{ {call}; }}");
        let result = task.shader(Wgsl::new(text).names(["u", "v"])).submit().unwrap().wait();
        let _ = rt.wait();
        result
    };
    for inside in ["v_set(1u, 1u, u_get(2u))", "v_set(2u, 3u, u_get(4u) + v_get(1u, 3u))"] {
        run(inside).unwrap();
    }
    for (outside, parts) in [
        ("v_set(1u, 1u, u_get(1u))", ["[1] of buffer \"u\"", "[2..5]"]),
        ("v_set(1u, 1u, u_get(5u))", ["[5] of buffer \"u\"", "[2..5]"]),
        ("v_set(0u, 1u, 1u)", ["[0, 1] of buffer \"v\"", "[1..3, 1..4]"]),
        ("v_set(3u, 1u, 1u)", ["[3, 1] of buffer \"v\"", "[1..3, 1..4]"]),
        ("v_set(1u, 0u, 1u)", ["[1, 0] of buffer \"v\"", "[1..3, 1..4]"]),
        ("v_set(1u, 4u, 1u)", ["[1, 4] of buffer \"v\"", "[1..3, 1..4]"]),
        ("v_set(1u, 1u, v_get(2u, 4u))", ["[2, 4] of buffer \"v\"", "[1..3, 1..4]"]),
    ] {
        let error = run(outside).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{outside}: {error}");
    }
}

#[test]
fn accesses_inside_several_boxes_are_right_and_one_outside_changes_nothing() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = runtime(&gpu, 1);
    let u = rt.buffer_from(&(0..20).collect::<Vec<u32>>()).unwrap();
    let sum = rt.buffer::<u32, 0>([]);
    let boxes = || fixed(Region::from_boxes([GridBox::new(2, 5), GridBox::new(9, 12)]));
    let text = "fn each(x: u32) { sum_set(u_get(2u) + u_get(4u) + u_get(9u) + u_get(11u)); }";
    let task = rt.task("sum").over([1]).read(&u, boxes()).write(&sum, all());
    task.shader(Wgsl::new(text).names(["u", "sum"])).submit().unwrap();
    assert_eq!(rt.fence(&sum).unwrap().wait().unwrap()[[]], 2 + 4 + 9 + 11);
    // The write is dropped: the elements around, which are on the device, keep their values, which a part
    // shows that the task does not poison.
    let text = "fn each(x: u32) { u_set(x, u_get(x)); }";
    let here = rt.task("stays").over([20]).update(&u, one_to_one());
    here.shader(Wgsl::new(text).names(["u"])).submit().unwrap();
    let text = "fn each(x: u32) { u_set(x, 99u); }";
    let failed =
        rt.task("leaves").over([20]).update(&u, boxes()).shader(Wgsl::new(text).names(["u"])).submit();
    let failed = failed.unwrap().wait().unwrap_err();
    let Error::Failed(failures) = &failed else { panic!("{failed}") };
    assert!(matches!(failures.iter().next().unwrap().cause, Cause::OutsideDeclared { .. }));
    for part in [0..2, 5..9, 12..20] {
        let snapshot = rt.fence(&u.part(GridBox::new(part.start, part.end))).unwrap().wait().unwrap();
        assert_eq!(snapshot.into_vec(), part.map(|at| at as u32).collect::<Vec<_>>());
    }
    assert!(rt.wait().is_err());
}

#[test]
fn an_empty_index_space_does_nothing_and_parameters_have_all_types() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let rt = runtime(&gpu, 2);
    let u = rt.buffer_from(&[1.0_f32, 2.0]).unwrap();
    let bad = "fn each(x: u32) { u_set(100u, 1.0); }";
    let task = rt.task("nothing").over([0]).update(&u, all());
    task.shader(Wgsl::new(bad).names(["u"])).submit().unwrap().wait().unwrap();
    let groups = "fn group(id: vec3u, local: vec3u, index: u32) { u_set(100u, 1.0); }";
    let task = rt.task("nothing").over([0]).update(&u, all());
    task.shader(Wgsl::new(groups).names(["u"]).groups([8, 8], [4, 4])).submit().unwrap().wait().unwrap();
    let task = rt.task("nothing").over([2]).update(&u, all());
    task.shader(Wgsl::new(groups).names(["u"]).groups([8, 8], [4, 0])).submit().unwrap().wait().unwrap();
    let text = "fn each(x: u32) { u_set(x, a() + f32(b()) + f32(c())); }";
    for step in 0..3 {
        let shader = Wgsl::new(text).names(["u"]);
        let shader = shader.parameter("a", 0.5 * step as f32).parameter("b", -step).parameter("c", 7_u32);
        rt.task("set").over([2]).update(&u, all()).shader(shader).submit().unwrap();
        let expected = 7.0 - 0.5 * step as f32;
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [expected; 2]);
    }
    if gpu.info().has_f64 && gpu.info().has_i64 {
        let text = "fn each(x: u32) { u_set(x, f32(a() + f64(b()) + f64(c()) + f64(d()))); }";
        let shader = Wgsl::new(text).names(["u"]).parameter("a", 0.25_f64).parameter("b", -(1_i64 << 40));
        let shader = shader.parameter("d", 4_i32).parameter("c", 1_u64 << 40);
        rt.task("set").over([2]).update(&u, all()).shader(shader).submit().unwrap();
        assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [4.25; 2]);
    }
}

/// The error of submitting a shader.
fn refused(gpu: &Arc<dyn Device>, shader: Wgsl) -> String {
    let rt = runtime(gpu, 1);
    let (u, v) = (rt.buffer_from(&[1_u32; 5]).unwrap(), rt.buffer::<u32, 1>([5]));
    let task = rt.task("wrong").over([5]).read(&u, one_to_one()).write(&v, one_to_one());
    let error = task.shader(shader).submit().unwrap_err().to_string();
    rt.wait().unwrap();
    error
}

#[test]
fn a_wrong_text_is_an_error_with_the_line() {
    let _deadline = deadline();
    let Some(gpu) = gpu() else { return };
    let cases = [
        ("fn each(x: u32) {\n    let a = 1u +;\n}", &["line 2", "let a = 1u +;"][..]),
        (
            "fn each(x: u32) {\n\n    v_set(x, missing(x));\n}",
            &["line 3", "missing", "v_set(x, missing(x));"],
        ),
        ("fn each(x: u32) {\n    v_set(x, 1.5);\n}", &["line 2", "v_set(x, 1.5)"]),
        ("fn each(x: u32) {\n    u_set(x, 1u);\n}", &["line 2", "u_set"]),
        ("fn each(x: u32) {\n    let a = v_get(x);\n}", &["line 2", "v_get"]),
        ("fn each(y: u32, x: u32) {}", &["fn each(x: u32)"]),
        ("fn each() {}", &["fn each(x: u32)"]),
        ("fn point(x: u32) {}", &["no function `fn each(x: u32)`"]),
        ("fn each(x: u32) {\n    if x > 1u {\n}", &["line 1", "`{` without its end"]),
        (
            "fn each(x: u32) {}\nfn min(x: u32) {}",
            &["line 2", "`min`", "a function of WGSL", "fn min(x: u32) {}"],
        ),
        ("fn each(x: u32) {}\nalias u32 = i32;", &["line 2", "`u32`", "a type of WGSL"]),
        ("const v_set = 1;\nfn each(x: u32) {}", &["line 1", "`v_set`", "generated for the operand `v`"]),
        ("fn each(x: u32) {}\nfn end_point() {}", &["line 2", "`end_point`", "generated"]),
        ("@group(0) @binding(9) var<storage> w: array<u32>;\nfn each(x: u32) {}", &["line 1", "@group"]),
        ("fn each(x: u32) {}\nvar<uniform> w: u32;", &["line 2", "var<workgroup>"]),
        ("fn each(x: u32) { anabranch_1[x] = 1u; }", &["line 1", "anabranch_1"]),
        ("fn each(x: u32) {} /* }", &["line 1", "`/*` without its end"]),
    ];
    for (text, parts) in cases {
        let error = refused(&gpu, Wgsl::new(text).names(["u", "v"]));
        for part in parts.iter().chain(&["task \"wrong\""]) {
            assert!(error.contains(part), "{text}\n{error}\nlacks {part}");
        }
    }
    let each = "fn each(x: u32) { v_set(x, u_get(x)); }";
    for (shader, part) in [
        (Wgsl::new(each), "names 0 operands, and the task declares 2"),
        (Wgsl::new(each).names(["u"]), "names 1 operands"),
        (Wgsl::new(each).names(["u", "u"]), "lead to the name"),
        (Wgsl::new(each).names(["u", "2v"]), "`2v` cannot name an operand"),
        (Wgsl::new(each).names(["u", "anabranch"]), "cannot name an operand"),
        (Wgsl::new(each).names(["u", "v"]).parameter("loop", 1_u32), "`loop` cannot name a parameter"),
        (Wgsl::new(each).names(["u", "v"]).parameter("u_get", 1_u32), "lead to the name `u_get`"),
        (Wgsl::new(each).names(["u", "v"]).groups([8], [1]), "no function `fn group("),
        (
            Wgsl::new("fn group(id: vec3u, local: vec3u, index: u32) {}").names(["u", "v"]).groups([0], [1]),
            "groups of [1, 1, 0]",
        ),
        (
            Wgsl::new("fn group(id: vec3u, local: vec3u, index: u32) {}")
                .names(["u", "v"])
                .groups([1 << 20], [1]),
            "1048576 invocations",
        ),
    ] {
        let error = refused(&gpu, shader);
        assert!(error.contains(part), "{error}\nlacks {part}");
    }
}

#[test]
fn the_best_form_for_the_place_is_taken() {
    let _deadline = deadline();
    let shader = || Wgsl::new("fn each(x: u32) { u_set(x, 1u); }").names(["u"]);
    let simulated: Arc<dyn Device> = Arc::new(Simulated::new());
    // A shader alone, with a kernel for the host and with a recorded one; and a recorded kernel for devices
    // with a kernel for the host, without a shader and beside one.
    let all_forms = |rt: &Runtime, on: Option<&Arc<dyn Device>>, on_host: bool| {
        let u = rt.buffer::<u32, 1>([5]);
        let task = || {
            let task = rt.task("form").over([5]).write(&u, one_to_one());
            let task = on.into_iter().fold(task, |task, device| task.on(device));
            if on_host { task.on_host() } else { task }
        };
        let value = |task: Result<TaskHandle, Error>| {
            let task = task.map_err(|error| error.to_string())?;
            task.wait().unwrap();
            Ok::<_, String>(rt.fence(&u).unwrap().wait().unwrap()[[0]])
        };
        let alone = value(task().shader(shader()).submit());
        let kernel =
            value(task().shader(shader()).kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2))));
        let each = value(task().shader(shader()).each(|(u,)| u.set(3)));
        let two = task().each_on_device(|(u,)| u.set(3)).unwrap();
        let two = value(two.kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2)))).unwrap();
        let three = task().shader(shader()).each_on_device(|(u,)| u.set(3)).unwrap();
        let three = value(three.kernel(|tile, (u,)| tile.points().for_each(|at| u.set(at, 2)))).unwrap();
        ((alone, kernel, each), (two, three))
    };
    let forms = |rt: &Runtime, on: Option<&Arc<dyn Device>>, on_host: bool| all_forms(rt, on, on_host).0;
    let more_forms = |rt: &Runtime, on: Option<&Arc<dyn Device>>, on_host: bool| all_forms(rt, on, on_host).1;
    let host = Runtime::builder().threads(2).build().unwrap();
    let (alone, kernel, each) = forms(&host, None, false);
    let error = alone.unwrap_err();
    assert!(
        error.contains("task \"form\"") && error.contains("no device") && error.contains("`on`"),
        "{error}"
    );
    assert_eq!((kernel, each), (Ok(2), Ok(3)));
    assert_eq!(more_forms(&host, None, false), (2, 2));
    assert_eq!(more_forms(&runtime(&simulated, 2), None, false), (3, 3));
    assert_eq!(more_forms(&host, Some(&simulated), false), (3, 3));
    assert_eq!(more_forms(&runtime(&simulated, 2), None, true), (2, 2));
    // A device that takes no shaders runs the recording; a task that names it has no other kernel for it.
    let (alone, kernel, each) = forms(&runtime(&simulated, 2), None, false);
    assert!(alone.unwrap_err().contains("no shaders"));
    assert_eq!((kernel, each), (Ok(2), Ok(3)));
    let (alone, kernel, each) = forms(&host, Some(&simulated), false);
    assert!(alone.unwrap_err().contains("no shaders") && kernel.unwrap_err().contains("no shaders"));
    assert_eq!(each, Ok(3));
    let Some(gpu) = gpu() else { return };
    assert_eq!(forms(&runtime(&gpu, 2), None, false), (Ok(1), Ok(1), Ok(1)));
    assert_eq!(forms(&host, Some(&gpu), false), (Ok(1), Ok(1), Ok(1)));
    assert_eq!(more_forms(&runtime(&gpu, 2), None, false), (3, 1));
    assert_eq!(more_forms(&host, Some(&gpu), false), (3, 1));
    assert_eq!(more_forms(&runtime(&gpu, 2), None, true), (2, 2));
    let (alone, kernel, each) = forms(&runtime(&gpu, 2), None, true);
    assert!(alone.is_err());
    assert_eq!((kernel, each), (Ok(2), Ok(3)));
}
