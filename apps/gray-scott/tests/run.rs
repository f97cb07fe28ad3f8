//! Whole runs of the program: frames are stored, reported and rendered.

mod common;

use common::{fail, folder, frames, program, run, succeed};
use gray_scott::report::units;
use std::{fs, path::Path, time::Duration};
use testing::deadline;

#[test]
fn any_size_is_simulated_stored_and_described() {
    let _deadline = deadline();
    let folder = folder();
    for (rows, cols) in [(1, 1), (7, 5), (3, 200), (130, 2)] {
        let text = succeed(folder.path(), &format!("simulate -r {rows} -c {cols} -n 3 -e 5 --force"));
        assert!(text.contains("3 frames in ") && text.contains(" render output.h5"), "{text}");
        let frames = frames(folder.path().join("output.h5"));
        assert_eq!((frames.len(), frames[2].len()), (3, rows * cols));
        let info = run(folder.path(), "info output.h5");
        assert!(String::from_utf8_lossy(&info.stdout).contains("3 of 3 stored: complete"));
    }
}

#[test]
fn the_result_does_not_depend_on_threads_queue_or_compression() {
    let _deadline = deadline();
    let folder = folder();
    let base = "simulate -q -r 40 -c 33 -n 4 -e 9 --edges periodic --noise 3 --preset mazes";
    succeed(folder.path(), &format!("{base} -o a.h5 -j 1"));
    succeed(folder.path(), &format!("{base} -o b.h5 -j 8 -i 0 --sync frame"));
    succeed(folder.path(), &format!("{base} -o c.h5 -j 3 --compress 3 --checkpoint-every 1"));
    let a = frames(folder.path().join("a.h5"));
    assert_eq!(a, frames(folder.path().join("b.h5")));
    assert_eq!(a, frames(folder.path().join("c.h5")));
}

