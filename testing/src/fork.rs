//! Tests in forked processes.

#![expect(unsafe_code, reason = "the system's calls")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

/// Forks. The child calls `f` and ends, with status 0 if `f` does not panic. Returns the number of the child.
pub fn fork(f: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child runs code that may allocate, which the C library allows after a fork. The child ends
    // without returning from this function.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(catch_unwind(AssertUnwindSafe(f)).is_err());
            // SAFETY: ends the process without running the parent's destructors.
            unsafe { libc::_exit(code) }
        }
        child => child,
    }
}

/// Waits for a child, which must end with status 0 within a minute.
///
/// # Panics
/// If there is no child, because the system has refused to fork, or if it fails or hangs.
pub fn expect_success(child: libc::pid_t) {
    assert!(child > 0, "the system refuses to fork");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    // SAFETY: waits for our own child; `status` is a local variable.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: our own child, which has not been waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child failed: {status}");
}

/// Calls `f` in a forked process, where it must not panic.
pub fn in_child(f: impl FnOnce()) {
    expect_success(fork(f));
}
