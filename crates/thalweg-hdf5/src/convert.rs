//! Elements that numpy has no type for become elements of a type that it has: integers of 3 bytes
//! or of some bits, and floating-point numbers of other forms. The values are those that libhdf5's
//! conversions give.

use std::fmt;

use thalweg_io::Fault;

/// The largest element, in bytes.
const MOST_BYTES: usize = 16;

/// The bits of a number in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The first bit.
    pub offset: usize,
    /// The number of bits.
    pub precision: usize,
}

/// The parts of a floating-point number, as the first bit and the number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatForm {
    /// The bit of the sign.
    pub sign: usize,
    /// The exponent.
    pub exponent: Bits,
    /// The mantissa.
    pub mantissa: Bits,
    /// The bias of the exponent.
    pub bias: u32,
    /// Whether the highest bit of the mantissa is not stored, because it is always set.
    pub is_implied: bool,
}

impl FloatForm {
    /// The value of a number with these bits, which has `size` bytes, at most eight.
    pub(crate) fn value(&self, bits: u64, size: usize) -> f64 {
        if self.is_single() && size == 4 {
            return f64::from(f32::from_bits(bits as u32));
        }
        let part = |part: Bits| bits >> part.offset & (u64::MAX >> (64 - part.precision.min(64)));
        let exponent = part(self.exponent);
        let mantissa = part(self.mantissa);
        let most = u64::MAX >> (64 - self.exponent.precision.min(64));
        let sign = if bits >> self.sign & 1 == 0 { 1.0 } else { -1.0 };
        let precision = self.mantissa.precision as i32;
        if exponent == most {
            return if mantissa == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let power = exponent.clamp(1, 1 << 40) as i64 - i64::from(self.bias);
        let hidden = u64::from(self.is_implied && exponent > 0);
        let whole = hidden as f64 * 2f64.powi(precision) + mantissa as f64;
        // Without a hidden bit, the highest bit of the mantissa is that before the point.
        let point = if self.is_implied { precision } else { precision - 1 };
        let power = power.clamp(-4000, 4000) as i32 - point;
        // In two steps: the power alone may be too small for a number.
        sign * whole * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
    }

    /// Whether it is the single precision of IEEE 754.
    fn is_single(&self) -> bool {
        let exponent = Bits { offset: 23, precision: 8 };
        let mantissa = Bits { offset: 0, precision: 23 };
        *self == Self { sign: 31, exponent, mantissa, bias: 127, is_implied: true }
    }
}

/// How stored elements become elements of a numpy type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// Bytes of a stored element.
    pub(crate) from: usize,
    /// Bytes of a converted element, little-endian.
    pub(crate) to: usize,
    /// Whether stored elements are big-endian.
    pub(crate) is_big_endian: bool,
    pub(crate) form: Form,
}

/// What stored elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Integers of these bits.
    Integer { bits: Bits, is_signed: bool },
    /// Floating-point numbers of this form, which become single or double ones.
    Float(FloatForm),
    /// x86's long double in 12 bytes, which becomes one in 16 bytes.
    LongDouble,
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * self.from;
        match self.form {
            Form::Integer { bits: Bits { precision, .. }, .. } if precision < bits => {
                write!(f, "integers of {precision} bits")
            }
            Form::Integer { .. } => write!(f, "integers of {} bytes", self.from),
            Form::Float(form) => write!(f, "floating-point numbers of {} bits", form.sign + 1),
            Form::LongDouble => write!(f, "floating-point numbers of 80 bits"),
        }
    }
}

impl Conversion {
    /// Replaces `out` by the converted elements.
    ///
    /// # Errors
    /// Bytes that are no whole elements.
    pub(crate) fn apply(&self, stored: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if !stored.len().is_multiple_of(self.from) {
            let found = format!("{} bytes", stored.len());
            return Err(Fault::new(0, found, format!("elements of {} bytes", self.from)));
        }
        out.clear();
        out.reserve(stored.len() / self.from * self.to);
        for element in stored.chunks_exact(self.from) {
            let mut raw = [0; MOST_BYTES];
            raw[..self.from].copy_from_slice(element);
            if self.is_big_endian {
                raw[..self.from].reverse();
            }
            let value = self.value(u128::from_le_bytes(raw));
            out.extend_from_slice(&value.to_le_bytes()[..self.to]);
        }
        Ok(())
    }

