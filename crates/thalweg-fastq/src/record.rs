//! Records of four lines, and how they are told apart in text that may start anywhere.
//!
//! A FASTQ record is a line `@name description`, a line of bases, a line that starts with `+`, and
//! a line with a quality for each base (Cock et al. 2010, doi:10.1093/nar/gkp1137). Sequences over
//! several lines, which that description allows, are refused: the files of today's instruments have
//! none, and without them the start of a record can be found from any place of a file.

use std::borrow::Cow;

use memchr::memchr;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The first line without its `@`, in UTF-8.
    pub title: &'a str,
    /// The bases: letters, and `*`, `-`, `.`, `=`.
    pub sequence: &'a [u8],
    /// The qualities: printable ASCII, each 33 more than the Phred quality of its base.
    pub qualities: &'a [u8],
}

impl<'a> Record<'a> {
    /// The name: the title up to the first space or tab.
    pub fn name(&self) -> &'a str {
        self.parts().0
    }

    /// What follows the name in the title, if anything.
    pub fn description(&self) -> Option<&'a str> {
        self.parts().1
    }

    /// Appends the four lines of the record, with `+` alone on the third.
    pub(crate) fn append(&self, text: &mut Vec<u8>) {
        let parts: [&[u8]; 7] =
            [b"@", self.title.as_bytes(), b"\n", self.sequence, b"\n+\n", self.qualities, b"\n"];
        parts.iter().for_each(|part| text.extend_from_slice(part));
    }

    pub(crate) fn parts(&self) -> (&'a str, Option<&'a str>) {
        match self.title.split_once([' ', '\t']) {
            Some((name, description)) => (name, Some(description)),
            None => (self.title, None),
        }
    }
}

/// A defect of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defect {
    /// The offset of the line with the defect, from the record's start.
    pub(crate) at: usize,
    pub(crate) found: Cow<'static, str>,
    pub(crate) expected: &'static str,
}

/// The start of some text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A record, and the bytes of its lines.
    Record(Record<'a>, usize),
    /// A part of a record.
    Partial,
}

/// The first record of `text`. If `is_last`, it ends with the text, and its last line needs no end.
pub(crate) fn parse(text: &[u8], is_last: bool) -> Result<Parsed<'_>, Defect> {
    let mut lines = Lines { text, at: 0, is_last };
    // The first byte shows a file of another kind before its first line ends.
    if !text.is_empty() && text[0] != b'@' {
        return Err(not_a_title(text));
    }
    let Some((_, title)) = lines.next() else { return partial(&lines, "a title") };
    let Some((at, sequence)) = lines.next() else { return partial(&lines, "a sequence") };
    check_sequence(at, sequence)?;
    if let Some(&first) = text.get(lines.at)
        && first != b'+'
    {
        let defect = |found| Defect { at: lines.at, found, expected: "a line that starts with +" };
        return Err(defect(match first {
            b'@' => "the next record".into(),
            first if is_base(first) => "a second line of the sequence".into(),
            first => shown(&[first]),
        }));
    }
    let Some((at, plus)) = lines.next() else { return partial(&lines, "a line +") };
    if plus.len() > 1 && plus[1..] != title[1..] {
        let expected = "the title of the record, or nothing";
        return Err(Defect { at, found: shown(&plus[..plus.len().min(SHOWN)]), expected });
    }
    if sequence.is_empty() && is_last && !text[..lines.at].ends_with(b"\n") {
        return partial(&lines, "qualities");
    }
    // The sequence says where the line of qualities ends.
    let (at, bases) = (lines.at, sequence.len());
    let rest = &text[at..];
    let used = match rest.get(bases) {
        Some(b'\n') => at + bases + 1,
        None if is_last && rest.len() == bases => text.len(),
        None if !is_last => return Ok(Parsed::Partial),
        _ => return Err(other_length(at, rest, bases)),
    };
    let qualities = &rest[..bases];
    check_qualities(at, rest, bases)?;
    let title = std::str::from_utf8(&title[1..]).ok().filter(|title| !title.contains(is_control));
    let title = title.ok_or_else(|| Defect {
        at: 0,
        found: "bytes that are no text".into(),
        expected: "a title in UTF-8 without control characters",
    })?;
    Ok(Parsed::Record(Record { title, sequence, qualities }, used))
}

