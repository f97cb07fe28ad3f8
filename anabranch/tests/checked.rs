//! The checked mode finds tasks that do not write what they declared to write, or read it first.

mod common;

use anabranch::{Cause, par::prelude::*, prelude::*};
use common::THREADS;
use testing::deadline;

fn checked(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).checked(true).build().unwrap()
}

/// The only failure of the program.
fn cause(rt: &Runtime) -> Cause {
    let Err(Error::Failed(failures)) = rt.wait() else { panic!("the program has a failure") };
    assert_eq!(failures.iter().count(), 1, "{failures}");
    failures.iter().next().unwrap().cause.clone()
}

/// The elements that the task left unwritten.
fn unwritten(rt: &Runtime) -> String {
    match cause(rt) {
        Cause::Unwritten { elements, .. } => elements,
        other => panic!("{other}"),
    }
}

#[test]
fn an_element_that_a_kernel_leaves_out_is_named() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = checked(threads);
        let u = rt.buffer::<f32, 2>([40, 10]).named("u");
        let (task, line) = (rt.task("holes"), format!("({}:{})", file!(), line!()));
        task.over([40, 10])
            .chunks(8)
            .write(&u, one_to_one())
            .kernel(|tile, (u,)| {
                for y in tile.rows() {
                    u.row_mut(y)
                        .iter_mut()
                        .enumerate()
                        .filter(|(x, _)| (y, *x) != (17, 3))
                        .for_each(|(_, e)| *e = 0.0);
                }
            })
            .unwrap();
        assert_eq!(
            rt.wait().unwrap_err().to_string(),
            format!(
                "task \"holes\" {line} failed: it left [17..18, 3..4] of buffer \"u\" unwritten in chunk [15..20, 0..10], \
                 but declared to write [15..20, 0..10]: write every element, or declare `update`"
            )
        );
        assert!(rt.fence(&u).unwrap().wait().is_err(), "what such a task has written is poisoned");
    }
}

#[test]
fn a_host_task_with_a_parallel_loop_is_checked() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = checked(threads);
        let u = rt.buffer::<f64, 1>([1000]);
        for forgotten in [0, 999, 1000] {
            rt.task("host")
                .once()
                .write(&u, all())
                .host(move |(u,)| {
                    let u = u.as_mut_slice().unwrap();
                    u.par_mut().enumerate().for_each(|(i, e)| {
                        if i != forgotten {
                            *e = f64::NAN;
                        }
                    });
                })
                .unwrap();
            match forgotten {
                1000 => rt.wait().unwrap(),
                i => assert_eq!(unwritten(&rt), format!("[{i}..{}]", i + 1)),
            }
        }
    }
}

#[test]
fn lines_below_each_other_are_one_box_and_long_reports_are_short() {
    let _deadline = deadline();
    let rt = checked(2);
    let u = rt.buffer::<u64, 3>([4, 50, 6]);
    let leave_out = |left: fn([usize; 3]) -> bool| {
        rt.task("fill")
            .over([4, 50, 6])
            .chunks(1)
            .write(&u, one_to_one())
            .kernel(move |tile, (u,)| {
                tile.points().filter(|p| !left(*p)).for_each(|p| u.set(p, 0));
            })
            .unwrap();
        unwritten(&rt)
    };
    assert_eq!(leave_out(|_| true), "[0..4, 0..50, 0..6]");
    assert_eq!(leave_out(|[_, _, x]| x == 5), "[0..4, 0..50, 5..6]");
    assert_eq!(leave_out(|[z, y, _]| (z, y) == (3, 7)), "[3..4, 7..8, 0..6]");
    assert!(leave_out(|[_, y, _]| y % 2 == 0).ends_with(" and 576 more elements"));
}

#[test]
fn a_value_that_was_computed_from_an_unwritten_element_is_found() {
    let _deadline = deadline();
    let rt = checked(2);
    let (a, b, c) = (rt.buffer::<f64, 1>([9]), rt.buffer::<f32, 1>([9]), rt.buffer::<i64, 0>([]).named("c"));
    rt.task("f64")
        .over([9])
        .chunks(1)
        .write(&a, all())
        .kernel(|_, (a,)| {
            let a = a.as_mut_slice().unwrap();
            a.fill(1.0);
        })
        .unwrap();
    rt.wait().unwrap();
    rt.task("f64")
        .once()
        .write(&a, all())
        .host(|(a,)| a.run_mut([0]).iter_mut().for_each(|e| *e += 1.0))
        .unwrap();
    assert!(matches!(cause(&rt), Cause::ReadBeforeWrite { elements, .. } if elements == "[0..9]"));
    rt.task("f32")
        .once()
        .write(&b, all())
        .host(|(b,)| {
            let b = b.as_mut_slice().unwrap();
            b[0] = 1.0;
            (0..8).for_each(|i| b[i + 1] = 0.5 * (b[i] - if i == 5 { b[7] } else { 0.0 }));
        })
        .unwrap();
    assert!(matches!(cause(&rt), Cause::ReadBeforeWrite { elements, .. } if elements == "[6..9]"));
    rt.task("i64").once().write(&c, all()).host(|(c,)| c.run_mut([])[0] += 1).unwrap();
    let error = cause(&rt).to_string();
    assert_eq!(
        error,
        "it computed [] of buffer \"c\" from elements that it had not written yet, but declared to write []: declare `update`"
    );
}

