//! LZF, as liblzf 3.6 writes it: literals and matches of up to 264 bytes within the last 8 KiB.

use super::copy_match;
use crate::Fault;

/// Replaces `out` by the decoded bytes of a stream, at most `most`.
///
/// # Errors
/// A stream that ends too early, has a match that starts before the output, or decodes to more than
/// `most` bytes.
pub fn decompress(coded: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    let mut rest = coded;
    while let Some((&control, after)) = rest.split_first() {
        let at = coded.len() - rest.len();
        let short = || Fault::new(at, "the end of the stream", "the rest of what starts here");
        rest = after;
        if control < 32 {
            let (literals, after) =
                rest.split_at_checked(usize::from(control) + 1).ok_or_else(short)?;
            rest = after;
            out.extend_from_slice(literals);
        } else {
            let mut len = usize::from(control >> 5) + 2;
            if len == 9 {
                let (&more, after) = rest.split_first().ok_or_else(short)?;
                rest = after;
                len += usize::from(more);
            }
            let (&low, after) = rest.split_first().ok_or_else(short)?;
            rest = after;
            let distance = (usize::from(control & 31) << 8 | usize::from(low)) + 1;
            copy_match(out, distance, len, at)?;
        }
        if out.len() > most {
            return Err(Fault::new(
                at,
                format!("more than {most} bytes"),
                format!("at most {most}"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::decompress;

    fn decoded(coded: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = vec![9];
        decompress(coded, most, &mut out).ok().map(|()| out)
    }

    #[test]
    fn literals_and_matches_decode() {
        assert_eq!(decoded(&[], 0).unwrap_or_default(), b"");
        assert_eq!(decoded(&[2, b'a', b'b', b'c'], 3).unwrap_or_default(), b"abc");
        // A match of three bytes at distance 1: a run.
        assert_eq!(decoded(&[0, b'a', 0x20, 0], 4).unwrap_or_default(), b"aaaa");
        // A match of 9 + 5 bytes at distance 2.
        assert_eq!(
            decoded(&[1, b'a', b'b', 0xe0, 5, 1], 16).unwrap_or_default(),
            b"abababababababab"
        );
    }

    #[test]
    fn streams_with_false_sizes_are_reported() {
        for coded in [&[5, 1, 2][..], &[0x20], &[0xe0, 1], &[0, 1, 0x20, 1], &[0x20, 0]] {
            assert!(decoded(coded, 100).is_none(), "{coded:?}");
        }
        assert!(decoded(&[0, b'a', 0xe0, 255, 0], 264).is_none());
        assert_eq!(decoded(&[0, b'a', 0xe0, 255, 0], 265).map(|out| out.len()), Some(265));
    }
}
