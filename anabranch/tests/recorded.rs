//! Recorded kernels through the runtime: the bits of loops over points, wherever they run, and errors that
//! name the line.

mod common;

use anabranch::{
    Mistake,
    grid::Chunk,
    local_nodes,
    prelude::*,
    recorded::{Input, Number, RecordError, Value},
};
use common::{runtime, runtimes, same_on};
use std::mem::swap;
use testing::deadline;

const SHAPE: [usize; 2] = [37, 29];
const STEPS: usize = 9;

fn start() -> Vec<f32> {
    (0..SHAPE[0] * SHAPE[1]).map(|i| ((i * i) % 97) as f32 / 7.0 - 3.0).collect()
}

/// What the elements around a point are, on each side of the grid another.
fn around<'t>(u: Input<'t, f32, 2>) -> Value<'t, f32> {
    u.at_clamped([-1, 0]) + u.at_or([2, 1], 1.5) + u.at_periodic([0, -3]) + u.at_clamped([0, 1])
}

/// Steps of a stencil by recorded kernels in this many pieces.
fn recorded(rt: &Runtime, pieces: usize) -> Result<Vec<u32>, Error> {
    let (u, next) = (rt.buffer_from(&start())?, rt.buffer(SHAPE));
    let (mut u, mut next) = (reshaped(rt, &u)?, next);
    let total = rt.buffer::<f64, 2>(SHAPE);
    rt.task("zero").over(SHAPE).write(&total, one_to_one()).each(|(total,)| total.set(0.0))?;
    for step in 0..STEPS {
        // Across the columns a load may come from the other side of the grid.
        let rows = mapper(|chunk: &Chunk<2>, extent: Extent<2>| {
            let [from, to] = [chunk.range.min()[0], chunk.range.max()[0]];
            GridBox::new([from.saturating_sub(1), 0], [(to + 2).min(extent[0]), extent[1]])
        });
        let task = rt.task("step").over(SHAPE).pieces(pieces).read(&u, rows).write(&next, one_to_one());
        task.each(|(u, next)| {
            let value = 0.25 * around(u) + (u.index(0) + 2 * u.index(1)).convert::<f32>() * 0.01;
            next.set(value.gt(2.0).select(value - step as f32, value));
        })?;
        rt.task("add").over(SHAPE).read(&next, one_to_one()).update(&total, one_to_one()).each(
            |(next, total)| {
                total.set(total.here() * 0.5 + next.here().convert());
            },
        )?;
        swap(&mut u, &mut next);
    }
    let total = rt.fence(&total)?.wait()?;
    Ok(total.as_slice().iter().map(|&value| (value as f32).to_bits()).collect())
}

/// The row-major elements as a grid.
fn reshaped(rt: &Runtime, from: &Buffer<f32, 1>) -> Result<Buffer<f32, 2>, Error> {
    let to = rt.buffer::<f32, 2>(SHAPE);
    rt.task("reshape")
        .over(SHAPE)
        .read(from, fixed(GridBox::full([SHAPE[0] * SHAPE[1]])))
        .write(&to, one_to_one())
        .kernel(|tile, (from, to)| {
            tile.points().for_each(|[y, x]| to.set([y, x], from[[y * SHAPE[1] + x]]))
        })?;
    Ok(to)
}

/// The same by loops.
fn by_loops() -> Vec<u32> {
    let [rows, cols] = SHAPE;
    let (mut u, mut total) = (start(), vec![0.0_f64; rows * cols]);
    for step in 0..STEPS {
        let mut next = vec![0.0_f32; rows * cols];
        for (y, x) in (0..rows).flat_map(|y| (0..cols).map(move |x| (y, x))) {
            let at = |y: usize, x: usize| u[y * cols + x];
            let below = if y + 2 < rows && x + 1 < cols { at(y + 2, x + 1) } else { 1.5 };
            let left = at(y, (x + cols - 3) % cols);
            let around = at(y.saturating_sub(1), x) + below + left + at(y, (x + 1).min(cols - 1));
            let value = 0.25 * around + (y + 2 * x) as f32 * 0.01;
            next[y * cols + x] = if value > 2.0 { value - step as f32 } else { value };
        }
        for (total, next) in total.iter_mut().zip(&next) {
            *total = *total * 0.5 + f64::from(*next);
        }
        u = next;
    }
    total.into_iter().map(|value| (value as f32).to_bits()).collect()
}

