//! What is on a tape, which recordings are one program, and what is wrong with a recording.

use anabranch_kernel::{
    AccessAlong, Beyond, Input, Kind, Operator, Output, Program, RecordError, Recording, Scalar, Tape,
};
use std::{borrow::Cow, thread};
use testing::deadline;

fn scaled(factor: f32) -> Recording {
    let tape = Tape::new(2);
    let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
    v.set(factor * u.at([0, 1]) - 1.0);
    tape.finish().expect("the kernel is right")
}

#[test]
fn another_literal_is_no_other_program() {
    let _deadline = deadline();
    let (one, other) = (scaled(2.0), scaled(3.0));
    assert_eq!(one.program_hash(), other.program_hash());
    assert!(Program::new(&one).is_of(&other));
    assert_eq!(one.parameters().len(), 2);
}

#[test]
fn the_number_of_the_replay_is_a_literal() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<u32, 1>(), tape.output::<u32, 1>());
    v.set(u.here() * 7 + u.replay() * v.replay());
    let recording = tape.finish().expect("the kernel is right");
    let replay = recording.replay_parameter().expect("the kernel asks for it");
    assert_eq!(recording.parameters().len(), 2);
    let numbers = [(0, 0), (3, 3), ((1 << 32) + 5, 5)];
    for (number, expected) in numbers {
        let in_replay = recording.precise().in_replay(number).into_owned();
        assert!(matches!(in_replay.parameters()[replay], Scalar::U32(number) if number == expected));
        assert!(matches!(in_replay.parameters()[1 - replay], Scalar::U32(7)));
        assert_eq!(in_replay.program_hash(), recording.program_hash());
    }
    assert_eq!(scaled(2.0).replay_parameter(), None, "the next recording on this thread does not ask");
    assert!(matches!(scaled(2.0).in_replay(3), Cow::Borrowed(_)));
}

#[test]
fn a_recording_has_nothing_of_those_before_it_on_its_thread() {
    let _deadline = deadline();
    let first = thread::spawn(|| format!("{:?}", scaled(2.0))).join().expect("the kernel is right");
    let folded = || {
        let tape = Tape::new(1);
        let (u, v) = (tape.input::<f64, 1>(), tape.output::<f64, 1>());
        let total = tape.accumulator::<f64>(Operator::Sum, true);
        v.set(v.fold(0..3, u.here(), |sum, k| sum * u.get([k])));
        total.combine(u.here());
        tape.finish()
    };
    let long = || {
        let tape = Tape::new(1);
        let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
        v.set((0..1000).fold(u.here(), |sum, _| sum + 1.0));
        tape.finish()
    };
    let wrong = |sets: usize| {
        let tape = Tape::new(2);
        let v = tape.output::<f32, 2>();
        (0..sets).for_each(|_| v.set(3.0));
        tape.finish()
    };
    let mut kept = Vec::new();
    for round in 0..6 {
        match round {
            0 => drop(folded().expect("the kernel is right")),
            1 => kept.push(folded().expect("the kernel is right")),
            2 => drop(long().expect("the kernel is right")),
            3 => assert!(matches!(wrong(0), Err(RecordError::NeverSet { operand: 0 }))),
            4 => assert!(matches!(wrong(2), Err(RecordError::SetTwice { operand: 0, .. }))),
            _ => drop(Tape::new(3).input::<i32, 3>()),
        }
        assert_eq!(format!("{:?}", scaled(2.0)), first, "after round {round}");
    }
    assert_eq!(format!("{:?}", kept[0]), format!("{:?}", folded().expect("the kernel is right")));
}

#[test]
fn another_operation_offset_or_type_is_another_program() {
    let _deadline = deadline();
    let program = Program::new(&scaled(2.0));
    let other = |record: &dyn Fn(&Tape)| {
        let tape = Tape::new(2);
        record(&tape);
        tape.finish().expect("the kernel is right")
    };
    let offset = other(&|tape| {
        let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
        v.set(2.0 * u.at([0, 2]) - 1.0);
    });
    let edge = other(&|tape| {
        let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
        v.set(2.0 * u.at_clamped([0, 1]) - 1.0);
    });
    let operation = other(&|tape| {
        let (u, v) = (tape.input::<f32, 2>(), tape.output::<f32, 2>());
        v.set(2.0 * u.at([0, 1]) + 1.0);
    });
    let kind = other(&|tape| {
        let (u, v) = (tape.input::<f64, 2>(), tape.output::<f64, 2>());
        v.set(2.0 * u.at([0, 1]) - 1.0);
    });
    for recording in [offset, edge, operation, kind] {
        assert!(!program.is_of(&recording));
        assert_ne!(scaled(2.0).program_hash(), recording.program_hash());
    }
}

