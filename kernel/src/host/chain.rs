//! Chains: operations of which each one uses the result of the one before. That result stays in the vector registers of the processor.
//!
//! A chain goes through its links for a strip of some vectors at once, so that choosing what a link does costs little. All chains of a step
//! are done with a strip before the next one begins, so that what one leaves for another is in the first-level cache. Each product and
//! each sum is rounded by itself, as if it were alone.

use super::{
    argument::{Argument, Loaded, number},
    banks::{Bank, IN_BANK},
    lanes::Lanes,
};
use crate::{
    number::Scalar,
    steps::{Chain, Join, Link, Source},
};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Chains and a block.
pub(super) struct Chains<'a, T> {
    pub(super) chains: &'a [Chain],
    pub(super) links: &'a [Link],
    pub(super) parameters: &'a [Scalar],
    pub(super) loaded: Loaded<'a>,
    pub(super) len: usize,
    pub(super) bank: &'a mut Bank<T>,
}

impl<T: Lanes> WithSimd for Chains<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // The results so far and the operands of one link need registers.
        let at = match S::REGISTER_COUNT {
            32.. => self.strips::<S, 16>(simd, 0),
            _ => self.strips::<S, 8>(simd, 0),
        };
        let at = self.strips::<S, 4>(simd, at);
        self.vectors(simd, at);
    }
}

impl<T: Lanes> Chains<'_, T> {
    /// Computes all chains for as many strips of `N` vectors as there are from point `at` on. Returns the point after them.
    #[inline(always)]
    fn strips<S: Simd, const N: usize>(&mut self, simd: S, mut at: usize) -> usize {
        let points = N * size_of::<T::Vector<S>>() / size_of::<T>();
        while at + points <= self.len {
            for &chain in self.chains {
                let result = self.strip::<S, N>(simd, chain, at..at + points);
                *vectors_mut::<T, S, N>(self.result(chain, at..at + points)) = result;
            }
            at += points;
        }
        at
    }

    /// Computes all chains from point `at` on, one vector at a time.
    #[inline(always)]
    fn vectors<S: Simd>(&mut self, simd: S, mut at: usize) {
        while at < self.len {
            let end = self.len.min(at + size_of::<T::Vector<S>>() / size_of::<T>());
            for &chain in self.chains {
                let result = self.vector(simd, chain, at..end);
                T::store_partial(simd, self.result(chain, at..end), result);
            }
            at = end;
        }
    }

    /// Computes a chain for the points of `N` vectors.
    #[inline(always)]
    fn strip<S: Simd, const N: usize>(
        &self,
        simd: S,
        chain: Chain,
        points: Range<usize>,
    ) -> [T::Vector<S>; N] {
        let mut so_far = match self.argument(chain.first) {
            Argument::Block(block) => *vectors::<T, S, N>(&block[points.clone()]),
            Argument::Same(value) => [T::splat(simd, value); N],
        };
        for link in &self.links[chain.from as usize..chain.to as usize] {
            match self.argument(link.with) {
                Argument::Block(block) => {
                    let with = vectors::<T, S, N>(&block[points.clone()]);
                    join::<T, S, N>(simd, link.join, &mut so_far, |i| with[i]);
                }
                Argument::Same(value) => {
                    let with = T::splat(simd, value);
                    join::<T, S, N>(simd, link.join, &mut so_far, |_| with);
                }
            }
        }
        so_far
    }

    /// Computes a chain for the points of one vector or fewer.
    #[inline(always)]
    fn vector<S: Simd>(&self, simd: S, chain: Chain, points: Range<usize>) -> T::Vector<S> {
        let load = |source| match self.argument(source) {
            Argument::Block(block) => T::partial(simd, &block[points.clone()]),
            Argument::Same(value) => T::splat(simd, value),
        };
        let mut so_far = [load(chain.first)];
        for link in &self.links[chain.from as usize..chain.to as usize] {
            let with = load(link.with);
            join::<T, S, 1>(simd, link.join, &mut so_far, |_| with);
        }
        so_far[0]
    }

    /// The points of the register that the result of a chain goes to.
    #[inline(always)]
    fn result(&mut self, chain: Chain, points: Range<usize>) -> &mut [T] {
        &mut self.bank[chain.register as usize].as_mut().expect(IN_BANK).0[points]
    }

    #[inline(always)]
    fn argument(&self, source: Source) -> Argument<'_, T> {
        match source {
            Source::Load(load) => self.loaded.argument(load),
            Source::Register(register) => {
                Argument::Block(&self.bank[register as usize].as_ref().expect(IN_BANK).0)
            }
            Source::Parameter(parameter) => Argument::Same(number(self.parameters[parameter as usize])),
            Source::Counter(_) => unreachable!("a counter is no float"),
            Source::Nowhere => unreachable!("a chain needs what is inside of another one"),
        }
    }
}

/// Does what a link does, for some vectors.
#[inline(always)]
fn join<T: Lanes, S: Simd, const N: usize>(
    simd: S,
    join: Join,
    so_far: &mut [T::Vector<S>; N],
    with: impl Fn(usize) -> T::Vector<S>,
) {
    match join {
        Join::Add => (0..N).for_each(|i| so_far[i] = T::add(simd, so_far[i], with(i))),
        Join::Sub => (0..N).for_each(|i| so_far[i] = T::sub(simd, so_far[i], with(i))),
        Join::SubFrom => (0..N).for_each(|i| so_far[i] = T::sub(simd, with(i), so_far[i])),
        Join::Mul => (0..N).for_each(|i| so_far[i] = T::mul(simd, so_far[i], with(i))),
    }
}

const STRIP: &str = "a strip has its number of vectors";

/// The vectors of a strip.
#[inline(always)]
fn vectors<T: Lanes, S: Simd, const N: usize>(slice: &[T]) -> &[T::Vector<S>; N] {
    T::vectors::<S>(slice).try_into().expect(STRIP)
}

/// The same, to be written.
#[inline(always)]
fn vectors_mut<T: Lanes, S: Simd, const N: usize>(slice: &mut [T]) -> &mut [T::Vector<S>; N] {
    T::vectors_mut::<S>(slice).try_into().expect(STRIP)
}
