//! The checkpoint beside the output file: the state from which an interrupted run goes on, bit for bit.
//!
//! Whenever the program is stopped, the checkpoint is complete or does not exist: a new one replaces the old
//! one only when it is safe on the device.

use crate::{
    error::Error,
    files::attributes::{attributes, read_parameters},
    parameters::Parameters,
    start::{Fields, Start},
};
use anabranch_store::{
    Attr, StoreError,
    checkpoint::{self as file, Draft},
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
    let attributes = of_state(parameters, step);
    let arrays: &[(&str, &[usize], &[f32])] = &[("u", shape, u), ("v", shape, v)];
    Ok(file::save(path, &file::Checkpoint { arrays, attributes: &attributes })?)
}

/// Lays a checkpoint of this state out, whose rows are written in parts.
///
/// # Errors
/// When the file cannot be created. An older checkpoint still exists then.
pub fn draft(path: &Path, parameters: &Parameters, step: u64) -> Result<Draft, Error> {
    let shape: &[usize] = &[parameters.rows, parameters.cols];
    let attributes = of_state(parameters, step);
    Ok(Draft::create(
        path,
        &file::Outline { arrays: &[("u", shape), ("v", shape)], attributes: &attributes },
    )?)
}

/// The attributes of a state.
fn of_state(parameters: &Parameters, step: u64) -> Vec<(&'static str, Attr)> {
    let mut attributes = attributes(parameters);
    attributes.extend([("frames", parameters.frames.into()), ("step", step.into())]);
    attributes
}

/// Opens a checkpoint, whose values are read later. `None` if there is no such file.
///
/// # Errors
/// When it cannot be read, or is not a checkpoint of this program.
pub fn open(path: &Path) -> Result<Option<Start>, Error> {
    let saved = match file::SavedCheckpoint::open(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let not_ours = || Error::NotOurs { path: path.to_owned() };
    let (Ok(shape), Ok(shape_v)) = (saved.shape("u"), saved.shape("v")) else { return Err(not_ours()) };
    let read = interpret(&shape, saved.attributes()).filter(|_| shape == shape_v);
    let (parameters, step) = read.ok_or_else(not_ours)?;
    Ok(Some(Start { parameters, step, fields: Fields::Saved(path.to_owned()) }))
}

/// Reads a checkpoint. `None` if there is no such file.
///
/// # Errors
/// When it cannot be read, is damaged, or is not a checkpoint of this program.
pub fn load(path: &Path) -> Result<Option<Start>, Error> {
    let Some(start) = open(path)? else { return Ok(None) };
    let loaded = file::load(path)?;
    let [u, v] = ["u", "v"].map(|name| loaded.array(name).map(|array| array.iter().copied().collect()));
    Ok(Some(Start { fields: Fields::Given { u: u?, v: v? }, ..start }))
}

/// The parameters and the step in the attributes of a state of this shape.
fn interpret(shape: &[usize], attributes: &[(String, Attr)]) -> Option<(Parameters, u64)> {
    let count = |name: &str| match attributes.iter().find(|(other, _)| other == name)? {
        (_, Attr::U64(value)) => Some(*value),
        _ => None,
    };
    Some((read_parameters(count("frames")?, shape, attributes)?, count("step")?))
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
        assert_eq!(loaded.whole().unwrap().0[1].to_bits(), (-0.0_f32).to_bits());
        assert_eq!((loaded.frames(), parameters.steps_per_frame), (40, 32));
        let opened = open(&path).unwrap().unwrap();
        assert_eq!(opened, Start { fields: Fields::Saved(path.clone()), ..loaded.clone() });
        assert_eq!(opened.whole().unwrap(), (u.clone(), v.clone()));
        assert_eq!(loaded, Start { parameters, step: 1290, fields: Fields::Given { u, v } });

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
