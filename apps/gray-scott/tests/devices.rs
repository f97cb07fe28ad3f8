//! Runs on a device: frames near those of the host, and everything else as on the host.
#![cfg(feature = "gpu")]

mod common;

use anabranch::{device::DeviceKind, prelude::*};
use anabranch_store::Reader;
use common::{
    devices::{assert_near, device},
    fail, folder, frames, program, run, succeed,
};
use gray_scott::{
    files::checkpoint,
    kernel::{RecordedStep, SeveralSteps},
    model::{Edges, Params},
};
use testing::deadline;

#[test]
fn frames_are_near_those_of_the_host() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    for (edges, options) in [
        ("absorbing", "-r 100 -c 173 -e 34 -n 29"),
        ("periodic", "-r 61 -c 45 -e 17 -n 4 --noise 3"),
        ("clamped", "-r 45 -c 61 -e 34 -n 12 --dt 0.5 --feed 0.0367 --kill 0.0649 --noise 6"),
        ("periodic", "-r 128 -c 128 -e 100 -n 10 --preset u-skate --noise 1"),
        ("periodic", "-r 1 -c 37 -e 1 -n 3 --noise 3"),
        ("absorbing", "-r 37 -c 2 -e 5 -n 3"),
    ] {
        for (name, place) in [("device", &*device), ("host", "host")] {
            let args = format!("simulate {options} --edges {edges} --device {place} --force -o {name}.h5");
            let text = succeed(folder.path(), &args);
            assert_eq!(text.contains(&format!("on {device}")), name == "device", "{text}");
        }
        let steps = options.split(' ').skip_while(|&word| word != "-e").nth(1).unwrap().parse().unwrap();
        assert_near(&folder.path().join("device.h5"), &folder.path().join("host.h5"), steps);
    }
}

#[test]
fn a_run_is_resumed_where_it_did_not_begin() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let base = "-r 30 -c 40 -e 7 --noise 2";
    succeed(folder.path(), &format!("simulate -q {base} -n 8 -o whole.h5"));
    let whole = folder.path().join("whole.h5");
    for (first, second) in [(&*device, "host"), ("host", &*device), (&*device, &*device)] {
        let args = format!("simulate -q {base} -n 5 --checkpoint-every 2 --force --device {first}");
        succeed(folder.path(), &args);
        let path = folder.path().join("output.h5");
        let before = frames(path.clone());
        let text = succeed(folder.path(), &format!("simulate --resume --frames 8 --device {second}"));
        assert!(text.contains("Computing steps 28 to 35 again"), "{text}");
        assert!(frames(path.clone())[..5] == before, "{first}, {second}");
        assert_near(&path, &whole, 7);
    }
}

#[test]
fn a_resumed_run_on_one_device_has_the_bits_of_a_run_that_never_stopped() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let base = format!("-r 30 -c 40 -e 7 --noise 2 --device {device}");
    for threads in [1, 3] {
        succeed(
            folder.path(),
            &format!("simulate -q {base} -n 8 -o {threads}.h5 -j {threads} -i {}", threads - 1),
        );
    }
    let [one, three] = ["1.h5", "3.h5"].map(|name| frames(folder.path().join(name)));
    assert!(one == three);
    succeed(folder.path(), &format!("simulate -q {base} -n 5 --checkpoint-every 2"));
    succeed(folder.path(), &format!("simulate -q --resume --frames 8 --device {device}"));
    assert!(frames(folder.path().join("output.h5")) == one);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_complete_and_goes_on() {
    let _deadline = deadline();
    use common::{signal, start, wait_for_frames};
    let Some(device) = device() else { return };
    let folder = folder();
    let path = folder.path().join("output.h5");
    let args = format!("simulate -r 64 -c 64 -e 20 -n 100000 --device {device} --checkpoint-every 0");
    let child = start(folder.path(), &args);
    wait_for_frames(&path, 2);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("To go on: "), "{text}");
    let stored = Reader::open(&path).unwrap().stored_frames().unwrap();
    let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
    assert!((2..100_000).contains(&stored) && state.frames() == stored);
    succeed(
        folder.path(),
        &format!("simulate -q -r 64 -c 64 -e 20 -n {stored} --device {device} -o whole.h5"),
    );
    let whole = frames(folder.path().join("whole.h5"));
    let reader = Reader::open(&path).unwrap();
    for (i, frame) in (0..stored).zip(&whole) {
        assert!(reader.read_frame::<f32>(i).unwrap().as_slice() == Some(frame), "frame {i}");
    }
}

