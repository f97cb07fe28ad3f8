//! Tests of the C interface that a C program cannot do: callbacks that panic, and loops of any length.

use anabranch_c::{anabranch_status::*, *};
use std::{
    ffi::{CStr, c_int, c_void},
    ptr::{null, null_mut},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use testing::deadline;

/// A pool that is freed at the end.
struct Pool(*mut anabranch_pool);

impl Pool {
    fn new(threads: usize) -> Self {
        let pool = anabranch_pool_new(threads);
        assert!(!pool.is_null(), "{}", last_error());
        Self(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and no longer in use.
        assert_eq!(unsafe { anabranch_pool_free(self.0) }, ANABRANCH_OK);
    }
}

fn last_error() -> String {
    // SAFETY: the string is valid until this thread's next call that fails.
    unsafe { CStr::from_ptr(anabranch_last_error()) }.to_str().unwrap().to_owned()
}

extern "C-unwind" fn panics(_: *mut c_void) {
    panic!("on purpose\0 and twice");
}

extern "C-unwind" fn panics_at_length(_: *mut c_void) {
    panic!("{}", "ö".repeat(1000));
}

extern "C-unwind" fn panics_with_a_bomb(_: *mut c_void) {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    std::panic::panic_any(Bomb);
}

extern "C-unwind" fn panics_in_scratch(_: *mut c_void, _: *mut c_void) {
    panic!("no memory");
}

extern "C-unwind" fn panics_in_the_middle(begin: usize, end: usize, _: *mut c_void) -> c_int {
    assert!(!(begin..end).contains(&35), "not 35");
    0
}

#[test]
fn a_panic_becomes_a_status() {
    let _deadline = deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = Pool::new(threads);
        // SAFETY: the callbacks ignore their data.
        unsafe {
            assert_eq!(anabranch_call(pool.0, Some(panics), null_mut()), ANABRANCH_PANIC);
            assert_eq!(last_error(), "panicked: on purpose  and twice");
            assert_eq!(anabranch_call(pool.0, Some(panics_at_length), null_mut()), ANABRANCH_PANIC);
            assert_eq!(last_error(), format!("panicked: {}", "ö".repeat(506)));
            assert_eq!(anabranch_call(pool.0, Some(panics_with_a_bomb), null_mut()), ANABRANCH_PANIC);
            assert_eq!(last_error(), "panicked: (no message)");
            assert_eq!(anabranch_scratch(10, Some(panics_in_scratch), null_mut()), ANABRANCH_PANIC);
            assert_eq!(
                (anabranch_last_status(), last_error()),
                (ANABRANCH_PANIC, "panicked: no memory".into())
            );
            let status = anabranch_parallel_for(pool.0, 0, 100, 10, Some(panics_in_the_middle), null_mut());
            assert_eq!(status, ANABRANCH_PANIC);
            assert_eq!(last_error(), "the callback for [30, 40) panicked: not 35");
            for callback in [panics, panics_with_a_bomb] {
                let mut job = null_mut();
                assert_eq!(anabranch_submit(pool.0, Some(callback), null_mut(), &mut job), ANABRANCH_OK);
                assert_eq!(anabranch_job_wait(job), ANABRANCH_PANIC);
                assert_eq!(anabranch_submit(pool.0, Some(callback), null_mut(), null_mut()), ANABRANCH_OK);
            }
        }
    }
}

extern "C-unwind" fn count(begin: usize, end: usize, ranges: *mut c_void) -> c_int {
    assert!(begin < end);
    // SAFETY: the tests pass a counter.
    unsafe { &*ranges.cast::<AtomicUsize>() }.fetch_add(1, Relaxed);
    0
}

extern "C-unwind" fn refuses(begin: usize, _: usize, _: *mut c_void) -> c_int {
    if begin < 5 { 0 } else { -1 }
}

#[test]
fn ranges_depend_on_the_arguments_alone() {
    let _deadline = deadline();
    let max = usize::MAX;
    let cases = [
        ((0, 1000, 0), 250),
        ((0, 256, 0), 256),
        ((7, 8, 0), 1),
        ((10, 20, 3), 4),
        ((10, 20, max), 1),
        ((0, max, 0), 256),
        ((3, max, max), 1),
        ((0, max, max / 4), 5),
        ((max - 1, max, 1), 1),
        ((max, max, 0), 0),
    ];
    for threads in [1, 2, 3, 4, 8] {
        let pool = Pool::new(threads);
        for ((begin, end, chunk), ranges) in cases {
            let counted = AtomicUsize::new(0);
            let data = (&raw const counted).cast_mut().cast();
            // SAFETY: the callback counts.
            let status = unsafe { anabranch_parallel_for(pool.0, begin, end, chunk, Some(count), data) };
            assert_eq!((status, counted.into_inner()), (ANABRANCH_OK, ranges), "{begin} {end} {chunk}");
        }
        // SAFETY: the callback ignores its data.
        let status = unsafe { anabranch_parallel_for(pool.0, 0, max, 1, Some(refuses), null_mut()) };
        assert_eq!((status, anabranch_last_code()), (ANABRANCH_CANCELLED, -1));
        assert_eq!(last_error(), "the callback for [5, 6) returned -1");
    }
}

extern "C-unwind" fn keep(memory: *mut c_void, address: *mut c_void) {
    // SAFETY: the test passes a variable for the address.
    unsafe { *address.cast() = memory.addr() };
}

#[test]
fn scratch_is_aligned_and_reused() {
    let _deadline = deadline();
    let (mut first, mut second) = (0_usize, 1_usize);
    for bytes in [0, 1, 100_000] {
        // SAFETY: the callback stores the address in the variable.
        unsafe {
            assert_eq!(anabranch_scratch(bytes, Some(keep), (&raw mut first).cast()), ANABRANCH_OK);
            assert_eq!(anabranch_scratch(bytes, Some(keep), (&raw mut second).cast()), ANABRANCH_OK);
        }
        assert!(first != 0 && first.is_multiple_of(64) && first == second);
    }
}

#[test]
fn attachments_are_counted() {
    let _deadline = deadline();
    std::thread::spawn(|| {
        assert_eq!(anabranch_detach(), ANABRANCH_NOT_ATTACHED);
        for _ in 0..3 {
            assert_eq!([anabranch_attach(), anabranch_attach()], [ANABRANCH_OK; 2]);
            assert_eq!([anabranch_detach(), anabranch_detach()], [ANABRANCH_OK; 2]);
            assert_eq!(anabranch_detach(), ANABRANCH_NOT_ATTACHED);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn each_thread_has_its_own_last_error() {
    let _deadline = deadline();
    // SAFETY: NULL is an error.
    assert_eq!(unsafe { anabranch_job_wait(null_mut()) }, ANABRANCH_INVALID_ARGUMENT);
    std::thread::spawn(|| {
        assert_eq!((anabranch_last_status(), last_error().as_str()), (ANABRANCH_OK, ""));
    })
    .join()
    .unwrap();
    assert_eq!(last_error(), "anabranch_job_wait: the argument job is NULL");
    // SAFETY: NULL is an error.
    assert!(!unsafe { anabranch_job_is_done(null()) });
    anabranch_clear_error();
    assert_eq!((anabranch_last_status(), last_error().as_str()), (ANABRANCH_OK, ""));
}
