//! The checked mode: finds elements that a task declared to write and left as they were.
//!
//! Before a task runs, the runtime fills the regions that the task must write with a *pattern*. Elements that
//! have the pattern afterwards were not written. Every task has another pattern, so that no program writes it
//! except by chance:
//!
//! - Elements of 8, 16, 24 … bytes, and `f32`: every word is a signalling NaN with a random payload, read as
//!   `f64` and as `f32`. Arithmetic with such a number gives a quiet NaN with the same payload, and adding a
//!   small integer to a word of 8 bytes gives a number close to it. So the runtime also notices that the task
//!   has *read* an element before it wrote it.
//! - Smaller elements: random bytes, other ones for each element. A task may write them by chance. So the
//!   runtime reports only as many elements as chance explains in less than one of 2³² tasks: see
//!   [`Evidence`]. One element that was left out in a large region of small elements is not found.
//! - Elements for which some bytes are not a value, such as `bool`, are not checked.
//!
//! All of this is safe code: it goes through views, and a pattern is a valid value of the type.

use super::{
    element::Element,
    view::{ReadView, WriteView, line_starts},
};
use crate::error::Unwritten;
use anabranch_grid::{AnyBoxes, GridBox, Region};
use bytemuck::checked;
use std::{
    any::TypeId,
    fmt,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The bits of a word that arithmetic changes in a NaN: the sign, and the bit that makes it quiet, of `f64`
/// and of `f32`.
const CHANGED_BY_ARITHMETIC: u64 = 1 << 63 | 1 << 51 | 1 << 31 | 1 << 22;

/// Integers closer to the pattern than this are the pattern plus something.
const CLOSE: u64 = 1 << 20;

/// At most this many boxes are collected for a report, and at most this many are shown.
const MAX_BOXES: usize = 64;
const SHOWN_BOXES: usize = 4;

/// The pattern of one task.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The word of large elements and of `f32`; the seed of the bytes of small elements.
    word: u64,
}

/// How the elements of a type show that they were not written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Words of 8 bytes. One word that was not written is enough.
    Words,
    /// `f32`.
    Float,
    /// 9 bytes or more, but no whole words: the word of the pattern again and again, cut off at the end.
    Large,
    /// Fewer than 8 bytes, other ones for each element.
    Small,
}

impl Kind {
    fn of<T: Element>() -> Self {
        match size_of::<T>() {
            size if size % 8 == 0 => Self::Words,
            _ if TypeId::of::<T>() == TypeId::of::<f32>() => Self::Float,
            0..8 => Self::Small,
            _ => Self::Large,
        }
    }
}

/// What an element says about the task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Written,
    /// It has the pattern.
    Unwritten,
    /// It was computed from the pattern.
    Computed,
}

impl Pattern {
    /// A pattern that no other task of the process has.
    pub(crate) fn draw() -> Self {
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        let random = mix(DRAWN.fetch_add(1, Relaxed));
        // Both halves are NaN as `f32`, the lower one a signalling NaN; the whole is a signalling NaN as
        // `f64`.
        let high = 0x7FF0_0000 | random >> 32 & 0x0007_FFFF | 1;
        let low = 0x7F80_0000 | random & 0x003F_FFFF | 1;
        Self { word: high << 32 | low }
    }

    /// Fills the region of a view, if elements of its type can be checked.
    pub(crate) fn fill<T: Element, const D: usize>(&self, view: &mut WriteView<'_, T, D, AnyBoxes<D>>) {
        if !self.applies_to::<T>() {
            return;
        }
        if Kind::of::<T>() == Kind::Small {
            let mut at = 0;
            view.fill_with(|_| {
                at += 1;
                self.element(at - 1).unwrap_or_else(T::zeroed)
            });
        } else if let Some(element) = self.element(0) {
            view.fill(element);
        }
    }