/// Bytes of a line that are shown in messages.
const SHOWN: usize = 20;

fn shown(bytes: &[u8]) -> Cow<'static, str> {
    format!("\"{}\"", bytes.escape_ascii()).into()
}

fn not_a_title(text: &[u8]) -> Defect {
    let found = match text[0] {
        b'\n' => "an empty line".into(),
        b'\r' => CARRIAGE_RETURN.into(),
        b'>' => "> as in FASTA".into(),
        _ => shown(&text[..text.len().min(SHOWN)]),
    };
    Defect { at: 0, found, expected: "a title, which starts with @" }
}

const CARRIAGE_RETURN: &str = "a carriage return, as in files of Windows";

/// The state at the end of text that ends inside of a record.
fn partial<'a>(lines: &Lines<'a>, missing: &'static str) -> Result<Parsed<'a>, Defect> {
    if !lines.is_last {
        return Ok(Parsed::Partial);
    }
    Err(Defect {
        at: lines.at,
        found: "the end of the file, or another record".into(),
        expected: missing,
    })
}

/// A control character other than a tab.
fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}

struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    is_last: bool,
}

impl<'a> Lines<'a> {
    /// The next line, without its end, and where it starts.
    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let start = self.at;
        let rest = &self.text[start..];
        let len = match memchr(b'\n', rest) {
            Some(len) => len,
            None if self.is_last && !rest.is_empty() => rest.len(),
            None => return None,
        };
        self.at = (start + len + 1).min(self.text.len());
        Some((start, &rest[..len]))
    }
}

fn is_base(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'*' | b'-' | b'.' | b'=')
}

fn check_sequence(at: usize, sequence: &[u8]) -> Result<(), Defect> {
    // Without an early end, so that many bytes are compared at a time. Nearly all are letters.
    let is_letter = |byte: &u8| (byte | 0x20).wrapping_sub(b'a') < 26;
    if sequence.iter().fold(true, |all, byte| all & is_letter(byte)) {
        return Ok(());
    }
    let Some(place) = sequence.iter().position(|&byte| !is_base(byte)) else { return Ok(()) };
    let found = match sequence[place] {
        b'\r' => CARRIAGE_RETURN.into(),
        byte => shown(&[byte]),
    };
    Err(Defect { at: at + place, found, expected: "bases: letters, * - . =" })
}

/// The defect of a line of qualities that is not as long as the sequence.
fn other_length(at: usize, rest: &[u8], bases: usize) -> Defect {
    let found = match memchr(b'\n', &rest[..rest.len().min(bases)]) {
        Some(len) => format!("{len} qualities for {bases} bases").into(),
        None if rest.len() <= bases => format!("{} qualities for {bases} bases", rest.len()).into(),
        None if rest[bases] == b'\r' => CARRIAGE_RETURN.into(),
        None => format!("more than {bases} qualities for {bases} bases").into(),
    };
    Defect { at, found, expected: "a quality for each base" }
}

fn check_qualities(at: usize, rest: &[u8], bases: usize) -> Result<(), Defect> {
    let qualities = &rest[..bases];
    let is_quality = |byte: &u8| byte.is_ascii_graphic();
    if qualities.iter().fold(true, |all, byte| all & is_quality(byte)) {
        return Ok(());
    }
    let place = qualities.iter().position(|byte| !is_quality(byte)).unwrap_or(0);
    if qualities[place] == b'\n' {
        return Err(other_length(at, rest, bases));
    }
    let found = shown(&qualities[place..=place]);
    Err(Defect { at: at + place, found, expected: "a quality, from ! to ~" })
}

