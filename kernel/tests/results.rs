//! Results of all kinds reach their operands.

mod array;

use anabranch_kernel::{Instructions, Memory, Operand, Program, Tape};
use array::{Array, row_mut};
use testing::deadline;

#[test]
fn each_kind_of_result_goes_to_its_operand() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, sum, root, place, literal) = (
        tape.input::<f32, 1>(),
        tape.output::<f32, 1>(),
        tape.output::<f32, 1>(),
        tape.output::<u32, 1>(),
        tape.output::<f32, 1>(),
    );
    let (element, copied) = (tape.output::<f32, 1>(), tape.output::<f32, 1>());
    sum.set(u.here() * 2.0 + 1.0);
    root.set(u.here().sqrt());
    place.set(place.index(0));
    literal.set(4.0_f32);
    element.set(u.here());
    // Two operands with one result.
    copied.set(u.here().sqrt());
    let recording = tape.finish().expect("the kernel is right");
    let (len, longest) = (2500, usize::MAX);
    let input: Vec<f32> = (0..len).map(|at| at as f32).collect();
    let sets = Instructions::ALL.into_iter().filter(|set| set.is_available());
    // Slices of all points, and shorter ones than blocks are.
    for (instructions, longest) in sets.flat_map(|set| [(set, longest), (set, 700)]) {
        let mut floats = [(); 5].map(|()| vec![-1.0_f32; len]);
        let mut places = vec![0_u32; len];
        let [mut a, mut b, mut c, mut d, mut e] =
            floats.each_mut().map(|floats| row_mut(&mut floats[..], longest));
        let (taken, places_mut) =
            (&mut Array::new(&input[..], [1, 1, len], longest), &mut row_mut(&mut places, longest));
        let operands: &mut [&mut dyn Operand] =
            &mut [taken, &mut a, &mut b, places_mut, &mut c, &mut d, &mut e];
        let points = [[0; 3], [1, 1, len]];
        let program = Program::new(&recording);
        program.run(recording.parameters(), points, operands, &mut Memory::default(), instructions);
        for (x, u) in input.iter().enumerate() {
            let results = [u * 2.0 + 1.0, u.sqrt(), 4.0, *u, u.sqrt()];
            let set = floats.each_ref().map(|floats| floats[x]);
            assert_eq!(set, results, "{x} of slices of {longest}, {instructions:?}");
            assert_eq!(places[x], x as u32);
        }
    }
}

#[test]
fn what_is_the_same_for_all_points_may_be_a_result_and_an_input() {
    let _deadline = deadline();
    let tape = Tape::new(1);
    let (u, v, w) = (tape.input::<f32, 1>(), tape.output::<f32, 1>(), tape.output::<f32, 1>());
    let first = u.get([0.into()]);
    v.set(first);
    w.set(u.here() * first + 1.0);
    let recording = tape.finish().expect("the kernel is right");
    let points = [[0; 3], [1, 1, 3]];
    for instructions in Instructions::ALL.into_iter().filter(|set| set.is_available()) {
        let (read, mut v, mut w) = (vec![5.0_f32, 2.0, 3.0], vec![0.0_f32; 3], vec![0.0_f32; 3]);
        let (v_mut, w_mut) = (&mut row_mut(&mut v, usize::MAX), &mut row_mut(&mut w, usize::MAX));
        let operands: &mut [&mut dyn Operand] =
            &mut [&mut Array::new(&read[..], [1, 1, 3], usize::MAX), v_mut, w_mut];
        let program = Program::new(&recording);
        program.run(recording.parameters(), points, operands, &mut Memory::default(), instructions);
        assert_eq!((v, w), (vec![5.0; 3], vec![26.0, 11.0, 16.0]));
    }
}
