//! Every test that waits for another thread or for a child process has a deadline.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files whose tests wait for no thread: values alone, and a program with deadlines of its own.
const WITHOUT: [&str; 7] = [
    "tests/fork.rs",
    "src/cancel.rs",
    "src/panic.rs",
    "src/patience.rs",
    "src/region/claims/tests.rs",
    "src/schedule.rs",
    "src/scratch/bump.rs",
];

#[test]
fn every_test_that_waits_has_a_deadline() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests", "src"] {
        list(&crate_folder.join(folder), &mut files);
    }
    let mut tests = 0;
    for path in files {
        let name = path.strip_prefix(crate_folder).unwrap().to_str().unwrap().replace('\\', "/");
        let is_model = name.ends_with("models.rs");
        if is_model || WITHOUT.contains(&&*name) || name == "tests/deadlines.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for test in text.split("#[test]").skip(1) {
            tests += 1;
            let head: String = test.lines().take_while(|line| !line.contains("let _deadline")).collect();
            let body = test.find("let _deadline = testing::deadline();");
            assert!(
                body.is_some() && head.matches(" {").count() == 1,
                "{name}: a test does not begin with `let _deadline = testing::deadline();`: {}",
                test.lines().find(|line| line.contains("fn ")).unwrap_or_default().trim()
            );
        }
    }
    assert!(tests > 200, "the search finds {tests} tests only");
}

/// Adds the Rust files in a folder and its subfolders.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
