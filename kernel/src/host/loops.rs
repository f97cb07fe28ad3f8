//! The loops over blocks. Each one is a function of its own for each operation, type and set of instructions:
//! in a function with several loops the compiler runs out of registers.

use super::{argument::Argument, instructions::Token};
use pulp::NullaryFnOnce;

/// Computes each element of a block from those of another one.
#[inline(always)]
pub(super) fn map<A: Copy, R>(token: Token, to: &mut [R], a: Argument<'_, A>, f: impl Fn(A) -> R) {
    match a {
        Argument::Block(a) => token.run(Map { to, a, f }),
        Argument::Same(a) => to.iter_mut().for_each(|to| *to = f(a)),
    }
}

/// Computes each element of a block from those of two others.
#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy, R>(
    token: Token,
    to: &mut [R],
    a: Argument<'_, A>,
    b: Argument<'_, B>,
    f: impl Fn(A, B) -> R,
) {
    match (a, b) {
        (Argument::Block(a), Argument::Block(b)) => token.run(Zip { to, a, b, f }),
        (Argument::Block(a), Argument::Same(b)) => token.run(Map { to, a, f: |a| f(a, b) }),
        (Argument::Same(a), Argument::Block(b)) => token.run(Map { to, a: b, f: |b| f(a, b) }),
        (Argument::Same(a), Argument::Same(b)) => to.iter_mut().for_each(|to| *to = f(a, b)),
    }
}

/// Takes each element of a block from one of two others.
#[inline(always)]
pub(super) fn select<T: Copy>(
    token: Token,
    to: &mut [T],
    mask: &[bool],
    then: Argument<'_, T>,
    otherwise: Argument<'_, T>,
) {
    let choose = |mask: bool, a: T, b: T| if mask { a } else { b };
    match (then, otherwise) {
        (Argument::Block(a), Argument::Block(b)) => token.run(Select { to, mask, a, b }),
        (Argument::Block(a), Argument::Same(b)) => {
            token.run(Zip { to, a: mask, b: a, f: |mask, a| choose(mask, a, b) });
        }
        (Argument::Same(a), Argument::Block(b)) => {
            token.run(Zip { to, a: mask, b, f: |mask, b| choose(mask, a, b) });
        }
        (Argument::Same(a), Argument::Same(b)) => {
            token.run(Map { to, a: mask, f: |mask| choose(mask, a, b) })
        }
    }
}

struct Map<'a, A, R, F> {
    to: &'a mut [R],
    a: &'a [A],
    f: F,
}

impl<A: Copy, R, F: Fn(A) -> R> NullaryFnOnce for Map<'_, A, R, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { to, a, f } = self;
        to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a));
    }
}

struct Zip<'a, A, B, R, F> {
    to: &'a mut [R],
    a: &'a [A],
    b: &'a [B],
    f: F,
}

impl<A: Copy, B: Copy, R, F: Fn(A, B) -> R> NullaryFnOnce for Zip<'_, A, B, R, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { to, a, b, f } = self;
        to.iter_mut().zip(a).zip(b).for_each(|((to, &a), &b)| *to = f(a, b));
    }
}

struct Select<'a, T> {
    to: &'a mut [T],
    mask: &'a [bool],
    a: &'a [T],
    b: &'a [T],
}

impl<T: Copy> NullaryFnOnce for Select<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { to, mask, a, b } = self;
        let from = mask.iter().zip(a).zip(b);
        to.iter_mut().zip(from).for_each(|(to, ((&mask, &a), &b))| *to = if mask { a } else { b });
    }
}
