//! Single pictures: PNG with a palette, one byte per pixel.

use crate::files::whole::WholeFile;
use std::{
    io::{self, Write},
    path::Path,
};

/// Writes a picture of `size` (height and width) into a file; `palette` holds red, green and blue of 256
/// colours.
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

/// Height and width as a PNG has them.
///
/// # Errors
/// When one of them is more than the format allows.
pub(super) fn sides([height, width]: [usize; 2]) -> io::Result<[u32; 2]> {
    let side = |n: usize| i32::try_from(n).map(i32::cast_unsigned);
    match (side(height), side(width)) {
        (Ok(height), Ok(width)) => Ok([height, width]),
        _ => {
            let limit = "a PNG is at most 2147483647 pixels wide and high: choose a smaller --scale";
            Err(io::Error::new(io::ErrorKind::InvalidInput, limit))
        }
    }
}

/// The encoder of palette pictures of this size.
pub(super) fn encoder<W: Write>(
    to: W,
    size: [usize; 2],
    palette: &[u8],
) -> io::Result<png::Encoder<'static, W>> {
    let [height, width] = sides(size)?;
    let mut encoder = png::Encoder::new(to, width, height);
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
    fn sides_that_a_png_cannot_have_are_refused() {
        let most = i32::MAX as usize;
        assert_eq!(sides([1, most]).unwrap(), [1, i32::MAX as u32]);
        for size in [[1, most + 1], [most + 1, 1], [usize::MAX; 2]] {
            let error = encode(Vec::new(), size, &[0; 768], &[]).unwrap_err();
            assert!(error.to_string().contains("a smaller --scale"), "{error}");
        }
    }

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
