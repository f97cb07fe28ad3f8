//! h5py and this crate read each other's files. The test is skipped where h5py is not installed; the
//! environment variable `PYTHON` names the interpreter, which is `python3` by default.

use anabranch_store::{FileOptions, Reader, Stamp};
use std::{io::Write as _, path::Path, process::Command};
use testing::deadline;

/// Runs a script with a path, and returns its output. `None` without h5py.
fn python(script: &str, path: &Path) -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import h5py"]).output();
    if !probe.is_ok_and(|out| out.status.success()) {
        // Not captured by the test harness, so that `./check` lists it.
        let _ = writeln!(std::io::stderr(), "skipped: {python} has no h5py");
        return None;
    }
    let out = Command::new(&python).args(["-c", script]).arg(path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).trim().into())
}

// One test, since a process that is started while another thread has HDF5 files open inherits their locks.
#[test]
fn files_are_exchanged_with_h5py() {
    let _deadline = deadline();
    unfinished_files_are_read_by_h5py();
    a_file_of_the_other_byte_order_is_readable();
}

fn unfinished_files_are_read_by_h5py() {
    let script = "import h5py, sys\n\
        f = h5py.File(sys.argv[1])\n\
        n = int(f['stored_frames'][()])\n\
        print(f['matrix'].shape, f['matrix'].dtype, n, f.attrs['feed'], f['matrix'][:n].sum(), f['step'][n - 1])";
    for compress in [None, Some(6)] {
        let folder = tempfile::tempdir().unwrap();
        let options =
            FileOptions::new(folder.path().join("out.h5")).frames(7).frame_shape(&[5, 9]).stamps(true);
        let mut writer = options.compress(compress).attribute("feed", 0.5_f32).create::<f32>().unwrap();
        for step in [0, 32, 64] {
            writer.append(&[2.0; 45], Stamp { step, time: 0.0 }).unwrap();
        }
        if let Some(text) = python(script, writer.path()) {
            assert_eq!(text, "(7, 5, 9) float32 3 0.5 270.0 64");
        }
    }
}

fn a_file_of_the_other_byte_order_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.h5");
    let script = "import h5py, numpy, sys\n\
        h5py.File(sys.argv[1], 'w')['x'] = numpy.arange(6, dtype='>f4').reshape(2, 3)";
    if python(script, &path).is_some() {
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.read_frame::<f32>(1).unwrap().as_slice().unwrap(), [3.0, 4.0, 5.0]);
    }
}
