//! The extension of an output file by room for more frames.

use crate::{
    error::Error,
    files::attributes::{DATASET, stamp},
    parameters::Parameters,
};
use anabranch_store::{FileOptions, Reader, SyncLevel};
use std::{fs, path::Path};

/// Replaces the file at `path`, which has the parameters `old`, by one with the same contents and room for
/// `frames` frames. Until the new file is complete and safe on the device it stands beside the old one, under the
/// name of the old one followed by `.extended`, so that both need room at the same time.
///
/// `compress` is the level for a file that is compressed; the level of the old file is not known.
///
/// # Errors
/// When there is no room, or one of the files cannot be read or written, or another process writes to the old
/// one. The old file stays as it is.
pub fn extend(path: &Path, old: &Parameters, frames: u64, compress: Option<u8>) -> Result<(), Error> {
    let reader = Reader::open(path)?;
    let stored = reader.stored_frames()?;
    let mut name = path.as_os_str().to_owned();
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
    // While the old file is open for writing, no other process writes to it.
    let opened = FileOptions::new(path)
        .dataset(DATASET)
        .frames(old.frames)
        .frame_shape(&[old.rows, old.cols])
        .stamps(true)
        .sync(SyncLevel::None)
        .resume::<f32>(stored)?;
    let copied = copy(&reader, stored, old, &options);
    drop(opened);
    let placed = copied.and_then(|()| fs::rename(&name, path).map_err(Error::io("replace", path)));
    if placed.is_err() {
        // The new file is of no use. The error that is reported is the one that came first.
        let _ = fs::remove_file(&name);
    }
    placed
}

fn copy(reader: &Reader, stored: u64, parameters: &Parameters, options: &FileOptions) -> Result<(), Error> {
    let mut writer = options.create::<f32>()?;
    let mut frame = vec![0.0; parameters.rows * parameters.cols];
    for number in 0..stored {
        reader.read_frame_into(number, &mut frame)?;
        writer.append(&frame, stamp(parameters, number))?;
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::attributes::{attributes, parameters_of};

    #[test]
    fn an_extended_file_has_the_same_frames_attributes_and_compression() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        let old = Parameters { rows: 2, cols: 3, frames: 3, ..Parameters::default() };
        for (compress, stored) in [(None, 3), (Some(2), 2)] {
            let mut options = FileOptions::new(&path).frames(3).frame_shape(&[2, 3]).stamps(true).force(true);
            for (name, value) in attributes(&old) {
                options = options.attribute(name, value);
            }
            let mut writer = options.compress(compress).create::<f32>().unwrap();
            for frame in 0..stored {
                writer.append(&[frame as f32; 6], stamp(&old, frame)).unwrap();
            }
            writer.finish().unwrap();

            extend(&path, &old, 7, None).unwrap();
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
        let options = FileOptions::new(&path).frames(3).frame_shape(&[2, 3]).stamps(true);
        options.create::<f32>().unwrap().finish().unwrap();
        let before = fs::read(&path).unwrap();
        extend(&path, &old, 1 << 50, None).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
