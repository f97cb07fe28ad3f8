//! The memory that rendering needs.

use crate::{
    commands::{render::paint::Painter, room},
    error::Error,
};

/// Pictures in memory for each thread when they are passed on in order.
pub(super) const WINDOW: usize = 4;

/// What the memory depends on.
pub(super) struct Need {
    pub(super) painter: Painter,
    /// Frames to render.
    pub(super) frames: usize,
    pub(super) threads: usize,
    /// The pictures are passed on in order, so that some of them wait for others.
    pub(super) in_order: bool,
    /// The frames are compressed in the file.
    pub(super) compressed: bool,
}

impl Need {
    /// Refuses pictures for which there is too little memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let [height, width] = self.painter.size();
        room::check(self.bytes(), "choose a smaller --scale, or fewer --threads", || {
            format!("rendering pictures of {width} × {height} pixels")
        })
    }

    /// The largest number of bytes at the same time: for each thread a frame, and the chunks from which it is
    /// decompressed; a byte for each pixel of the pictures that are painted, encoded, or wait to be passed
    /// on.
    fn bytes(&self) -> u64 {
        let product = |sides: [usize; 2]| (sides[0] as u64).saturating_mul(sides[1] as u64);
        let threads = self.threads.min(self.frames);
        let frames = threads * if self.compressed { 3 } else { 1 };
        let waiting = if self.in_order { self.frames.min(WINDOW * self.threads) } else { threads };
        let frame = product(self.painter.shape).saturating_mul(size_of::<f32>() as u64);
        let pictures = product(self.painter.size()).saturating_mul((waiting + threads) as u64);
        frame.saturating_mul(frames as u64).saturating_add(pictures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::render::paint::{Scale, ValueRange};

    #[test]
    fn the_memory_grows_with_the_pictures_and_the_threads() {
        let painter = Painter { shape: [10, 20], scale: Scale::Up(3), range: ValueRange::EMPTY };
        let (frame, picture) = (4 * 10 * 20, 30 * 60);
        let need = Need { painter, frames: 100, threads: 2, in_order: false, compressed: false };
        assert_eq!(need.bytes(), 2 * frame + 4 * picture);
        assert_eq!(Need { frames: 1, ..need }.bytes(), frame + 2 * picture);
        assert_eq!(Need { in_order: true, ..need }.bytes(), 2 * frame + 10 * picture);
        assert_eq!(Need { compressed: true, ..need }.bytes(), 6 * frame + 4 * picture);
        let painter = Painter { shape: [usize::MAX; 2], ..painter };
        assert_eq!(Need { painter, ..need }.bytes(), u64::MAX);
        need.check().unwrap();
    }
}
