//! Types of elements in numpy's terms.

use super::datatype::{Bits, ByteOrder, Class, Datatype, FloatForm, Member, Padding, Referent};
use crate::array::ElementType;
use crate::convert::{Conversion, Form};
use crate::dtype::{Dtype, FixKind};

/// The floating-point types of IEEE 754, and the long double of x86. Each has its size in bytes,
/// the bit of the sign, the first bit of the exponent and its number of bits, and the first bit of
/// the mantissa and its number of bits.
const IEEE: [(usize, [usize; 5]); 4] = [
    (2, [15, 10, 5, 0, 10]),
    (4, [31, 23, 8, 0, 23]),
    (8, [63, 52, 11, 0, 52]),
    (16, [79, 64, 15, 0, 64]),
];

/// Whether the machine's own long double is that of x86, which takes 16 bytes in memory.
pub(crate) const HAS_LONG_DOUBLE: bool = cfg!(target_arch = "x86_64");

/// The outcome for a type; the error says in words what numpy has no type for.
pub(crate) type Outcome = Result<ElementType, String>;

/// Elements that are read as they are stored.
pub(crate) fn plain(dtype: Dtype) -> ElementType {
    ElementType { dtype, inner: Vec::new(), converted: None }
}

/// Elements that are converted to this type while they are read.
fn converted(dtype: Dtype, from: usize, order: ByteOrder, form: Form) -> Outcome {
    let conversion =
        Conversion { from, to: dtype.size(), is_big_endian: is_big_endian(order)?, form };
    Ok(ElementType { converted: Some(conversion), ..plain(dtype) })
}

/// The type of elements of a stored type.
pub(super) fn element_type(datatype: &Datatype) -> Outcome {
    let size = datatype.size;
    Ok(match &datatype.class {
        Class::Integer { order, signed, bits } => {
            integer(size, *order, if *signed { 'i' } else { 'u' }, *bits)?
        }
        Class::BitField { order, .. } => bit_field(size, *order)?,
        Class::Float { order, form, .. } => float(size, *order, form)?,
        Class::Complex { base } => {
            let order = match &base.class {
                Class::Float { order, .. } => *order,
                _ => ByteOrder::Little,
            };
            complex(size, &element_type(base)?, order)?
        }
        Class::LongText { .. } => return Err("strings of any length".into()),
        Class::Text { .. } if size == 0 => return Err("elements without bytes".into()),
        Class::Text { padding, .. } => {
            let fix = match padding {
                Padding::Terminated => Some(FixKind::Terminated),
                Padding::Spaces => Some(FixKind::Spaces),
                Padding::Nul => None,
            };
            plain(Dtype::text(size, fix))
        }
        Class::Opaque { tag } => plain(opaque(tag, size)),
        Class::Enumeration { base, names } => {
            // h5py writes numpy's booleans as this enumeration.
            let has = |name: &str, code| {
                names.iter().any(|(label, at)| label == name && at[..] == [code])
            };
            if names.len() == 2 && has("FALSE", 0) && has("TRUE", 1) {
                plain(Dtype::boolean())
            } else {
                element_type(base)?
            }
        }
        Class::Array { base, lengths } => {
            let base = element_type(base)?;
            let inner = lengths.iter().chain(&base.inner).copied().collect();
            ElementType { inner, ..base }
        }
        Class::Compound { members } => {
            let named = |member: &Member| {
                Ok((member.name.clone(), member.offset, element_type(&member.datatype)?))
            };
            record(size, members.iter().map(named).collect::<Result<_, String>>()?)?
        }
        Class::List { .. } => return Err("lists of any length".into()),
        Class::Reference(referent) => {
            return Err(match referent {
                Referent::Object => "references to objects".into(),
                Referent::Region => "references to regions".into(),
                Referent::Any => "references".into(),
            });
        }
        Class::Time => return Err("times".into()),
    })
}

fn is_big_endian(order: ByteOrder) -> Result<bool, String> {
    match order {
        ByteOrder::Little => Ok(false),
        ByteOrder::Big => Ok(true),
        ByteOrder::Vax => Err("numbers in the byte order of VAX".into()),
    }
}

fn check_integer(size: usize) -> Result<(), String> {
    match size {
        1 | 2 | 4 | 8 => Ok(()),
        _ => Err(format!("integers of {size} bytes")),
    }
}

/// The type of opaque bytes. h5py stores numpy's own types as opaque bytes, with their names in the
/// tag.
pub(crate) fn opaque(tag: &str, size: usize) -> Dtype {
    let named = tag.strip_prefix("NUMPY:").and_then(|name| Dtype::named(name, size));
    named.unwrap_or_else(|| Dtype::void(size))
}

/// Bit fields, which are read as unsigned integers of the same size. The bits are handed on as they
/// are stored, as h5py does.
pub(crate) fn bit_field(size: usize, order: ByteOrder) -> Outcome {
    check_integer(size)?;
    Ok(plain(Dtype::number('u', size, is_big_endian(order)?)))
}

