//! Wrong programs do not compile: memory that escapes, state that is shared by mistake, values on the wrong thread.
//!
//! `escapes/*.rs` are the programs, and `escapes/*.stderr` the compiler's messages. Their wording changes from version to
//! version, so the test compares only the lines with errors, and the code of the first error in each line.
//! `TRYBUILD=overwrite cargo test -p anabranch-par --test escapes` rewrites the messages.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder in which copies of the programs are compiled, and in which trybuild writes the compiler's messages.
const COPIES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/escapes");

#[test]
fn escapes_fail_to_compile_for_the_expected_reason() {
    let attempts = files_of("rs", Path::new("tests/escapes"));
    assert!(!attempts.is_empty());
    let _ = fs::remove_dir_all(COPIES);
    fs::create_dir_all(COPIES).unwrap();
    for attempt in &attempts {
        fs::copy(attempt, Path::new(COPIES).join(attempt.file_name().unwrap())).unwrap();
    }
    // In a process of its own, whose environment makes trybuild write the compiler's messages to files.
    let compiled = Command::new(env::current_exe().unwrap())
        .args(["--exact", "compile_the_copies", "--ignored", "--nocapture"])
        .env("TRYBUILD", "overwrite")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for attempt in attempts {
        let expected = attempt.with_extension("stderr");
        let said = Path::new(COPIES).join(expected.file_name().unwrap());
        if env::var_os("TRYBUILD").is_some_and(|update| update == "overwrite") {
            fs::write(&expected, fs::read_to_string(&said).unwrap().replace(COPIES, "tests/escapes"))
                .unwrap();
        }
        let (said, expected) = (fs::read_to_string(said).unwrap(), fs::read_to_string(expected).unwrap());
        assert_eq!(errors(&said), errors(&expected), "{}:\n{said}", attempt.display());
    }
}

#[test]
#[ignore = "a part of the test above"]
fn compile_the_copies() {
    if Path::new(COPIES).exists() {
        trybuild::TestCases::new().compile_fail(format!("{COPIES}/*.rs"));
    }
}

fn files_of(extension: &str, folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == extension));
    files.sort();
    files
}

/// The lines with errors, and the code of the first error in each line. For `error[E0594]: …` followed by
/// `--> path/name.rs:7:32`, that is 7 and E0594.
fn errors(said: &str) -> BTreeMap<&str, &str> {
    let mut errors = BTreeMap::new();
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        let Some(error) = line.strip_prefix("error") else { continue };
        let code = error.strip_prefix('[').and_then(|error| error.split(']').next()).unwrap_or("no code");
        let place = lines.by_ref().find(|line| line.trim_start().starts_with("-->")).unwrap_or_default();
        errors.entry(place.rsplit(':').nth(1).unwrap_or_default()).or_insert(code);
    }
    errors
}
