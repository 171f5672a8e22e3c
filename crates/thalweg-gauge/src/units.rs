//! Figures for people: MB is 10^6 bytes, MiB is 2^20, and three digits are enough.

/// `bytes` as MB, GB or TB (powers of ten): what files and devices are measured in.
pub fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

/// `bytes` as MiB or GiB (powers of two): what memory is measured in.
pub fn binary_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A bandwidth in MB/s or GB/s (powers of ten).
pub fn bandwidth(bytes_per_s: f64) -> String {
    format!("{}/s", decimal_bytes(bytes_per_s))
}

/// A duration in ns, µs, ms, s.
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

/// Three significant digits, never in exponent form.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_and_of_two_are_told_apart() {
        assert_eq!(decimal_bytes(1_000_000.0), "1.00 MB");
        assert_eq!(binary_bytes(1_048_576.0), "1.00 MiB");
        assert_eq!(bandwidth(1.6e9), "1.60 GB/s");
        assert_eq!(decimal_bytes(12.0), "12 B");
        assert_eq!(decimal_bytes(999_999.0), "1.00 MB");
    }

    #[test]
    fn three_digits_are_enough() {
        assert_eq!(seconds(1.2345), "1.23 s");
        assert_eq!(seconds(0.012), "12.0 ms");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(digits(1234.6), "1235");
        assert_eq!(digits(f64::NAN), "?");
    }
}