#[test]
fn a_value_that_is_not_finite_ends_the_run_before_its_frame_is_stored() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let path = folder.path().join("output.h5");
    // One row has no V, so U alone grows in the last case.
    for options in ["-r 30 -e 3 --dt 20", "-r 30 -e 1 --dt 100 --du 10", "-r 1 -e 1 --dt 1 --du 10"] {
        let base = format!("-c 40 -n 500 {options} --force --checkpoint-every 1");
        let places = [&*device, "host"].map(|place| {
            let text = fail(folder.path(), &format!("simulate {base} --device {place}"), 1);
            let stored = Reader::open(&path).unwrap().stored_frames().unwrap();
            let error = text.lines().find(|line| line.contains("is not finite in row")).unwrap().to_owned();
            assert!(stored > 0 && error.contains(&format!("(frame {stored})")), "{text}");
            let only_u = place == "host" && options.starts_with("-r 1 ");
            assert!(!only_u || error.contains(": U is not finite"), "{text}");
            assert_eq!(error.contains(": U or V is not finite"), place == device, "{text}");
            let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
            let (u, v) = state.whole().unwrap();
            let last = Reader::open(&path).unwrap().read_frame::<f32>(stored - 1).unwrap();
            assert!(last.as_slice() == Some(&v[..]) && u.iter().chain(&v).all(|value| value.is_finite()));
            error.split_once(" is not finite").unwrap().1.to_owned()
        });
        assert_eq!(places[0], places[1]);
    }
    let args = format!(
        "simulate -q -r 30 -c 40 -n 100 -e 3 --dt 20 --check-finite=false -o all.h5 --device {device}"
    );
    succeed(folder.path(), &args);
    assert!(frames(folder.path().join("all.h5"))[99].iter().any(|v| !v.is_finite()));
}

