//! `ANABRANCH_DRY_RUN_NODES=4 gray-scott`: what nodes would execute and send, from a run of one process.

mod common;

use common::folder;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};
use testing::deadline;

fn dry_run(folder: &Path, args: &str) -> (Output, serde_json::Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_gray-scott"))
        .args(args.split_whitespace())
        .current_dir(folder)
        .env("ANABRANCH_DRY_RUN_NODES", "4")
        .env("ANABRANCH_PRINT_GRAPHS", folder.join("graph.json"))
        .output()
        .unwrap();
    let commands = fs::read_to_string(folder.join("graph-commands.json")).unwrap();
    (output, serde_json::from_str(&commands).unwrap())
}

/// The boxes of each field that a sweep sends from one node to another: by the task, the nodes and the field.
fn borders(commands: &serde_json::Value) -> BTreeMap<(String, u16, u16, char), usize> {
    let mut borders = BTreeMap::new();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let number = |text: &str| text.rsplit(' ').next().unwrap().parse::<u16>().unwrap();
    for command in commands["nodes"].as_array().unwrap() {
        let task = text(&command["name"]);
        if command["kind"] != "push" || !task.starts_with("advance") {
            continue;
        }
        let from = number(&text(&command["cluster"]));
        let details: Vec<_> = command["details"].as_array().unwrap().iter().map(text).collect();
        // Frames are V.
        let field = if details[0].contains("u\"") { 'u' } else { 'v' };
        for target in &details[1..] {
            let (boxes, to) = target.split_once(" to ").unwrap();
            *borders.entry((task.clone(), from, number(to), field)).or_default() +=
                boxes.split(" + ").count();
        }
    }
    borders
}

#[test]
fn a_node_sends_one_message_for_each_border_and_field() {
    let _deadline = deadline();
    let folder = folder();
    let (output, commands) =
        dry_run(folder.path(), "simulate -q -r 400 -c 30 -n 2 -e 50 -j 2 --edges absorbing --no-output");
    assert!(output.status.success(), "{output:?}");
    let borders = borders(&commands);
    let mut sweeps: Vec<_> = borders.keys().map(|(task, ..)| task.as_str()).collect();
    sweeps.dedup();
    sweeps.sort_by_key(|task| (task.len(), *task));
    // Node 0 has the state from which a dry run starts, and the first sweep gets it from there.
    let (first, later) = sweeps.split_first().unwrap();
    let mut messages = 0;
    for ((task, from, to, field), boxes) in borders.iter().filter(|((task, ..), _)| task != first) {
        assert_eq!(from.abs_diff(*to), 1, "{task} sends {field} from {from} to {to}, which is no neighbour");
        assert_eq!(*boxes, 1, "{task} sends {field} from {from} to {to}");
        messages += 1;
    }
    // Three borders between four nodes, both ways, two fields. Node 0 has V of its neighbour already after it
    // has stored a frame.
    assert!(later.len() >= 4);
    assert_eq!(messages, 12 * later.len() - 1, "{borders:#?}");
}
