//! The checkpoint beside the output file: the state from which an interrupted run goes on, bit for bit.
//!
//! It is there in whole or not at all, whenever the program is stopped: a new one takes the place of the old one
//! only when it is safe on the device.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anabranch_store::checkpoint::{self as store, LoadedCheckpoint};
use anabranch_store::{Attr, StoreError};

use crate::error::Error;
use crate::output;
use crate::parameters::Parameters;

/// A state between two frames, with what it is a state of.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The whole run.
    pub parameters: Parameters,
    /// Frames that lie behind this state.
    pub frames_done: u64,
    /// U, row after row.
    pub u: Vec<f32>,
    /// V, row after row.
    pub v: Vec<f32>,
}

/// Where the checkpoint of an output file is: beside it, its name followed by `.checkpoint`.
pub fn path_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

/// Writes the state behind frame `frames_done - 1`. Those frames must be stored before, for a checkpoint that is
/// ahead of its file is of no use.
///
/// # Errors
/// When the file cannot be written; an older checkpoint is still there then.
pub fn save(
    path: &Path,
    parameters: &Parameters,
    frames_done: u64,
    u: &[f32],
    v: &[f32],
) -> Result<(), Error> {
    let shape: &[usize] = &[parameters.rows, parameters.cols];
    let mut attributes = output::attributes(parameters);
    attributes.push(("frames", parameters.frames.into()));
    attributes.push(("frames_done", frames_done.into()));
    attributes.push(("step", (frames_done * parameters.steps_per_frame).into()));
    let arrays: &[(&str, &[usize], &[f32])] = &[("u", shape, u), ("v", shape, v)];
    Ok(store::save(path, &store::Checkpoint { arrays, attributes: &attributes })?)
}

/// Reads a checkpoint; `None` if there is no such file.
///
/// # Errors
/// When it cannot be read, is damaged, or is not a checkpoint of this program.
pub fn load(path: &Path) -> Result<Option<Checkpoint>, Error> {
    let loaded = match store::load(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match interpret(loaded) {
        Some(checkpoint) => Ok(Some(checkpoint)),
        None => Err(Error::NotOurs { path: path.to_owned() }),
    }
}

fn interpret(mut loaded: LoadedCheckpoint) -> Option<Checkpoint> {
    let count = |name: &str| match loaded.attribute(name) {
        Some(&Attr::U64(value)) => Some(value),
        _ => None,
    };
    let (frames, frames_done) = (count("frames")?, count("frames_done")?);
    let mut take = |name: &str| {
        let at = loaded.arrays.iter().position(|(other, _)| other == name)?;
        Some(loaded.arrays.swap_remove(at).1)
    };
    let (u, v) = (take("u")?, take("v")?);
    let parameters = output::read_parameters(frames, u.shape(), &loaded.attributes)?;
    let same_shape = u.shape() == v.shape();
    same_shape.then(|| Checkpoint {
        parameters,
        frames_done,
        u: u.into_raw_vec_and_offset().0,
        v: v.into_raw_vec_and_offset().0,
    })
}

/// Removes a checkpoint that has served its purpose, or belongs to a file that was replaced.
///
/// # Errors
/// When it is there and cannot be removed.
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
    fn a_state_comes_back_bit_for_bit_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("run.h5"));
        assert!(path.ends_with("run.h5.checkpoint"));
        assert_eq!(load(&path).unwrap(), None);

        let parameters = Parameters { rows: 2, cols: 3, noise: Some(9), ..Parameters::default() };
        let (u, v) = (vec![0.1, -0.0, 1e-40, 3.0, 0.5, 1.0], vec![0.25; 6]);
        save(&path, &parameters, 40, &u, &v).unwrap();
        let loaded = load(&path).unwrap().unwrap();
        assert_eq!(loaded.u[1].to_bits(), (-0.0_f32).to_bits());
        assert_eq!(loaded, Checkpoint { parameters, frames_done: 40, u, v });

        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(load(&path).unwrap(), None);
    }

    #[test]
    fn other_files_are_not_taken_for_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "nothing of that kind").unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("notes.txt"));
    }
}
