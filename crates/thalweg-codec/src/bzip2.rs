//! bzip2 streams (HDF5's filter 307).

use std::io::Read;

use bzip2::read::BzDecoder;

use crate::Fault;

/// Replaces `out` by the decoded bytes of the stream in `coded`, at most `most`.
///
/// # Errors
/// A stream that is malformed or cut, or decodes to more than `most` bytes.
pub fn decompress(coded: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    let limit = (most as u64).saturating_add(1);
    let decoded = BzDecoder::new(coded).take(limit).read_to_end(out);
    decoded
        .map_err(|error| Fault::new(0, format!("bzip2 data with: {error}"), "a whole stream"))?;
    if out.len() > most {
        return Err(Fault::new(0, format!("more than {most} bytes"), format!("at most {most}")));
    }
    Ok(())
}
