//! Wrong programs do not compile, and the compiler says what to do: memory that escapes, state that is shared
//! by mistake, values on the wrong thread, accesses that do not fit.
//!
//! `misuse/CRATE/*.rs` are the programs. A comment `//~ CODE: text` stands in each line that has an error,
//! with the code of the error (`none` if it has none) and a part of the compiler's message. The texts are
//! those of the crate where it has one: the compiler's own change from version to version.
//!
//! The test is here and not in the crates, so that their dependencies are compiled once more than usual, and
//! not twice. Few of those are needed.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use testing::deadline;

/// The folder in which copies of the programs are compiled, and in which trybuild writes the compiler's
/// messages.
const COPIES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/misuse");

#[test]
fn misuse_fails_to_compile_for_the_expected_reason() {
    let _deadline = deadline();
    let programs = programs();
    let _ = fs::remove_dir_all(COPIES);
    fs::create_dir_all(COPIES).unwrap();
    for program in &programs {
        fs::copy(program, copy_of(program)).unwrap();
    }
    // In a process of its own, whose environment makes trybuild write the compiler's messages to files.
    let compiled = Command::new(env::current_exe().unwrap())
        .args(["--exact", "compile_the_copies", "--ignored", "--nocapture"])
        .env("TRYBUILD", "overwrite")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for program in programs {
        let said = fs::read_to_string(copy_of(&program).with_extension("stderr")).unwrap();
        let (expected, errors) = (expected(&fs::read_to_string(&program).unwrap()), errors(&said));
        let lines = |errors: &BTreeMap<usize, _>| errors.keys().copied().collect::<Vec<_>>();
        let program = program.display();
        assert_eq!(errors.keys().copied().collect::<Vec<_>>(), lines(&expected), "{program}:\n{said}");
        for (line, (code, text)) in expected {
            let error = &errors[&line];
            let begin = if code == "none" { "error:".to_string() } else { format!("error[{code}]") };
            assert!(error.starts_with(&begin) && error.contains(&text), "{program}:{line}\n{error}");
        }
    }
}

#[test]
#[ignore = "a part of the test above"]
fn compile_the_copies() {
    if Path::new(COPIES).exists() {
        trybuild::TestCases::new().compile_fail(format!("{COPIES}/*.rs"));
    }
}

fn programs() -> Vec<PathBuf> {
    let files = |folder: &str| {
        let entries = fs::read_dir(Path::new("tests/misuse").join(folder)).unwrap();
        let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{folder} has programs");
        files
    };
    ["anabranch", "par"].into_iter().flat_map(files).collect()
}

fn copy_of(program: &Path) -> PathBuf {
    let names: Vec<_> = program.iter().rev().take(2).map(|name| name.to_str().unwrap()).collect();
    Path::new(COPIES).join(format!("{}_{}", names[1], names[0]))
}

/// The line, code and text of each comment `//~ CODE: text`.
fn expected(program: &str) -> BTreeMap<usize, (String, String)> {
    let comments =
        program.lines().enumerate().filter_map(|(i, line)| Some((i + 1, line.split_once("//~ ")?.1)));
    let errors = comments.map(|(line, comment)| {
        let (code, text) = comment.split_once(": ").expect("a code and a text");
        (line, (code.to_string(), text.to_string()))
    });
    errors.collect()
}

/// The first error in each line, with its notes. The compiler shows the line, too: without the comment, which
/// has the text that is looked for.
fn errors(said: &str) -> BTreeMap<usize, String> {
    let mut errors = BTreeMap::new();
    let lines = said.lines().map(|line| line.split("//~").next().unwrap_or_default());
    let said = lines.collect::<Vec<_>>().join("\n");
    for error in said.split("\n\n").filter(|part| part.starts_with("error[") || part.starts_with("error:")) {
        let place =
            error.lines().find(|line| line.trim_start().starts_with("-->")).expect("an error has a place");
        let line = place.rsplit(':').nth(1).and_then(|line| line.parse().ok()).expect("a place has a line");
        errors.entry(line).or_insert_with(|| error.to_string());
    }
    errors
}
