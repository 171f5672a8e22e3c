//! Numbers in SLOW5 text (section "SLOW5 ASCII encoding"): plain decimals without exponent or
//! leading zeros.

use std::io::Write;

/// Fractional digits before trailing zeros are removed. C's `%f` prints as many, and other writers
/// use it.
const FRACTION_DIGITS: usize = 6;

/// Parses a decimal of at most `max` without sign or leading zeros.
pub(crate) fn parse_unsigned(text: &[u8], max: u64) -> Option<u64> {
    if text.is_empty() || (text.len() > 1 && text.first() == Some(&b'0')) {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (value <= max).then_some(value)
}

/// Parses a decimal within `min..=max` with an optional minus sign.
pub(crate) fn parse_signed(text: &[u8], min: i64, max: i64) -> Option<i64> {
    let value = match text.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(parse_unsigned(digits, 1 << 63)?)?,
        None => i64::try_from(parse_unsigned(text, u64::MAX)?).ok()?,
    };
    (min..=max).contains(&value).then_some(value)
}

/// Parses the words that C prints for infinities and NaN. slow5lib writes them, but refuses to read
/// them.
fn non_finite(text: &[u8]) -> Option<f64> {
    match text {
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        b"nan" => Some(f64::NAN),
        b"-nan" => Some(-f64::NAN),
        _ => None,
    }
}

/// Parses a decimal fraction without exponent.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    if let Some(value) = non_finite(text) {
        return Some(value);
    }
    decimal(text)?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a number in single precision. It is rounded once, directly from the text. A conversion
/// through a double would round twice.
pub(crate) fn parse_float(text: &[u8]) -> Option<f32> {
    if let Some(value) = non_finite(text) {
        return Some(value as f32);
    }
    decimal(text)?.parse().ok().filter(|value: &f32| value.is_finite())
}

/// The text, if it has only digits, points and minus signs. Rust's parser would also accept
/// exponents, plus signs and names of infinity.
fn decimal(text: &[u8]) -> Option<&str> {
    let plain = text.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-'));
    if plain { std::str::from_utf8(text).ok() } else { None }
}

/// Writes an integer.
pub(crate) fn push_integer(out: &mut Vec<u8>, value: impl Into<i128>) {
    let value: i128 = value.into();
    if value < 0 {
        out.push(b'-');
    }
    // 2^64 has 20 digits, and the values come from integers of at most 64 bits.
    let mut digits = [0u8; 20];
    let mut rest = value.unsigned_abs() as u64;
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        used += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits.iter().skip(digits.len() - used));
}

/// Writes a double like slow5lib: with six fractional digits, without trailing zeros or a trailing
/// point, and without "-0". If these digits make another number, it writes the fewest that do not.
/// slow5lib reads them all, to the last bit, but writes six digits only.
pub(crate) fn push_double(out: &mut Vec<u8>, value: f64) {
    let start = out.len();
    push_rounded(out, value);
    let again = out.get(start..).and_then(parse_double);
    if value.is_finite() && again.map(f64::to_bits) != Some(value.to_bits()) {
        out.truncate(start);
        // Writing into a vector cannot fail.
        let _ = write!(out, "{value}");
    }
}

/// [`push_double`] for a number in single precision, which needs fewer digits.
pub(crate) fn push_float(out: &mut Vec<u8>, value: f32) {
    let start = out.len();
    push_rounded(out, f64::from(value));
    let again = out.get(start..).and_then(parse_float);
    if value.is_finite() && again.map(f32::to_bits) != Some(value.to_bits()) {
        out.truncate(start);
        let _ = write!(out, "{value}");
    }
}

