//! Kernels from bytes. The strategies of the tests draw numbers until one is in a range, and so never end
//! with the bytes of a fuzzer; each byte here changes one part of a kernel.

use crate::{
    grids::Case,
    loops::{self, Along, Kernel},
    plain::{self, Edge, Node, Plain, Step},
};
use arbitrary::{Result, Unstructured};

/// The most steps of a kernel, and of each iteration of a fold.
const STEPS: usize = 40;

/// The most points of a row of a kernel with folds.
const ROW: usize = 300;

fn below(u: &mut Unstructured<'_>, end: usize) -> Result<usize> {
    u.int_in_range(0..=end - 1)
}

fn literal<T: Plain>(u: &mut Unstructured<'_>) -> Result<T> {
    Ok(T::draw(u.arbitrary::<u8>()?.into(), 0))
}

fn edge<T: Plain>(u: &mut Unstructured<'_>) -> Result<Edge<T>> {
    Ok(match below(u, 3)? {
        0 => Edge::Clamped,
        1 => Edge::Periodic,
        _ => Edge::Or(literal(u)?),
    })
}

fn step<T: Plain>(u: &mut Unstructured<'_>) -> Result<Step<T>> {
    Ok(match below(u, 12)? {
        0 | 1 => Step::Load {
            input: below(u, 2)?,
            offset: [u.int_in_range(-2..=2)?, u.int_in_range(-3..=3)?, u.int_in_range(-5..=5)?],
            edge: edge(u)?,
        },
        2 => Step::Here { input: below(u, 2)? },
        3 => Step::Literal(literal(u)?),
        4 => Step::Index(below(u, 3)?),
        5 => Step::Select(below(u, plain::COMPARISONS)?),
        // Sums, differences and products are chains of floats.
        6..=8 => Step::Operation(below(u, 3)?),
        _ => Step::Operation(below(u, T::OPERATIONS)?),
    })
}

/// A kernel over a grid.
pub fn case<T: Plain>(u: &mut Unstructured<'_>) -> Result<Case<T>> {
    // Around the lengths of vectors, strips and blocks.
    let columns = match below(u, 4)? {
        0 => 1 + below(u, 40)?,
        1 => 120 + below(u, 20)?,
        2 => 250 + below(u, 290)?,
        _ => 1020 + below(u, 280)?,
    };
    let extent = [1 + below(u, 2)?, 1 + below(u, 3)?, columns];
    let mut part = [[0; 3]; 2];
    for dim in 0..3 {
        part[0][dim] = below(u, extent[dim])?;
        part[1][dim] = part[0][dim] + 1 + below(u, extent[dim] - part[0][dim])?;
    }
    let dim = below(u, 3)?;
    let cut = (dim, part[0][dim] + below(u, part[1][dim] - part[0][dim])?);
    let longest = if u.arbitrary()? { usize::MAX } else { 1 + below(u, 600)? };
    let (seed, mut nodes) = (u.arbitrary()?, vec![]);
    while nodes.len() < STEPS && (nodes.is_empty() || !u.is_empty()) {
        let [a, b, c] = u.arbitrary::<[u8; 3]>()?.map(usize::from);
        // A chain goes on with the step before.
        let a = if a >= 128 { nodes.len() } else { a };
        nodes.push(Node { step: step(u)?, a, b, c });
    }
    Ok(Case { extent, part, cut, longest, seed, nodes })
}

fn along(u: &mut Unstructured<'_>) -> Result<Along> {
    let option = |u: &mut Unstructured<'_>, end| Ok(if u.arbitrary()? { Some(below(u, end)?) } else { None });
    Ok(Along {
        point: option(u, 3)?,
        counter: option(u, 2)?,
        number: option(u, 4)?,
        offset: u.int_in_range(-2..=2)?,
    })
}

/// Steps with folds that are nested up to this deep.
fn steps<T: Plain>(u: &mut Unstructured<'_>, depth: usize) -> Result<Vec<loops::Step<T>>> {
    let mut steps = vec![];
    for _ in 0..1 + below(u, 8)? {
        let mut of = || u.arbitrary::<u8>().map(usize::from);
        let [sort, a, b, c] = [of()?, of()?, of()?, of()?];
        steps.push(match sort % 10 {
            0..=2 => loops::Step::Load {
                input: a % 4,
                along: [along(u)?, along(u)?, along(u)?],
                edge: if b % 2 == 0 { Some(edge(u)?) } else { None },
            },
            3 => loops::Step::Literal(literal(u)?),
            4 => loops::Step::Number(along(u)?),
            5 => loops::Step::Select(below(u, plain::COMPARISONS)?, [a, b, c]),
            6 | 7 => loops::Step::Operation(below(u, 3)?, [a, b]),
            8 if depth > 0 => {
                let (from, iterations, values) = (a % 3, b % 5, 1 + c % 4);
                let mut many = || (0..values).map(|_| u.arbitrary::<u8>().map(usize::from)).collect();
                let (firsts, next): (Result<Vec<_>>, Result<Vec<_>>) = (many(), many());
                let iteration = self::steps(u, depth - 1)?;
                loops::Step::Fold { range: [from, from + iterations], firsts: firsts?, iteration, next: next? }
            }
            _ => loops::Step::Operation(below(u, T::OPERATIONS)?, [a, b]),
        });
    }
    Ok(steps)
}

/// A kernel with folds and operands of any rank.
pub fn kernel<T: Plain>(u: &mut Unstructured<'_>) -> Result<Kernel<T>> {
    let size = |u: &mut Unstructured<'_>| Ok(1 + if u.arbitrary()? { below(u, 8)? } else { below(u, ROW)? });
    let dimensions = below(u, 4)?;
    let (mut points, mut inputs) = ([[0; 3], [1; 3]], vec![]);
    for dim in 3 - dimensions..3 {
        points[0][dim] = below(u, 3)?;
        points[1][dim] = points[0][dim] + if dim == 2 { size(u)? } else { 1 + below(u, 3)? };
    }
    for _ in 0..4 {
        let (rank, mut extent) = (below(u, 4)?, [1; 3]);
        for (dim, along) in extent.iter_mut().enumerate().skip(3 - rank) {
            *along = if dim == 2 { size(u)? } else { 1 + below(u, 4)? };
        }
        inputs.push((rank, extent));
    }
    Ok(Kernel { dimensions, points, inputs, steps: steps(u, 2)? })
}