#[test]
fn recorded_kernels_give_the_bits_of_loops_on_any_number_of_threads_and_in_pieces() {
    let _deadline = deadline();
    let expected = by_loops();
    for rt in runtimes() {
        for pieces in [1, 2, 5, 100] {
            assert_eq!(recorded(&rt, pieces).unwrap(), expected, "{rt:?}, {pieces} pieces");
        }
    }
}

#[test]
fn recorded_kernels_give_the_bits_of_loops_on_several_nodes() {
    let _deadline = deadline();
    let expected = by_loops();
    for pieces in [1, 6] {
        let expected = expected.clone();
        same_on(&[1, 2, 3, 4, 7], &[1, 2, 3], move |rt| {
            let bits = recorded(&rt, pieces)?;
            assert_eq!(bits, expected);
            Ok(bits)
        });
    }
}

#[test]
fn kernels_of_any_rank_run_and_empty_ones_do_nothing() {
    let _deadline = deadline();
    let rt = runtime(3);
    let point = rt.buffer::<i64, 0>([]);
    rt.task("point").over([]).write(&point, one_to_one()).each(|(point,)| point.set(7)).unwrap();
    rt.task("point").over([]).update(&point, one_to_one()).each(|(p,)| p.set(p.here() * 6)).unwrap();
    assert_eq!(rt.fence(&point).unwrap().wait().unwrap()[[]], 42);

    let space = [3, 4, 700];
    let cube = rt.buffer::<u64, 3>(space);
    let index = |[z, y, x]: [usize; 3]| (z * 1_000_000 + y * 10_000 + x) as u64;
    rt.task("cube")
        .over(space)
        .write(&cube, one_to_one())
        .each(|(cube,)| {
            let at = |dim| cube.index(dim).convert::<u64>();
            cube.set(1_000_000 * at(0) + 10_000 * at(1) + at(2));
        })
        .unwrap();
    let cube = rt.fence(&cube).unwrap().wait().unwrap();
    for z in 0..3 {
        for y in 0..4 {
            for x in 0..700 {
                assert_eq!(cube[[z, y, x]], index([z, y, x]));
            }
        }
    }

    let nothing = rt.buffer::<f32, 2>([0, 5]);
    rt.task("nothing").over([0, 5]).write(&nothing, one_to_one()).each(|(n,)| n.set(1.0)).unwrap();
    rt.wait().unwrap();
}

#[test]
fn a_checked_runtime_sees_that_all_elements_are_written() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).checked(true).build().unwrap();
    let u = rt.buffer::<f32, 1>([10_000]);
    rt.task("set").over([10_000]).write(&u, one_to_one()).each(|(u,)| u.set(u.index(0).convert())).unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap()[[9_999]], 9_999.0);
}

/// The mistake of a task that was refused, and its message.
fn mistake<T: std::fmt::Debug>(refused: Result<T, Error>) -> (Mistake, String) {
    let error = refused.expect_err("the declaration is wrong");
    let message = error.to_string();
    match error {
        Error::Declaration(error) => (error.mistake, message),
        other => panic!("{other:?} is no mistake of a declaration"),
    }
}

#[test]
fn an_offset_outside_the_declaration_is_an_error_that_names_the_line_and_nothing_is_submitted() {
    let _deadline = deadline();
    for threads in common::THREADS {
        let rt = runtime(threads);
        let u = rt.buffer_from(&[1.0_f32; 100]).unwrap();
        let v = rt.buffer::<f32, 1>([100]).named("v");
        let task = rt.task("shift").over([100]).read(&u, neighborhood([1])).write(&v, one_to_one());
        let refused = task.each(|(u, v)| {
            v.set(u.at_or([1], 0.0) + u.at_or([-2], 0.0));
        });
        let line = line!() - 2;
        // One thread has one chunk, whose neighbourhood is everything.
        if threads == 1 {
            refused.unwrap();
            continue;
        }
        let (mistake, message) = mistake(refused);
        let Mistake::OffsetOutside { offset, at, .. } = mistake else { panic!("{mistake:?}") };
        assert_eq!((offset.as_str(), at.file(), at.line()), ("[-2]", file!(), line));
        assert!(message.contains("task \"shift\""), "{message}");
        assert!(message.contains(&format!("{}:{line}:", file!())), "{message}");
        // Nothing has written `v`.
        assert!(rt.fence(&v).is_err());
    }
}

