//! Runs that are resumed or extended, and runs that end because a value is not finite.

mod common;

use anabranch_store::Reader;
use common::{fail, folder, frames, succeed};
use gray_scott::files::checkpoint;
use std::fs;
use testing::deadline;

#[test]
fn a_run_is_resumed_with_the_parameters_of_its_file() {
    let _deadline = deadline();
    let folder = folder();
    let text = fail(folder.path(), "simulate --resume -o none.h5", 1);
    assert!(text.contains("none.h5"), "{text}");
    succeed(folder.path(), "simulate -q -r 9 -c 9 -n 2 --feed 0.03");
    let text = fail(folder.path(), "simulate --resume --feed 0.02", 2);
    assert!(text.contains("was made with --feed 0.03, not 0.02"), "{text}");
    let text = fail(folder.path(), "simulate --resume --frames 1", 2);
    assert!(text.contains("was made with --frames 2, not 1"), "{text}");
    assert!(succeed(folder.path(), "simulate --resume").contains("complete: nothing is left to do"));
}

#[test]
fn a_finished_run_is_extended_bit_for_bit() {
    let _deadline = deadline();
    let folder = folder();
    let base = "-r 30 -c 40 -e 7 --noise 2";
    succeed(folder.path(), &format!("simulate -q {base} -n 8 -o whole.h5"));
    let whole = frames(folder.path().join("whole.h5"));
    for (options, note) in [
        ("--checkpoint-every 0", "computing from step 0 again"),
        ("--checkpoint-every 2", "Computing steps 28 to 35 again"),
        ("--checkpoint-every 2 --compress 4", "Computing steps 28 to 35 again"),
    ] {
        succeed(folder.path(), &format!("simulate -q {base} -n 5 --force {options}"));
        let before = frames(folder.path().join("output.h5"));
        let text = succeed(folder.path(), "simulate --resume --frames 8");
        // What is computed again is said before the start.
        let (noted, started) = (text.find(note), text.find("Simulating 30 × 40"));
        assert!(noted.is_some() && noted < started, "{options}: {text}");
        assert!(text.contains("Extending output.h5"), "{text}");
        let after = frames(folder.path().join("output.h5"));
        assert!(after == whole && after[..5] == before, "{options}");
        let compressed = Reader::open(folder.path().join("output.h5")).unwrap().is_compressed();
        assert_eq!(compressed, options.contains("--compress"));
        assert!(!folder.path().join("output.h5.extended").exists());
    }
}

#[test]
fn a_value_that_is_not_finite_ends_the_run_before_its_frame_is_stored() {
    let _deadline = deadline();
    let folder = folder();
    let path = folder.path().join("output.h5");
    for options in ["--checkpoint-every 1", "--checkpoint-every 0 -j 1", "--checkpoint-every 2 -j 3"] {
        let args = format!("simulate -r 30 -c 40 -n 500 -e 3 --dt 20 --force {options}");
        let text = fail(folder.path(), &args, 1);
        let (warned, ended) =
            (text.find("Warning: --dt 20 is beyond the limit of stability"), text.find(" frames in "));
        assert!(warned.is_some() && warned < ended, "{text}");
        let stored = Reader::open(&path).unwrap().stored_frames().unwrap();
        assert!(stored > 0, "{text}");
        let error = text.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(error.contains(" is not finite in row ") && error.contains(", column "), "{error}");
        let place = format!("after {} steps (frame {stored})", 3 * (stored + 1));
        assert!(error.contains(&place) && error.contains("--check-finite=false"), "{error}");

        // The checkpoint holds the state after the last frame that is stored.
        let state = checkpoint::load(&checkpoint::path_of(&path)).unwrap().unwrap();
        assert_eq!(state.step, 3 * stored);
        let last = Reader::open(&path).unwrap().read_frame::<f32>(stored - 1).unwrap();
        let (u, v) = state.whole().unwrap();
        assert!(last.iter().all(|v| v.is_finite()) && last.as_slice() == Some(&v[..]));
        assert!(u.iter().all(|u| u.is_finite()));

        let again = fail(folder.path(), "simulate --resume", 1);
        assert_eq!(again.lines().find(|line| line.starts_with("error: ")), Some(error));
    }
    succeed(folder.path(), "simulate -q -r 30 -c 40 -n 100 -e 3 --dt 20 --check-finite=false -o all.h5");
    assert!(frames(folder.path().join("all.h5"))[99].iter().any(|v| !v.is_finite()));
}

#[test]
fn the_first_frame_may_not_be_finite() {
    let _deadline = deadline();
    let folder = folder();
    let text = fail(folder.path(), "simulate -r 30 -c 40 -n 2 -e 300 --dt 20", 1);
    assert!(text.contains("after 300 steps (frame 0)"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let text = fail(folder.path(), "simulate --no-output -r 30 -c 40 -n 2 -e 300 --dt 20", 1);
    assert!(text.contains("after 300 steps (frame 0)"), "{text}");
}