/// Integers of `size` bytes. numpy has none of 3, 5, 6 or 7 bytes; these become the next larger.
pub(crate) fn integer(size: usize, order: ByteOrder, letter: char, bits: Bits) -> Outcome {
    let wide = size.next_power_of_two();
    check_integer(wide)?;
    if size == wide && bits == (Bits { offset: 0, precision: 8 * size }) {
        return Ok(plain(Dtype::number(letter, size, is_big_endian(order)?)));
    }
    let form = Form::Integer { bits, is_signed: letter == 'i' };
    converted(Dtype::number(letter, wide, false), size, order, form)
}

/// Floating-point numbers of `size` bytes.
pub(crate) fn float(size: usize, order: ByteOrder, form: &FloatForm) -> Outcome {
    let exponent = form.exponent;
    let mantissa = form.mantissa;
    let at = [form.sign, exponent.offset, exponent.precision, mantissa.offset, mantissa.precision];
    let bias = form.bias as usize;
    match widened(size, at, bias, form.is_implied) {
        Some(4) => return converted(Dtype::number('f', 4, false), size, order, Form::Float(*form)),
        Some(wide) => {
            return converted(Dtype::number('f', wide, false), size, order, Form::LongDouble);
        }
        None => {}
    }
    let unsupported = |what: String| Err(format!("floating-point numbers {what}"));
    let Some((_, ieee)) = IEEE.iter().find(|(ieee, _)| *ieee == size) else {
        return unsupported(format!("of {size} bytes"));
    };
    // The long double of x86 has all bits of its mantissa.
    if form.is_implied != (size <= 8) {
        return unsupported(
            "whose mantissa has its highest bit in another way than IEEE 754's".into(),
        );
    }
    if size == 16 && !HAS_LONG_DOUBLE {
        return unsupported("of x86, which this machine does not have".into());
    }
    if at == *ieee && bias == ieee_bias(exponent.precision) {
        return Ok(plain(Dtype::number('f', size, is_big_endian(order)?)));
    }
    let [_, _, most_bits, _, most_mantissa] = *ieee;
    // What does not fit would become infinite or zero.
    let fits = exponent.precision < most_bits && mantissa.precision <= most_mantissa;
    if !fits || bias != ieee_bias(exponent.precision) || !matches!(size, 4 | 8) {
        return unsupported(format!(
            "of {size} bytes, with an exponent of {} bits and the bias {bias}, and a mantissa of \
             {} bits",
            exponent.precision, mantissa.precision
        ));
    }
    converted(Dtype::number('f', size, false), size, order, Form::Float(*form))
}

/// The bytes in memory of floating-point numbers that numpy has no type for, by their size, the
/// places of their parts as in [`IEEE`], and the bias of their exponent. Every value fits. These
/// are bfloat16, and x86's long double in 12 bytes; h5py reads them as the same types.
fn widened(size: usize, at: [usize; 5], bias: usize, is_implied: bool) -> Option<usize> {
    match (size, at, is_implied) {
        (2, [15, 7, 8, 0, 7], true) if bias == ieee_bias(at[2]) => Some(4),
        (12, [79, 64, 15, 0, 64], false) if HAS_LONG_DOUBLE && bias == ieee_bias(15) => Some(16),
        _ => None,
    }
}

/// The bias of IEEE 754 for an exponent of this many bits.
fn ieee_bias(bits: usize) -> usize {
    (1 << bits.saturating_sub(1).min(62)) - 1
}

/// HDF5's own complex numbers (version 2 of the library), of `size` bytes. Their parts have this
/// type and byte order.
pub(crate) fn complex(size: usize, part: &ElementType, order: ByteOrder) -> Outcome {
    let name = part.dtype.to_string();
    if part.converted.is_some() || !matches!(name.as_str(), "<f4" | "<f8") {
        return Err(format!("complex numbers of {name}"));
    }
    Ok(plain(Dtype::number('c', size, is_big_endian(order)?)))
}

/// A member of a compound type: its name, its first byte, and its type.
pub(crate) type NamedElement = (String, usize, ElementType);

/// A compound type of `size` bytes.
pub(crate) fn record(size: usize, members: Vec<NamedElement>) -> Outcome {
    let mut fields = Vec::new();
    let mut names = Vec::new();
    let mut why = None;
    for (name, offset, field) in members {
        names.push(name);
        why = why.or(field.converted.map(|conversion| conversion.to_string()));
        let count = field
            .inner
            .iter()
            .try_fold(1, |count: usize, &n| count.checked_mul(usize::try_from(n).ok()?));
        let dtype = if field.inner.is_empty() {
            Some(field.dtype)
        } else {
            count.and_then(|n| field.dtype.repeated(n))
        };
        let Some(dtype) = dtype else {
            return Err("records with long lists of numbers that are big-endian".into());
        };
        fields.push((offset, dtype));
    }
    if let Some(what) = why {
        return Err(format!("records with {what}"));
    }
    // h5py writes numpy's complex numbers as such records.
    let dtype = match &fields[..] {
        [(0, real), (at, imaginary)]
            if names == ["r", "i"]
                && real == imaginary
                && *at == real.size()
                && size == 2 * at
                && matches!(at, 4 | 8 | 16)
                && real.to_string().starts_with("<f") =>
        {
            Dtype::number('c', size, real != &Dtype::number('f', *at, false))
        }
        _ => Dtype::record(size, &fields),
    };
    if dtype.is_too_mixed() {
        return Err("records with very many numbers that are big-endian".into());
    }
    Ok(plain(dtype))
}
