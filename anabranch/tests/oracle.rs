//! Serial equivalence: random programs, run by the runtime on 1 to 8 threads and, task by task, by a plain model. All
//! bits must agree.

use anabranch::{
    grid::{Chunk, RangeMapper},
    prelude::*,
};
use proptest::prelude::*;

const ROWS: usize = 6;
const COLS: usize = 5;
const GRIDS: usize = 3;

/// The mappers that a random kernel reads through.
#[derive(Clone, Copy, Debug)]
enum Reach {
    Same,
    Box(usize, usize),
    Cross(usize, usize),
    Torus(usize, usize),
    WholeRows,
    WholeColumns,
    Everything,
    Corner,
}

impl RangeMapper<2, 2> for Reach {
    fn map(&self, chunk: &Chunk<2>, buffer: Extent<2>) -> Region<2> {
        match *self {
            Self::Same => one_to_one().map(chunk, buffer),
            Self::Box(r, c) => neighborhood([r, c]).map(chunk, buffer),
            Self::Cross(r, c) => neighborhood([r, c]).along_axes().map(chunk, buffer),
            Self::Torus(r, c) => neighborhood([r, c]).periodic().map(chunk, buffer),
            Self::WholeRows => slice(1).map(chunk, buffer),
            Self::WholeColumns => slice(0).map(chunk, buffer),
            Self::Everything => all().map(chunk, buffer),
            Self::Corner => fixed(GridBox::new([0, 0], [2, 3])).map(chunk, buffer),
        }
    }
}

