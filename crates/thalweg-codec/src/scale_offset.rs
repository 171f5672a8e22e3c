//! The filter scale-offset of HDF5: integers, or floating-point numbers in decimal steps, as the
//! differences to their minimum, with as few bits as the largest difference takes. libhdf5's
//! `H5Zscaleoffset.c` defines the format.

use crate::Fault;
use crate::bits::Bits;

/// Bytes before the differences: their number of bits, the size of the minimum, and the minimum.
const HEAD: usize = 21;

/// The parameters of the filter, from the client data that the file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleOffsetParams {
    /// The elements of a chunk.
    elements: usize,
    /// Bytes of an element.
    size: usize,
    is_big_endian: bool,
    kind: Kind,
    /// The value of elements whose difference has all bits set, if there is one.
    fill: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Integers. The filter wraps, so that a sign makes no difference.
    Integer,
    /// Integers that the filter leaves as they are.
    AsIs,
    /// Floating-point numbers, which are multiples of 10 to the power of minus this.
    Float(i32),
}

impl ScaleOffsetParams {
    /// Parses the client data.
    ///
    /// # Errors
    /// A description of what is wrong or not supported.
    pub fn parse(values: &[u32]) -> Result<Self, String> {
        let &[scale, factor, elements, class, size, _sign, order, has_fill, ref fill @ ..] = values
        else {
            return Err(format!("the filter scale-offset with {} parameters", values.len()));
        };
        let factor = factor.cast_signed();
        let size = size as usize;
        let bits = size.saturating_mul(8);
        let kind = match (scale, class, size) {
            (2, 0, 1 | 2 | 4 | 8) if factor >= 0 && factor.unsigned_abs() as usize == bits => {
                Kind::AsIs
            }
            (2, 0, 1 | 2 | 4 | 8) if (factor as usize) < bits || factor < 0 => Kind::Integer,
            (0, 1, 4 | 8) => Kind::Float(factor),
            _ => {
                return Err(format!(
                    "the filter scale-offset of the kind {scale} for class {class} in {size} bytes"
                ));
            }
        };
        let word = |place: usize| u64::from(fill.get(place).copied().unwrap_or(0));
        let fill = (has_fill == 1).then(|| word(0) | word(1) << 32);
        let is_big_endian = order == 1;
        Ok(Self { elements: elements as usize, size, is_big_endian, kind, fill })
    }

    /// The element for a difference of `bits` bits to the minimum.
    fn element(&self, difference: u64, bits: u32, least: u64) -> u64 {
        if let Some(fill) = self.fill.filter(|_| difference == (1 << bits) - 1) {
            return fill;
        }
        match (self.kind, self.size) {
            (Kind::Float(digits), 4) => {
                let least = f32::from_bits(least as u32);
                let steps = difference as u32 as i32 as f32;
                (steps / 10f32.powf(digits as f32) + least).to_bits().into()
            }
            (Kind::Float(digits), _) => {
                let steps = difference.cast_signed() as f64;
                (steps / 10f64.powf(digits.into()) + f64::from_bits(least)).to_bits()
            }
            _ => difference.wrapping_add(least),
        }
    }
}

