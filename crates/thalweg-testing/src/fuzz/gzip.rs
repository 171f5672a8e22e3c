//! gzip streams.

use libdeflater::Decompressor;
use thalweg_codec::gzip::{GzipStream, Part, PartDecompressor};

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
/// that were decompressed ahead and without; and as a deflate stream, what libdeflate makes of it.
/// (zlib-rs 0.6 takes matches that reach beyond the start of a stream, and gives zeros.)
///
/// # Panics
/// If that does not hold.
pub fn gzip_stream(data: &[u8]) {
    let whole = text(data, data.len().max(1), false);
    // Parts of a byte have no blocks.
    for (part, is_ahead) in [(1, false), (3000, true)] {
        assert_eq!(text(data, part, is_ahead), whole, "parts of {part} bytes");
    }
    let mut plain = vec![0; LIMIT];
    if let Ok(len) = Decompressor::new().deflate_decompress(data, &mut plain) {
        let member = [&HEADER[..], data].concat();
        let (read, _) = text(&member, member.len(), false);
        // libdeflate goes on where the last code is not whole, and where a length or a distance has
        // a code that no stream may have (286, 287, 30, 31).
        assert!(plain[..len].starts_with(&read), "another text than libdeflate's");
    }
}