/// Where the first record starts in text that may start anywhere. `None` if the text is too short
/// to tell.
///
/// A line that starts with `@`, two lines before one that starts with `+`, is a title: two lines
/// after a quality line is a sequence, which never starts with `+`, and no other line starts with
/// `@`. In text that is not FASTQ this finds a wrong place or none; then the record that comes
/// before does not end there.
pub(crate) fn first_start(text: &[u8]) -> Option<usize> {
    let next = |at: usize| memchr(b'\n', text.get(at..)?).map(|len| at + len + 1);
    let mut line = next(0)?;
    let mut second = next(line)?;
    loop {
        let third = next(second)?;
        if text[line] == b'@' && *text.get(third)? == b'+' {
            return Some(line);
        }
        (line, second) = (second, third);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(text: &str) -> (usize, String) {
        let defect = parse(text.as_bytes(), true).err();
        defect.map_or((0, "none".into()), |d| (d.at, format!("{}; {}", d.found, d.expected)))
    }

    #[test]
    fn a_record_has_four_lines() {
        let text = b"@r1 of a test\nACGT\n+\n!@+~\n@r2\n";
        let record = Record { title: "r1 of a test", sequence: b"ACGT", qualities: b"!@+~" };
        assert_eq!(parse(text, false), Ok(Parsed::Record(record, 26)));
        assert_eq!((record.name(), record.description()), ("r1", Some("of a test")));
        let bare = Record { title: "r2", sequence: b"", qualities: b"" };
        assert_eq!(parse(b"@r2\n\n+r2\n\n", false), Ok(Parsed::Record(bare, 10)));
        assert_eq!((bare.name(), bare.description()), ("r2", None));
        for cut in 0..25 {
            assert_eq!(parse(&text[..cut], false), Ok(Parsed::Partial), "{cut}");
            // Only the end of the last line may be missing.
            assert!(parse(&text[..cut], true).is_err(), "{cut}");
        }
        assert_eq!(parse(&text[..25], true), Ok(Parsed::Record(record, 25)));
        assert!(parse(b"@r2\n\n+", true).is_err() && parse(b"@r2\n\n+\n", true).is_ok());
    }

    #[test]
    fn defects_say_where_and_what() {
        for (text, at, words) in [
            (">r\nAC\n", 0, "> as in FASTA"),
            ("\n@r\n", 0, "an empty line"),
            ("#slow5_version", 0, "#slow5_version"),
            ("@r\nAC\nGT\n+\nIIII\n", 6, "second line of the sequence"),
            ("@r\nAC\n@r2\n", 6, "the next record"),
            ("@r\nAC\n+\nIII\n", 8, "more than 2 qualities"),
            ("@r\nACG\n+\nII\n@r2\n", 9, "2 qualities for 3 bases"),
            ("@r\nAC\n+\nIIIIIIIII", 8, "more than 2 qualities"),
            ("@r\nAC\n+\nI\n", 8, "1 qualities for 2 bases"),
            ("@r\nAC\n+q\nII\n", 6, "+q"),
            ("@r\nA C\n+\nIII\n", 4, "\" \"; bases"),
            ("@r\nA\0\n+\nII\n", 4, "\\x00"),
            ("@r\nAC\n+\nI \n", 9, "\" \"; a quality"),
            ("@r\r\nAC\r\n+\r\nII\r\n", 6, "carriage return"),
            ("@r\nAC\n+\nII\r\n", 8, "carriage return"),
            ("@r\x07\nAC\n+\nII\n", 0, "no text"),
        ] {
            let (place, message) = defect(text);
            assert!(place == at && message.contains(words), "{text:?}: {place} {message}");
        }
        assert!(parse(b"@\xff\nA\n+\nI\n", true).is_err());
    }

    #[test]
    fn the_first_start_is_found_in_any_part_of_a_file() {
        let records =
            ["@r1\nACGT\n+\n@@@@\n", "@r2\n\n+\n\n", "@r3\nA\n+r3\n+\n", "@r4 x\nAC\n+\n@+\n"];
        let text = records.repeat(5).concat();
        let ends = records.repeat(5).into_iter().scan(0, |end, record| {
            *end += record.len();
            Some(*end)
        });
        let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        for from in 0..text.len() {
            for to in from..text.len() {
                // The first start after the byte at which the part begins.
                let expected = starts.iter().copied().find(|&start| start > from);
                if let Some(found) = first_start(&text.as_bytes()[from..to]) {
                    assert_eq!(Some(from + found), expected, "{from}..{to}");
                }
            }
        }
        assert!(first_start(text.as_bytes()).is_some());
    }
}
