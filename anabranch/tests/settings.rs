//! Environment variables set the threads of a runtime, and the program overrides them. The environment
//! belongs to the whole process, so each test runs child processes, which run only `probe`.

use anabranch::prelude::*;
use std::process::Command;
use testing::deadline;

/// Builds a runtime in a child process with these environment variables. Returns its number of threads, or
/// the error.
fn probe_with(variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["probe", "--exact", "--ignored", "--nocapture"])
        .env_remove("ANABRANCH_PIN")
        .env_remove("ANABRANCH_WAIT_POLICY")
        .env_remove("ANABRANCH_CHECKED")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (_, answer) = output.split_once("answer: ").expect("the probe prints an answer");
    answer.lines().next().unwrap().into()
}

#[test]
#[ignore = "the other tests run it in child processes"]
fn probe() {
    let mut builder = Runtime::builder();
    if std::env::var_os("EXPLICIT").is_some() {
        builder = builder.threads(3).pin(false).checked(true).help_while_waiting(true).dry_run(2);
        builder = builder.node_timeout(None);
    }
    match builder.build() {
        Ok(rt) => {
            let u = rt.buffer::<u32, 1>([100]);
            rt.task("fill").over([100]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1)).unwrap();
            rt.wait().unwrap();
            rt.task("leave out").over([100]).write(&u, one_to_one()).kernel(|_, _| ()).unwrap();
            let checked = if rt.wait().is_err() { " checked" } else { "" };
            let nodes = rt.dry_run_summary().unwrap_or_else(|| "no dry run".into());
            let nodes = nodes.split(" nodes:").next().unwrap();
            println!("answer: {}{checked} threads, {nodes}", rt.threads());
        }
        Err(error) => match std::error::Error::source(&error) {
            Some(source) => println!("answer: {error}: {source}"),
            None => println!("answer: {error}"),
        },
    }
}

#[test]
fn the_environment_sets_the_threads_of_a_runtime() {
    let _deadline = deadline();
    for threads in ["1", "2", "3", "4", "8"] {
        let variables =
            [("ANABRANCH_NUM_THREADS", threads), ("ANABRANCH_PIN", "1"), ("ANABRANCH_CHECKED", "false")];
        assert_eq!(probe_with(&variables), format!("{threads} threads, no dry run"));
        let variables = [("ANABRANCH_NUM_THREADS", threads), ("ANABRANCH_CHECKED", "1")];
        assert_eq!(probe_with(&variables), format!("{threads} checked threads, no dry run"));
    }
}

#[test]
fn a_wrong_value_is_an_error_that_names_the_variable() {
    let _deadline = deadline();
    for variable in ["ANABRANCH_NUM_THREADS", "ANABRANCH_PIN", "ANABRANCH_WAIT_POLICY", "ANABRANCH_CHECKED"] {
        let answer = probe_with(&[(variable, "some")]);
        let named = answer.contains(&format!("{variable} is ")) && answer.contains("some");
        assert!(named, "{answer}");
    }
    for variable in ["ANABRANCH_HELP_WHILE_WAITING", "ANABRANCH_DRY_RUN_NODES", "ANABRANCH_NODE_TIMEOUT"] {
        let answer = probe_with(&[(variable, "some")]);
        assert!(answer.contains(&format!("{variable} is some; choose ")), "{answer}");
    }
    for timeout in ["0", "-1", "nan", "1e300"] {
        let answer = probe_with(&[("ANABRANCH_NODE_TIMEOUT", timeout)]);
        let expected =
            format!("ANABRANCH_NODE_TIMEOUT is {timeout}; choose a number of seconds above 0, or none");
        assert_eq!(answer, expected);
    }
}

#[test]
fn the_program_overrides_the_environment() {
    let _deadline = deadline();
    let variables = [
        ("EXPLICIT", "1"),
        ("ANABRANCH_NUM_THREADS", "8"),
        ("ANABRANCH_PIN", "maybe"),
        ("ANABRANCH_CHECKED", "0"),
        ("ANABRANCH_HELP_WHILE_WAITING", "maybe"),
        ("ANABRANCH_DRY_RUN_NODES", "5"),
        ("ANABRANCH_NODE_TIMEOUT", "maybe"),
    ];
    assert_eq!(probe_with(&variables), "3 checked threads, dry run for 2");
    assert_eq!(probe_with(&[("ANABRANCH_DRY_RUN_NODES", "5")]).split(", ").last(), Some("dry run for 5"));
}