#[test]
fn the_environment_names_the_device_and_the_option_precedes_it() {
    let _deadline = deadline();
    let folder = folder();
    let simulate = |options: &str, variable: &str| {
        let args = format!("simulate --no-output -r 8 -c 9 -n 1 {options}");
        let output = program(folder.path(), &args).env("ANABRANCH_DEVICE", variable).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (ends_well, text) = simulate("", "no such");
    assert!(!ends_well && text.contains("error: ANABRANCH_DEVICE is `no such`: no "), "{text}");
    let (ends_well, text) = simulate("--device host", "no such");
    assert!(ends_well && text.contains(" thread"), "{text}");
    let Some(device) = device() else { return };
    let (ends_well, text) = simulate("", &device);
    assert!(ends_well && text.contains(&format!("on {device}")), "{text}");
    let (ends_well, text) = simulate("--device no-such", "");
    let listed = format!("no device has `no-such` in its name; there are: {device}");
    assert!(!ends_well && text.contains("error: --device no-such: ") && text.contains(&listed), "{text}");
}

#[test]
fn a_field_that_is_too_large_for_a_buffer_of_the_device_is_refused_before_anything_is_written() {
    let _deadline = deadline();
    let Some(device) = device() else { return };
    let folder = folder();
    let found = anabranch_gpu::adapters().into_iter().find(|adapter| adapter.info.name.starts_with(&device));
    let rows = found.unwrap().info.largest_buffer / 4000 + 1;
    let text = fail(folder.path(), &format!("simulate -r {rows} -c 1000 -n 1 --device {device}"), 1);
    // With large buffers, the memory of this machine may be too little before.
    let (too_large, no_memory) =
        (format!("one field of a grid of {rows} × 1000 cells, on {device}"), "available: ");
    assert!(text.contains(&too_large) || rows > 100_000 && text.contains(no_memory), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn auto_never_takes_software_and_says_where_it_computes() {
    let _deadline = deadline();
    let folder = folder();
    let why = anabranch_gpu::why_no_gpu();
    let text = succeed(folder.path(), "simulate --no-output -r 8 -c 9 -n 1 --device auto");
    assert_eq!(text.contains("Computing on the processor: "), why.is_some(), "{text}");
    let output = run(folder.path(), "simulate --no-output -r 8 -c 9 -n 1 --device gpu");
    assert_eq!(output.status.success(), why.is_none());
    let Some(why) = why else { return };
    assert!(text.contains(&why) && text.contains(" thread"), "{text}");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains(&format!("error: --device gpu: no GPU can be used: {why}"))
    );
}

#[test]
fn devices_lists_what_there_is_as_text_and_as_json() {
    let _deadline = deadline();
    let folder = folder();
    let print = |args: &str| String::from_utf8(run(folder.path(), args).stdout).unwrap();
    let (text, json) = (print("devices"), print("devices --json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let why = anabranch_gpu::why_no_gpu();
    assert_eq!(json["why_no_gpu"].as_str(), why.as_deref());
    assert_eq!(text.contains("No GPU can be used: "), why.is_some());
    let adapters = anabranch_gpu::adapters();
    assert_eq!(json["devices"].as_array().unwrap().len(), adapters.len());
    for (adapter, device) in adapters.iter().zip(json["devices"].as_array().unwrap()) {
        assert!(text.contains(&adapter.info.name), "{text}");
        assert_eq!(device["largest_buffer_bytes"], adapter.info.largest_buffer);
        assert!(adapter.info.kind != DeviceKind::Software || device["auto"] == false);
    }
}

#[test]
fn v_is_not_finite_where_u_is_not_after_a_step_that_marks() {
    let _deadline = deadline();
    let Some(device) = device().and_then(|name| anabranch_gpu::by_name(&name).unwrap()) else { return };
    let rt = Runtime::builder().device(&device).build().unwrap();
    let shape = [7, 9];
    // The first value overflows in the step. There is no V, so that nothing of U gets into it.
    for value in [3.4e38, f32::INFINITY, f32::NAN, 1.0] {
        for marks in [true, false] {
            let step = RecordedStep::new(Params { du: 5.0, ..Params::default() }, Edges::Absorbing, marks);
            let [u, v, next_u, next_v] = [(); 4].map(|()| rt.buffer::<f32, 2>(shape));
            let start = rt.task("start").over(shape).write(&u, one_to_one()).write(&v, one_to_one());
            start
                .each(|(u, v)| {
                    let is_cell = u.index(0).equals(3) & u.index(1).equals(4);
                    u.set(is_cell.select(value, 1.0));
                    v.set(0.0);
                })
                .unwrap();
            let around = neighborhood([1, 1]);
            let task = rt.task("step").over(shape).on(&device).read(&u, around).read(&v, around);
            let task = task.write(&next_u, one_to_one()).write(&next_v, one_to_one());
            task.each(move |(u, v, next_u, next_v)| step.record(u, v, next_u, next_v)).unwrap();
            let (u, v) = rt.fence((&next_u, &next_v)).unwrap().wait().unwrap();
            let finite = |values: &[f32]| values.iter().map(|value| value.is_finite()).collect::<Vec<_>>();
            let (u, v) = (finite(u.as_slice()), finite(v.as_slice()));
            assert_eq!(u.iter().all(|&is_finite| is_finite), value == 1.0);
            if marks {
                assert!(u == v, "{value}");
            } else if value == 3.4e38 {
                assert!(v.iter().all(|&is_finite| is_finite));
            }
        }
    }
}

#[test]
fn several_steps_in_one_launch_have_the_bits_of_single_ones() {
    let _deadline = deadline();
    let Some(device) = device().and_then(|name| anabranch_gpu::by_name(&name).unwrap()) else { return };
    let rt = Runtime::builder().device(&device).build().unwrap();
    for shape in [[1, 1], [1, 37], [3, 2], [32, 120], [33, 121], [64, 5], [65, 243]] {
        for edges in [Edges::Absorbing, Edges::Periodic, Edges::Clamped] {
            for (steps, dt) in [(1, 1.0), (2, 1.0), (3, 0.5), (4, 1.0), (4, 0.75)] {
                let params = Params { dt, ..Params::default() };
                let [single, together] = [false, true].map(|together| {
                    let [mut u, mut v, mut next_u, mut next_v] = [(); 4].map(|()| rt.buffer::<f32, 2>(shape));
                    rt.task("start")
                        .over(shape)
                        .write(&u, one_to_one())
                        .write(&v, one_to_one())
                        .each(|(u, v)| {
                            let [row, col] = [u.index(0), u.index(1)];
                            let noise = ((row * 2_654_435_761 + col * 40_503) >> 7) % 1000;
                            let noise = noise.convert::<f32>() * 0.0005;
                            u.set(1.0 - noise);
                            v.set(noise * 0.5);
                        })
                        .unwrap();
                    for _ in 0..if together { 1 } else { steps } {
                        let reach = if together { SeveralSteps::MOST } else { 1 };
                        let around = neighborhood([reach, reach]);
                        let around =
                            if edges == Edges::Periodic { around.periodic() } else { around.any_boxes() };
                        let task = rt.task("steps").over(shape).read(&u, around).read(&v, around);
                        let task = task.write(&next_u, one_to_one()).write(&next_v, one_to_one());
                        if together {
                            // Tiles of both heights.
                            let cells = if steps % 2 == 0 { u64::MAX } else { 0 };
                            let several = SeveralSteps::new(params, edges, cells);
                            task.shader(several.shader(steps, false)).submit().unwrap();
                        } else {
                            let step = RecordedStep::new(params, edges, false);
                            task.each(move |(u, v, next_u, next_v)| step.record(u, v, next_u, next_v))
                                .unwrap();
                        }
                        std::mem::swap(&mut u, &mut next_u);
                        std::mem::swap(&mut v, &mut next_v);
                    }
                    let (u, v) = rt.fence((&u, &v)).unwrap().wait().unwrap();
                    (u.into_vec(), v.into_vec())
                });
                assert!(single == together, "{shape:?}, {edges:?}, {steps} steps of {dt}");
            }
        }
    }
}
