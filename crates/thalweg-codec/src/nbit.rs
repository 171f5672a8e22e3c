//! The filter nbit of HDF5: only the significant bits of each number, packed one after the other,
//! the most significant first. libhdf5's `H5Znbit.c` defines the format.

use crate::Fault;
use crate::bits::Bits;

/// The most levels of types inside each other.
const MOST_LEVELS: usize = 32;

/// The largest number, in bytes.
const MOST_BYTES: usize = 16;

/// The parameters of the filter, from the client data that the file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbitParams {
    /// The elements of a chunk, and how each is packed; `None` if the elements are stored as they
    /// are.
    packed: Option<(usize, Packed)>,
}

/// An element, and its bits in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packed {
    /// Bytes of the element.
    size: usize,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// A number: `precision` bits of it, which begin at the bit `offset`.
    Number { is_big_endian: bool, precision: u32, offset: usize },
    /// All bytes.
    Bytes,
    /// Elements of one form after each other.
    Array(Box<Packed>),
    /// Elements at these offsets.
    Compound(Vec<(usize, Packed)>),
}

impl NbitParams {
    /// Parses the client data: the number of values, whether the elements are stored as they are,
    /// the elements of a chunk, and the form of an element.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn parse(values: &[u32]) -> Result<Self, String> {
        let &[count, as_is, elements, ref form @ ..] = values else {
            return Err(format!("the filter nbit with {} parameters", values.len()));
        };
        if count as usize != values.len() {
            return Err(format!("the filter nbit with {} of {count} parameters", values.len()));
        }
        if as_is != 0 {
            return Ok(Self { packed: None });
        }
        let mut rest = form.iter().map(|&value| value as usize);
        Ok(Self { packed: Some((elements as usize, Packed::parse(&mut rest, 0)?)) })
    }
}

impl Packed {
    /// Parses the form of an element.
    fn parse(rest: &mut impl Iterator<Item = usize>, level: usize) -> Result<Self, String> {
        let mut next = || rest.next().ok_or("the filter nbit with too few parameters".to_owned());
        let class = next()?;
        let size = next()?;
        if level > MOST_LEVELS || size == 0 {
            return Err(format!("the filter nbit for elements of {size} bytes at level {level}"));
        }
        let form = match class {
            1 => {
                let order = next()?;
                let precision = next()?;
                let offset = next()?;
                let bits = size.saturating_mul(8);
                let end = precision.saturating_add(offset);
                if size > MOST_BYTES || precision == 0 || end > bits {
                    return Err(format!(
                        "the filter nbit for numbers of {size} bytes: {precision} bits from bit \
                         {offset} on"
                    ));
                }
                Form::Number { is_big_endian: order == 1, precision: precision as u32, offset }
            }
            2 => {
                let item = Self::parse(rest, level + 1)?;
                if !size.is_multiple_of(item.size) {
                    return Err(format!("the filter nbit for {size} bytes of {}", item.size));
                }
                Form::Array(Box::new(item))
            }
            3 => {
                let count = next()?;
                let mut left = size;
                let mut members = Vec::new();
                for _ in 0..count {
                    let offset =
                        rest.next().ok_or("the filter nbit with too few parameters".to_owned())?;
                    let member = Self::parse(rest, level + 1)?;
                    // Members do not overlap, so the work for an element is that of its bytes.
                    left = match left.checked_sub(member.size) {
                        Some(left) if offset.saturating_add(member.size) <= size => left,
                        _ => return Err("the filter nbit with members outside of it".into()),
                    };
                    members.push((offset, member));
                }
                Form::Compound(members)
            }
            4 => Form::Bytes,
            other => return Err(format!("the filter nbit for the class {other}")),
        };
        Ok(Self { size, form })
    }

