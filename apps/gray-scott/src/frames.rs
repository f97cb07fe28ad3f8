//! Visiting the frames of a file in parallel.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `visit` with the position and the number of each frame in `frames`, on up to `threads` threads, in no
/// particular order. Each thread first makes its own scratch with `scratch`.
///
/// # Errors
/// Of the errors that `visit` returns, the one of the foremost frame; the frames after it may
/// have been visited or not. An error of `scratch` is returned as well.
pub fn for_each_frame<S, E: Send>(
    frames: &[u64],
    threads: usize,
    scratch: impl Fn() -> Result<S, E> + Sync,
    visit: impl Fn(&mut S, usize, u64) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let cursor = AtomicUsize::new(0);
    let failure: Mutex<Option<(usize, E)>> = Mutex::new(None);
    // Positions are handed out in ascending order, so everything before a failed one is visited.
    let fail = |at: usize, error: E| {
        cursor.store(frames.len(), Ordering::Relaxed);
        let mut first = failure.lock().expect("no participant panics while it reports");
        if first.as_ref().is_none_or(|(other, _)| at < *other) {
            *first = Some((at, error));
        }
    };
    let participate = || {
        let mut scratch = match scratch() {
            Ok(scratch) => scratch,
            Err(error) => return fail(0, error),
        };
        loop {
            let at = cursor.fetch_add(1, Ordering::Relaxed);
            let Some(&frame) = frames.get(at) else { return };
            if let Err(error) = visit(&mut scratch, at, frame) {
                return fail(at, error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(frames.len()) {
            scope.spawn(participate);
        }
        participate();
    });
    match failure.into_inner().expect("no participant panics while it reports") {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_visited_once_with_its_position() {
        let frames: Vec<u64> = (0..100).map(|i| i * 3).collect();
        for threads in [1, 2, 7] {
            let visits: Vec<AtomicUsize> = frames.iter().map(|_| AtomicUsize::new(0)).collect();
            for_each_frame(
                &frames,
                threads,
                || Ok::<_, ()>(()),
                |_, at, frame| {
                    assert_eq!(frame, at as u64 * 3);
                    visits[at].fetch_add(1, Ordering::Relaxed);
                    Ok(())
                },
            )
            .unwrap();
            assert!(visits.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_foremost_error_is_returned() {
        let frames: Vec<u64> = (0..50).collect();
        for threads in [1, 3] {
            let result = for_each_frame(
                &frames,
                threads,
                || Ok(()),
                |_, _, frame| {
                    if frame >= 20 { Err(frame) } else { Ok(()) }
                },
            );
            assert_eq!(result, Err(20));
        }
    }

    #[test]
    fn scratch_that_cannot_be_made_is_an_error() {
        assert_eq!(
            for_each_frame(&[1, 2], 2, || Err::<(), _>("no memory"), |_, _, _| Ok(())),
            Err("no memory")
        );
    }
}
