//! The memory of this process and of the machine.

use std::{fs, path::Path};

/// The largest resident memory of this process; `None` where the system does not report it.
pub fn peak_rss_bytes() -> Option<u64> {
    if cfg!(target_os = "linux") {
        return parse_peak_rss(&fs::read_to_string("/proc/self/status").ok()?);
    }
    None
}

/// The high-water mark of resident memory, from the text of Linux's `/proc/self/status`.
fn parse_peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The memory that this process can still get: what the system has available, with its swap space, but no
/// more than the limit of the process's control group. `None` where the system does not report it.
pub fn available_bytes() -> Option<u64> {
    let available = parse_available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(group_limit(&groups, Path::new("/sys/fs/cgroup")).map_or(available, |limit| available.min(limit)))
}

/// Available memory and free swap space, from the text of Linux's `/proc/meminfo`.
fn parse_available(info: &str) -> Option<u64> {
    let of = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((of("MemAvailable:")? + of("SwapFree:").unwrap_or(0)) * 1024)
}

/// The smallest limit of a control group and of those above it, from the text of `/proc/self/cgroup`.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (_, controllers_and_path) = line.split_once(':')?;
        let (folder, file, path) = match controllers_and_path.split_once(':')? {
            ("", path) => (root.to_owned(), "memory.max", path),
            ("memory", path) => (root.join("memory"), "memory.limit_in_bytes", path),
            _ => return None,
        };
        let above = Path::new(path.trim_start_matches('/')).ancestors();
        above.filter_map(|group| limit_in(&folder.join(group).join(file))).min()
    });
    limits.min()
}

fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_read_in_bytes() {
        assert_eq!(parse_peak_rss("VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(parse_peak_rss("nothing"), None);
        assert_eq!(peak_rss_bytes().is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn available_memory_includes_swap_space() {
        let info = "MemTotal: 9 kB\nMemAvailable:   100 kB\nSwapFree:  28 kB\n";
        assert_eq!(parse_available(info), Some(128 * 1024));
        assert_eq!(parse_available("MemTotal: 9 kB\n"), None);
        assert_eq!(available_bytes().is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn the_smallest_limit_of_the_groups_holds() {
        let root = tempfile::tempdir().unwrap();
        for (folder, file, limit) in [
            ("a/b", "memory.max", "3000\n"),
            ("a", "memory.max", "2000\n"),
            ("memory/c", "memory.limit_in_bytes", "7000\n"),
        ] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(file), limit).unwrap();
        }
        let limit = |groups| group_limit(groups, root.path());
        assert_eq!(limit("0::/a/b\n"), Some(2000));
        assert_eq!(limit("4:memory:/c/d\n0::/\n"), Some(7000));
        assert_eq!(limit("0::/\n"), None);
        fs::write(root.path().join("a/memory.max"), "max\n").unwrap();
        assert_eq!(limit("0::/a/b\n"), Some(3000));
    }
}
