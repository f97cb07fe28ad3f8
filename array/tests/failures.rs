//! Operations on arrays that have no contents, because a task has failed, and results that are awaited.

mod common;

use anabranch::{Error, Runtime, operator, sum};
use anabranch_array::{Array, ArrayError, Arrays};
use common::{host, places};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use testing::deadline;

/// An array whose task panics.
fn failed(arrays: &Arrays) -> Array<i32, 2> {
    arrays.from_fn([3, 4], |[i, _]| if i == 2 { panic!("no such number") } else { 1 }).unwrap()
}

fn message<R>(result: Result<R, ArrayError>) -> String {
    match result {
        Err(ArrayError::Runtime(Error::Failed(failures))) => failures.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it should have failed"),
    }
}

#[test]
fn what_needs_a_failed_array_fails_with_the_cause() {
    let _deadline = deadline();
    for arrays in common::places() {
        let a = failed(arrays);
        let fine = arrays.filled([3, 4], 1).unwrap();
        let results = [
            message(a.to_vec()),
            message(a.map(|x| x + 1).unwrap().to_vec()),
            message(fine.zip(&a, |x, y| x + y).unwrap().to_vec()),
            message(a.reduce(sum()).unwrap().get([])),
            message(a.scan_axis(0, sum()).unwrap().to_vec()),
            message(a.transpose().unwrap().to_vec()),
            message(a.sort().unwrap().to_vec()),
            message(a.arg_min(0).unwrap().to_vec()),
            message(a.arg_max(1).unwrap().to_vec()),
            message(a.find_first(|x| x.gt(0)).unwrap().wait()),
            message(a.find_all(|x| x.gt(0)).unwrap().wait()),
            message(a.find_min().unwrap().wait()),
            // Where a device selects, the number of elements is known without the elements.
            message(
                a.select(&fine.mask(|x| x.gt(0)).unwrap()).unwrap().wait().and_then(|some| some.to_vec()),
            ),
            message(a.matmul(&fine.transpose().unwrap()).unwrap().to_vec()),
            message(a.get([0, 0])),
        ];
        for text in results {
            assert!(text.contains("from_fn") && text.contains("no such number"), "{text}");
        }
        assert_eq!(fine.reduce(sum()).unwrap().get([]).unwrap(), 12);
        // An array that is written anew has contents again.
        a.fill(5).unwrap();
        assert_eq!(a.to_vec().unwrap(), [5; 12]);
    }
}

#[test]
fn a_failure_comes_out_at_the_wait_of_the_arrays() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).build().unwrap();
    let arrays = Arrays::new(&rt);
    let a = arrays.filled([5], 1).unwrap();
    let _sum = a.reduce(operator(0, |_, _| panic!("cannot add"))).unwrap();
    assert!(message(arrays.wait()).contains("cannot add"));
    arrays.wait().unwrap();
    rt.wait().unwrap();
}

#[test]
fn devices_get_no_failed_arrays() {
    let _deadline = deadline();
    for arrays in places().filter(|arrays| arrays.device().is_some()) {
        let text = message(failed(arrays).map(|x| x + 1).unwrap().to_vec());
        assert!(text.contains("no such number"), "{text}");
        // So that no later test gets it.
        let _ = arrays.wait();
    }
}

#[test]
fn results_are_futures() {
    let _deadline = deadline();
    let a = host(2).from_slice([3], &[3, 1, 2]).unwrap();
    let mut least = pin!(a.find_min().unwrap());
    let mut all = pin!(a.read().unwrap());
    a.arrays().wait().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let found = loop {
        if let Poll::Ready(found) = least.as_mut().poll(&mut context) {
            break found.unwrap();
        }
    };
    assert_eq!(found, Some(([1], 1)));
    assert!(matches!(all.as_mut().poll(&mut context), Poll::Ready(Ok(elements)) if elements == [3, 1, 2]));
}

#[test]
fn waiting_inside_a_task_is_an_error() {
    let _deadline = deadline();
    let rt = Runtime::builder().threads(2).build().unwrap();
    let a = Arrays::new(&rt).filled([3], 1).unwrap();
    let task = rt.task("waits").once().host(move |()| match a.to_vec() {
        Err(ArrayError::Runtime(Error::WaitInsideTask { .. })) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    task.unwrap().wait().unwrap();
}
