//! A parallel loop over the frames of a file.

use anabranch::par::{IntoParallel, LoopError, PoolError, ThreadPool};

/// Calls `visit` with the position and the number of each frame in `frames`, on up to `threads` threads, in
/// no particular order. Each thread first makes its own scratch with `scratch`.
///
/// # Errors
/// The error of the first frame whose `visit` fails; frames after it may be skipped. An error of
/// `scratch`, or the system's refusal of a thread.
pub fn for_each_frame<S, E: Send + From<PoolError>>(
    frames: &[u64],
    threads: usize,
    scratch: impl Fn() -> Result<S, E> + Sync,
    visit: impl Fn(&mut S, usize, u64) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let pool = ThreadPool::new(threads.min(frames.len()).max(1))?;
    let visits = (0..frames.len()).par().on(&pool).chunking(false).scratch(|| None);
    let done = visits.try_for_each(|made: &mut Option<S>, at| match made {
        Some(made) => visit(made, at, frames[at]),
        None => visit(made.insert(scratch()?), at, frames[at]),
    });
    done.map_err(|error| match error {
        LoopError::Item { error, .. } => error,
        LoopError::Panic(panic) => panic.resume(),
        other => unreachable!("nothing else ends this loop: {}", other.index().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, PartialEq)]
    enum Fault {
        Frame(u64),
        Scratch,
        Threads,
    }

    impl From<PoolError> for Fault {
        fn from(_: PoolError) -> Self {
            Self::Threads
        }
    }

    #[test]
    fn each_frame_is_visited_once_with_its_position() {
        let frames: Vec<u64> = (0..100).map(|i| i * 3).collect();
        for threads in [1, 2, 7] {
            let visits: Vec<AtomicUsize> = frames.iter().map(|_| AtomicUsize::new(0)).collect();
            let visit = |_: &mut (), at: usize, frame: u64| {
                assert_eq!(frame, at as u64 * 3);
                visits[at].fetch_add(1, Ordering::Relaxed);
                Ok::<_, Fault>(())
            };
            for_each_frame(&frames, threads, || Ok(()), visit).unwrap();
            assert!(visits.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_error_of_the_first_frame_is_returned() {
        let frames: Vec<u64> = (0..50).collect();
        let visit = |_: &mut (), _, frame| if frame >= 20 { Err(Fault::Frame(frame)) } else { Ok(()) };
        for threads in [1, 3] {
            assert_eq!(for_each_frame(&frames, threads, || Ok(()), visit), Err(Fault::Frame(20)));
        }
    }

    #[test]
    fn scratch_that_cannot_be_made_is_an_error() {
        let scratch = || Err::<(), _>(Fault::Scratch);
        assert_eq!(for_each_frame(&[1, 2], 2, scratch, |_, _, _| Ok(())), Err(Fault::Scratch));
    }

    #[test]
    fn too_many_threads_are_an_error() {
        let frames: Vec<u64> = (0..5000).collect();
        assert_eq!(for_each_frame(&frames, 5000, || Ok(()), |(), _, _| Ok(())), Err(Fault::Threads));
    }
}
