//! Animations of palette pictures: GIF, and animated PNG.

use super::picture;
use crate::files::whole::WholeFile;
use gif::Repeat;
use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The file format of an animation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Read everywhere; up to 65535 pixels wide and high.
    Gif,
    /// Smaller, and read by browsers.
    Apng,
}

impl Format {
    /// The format of a file name: animated PNG for `.png` and `.apng`, GIF for `.gif`.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "gif" => Some(Self::Gif),
            "png" | "apng" => Some(Self::Apng),
            _ => None,
        }
    }

    /// Compresses the pixels of a picture in place, if the format allows this apart from the file. Several
    /// threads can prepare pictures at the same time; [`Animation::add`] takes them in order.
    pub fn encode(self, size: [usize; 2], pixels: &mut Vec<u8>) {
        if self == Self::Gif {
            let mut frame = gif_frame(size, 0, std::mem::take(pixels));
            frame.make_lzw_pre_encoded();
            *pixels = frame.buffer.into_owned();
        }
    }
}

/// An animation that is being written. It repeats for ever. Its file has its name when it is finished.
pub struct Animation {
    file: WholeFile,
    path: PathBuf,
    size: [usize; 2],
    fps: u16,
    encoder: Encoder,
}

enum Encoder {
    Gif(Box<gif::Encoder<BufWriter<File>>>),
    Apng(Box<png::Writer<BufWriter<File>>>),
}

impl Animation {
    /// Starts an animation of `frames` pictures of `size` (height and width).
    ///
    /// # Errors
    /// When the file cannot be written, or the size or count exceeds the format's limits.
    pub fn create(
        path: &Path,
        format: Format,
        size: [usize; 2],
        palette: &[u8],
        frames: usize,
        fps: u16,
    ) -> io::Result<Self> {
        let file = WholeFile::create(path)?;
        let encoder = match format {
            Format::Gif => {
                let limit = "a GIF is at most 65535 pixels wide and high: choose a smaller --scale";
                let [height, width] = fit(size, limit)?;
                let mut encoder =
                    gif::Encoder::new(file.writer()?, width, height, palette).map_err(gif_error)?;
                encoder.set_repeat(Repeat::Infinite).map_err(gif_error)?;
                Encoder::Gif(Box::new(encoder))
            }
            Format::Apng => {
                let limit = "more pictures than an animated PNG can count: choose a larger --every";
                let [frames] = fit([frames], limit)?;
                let mut encoder = picture::encoder(file.writer()?, size, palette)?;
                encoder.set_animated(frames, 0)?;
                encoder.set_frame_delay(1, fps)?;
                Encoder::Apng(Box::new(encoder.write_header()?))
            }
        };
        Ok(Self { file, path: path.to_owned(), size, fps, encoder })
    }

    /// The path that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format.
    pub fn format(&self) -> Format {
        match self.encoder {
            Encoder::Gif(_) => Format::Gif,
            Encoder::Apng(_) => Format::Apng,
        }
    }

    /// Adds a picture that [`Format::encode`] prepared.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, encoded: &[u8]) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Gif(encoder) => {
                let frame = gif_frame(self.size, self.fps, encoded);
                encoder.write_lzw_pre_encoded_frame(&frame).map_err(gif_error)
            }
            Encoder::Apng(writer) => Ok(writer.write_image_data(encoded)?),
        }
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self.encoder {
            Encoder::Gif(encoder) => {
                let mut writer = encoder.into_inner().map_err(gif_error)?;
                writer.flush()?;
            }
            Encoder::Apng(writer) => writer.finish()?,
        }
        self.file.place()
    }
}

/// A frame over the whole canvas. A GIF counts time in hundredths of a second.
fn gif_frame<'a>(size: [usize; 2], fps: u16, buffer: impl Into<Cow<'a, [u8]>>) -> gif::Frame<'a> {
    gif::Frame {
        height: size[0] as u16,
        width: size[1] as u16,
        delay: (100.0 / f64::from(fps)).round() as u16,
        buffer: buffer.into(),
        ..gif::Frame::default()
    }
}

fn gif_error(error: gif::EncodingError) -> io::Error {
    match error {
        gif::EncodingError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// The numbers in the width of the format, or an error with the message `limit`.
fn fit<T: TryFrom<usize>, const N: usize>(numbers: [usize; N], limit: &str) -> io::Result<[T; N]> {
    let fitted: Vec<T> = numbers.into_iter().filter_map(|n| T::try_from(n).ok()).collect();
    fitted.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, limit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_the_format() {
        let cases =
            [("a.gif", Some(Format::Gif)), ("a.PNG", Some(Format::Apng)), ("b.apng", Some(Format::Apng))];
        for (name, format) in cases.into_iter().chain([("a.mp4", None), ("gif", None)]) {
            assert_eq!(Format::of(Path::new(name)), format);
        }
    }

    #[test]
    fn a_picture_that_is_too_wide_for_a_gif_is_refused() {
        let path = std::env::temp_dir().join("gray-scott-too-wide.gif");
        let error = Animation::create(&path, Format::Gif, [1, 70_000], &[0; 768], 1, 20).err().unwrap();
        assert!(error.to_string().contains("--scale"), "{error}");
    }

    /// Three pictures of 2 × 3 pixels that differ, as an animation at 25 frames per second.
    fn write(path: &Path) -> Vec<Vec<u8>> {
        let palette: Vec<u8> = (0..=255).flat_map(|i| [i, 0, 255 - i]).collect();
        let pictures: Vec<Vec<u8>> = (0..3).map(|i| vec![i, 10, 255, 40, 50 + i, 60]).collect();
        let format = Format::of(path).unwrap();
        let mut animation = Animation::create(path, format, [2, 3], &palette, 3, 25).unwrap();
        for picture in &pictures {
            let mut encoded = picture.clone();
            format.encode([2, 3], &mut encoded);
            animation.add(&encoded).unwrap();
        }
        animation.finish().unwrap();
        pictures
    }

    #[test]
    fn an_animation_that_is_not_finished_leaves_no_file() {
        for name in ["a.gif", "a.png"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let format = Format::of(&path).unwrap();
            let mut animation = Animation::create(&path, format, [2, 3], &[0; 768], 3, 25).unwrap();
            let mut encoded = vec![0; 6];
            format.encode([2, 3], &mut encoded);
            animation.add(&encoded).unwrap();
            assert!(!path.exists());
            drop(animation);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_gif_holds_the_pictures_and_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gif");
        let pictures = write(&path);
        let mut decoder = gif::Decoder::new(File::open(&path).unwrap()).unwrap();
        assert_eq!((decoder.width(), decoder.height()), (3, 2));
        for picture in pictures {
            let frame = decoder.read_next_frame().unwrap().unwrap();
            assert_eq!((&*frame.buffer, frame.delay), (&*picture, 4));
        }
        assert!(decoder.read_next_frame().unwrap().is_none());
    }

    #[test]
    fn an_animated_png_holds_the_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let pictures = write(&path);
        let decoder = png::Decoder::new(io::BufReader::new(File::open(&path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        assert_eq!(reader.info().animation_control().map(|control| control.num_frames), Some(3));
        for picture in pictures {
            let mut pixels = vec![0; picture.len()];
            reader.next_frame(&mut pixels).unwrap();
            assert_eq!(pixels, picture);
        }
    }
}
