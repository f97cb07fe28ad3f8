//! From numbers to colours: value ranges, palettes and scales.

use clap::ValueEnum;
use std::{fmt, str::FromStr};

/// The values that the first and the last colour stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    /// The value of the first colour.
    pub min: f32,
    /// The value of the last colour.
    pub max: f32,
}

impl ValueRange {
    /// The empty range: joined to another, it gives the other.
    pub const EMPTY: Self = Self { min: f32::INFINITY, max: f32::NEG_INFINITY };

    /// From the smallest to the largest of `values`. NaN is ignored.
    pub fn of(values: &[f32]) -> Self {
        values.iter().fold(Self::EMPTY, |range, &v| Self { min: range.min.min(v), max: range.max.max(v) })
    }

    /// The smallest range that holds both.
    pub fn join(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The index of the colour for `value`: values outside the range get its ends, NaN the first colour.
    fn index(self, value: f32) -> u8 {
        let width = self.max - self.min;
        // A frame of one value has no width and gets the first colour. The cast saturates.
        if width > 0.0 { ((value - self.min) / width * 255.0).round() as u8 } else { 0 }
    }
}

impl FromStr for ValueRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let finite = |s: &str| s.trim().parse::<f32>().ok().filter(|x| x.is_finite());
        match text.split_once("..").map(|(a, b)| (finite(a), finite(b))) {
            Some((Some(min), Some(max))) if min < max => Ok(Self { min, max }),
            _ => Err("must be A..B with two numbers, A smaller than B, such as 0..0.4".into()),
        }
    }
}

/// A list of 256 colours. All but `turbo` are perceptually uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Palette {
    /// Black, purple, orange, pale yellow
    #[default]
    Inferno,
    /// Black, purple, pink, pale yellow
    Magma,
    /// Blue, purple, orange, yellow
    Plasma,
    /// Purple, green, yellow
    Viridis,
    /// Blue, grey, yellow; looks the same to the colour-blind
    Cividis,
    /// A rainbow with even brightness steps, not uniform
    Turbo,
    /// Black to white
    Greys,
}

impl Palette {
    /// The colours, as red, green and blue of each in turn.
    pub fn colours(self) -> Vec<u8> {
        let gradient = match self {
            Self::Inferno => colorous::INFERNO,
            Self::Magma => colorous::MAGMA,
            Self::Plasma => colorous::PLASMA,
            Self::Viridis => colorous::VIRIDIS,
            Self::Cividis => colorous::CIVIDIS,
            Self::Turbo => colorous::TURBO,
            Self::Greys => return (0..=255u8).flat_map(|grey| [grey; 3]).collect(),
        };
        (0..256).flat_map(|i| gradient.eval_rational(i, 256).into_array()).collect()
    }
}

/// The size of a picture relative to its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// N×N pixels per cell.
    Up(usize),
    /// One pixel per N×N cells, their mean. Blocks at the last row and column may be smaller.
    Down(usize),
}

impl Default for Scale {
    fn default() -> Self {
        Self::Up(1)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Up(n) => write!(f, "{n}"),
            Self::Down(n) => write!(f, "1/{n}"),
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let factor = |s: &str| s.parse::<usize>().ok().filter(|n| (1..=1000).contains(n));
        let scale = match text.strip_prefix("1/") {
            Some(n) => factor(n).map(Self::Down),
            None => factor(text).map(Self::Up),
        };
        scale.ok_or_else(|| "must be N or 1/N with a whole number N from 1 to 1000".into())
    }
}

impl Scale {
    /// The height or width of a picture of `cells` rows or columns.
    pub fn apply(self, cells: usize) -> usize {
        match self {
            Self::Up(n) => cells.saturating_mul(n),
            Self::Down(n) => cells.div_ceil(n),
        }
    }
}

/// Paints frames of one shape: an index into the palette for each pixel.
#[derive(Clone, Copy, Debug)]
pub struct Painter {
    /// Rows and columns of a frame.
    pub shape: [usize; 2],
    /// The size of the pictures.
    pub scale: Scale,
    /// The values of the first and the last colour.
    pub range: ValueRange,
}

