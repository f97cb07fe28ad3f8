//! Random numbers, which follow from a seed and the place of the element alone.

pub(crate) mod draw;
mod philox;

pub use draw::{Draw, Normal};

use crate::{
    array::Array,
    arrays::Arrays,
    error::{ArrayError, Call},
    numeric::Numeric,
};
use anabranch::{prelude::*, recorded::Value};
use philox::Sequence;

/// A thread computes this many blocks at a time.
const BLOCKS: usize = 16;
/// The words of a block.
const WORDS: usize = 4;

/// Random arrays. Each element follows from the seed, the number of arrays that were drawn before, and the
/// place of the element, so integers and uniform floats are the same on the host and on all devices, and on
/// any number of threads. Normal floats are the same in one place. Their logarithms, roots and sines may
/// differ between places in the last bits.
///
/// The words are those of the counter-based generator Philox-4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror
/// and D. E. Shaw, [*Parallel random numbers: as easy as 1, 2, 3*](https://doi.org/10.1145/2063384.2063405),
/// SC 2011).
///
/// ```
/// # let arrays = anabranch_array::Arrays::new(&anabranch::Runtime::new()?);
/// let mut random = arrays.random(7);
/// let a = random.uniform::<f32, 2>([100, 50])?;
/// let b = random.uniform::<f32, 2>([100, 50])?;
/// assert!(a.to_vec()?.iter().all(|x| (0.0..1.0).contains(x)));
/// assert!(a.to_vec()? != b.to_vec()?);
/// assert!(a.to_vec()? == arrays.random(7).uniform::<f32, 2>([100, 50])?.to_vec()?);
/// # Ok::<(), anabranch_array::ArrayError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    arrays: Arrays,
    seed: u64,
    /// The number of arrays drawn so far.
    drawn: u64,
}

impl Arrays {
    /// Random arrays in this place, which follow from a seed.
    pub fn random(&self, seed: u64) -> Random {
        Random { arrays: self.clone(), seed, drawn: 0 }
    }
}

impl Random {
    /// The next array of uniform numbers: integers from all of their type, floats from `0.0..1.0` in steps of
    /// 2⁻²⁴ (`f32`) or 2⁻⁵³ (`f64`).
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn uniform<T: Numeric, const D: usize>(
        &mut self,
        shape: [usize; D],
    ) -> Result<Array<T, D>, ArrayError> {
        let array = self.arrays.empty(shape, Call::here("uniform"))?;
        self.fill_uniform(&array)?;
        Ok(array)
    }

    /// The next array of normal numbers: of the mean 0 and the variance 1, by the method of Box and Muller.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], [`ArrayError::Runtime`].
    #[track_caller]
    pub fn normal<T: Numeric + Normal, const D: usize>(
        &mut self,
        shape: [usize; D],
    ) -> Result<Array<T, D>, ArrayError> {
        let array = self.arrays.empty(shape, Call::here("normal"))?;
        self.fill_normal(&array)?;
        Ok(array)
    }

