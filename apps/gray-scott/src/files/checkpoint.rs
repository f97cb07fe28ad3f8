//! The checkpoint beside the output file: the state from which an interrupted run goes on, bit for bit.
//!
//! Whenever the program is stopped, the checkpoint is complete or does not exist: a new one replaces the old
//! one only when it is safe on the device.

use crate::{
    error::Error,
    files::attributes::{attributes, read_parameters},
    parameters::Parameters,
    start::Start,
};
use anabranch_store::{
    Attr, StoreError,
    checkpoint::{self as file, LoadedCheckpoint},
};
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// The path of the checkpoint of an output file: the path of the file, followed by `.checkpoint`.
pub fn path_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// Writes the state after `step` steps, which may lie between two frames. The frames before it must be stored
/// already, since a checkpoint that is ahead of its file is of no use.
///
/// # Errors
/// When the file cannot be written. An older checkpoint still exists then.
pub fn save(path: &Path, parameters: &Parameters, step: u64, u: &[f32], v: &[f32]) -> Result<(), Error> {
    let shape: &[usize] = &[parameters.rows, parameters.cols];
    let mut attributes = attributes(parameters);
    attributes.push(("frames", parameters.frames.into()));
    attributes.push(("step", step.into()));
    let arrays: &[(&str, &[usize], &[f32])] = &[("u", shape, u), ("v", shape, v)];
    Ok(file::save(path, &file::Checkpoint { arrays, attributes: &attributes })?)
}

/// Reads a checkpoint. `None` if there is no such file.
///
/// # Errors
/// When it cannot be read, is damaged, or is not a checkpoint of this program.
pub fn load(path: &Path) -> Result<Option<Start>, Error> {
    let loaded = match file::load(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match interpret(loaded) {
        Some(checkpoint) => Ok(Some(checkpoint)),
        None => Err(Error::NotOurs { path: path.to_owned() }),
    }
}

fn interpret(mut loaded: LoadedCheckpoint) -> Option<Start> {
    let count = |name: &str| match loaded.attribute(name) {
        Some(&Attr::U64(value)) => Some(value),
        _ => None,
    };
    let (frames, step) = (count("frames")?, count("step")?);
    let mut take = |name: &str| {
        let at = loaded.arrays.iter().position(|(other, _)| other == name)?;
        Some(loaded.arrays.swap_remove(at).1)
    };
    let (u, v) = (take("u")?, take("v")?);
    let parameters = read_parameters(frames, u.shape(), &loaded.attributes)?;
    let same_shape = u.shape() == v.shape();
    same_shape.then(|| Start {
        parameters,
        step,
        u: u.into_raw_vec_and_offset().0,
        v: v.into_raw_vec_and_offset().0,
    })
}

/// Removes a checkpoint that is no longer needed, if it exists.
///
/// # Errors
/// When it exists and cannot be removed.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_restored_bit_for_bit_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("run.h5"));
        assert!(path.ends_with("run.h5.checkpoint"));
        assert_eq!(load(&path).unwrap(), None);

        let parameters = Parameters { rows: 2, cols: 3, noise: Some(9), ..Parameters::default() };
        let (u, v) = (vec![0.1, -0.0, 1e-40, 3.0, 0.5, 1.0], vec![0.25; 6]);
        save(&path, &parameters, 1290, &u, &v).unwrap();
        let loaded = load(&path).unwrap().unwrap();
        assert_eq!(loaded.u[1].to_bits(), (-0.0_f32).to_bits());
        assert_eq!((loaded.frames(), parameters.steps_per_frame), (40, 32));
        assert_eq!(loaded, Start { parameters, step: 1290, u, v });

        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(load(&path).unwrap(), None);
    }

    #[test]
    fn a_file_of_another_kind_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "nothing of that kind").unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("notes.txt"));
    }
}