#[test]
fn what_a_kernel_computes_twice_is_on_the_tape_once_and_what_no_result_needs_is_not_run() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f64, 1>(), tape.output::<f64, 1>());
    let sum = |shift: isize| u.at([shift]) + u.at([shift + 1]);
    let _not_needed = (u.at([5]) * u.at([6])).sqrt();
    v.set(sum(0) * sum(0) + sum(0));
    let recording = tape.finish().expect("the kernel is right");
    // Loads of 0, 1, 5 and 6, a product, a root, a sum, a product and a sum.
    assert_eq!(recording.len(), 9);
    // The sum of loads, which is needed three times, and a chain of the product and the last sum, which goes
    // to its operand.
    assert_eq!(Program::new(&recording).size(), (2, 1));
    assert_eq!(recording.accesses().count(), 4);
}

#[test]
fn a_long_chain_needs_two_registers() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<i64, 1>(), tape.output::<i64, 1>());
    let mut value = u.here();
    for _ in 0..1000 {
        value = value * value + 1;
    }
    v.set(value);
    assert_eq!(Program::new(&tape.finish().expect("the kernel is right")).size(), (2000, 2));
}

#[test]
fn sums_and_products_of_floats_are_chains_where_only_the_next_one_needs_a_result() {
    let _deadline = deadline();
    let size = |kernel: &dyn Fn(Input<'_, f32, 1>, Output<'_, f32, 1>)| {
        let tape = Tape::new(1);
        kernel(tape.input(), tape.output());
        Program::new(&tape.finish().expect("the kernel is right")).size()
    };
    // The last link sets the operand: no register has the result.
    assert_eq!(size(&|u, v| v.set(2.0 * (u.at([0]) - u.at([1]) + u.at([2]) - 1.0))), (1, 0));
    // The first product needs a register while the second one is computed.
    assert_eq!(size(&|u, v| v.set(u.at([0]) * u.at([1]) - u.at([2]) * u.at([3]))), (2, 1));
    // A product of an element and a number is a part of the link that adds or subtracts it.
    assert_eq!(size(&|u, v| v.set(u.at([0]) * u.at([1]) - u.at([2]) * 2.0)), (1, 0));
    assert_eq!(size(&|u, v| v.set(3.0 * u.at([0]) + u.at([1]) * 2.0)), (1, 0));
    // It is a chain where something is subtracted from it.
    assert_eq!(size(&|u, v| v.set(3.0 * u.at([0]) - u.at([1]) * u.at([2]))), (2, 1));
    // The root is no link.
    assert_eq!(size(&|u, v| v.set((u.at([0]) * u.at([1]) + 1.0).sqrt() + 2.0)), (3, 2));
    // A square uses its factor twice.
    assert_eq!(size(&|u, v| v.set((u.at([0]) + 1.0).powi(2))), (2, 1));
}

#[test]
fn two_loads_and_a_scaled_one_are_one_link() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    let at = |offset| u.at([offset]);
    v.set(at(0) + at(1) + at(2) + at(3) - 2.0 * at(4) + at(5) * u.get([9.into()]));
    let program = format!("{:?}", Program::new(&tape.finish().expect("the kernel is right")));
    let links = ["TakeLoads(", "AddLoads(", "SubScaled(", "AddScaled(", "Set(0)]"];
    let places =
        links.map(|link| program.find(link).unwrap_or_else(|| panic!("there is no {link}: {program}")));
    assert!(places.is_sorted(), "{program}");
}

#[test]
fn another_operand_set_to_the_inside_of_a_chain_ends_the_chain() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v, w) = (tape.input::<f32, 1>(), tape.output::<f32, 1>(), tape.output::<f32, 1>());
    let sum = u.here() + 1.0;
    v.set(sum);
    w.set(sum * 2.0);
    assert_eq!(Program::new(&tape.finish().expect("the kernel is right")).size(), (2, 1));
}

