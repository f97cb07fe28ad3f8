//! Loops over arrays give the same results as `ndarray` itself, for every layout.

mod common;

use anabranch_par::{LoopError, prelude::*};
use common::THREADS;
use ndarray::{
    ArcArray, Array, Array2, Array3, ArrayBase, ArrayD, ArrayViewMut, Axis, IxDyn, RawData, Slice, arr0,
    array, s,
};
use proptest::prelude::*;
use std::collections::HashSet;

fn pools() -> [ThreadPool; THREADS.len()] {
    THREADS.map(|threads| ThreadPool::new(threads).unwrap())
}

/// A change to the layout of an array.
#[derive(Clone, Debug)]
enum Change {
    Slice { axis: usize, start: usize, step: isize },
    Swap(usize, usize),
    Reverse,
    Index { axis: usize },
    Insert { axis: usize },
}

impl Change {
    fn apply<S: RawData<Elem = u32>>(&self, mut view: ArrayBase<S, IxDyn>) -> ArrayBase<S, IxDyn> {
        let axes = view.ndim();
        match *self {
            Self::Slice { axis, start, step } if axes > 0 => {
                let axis = Axis(axis % axes);
                let start = start.min(view.len_of(axis)) as isize;
                view.slice_axis_inplace(axis, Slice::new(start, None, step));
                view
            }
            Self::Swap(a, b) if axes > 0 => {
                view.swap_axes(a % axes, b % axes);
                view
            }
            Self::Reverse => view.reversed_axes(),
            Self::Index { axis } if axes > 0 && view.shape()[axis % axes] > 0 => {
                view.index_axis_move(Axis(axis % axes), 0)
            }
            Self::Insert { axis } if axes < 6 => view.insert_axis(Axis(axis % (axes + 1))),
            _ => view,
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let steps = prop_oneof![Just(-3_isize), Just(-2), Just(-1), Just(1), Just(2), Just(3)];
    prop_oneof![
        3 => (0..4_usize, 0..5_usize, steps).prop_map(|(axis, start, step)| Change::Slice { axis, start, step }),
        2 => (0..4_usize, 0..4_usize).prop_map(|(a, b)| Change::Swap(a, b)),
        1 => Just(Change::Reverse),
        1 => (0..4_usize).prop_map(|axis| Change::Index { axis }),
        1 => (0..5_usize).prop_map(|axis| Change::Insert { axis }),
    ]
}

fn apply<S: RawData<Elem = u32>>(changes: &[Change], view: ArrayBase<S, IxDyn>) -> ArrayBase<S, IxDyn> {
    changes.iter().fold(view, |view, change| change.apply(view))
}

/// Shapes of 0 to 4 axes, some of them empty.
fn numbered() -> impl Strategy<Value = ArrayD<u32>> {
    prop::collection::vec(prop_oneof![1 => Just(0_usize), 20 => 1..8_usize], 0..5).prop_map(|shape| {
        let len: usize = shape.iter().product();
        ArrayD::from_shape_vec(IxDyn(&shape), (0..len as u32).collect()).unwrap()
    })
}

proptest! {
    #[test]
    fn loops_visit_any_view_in_the_order_of_its_indices(
        array in numbered(),
        changes in prop::collection::vec(change(), 0..5),
        pool in 0..THREADS.len(),
        chunk in 1..20_usize,
    ) {
        let _deadline = testing::deadline();
        let pool = &ThreadPool::new(THREADS[pool]).unwrap();
        let view = apply(&changes, array.view());
        let expected: Vec<u32> = view.iter().copied().collect();
        prop_assert_eq!(&(&view).par().on(pool).chunk_size(chunk).map(|&x| x).collect(), &expected);
        let result = (&view).par().on(pool).map(|&x| x + 1).collect_array();
        prop_assert_eq!(&result, &view.map(|x| x + 1));
        // Reductions take the items in blocks.
        let sum: u32 = expected.iter().sum();
        prop_assert_eq!((&view).par().on(pool).sum(), sum);
        for axis in 0..view.ndim() {
            let parts = view.par_axis(Axis(axis)).on(pool).map(|part| part.to_owned()).collect();
            let expected: Vec<_> = view.axis_iter(Axis(axis)).map(|part| part.to_owned()).collect();
            prop_assert_eq!(parts, expected);
        }
    }

    #[test]
    fn a_mutable_loop_changes_exactly_the_elements_of_its_view(
        mut array in numbered(),
        changes in prop::collection::vec(change(), 0..5),
        pool in 0..THREADS.len(),
        chunk in 1..20_usize,
    ) {
        let _deadline = testing::deadline();
        let pool = &ThreadPool::new(THREADS[pool]).unwrap();
        let mut expected = array.clone();
        apply(&changes, expected.view_mut()).iter_mut().enumerate().for_each(|(i, x)| *x = 1000 + i as u32);
        apply(&changes, array.view_mut()).par_mut().on(pool).chunk_size(chunk).enumerate()
            .for_each(|(i, x)| *x = 1000 + i as u32);
        prop_assert_eq!(&array, &expected);
        for axis in 0..apply(&changes, array.view_mut()).ndim() {
            let number = |(i, mut part): (usize, ArrayViewMut<u32, _>)| part.map_inplace(|x| *x += 7 * i as u32);
            apply(&changes, expected.view_mut()).axis_iter_mut(Axis(axis)).enumerate().for_each(number);
            apply(&changes, array.view_mut()).par_axis_mut(Axis(axis)).on(pool).enumerate().for_each(number);
            prop_assert_eq!(&array, &expected);
        }
    }

    #[test]
    fn each_result_has_the_index_of_its_item(
        array in numbered(),
        left in prop::collection::vec(change(), 0..4),
        right in prop::collection::vec(change(), 0..4),
    ) {
        let _deadline = testing::deadline();
        let left = apply(&left, array.view());
        let right = apply(&right, array.view());
        match (&left).par().zip(&right) {
            Ok(both) => {
                prop_assert_eq!(left.shape(), right.shape());
                prop_assert_eq!(both.map(|(a, b)| a * 1000 + b).collect_array(), &left * 1000 + right);
            }
            Err(error) => {
                prop_assert_ne!(left.shape(), right.shape());
                prop_assert_eq!(error.shapes(), Some((left.shape(), right.shape())));
            }
        }
    }
}

#[test]
fn every_kind_of_array_is_a_loop() {
    let _deadline = testing::deadline();
    for pool in &pools() {
        let mut owned = Array2::from_shape_fn((5, 7), |(i, j)| 10 * i + j);
        let total = owned.sum();
        assert_eq!(owned.par().on(pool).sum(), total);
        assert_eq!((&owned).par().on(pool).sum(), total);
        assert_eq!(owned.view().par().on(pool).sum(), total);
        assert_eq!((*owned).par().on(pool).sum(), total);
        (&mut owned).par().on(pool).for_each(|x| *x += 1);
        owned.view_mut().par().on(pool).for_each(|x| *x += 1);
        owned.view_mut().par_mut().on(pool).for_each(|x| *x += 1);
        owned.par_mut().on(pool).for_each(|x| *x -= 3);
        assert_eq!(owned.sum(), total);
        // An array that shares its elements gets a copy of its own before the loop changes them.
        let mut shared: ArcArray<_, _> = owned.clone().into();
        let other = shared.clone();
        shared.par_mut().on(pool).for_each(|x| *x = 0);
        assert_eq!((shared.sum(), other), (0, owned.to_shared()));
        assert_eq!(arr0(5).par().on(pool).map(|x| x + 1).collect_array(), arr0(6));
        let empty = Array3::<f64>::zeros((3, 0, 2));
        assert_eq!(empty.par().on(pool).map(|x| x + 1.0).collect_array().shape(), [3, 0, 2]);
        assert_eq!(empty.par_axis(Axis(0)).on(pool).map(|part| part.len()).collect(), [0; 3]);
        // A broadcast view, whose places share elements.
        let broadcast = owned.row(1);
        let broadcast = broadcast.broadcast((9, 7)).unwrap();
        assert_eq!(broadcast.par().on(pool).sum(), broadcast.sum());
    }
}

#[test]
fn elements_may_have_no_size_or_a_destructor() {
    let _deadline = testing::deadline();
    for pool in &pools() {
        let units = Array::from_elem((3, 4), ());
        assert_eq!(units.t().par().on(pool).map(|()| 1).sum(), 12);
        let words = Array::from_shape_fn((3, 4), |(i, j)| format!("{i}{j}"));
        let longer = words.slice(s![..;-1, ..]).par().on(pool).map(|word| format!("{word}!")).collect_array();
        assert_eq!(longer[[0, 3]], "23!");
    }
}

#[test]
fn boxes_and_sequences_have_a_shape() {
    let _deadline = testing::deadline();
    for pool in &pools() {
        let square = (0..4, 0..6).par().on(pool).map(|(i, j)| i * j).collect_array();
        assert_eq!(square, Array::from_shape_fn((4, 6), |(i, j)| i * j));
        let cube = (0..2, 1..4, 2..7).par().on(pool).map(|(i, j, k)| (i, j, k)).collect_array();
        assert_eq!(cube, Array::from_shape_fn((2, 3, 5), |(i, j, k)| (i, j + 1, k + 2)));
        assert_eq!((0..3).par().on(pool).map(|i| i * i).collect_array(), array![0, 1, 4]);
        assert_eq!([1, 2].par().on(pool).map(|x| x + 1).collect_array(), array![2, 3]);
        assert_eq!([1, 2, 3].par_chunks(2).on(pool).map(|part| part.len()).collect_array(), array![2, 1]);
        let numbered = square.t().par().on(pool).enumerate().map(|(i, _)| i).collect_array();
        assert_eq!(numbered, Array::from_shape_vec((6, 4), (0..24).collect()).unwrap());
    }
}

#[test]
fn zipped_shapes_must_agree_if_both_have_one() {
    let _deadline = testing::deadline();
    let (a, b) = (Array2::<f64>::zeros((2, 3)), Array2::<f64>::zeros((3, 2)));
    let error = a.par().zip(&b).unwrap_err();
    assert_eq!((error.left, error.right, error.shapes()), (6, 6, Some((&[2, 3][..], &[3, 2][..]))));
    assert!(
        error.to_string().starts_with("a loop of shape [2, 3] cannot be zipped with one of shape [3, 2]")
    );
    assert!(a.par().zip(b.t()).is_ok());
    assert!((0..2, 0..3).par().zip(&a).unwrap().zip(&b).is_err());
    // A sequence can be zipped with an array of any shape.
    let kept = a.par().zip(&[1.0; 6]).unwrap().map(|(a, b)| a + b).collect_array();
    assert_eq!(kept, Array2::ones((2, 3)));
    let error = a.par().zip(&[1.0; 5]).unwrap_err();
    assert_eq!((error.left, error.right, error.shapes()), (6, 5, None));
    // But a sequence does not make arrays of different shapes agree.
    assert!([0; 6].par().zip(&a).unwrap().zip(&b).is_err());
    assert_eq!([0; 6].par().zip(&a).unwrap().map(|(i, _)| i).collect_array().shape(), [6]);
}

/// Rows may end in the middle of a block of lanes.
#[test]
fn the_sum_of_a_view_has_the_bits_of_the_sum_of_its_elements_in_a_vector() {
    let _deadline = testing::deadline();
    let field =
        Array2::from_shape_fn((70, 90), |(i, j)| ((90 * i + j) as f32).sin() * 10_f32.powi(i as i32 % 9));
    for pool in &pools() {
        for view in [field.view(), field.t(), field.slice(s![1..;2, 3..86]), field.slice(s![.., ..;-13])] {
            let elements: Vec<f32> = view.iter().copied().collect();
            for size in [5, 16, 50, 6300] {
                let sum = elements.par().on(pool).chunk_size(size).sum();
                assert_eq!(view.par().on(pool).chunk_size(size).sum().to_bits(), sum.to_bits());
                let both = view.par().on(pool).chunk_size(size).zip(&elements).unwrap();
                let squares = both.map(|(a, b)| a * b).sum();
                let expected = elements.par().on(pool).chunk_size(size).map(|x| x * x).sum();
                assert_eq!(squares.to_bits(), expected.to_bits());
            }
        }
        let expected = (0..12 * 7 * 5).par().on(pool).map(|i| (i as f32).sin()).sum();
        let boxed =
            (0..12, 0..7, 0..5).par().on(pool).map(|(i, j, k)| ((35 * i + 5 * j + k) as f32).sin()).sum();
        assert_eq!(boxed.to_bits(), expected.to_bits());
    }
}

#[test]
fn the_first_failure_is_returned() {
    let _deadline = testing::deadline();
    for pool in &pools() {
        let field = Array2::from_shape_fn((20, 30), |(i, j)| 30 * i + j);
        let check = |&x: &usize| if x % 30 == 29 { Err(x) } else { Ok(x) };
        let result = field.t().par().on(pool).map(check).try_collect_array();
        assert!(matches!(result, Err(LoopError::Item { index: 580, error: 29 })));
        let result = field.par().on(pool).map(|&x| Ok::<_, ()>(x)).try_collect_array();
        assert_eq!(result.unwrap(), field);
    }
}

#[test]
fn sub_views_are_disjoint() {
    let _deadline = testing::deadline();
    for pool in &pools() {
        let mut field = Array3::<usize>::zeros((6, 5, 4));
        for axis in 0..3 {
            let starts = field.par_axis_mut(Axis(axis)).on(pool).map(|mut part| {
                part.fill(axis);
                part.as_mut_ptr() as usize
            });
            let starts = starts.collect();
            assert_eq!(starts.iter().collect::<HashSet<_>>().len(), field.len_of(Axis(axis)));
            assert!(field.iter().all(|&x| x == axis));
        }
    }
}

#[test]
#[should_panic(expected = "axis 2 of an array that has 2")]
fn an_axis_out_of_range_is_named() {
    let _deadline = testing::deadline();
    let _ = Array2::<f64>::zeros((2, 3)).par_axis(Axis(2));
}
