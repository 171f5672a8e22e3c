//! gzip streams.

use flate2::{Decompress, FlushDecompress, Status};
use thalweg_codec::gzip::{GzipStream, Part, PartDecompressor, crc};

use super::LIMIT;

/// A header without a name.
const HEADER: [u8; 10] = *b"\x1f\x8b\x08\0\0\0\0\0\0\xff";

/// The text of a stream that comes in parts, up to a defect or the limit, and where the defect is.
fn text(stored: &[u8], part: usize, is_ahead: bool) -> (Vec<u8>, Result<Option<u64>, u64>) {
    let mut stream = GzipStream::default();
    let mut parts = PartDecompressor::default();
    let mut old = Part::default();
    let mut all = Vec::with_capacity(LIMIT);
    for mut part in stored.chunks(part) {
        if is_ahead {
            stream.offer(parts.run(part, LIMIT, old));
        }
        match stream.push(&mut part, &mut all) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => return (all, Err(fault.at)),
        }
        old = stream.take_back().unwrap_or_default();
    }
    let unfinished = stream.unfinished();
    (all, Ok(unfinished))
}

/// Any bytes as a gzip file give the same text and the same defect however they are cut, with parts
/// that were decompressed ahead and without; and as a deflate stream, what zlib makes of it.
///
/// # Panics
/// If that does not hold.
pub fn gzip_stream(data: &[u8]) {
    let whole = text(data, data.len().max(1), false);
    for part in [1, 100, 3000] {
        assert_eq!(text(data, part, true), whole, "parts of {part} bytes");
    }
    let mut inflate = Decompress::new(false);
    let mut plain = Vec::with_capacity(LIMIT);
    let outcome = inflate.decompress_vec(data, &mut plain, FlushDecompress::None);
    let mut member = [&HEADER[..], data].concat();
    if plain.len() == LIMIT {
        let (read, _) = text(&member, member.len(), false);
        assert!(read == plain, "another text than zlib's");
        return;
    }
    if let Ok(Status::StreamEnd) = outcome {
        member.truncate(HEADER.len() + inflate.total_in() as usize);
        member.extend(crc(&plain).sum().to_le_bytes());
        member.extend((plain.len() as u32).to_le_bytes());
        assert_eq!(text(&member, member.len(), false), (plain, Ok(None)));
        return;
    }
    let (read, outcome) = text(&member, member.len(), false);
    assert_ne!(outcome, Ok(None), "zlib finds no end");
    // One of them may give out more of what comes before a defect or a cut.
    let same = read.len().min(plain.len());
    assert!(read[..same] == plain[..same], "another text than zlib's");
}