impl Painter {
    /// Height and width of the pictures.
    pub fn size(&self) -> [usize; 2] {
        self.shape.map(|cells| self.scale.apply(cells))
    }

    /// Replaces the contents of `pixels` by the picture of `frame`, row after row.
    pub fn paint(&self, frame: &[f32], pixels: &mut Vec<u8>) {
        let cols = self.shape[1];
        pixels.clear();
        match self.scale {
            Scale::Up(1) => pixels.extend(frame.iter().map(|&v| self.range.index(v))),
            Scale::Up(n) => {
                for row in frame.chunks_exact(cols) {
                    let start = pixels.len();
                    pixels.extend(row.iter().flat_map(|&v| std::iter::repeat_n(self.range.index(v), n)));
                    for _ in 1..n {
                        pixels.extend_from_within(start..start + cols * n);
                    }
                }
            }
            Scale::Down(n) => {
                for rows in frame.chunks(cols * n) {
                    pixels
                        .extend((0..cols).step_by(n).map(|left| self.range.index(mean(rows, cols, left, n))));
                }
            }
        }
    }
}

/// The mean of the columns from `left`, at most `n` of them, of a few whole rows.
fn mean(rows: &[f32], cols: usize, left: usize, n: usize) -> f32 {
    let right = cols.min(left + n);
    let sum: f64 = rows.chunks_exact(cols).flat_map(|row| &row[left..right]).map(|&v| f64::from(v)).sum();
    let count = rows.len() / cols * (right - left);
    (sum / count as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: ValueRange = ValueRange { min: 0.0, max: 1.0 };

    fn paint(shape: [usize; 2], scale: Scale, frame: &[f32]) -> Vec<u8> {
        let mut pixels = vec![9; 3];
        let painter = Painter { shape, scale, range: UNIT };
        painter.paint(frame, &mut pixels);
        assert_eq!(pixels.len(), painter.size().iter().product::<usize>());
        pixels
    }

    #[test]
    fn values_outside_the_range_get_its_ends() {
        let frame = [-1.0, 0.0, 0.5, 1.0, 7.0, f32::NAN];
        assert_eq!(paint([2, 3], Scale::Up(1), &frame), [0, 0, 128, 255, 255, 0]);
    }

    #[test]
    fn scaling_up_repeats_cells() {
        assert_eq!(paint([1, 2], Scale::Up(2), &[0.0, 1.0]), [0, 0, 255, 255, 0, 0, 255, 255]);
    }

    #[test]
    fn scaling_down_takes_means_of_whole_and_partial_blocks() {
        let frame = [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        assert_eq!(paint([3, 3], Scale::Down(2), &frame), [128, 255, 0, 255]);
    }

    #[test]
    fn a_frame_of_one_value_is_one_colour() {
        let range = ValueRange::of(&[0.25; 4]);
        assert_eq!(range.index(0.25), 0);
        assert_eq!(ValueRange::EMPTY.join(range), range);
    }

    #[test]
    fn palettes_have_256_colours_and_distinct_ends() {
        for palette in Palette::value_variants() {
            let colours = palette.colours();
            assert_eq!(colours.len(), 768);
            assert_ne!(colours[..3], colours[765..]);
        }
    }

    #[test]
    fn ranges_and_scales_are_read_back_from_their_text() {
        assert_eq!("-0.5..2".parse(), Ok(ValueRange { min: -0.5, max: 2.0 }));
        for scale in [Scale::Up(3), Scale::Down(4)] {
            assert_eq!(scale.to_string().parse(), Ok(scale));
        }
        for bad in ["", "1", "1..1", "a..b", "0..inf"] {
            bad.parse::<ValueRange>().unwrap_err();
        }
        for bad in ["0", "1/0", "2/3", "0.5", "1001"] {
            bad.parse::<Scale>().unwrap_err();
        }
    }
}