#[test]
fn accesses_say_what_they_take_and_where_the_closure_asks() {
    let _deadline = deadline();
    let tape = Tape::new(2);
    let (u, v, w) = (tape.input::<f32, 2>(), tape.input_output::<u32, 2>(), tape.output::<f32, 2>());
    w.set(u.at([-1, 2]) + u.at_clamped([0, 1]));
    let line = line!() - 1;
    v.set(v.here() + u.at_or([1, 0], 0.5).convert::<u32>() + u.at_periodic([2, 0]).convert());
    let recording = tape.finish().expect("the kernel is right");
    let accesses: Vec<_> = recording.accesses().map(|a| (a.operand, a.along, a.beyond)).collect();
    let at = |[row, col]: [isize; 2]| {
        let along = |point, from| AccessAlong { point, numbers: from..from + 1 };
        [along(None, 0), along(Some(1), row), along(Some(2), col)]
    };
    let expected = [
        (0, at([-1, 2]), Beyond::Refused),
        (0, at([0, 1]), Beyond::Nearest),
        (1, at([0, 0]), Beyond::Refused),
        (0, at([1, 0]), Beyond::Value),
        (0, at([2, 0]), Beyond::OtherSide),
    ];
    assert_eq!(accesses, expected);
    let first = recording.accesses().next().expect("there are five").at;
    assert_eq!((first.file(), first.line()), (file!(), line));
    assert_eq!(recording.operands().collect::<Vec<_>>(), [Kind::F32, Kind::U32, Kind::F32]);
}

#[test]
fn mistakes_name_the_operand_and_the_lines() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (_u, _v) = (tape.input::<f32, 1>(), tape.output::<f32, 1>());
    let never = tape.finish().expect_err("it sets nothing");
    assert_eq!(never, RecordError::NeverSet { operand: 1 });

    let tape = Tape::new(1);
    let v = tape.output::<f32, 1>();
    v.set(1.0);
    v.set(2.0);
    let twice = tape.finish().expect_err("it sets the element twice").to_string();
    let (first, second) = (line!() - 3, line!() - 2);
    assert!(twice.contains(&format!("{}:{first}:", file!())), "{twice}");
    assert!(twice.contains(&format!("{}:{second}:", file!())), "{twice}");

    let tape = Tape::new(2);
    let (u, v) = (tape.input::<u32, 2>(), tape.output::<u32, 2>());
    v.set(u.at_clamped([isize::MAX, 0]));
    let line = line!() - 1;
    let large = tape.finish().expect_err("no buffer is so large").to_string();
    assert!(large.starts_with(&format!("{}:{line}:", file!())) && large.contains("is too large"), "{large}");

    let tape = Tape::new(2);
    let v = tape.output::<u32, 2>();
    v.set(v.index(2));
    let line = line!() - 1;
    let dimension = tape.finish().expect_err("there is no such dimension").to_string();
    assert!(dimension.starts_with(&format!("{}:{line}:", file!())), "{dimension}");
    assert!(dimension.ends_with("the index space has 2 dimensions, and no dimension 2"), "{dimension}");
}

#[test]
fn a_value_of_another_recording_is_refused() {
    let _deadline = deadline();
    let (one, other) = (Tape::new(1), Tape::new(1));
    let (u, v, w) = (one.input::<f32, 1>(), other.input::<f32, 1>(), other.output::<f32, 1>());
    let uses: [&dyn Fn(); 5] = [
        &|| drop(format!("{:?}", u.here() + v.here())),
        &|| drop(format!("{:?}", u.here().lt(v.here()))),
        &|| drop(format!("{:?}", u.here().lt(0.0) & v.here().lt(0.0))),
        &|| drop(format!("{:?}", v.here().lt(0.0).select(u.here(), 1.0))),
        &|| w.set(u.here()),
    ];
    for (i, mixed) in uses.into_iter().enumerate() {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(mixed));
        let message =
            *panic.expect_err(&format!("use {i} mixes two recordings")).downcast::<&str>().expect("a text");
        assert_eq!(message, "a value of one recording is used in another one");
    }
}
