//! Each wrong declaration is an error that names the task, the buffer, the region and the source line.

mod common;

use anabranch::prelude::*;
use testing::deadline;

/// This source line, as it appears in messages.
macro_rules! here {
    () => {
        format!("({}:{})", file!(), line!())
    };
}

#[test]
fn reading_an_unwritten_region_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer::<f32, 2>([8, 4]).named("u");
    rt.task("fill").over([6, 4]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0)).unwrap();
    let (task, line) = (rt.task("sum"), here!());
    let error = task.once().read(&u, all()).host(|(_u,)| ()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "task \"sum\" {line} reads [6..8, 0..4] of buffer \"u\", which was never written or was discarded: write it in \
             an earlier task, or create the buffer from its initial contents"
        )
    );
    // No task was submitted, and the runtime goes on.
    rt.wait().unwrap();
    rt.task("rest")
        .over(GridBox::new([6, 0], [8, 4]))
        .write(&u, one_to_one())
        .kernel(|_, (u,)| u.fill(2.0))
        .unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap()[[7, 3]], 2.0);
}

#[test]
fn overlapping_writes_of_chunks_are_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer::<f32, 1>([100]).named("u");
    let (task, line) = (rt.task("blur"), here!());
    let error = task
        .over([100])
        .chunks(4)
        .write(&u, neighborhood([1]))
        .kernel(|_, (_u,)| ())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "task \"blur\" {line}: chunks [0..25] and [25..50] both write [24..26] of buffer \"u\" \
             (neighborhood([1])): every element may be written by one chunk only"
        )
    );
    rt.wait().unwrap();
}

#[test]
fn a_mapper_that_leaves_the_buffer_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer_from(&[0_u8; 10]).unwrap().named("u");
    let (task, line) = (rt.task("shift"), here!());
    let shifted = mapper(|chunk, _| GridBox::new(chunk.range.min()[0] + 5, chunk.range.max()[0] + 5));
    let error = task.over([10]).read(&u, shifted).kernel(|_, (_u,)| ()).unwrap_err().to_string();
    assert!(error.starts_with(&format!(
        "task \"shift\" {line} accesses [5..15] of buffer \"u\", whose extent is [10]"
    )));
    assert!(error.contains("of [0..10]"), "{error}");
}

#[test]
fn an_index_space_that_does_not_fit_the_buffer_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer::<f64, 2>([10, 20]).named("u");
    let (task, line) = (rt.task("transpose me"), here!());
    let error = task.over([20, 10]).write(&u, one_to_one()).kernel(|_, (_u,)| ()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "task \"transpose me\" {line} accesses [0..20, 0..10] of buffer \"u\", whose extent is [10, 20] \
             (one_to_one() of [0..20, 0..10]): make the index space or the mapper fit the buffer"
        )
    );
}

#[test]
fn a_mapper_that_is_not_monotonic_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer_from(&[0_u8; 10]).unwrap().named("u");
    let (task, line) = (rt.task("odd"), here!());
    // The whole index space maps to one element, and its parts map to other elements.
    let odd = mapper(|chunk, _| GridBox::new(chunk.range.len() % 10, chunk.range.len() % 10 + 1));
    let error = task.over([10]).chunks(2).read(&u, odd).kernel(|_, (_u,)| ()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("task \"odd\" {line}: the mapper of buffer \"u\" is not monotonic: "))
    );
    assert!(error.contains("gives [5..6] for chunk [0..5], but [0..1] for the whole index space"), "{error}");
}

#[test]
fn two_accesses_to_common_elements_are_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer_from(&[0_u8; 10]).unwrap().named("u");
    let (task, line) = (rt.task("in place"), here!());
    let error = task
        .over([10])
        .read(&u, neighborhood([1]))
        .write(&u, one_to_one())
        .kernel(|_, (_old, _new)| ())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "task \"in place\" {line} declares two accesses to [0..10] of buffer \"u\", and at least one of them \
             writes: declare one `update`, or read from another buffer"
        )
    );
}

#[test]
fn disjoint_accesses_to_one_buffer_are_allowed() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer_from(&[1, 2, 3, 4]).unwrap();
    rt.task("copy half")
        .once()
        .read(&u, fixed(GridBox::new(0, 2)))
        .write(&u, fixed(GridBox::new(2, 4)))
        .host(|(from, to)| to.as_mut_slice().unwrap().copy_from_slice(from.as_slice().unwrap()))
        .unwrap();
    assert_eq!(rt.fence(&u).unwrap().wait().unwrap().as_slice(), [1, 2, 1, 2]);
}

#[test]
fn a_buffer_of_another_runtime_is_an_error() {
    let _deadline = deadline();
    let (rt, other) = (common::runtime(2), common::runtime(2));
    let u = other.buffer_from(&[0_u8; 4]).unwrap().named("u");
    let error = rt.task("x").once().read(&u, all()).host(|(_u,)| ()).unwrap_err().to_string();
    assert_eq!(error, "buffer \"u\" belongs to another runtime: use it with the runtime that created it");
    let object = other.host_object(1);
    let error = rt.task("x").once().effect(&object, sequential()).host(|(_o,)| ()).unwrap_err().to_string();
    assert!(error.contains("belongs to another runtime"));
    assert!(rt.fence(&u).is_err() && rt.drain(object.capture()).is_err());
}

#[test]
fn a_part_outside_the_buffer_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer_from(&[0_u8; 4]).unwrap().named("u");
    let error = rt.fence(&u.part(GridBox::new(2, 9))).unwrap_err().to_string();
    assert_eq!(error, "[2..9] is not a part of buffer \"u\", whose extent is [4]: choose a box inside of it");
}

