//! What must not compile: memory that escapes, state that is shared by mistake, values on the wrong thread.
//!
//! `escapes/*.rs` are the attempts, `escapes/*.stderr` what the compiler says to them. Its wording changes from version to
//! version, so what is compared is the lines with errors, and the code of the first error in each.
//! `TRYBUILD=overwrite cargo test -p anabranch-par --test escapes` writes them anew.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the attempts are compiled, and the compiler's words are left.
const COPIES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/escapes");

#[test]
fn escapes_do_not_compile_for_the_expected_reason() {
    let attempts = files_of("rs", Path::new("tests/escapes"));
    assert!(!attempts.is_empty());
    let _ = fs::remove_dir_all(COPIES);
    fs::create_dir_all(COPIES).unwrap();
    for attempt in &attempts {
        fs::copy(attempt, Path::new(COPIES).join(attempt.file_name().unwrap())).unwrap();
    }
    // In a process of its own, whose environment tells trybuild to write down whatever the compiler says.
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

/// The lines with errors, and the code of the first one in each: of `error[E0594]: …` and `--> path/name.rs:7:32` behind it,
/// 7 and E0594.
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
