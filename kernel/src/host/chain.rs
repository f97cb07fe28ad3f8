//! Chains: operations of which each one uses the result of the one before. That result stays in the vector
//! registers of the processor.
//!
//! A chain goes through its links once for each strip. A strip has as many vectors as fit in the registers,
//! because choosing what a link does takes as long as computing several vectors. The rest of a block goes in
//! strips of four vectors and of one. All chains of a step are done with a strip before the next one begins,
//! so that what one leaves for another is in the first-level cache. Each product and each sum is rounded by
//! itself, as if it were alone.
//!
//! If the program has [machine code](super::machine_code), that computes the vectors of a block, and this
//! module the points that it leaves.

use super::{
    argument::{Argument, Loaded, number, numbers_mut},
    lanes::Lanes,
    machine_code::{self, MachineCode},
    registers::{Bank, IN_BANK},
};
use crate::{
    number::{Scalar, SliceMut},
    steps::{Chains, Join, Link, Source},
};
use pulp::{Simd, WithSimd};
use smallvec::SmallVec;
use std::ops::Range;

/// The vectors of a strip, if the processor has 32 vector registers and if it has fewer.
const MANY: usize = 16;
const FEW: usize = 12;

/// Chains and a block.
pub(super) struct ChainsOfBlock<'a, 'o, T> {
    pub(super) chains: &'a Chains,
    pub(super) parameters: &'a [Scalar],
    pub(super) loaded: Loaded<'a>,
    /// The number of points that are computed already.
    pub(super) done: usize,
    /// The number of all points.
    pub(super) len: usize,
    pub(super) bank: &'a mut Bank<T>,
    /// The slices of the program's outputs.
    pub(super) outputs: &'a mut [SliceMut<'o>],
}

impl<T: Lanes> WithSimd for ChainsOfBlock<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Both lists are filled in place: to move such a list takes longer than to make it.
        let mut blocks: SmallVec<[&[T]; 24]> = SmallVec::new();
        self.chains.loads.iter().for_each(|&load| blocks.push(block(self.loaded, load)));
        let mut numbers: SmallVec<[T; 24]> = SmallVec::new();
        self.chains.numbers.iter().for_each(|&number| numbers.push(self.number(number)));
        let Self { chains, done, len, bank, outputs, .. } = self;
        let mut strips = Strips { chains, blocks: &blocks, numbers: &numbers, len, bank, outputs };
        // The results so far have most of the registers. The others are for operands.
        let at = match S::REGISTER_COUNT {
            32.. => strips.compute::<S, MANY>(simd, done),
            _ => strips.compute::<S, FEW>(simd, done),
        };
        let at = strips.compute::<S, 4>(simd, at);
        let at = strips.compute::<S, 1>(simd, at);
        strips.compute_rest(simd, at);
    }
}

impl<T: Lanes> ChainsOfBlock<'_, '_, T> {
    /// Computes as many points as the machine code of the chains with this number can, if there is some.
    pub(super) fn compute_by(&mut self, machine_code: &MachineCode, number: u32) {
        let mut numbers: SmallVec<[T; 24]> = SmallVec::new();
        numbers.extend(self.chains.numbers.iter().map(|&number| self.number(number)));
        let (chains, loaded) = (self.chains, self.loaded);
        let block = machine_code::Block {
            loads: chains.loads.iter().map(|&load| block(loaded, load)),
            numbers: &numbers,
            bank: &mut *self.bank,
            outputs: &mut *self.outputs,
            len: self.len,
        };
        self.done = machine_code.compute(number, block);
    }

    /// A number that all points have.
    #[inline(always)]
    fn number(&self, source: Source) -> T {
        match source {
            Source::Parameter(parameter) => number(self.parameters[parameter as usize]),
            Source::Load(load) => match self.loaded.argument(load) {
                Argument::Same(value) => value,
                Argument::Block(_) => unreachable!("a load of elements for all points is a block"),
            },
            _ => unreachable!("a number is a literal or an element"),
        }
    }
}

