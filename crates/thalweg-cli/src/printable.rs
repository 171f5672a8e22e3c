//! Standard output that shows names from files, and does nothing that they say.

use std::io::{self, Write};

use thalweg::text::{escaped_if, is_hidden};

/// The first bytes of characters that may be hidden ([`is_hidden`]), besides ASCII.
const FIRST_BYTES: [u8; 3] = [0xc2, 0xd8, 0xe2];

/// A writer of text that escapes what must not reach a terminal, but for the line breaks and tabs
/// of the text itself. Verbs escape those that stand in names before they write them. In JSON, the
/// escapes stand for the same characters.
#[derive(Debug)]
pub(crate) struct Printable<W: Write> {
    to: W,
    /// The first bytes of a character whose others have not been written yet.
    begun: Vec<u8>,
}

impl<W: Write> Printable<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, begun: Vec::new() }
    }

    /// Writes whole characters. A byte that belongs to none is shown as U+FFFD.
    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        let shown = escaped_if(&text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'));
        self.to.write_all(shown.as_bytes())
    }
}

fn may_be_hidden(byte: u8) -> bool {
    byte < b' ' && byte != b'\n' && byte != b'\t' || byte == 0x7f || FIRST_BYTES.contains(&byte)
}

/// The length of `bytes` without the first bytes of a character that ends later.
fn whole(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(error) => {
            let after = error.valid_up_to() + error.error_len().unwrap_or(1);
            after + bytes.get(after..).map_or(0, whole)
        }
        Ok(_) => bytes.len(),
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_empty() && bytes.is_ascii() && !bytes.iter().any(|&b| may_be_hidden(b)) {
            return self.to.write(bytes);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let end = whole(&all);
        self.begun = all.split_off(end);
        self.text(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.text(&begun)?;
        self.to.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::Printable;

    fn shown(text: &[u8], pieces: usize) -> String {
        let mut out = Vec::new();
        let mut writer = Printable::new(&mut out);
        for piece in text.chunks(pieces) {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn characters_are_escaped_wherever_the_writes_end() {
        let text = "a\tb\n\u{1b}[2J \u{7f} \u{85} µ … \u{202e}é\u{2066} \\ 𝄞 \r";
        for pieces in 1..40 {
            assert_eq!(
                shown(text.as_bytes(), pieces),
                "a\tb\n\\u001b[2J \\u007f \\u0085 µ … \\u202eé\\u2066 \\ 𝄞 \\r"
            );
        }
        // A lone 0x9b is a control sequence for some terminals.
        assert_eq!(shown(b"a\x9b2J\xe2\x80", 3), "a\u{fffd}2J\u{fffd}");
    }

    #[test]
    fn json_says_the_same() {
        let value = serde_json::json!({ "id\u{7f}": "\u{202e}\u{9b}\n\\" });
        let line = shown(value.to_string().as_bytes(), 7);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        assert!(line.is_ascii());
    }
}