fn reach() -> impl Strategy<Value = Reach> {
    prop_oneof![
        Just(Reach::Same),
        (0..3usize, 0..3usize).prop_map(|(r, c)| Reach::Box(r, c)),
        (0..3usize, 0..3usize).prop_map(|(r, c)| Reach::Cross(r, c)),
        (0..8usize, 0..3usize).prop_map(|(r, c)| Reach::Torus(r, c)),
        Just(Reach::WholeRows),
        Just(Reach::WholeColumns),
        Just(Reach::Everything),
        Just(Reach::Corner),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// A kernel over a box, from one grid to another.
    Compute {
        from: usize,
        reach: Reach,
        to: usize,
        space: [usize; 4],
        update: bool,
        chunks: usize,
        tiles: bool,
    },
    /// Row sums of a grid, into the vector.
    RowSums { from: usize, chunks: usize },
    /// A host task on a grid, the scalar and the log.
    Note { from: usize, slow: bool },
    /// A fence of a box of a grid.
    Fence { of: usize, part: [usize; 4] },
    /// Waits for everything.
    Wait,
}

fn space() -> impl Strategy<Value = [usize; 4]> {
    let part = (0..ROWS, 0..COLS, 1..=ROWS, 1..=COLS)
        .prop_map(|(r, c, h, w)| [r, c, (r + h).min(ROWS), (c + w).min(COLS)]);
    prop_oneof![Just([0, 0, ROWS, COLS]), part]
}

fn step() -> impl Strategy<Value = Step> {
    let compute = (0..GRIDS, reach(), 0..GRIDS, space(), any::<bool>(), 1..9usize, any::<bool>()).prop_map(
        |(from, reach, to, space, update, chunks, tiles)| Step::Compute {
            from,
            reach,
            to: if to == from { (to + 1) % GRIDS } else { to },
            space,
            update,
            chunks,
            tiles,
        },
    );
    prop_oneof![
        8 => compute,
        2 => (0..GRIDS, 1..9usize).prop_map(|(from, chunks)| Step::RowSums { from, chunks }),
        3 => (0..GRIDS, any::<bool>()).prop_map(|(from, slow)| Step::Note { from, slow }),
        2 => (0..GRIDS, space()).prop_map(|(of, part)| Step::Fence { of, part }),
        1 => Just(Step::Wait),
    ]
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// What a kernel writes at `point`: it depends on all that it reads there, and on what was there if it updates.
fn value(seed: usize, point: [usize; 2], reach: Reach, before: u64, read: impl Fn([usize; 2]) -> u64) -> u64 {
    let chunk = Chunk {
        range: GridBox::new(point, [point[0] + 1, point[1] + 1]),
        global: GridBox::full([ROWS, COLS]),
    };
    let region = reach.map(&chunk, Extent([ROWS, COLS]));
    let points = region.boxes().iter().flat_map(|range| range.points());
    points.fold(mix(seed as u64, before), |hash, p| mix(hash, read(p.0)))
}

/// Everything that a program leaves behind, and sees on its way.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    grids: Vec<Vec<u64>>,
    sums: Vec<u64>,
    scalar: u64,
    log: Vec<u64>,
    fences: Vec<Vec<u64>>,
}

fn model(steps: &[Step]) -> Outcome {
    let initial = |g: usize| (0..ROWS * COLS).map(|i| mix(g as u64, i as u64)).collect();
    let mut out =
        Outcome { grids: (0..GRIDS).map(initial).collect(), sums: vec![0; ROWS], ..Outcome::default() };
    let at = |p: [usize; 2]| p[0] * COLS + p[1];
    for (seed, step) in steps.iter().enumerate() {
        match *step {
            Step::Compute { from, reach, to, space: [r, c, r1, c1], update, .. } => {
                for p in GridBox::new([r, c], [r1, c1]).points() {
                    let before = if update { out.grids[to][at(p.0)] } else { 0 };
                    out.grids[to][at(p.0)] = value(seed, p.0, reach, before, |q| out.grids[from][at(q)]);
                }
            }
            Step::RowSums { from, .. } => {
                for y in 0..ROWS {
                    let row = &out.grids[from][y * COLS..(y + 1) * COLS];
                    out.sums[y] = row.iter().fold(out.sums[y], |sum, x| sum.wrapping_add(*x));
                }
            }
            Step::Note { from, .. } => {
                let hash = out.grids[from].iter().fold(out.scalar, |hash, x| mix(hash, *x));
                out.scalar = hash;
                out.log.push(hash);
            }
            Step::Fence { of, part: [r, c, r1, c1] } => {
                let points = GridBox::new([r, c], [r1, c1]).points();
                out.fences.push(points.map(|p| out.grids[of][at(p.0)]).collect());
            }
            Step::Wait => {}
        }
    }
    out
}

fn run(steps: &[Step], threads: usize, versions: usize) -> Result<Outcome, Error> {
    let rt = Runtime::builder().threads(threads).lead(20).build()?;
    let grids: Vec<_> = (0..GRIDS)
        .map(|g| {
            let grid = rt.buffer::<u64, 2>([ROWS, COLS]).with_versions(versions).named(format!("grid {g}"));
            let fill = move |[y, x]: [usize; 2]| mix(g as u64, (y * COLS + x) as u64);
            rt.task("initial")
                .over([ROWS, COLS])
                .write(&grid, one_to_one())
                .kernel(move |tile, (grid,)| tile.points().for_each(|p| grid[p] = fill(p)))?;
            Ok(grid)
        })
        .collect::<Result<_, Error>>()?;
    let sums = rt.buffer_from(&[0_u64; ROWS])?.named("sums");
    let scalar = rt.buffer_from(&ndarray::arr0(0_u64))?.named("scalar");
    let log = rt.host_object(Vec::new());
    let mut fences = Vec::new();
    for (seed, step) in steps.iter().enumerate() {
        match *step {
            Step::Compute { from, reach, to, space: [r, c, r1, c1], update, chunks, tiles } => {
                let task = rt.task("compute").over(GridBox::new([r, c], [r1, c1])).chunks(chunks);
                let task = if tiles { task.tiles(1, 2) } else { task };
                let task = task.read(&grids[from], reach);
                let task = if update {
                    task.update(&grids[to], one_to_one())
                } else {
                    task.write(&grids[to], one_to_one())
                };
                task.kernel(move |tile, (from, to)| {
                    for p in tile.points() {
                        let before = if update { to[p] } else { 0 };
                        to[p] = value(seed, p, reach, before, |q| from[q]);
                    }
                })?;
            }
            Step::RowSums { from, chunks } => drop(
                rt.task("row sums")
                    .over([ROWS])
                    .chunks(chunks)
                    .read(
                        &grids[from],
                        mapper(|chunk: &Chunk<1>, buffer: Extent<2>| {
                            GridBox::new([chunk.range.min()[0], 0], [chunk.range.max()[0], buffer[1]])
                        }),
                    )
                    .update(&sums, one_to_one())
                    .kernel(|tile, (from, sums)| {
                        for [y] in tile.points() {
                            sums[[y]] = from.row(y).iter().fold(sums[[y]], |sum, x| sum.wrapping_add(*x));
                        }
                    })?,
            ),
            Step::Note { from, slow } => drop(
                rt.task("note")
                    .once()
                    .read(&grids[from], all())
                    .update(&scalar, all())
                    .effect(&log, sequential())
                    .host(move |(from, scalar, log)| {
                        if slow {
                            std::thread::sleep(std::time::Duration::from_micros(50));
                        }
                        let hash = from.as_slice().unwrap().iter().fold(scalar[[]], |hash, x| mix(hash, *x));
                        scalar[[]] = hash;
                        log.push(hash);
                    })?,
            ),
            Step::Fence { of, part: [r, c, r1, c1] } => {
                fences.push(rt.fence(&grids[of].part(GridBox::new([r, c], [r1, c1])))?);
            }
            Step::Wait => rt.wait()?,
        }
    }
    let fences = fences.into_iter().map(|f| f.wait().map(Snapshot::into_vec)).collect::<Result<_, _>>()?;
    let finals =
        grids.iter().map(|g| rt.fence(g)?.wait().map(Snapshot::into_vec)).collect::<Result<_, _>>()?;
    let (sums, scalar, log) = rt.drain((sums.capture(), scalar.capture(), log.capture()))?;
    Ok(Outcome { grids: finals, sums: sums.into_vec(), scalar: scalar[[]], log, fences })
}

fn cases() -> u32 {
    // More with `PROPTEST_CASES=…`.
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_runtime_agrees_with_the_model(
        steps in proptest::collection::vec(step(), 1..40),
        versions in 1..4usize,
    ) {
        let expected = model(&steps);
        for threads in [1, 2, 3, 4, 8] {
            let outcome = run(&steps, threads, versions).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&outcome, &expected, "{} threads", threads);
        }
    }
}