    /// Looks for elements of the region that the task has not written.
    ///
    /// # Errors
    /// If there are some, or if the task computed elements from such elements.
    pub(crate) fn check<T: Element, const D: usize>(
        &self,
        view: &ReadView<T, D, AnyBoxes<D>>,
    ) -> Result<(), Unwritten> {
        if !self.applies_to::<T>() {
            return Ok(());
        }
        let kind = Kind::of::<T>();
        let (mut unwritten, mut computed) = (0, 0);
        for_each_line(view, |_, first, line| {
            for (i, element) in line.iter().enumerate() {
                match self.state(kind, element, first + i) {
                    State::Written => {}
                    State::Unwritten => unwritten += 1,
                    State::Computed => computed += 1,
                }
            }
        });
        if computed > 0 {
            return self.report(view, State::Computed, 1);
        }
        match Evidence::of::<T>(view.region().len()).shortest_run(unwritten) {
            Some(shortest) => self.report(view, State::Unwritten, shortest),
            None => Ok(()),
        }
    }

    /// The error for the elements in this state that have at least this many neighbours in a line, if there
    /// are some.
    #[cold]
    fn report<T: Element, const D: usize>(
        &self,
        view: &ReadView<T, D, AnyBoxes<D>>,
        wanted: State,
        shortest: usize,
    ) -> Result<(), Unwritten> {
        let kind = Kind::of::<T>();
        let mut found = Found::default();
        for_each_line(view, |start, first, line| {
            let mut run = 0..0;
            for i in 0..=line.len() {
                if i < line.len() && self.state(kind, &line[i], first + i) == wanted {
                    run.end = i + 1;
                    continue;
                }
                if run.len() >= shortest {
                    found.add(start, run);
                }
                run = i + 1..i + 1;
            }
        });
        if found.elements == 0 {
            return Ok(());
        }
        Err(Unwritten {
            buffer: view.label().to_string(),
            elements: found.to_string(),
            declared: view.region().to_string(),
            is_read: wanted == State::Computed,
        })
    }

    /// The state of element `at` of the region.
    #[inline]
    fn state<T: Element>(&self, kind: Kind, element: &T, at: usize) -> State {
        let bytes = bytemuck::bytes_of(element);
        let is_pattern = match kind {
            Kind::Words => return self.state_of_words(bytes),
            Kind::Float => {
                let bits = u32::from_ne_bytes(bytes.try_into().expect("an f32 has 4 bytes"));
                return state_of_nan(bits.into(), self.float().into());
            }
            Kind::Large => bytes.chunks(8).all(|part| part == &self.word.to_ne_bytes()[..part.len()]),
            Kind::Small => bytes == &self.bytes_of_small(at)[..bytes.len()],
        };
        if is_pattern { State::Unwritten } else { State::Written }
    }

    #[inline]
    fn state_of_words(&self, bytes: &[u8]) -> State {
        let mut state = State::Written;
        for word in bytes.chunks_exact(8) {
            let word = u64::from_ne_bytes(word.try_into().expect("a chunk of 8 bytes"));
            let is_close = word.wrapping_sub(self.word).wrapping_add(CLOSE) <= 2 * CLOSE;
            match state_of_nan(word, self.word) {
                State::Written if is_close => return State::Computed,
                State::Written => {}
                State::Unwritten => state = State::Unwritten,
                State::Computed => return State::Computed,
            }
        }
        state
    }

    /// The bits of an `f32`: a signalling NaN.
    fn float(&self) -> u32 {
        self.word as u32
    }

    fn bytes_of_small(&self, at: usize) -> [u8; 8] {
        mix(self.word.wrapping_add(at as u64)).to_ne_bytes()
    }

    /// The pattern of element `at` of a region; `None` if these bytes are not a value of the type.
    fn element<T: Element>(&self, at: usize) -> Option<T> {
        let word = match Kind::of::<T>() {
            Kind::Float => return value(&self.float().to_ne_bytes()),
            Kind::Small => self.bytes_of_small(at),
            Kind::Words | Kind::Large => self.word.to_ne_bytes(),
        };
        match size_of::<T>() {
            size @ 0..=8 => value(&word[..size]),
            size => value(&word.into_iter().cycle().take(size).collect::<Vec<u8>>()),
        }
    }