/// Writes a double with up to six fractional digits.
fn push_rounded(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend(if value.is_sign_negative() { b"-nan".as_slice() } else { b"nan" });
        return;
    }
    let start = out.len();
    // Writing into a vector cannot fail.
    let _ = write!(out, "{value:.FRACTION_DIGITS$}");
    if !value.is_finite() {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
        if out.get(start..) == Some(b"-0") {
            out.truncate(start);
            out.push(b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        push_double(&mut out, value);
        String::from_utf8(out).unwrap_or_default()
    }

    fn integer(value: impl Into<i128>) -> String {
        let mut out = Vec::new();
        push_integer(&mut out, value);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn doubles_print_as_c_does() {
        let expected = [
            (8192.0, "8192"),
            (1467.61, "1467.61"),
            (0.0, "0"),
            (-5.5, "-5.5"),
            (100.0, "100"),
            (0.000_001, "0.000001"),
            (1e22, "10000000000000000000000"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
        ];
        for (value, text) in expected {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn numbers_that_need_more_digits_have_them() {
        let expected = [
            (1_416.672_607_421_875, "1416.672607421875"),
            (-0.0, "-0"),
            (-0.000_000_1, "-0.0000001"),
            (0.007_812_5, "0.0078125"),
            (0.1 + 0.2, "0.30000000000000004"),
        ];
        for (value, text) in expected {
            assert_eq!(double(value), text);
        }
        let mut out = Vec::new();
        push_float(&mut out, 0.012_345_678);
        assert_eq!(out, b"0.012345678");
        out.clear();
        // Its double has more digits, but the float does not need them.
        push_float(&mut out, 202.391_13);
        assert_eq!(out, b"202.391129");
    }

    #[test]
    fn doubles_refuse_what_is_not_a_decimal() {
        for bad in ["", ".", "-", "1e3", "+1", "0x1", "1.2.3", "infinity", "NaN", " 1", "1-", "1\r"]
        {
            assert_eq!(parse_double(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_double(&[b'9'; 400]), None);
        assert_eq!(parse_float(&[b'9'; 60]), None);
        assert_eq!(parse_double(b"-237"), Some(-237.0));
        assert_eq!(parse_float(b"89.25"), Some(89.25));
    }

    #[test]
    fn integers_keep_their_bounds() {
        assert_eq!(parse_unsigned(b"18446744073709551615", u64::MAX), Some(u64::MAX));
        assert_eq!(parse_unsigned(b"18446744073709551616", u64::MAX), None);
        assert_eq!(parse_unsigned(b"256", 255), None);
        assert_eq!(parse_unsigned(b"00", 255), None);
        assert_eq!(parse_unsigned(b"", 255), None);
        assert_eq!(parse_signed(b"-9223372036854775808", i64::MIN, i64::MAX), Some(i64::MIN));
        assert_eq!(parse_signed(b"-9223372036854775809", i64::MIN, i64::MAX), None);
        assert_eq!(parse_signed(b"9223372036854775808", i64::MIN, i64::MAX), None);
        assert_eq!(parse_signed(b"--1", -5, 5), None);
        assert_eq!(integer(u64::MAX), "18446744073709551615");
        assert_eq!(integer(i64::MIN), "-9223372036854775808");
        assert_eq!(integer(0u8), "0");
    }

    proptest! {
        #[test]
        fn integers_round_trip(signed: i64, unsigned: u64) {
            let text = integer(signed);
            prop_assert_eq!(parse_signed(text.as_bytes(), i64::MIN, i64::MAX), Some(signed));
            prop_assert_eq!(parse_unsigned(integer(unsigned).as_bytes(), u64::MAX), Some(unsigned));
        }

        #[test]
        fn text_keeps_every_bit(bits: u64, value in -1e9f64..1e9) {
            for value in [f64::from_bits(bits), value] {
                let back = parse_double(double(value).as_bytes());
                let same = back.is_some_and(|back| back.to_bits() == value.to_bits());
                prop_assert!(same || value.is_nan());
                let single = value as f32;
                let mut out = Vec::new();
                push_float(&mut out, single);
                let back = parse_float(&out);
                let same = back.is_some_and(|back| back.to_bits() == single.to_bits());
                prop_assert!(same || single.is_nan());
            }
        }

        #[test]
        fn six_digits_stay_six_digits(millionths in -1_000_000_000_000i64..1_000_000_000_000) {
            let value = millionths as f64 / 1e6;
            let (mut six, mut written) = (Vec::new(), Vec::new());
            push_rounded(&mut six, value);
            push_double(&mut written, value);
            prop_assert_eq!(six, written);
        }

        #[test]
        fn any_bytes_parse_or_not(text: Vec<u8>) {
            let _ = (parse_double(&text), parse_float(&text));
            let _ = (parse_unsigned(&text, 9), parse_signed(&text, -9, 9));
        }
    }
}
