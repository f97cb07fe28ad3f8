//! Programs on the memory of a simulated device.

use super::memory::{Block, Ledger};
use crate::{
    device::{Launch, Operand},
    recorded::Recording,
};
use anabranch_kernel as kernel;
use anabranch_kernel::{Instructions, Kind, Memory, Number, Program, Slice, SliceMut};
use parking_lot::MutexGuard;
use std::{ops::Range, ptr, sync::Arc};

/// A recording that is prepared for the processor.
pub(super) struct Prepared {
    program: Arc<Program>,
    kinds: Vec<Kind>,
    /// For each operand whether the program takes elements of it, and whether a launch writes it: as a
    /// result, or by a reduction.
    is_read: Vec<bool>,
    is_written: Vec<bool>,
    ends_at_leaves: bool,
    ledger: Arc<Ledger>,
}

impl Prepared {
    pub(super) fn new(recording: &Recording, ledger: &Arc<Ledger>) -> Self {
        let kinds: Vec<_> = recording.operands().collect();
        let (mut is_read, mut is_written) = (vec![false; kinds.len()], vec![false; kinds.len()]);
        recording.accesses().for_each(|access| is_read[access.operand] = true);
        let reduced = recording.reductions().map(|reduction| reduction.operand);
        recording.results().chain(reduced).for_each(|operand| is_written[operand] = true);
        let program = Arc::new(Program::new(recording));
        let ends_at_leaves = recording.ends_at_leaves();
        Self { program, kinds, is_read, is_written, ends_at_leaves, ledger: Arc::clone(ledger) }
    }
}

/// Runs a program.
///
/// # Panics
/// Like [`Program::run`], where the operands do not have the points of the launch, or no place for its
/// leaves.
pub(super) fn run(launch: &Launch, ledger: &Arc<Ledger>, memory: &mut Memory) -> Result<(), String> {
    let prepared = launch.program.inner::<Prepared>().filter(|p| Arc::ptr_eq(&p.ledger, ledger));
    let prepared = prepared.ok_or("a batch launches a program of another device")?;
    let mut bound = Bound::new(prepared, &launch.operands, ledger)?;
    let mut views = bound.views();
    let mut operands: Vec<_> = views.iter_mut().map(|view| view as &mut dyn kernel::Operand).collect();
    let (parameters, points, instructions) = (&launch.parameters, launch.points, Instructions::detect());
    if prepared.ends_at_leaves {
        prepared.program.run(parameters, points, &mut operands, memory, instructions);
    } else {
        prepared.program.run_whole(parameters, points, &mut operands, memory, instructions);
    }
    Ok(())
}

/// The operands of a launch.
struct Bound<'a> {
    /// The memory of the operands. Operands may share it.
    memory: Vec<MutexGuard<'a, Vec<u64>>>,
    /// What such memory held before the launch.
    before: Vec<Vec<u64>>,
    operands: Vec<Place>,
}

struct Place {
    kind: Kind,
    extent: [usize; 3],
    /// Where in `memory` it is.
    memory: usize,
    is_written: bool,
    /// Where in `before` the elements are that the program takes. They are there if the launch sets the same
    /// memory as another operand: then the program must not find what it has just set.
    before: Option<usize>,
}

impl<'a> Bound<'a> {
    fn new(prepared: &Prepared, operands: &'a [Operand], ledger: &Arc<Ledger>) -> Result<Self, String> {
        let (expected, count) = (prepared.kinds.len(), operands.len());
        if expected != count {
            return Err(format!("a launch has {count} operands, and its program {expected}"));
        }
        let mut blocks: Vec<&Block> = Vec::new();
        let mut places = Vec::new();
        let known = prepared.kinds.iter().zip(&prepared.is_written);
        for (operand, (&kind, &is_written)) in operands.iter().zip(known) {
            let block = Block::of(&operand.memory, ledger)?;
            let extent = operand.extent;
            let bytes = extent.iter().try_fold(size_of(kind), |product, &along| product.checked_mul(along));
            if bytes.is_none_or(|bytes| bytes as u64 > block.bytes()) {
                let have = block.bytes();
                return Err(format!("an operand has the extent {extent:?} of {kind}, but {have} bytes"));
            }
            let memory = blocks.iter().position(|&known| ptr::eq(known, block)).unwrap_or(blocks.len());
            if memory == blocks.len() {
                blocks.push(block);
            }
            places.push(Place { kind, extent, memory, is_written, before: None });
        }
        check_written_once(&places)?;
        let memory: Vec<_> = blocks.into_iter().map(Block::words).collect();
        let mut bound = Self { memory, before: Vec::new(), operands: places };
        bound.keep_what_is_overwritten(prepared);
        Ok(bound)
    }