#[test]
fn statistics_are_one_json_object() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 20 -c 30 -n 4 -e 3 -j 2 --stats-json stats.json");
    let text = fs::read(folder.path().join("stats.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (name, value) in [("rows", 20), ("cols", 30), ("steps", 12), ("frames", 4), ("threads", 2)] {
        assert_eq!(json[name], value, "{name}");
    }
    assert_eq!((&json["stored_frames"], &json["bytes_written"]), (&4.into(), &(4 * 20 * 30 * 4).into()));
    assert!(json["ns_per_cell_step"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_printed_lines_and_the_statistics_agree_about_where_the_time_went() {
    let _deadline = deadline();
    let folder = folder();
    let runs = [
        "-r 4 -c 4 -n 30 -e 1 --sync frame",
        "-r 60 -c 60 -n 2 -e 300",
        "-r 20 -c 20 -n 9 -e 2 --checkpoint-every 1",
        "-r 90 -c 90 -n 5 -e 2 --compress 9",
        "-r 9 -c 9 -n 3 --no-output",
    ];
    for (number, args) in runs.into_iter().enumerate() {
        let file = if args.contains("--no-output") { String::new() } else { format!("-o {number}.h5") };
        let text = succeed(folder.path(), &format!("simulate {args} {file} --stats-json stats.json"));
        let json = fs::read(folder.path().join("stats.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let of = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name} in {json}"));
        let parts = ["seconds_compute", "seconds_waiting_for_storage", "seconds_start_up", "seconds_other"];
        let sum: f64 = parts.into_iter().map(of).sum();
        assert!((of("seconds_total") - sum).abs() < 1e-9, "{json}");

        // Storing is waiting for storage, but for the part of it in which something was computed.
        let storage = |name: &str| json["storage"][name].as_f64().unwrap_or(0.0);
        let (storing, both) = (storage("seconds_storing"), storage("seconds_storing_while_computing"));
        assert!((storing - both - of("seconds_waiting_for_storage")).abs() < 1e-9, "{json}");
        assert!(both <= of("seconds_compute"), "{json}");
        assert_eq!(storage("seconds_checkpoints") > 0.0, args.contains("--checkpoint-every"), "{json}");

        // The lines have these numbers.
        let time = |seconds: f64| units::duration(Duration::from_secs_f64(seconds));
        let share =
            |seconds: f64| format!("{} ({:.0} %)", time(seconds), 100.0 * seconds / of("seconds_total"));
        let mut parts = vec![
            format!("{} frames in {}: ", json["frames"], time(of("seconds_total"))),
            format!(" compute {}, ", share(of("seconds_compute"))),
            format!(" waiting for storage {}, ", share(of("seconds_waiting_for_storage"))),
            format!(" start-up {}", share(of("seconds_start_up"))),
            format!("; {:.3} ns per cell and step", of("ns_per_cell_step")),
        ];
        if json["storage"].is_object() {
            parts.push(format!(" Stored for {}, {} of it while computing", time(storing), time(both)));
            parts.push(format!("; frames at {}.", units::rate(storage("bytes_per_second"), "B")));
        }
        if storage("seconds_checkpoints") > 0.0 {
            parts.push(format!(", {} of it for checkpoints; ", time(storage("seconds_checkpoints"))));
        }
        for part in parts {
            assert!(text.contains(&part), "{part:?} is not in {text}");
        }
        let other = format!(", other {};", share(of("seconds_other")));
        assert_eq!(
            text.contains(&other),
            of("seconds_other") > 0.01 * of("seconds_total"),
            "{other}: {text}"
        );

        let sides = [of("seconds_compute"), storing, of("seconds_start_up"), of("seconds_other")];
        let names = ["compute", "storage", "start-up", "other"];
        let lines =
            ["Compute was the limit", "Storage was the limit", "The start-up took longest", "Neither"];
        let at = names.iter().position(|name| json["limit"] == *name).unwrap();
        assert_eq!(sides[at], sides.into_iter().fold(0.0, f64::max), "{json}");
        assert!(text.lines().any(|line| line.starts_with(lines[at])), "{json}: {text}");
    }
}

#[test]
fn the_environment_sets_the_number_of_threads_unless_an_option_does() {
    let _deadline = deadline();
    let folder = folder();
    let threads = |variable: &str, option: &str| {
        let args = format!("simulate -q --no-output -r 9 -c 9 -n 1 -e 1 --stats-json stats.json {option}");
        let output = program(folder.path(), &args).env("ANABRANCH_NUM_THREADS", variable).output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let json = fs::read(folder.path().join("stats.json")).unwrap();
        Ok(serde_json::from_slice::<serde_json::Value>(&json).unwrap()["threads"].as_u64().unwrap())
    };
    assert_eq!(threads("3", ""), Ok(3));
    assert_eq!(threads("3", "-j 2"), Ok(2));
    assert_eq!(threads("many", "-j 2"), Ok(2));
    let error = threads("many", "").unwrap_err();
    assert!(error.contains("ANABRANCH_NUM_THREADS is \"many\""), "{error}");
    succeed(folder.path(), "simulate -q -r 9 -c 9 -n 2 -e 1");
    let mut render = program(folder.path(), "render output.h5");
    assert!(!render.env("ANABRANCH_NUM_THREADS", "0").output().unwrap().status.success());
}

#[test]
fn without_output_nothing_is_written() {
    let _deadline = deadline();
    let folder = folder();
    let text = succeed(folder.path(), "simulate --no-output -r 20 -c 30 -n 4");
    assert!(text.contains("nothing was stored"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_quiet_run_prints_nothing() {
    let _deadline = deadline();
    let folder = folder();
    let output = run(folder.path(), "simulate -q -r 9 -c 9 -n 2");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn an_existing_file_is_kept_unless_forced() {
    let _deadline = deadline();
    let folder = folder();
    fs::write(folder.path().join("output.h5"), "precious").unwrap();
    let text = fail(folder.path(), "simulate -r 9 -c 9 -n 2", 1);
    assert!(text.contains("output.h5 exists already: use --force"), "{text}");
    assert_eq!(fs::read(folder.path().join("output.h5")).unwrap(), b"precious");
    succeed(folder.path(), "simulate -r 9 -c 9 -n 2 --force");
    assert_eq!(frames(folder.path().join("output.h5")).len(), 2);
}

#[test]
fn output_that_cannot_be_written_is_refused_before_the_start() {
    let _deadline = deadline();
    let folder = folder();
    let text = fail(folder.path(), "simulate -n 1000000000000", 1);
    assert!(text.contains("needs 8.29 EB, and the file system has "), "{text}");
    let text = fail(folder.path(), "simulate -r 9 -c 9 -o no/such/folder/x.h5", 1);
    assert!(text.contains("no/such/folder does not exist"), "{text}");
    let text = fail(folder.path(), "simulate -r 1000000000 -c 1000000000 -n 1000000", 2);
    assert!(text.contains("--rows"), "{text}");
    for path in ["no/such/stats.json", "."] {
        let text = fail(folder.path(), &format!("simulate -r 9 -c 9 -n 2 --stats-json {path}"), 1);
        assert!(text.contains(&format!("cannot write {path}")), "{text}");
    }
    #[cfg(target_os = "linux")]
    for output in ["", "--no-output"] {
        let text = fail(folder.path(), &format!("simulate -r 1000000 -c 1000000 -n 1 {output}"), 1);
        assert!(text.contains("1000000 × 1000000 cells needs ") && text.contains(" of memory"), "{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn frames_become_pictures_and_animations() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 30 -c 50 -n 12 -e 4");
    succeed(folder.path(), "render -q output.h5 --every 5 --scale 2");
    let mut names: Vec<_> =
        fs::read_dir(folder.path().join("frames")).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    assert_eq!(names, ["0000", "0005", "0010"].map(|n| folder.path().join(format!("frames/frame-{n}.png"))));
    let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(&names[0]).unwrap()));
    assert_eq!(decoder.read_info().unwrap().info().size(), (100, 60));
    for name in ["a.gif", "a.png"] {
        succeed(folder.path(), &format!("render -q output.h5 -j 3 --animation {name}"));
        assert!(fs::metadata(folder.path().join(name)).unwrap().len() > 1000);
    }
    let text = fail(folder.path(), "render output.h5 --last 12", 2);
    assert!(text.contains("--last 12") && text.contains("frames 0 to 11"), "{text}");
}

#[test]
fn older_pictures_are_reported_or_removed() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 8 -c 8 -n 6 -e 1");
    let pictures = || fs::read_dir(folder.path().join("frames")).unwrap().count();
    let text = succeed(folder.path(), "render output.h5");
    assert!(!text.contains("earlier"), "{text}");
    let text = succeed(folder.path(), "render output.h5 --last 1");
    assert!(text.contains("frames also holds 4 pictures of earlier renderings; --clean removes"), "{text}");
    assert_eq!(pictures(), 6);
    let text = succeed(folder.path(), "render output.h5 --last 1 --clean");
    assert!(text.contains("Removed 4 pictures of earlier renderings from frames"), "{text}");
    assert_eq!(pictures(), 2);
}

#[test]
fn pictures_go_to_standard_output_in_order() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 20 -c 30 -n 12 -e 3");
    succeed(folder.path(), "render -q output.h5");
    let mut expected = Vec::new();
    for frame in 0..12 {
        expected.extend(fs::read(folder.path().join(format!("frames/frame-{frame:04}.png"))).unwrap());
    }
    let output = run(folder.path(), "render output.h5 -j 3 -o -");
    assert!(output.status.success());
    assert!(output.stdout == expected, "{} bytes, not {}", output.stdout.len(), expected.len());
    assert!(!folder.path().join("-").exists());
}

/// Stores three compressed frames in `output.h5`, of which the last one cannot be read.
fn simulate_with_a_damaged_frame(folder: &Path) {
    succeed(folder, "simulate -q -r 2 -c 100 -n 3 -e 1 --compress 1");
    let path = folder.join("output.h5");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 24..].fill(0xff);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_failed_animation_leaves_no_half_file() {
    let _deadline = deadline();
    let folder = folder();
    simulate_with_a_damaged_frame(folder.path());
    fs::write(folder.path().join("a.gif"), "the old one").unwrap();
    for name in ["a.gif", "b.png"] {
        let text = fail(folder.path(), &format!("render output.h5 --range 0..1 -a {name}"), 1);
        assert!(text.contains(" is damaged"), "{text}");
        assert_eq!(fs::read(folder.path().join("a.gif")).unwrap(), b"the old one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn pictures_that_cannot_be_written_are_refused_before_the_first_frame_is_read() {
    let _deadline = deadline();
    let folder = folder();
    simulate_with_a_damaged_frame(folder.path());
    fs::write(folder.path().join("a.gif"), "the old one").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let mut refused = vec![
        ("-a none/x.gif", 1, "cannot write none/x.gif"),
        ("-a a.gif --scale 1000", 1, "cannot write a.gif: a GIF is at most 65535 pixels wide"),
        ("-a a.gif -o file/frames", 1, "cannot create the folder file/frames"),
        ("-o - --clean", 2, "--clean: no pictures go to a folder"),
        ("-a a.gif --clean", 2, "give a folder with --output, or leave out --clean"),
    ];
    if cfg!(target_os = "linux") {
        // Nothing can be created there, also by root.
        refused.push(("-o /sys", 1, "cannot write /sys/frame-0000.png"));
    }
    for (args, status, message) in refused {
        let args = if args.contains("-o ") || args.contains("--clean") {
            args.into()
        } else {
            format!("-o frames {args}")
        };
        let text = fail(folder.path(), &format!("render output.h5 {args}"), status);
        assert!(text.contains(message), "{args}: {text}");
        assert!(!text.contains(" is damaged"), "{args}: {text}");
        assert_eq!(fs::read(folder.path().join("a.gif")).unwrap(), b"the old one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "{args}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pictures_that_need_more_memory_than_there_is_are_refused() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 1080 -c 1920 -n 1 -e 1");
    for args in ["", "-a a.png", "-o -"] {
        let text = fail(folder.path(), &format!("render output.h5 --scale 1000 {args}"), 1);
        let message = "rendering pictures of 1920000 × 1080000 pixels needs ";
        assert!(text.contains(message) && text.contains("a smaller --scale"), "{args}: {text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{args}");
    }
}

#[test]
fn information_is_one_json_object() {
    let _deadline = deadline();
    let folder = folder();
    succeed(folder.path(), "simulate -q -r 6 -c 7 -n 3 -e 4 --kill 0.06093");
    let output = run(folder.path(), "info --json output.h5");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["frames"], &json["stored_frames"], &json["complete"]),
        (&3.into(), &3.into(), &true.into())
    );
    assert_eq!(json["frame_shape"], serde_json::json!([6, 7]));
    assert_eq!(json["attributes"]["kill"], 0.06093);
    assert_eq!(json["newest_frame"]["step"], 12);
}

#[test]
fn storage_is_measured_in_every_way() {
    let _deadline = deadline();
    let folder = folder();
    let output = run(folder.path(), "bench storage -r 16 -c 16 -n 3 -e 2 --runs 1 -j 2");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ways = [
        "no output",
        "memory ",
        "memory, deflate 1",
        "disk, no sync",
        "disk, sync at the end",
        "disk, sync each frame",
        "disk, deflate 1",
    ];
    for way in ways {
        let line = text.lines().find(|line| line.starts_with(way)).unwrap_or_else(|| panic!("{way}: {text}"));
        let limit = line.rsplit("  ").next().unwrap();
        assert!(["compute", "storage", "start-up", "other"].contains(&limit), "{line}");
    }
    assert!(
        text.contains("storage is the limit for: ") && text.contains("compute is the limit for: "),
        "{text}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_measurement_of_storage_that_cannot_end_is_refused_before_it_begins() {
    let _deadline = deadline();
    let folder = folder();
    let mut refused = vec![("-r 16 -c 16 -n 3 -e 2 --folder none", "cannot write none/gray-scott-bench-")];
    if cfg!(target_os = "linux") {
        refused.extend([
            ("-r 1000000 -c 1000000", "a grid of 1000000 × 1000000 cells needs "),
            ("-r 16 -c 16 -n 1000000000000 -e 1", "needs 1.02 PB"),
        ]);
    }
    for (args, message) in refused {
        let output = run(folder.path(), &format!("bench storage --runs 1 -j 2 {args}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.starts_with("error: ") && text.contains(message), "{text}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
