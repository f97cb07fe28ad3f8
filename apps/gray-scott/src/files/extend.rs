//! The extension of an output file by room for more frames.

use crate::{
    error::Error,
    files::attributes::{DATASET, parameters_of, stamp},
    parameters::Parameters,
};
use anabranch_store::{FileOptions, Reader, SyncLevel, WriteLock};
use std::{fs, path::Path};

/// Replaces the file at `path`, which has the parameters `old`, by one with the same contents and room for
/// `frames` frames. Until the new file is complete and safe on the device it stands beside the old one, under
/// the name of the old one followed by `.extended`, so that both need room at the same time.
///
/// `compress` is the level for a file that is compressed; the level of the old file is not known. The copy
/// ends when `stop` answers true, which it is asked before each frame: then the old file stays, and the
/// answer is false.
///
/// # Errors
/// When there is no room, or one of the files cannot be read or written, or another process writes to the old
/// one, or has extended it. The old file stays as it is.
pub fn extend(
    path: &Path,
    old: &Parameters,
    frames: u64,
    compress: Option<u8>,
    stop: impl Fn() -> bool,
) -> Result<bool, Error> {
    // Until the new file has the name of the old one, no other process writes to the old one.
    let lock = WriteLock::acquire(path)?;
    let reader = Reader::open(path)?;
    let now = parameters_of(&reader).ok_or_else(|| Error::NotOurs { path: path.to_owned() })?;
    if let Some(difference) = now.difference(old) {
        return Err(Error::Mismatch { path: path.to_owned(), difference });
    }
    let mut name = path.canonicalize().map_err(Error::io("find", path))?.into_os_string();
    name.push(".extended");
    let mut options = FileOptions::new(&name)
        .dataset(DATASET)
        .frames(frames)
        .frame_shape(&[old.rows, old.cols])
        .stamps(true)
        .force(true)
        .sync(SyncLevel::End)
        .compress(reader.is_compressed().then(|| compress.unwrap_or(1)));
    for (name, value) in reader.attributes() {
        options = options.attribute(name, value.clone());
    }
    let placed = match copy(&reader, old, &options, stop) {
        Ok(true) => lock.replace(&name).map(|()| true).map_err(Error::from),
        other => other,
    };
    if !matches!(placed, Ok(true)) {
        // The new file is of no use. The error that is reported is the one that came first.
        let _ = fs::remove_file(&name);
    }
    placed
}

fn copy(
    reader: &Reader,
    parameters: &Parameters,
    options: &FileOptions,
    stop: impl Fn() -> bool,
) -> Result<bool, Error> {
    let mut writer = options.create::<f32>()?;
    let mut frame = vec![0.0; parameters.rows * parameters.cols];
    for number in 0..reader.stored_frames()? {
        if stop() {
            return Ok(false);
        }
        reader.read_frame_into(number, &mut frame)?;
        writer.append(&frame, stamp(parameters, number))?;
    }
    writer.finish()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::attributes::attributes;
    use anabranch_store::StoreError;
    use std::cell::Cell;

    /// The options of a file with these parameters.
    fn file_options(path: &Path, parameters: &Parameters) -> FileOptions {
        let shape = [parameters.rows, parameters.cols];
        let mut options = FileOptions::new(path).frames(parameters.frames).frame_shape(&shape).stamps(true);
        for (name, value) in attributes(parameters) {
            options = options.attribute(name, value);
        }
        options
    }

    #[test]
    fn an_extended_file_has_the_same_frames_attributes_and_compression() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        let old = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        for (compress, stored) in [(None, 3), (Some(2), 2)] {
            let mut writer =
                file_options(&path, &old).force(true).compress(compress).create::<f32>().unwrap();
            for frame in 0..stored {
                writer.append(&[frame as f32; 6], stamp(&old, frame)).unwrap();
            }
            writer.finish().unwrap();

            assert!(extend(&path, &old, 7, None, || false).unwrap());
            let reader = Reader::open(&path).unwrap();
            assert_eq!(
                (reader.stored_frames().unwrap(), reader.is_compressed()),
                (stored, compress.is_some())
            );
            assert_eq!(parameters_of(&reader), Some(Parameters { frames: 7, ..old.clone() }));
            for frame in 0..stored {
                let mut values = [0.0_f32; 6];
                reader.read_frame_into(frame, &mut values).unwrap();
                assert_eq!(values, [frame as f32; 6]);
                assert_eq!(reader.stamp(frame).unwrap(), Some(stamp(&old, frame)));
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_file_that_cannot_be_extended_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        let old = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        file_options(&path, &old).create::<f32>().unwrap().finish().unwrap();
        let before = fs::read(&path).unwrap();
        extend(&path, &old, 1 << 50, None, || false).unwrap_err();
        let extended = Parameters { frames: 2, ..old.clone() };
        let error = extend(&path, &extended, 7, None, || false).unwrap_err().to_string();
        assert!(error.contains("was made with --frames 3, not 2"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_extension_that_is_stopped_leaves_the_file_as_it_is_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        let old = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        let mut writer = file_options(&path, &old).create::<f32>().unwrap();
        for frame in 0..3 {
            writer.append(&[frame as f32; 6], stamp(&old, frame)).unwrap();
        }
        writer.finish().unwrap();
        let before = fs::read(&path).unwrap();
        for frames in 0..3 {
            let copied = Cell::new(0);
            assert!(!extend(&path, &old, 7, None, || copied.replace(copied.get() + 1) == frames).unwrap());
            assert_eq!(copied.get(), frames + 1);
            assert_eq!(fs::read(&path).unwrap(), before);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_behind_a_link_is_extended_while_no_other_process_may_write_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("run.h5"), folder.path().join("link.h5"));
        let old = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        let options = file_options(&path, &old);
        let mut writer = options.create::<f32>().unwrap();
        writer.append(&[1.0; 6], stamp(&old, 0)).unwrap();
        let error = extend(&path, &old, 7, None, || false).unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::Busy { .. })), "{error}");
        writer.finish().unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let locked = || {
            assert!(matches!(options.resume::<f32>(1), Err(StoreError::Busy { .. })));
            false
        };
        assert!(extend(&link, &old, 7, None, locked).unwrap());
        assert!(link.is_symlink());
        assert_eq!(Reader::open(&path).unwrap().frames(), 7);
        options.frames(7).resume::<f32>(1).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
