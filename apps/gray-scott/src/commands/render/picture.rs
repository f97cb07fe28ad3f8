//! Single pictures: PNG with a palette, one byte per pixel.

use crate::files::whole::WholeFile;
use std::{
    io::{self, Write},
    path::Path,
};

/// Writes a picture of `size` (height and width) into a file; `palette` holds red, green and blue of 256 colours.
///
/// # Errors
/// When the file cannot be written. There is no half file then.
pub fn write(path: &Path, size: [usize; 2], palette: &[u8], pixels: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    encode(&mut file, size, palette, pixels)?;
    file.place()
}

/// Writes a picture as a PNG.
///
/// # Errors
/// When it cannot be written.
pub fn encode(to: impl Write, size: [usize; 2], palette: &[u8], pixels: &[u8]) -> io::Result<()> {
    let mut writer = encoder(to, size, palette)?.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

/// The encoder of palette pictures of this size.
pub(super) fn encoder<W: Write>(
    to: W,
    size: [usize; 2],
    palette: &[u8],
) -> io::Result<png::Encoder<'static, W>> {
    let side = |n: usize| {
        u32::try_from(n)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the picture is too large for a PNG"))
    };
    let mut encoder = png::Encoder::new(to, side(size[1])?, side(size[0])?);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette.to_vec());
    // Neighbouring indices are neighbouring colours here, so a filter pays, which it does not for
    // palettes in general. The files are about as large as with the default, in a third of the time.
    encoder.set_compression(png::Compression::Balanced);
    encoder.set_filter(png::Filter::Sub);
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_picture_that_fails_leaves_no_half_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        // The header is written before the missing pixels are noticed.
        write(&path, [2, 2], &[0; 768], &[1, 2, 3]).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write(&path, [2, 2], &[0; 768], &[1, 2, 3, 4]).unwrap();
        let before = fs::read(&path).unwrap();
        write(&path, [2, 2], &[0; 768], &[1]).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