    /// Unpacks an element into `out`, which is zero.
    ///
    /// # Errors
    /// A stream that ends too early.
    fn unpack(&self, bits: &mut Bits<'_>, out: &mut [u8]) -> Result<(), Fault> {
        match &self.form {
            Form::Number { is_big_endian, precision, offset } => {
                let bytes = (bits.wide_number(*precision)? << offset).to_le_bytes();
                out.copy_from_slice(&bytes[..self.size]);
                if *is_big_endian {
                    out.reverse();
                }
            }
            Form::Bytes => {
                for byte in out {
                    *byte = bits.number(8)? as u8;
                }
            }
            Form::Array(item) => {
                for out in out.chunks_exact_mut(item.size) {
                    item.unpack(bits, out)?;
                }
            }
            Form::Compound(members) => {
                for (offset, member) in members {
                    member.unpack(bits, &mut out[*offset..offset + member.size])?;
                }
            }
        }
        Ok(())
    }
}

/// Replaces `out` by the elements of a chunk, at most `most` bytes.
///
/// # Errors
/// A stream that ends too early, or a chunk of more than `most` bytes.
pub fn decompress(
    params: &NbitParams,
    coded: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.clear();
    let Some((elements, packed)) = &params.packed else {
        out.extend_from_slice(coded);
        return Ok(());
    };
    let bytes = elements.saturating_mul(packed.size);
    if bytes > most {
        return Err(Fault::new(0, format!("a chunk of {bytes} bytes"), format!("at most {most}")));
    }
    out.resize(bytes, 0);
    let mut bits = Bits::new(coded);
    for element in out.chunks_exact_mut(packed.size) {
        packed.unpack(&mut bits, element).map_err(|_| {
            Fault::new(coded.len(), "the end of the stream", format!("{bytes} bytes of elements"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{NbitParams, decompress};

    fn decoded(values: &[u32], coded: &[u8]) -> Option<Vec<u8>> {
        let mut all = vec![values.len() as u32 + 1];
        all.extend_from_slice(values);
        let mut out = vec![9];
        decompress(&NbitParams::parse(&all).ok()?, coded, 64, &mut out).ok().map(|()| out)
    }

    #[test]
    fn numbers_have_their_bits_at_their_offset() {
        // Three 16-bit integers of 5 bits from bit 3 on: 1, 2 and 31.
        let coded = [0b0000_1000, 0b1011_1110];
        assert_eq!(decoded(&[0, 3, 1, 2, 0, 5, 3], &coded), Some(vec![8, 0, 16, 0, 248, 0]));
        assert_eq!(decoded(&[0, 3, 1, 2, 1, 5, 3], &coded), Some(vec![0, 8, 0, 16, 0, 248]));
        assert_eq!(decoded(&[1, 3, 1, 2, 1, 5, 3], &coded), Some(coded.to_vec()));
    }

    #[test]
    fn arrays_and_records_are_packed_without_padding() {
        // Records of a number of 4 bits at byte 1, and of three bytes as they are.
        let record = [0, 1, 3, 5, 2, 1, 1, 1, 0, 4, 0, 2, 4, 3];
        assert_eq!(decoded(&record, &[0x71, 0x23, 0x45, 0x60]), Some(vec![0, 7, 0x12, 0x34, 0x56]));
        let array = [0, 2, 2, 2, 1, 1, 0, 4, 0];
        assert_eq!(decoded(&array, &[0x12, 0x34]), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn false_parameters_and_short_streams_are_reported() {
        for values in [
            &[0, 1][..],
            &[0, 1, 1, 2, 0, 17, 0],
            &[0, 1, 1, 17, 0, 8, 0],
            &[0, 1, 1, 16, 0, 0, 128],
            &[0, 1, 1, 0, 0, 0, 0],
            &[0, 1, 9, 1],
            &[0, 1, 2, 3, 1, 2, 0, 8, 0],
            &[0, 1, 3, 2, 1, 1, 4, 2],
            &[0, 1, 3, 2, 2, 0, 4, 2, 0, 4, 1],
            &[0, 65, 4, 1],
            &[0, 2, 4, 1],
        ] {
            assert_eq!(decoded(values, &[0]), None, "{values:?}");
        }
        assert!(NbitParams::parse(&[5, 0, 1, 4, 1, 7]).is_err());
    }
}