    /// Replaces the elements of an array by those that [`uniform`](Self::uniform) would give it. It runs
    /// where that array is.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn fill_uniform<T: Numeric, const D: usize>(
        &mut self,
        array: &Array<T, D>,
    ) -> Result<(), ArrayError> {
        let sequence = self.next();
        let task = array.group().task("uniform").over([array.len()]).write(array.buffer(), one_to_one());
        if array.device().is_none() {
            task.kernel(move |tile, (elements,)| {
                let first = tile.along(0).start;
                draw(sequence, elements.run_mut([first]), first, |words, elements| {
                    for (element, words) in elements.iter_mut().zip(words.chunks(T::WORDS)) {
                        *element = T::of_words(words[0], words[T::WORDS - 1]);
                    }
                });
            })?;
            return Ok(());
        }
        array.place().of(task).each(|(elements,)| {
            let flat = elements.index(0);
            let words = sequence.recorded(flat / (WORDS / T::WORDS) as u32);
            elements.set(match T::WORDS {
                1 => {
                    let word = of_four(flat % 4, words);
                    <T as Draw>::of_recorded_words(word, word)
                }
                _ => {
                    let is_first = (flat % 2).equals(0);
                    let [low, high] = [0, 1].map(|at| is_first.select(words[at], words[at + 2]));
                    <T as Draw>::of_recorded_words(low, high)
                }
            });
        })?;
        Ok(())
    }

    /// Replaces the elements of an array by those that [`normal`](Self::normal) would give it. It runs where
    /// that array is.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`].
    #[track_caller]
    pub fn fill_normal<T: Numeric + Normal, const D: usize>(
        &mut self,
        array: &Array<T, D>,
    ) -> Result<(), ArrayError> {
        let sequence = self.next();
        let task = array.group().task("normal").over([array.len()]).write(array.buffer(), one_to_one());
        if array.device().is_none() {
            task.kernel(move |tile, (elements,)| {
                let first = tile.along(0).start;
                draw(sequence, elements.run_mut([first]), first, |words, elements| {
                    for (pair, words) in elements.chunks_mut(2).zip(words.chunks(2 * T::WORDS)) {
                        let [a, b] = [0, T::WORDS].map(|at| T::of_words(words[at], words[at + T::WORDS - 1]));
                        pair.copy_from_slice(&T::pair(a, b));
                    }
                });
            })?;
            return Ok(());
        }
        array.place().of(task).each(|(elements,)| {
            let flat = elements.index(0);
            let words = sequence.recorded(flat / (WORDS / T::WORDS) as u32);
            let [first, second] = match T::WORDS {
                1 => {
                    let is_first = (flat % 4).lt(2);
                    [0, 1].map(|at| {
                        let word = is_first.select(words[at], words[at + 2]);
                        <T as Draw>::of_recorded_words(word, word)
                    })
                }
                _ => [0, 2].map(|at| <T as Draw>::of_recorded_words(words[at], words[at + 1])),
            };
            let [cosine, sine] = T::recorded_pair(first, second);
            elements.set((flat % 2).equals(0).select(cosine, sine));
        })?;
        Ok(())
    }

    /// The sequence of the next array.
    fn next(&mut self) -> Sequence {
        let stream = self.drawn;
        self.drawn += 1;
        Sequence { seed: self.seed, stream }
    }
}

/// One of four values.
fn of_four<'t>(which: Value<'t, u32>, values: [Value<'t, u32>; 4]) -> Value<'t, u32> {
    let low = which.equals(0).select(values[0], values[1]);
    let high = which.equals(2).select(values[2], values[3]);
    which.lt(2).select(low, high)
}

/// Sets the elements from number `first` on. `of_words` gets the words of several blocks and sets the
/// elements that are made of them.
fn draw<T: Numeric>(
    sequence: Sequence,
    elements: &mut [T],
    first: usize,
    of_words: impl Fn(&[u32], &mut [T]),
) {
    let batch = BLOCKS * WORDS / T::WORDS;
    let mut drawn = [T::default(); BLOCKS * WORDS];
    let drawn = &mut drawn[..batch];
    let end = first + elements.len();
    let mut rest = elements;
    for number in first / batch..end.div_ceil(batch) {
        let words = sequence.blocks::<BLOCKS>((number * BLOCKS) as u64);
        let mut in_order = [0; BLOCKS * WORDS];
        for (block, words_of_block) in in_order.chunks_mut(WORDS).enumerate() {
            words_of_block.iter_mut().zip(&words).for_each(|(to, from)| *to = from[block]);
        }
        // The first and the last batch may begin before the elements or end behind them.
        let skipped = first.saturating_sub(number * batch);
        let taken = batch.min(end - number * batch) - skipped;
        let (here, behind) = std::mem::take(&mut rest).split_at_mut(taken);
        if taken == batch {
            of_words(&in_order, here);
        } else {
            of_words(&in_order, drawn);
            here.copy_from_slice(&drawn[skipped..skipped + taken]);
        }
        rest = behind;
    }
}
