//! Numbers as people read them (bytes, rates, durations), and paths and commands as a shell does.

use std::path::Path;
use std::time::Duration;

/// A number of bytes in decimal units, as disks are sold and `df -H` prints: `829 MB`, `8.3 GB`.
///
/// ```
/// assert_eq!(gray_scott::human::bytes(829_440_000), "829 MB");
/// assert_eq!(gray_scott::human::bytes(12), "12 B");
/// ```
pub fn bytes(n: u64) -> String {
    if n < 1000 { format!("{n} B") } else { format!("{}B", scaled(n as f64)) }
}

/// A rate with its unit: `5.88 Gcell/s`, `744 MB/s`, `12.3 steps/s`. A rate that is not yet known is `-`.
///
/// ```
/// assert_eq!(gray_scott::human::rate(5.88e9, "cell"), "5.88 Gcell/s");
/// ```
pub fn rate(per_second: f64, unit: &str) -> String {
    if per_second.is_finite() && per_second > 0.0 {
        format!("{}{unit}/s", scaled(per_second))
    } else {
        format!("- {unit}/s")
    }
}

/// A duration with the precision that its size deserves: `0.012 s`, `4.21 s`, `3 min 20 s`, `2 h 05 min`.
pub fn duration(d: Duration) -> String {
    let seconds = d.as_secs_f64();
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 1.0 => format!("{s:.3} s"),
        s if s < 59.95 => format!("{s:.2} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The path as one word of a shell command.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Three significant digits and a decimal prefix, with the space that stands before the unit.
fn scaled(x: f64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    // 999.5 and above would print as 1000: it belongs to the next prefix.
    let mut value = x;
    let mut prefix = 0;
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", PREFIXES[prefix])
}

/// How the user calls this program with these arguments: by its name, or through Cargo where Cargo has started it.
pub fn command(arguments: &str, path: &Path) -> String {
    // Cargo sets this for what it runs.
    let by_cargo = std::env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == env!("CARGO_PKG_NAME"));
    let program = if by_cargo { "cargo run --release --" } else { env!("CARGO_PKG_NAME") };
    format!("{program} {arguments} {}", shell_word(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_and_a_decimal_unit() {
        let cases = [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_600, "1.00 MB")];
        for (n, text) in cases.into_iter().chain([(8_294_400_000, "8.29 GB"), (u64::MAX, "18.4 EB")]) {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn a_rate_that_is_not_known_yet_is_a_dash() {
        assert_eq!(rate(0.0, "B"), "- B/s");
        assert_eq!(rate(f64::NAN, "B"), "- B/s");
        assert_eq!(rate(12.34, "steps"), "12.3 steps/s");
    }

    #[test]
    fn durations_grow_coarser_with_their_size() {
        let cases = [(0.0123, "0.012 s"), (4.211, "4.21 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 05 min")];
        for (seconds, text) in cases {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(shell_word(Path::new("a/b-1.h5")), "a/b-1.h5");
        assert_eq!(shell_word(Path::new("my run's.h5")), r"'my run'\''s.h5'");
    }
}