/// Replaces `out` by the elements of a chunk, at most `most` bytes.
///
/// # Errors
/// A stream that ends too early, differences of more bits than an element has, or a chunk of more
/// than `most` bytes.
pub fn decompress(
    params: &ScaleOffsetParams,
    coded: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.clear();
    if params.kind == Kind::AsIs {
        out.extend_from_slice(coded);
        return Ok(());
    }
    let &ScaleOffsetParams { elements, size, is_big_endian, .. } = params;
    let bytes = elements.saturating_mul(size);
    if bytes > most {
        return Err(Fault::new(0, format!("a chunk of {bytes} bytes"), format!("at most {most}")));
    }
    let short = || {
        let expected = format!("{elements} elements and their minimum");
        Fault::new(coded.len(), format!("{} bytes in all", coded.len()), expected)
    };
    let (&bits, rest) = coded.split_first_chunk::<4>().ok_or_else(short)?;
    let (&width, rest) = rest.split_first().ok_or_else(short)?;
    let bits = u32::from_le_bytes(bits);
    if bits as usize > size * 8 {
        let expected = format!("at most {}", size * 8);
        return Err(Fault::new(0, format!("differences of {bits} bits"), expected));
    }
    let mut least = [0; 8];
    let width = usize::from(width).min(least.len());
    least[..width].copy_from_slice(rest.get(..width).ok_or_else(short)?);
    let least = u64::from_le_bytes(least);
    let packed = coded.get(HEAD..).unwrap_or_default();
    let swap = |element: &mut [u8]| {
        if is_big_endian {
            element.reverse();
        }
    };
    if bits as usize == size * 8 {
        out.extend_from_slice(packed.get(..bytes).ok_or_else(short)?);
        out.chunks_exact_mut(size).for_each(swap);
        return Ok(());
    }
    out.resize(bytes, 0);
    let mut stream = Bits::new(packed);
    for out in out.chunks_exact_mut(size) {
        let difference = stream.wide_number(bits).map_err(|_| short())? as u64;
        let element = params.element(difference, bits, least).to_le_bytes();
        out.copy_from_slice(&element[..size]);
        swap(out);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ScaleOffsetParams, decompress};

    fn params(
        scale: u32,
        factor: i32,
        count: u32,
        class: u32,
        size: u32,
        fill: Option<u64>,
    ) -> Vec<u32> {
        let mut values = vec![scale, factor.cast_unsigned(), count, class, size, 1, 0];
        values.push(fill.is_some().into());
        let fill = fill.unwrap_or(0);
        values.extend([fill as u32, (fill >> 32) as u32]);
        values.resize(20, 0);
        values
    }

    fn coded(bits: u32, least: u64, packed: &[u8]) -> Vec<u8> {
        let mut coded = bits.to_le_bytes().to_vec();
        coded.push(8);
        coded.extend(least.to_le_bytes());
        coded.resize(super::HEAD, 0);
        coded.extend_from_slice(packed);
        coded
    }

    fn decoded(values: &[u32], coded: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![9];
        let params = ScaleOffsetParams::parse(values).ok()?;
        decompress(&params, coded, 64, &mut out).ok().map(|()| out)
    }

    #[test]
    fn integers_are_differences_to_their_minimum() {
        let least = (-3i64).cast_unsigned();
        let stored = coded(4, least, &[0x05, 0xf0]);
        let plain = params(2, 0, 3, 0, 2, None);
        let bytes = |values: [i16; 3]| Some(values.map(i16::to_le_bytes).concat());
        assert_eq!(decoded(&plain, &stored), bytes([-3, 2, 12]));
        assert_eq!(decoded(&params(2, 0, 3, 0, 2, Some(99)), &stored), bytes([-3, 2, 99]));
        let mut big = plain.clone();
        big[6] = 1;
        let swapped = [-3i16, 2, 12].map(i16::to_be_bytes).concat();
        assert_eq!(decoded(&big, &stored), Some(swapped));
        // One value for all.
        assert_eq!(decoded(&plain, &coded(0, 7, &[0])), bytes([7, 7, 7]));
        // Numbers that need all bits are stored as they are, behind the minimum.
        assert_eq!(decoded(&plain, &coded(16, 0, &[1, 0, 2, 0, 3, 0])), bytes([1, 2, 3]));
        assert_eq!(decoded(&params(2, 16, 3, 0, 2, None), &[1, 2]), Some(vec![1, 2]));
    }

    #[test]
    fn floats_are_decimal_steps() {
        let stored = coded(8, u64::from(1.5f32.to_bits()), &[0, 25]);
        let wanted = [1.5f32, 25.0 / 100.0 + 1.5].map(f32::to_le_bytes).concat();
        assert_eq!(decoded(&params(0, 2, 2, 1, 4, None), &stored), Some(wanted));
        let stored = coded(8, 2.25f64.to_bits(), &[3, 255]);
        let wanted = [3.0 / 1000.0 + 2.25, -1.0].map(f64::to_le_bytes).concat();
        let fill = Some((-1f64).to_bits());
        assert_eq!(decoded(&params(0, 3, 2, 1, 8, fill), &stored), Some(wanted));
    }

    #[test]
    fn false_parameters_and_short_streams_are_reported() {
        let good = params(2, 0, 3, 0, 2, None);
        for stored in [vec![], vec![4, 0, 0, 0, 8, 1], coded(17, 0, &[0; 9]), coded(4, 0, &[1])] {
            assert_eq!(decoded(&good, &stored), None);
        }
        assert_eq!(decoded(&params(2, 0, 33, 0, 2, None), &coded(1, 0, &[0; 9])), None);
        assert!(ScaleOffsetParams::parse(&params(1, 0, 3, 1, 4, None)).is_err());
        assert!(ScaleOffsetParams::parse(&params(2, 17, 3, 0, 2, None)).is_err());
        assert!(ScaleOffsetParams::parse(&params(2, 0, 3, 0, 3, None)).is_err());
        assert!(ScaleOffsetParams::parse(&good[..7]).is_err());
    }
}
