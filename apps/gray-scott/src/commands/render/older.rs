//! Pictures of earlier renderings in the folder of pictures.

use crate::error::Error;
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

/// The pictures in `folder` that have the name of a frame and are not among `written`, in order.
///
/// # Errors
/// When the folder cannot be read.
pub(super) fn pictures(folder: &Path, written: &HashSet<String>) -> Result<Vec<PathBuf>, Error> {
    let mut older = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read the folder", folder))? {
        let entry = entry.map_err(Error::io("read the folder", folder))?;
        if let Some(name) = entry.file_name().to_str()
            && is_frame(name)
            && !written.contains(name)
        {
            older.push(entry.path());
        }
    }
    older.sort();
    Ok(older)
}

/// Removes the pictures.
///
/// # Errors
/// When one of them cannot be removed.
pub(super) fn remove(pictures: &[PathBuf]) -> Result<(), Error> {
    pictures.iter().try_for_each(|path| fs::remove_file(path).map_err(Error::io("remove", path)))
}

/// Whether this is a name that pictures of frames have: `frame-0012.png`.
fn is_frame(name: &str) -> bool {
    let number = name.strip_prefix("frame-").and_then(|rest| rest.strip_suffix(".png"));
    number.is_some_and(|number| number.len() >= 4 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_of_frames_that_were_not_written_are_older() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["frame-0001.png", "frame-0002.png", "frame-12345.png", "frame-1.png", "frame-a001.png", "x.png"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let older = pictures(folder.path(), &HashSet::from(["frame-0002.png".to_owned()])).unwrap();
        assert_eq!(older, ["frame-0001.png", "frame-12345.png"].map(|name| folder.path().join(name)));
        remove(&older).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
