//! Binding of threads to processors.

use std::io;

/// The processors that the calling thread may use, by their numbers.
///
/// # Errors
/// If this system cannot say, or cannot bind threads.
#[cfg(target_os = "linux")]
pub(crate) fn allowed_processors() -> io::Result<Vec<usize>> {
    let mut set = empty();
    // SAFETY: the system writes at most the size of `set` to it; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the numbers are below the size of the set.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|&processor| unsafe { libc::CPU_ISSET(processor, &set) })
        .collect())
}

/// Binds the calling thread to a processor.
///
/// # Errors
/// If the system refuses.
#[cfg(target_os = "linux")]
pub(crate) fn bind(processor: usize) -> io::Result<()> {
    let mut set = empty();
    assert!(processor < libc::CPU_SETSIZE as usize);
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the system reads at most the size of `set`; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_os = "linux")]
fn empty() -> libc::cpu_set_t {
    // SAFETY: the set is plain bits. All bits 0 is the empty set.
    unsafe { std::mem::zeroed() }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn allowed_processors() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn bind(_: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, not(loom), target_os = "linux"))]
mod tests {
    use super::{allowed_processors, bind};

    #[test]
    fn a_bound_thread_may_use_one_processor() {
        let _deadline = testing::deadline();
        let processor = *allowed_processors().unwrap().last().unwrap();
        let bound = std::thread::spawn(move || {
            bind(processor).unwrap();
            allowed_processors().unwrap()
        });
        assert_eq!(bound.join().unwrap(), [processor]);
    }
}