/// A task that writes all elements but those from 40 to 59 of 100, and the report.
fn twenty_of_a_hundred<T: anabranch::Element>(value: T) -> Option<String> {
    let rt = checked(2);
    let u = rt.buffer::<T, 1>([100]);
    rt.task("fill")
        .once()
        .write(&u, all())
        .host(move |(u,)| {
            u.run_mut([0])[..40].fill(value);
            u.run_mut([60]).fill(value);
        })
        .unwrap();
    rt.wait().err().map(|error| match error {
        Error::Failed(failures) => match &failures.iter().next().unwrap().cause {
            Cause::Unwritten { elements, .. } => elements.clone(),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    })
}

#[test]
fn elements_of_all_sizes_are_checked() {
    let _deadline = deadline();
    let found = Some("[40..60]".to_string());
    assert_eq!(twenty_of_a_hundred(1_u8), found);
    assert_eq!(twenty_of_a_hundred(u16::MAX), found);
    assert_eq!(twenty_of_a_hundred([1_u8, 2, 3]), found);
    assert_eq!(twenty_of_a_hundred(-1_i32), found);
    assert_eq!(twenty_of_a_hundred(f32::NAN), found);
    assert_eq!(twenty_of_a_hundred([1.0_f32; 3]), found);
    assert_eq!(twenty_of_a_hundred(0_usize), found);
    assert_eq!(twenty_of_a_hundred(u128::MAX), found);
    assert_eq!(twenty_of_a_hundred([9_u8; 13]), found);
    assert_eq!(twenty_of_a_hundred([f64::NAN; 20]), found);
    // Not every byte is a value of these types.
    assert_eq!(twenty_of_a_hundred(true), None);
    assert_eq!(twenty_of_a_hundred('x'), None);
}

#[test]
fn one_component_that_was_forgotten_is_found() {
    let _deadline = deadline();
    let rt = checked(2);
    let u = rt.buffer::<[f64; 3], 1>([10]);
    rt.task("fill")
        .once()
        .write(&u, all())
        .host(|(u,)| {
            for (i, [x, y, z]) in u.run_mut([0]).iter_mut().enumerate() {
                (*x, *y) = (1.0, 2.0);
                if i != 4 {
                    *z = 3.0;
                }
            }
        })
        .unwrap();
    assert_eq!(unwritten(&rt), "[4..5]");
}

/// A program that writes all values of small types, or random ones, is never refused.
#[test]
fn values_that_look_like_a_pattern_are_no_failure() {
    let _deadline = deadline();
    let rt = checked(2);
    let bytes = rt.buffer::<u8, 1>([100_000]);
    let (words, ints) = (rt.buffer::<u16, 1>([100_000]), rt.buffer::<u32, 1>([100_000]));
    let hash = |i: usize| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    for round in 0..10 {
        rt.task("write")
            .over([100_000])
            .write(&bytes, one_to_one())
            .write(&words, one_to_one())
            .write(&ints, one_to_one())
            .kernel(move |_, (bytes, words, ints)| {
                bytes.fill_with(|[i]| hash(i + round) as u8);
                words.fill_with(|[i]| hash(i + round) as u16);
                ints.fill_with(|[i]| hash(i + round) as u32);
            })
            .unwrap();
    }
    rt.wait().unwrap();
}

#[test]
fn updates_and_reductions_may_leave_elements_as_they_are() {
    let _deadline = deadline();
    for threads in THREADS {
        let rt = checked(threads);
        let u = rt.buffer_from(&[1.0; 10]).unwrap();
        let sums = rt.buffer::<f64, 1>([4]);
        rt.task("update")
            .over([10])
            .update(&u, one_to_one())
            .reduce(&sums, sum())
            .kernel(|tile, (u, sums)| {
                for [i] in tile.points().filter(|[i]| i % 2 == 0) {
                    u[[i]] += 1.0;
                    sums.combine([0], u[[i]]);
                }
            })
            .unwrap();
        let (u, sums) = rt.fence((&u, &sums)).unwrap().wait().unwrap();
        assert_eq!((u.as_slice()[..3].to_vec(), sums.as_slice()[0]), (vec![2.0, 1.0, 2.0], 10.0));
    }
}

#[test]
fn a_task_that_fails_is_not_checked() {
    let _deadline = deadline();
    let rt = checked(2);
    let u = rt.buffer::<f64, 1>([10]);
    rt.task("returns").once().write(&u, all()).host(|_| Err("no luck")).unwrap();
    assert_eq!(cause(&rt).to_string(), "no luck");
    rt.task("panics").over([10]).write(&u, one_to_one()).kernel(|_, _| panic!("on purpose")).unwrap();
    assert!(cause(&rt).to_string().contains("on purpose"));
}

#[test]
fn the_check_can_be_turned_off() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).checked(false).build().unwrap();
    let u = rt.buffer::<f64, 1>([10]);
    rt.task("nothing").once().write(&u, all()).host(|_| ()).unwrap();
    rt.wait().unwrap();
}
