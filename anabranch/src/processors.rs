//! The processors that a node may use, and so its number of threads by default.

use crate::error::Error;
use anabranch_wire::launched;

/// The number of compute threads of a runtime if the program does not set one: the value of the environment
/// variable `ANABRANCH_NUM_THREADS`, or else the number of processors that this process may use. Processes
/// that a launcher has started on the same machine share its processors: each takes its part of those to
/// which the launcher has not bound it alone.
///
/// # Errors
/// [`Error::Pool`] and [`Error::Connect`] if an environment variable has a wrong value.
pub fn default_threads() -> Result<usize, Error> {
    let threads = anabranch_par::default_threads()?;
    let is_set = std::env::var_os("ANABRANCH_NUM_THREADS").is_some_and(|value| !value.is_empty());
    let here = launched()?.map_or(1, |launched| launched.here);
    if is_set || here == 1 {
        return Ok(threads);
    }
    let of = |process: &str| processors(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?);
    let launcher = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| parent(&status));
    let launcher = launcher.and_then(|process| of(&process));
    Ok(share(threads, of("self"), launcher, here))
}

/// The part of one of `here` processes that may each use `threads` processors. `own` and `launcher` are the
/// processors to which this process and its launcher are bound, if they are known.
fn share(threads: usize, own: Option<usize>, launcher: Option<usize>, here: usize) -> usize {
    let part = |processors: usize| (processors / here).max(1);
    match (own, launcher) {
        // The launcher has bound this process to some of the processors, perhaps together with others.
        (Some(own), Some(all)) if own < all => threads.min(part(all)),
        _ => part(threads),
    }
}

/// The value of a field of a file `/proc/…/status`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim())
}

fn parent(status: &str) -> Option<String> {
    field(status, "PPid:").map(str::to_owned)
}

/// The number of processors in the list to which a process is bound, such as `0-3,8`.
fn processors(status: &str) -> Option<usize> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        (last.parse::<usize>().ok()? + 1).checked_sub(first.parse().ok()?)
    };
    field(status, "Cpus_allowed_list:")?.split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_machine_share_its_processors() {
        // Not bound.
        assert_eq!([1, 2, 4, 16].map(|here| share(8, Some(8), Some(8), here)), [8, 4, 2, 1]);
        // Bound to one core each, to four, and four together to a socket of 16.
        assert_eq!(share(1, Some(1), Some(8), 2), 1);
        assert_eq!(share(4, Some(4), Some(32), 4), 4);
        assert_eq!(share(16, Some(16), Some(32), 8), 4);
        // A limit of processor time counts like fewer processors.
        assert_eq!(share(2, Some(64), Some(64), 4), 1);
        assert_eq!(share(6, None, None, 3), 2);
    }

    #[test]
    fn the_processors_of_a_process_are_counted() {
        let status = "Name:\ta\nPPid:\t17\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8,10-11\n";
        assert_eq!((parent(status).as_deref(), processors(status)), (Some("17"), Some(7)));
        assert_eq!((parent(""), processors("Cpus_allowed_list:\tall\n")), (None, None));
    }
}
