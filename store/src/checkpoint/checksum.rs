//! Checksums of arrays, also of arrays whose parts are in several processes.

/// The CRC-32 of elements of an array. Those of neighbouring parts combine to that of both.
///
/// ```
/// use anabranch_store::checkpoint::Checksum;
///
/// let parts = [&[1.0, 2.0, 3.0][..], &[4.0]].map(Checksum::of);
/// assert_eq!(parts[0].followed_by(parts[1]), Checksum::of(&[1.0, 2.0, 3.0, 4.0]));
/// // From another process come two numbers.
/// assert_eq!(Checksum::new(parts[1].value(), 1), parts[1]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    value: u32,
    elements: u64,
}

impl Checksum {
    /// The checksum of these elements.
    pub fn of(data: &[f32]) -> Self {
        Self { value: crc32fast::hash(bytemuck::cast_slice(data)), elements: data.len() as u64 }
    }

    /// The checksum with this value, of this number of elements.
    pub fn new(value: u32, elements: u64) -> Self {
        Self { value, elements }
    }

    /// The CRC-32 itself.
    pub fn value(self) -> u32 {
        self.value
    }

    /// The number of elements.
    pub fn elements(self) -> u64 {
        self.elements
    }

    /// The checksum of these elements and those of `next` behind them.
    pub fn followed_by(self, next: Self) -> Self {
        let hasher = |sum: Self| crc32fast::Hasher::new_with_initial_len(sum.value, 4 * sum.elements);
        let mut both = hasher(self);
        both.combine(&hasher(next));
        Self { value: both.finalize(), elements: self.elements + next.elements }
    }
}