    /// The converted elements.
    ///
    /// # Errors
    /// As [`Conversion::apply`].
    pub(crate) fn converted(&self, stored: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        self.apply(stored, &mut out).map(|()| out)
    }

    /// The bits of the converted element.
    fn value(&self, raw: u128) -> u128 {
        match self.form {
            Form::Integer { bits: Bits { offset, precision }, is_signed } => {
                let unused = 128 - precision.clamp(1, 128);
                let value = raw >> offset << unused;
                if is_signed {
                    (value.cast_signed() >> unused).cast_unsigned()
                } else {
                    value >> unused
                }
            }
            Form::Float(form) => {
                let raw = raw as u64;
                let value = form.value(raw, self.from);
                let is_negative = raw >> form.sign & 1 == 1;
                // libhdf5 sets all bits of the mantissa of what is not a number.
                match (self.to, value.is_nan(), is_negative) {
                    (4, true, false) => 0x7fff_ffff,
                    (4, true, true) => 0xffff_ffff,
                    (4, false, _) => (value as f32).to_bits().into(),
                    (_, true, false) => u128::from(u64::MAX >> 1),
                    (_, true, true) => u64::MAX.into(),
                    (_, false, _) => value.to_bits().into(),
                }
            }
            Form::LongDouble => {
                let raw = raw & (u128::MAX >> 48);
                let mantissa = raw as u64;
                let above = raw >> 64 << 64;
                let mantissa = match (above >> 64 & 0x7fff, mantissa << 1) {
                    (0x7fff, 0) => 1 << 63,
                    (0x7fff, _) => u64::MAX,
                    _ => mantissa,
                };
                above | u128::from(mantissa)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bits, Conversion, FloatForm, Form};
    fn converted(conversion: &Conversion, stored: &[u8]) -> Option<Vec<u8>> {
        conversion.converted(stored).ok()
    }

    #[test]
    fn integers_are_extended() {
        let of = |from, offset, precision, is_signed, is_big_endian| Conversion {
            from,
            to: from.next_power_of_two(),
            is_big_endian,
            form: Form::Integer { bits: Bits { offset, precision }, is_signed },
        };
        let stored = [1, 2, 0x80, 255, 255, 255];
        let words = |words: [i32; 2]| Some(words.map(i32::to_le_bytes).concat());
        let whole = |is_signed, is_big| converted(&of(3, 0, 24, is_signed, is_big), &stored);
        assert_eq!(whole(false, false), words([0x80_02_01, 0xff_ffff]));
        assert_eq!(whole(true, false), words([0x80_02_01 - (1 << 24), -1]));
        assert_eq!(whole(true, true), words([0x01_02_80, -1]));
        // Bits 2 to 4 of a byte; the bits around them are garbage.
        assert_eq!(
            converted(&of(1, 2, 3, true, false), &[0b1111_0011, 0b0000_1100]),
            Some(vec![252, 3])
        );
        assert_eq!(converted(&of(3, 0, 24, true, false), &[1, 2]), None);
    }

    #[test]
    fn floats_keep_their_values() {
        let form = |sign, exponent, mantissa, bias| FloatForm {
            sign,
            exponent: Bits { offset: mantissa, precision: exponent },
            mantissa: Bits { offset: 0, precision: mantissa },
            bias,
            is_implied: true,
        };
        let bfloat16 = Conversion {
            from: 2,
            to: 4,
            is_big_endian: false,
            form: Form::Float(form(15, 8, 7, 127)),
        };
        for bits in 0..=u16::MAX {
            let value = f32::from_bits(u32::from(bits) << 16);
            let wanted = if value.is_nan() {
                u32::from(bits & 0x8000) << 16 | 0x7fff_ffff
            } else {
                value.to_bits()
            };
            let found = converted(&bfloat16, &bits.to_le_bytes());
            assert_eq!(found, Some(wanted.to_le_bytes().to_vec()), "{bits:04x}");
        }
        let long = Conversion { from: 12, to: 16, is_big_endian: false, form: Form::LongDouble };
        let mut one = [0u8; 12];
        (one[7], one[8], one[9], one[11]) = (0x80, 0xff, 0x3f, 9);
        let mut wanted = one.to_vec();
        wanted[11] = 0;
        wanted.resize(16, 0);
        assert_eq!(converted(&long, &one), Some(wanted));
    }
}
