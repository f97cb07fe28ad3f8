//! A checkpoint is restored bit for bit, or refused.

use anabranch_store::checkpoint::{Checkpoint, load, save};
use anabranch_store::{Attr, FileOptions};
use testing::deadline;

fn data() -> (Vec<f32>, Vec<f32>) {
    let odd = [f32::NAN, -0.0, f32::MIN_POSITIVE / 8.0, f32::INFINITY, 1.0, -1.5];
    (odd.to_vec(), (0..1000).map(|i| (i as f32).sqrt()).collect())
}

#[test]
fn arrays_and_attributes_are_restored_bit_for_bit() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.h5");
    let (u, v) = data();
    let attributes = [("step", Attr::U64(7)), ("time", Attr::F64(0.1)), ("program", Attr::from("a program"))];
    save(&path, &Checkpoint { arrays: &[("u", &[2, 3], &u), ("v", &[50, 20], &v)], attributes: &attributes })
        .unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.arrays.len(), 2);
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(loaded.array("u").unwrap().shape(), [2, 3]);
    assert_eq!(bits(loaded.array("u").unwrap().as_slice().unwrap()), bits(&u));
    assert_eq!(bits(loaded.array("v").unwrap().as_slice().unwrap()), bits(&v));
    for (name, value) in &attributes {
        assert_eq!(loaded.attribute(name), Some(value));
    }
    assert_eq!(loaded.attributes.len(), attributes.len());
    assert!(loaded.array("w").unwrap_err().to_string().contains("no array \"w\""));
}

#[test]
fn a_checkpoint_replaces_the_one_before_and_leaves_no_other_file() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.h5");
    for step in 0..3 {
        save(&path, &Checkpoint { arrays: &[], attributes: &[("step", Attr::U64(step))] }).unwrap();
        assert_eq!(load(&path).unwrap().attribute("step"), Some(&Attr::U64(step)));
    }
    // A checkpoint that cannot be written leaves the old one.
    let twice = Checkpoint { arrays: &[("u", &[1], &[0.0]), ("u", &[1], &[0.0])], attributes: &[] };
    assert!(save(&path, &twice).unwrap_err().to_string().contains("HDF5 cannot write"));
    let wrong = Checkpoint { arrays: &[("u", &[2, 2], &[0.0])], attributes: &[] };
    assert!(save(&path, &wrong).unwrap_err().to_string().contains("\"u\" of shape [2, 2]"));
    assert_eq!(load(&path).unwrap().attribute("step"), Some(&Attr::U64(2)));
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}

#[test]
fn a_truncated_damaged_or_foreign_file_is_refused() {
    let _deadline = deadline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.h5");
    let why = || load(&path).unwrap_err().to_string();
    assert!(why().contains("cannot open"));
    let (_, v) = data();
    save(&path, &Checkpoint { arrays: &[("v", &[1000], &v)], attributes: &[] }).unwrap();
    let bytes = std::fs::read(&path).unwrap();

    for len in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(load(&path).is_err(), "cut to {len} bytes");
    }
    let needle = v[500].to_le_bytes();
    let at = bytes.windows(4).position(|w| w == needle).unwrap();
    let mut damaged = bytes.clone();
    damaged[at] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    assert!(why().contains("array \"v\" is damaged"), "{}", why());

    let frames = FileOptions::new(&path).force(true).frames(1).frame_shape(&[1]);
    frames.create::<f32>().unwrap().finish().unwrap();
    assert!(why().contains("it is not a checkpoint"), "{}", why());
}