#[test]
fn fencing_an_unwritten_buffer_is_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let u = rt.buffer::<f32, 1>([4]).named("u");
    let line = here!().replace(&line!().to_string(), &(line!() + 1).to_string());
    let error = rt.fence(&u).unwrap_err().to_string();
    assert!(error.starts_with(&format!(
        "task \"fence\" {line} reads [0..4] of buffer \"u\", which was never written"
    )));
}

#[test]
fn a_buffer_larger_than_memory_is_named() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let huge = rt.buffer::<f64, 3>([1 << 20, 1 << 20, 1 << 20]).named("huge");
    rt.task("fill").once().write(&huge, all()).host(|(huge,)| huge.fill(0.0)).unwrap();
    let error = rt.wait().unwrap_err().to_string();
    assert!(
        error.contains("no memory for buffer \"huge\": 9223372036854775808 bytes were refused"),
        "{error}"
    );
}

/// The figures do not wrap, and the error does not panic under a lock of the runtime.
#[test]
fn a_buffer_with_more_bytes_than_any_number_is_named() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let huge = rt.buffer::<f64, 3>([usize::MAX; 3]).named("huge");
    rt.task("fill").once().write(&huge, all()).host(|(huge,)| huge.fill(0.0)).unwrap();
    let error = rt.wait().unwrap_err().to_string();
    assert!(error.contains(&format!("no memory for buffer \"huge\": {} bytes", u128::MAX)), "{error}");
    rt.task("rows").over([usize::MAX; 3]).chunks(3).write(&huge, one_to_one()).kernel(|_, _| ()).unwrap();
    assert!(rt.wait().unwrap_err().to_string().contains("no memory for buffer \"huge\""));
    let wide = rt.buffer::<u8, 2>([usize::MAX; 2]);
    rt.task("tiles")
        .over([usize::MAX; 2])
        .tiles(1, 1)
        .chunks(4)
        .write(&wide, one_to_one())
        .kernel(|_, _| ())
        .unwrap();
    assert!(rt.wait().is_err());
}

#[test]
fn a_snapshot_of_an_empty_array_has_its_shape() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let empty = rt.buffer_from(&ndarray::Array3::<f32>::zeros((0, 4, 5))).unwrap();
    assert_eq!(rt.fence(&empty).unwrap().wait().unwrap().into_array().dim(), (0, 4, 5));
    let never_written = rt.buffer::<f32, 2>([7, 0]);
    assert_eq!(rt.fence(&never_written).unwrap().wait().unwrap().extent(), Extent([7, 0]));
    let full = rt.buffer_from(&ndarray::Array2::<f32>::zeros((4, 5))).unwrap();
    let part = rt.fence(&full.part(GridBox::new([1, 2], [1, 5]))).unwrap().wait().unwrap();
    assert_eq!((part.range(), part.as_slice().len()), (GridBox::EMPTY, 0));
    assert_eq!(rt.drain(empty.capture()).unwrap().into_array().dim(), (0, 4, 5));
}

#[test]
fn fencing_a_buffer_without_memory_names_it() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let huge = rt.buffer::<u8, 1>([usize::MAX / 4]).named("huge");
    rt.task("fill").once().write(&huge, fixed(GridBox::new(0, 1))).host(|(huge,)| huge.fill(0)).unwrap();
    let error = rt.fence(&huge.part(GridBox::new(0, 1))).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("no memory for buffer \"huge\""), "{error}");
}

#[test]
fn two_effects_on_one_object_are_an_error() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let object = rt.host_object(1);
    let (task, line) = (rt.task("twice"), here!());
    let error = task
        .once()
        .effect(&object, sequential())
        .effect(&object, sequential())
        .host(|(_a, _b)| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("task \"twice\" {line} declares two effects on host object 1 (i32)")),
        "{error}"
    );
}

/// An implementation of `Initial` may return another extent at the second call; the runtime uses the first.
#[test]
fn a_source_that_changes_its_extent_is_harmless() {
    let _deadline = deadline();
    struct Liar(std::cell::Cell<usize>);
    impl anabranch::Initial<1> for Liar {
        type Element = u8;
        fn extent(&self) -> Extent<1> {
            Extent([self.0.replace(4096)])
        }
        fn copy_to(&self, target: &mut [u8]) {
            target.fill(7);
        }
    }
    let rt = common::runtime(2);
    let buffer = rt.buffer_from(&Liar(std::cell::Cell::new(1))).unwrap();
    assert_eq!(buffer.extent(), Extent([1]));
    assert_eq!(rt.fence(&buffer).unwrap().wait().unwrap().as_slice(), [7]);
}

#[test]
fn empty_regions_are_allowed() {
    let _deadline = deadline();
    let rt = common::runtime(2);
    let empty = rt.buffer::<f32, 2>([0, 5]);
    rt.task("none").over([0, 5]).write(&empty, one_to_one()).kernel(|_, (_e,)| panic!("no chunk")).unwrap();
    rt.task("look")
        .once()
        .read(&empty, all())
        .host(|(e,)| assert_eq!((e.as_slice(), e.as_array().dim()), (Some(&[][..]), (0, 5))))
        .unwrap();
    assert_eq!(rt.fence(&empty).unwrap().wait().unwrap().as_slice(), []);
    rt.wait().unwrap();
}

#[test]
fn settings_out_of_range_are_errors() {
    let _deadline = deadline();
    let error = Runtime::builder().threads(0).build().unwrap_err().to_string();
    assert_eq!(error, "threads is 0; choose 1 or more");
    let error = Runtime::builder().threads(1_000_000).build().unwrap_err().to_string();
    assert!(error.contains("a pool of 1000000 threads was asked for; choose between 1 and 1024"), "{error}");
}
