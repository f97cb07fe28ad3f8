//! The program as its users start it: exit statuses, standard output and standard error.

use std::process::{Command, Output};
use testing::deadline;

fn gray_scott(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gray-scott")).args(args).output().expect("the program starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("the program exits by itself")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_and_version_go_to_standard_output() {
    let _deadline = deadline();
    let help = gray_scott(&["simulate", "--help"]);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert_eq!(status(&help), 0);
    for option in [
        "--rows",
        "--steps-per-frame",
        "--preset",
        "--resume",
        "--io-buffer",
        "--checkpoint-seconds",
        "--check-finite",
        "--stats-json",
        "[default: 1080]",
    ] {
        assert!(text.contains(option), "{option}");
    }
    let version = gray_scott(&["--version"]);
    assert_eq!(version.stdout, concat!("gray-scott ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[test]
fn wrong_usage_exits_with_2_and_names_the_option_and_the_range() {
    let _deadline = deadline();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["simulate", "--rows", "0"], &["--rows", "from 1 to"]),
        (&["simulate", "--feed", "2"], &["--feed", "from 0 to 1"]),
        (&["simulate", "--dt", "-1"], &["--dt", "from 0.000001 to 100"]),
        (&["simulate", "--resume", "--force"], &["--resume", "--force", "cannot be used with"]),
        (&["simulate", "--preset", "mazess"], &["--preset", "mazes"]),
        (&["render", "x.h5", "--range", "1..0"], &["--range", "A..B"]),
        (&["render", "x.h5", "--animation", "x.mp4"], &["--animation", ".gif"]),
    ];
    for (args, parts) in cases {
        let output = gray_scott(args);
        assert_eq!(status(&output), 2, "{args:?}");
        for part in parts {
            assert!(stderr(&output).contains(part), "{part} in {}", stderr(&output));
        }
    }
}

#[test]
fn presets_are_listed() {
    let _deadline = deadline();
    let output = gray_scott(&["simulate", "--list-presets"]);
    assert_eq!(status(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("u-skate"));
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let _deadline = deadline();
    for command in ["info", "render"] {
        let output = gray_scott(&[command, "no/such/file.h5"]);
        assert_eq!(status(&output), 1);
        assert!(stderr(&output).starts_with("error: ") && stderr(&output).contains("no/such/file.h5"));
        assert!(output.stdout.is_empty());
    }
}