#[test]
fn an_offset_that_leads_out_of_the_buffer_needs_an_element_there() {
    let _deadline = deadline();
    let rt = runtime(1);
    let [u, v] = [(); 2].map(|()| rt.buffer_from(&[1.0_f32; 8]).unwrap());
    for offset in [-1, 1] {
        let task = rt.task("shift").over([8]).read(&u, all()).update(&v, one_to_one());
        let (mistake, message) = mistake(task.each(|(u, v)| v.set(u.at([offset]))));
        assert!(matches!(mistake, Mistake::OffsetOutside { .. }), "{mistake:?}");
        assert!(message.contains("`at_clamped`, `at_periodic` or `at_or`"), "{message}");
    }
    let task = rt.task("shift").over([8]).read(&u, neighborhood([1])).update(&v, one_to_one());
    task.each(|(u, v)| v.set(u.at_periodic([1]))).unwrap();
    // One chunk of a periodic neighbourhood is not enough for an offset of two chunks.
    let rt = runtime(8);
    let [u, v] = [(); 2].map(|()| rt.buffer_from(&[1.0_f32; 64]).unwrap());
    let task = rt.task("shift").over([64]).read(&u, neighborhood([1]).periodic()).update(&v, one_to_one());
    let (mistake, _) = mistake(task.each(|(u, v)| v.set(u.at_periodic([-9]))));
    assert!(matches!(mistake, Mistake::OffsetOutside { .. }), "{mistake:?}");
}

#[test]
fn a_recorded_kernel_sets_the_element_of_each_point() {
    let _deadline = deadline();
    let rt = runtime(2);
    let square = rt.buffer::<f32, 2>([8, 8]);
    let task = rt.task("turned").over([8, 8]).write(&square, transposed());
    let (mistake, message) = mistake(task.each(|(square,)| square.set(1.0)));
    assert!(matches!(mistake, Mistake::NotOwnPoints { .. }), "{mistake:?}");
    assert!(message.contains("declare `one_to_one()`"), "{message}");
}

#[test]
fn a_wrong_recording_is_an_error_that_names_the_task() {
    let _deadline = deadline();
    let rt = runtime(1);
    let u = rt.buffer::<f32, 1>([8]);
    let error = rt.task("forgets").over([8]).write(&u, one_to_one()).each(|(_,)| ()).unwrap_err();
    assert!(error.to_string().starts_with("task \"forgets\""), "{error}");
    let Error::Record { error, .. } = error else { panic!("{error:?}") };
    assert_eq!(*error, RecordError::NeverSet { operand: 0 });
}

#[test]
fn a_panic_of_the_closure_is_the_programs_own_and_the_runtime_goes_on() {
    let _deadline = deadline();
    let rt = runtime(2);
    let u = rt.buffer::<f32, 1>([8]);
    let submit = || rt.task("panics").over([8]).write(&u, one_to_one()).each(|_| panic!("in the closure"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(submit)).is_err());
    rt.task("sets").over([8]).write(&u, one_to_one()).each(|(u,)| u.set(2.0)).unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [2.0; 8]);
}

#[test]
fn functions_over_all_numbers_can_be_recorded() {
    let _deadline = deadline();
    fn larger<'t, T: Number>(u: Input<'t, T, 1>, than: T) -> Value<'t, T> {
        u.here().max(than)
    }
    let rt = runtime(1);
    let (u, v) = (rt.buffer_from(&[1_i32, 5, 3]).unwrap(), rt.buffer([3]));
    let task = rt.task("max").over([3]).read(&u, one_to_one()).write(&v, one_to_one());
    task.each(|(u, v)| v.set(larger(u, 2))).unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [2, 5, 3]);
}

