//! Read ids: 16 bytes in POD5, text in the other formats (RFC 9562, section 4).

/// Bytes of a read id.
pub(crate) const UUID_BYTES: usize = 16;

/// Bytes of a read id's text.
pub(crate) const UUID_TEXT: usize = 36;

/// The text has a hyphen before each of these bytes.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

/// Replaces `out` by the text of an id, in lower case.
pub fn format_uuid(id: &[u8; UUID_BYTES], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.clear();
    for (i, byte) in id.iter().enumerate() {
        if HYPHENS.contains(&i) {
            out.push('-');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Parses the text of an id: 32 hexadecimal digits in upper or lower case, with hyphens. Returns
/// `None` for other text.
pub(crate) fn parse_uuid(text: &str) -> Option<[u8; UUID_BYTES]> {
    let text: &[u8; UUID_TEXT] = text.as_bytes().try_into().ok()?;
    let mut id = [0; UUID_BYTES];
    let mut at = 0;
    for (i, byte) in id.iter_mut().enumerate() {
        if HYPHENS.contains(&i) {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        let digit = |at: usize| char::from(text[at]).to_digit(16);
        *byte = (digit(at)? << 4 | digit(at + 1)?) as u8;
        at += 2;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_no_uuid() {
        for text in [
            "",
            "3f9e41c2160a4fcfb1f38b725c497eaf",
            "3f9e41c2-160a-4fcf-b1f3-8b725c497eag",
            "3f9e41c2+160a-4fcf-b1f3-8b725c497eaf",
        ] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_stands_for_its_id(id in any::<[u8; UUID_BYTES]>()) {
            let mut text = String::new();
            format_uuid(&id, &mut text);
            prop_assert_eq!(parse_uuid(&text), Some(id));
            prop_assert_eq!(parse_uuid(&text.to_uppercase()), Some(id));
        }
    }
}
