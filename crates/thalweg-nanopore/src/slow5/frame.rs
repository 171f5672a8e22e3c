//! The framing of records: a size before each record in BLOW5, a newline after each row in SLOW5.

use std::ops::Range;

use thalweg_io::Fault;

use super::{Encoding, quoted};

/// The last bytes of the file, in place of a record's size (section "BLOW5 end of file").
const END_MARKER: &[u8; 5] = b"5WOLB";

/// Bytes of the size before a record (section "BLOW5 record"). The size does not include them.
const SIZE_BYTES: usize = 8;

/// First guess at the size of a row of text, which is not stored.
const FIRST_ROW_BYTES: usize = 1 << 16;

/// Advice for a file whose end is damaged.
const SALVAGE: &str = "`thalweg check --salvage` saves the intact records";

/// A part of the data of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A record.
    Record {
        /// The range of the stored record in the given bytes.
        stored: Range<usize>,
        /// The number of bytes to the next frame, which is the record's size in an index.
        len: usize,
    },
    /// The proper end of the file.
    End,
    /// More bytes are needed: at least this many from the same place.
    NeedMore(usize),
}

/// The framing of the records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing(Encoding);

impl Framing {
    /// The framing of an encoding.
    pub const fn new(encoding: Encoding) -> Self {
        Self(encoding)
    }

    /// The frame at the start of `bytes`. The file has `remaining` bytes from there on.
    ///
    /// # Errors
    ///
    /// When the file ends inside a record or without its end marker, or when bytes follow the
    /// marker.
    pub fn next(self, bytes: &[u8], remaining: u64) -> Result<Frame, Fault> {
        match self.0 {
            Encoding::Binary => binary(bytes, remaining),
            Encoding::Ascii => row(bytes, remaining),
        }
    }

    /// Appends a stored record with the size before it, or a row with the newline after it.
    pub fn push(self, stored: &[u8], out: &mut Vec<u8>) {
        match self.0 {
            Encoding::Binary => {
                out.extend((stored.len() as u64).to_le_bytes());
                out.extend(stored);
            }
            Encoding::Ascii => {
                out.extend(stored);
                out.push(b'\n');
            }
        }
    }

    /// The end marker after the last record of a file; empty for text.
    pub const fn end_marker(self) -> &'static [u8] {
        match self.0 {
            Encoding::Binary => END_MARKER,
            Encoding::Ascii => &[],
        }
    }
}

fn damaged(found: impl Into<String>, expected: &str) -> Fault {
    Fault::new(0, found.into(), format!("{expected}; the file is damaged or truncated; {SALVAGE}"))
}

fn binary(bytes: &[u8], remaining: u64) -> Result<Frame, Fault> {
    // Ignores bytes beyond the end of the file.
    let bytes = usize::try_from(remaining)
        .ok()
        .and_then(|remaining| bytes.get(..remaining))
        .unwrap_or(bytes);
    if remaining < SIZE_BYTES as u64 {
        return if remaining > bytes.len() as u64 {
            Ok(Frame::NeedMore(remaining as usize))
        } else if bytes == END_MARKER {
            Ok(Frame::End)
        } else {
            let found =
                if bytes.is_empty() { String::from("the end of the file") } else { quoted(bytes) };
            Err(damaged(found, "a record or the end marker \"5WOLB\""))
        };
    }
    let Some((size, _)) = bytes.split_first_chunk::<SIZE_BYTES>() else {
        return Ok(Frame::NeedMore(SIZE_BYTES));
    };
    if size.starts_with(END_MARKER) {
        let after = remaining - END_MARKER.len() as u64;
        return Err(damaged(
            format!("{after} bytes after the end marker"),
            "the end of the file after \"5WOLB\"",
        ));
    }
    let size = u64::from_le_bytes(*size);
    let room = remaining - SIZE_BYTES as u64;
    let too_large = || {
        damaged(
            format!("a record of {size} bytes"),
            &format!("at most the {room} bytes of the file"),
        )
    };
    if size > room {
        return Err(too_large());
    }
    let len = usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(SIZE_BYTES))
        .ok_or_else(too_large)?;
    Ok(if len > bytes.len() {
        Frame::NeedMore(len)
    } else {
        Frame::Record { stored: SIZE_BYTES..len, len }
    })
}

