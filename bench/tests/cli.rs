//! The command line: rows are listed, unknown names are refused with a hint, and every row can be measured.

#![forbid(unsafe_code)]

use std::process::{Command, Output};

use serde_json::Value;
use testing::deadline;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn list_names_every_row_with_its_bar() {
    let _deadline = deadline();
    let list = text(&bench(&["list"]).stdout);
    let line = |name: &str| list.lines().find(|line| line.split_whitespace().next() == Some(name));
    let hot = line("region/empty-hot").expect("the row is listed");
    assert_eq!(hot.split_whitespace().collect::<Vec<_>>()[1..8], ["ns", "1", "×", "TBB", "and", "1", "×"]);
    for name in [
        "loops/items-1ns",
        "graph/soup",
        "runtime/host-task-wait",
        "gray-scott/1080x1920/2t",
        "store/memory-fs",
    ] {
        assert!(line(name).is_some(), "{name}");
    }
}

/// The names of the rows in the tables of a document.
fn rows_of_tables(document: &str) -> Vec<&str> {
    document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_tables_of_the_readme_hold_exactly_the_rows_of_the_program() {
    let _deadline = deadline();
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(readme).expect("the README is there");
    let (_, figures) = readme.split_once("## Figures").expect("the README has figures");
    let (figures, _) = figures.split_once("## Where things are").expect("the figures end");
    // The figures of a GPU are of another machine. Their rows stand in the other tables, too.
    let (before, of_gpu) =
        figures.split_once("### On a GPU of NVIDIA").expect("the README has figures of a GPU");
    let (of_gpu, behind) = of_gpu.split_once("###").expect("others come behind");
    let mut named = [rows_of_tables(before), rows_of_tables(behind)].concat();
    assert!(rows_of_tables(of_gpu).iter().all(|row| named.contains(row)));
    named.sort_unstable();
    let list = text(&bench(&["list"]).stdout);
    let mut rows: Vec<&str> =
        list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    rows.sort_unstable();
    assert_eq!(named, rows, "`bench all --record` writes the tables of the places in the README");
}

#[test]
fn a_markdown_table_shows_what_was_measured() {
    let _deadline = deadline();
    let output = bench(&["graph/soup", "--smoke", "--markdown"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("**A smoke run: these figures mean little.** Measured on "), "{table}");
    assert_eq!(rows_of_tables(&table), ["graph/soup"]);
}

#[test]
fn an_unknown_name_fails_and_proposes_another() {
    let _deadline = deadline();
    let output = bench(&["region/empty-hut"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean region/empty-hot"), "{}", text(&output.stderr));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "some rows need Linux's memory file system and statistics")]
fn a_smoke_run_measures_every_row() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.json");
    let output = bench(&["all", "--smoke", "--threads", "2", "--json", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));

    let figures: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let figures = figures.as_array().expect("an array");
    let skipped = text(&output.stderr).lines().filter(|line| line.starts_with("skipped: ")).count();
    assert_eq!(figures.len() + skipped, text(&bench(&["list"]).stdout).lines().count() - 1);
    for row in figures {
        let name = row["name"].as_str().expect("a name");
        assert!(row["unit"].is_string(), "{name}");
        let [min, median, max] =
            ["ours_min", "ours_median", "ours_max"].map(|key| row[key].as_f64().expect(key));
        assert!(0.0 <= min && min <= median && median <= max, "{name}: {min}, {median}, {max}");
        let peers = row["peers"].as_array().expect("an array");
        assert!(
            peers.iter().all(|peer| peer["median"].as_f64().is_some_and(|f| f > 0.0)),
            "{name}: {peers:?}"
        );
        assert!(row["bar"].is_number() || row["bar"].is_null(), "{name}");
        assert!(text(&output.stdout).contains(name), "{name} is in the table");
    }
}

#[test]
fn two_builds_are_compared_row_by_row() {
    let _deadline = deadline();
    let program = env!("CARGO_BIN_EXE_bench");
    let rows = ["graph/soup", "schedule/exclusive-200"];
    let options = ["--smoke", "--rounds", "2", "--against", program];
    let output = bench(&[&rows[..], &options].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for row in rows {
        let line = table.lines().find(|line| line.starts_with(row)).expect(row);
        let ratio = line.split_whitespace().last().and_then(|ratio| ratio.parse::<f64>().ok());
        assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{line}");
    }

    let missing = bench(&["graph/soup", "--smoke", "--against", "/no/such/bench"]);
    assert!(!missing.status.success());
    assert!(text(&missing.stderr).contains("/no/such/bench cannot be started"), "{}", text(&missing.stderr));
}

#[test]
fn a_run_is_appended_to_the_history_and_compared_with_the_one_before() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let run = || bench(&["graph/soup", "--smoke", "--no-peers", "--history", path.to_str().unwrap()]);
    let tables = [run(), run()].map(|output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    });
    let ratio = |table: &str| {
        let line = table.lines().rev().find(|line| line.starts_with("graph/soup")).expect("the row is there");
        line.split_whitespace().last().and_then(|ratio| ratio.parse::<f64>().ok())
    };
    assert_eq!(ratio(&tables[0]), None, "{}", tables[0]);
    assert!(ratio(&tables[1]).is_some_and(|ratio| ratio > 0.0), "{}", tables[1]);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);

    std::fs::write(&path, "no run\n").unwrap();
    let refused = run();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("line 1 of"), "{}", text(&refused.stderr));
}