#[test]
fn offsets_from_an_index_space_inside_the_buffer() {
    let _deadline = deadline();
    for rt in runtimes() {
        let from: Vec<u64> = (0..1000).map(|i| i * i).collect();
        let (u, v) = (rt.buffer_from(&from).unwrap(), rt.buffer::<u64, 1>([997]));
        let ahead = mapper(|chunk: &Chunk<1>, _: Extent<1>| {
            GridBox::new([chunk.range.min()[0] + 1], [chunk.range.max()[0] + 2])
        });
        let task = rt.task("ahead").over([997]).read(&u, ahead).write(&v, one_to_one());
        task.each(|(u, v)| v.set(u.at([1]) + u.at([2]))).unwrap();
        let sums: Vec<u64> = from[1..].windows(2).take(997).map(|pair| pair[0] + pair[1]).collect();
        assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), sums);
    }
}

#[test]
fn a_buffer_without_elements_has_none_at_its_edges() {
    let _deadline = deadline();
    let rt = runtime(2);
    let (u, v) = (rt.buffer::<f32, 1>([0]), rt.buffer::<f32, 1>([5]));
    let task = || rt.task("edges").over([5]).read(&u, all()).write(&v, one_to_one());
    let edges: [fn(Input<'_, f32, 1>) -> Value<'_, f32>; 2] = [|u| u.at_clamped([0]), |u| u.at_periodic([1])];
    for edge in edges {
        let (mistake, message) = mistake(task().each(|(u, v)| v.set(edge(u))));
        assert!(matches!(mistake, Mistake::OffsetOutside { .. }), "{mistake:?}");
        assert!(message.contains("an element of an empty buffer"), "{message}");
    }
    task().each(|(u, v)| v.set(u.at_or([0], 3.0))).unwrap();
    assert_eq!(rt.fence(&v).unwrap().wait().unwrap().as_slice(), [3.0; 5]);
}

#[test]
fn all_nodes_refuse_what_is_wrong_for_the_whole_index_space_and_go_on() {
    let _deadline = deadline();
    for nodes in [1, 2, 3, 7] {
        let results = local_nodes(nodes).threads(2).run(|rt| {
            let (u, v) = (rt.buffer_from(&[1.0_f32; 20])?, rt.buffer::<f32, 1>([20]));
            let task = || rt.task("shift").over([20]).read(&u, all()).write(&v, one_to_one());
            // The first node would find the one, and the last node the other.
            let refused = task().each(|(u, v)| v.set(u.at([-1]) + u.at([1]))).unwrap_err().to_string();
            task().each(|(u, v)| v.set(u.at_periodic([-1]) + u.at_periodic([1])))?;
            Ok::<_, Error>((refused, rt.fence(&v)?.wait()?.as_slice().to_vec()))
        });
        let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(results[0].1, [2.0; 20]);
        assert!(results[0].0.contains("offset [-1]"), "{}", results[0].0);
        assert!(results.iter().all(|result| *result == results[0]), "{nodes} nodes: {results:?}");
    }
}

#[test]
fn a_mistake_in_the_chunks_of_one_node_ends_the_run_with_its_reason_on_all() {
    let _deadline = deadline();
    // The first node has all of the elements before its chunk, and the second one has not.
    let results = local_nodes(2).threads(1).run(|rt| {
        let (u, v) = (rt.buffer_from(&[1.0_f32; 20])?, rt.buffer::<f32, 1>([20]));
        let task = rt.task("shift").over([20]).read(&u, neighborhood([1])).write(&v, one_to_one());
        task.each(|(u, v)| v.set(u.at_or([-2], 0.0)))?;
        rt.wait()
    });
    for (node, result) in results.into_iter().enumerate() {
        let error = result.expect_err("one node finds the mistake").to_string();
        assert!(error.contains("at offset [-2]"), "node {node}: {error}");
    }
}
