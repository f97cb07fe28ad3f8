//! Rates and durations as people read them. Sizes in bytes are printed by [`indicatif::DecimalBytes`].

use std::time::Duration;

/// A rate with its unit: `5.88 Gcell/s`, `744 MB/s`, `12.3 steps/s`. An unknown rate is `-`.
///
/// ```
/// assert_eq!(gray_scott::report::units::rate(5.88e9, "cell"), "5.88 Gcell/s");
/// ```
pub fn rate(per_second: f64, unit: &str) -> String {
    if per_second.is_finite() && per_second > 0.0 {
        format!("{}{unit}/s", scaled(per_second))
    } else {
        format!("- {unit}/s")
    }
}

/// A duration, rounded according to its length: `0.012 s`, `4.21 s`, `3 min 20 s`, `2 h 05 min`.
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

/// A number of three significant digits, a space, and a decimal prefix for the unit.
fn scaled(x: f64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    // From 999.5 on a value would be printed as 1000, so it takes the next prefix.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_three_digits_and_a_decimal_prefix() {
        let cases = [(12.34, "12.3 B/s"), (999.6, "1.00 kB/s"), (744e6, "744 MB/s"), (8.2944e9, "8.29 GB/s")];
        for (per_second, text) in cases {
            assert_eq!(rate(per_second, "B"), text);
        }
    }

    #[test]
    fn an_unknown_rate_is_a_dash() {
        assert_eq!(rate(0.0, "B"), "- B/s");
        assert_eq!(rate(f64::NAN, "B"), "- B/s");
        assert_eq!(rate(12.34, "steps"), "12.3 steps/s");
    }

    #[test]
    fn long_durations_are_rounded_more_coarsely() {
        let cases = [(0.0123, "0.012 s"), (4.211, "4.21 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 05 min")];
        for (seconds, text) in cases {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), text);
        }
    }
}
