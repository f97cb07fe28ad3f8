//! Copies in all directions, and nothing that nobody needs.

mod common;

use anabranch::{
    Runtime,
    device::{Device, Simulated},
    ndarray,
    prelude::*,
};
use anabranch_array::Arrays;
use common::{devices, elements, host, hosts, places};
use std::sync::Arc;
use testing::deadline;

#[test]
fn elements_go_from_every_place_to_every_place() {
    let _deadline = deadline();
    for len in [0, 1, 7, 1000, 40_001] {
        let values = elements::<i32>(3, len);
        // Of one runtime: arrays of different runtimes do not meet.
        let of_one_runtime = || [&hosts()[1]].into_iter().chain(devices());
        for from in of_one_runtime() {
            for to in of_one_runtime() {
                let a = from.from_slice([len], &values).unwrap();
                let plus_one = a.map(|x| x + 1).unwrap();
                let b = plus_one.copy_to(to).unwrap();
                let c = to.zeros([len]).unwrap();
                c.copy_from(&b.map(|x| x - 1).unwrap()).unwrap();
                assert_eq!(c.to_vec().unwrap(), values, "{from:?} to {to:?}");
                assert_eq!(c.on_host().to_vec().unwrap(), values, "{from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn a_slice_is_copied_before_the_call_returns() {
    let _deadline = deadline();
    for arrays in places() {
        let a = arrays.zeros([2, 3]).unwrap();
        let mut values = [1, 2, 3, 4, 5, 6];
        a.copy_from_slice(&values).unwrap();
        values.fill(0);
        assert_eq!(a.to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
        a.prefetch().unwrap();
        assert_eq!(a.get([1, 0]).unwrap(), 4);
    }
}

#[test]
fn buffers_become_arrays() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).build().unwrap();
    let arrays = Arrays::new(&rt);
    let line = rt.buffer_from(&[1, 2, 3]).unwrap();
    let shared = arrays.from_buffer(&line).unwrap();
    shared.update(|x| x * 10).unwrap();
    assert_eq!(rt.fence(&line).unwrap().wait().unwrap().as_slice(), [10, 20, 30]);

    let matrix = ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let copied = arrays.from_buffer(&rt.buffer_from(&matrix).unwrap()).unwrap();
    assert_eq!((copied.shape(), copied.to_vec().unwrap()), ([3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let single = arrays.from_buffer(&rt.buffer_from(&ndarray::arr0(5_u32)).unwrap()).unwrap();
    assert_eq!(single.get([]).unwrap(), 5);

    // A task of the program uses the buffer of an array.
    let a = arrays.filled([4], 1_u32).unwrap();
    let task = arrays.group().task("count up").over([4]).update(a.buffer(), one_to_one());
    task.kernel(|tile, (a,)| tile.points().for_each(|[i]| a[[i]] += i as u32)).unwrap();
    assert_eq!(a.to_vec().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_device_gets_each_array_once() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::new());
    let device: Arc<dyn Device> = Arc::<Simulated>::clone(&simulated);
    let arrays = host(2).on(&device);
    let a = arrays.from_slice([1000], &[1.0_f32; 1000]).unwrap();
    for _ in 0..5 {
        a.update(|x| x + 1.0).unwrap();
    }
    let b = a.zip(&a, |x, y| x * y).unwrap();
    assert_eq!(b.get([999]).unwrap(), 36.0);
    let counts = simulated.counts();
    assert_eq!((counts.uploads, counts.downloads, counts.bytes_down), (1, 1, 4));
    let c = arrays.from_slice([10], &[1_u32; 10]).unwrap();
    c.prefetch().unwrap();
    arrays.wait().unwrap();
    assert_eq!(simulated.counts().uploads, 2);
}

#[test]
fn the_device_of_the_runtime_is_where_arrays_are() {
    let _deadline = deadline();
    let simulated = Arc::new(Simulated::new());
    let device: Arc<dyn Device> = Arc::<Simulated>::clone(&simulated);
    let rt = Runtime::builder().threads(2).device(&device).build().unwrap();
    let arrays = Arrays::new(&rt);
    assert!(Arc::ptr_eq(arrays.device().unwrap(), &device));
    let a = arrays.filled([100], 2_u32).unwrap().map(|x| x * 3).unwrap();
    assert_eq!((a.get([7]).unwrap(), simulated.counts().launches), (6, 2));
    assert!(Arrays::new(&rt).on_host().device().is_none());
}

#[test]
fn arrays_outlive_the_handle_of_their_runtime() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).build().unwrap();
    let a = Arrays::new(&rt).from_slice([3], &[1, 2, 3]).unwrap();
    drop(rt);
    assert_eq!(a.map(|x| x + 1).unwrap().to_vec().unwrap(), [2, 3, 4]);
}