    /// Copies the memory of each operand that the program takes elements of and sets as another operand.
    fn keep_what_is_overwritten(&mut self, prepared: &Prepared) {
        let Self { memory, before, operands } = self;
        let mut copies = vec![None; memory.len()];
        for operand in 0..operands.len() {
            let of = operands[operand].memory;
            let is_set_by = |other: usize| operands[other].is_written && operands[other].memory == of;
            let is_overwritten = (0..operands.len()).any(|other| other != operand && is_set_by(other));
            if prepared.is_read[operand] && is_overwritten {
                let copy = *copies[of].get_or_insert_with(|| {
                    before.push(memory[of].clone());
                    before.len() - 1
                });
                operands[operand].before = Some(copy);
            }
        }
    }

    /// The operands, as the program sees them. The one that writes a memory has it alone, and others have
    /// what was in it before.
    fn views(&mut self) -> Vec<View<'_>> {
        let mut memory: Vec<_> = self.memory.iter_mut().map(|words| Some(&mut words[..])).collect();
        let mut take = |place: &Place| if place.is_written { memory[place.memory].take() } else { None };
        let own: Vec<_> = self.operands.iter().map(&mut take).collect();
        let shared: Vec<_> = memory.into_iter().map(|words| words.map(|words| &*words)).collect();
        let words = |place: &Place, own| match (own, place.before) {
            (Some(words), _) => Words::Own(words),
            (None, Some(copy)) => Words::Shared(&self.before[copy]),
            // A program that does nothing with an operand needs none of its memory, which another operand may
            // have.
            (None, None) => Words::Shared(shared[place.memory].unwrap_or_default()),
        };
        let operands = self.operands.iter().zip(own);
        operands.map(|(place, own)| View { place, words: words(place, own) }).collect()
    }
}

/// An operand, as the program sees it.
struct View<'a> {
    place: &'a Place,
    words: Words<'a>,
}

/// The memory of an operand.
enum Words<'a> {
    Own(&'a mut [u64]),
    Shared(&'a [u64]),
}

/// Refuses a launch that sets one memory as two operands: which of the values is there afterwards would
/// depend on the device.
fn check_written_once(places: &[Place]) -> Result<(), String> {
    let written = || (0..places.len()).filter(|&operand| places[operand].is_written);
    for two in written() {
        let is_same = |&one: &usize| one < two && places[one].memory == places[two].memory;
        if let Some(one) = written().find(is_same) {
            return Err(format!("a launch writes operands {one} and {two}, which are one buffer"));
        }
    }
    Ok(())
}

impl Place {
    /// The elements from a point to the end of its row, by their numbers.
    fn row(&self, point: [usize; 3]) -> Range<usize> {
        let [_, ny, nx] = self.extent;
        let is_inside = point.iter().zip(&self.extent).all(|(at, along)| at < along);
        assert!(is_inside, "the point {point:?} is outside an operand with the extent {:?}", self.extent);
        let [z, y, x] = point;
        let row = (z * ny + y) * nx;
        row + x..row + nx
    }
}

/// Calls a generic function with the type of a kind.
macro_rules! with_type {
    ($kind:expr, $f:ident($($argument:expr),*)) => {
        match $kind {
            Kind::F32 => $f::<f32>($($argument),*),
            Kind::F64 => $f::<f64>($($argument),*),
            Kind::I32 => $f::<i32>($($argument),*),
            Kind::U32 => $f::<u32>($($argument),*),
            Kind::I64 => $f::<i64>($($argument),*),
            Kind::U64 => $f::<u64>($($argument),*),
            Kind::Bool => unreachable!("no operand has masks"),
        }
    };
}

fn size_of(kind: Kind) -> usize {
    with_type!(kind, size())
}

fn size<T>() -> usize {
    std::mem::size_of::<T>()
}

fn numbers<T: Number + bytemuck::Pod>(words: &[u64], elements: Range<usize>) -> Slice<'_> {
    T::slice(&bytemuck::cast_slice(words)[elements])
}

fn numbers_mut<T: Number + bytemuck::Pod>(words: &mut [u64], elements: Range<usize>) -> SliceMut<'_> {
    T::slice_mut(&mut bytemuck::cast_slice_mut(words)[elements])
}

impl kernel::Operand for View<'_> {
    fn extent(&self) -> [usize; 3] {
        self.place.extent
    }

    fn read(&self, point: [usize; 3]) -> Slice<'_> {
        let words = match &self.words {
            Words::Own(words) => words,
            Words::Shared(words) => *words,
        };
        with_type!(self.place.kind, numbers(words, self.place.row(point)))
    }

    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_> {
        let Words::Own(words) = &mut self.words else {
            unreachable!("an operand that a program writes has its memory")
        };
        with_type!(self.place.kind, numbers_mut(words, self.place.row(point)))
    }
}