    /// Whether elements of this type can be checked: whether all bytes are a value, or those of the pattern.
    fn applies_to<T: Element>(&self) -> bool {
        if Kind::of::<T>() != Kind::Small {
            return size_of::<T>() > 0 && self.element::<T>(0).is_some();
        }
        let all_ones = value::<T>(&[0xFF; 8][..size_of::<T>()]);
        all_ones.is_some() && (0..32).all(|at| self.element::<T>(usize::MAX - at).is_some())
    }
}

/// What the bits of a number say, if the pattern is this NaN.
#[inline]
fn state_of_nan(bits: u64, pattern: u64) -> State {
    match (bits ^ pattern) & !CHANGED_BY_ARITHMETIC {
        0 if bits == pattern => State::Unwritten,
        0 => State::Computed,
        _ => State::Written,
    }
}

/// The value with these bytes, if there is one.
fn value<T: Element>(bytes: &[u8]) -> Option<T> {
    checked::try_pod_read_unaligned(bytes).ok()
}

/// Calls `f` for each line of the region: with its first point, the number of elements before it, and its
/// elements.
fn for_each_line<T: Element, const D: usize>(
    view: &ReadView<T, D, AnyBoxes<D>>,
    mut f: impl FnMut([usize; D], usize, &[T]),
) {
    let mut before = 0;
    for range in view.region().boxes() {
        for start in line_starts(range) {
            let line = view.run(start.0);
            f(start.0, before, line);
            before += line.len();
        }
    }
}

/// How many elements with the pattern chance does not explain: it has less than one in 2³² tasks to do it.
struct Evidence {
    /// The random bits of an element.
    bits: usize,
    /// The bits of the number of elements in the region.
    region: usize,
}

impl Evidence {
    const ENOUGH: usize = 32;

    fn of<T: Element>(elements: usize) -> Self {
        let bits = if Kind::of::<T>() == Kind::Small { 8 * size_of::<T>() } else { 128 };
        Self { bits, region: elements.next_power_of_two().ilog2() as usize }
    }

    /// The length of the shortest run of elements that was certainly not written, if the region has this many
    /// elements with the pattern; `None` if there is none.
    fn shortest_run(&self, elements: usize) -> Option<usize> {
        // Each of them has the pattern with probability 2^-bits; there are 2^region places for each.
        let all = elements.saturating_mul(self.bits.saturating_sub(self.region));
        let run = (Self::ENOUGH + self.region).div_ceil(self.bits);
        match elements {
            0 => None,
            _ if all >= Self::ENOUGH => Some(1),
            _ => Some(run),
        }
    }
}

/// Elements that were found, as boxes.
#[derive(Default)]
struct Found<const D: usize> {
    boxes: Vec<GridBox<D>>,
    elements: usize,
}

impl<const D: usize> Found<D> {
    /// Adds elements of the line that begins at `start`.
    fn add(&mut self, start: [usize; D], run: Range<usize>) {
        self.elements += run.len();
        let (mut min, mut max) = (start, start.map(|i| i + 1));
        if D > 0 {
            min[D - 1] = start[D - 1] + run.start;
            max[D - 1] = start[D - 1] + run.end;
        }
        // Lines below each other are one box.
        let down = D.checked_sub(2);
        let continues = |above: &GridBox<D>| {
            (0..D).all(|d| match Some(d) == down {
                true => above.max()[d] == min[d],
                false => (above.min()[d], above.max()[d]) == (min[d], max[d]),
            })
        };
        if let Some(above) = self.boxes.iter_mut().rev().find(|above| down.is_some() && continues(above)) {
            *above = GridBox::new(above.min(), max);
        } else if self.boxes.len() < MAX_BOXES {
            self.boxes.push(GridBox::new(min, max));
        }
    }
}

impl<const D: usize> fmt::Display for Found<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Region::from_boxes(self.boxes.iter().take(SHOWN_BOXES).copied());
        write!(f, "{shown}")?;
        match self.elements - shown.len() {
            0 => Ok(()),
            1 => f.write_str(" and 1 more element"),
            more => write!(f, " and {more} more elements"),
        }
    }
}

/// Scrambles a number (splitmix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
