//! Prints quantities with units and three digits, and parses them. MB is 10^6 bytes, MiB is 2^20.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use thalweg_io::text::parse_bytes;

/// Prints `bytes` as MB, GB or TB (powers of ten), for files and devices.
pub fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

/// Prints `bytes` as MiB or GiB (powers of two), for memory.
pub fn binary_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Prints a bandwidth in MB/s or GB/s (powers of ten).
pub fn bandwidth(bytes_per_s: f64) -> String {
    format!("{}/s", decimal_bytes(bytes_per_s))
}

/// Prints a duration in ns, µs, ms or s.
pub fn seconds(s: f64) -> String {
    let a = s.abs();
    if a >= 0.9995 || a == 0.0 {
        format!("{} s", digits(s))
    } else if a >= 0.9995e-3 {
        format!("{} ms", digits(s * 1e3))
    } else if a >= 0.9995e-6 {
        format!("{} µs", digits(s * 1e6))
    } else {
        format!("{} ns", digits(s * 1e9))
    }
}

/// Prints a number with three significant digits, never in exponent form.
pub fn digits(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "?".into(),
        a if a == 0.0 || a >= 99.95 => format!("{x:.0}"),
        a if a >= 9.995 => format!("{x:.1}"),
        a if a >= 0.9995 => format!("{x:.2}"),
        a if a >= 0.0995 => format!("{x:.3}"),
        _ => format!("{x:.4}"),
    }
}

fn scaled(x: f64, step: f64, names: &[&str]) -> String {
    let mut x = x;
    let mut i = 0;
    // 999.5 would print as 1000 of the smaller unit.
    while x.abs() >= 999.5 && i + 1 < names.len() {
        x /= step;
        i += 1;
    }
    let name = names.get(i).copied().unwrap_or("B");
    if i == 0 { format!("{x:.0} {name}") } else { format!("{} {name}", digits(x)) }
}

/// Parses a count with a decimal unit: 250k, 80M, 1.2G.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        Some((at, 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a count, as in 250M or 1.2G"))?;
    if number.is_finite() && number >= 0.0 {
        Ok((number * factor).round() as u64)
    } else {
        Err("negative".into())
    }
}

/// Parses a duration with a unit: 250 ms, 90 s, 10 min, 2 h.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        other => {
            return Err(format!(
                "{text:?} is not a duration: unit {other:?}, expected ms, s, min or h, as in \"90 \
                 s\""
            ));
        }
    };
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a duration, as in \"90 s\""))?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| format!("{text:?} is too long"))
}

/// The seconds from 1970 (UTC) to `time`; 0 for earlier times.
#[must_use]
pub fn unix_s(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_and_of_two_differ() {
        assert_eq!(decimal_bytes(1_000_000.0), "1.00 MB");
        assert_eq!(binary_bytes(1_048_576.0), "1.00 MiB");
        assert_eq!(bandwidth(1.6e9), "1.60 GB/s");
        assert_eq!(decimal_bytes(12.0), "12 B");
        assert_eq!(decimal_bytes(999_999.0), "1.00 MB");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(seconds(1.2345), "1.23 s");
        assert_eq!(seconds(0.012), "12.0 ms");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(digits(1234.6), "1235");
        assert_eq!(digits(f64::NAN), "?");
    }
}
