//! Text from files on its way to people: names, ids and attributes may hold characters that move a
//! cursor, turn the writing direction, or end a line.
//!
//! The escapes are those of JSON strings: `\n`, `\r`, `\t`, and `\u` with four digits. Every
//! character that is escaped has such a form.
//!
//! ```
//! use thalweg_io::text::{Shown, escaped, unescaped};
//!
//! let id = "read\n1\u{202e}\u{1b}[2J C:\\";
//! assert_eq!(escaped(id), r"read\n1\u202e\u001b[2J C:\\");
//! assert_eq!(unescaped(&escaped(id)), id);
//! assert_eq!(Shown(id).to_string(), r"read\n1\u202e\u001b[2J C:\");
//! ```

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// Whether a character must not reach a terminal as it is: it is a control character, ends a line,
/// or turns the direction of writing.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Writes `text` and escapes the characters that `must` chooses.
fn write_escaped(out: &mut impl Write, text: &str, must: impl Fn(char) -> bool) -> fmt::Result {
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|&(_, c)| must(c)) {
        let (before, after) = rest.split_at(at);
        out.write_str(before)?;
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            other => write!(out, "\\u{:04x}", u32::from(other))?,
        }
        rest = after.get(c.len_utf8()..).unwrap_or_default();
    }
    out.write_str(rest)
}

/// `text` as one cell of a table or one line of a list. [`unescaped`] gives the text back, because
/// a backslash is escaped, too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_if(text, |c| c == '\\' || is_hidden(c))
}

/// `text` with the characters escaped that `must` chooses among those of [`is_hidden`] and the
/// backslash.
pub fn escaped_if(text: &str, must: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&must) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    // Writing to a string cannot fail.
    let _ = write_escaped(&mut out, text, must);
    Cow::Owned(out)
}

/// The text of which [`escaped`] made `text`. A backslash that begins no escape stands for itself.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (c, len) = escape(after).unwrap_or(('\\', 0));
        out.push(c);
        rest = after.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character that an escape stands for, and the length of the escape after its backslash.
fn escape(after: &str) -> Option<(char, usize)> {
    match after.as_bytes().first()? {
        b'n' => Some(('\n', 1)),
        b'r' => Some(('\r', 1)),
        b't' => Some(('\t', 1)),
        b'\\' => Some(('\\', 1)),
        b'u' => {
            let digits = after.get(1..5).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
            Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, 5))
        }
        _ => None,
    }
}

/// A text in a message: it is displayed with all characters escaped that must not reach a terminal.
/// Backslashes stay, so that a message may hold text that is escaped already.
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_escaped(self.0, text, is_hidden)
    }
}

/// Parses a size with a unit. B, kB, MB and GB are powers of ten, and KiB, MiB and GiB are powers
/// of two.
///
/// ```
/// use thalweg_io::text::parse_bytes;
///
/// assert_eq!(parse_bytes("1.5 kB"), Ok(1500));
/// assert_eq!(parse_bytes("192MiB"), Ok(192 << 20));
/// assert!(parse_bytes("3 parsec").is_err());
/// ```
///
/// # Errors
/// What is wrong with the text, in words.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(format!("{text:?} is not a size, as in 20GB"));
    }
    let factor = match unit.trim() {
        "" | "B" => 1.0,
        "k" | "kB" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "KiB" | "Ki" => 1024.0,
        "MiB" | "Mi" => 1_048_576.0,
        "GiB" | "Gi" => 1_073_741_824.0,
        other => return Err(format!("unknown unit {other:?}; use kB, MB, GB, KiB, MiB or GiB")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size"))?;
    Ok((number * factor) as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::{Shown, escaped, is_hidden, unescaped};

    proptest! {
        #[test]
        fn unescaping_gives_the_text_back(text in r"(\PC|\pC|[\\nrtu0-9a-f]){0,40}") {
            let shown = escaped(&text);
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
            prop_assert_eq!(unescaped(&shown), text.as_str());
            prop_assert!(!Shown(&text).to_string().contains(is_hidden));
            prop_assert_eq!(Shown(&shown).to_string(), shown.as_ref());
        }

        #[test]
        fn any_text_is_unescaped(text in r"[\\nrtu0-9a-fé]{0,40}") {
            let _ = unescaped(&text);
        }
    }

    #[test]
    fn every_hidden_character_has_an_escape_and_comes_back() {
        for c in ('\0'..=char::MAX).filter(|&c| is_hidden(c)) {
            let text = format!("a{c}b");
            assert_eq!(unescaped(&escaped(&text)), text);
            // The escape is one of JSON.
            assert!(u32::from(c) <= 0xffff);
        }
        assert_eq!(unescaped(r"C:\dir\u12 \ud800 \"), r"C:\dir\u12 \ud800 \");
    }
}