fn row(bytes: &[u8], remaining: u64) -> Result<Frame, Fault> {
    let bytes = usize::try_from(remaining)
        .ok()
        .and_then(|remaining| bytes.get(..remaining))
        .unwrap_or(bytes);
    if remaining == 0 {
        return Ok(Frame::End);
    }
    if let Some(end) = bytes.iter().position(|&b| b == b'\n') {
        return Ok(Frame::Record { stored: 0..end, len: end + 1 });
    }
    if bytes.len() as u64 == remaining {
        let tail =
            bytes.get(bytes.len().saturating_sub(crate::record::QUOTED_BYTES)..).unwrap_or(bytes);
        return Err(damaged(
            format!("{} at the end of the file", quoted(tail)),
            "a newline after the last row",
        ));
    }
    let wanted = bytes.len().saturating_mul(2).max(FIRST_ROW_BYTES);
    Ok(Frame::NeedMore(
        usize::try_from(remaining).map_or(wanted, |remaining| wanted.min(remaining)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(bytes: &[u8]) -> Result<Frame, Fault> {
        Framing::new(Encoding::Binary).next(bytes, bytes.len() as u64)
    }

    #[test]
    fn records_and_the_end() {
        let file = b"\x03\0\0\0\0\0\0\0abc5WOLB";
        assert_eq!(frame(file), Ok(Frame::Record { stored: 8..11, len: 11 }));
        assert_eq!(frame(b"5WOLB"), Ok(Frame::End));
        let binary = Framing::new(Encoding::Binary);
        assert_eq!(binary.next(b"", 5), Ok(Frame::NeedMore(5)));
        assert_eq!(binary.next(b"\x03\0\0", 16), Ok(Frame::NeedMore(8)));
        assert_eq!(binary.next(b"\x03\0\0\0\0\0\0\0", 16), Ok(Frame::NeedMore(11)));
    }

    #[test]
    fn damage_is_named() {
        let cases: [&[u8]; 9] = [
            b"",
            b"5WOL",
            b"5WOfB",
            b"5WOLB\0",
            b"5WOLB\0\0\0",
            b"5WOLB and much more after it",
            b"\x03\0\0\0\0\0\0\0ab",
            b"\xff\xff\xff\xff\xff\xff\xff\xff5WOLB",
            b"\x03\0\0\0\0\0",
        ];
        for bytes in cases {
            let fault = frame(bytes);
            assert!(
                fault.as_ref().is_err_and(|f| f.expected.contains("--salvage")),
                "{bytes:?}: {fault:?}"
            );
        }
        // A huge size is accepted if the file is large enough, even if no memory could hold it.
        let binary = Framing::new(Encoding::Binary);
        assert!(binary.next(&u64::MAX.to_le_bytes(), u64::MAX).is_err());
        assert!(binary.next(&(u64::MAX - 9).to_le_bytes(), u64::MAX).is_ok());
    }

    #[test]
    fn rows_end_with_a_newline() {
        let ascii = Framing::new(Encoding::Ascii);
        assert_eq!(ascii.next(b"a\tb\nc", 5), Ok(Frame::Record { stored: 0..3, len: 4 }));
        assert_eq!(ascii.next(b"", 0), Ok(Frame::End));
        assert_eq!(ascii.next(b"abc", 9), Ok(Frame::NeedMore(9)));
        assert_eq!(ascii.next(b"abc", 1 << 30), Ok(Frame::NeedMore(FIRST_ROW_BYTES)));
        assert!(ascii.next(b"abc", 3).is_err());
    }

    proptest! {
        #[test]
        fn frames_stay_inside(bytes: Vec<u8>, more: u64, ascii: bool) {
            let framing = Framing::new(if ascii { Encoding::Ascii } else { Encoding::Binary });
            let remaining = (bytes.len() as u64).saturating_add(more);
            match framing.next(&bytes, remaining) {
                Ok(Frame::Record { stored, len }) => {
                    prop_assert!(stored.end <= len && len <= bytes.len());
                }
                Ok(Frame::NeedMore(needed)) => {
                    prop_assert!(needed > bytes.len() && needed as u64 <= remaining);
                }
                Ok(Frame::End) => prop_assert!(remaining == 0 || bytes == END_MARKER),
                Err(_) => {}
            }
        }
    }
}