/// Three dimensions, by a fixed program: a 7-point sum, many times, on any number of threads and chunks.
#[test]
fn three_dimensions_agree_too() {
    const N: [usize; 3] = [5, 4, 6];
    let at = |[z, y, x]: [usize; 3]| (z * N[1] + y) * N[2] + x;
    let neighbours = |p: [usize; 3]| {
        (0..3)
            .flat_map(move |d| {
                [p[d].checked_sub(1), Some(p[d] + 1).filter(|&i| i < N[d])].map(move |i| (d, i))
            })
            .filter_map(move |(d, i)| {
                let mut q = p;
                q[d] = i?;
                Some(q)
            })
    };
    let initial: Vec<u64> = (0..N.iter().product()).map(|i| mix(1, i as u64)).collect();
    let mut expected = initial.clone();
    for _ in 0..10 {
        let old = expected.clone();
        for p in GridBox::full(N).points() {
            expected[at(p.0)] = neighbours(p.0).fold(old[at(p.0)], |sum, q| mix(sum, old[at(q)]));
        }
    }
    for threads in [1, 2, 3, 4, 8] {
        for chunks in [1, 2, 3, 5] {
            let rt = Runtime::builder().threads(threads).build().unwrap();
            let array = ndarray::Array3::from_shape_vec(N, initial.clone()).unwrap();
            let (mut u, mut u2) = (rt.buffer_from(&array).unwrap(), rt.buffer::<u64, 3>(N));
            for _ in 0..10 {
                rt.task("sum")
                    .over(N)
                    .chunks(chunks)
                    .tiles(1, 2)
                    .read(&u, neighborhood([1, 1, 1]).along_axes())
                    .write(&u2, one_to_one())
                    .kernel(move |tile, (u, u2)| {
                        tile.points().for_each(|p| u2[p] = neighbours(p).fold(u[p], |sum, q| mix(sum, u[q])));
                    })
                    .unwrap();
                std::mem::swap(&mut u, &mut u2);
            }
            assert_eq!(rt.drain(u.capture()).unwrap().into_vec(), expected);
        }
    }
}