/// The elements of a load that has one for each point.
#[inline(always)]
fn block<T: Lanes>(loaded: Loaded<'_>, load: u32) -> &[T] {
    match loaded.argument(load) {
        Argument::Block(elements) => elements,
        Argument::Same(_) => unreachable!("a load of one element is a number"),
    }
}

/// Chains that go through a block strip by strip.
struct Strips<'a, 'o, T> {
    chains: &'a Chains,
    /// The elements of the loads.
    blocks: &'a [&'a [T]],
    numbers: &'a [T],
    len: usize,
    bank: &'a mut Bank<T>,
    outputs: &'a mut [SliceMut<'o>],
}

impl<T: Lanes> Strips<'_, '_, T> {
    /// Computes all chains for as many strips of `N` vectors as there are from point `at` on. Returns the
    /// point after them.
    #[inline(always)]
    fn compute<S: Simd, const N: usize>(&mut self, simd: S, mut at: usize) -> usize {
        let points = N * size_of::<T::Vector<S>>() / size_of::<T>();
        while at + points <= self.len {
            self.strip::<S, Whole, N>(simd, at..at + points);
            at += points;
        }
        at
    }

    /// Computes all chains from point `at` on, where the points that are left fill no vector.
    #[inline(always)]
    fn compute_rest<S: Simd>(&mut self, simd: S, at: usize) {
        if at < self.len {
            self.strip::<S, Rest, 1>(simd, at..self.len);
        }
    }

    /// Computes all chains for a strip.
    #[inline(always)]
    fn strip<S: Simd, V: Vectors<N>, const N: usize>(&mut self, simd: S, points: Range<usize>) {
        let mut so_far = [T::splat(simd, T::default()); N];
        // Registers that hold one strip stay in the first-level cache, whatever the length of the block.
        let held = if self.chains.are_alone { 0..points.len() } else { points.clone() };
        for &link in &self.chains.links {
            // Not closures: all of this must be in the function that has the vector instructions.
            macro_rules! join {
                ($join:ident load $at:ident) => {
                    join!($join V::read(simd, self.load($at, &points)))
                };
                ($join:ident register $at:ident) => {
                    join!($join V::read(simd, self.register($at, &held)))
                };
                ($join:ident number $at:ident) => {
                    join!($join [T::splat(simd, self.numbers[$at as usize]); N])
                };
                ($join:ident $with:expr) => {
                    join_each::<T, S, N>(simd, Join::$join, &mut so_far, $with)
                };
            }
            macro_rules! scaled {
                ($join:ident $by:ident) => {{
                    let values = V::read(simd, self.load($by.load, &points));
                    let number = T::splat(simd, self.numbers[$by.number as usize]);
                    join_scaled::<T, S, N>(simd, Join::$join, &mut so_far, values, number);
                }};
            }
            match link {
                Link::TakeLoad(at) => join!(Take load at),
                Link::TakeNumber(at) => join!(Take number at),
                Link::TakeRegister(at) => join!(Take register at),
                Link::AddLoad(at) => join!(Add load at),
                Link::AddNumber(at) => join!(Add number at),
                Link::AddRegister(at) => join!(Add register at),
                Link::SubLoad(at) => join!(Sub load at),
                Link::SubNumber(at) => join!(Sub number at),
                Link::SubRegister(at) => join!(Sub register at),
                Link::SubFromLoad(at) => join!(SubFrom load at),
                Link::SubFromNumber(at) => join!(SubFrom number at),
                Link::SubFromRegister(at) => join!(SubFrom register at),
                Link::MulLoad(at) => join!(Mul load at),
                Link::MulNumber(at) => join!(Mul number at),
                Link::MulRegister(at) => join!(Mul register at),
                Link::TakeLoads([a, b]) => {
                    join!(Take load a);
                    join!(Add load b);
                }
                Link::AddLoads([a, b]) => {
                    join!(Add load a);
                    join!(Add load b);
                }
                Link::AddScaled(by) => scaled!(Add by),
                Link::SubScaled(by) => scaled!(Sub by),
                Link::Store(at) => V::write(simd, self.result(at, &held), so_far),
                Link::Set(at) => V::write(simd, self.output(at, &points), so_far),
            }
        }
    }

