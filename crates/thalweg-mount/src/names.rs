//! Names of files for the keys of objects.
//!
//! The part of a key between two `/` is the name of a file or folder, if a file system takes it.
//! Other parts are escaped: `%~`, and then the part with each unusual byte as `%` and two
//! hexadecimal digits. Parts that begin with `%~` are escaped, too, so that each name belongs to
//! one part.

use std::borrow::Cow;

/// How escaped names begin.
const ESCAPE: &str = "%~";
/// The longest name of Linux in bytes (`NAME_MAX`).
const MOST: usize = 255;

/// The name of the file for a part of a key. `None` if it is too long for one.
pub(crate) fn name(part: &str) -> Option<Cow<'_, str>> {
    let is_unusual =
        matches!(part, "" | "." | "..") || part.contains('\0') || part.starts_with(ESCAPE);
    let name = if is_unusual { escaped(part).into() } else { Cow::from(part) };
    (name.len() <= MOST).then_some(name)
}

/// An escaped name for a part of a key, whether it needs one or not. The object `a` beside the
/// folder `a` has one.
pub(crate) fn escaped(part: &str) -> String {
    let mut name = ESCAPE.to_owned();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

/// The part of a key that a name is for. `None` if it is for none.
pub(crate) fn part(name: &str) -> Option<Cow<'_, str>> {
    let Some(rest) = name.strip_prefix(ESCAPE) else { return Some(name.into()) };
    let part = unescaped(rest)?;
    // No other spelling of an escaped name is a name.
    (escaped(&part) == name).then_some(part.into())
}

/// A text without escapes, each of which is `%` and two hexadecimal digits.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unusual_parts_are_escaped() {
        assert_eq!(name("reads.blow5").as_deref(), Some("reads.blow5"));
        assert_eq!(name("50%~").as_deref(), Some("50%~"));
        assert_eq!(name("").as_deref(), Some("%~"));
        assert_eq!(name("..").as_deref(), Some("%~%2E%2E"));
        assert_eq!(name("%~a").as_deref(), Some("%~%25%7Ea"));
        assert_eq!(name("a\0b").as_deref(), Some("%~a%00b"));
        assert_eq!(name(&"x".repeat(256)), None);
        assert_eq!(part("%~a").as_deref(), Some("a"), "the object beside a folder");
        for wrong in ["%~a%2", "%~%zz", "%~%2e", "%~.", "%~%FF"] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_for_one_part(given in "[%~./a\0é]{0,6}") {
            let name = name(&given).unwrap_or_default().into_owned();
            let part_of = |name: &str| part(name).unwrap_or_default().into_owned();
            prop_assert_eq!(part_of(&name), &*given);
            prop_assert!(!name.contains('\0') && !matches!(&*name, "" | "." | ".."));
            prop_assert_eq!(part_of(&escaped(&given)), given);
        }
    }
}