    #[inline(always)]
    fn load(&self, load: u32, points: &Range<usize>) -> &[T] {
        &self.blocks[load as usize][points.clone()]
    }

    #[inline(always)]
    fn register(&self, register: u32, held: &Range<usize>) -> &[T] {
        &self.bank[register as usize].as_ref().expect(IN_BANK).0[held.clone()]
    }

    /// The register that the result of a chain goes to.
    #[inline(always)]
    fn result(&mut self, register: u32, held: &Range<usize>) -> &mut [T] {
        &mut self.bank[register as usize].as_mut().expect(IN_BANK).0[held.clone()]
    }

    #[inline(always)]
    fn output(&mut self, output: u32, points: &Range<usize>) -> &mut [T] {
        &mut numbers_mut(self.outputs[output as usize].reborrow())[points.clone()]
    }
}

/// The vectors of a strip.
trait Vectors<const N: usize> {
    fn read<T: Lanes, S: Simd>(simd: S, strip: &[T]) -> [T::Vector<S>; N];
    fn write<T: Lanes, S: Simd>(simd: S, strip: &mut [T], vectors: [T::Vector<S>; N]);
}

/// A strip that fills all of its vectors.
struct Whole;

impl<const N: usize> Vectors<N> for Whole {
    #[inline(always)]
    fn read<T: Lanes, S: Simd>(_: S, strip: &[T]) -> [T::Vector<S>; N] {
        *<&[_; N]>::try_from(T::vectors::<S>(strip)).expect(STRIP)
    }

    #[inline(always)]
    fn write<T: Lanes, S: Simd>(_: S, strip: &mut [T], vectors: [T::Vector<S>; N]) {
        *<&mut [_; N]>::try_from(T::vectors_mut::<S>(strip)).expect(STRIP) = vectors;
    }
}

/// A strip that does not fill its vector.
struct Rest;

impl Vectors<1> for Rest {
    #[inline(always)]
    fn read<T: Lanes, S: Simd>(simd: S, strip: &[T]) -> [T::Vector<S>; 1] {
        [T::partial(simd, strip)]
    }

    #[inline(always)]
    fn write<T: Lanes, S: Simd>(simd: S, strip: &mut [T], [vector]: [T::Vector<S>; 1]) {
        T::store_partial(simd, strip, vector);
    }
}

/// Joins the results so far of some vectors with their operands. The loop has no closures: see
/// [`Strips::strip`].
#[inline(always)]
fn join_each<T: Lanes, S: Simd, const N: usize>(
    simd: S,
    join: Join,
    so_far: &mut [T::Vector<S>; N],
    with: [T::Vector<S>; N],
) {
    for (so_far, &with) in so_far.iter_mut().zip(&with) {
        *so_far = join_one::<T, S>(simd, join, *so_far, with);
    }
}

/// Joins the results so far with products. One loop has both operations: there are no registers for all
/// products.
#[inline(always)]
fn join_scaled<T: Lanes, S: Simd, const N: usize>(
    simd: S,
    join: Join,
    so_far: &mut [T::Vector<S>; N],
    values: [T::Vector<S>; N],
    number: T::Vector<S>,
) {
    for (so_far, &value) in so_far.iter_mut().zip(&values) {
        *so_far = join_one::<T, S>(simd, join, *so_far, T::mul(simd, value, number));
    }
}

#[inline(always)]
fn join_one<T: Lanes, S: Simd>(
    simd: S,
    join: Join,
    so_far: T::Vector<S>,
    with: T::Vector<S>,
) -> T::Vector<S> {
    match join {
        Join::Take => with,
        Join::Add => T::add(simd, so_far, with),
        Join::Sub => T::sub(simd, so_far, with),
        Join::SubFrom => T::sub(simd, with, so_far),
        Join::Mul => T::mul(simd, so_far, with),
    }
}

const STRIP: &str = "a strip has its number of vectors";
