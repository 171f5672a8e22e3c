//! Datasets of any type and shape: the type of their elements, and where the elements lie.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5d::{
    H5D_fill_value_t, H5D_layout_t, H5Dget_create_plist, H5Dget_space, H5Dget_type, H5Dread,
};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pfill_value_defined, H5Pget_chunk, H5Pget_external_count, H5Pget_fill_value,
    H5Pget_layout,
};
use hdf5_metno_sys::h5s::{
    H5S_ALL, H5S_class_t, H5S_seloper_t, H5Screate_simple, H5Sget_simple_extent_dims,
    H5Sget_simple_extent_ndims, H5Sget_simple_extent_type, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::{
    H5T_COMPLEX_IEEE_F32LE, H5T_COMPLEX_IEEE_F64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE,
    H5T_NATIVE_LDOUBLE, H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE,
    H5T_STD_REF_DSETREG, H5T_STD_REF_OBJ, H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE,
    H5T_STD_U64LE, H5T_class_t, H5T_norm_t, H5T_order_t, H5T_sign_t, H5T_str_t, H5Tarray_create2,
    H5Tcopy, H5Tequal, H5Tget_array_dims2, H5Tget_array_ndims, H5Tget_class, H5Tget_ebias,
    H5Tget_fields, H5Tget_member_name, H5Tget_member_offset, H5Tget_member_type, H5Tget_nmembers,
    H5Tget_norm, H5Tget_offset, H5Tget_order, H5Tget_precision, H5Tget_sign, H5Tget_size,
    H5Tget_strpad, H5Tget_super, H5Tget_tag, H5Tis_variable_str,
};
use thalweg_io::Result;

use super::dataset::{DatasetError, pipeline, run};
use super::handle::{Id, LibraryRefusal, status};
use super::object::{Node, labels};
use crate::array::{Array, ElementPlace, ElementType, Found, VIRTUAL};
use crate::dtype::{Dtype, FixKind};
use crate::filter::Pipeline;
use crate::types::Chunk;

/// The most levels of nested types that are read. Deeper nesting is an error.
pub(super) const MOST_TYPE_LEVELS: usize = 32;

pub(super) use crate::array::MOST_RANK;

impl Node {
    /// What a dataset holds, and where; `None` if the node is not a dataset. Every range in the
    /// file that it names is inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses, and for
    /// addresses outside the file.
    pub fn array(&self) -> Result<Option<Found>> {
        let found = self.shared.locked(
            || self.array_locked(),
            |trouble| match trouble {
                DatasetError::Unsupported(what) => Ok(Some(Found::Other(what))),
                DatasetError::Refused(refused) => Err(self.refused(refused)),
                DatasetError::Malformed(at, found, expected) => {
                    Err(self.shared.malformed(&self.path, at, found, expected))
                }
            },
        )?;
        if let Some(Found::Array(array)) = &found {
            self.check_inside(array)?;
        }
        Ok(found)
    }

    /// Whether the node is a dataset of an enumeration.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub fn is_enumeration(&self) -> Result<bool> {
        // SAFETY: under the lock, with identifiers that are open.
        let asked = || unsafe {
            let stored = Id::new(H5Dget_type(self.id.raw()))?;
            Ok(H5Tget_class(stored.raw()) == H5T_class_t::H5T_ENUM)
        };
        self.shared.locked(asked, |refused: LibraryRefusal| Err(self.refused(refused)))
    }

    fn check_inside(&self, array: &Array) -> Result<()> {
        match &array.place {
            // The offset is that of pieces of other files.
            ElementPlace::Contiguous(Some(offset)) if self.is_external(*offset) => Ok(()),
            ElementPlace::Contiguous(Some(offset)) => {
                self.shared.check_inside(&self.path, *offset, array.bytes())
            }
            ElementPlace::Chunked(_, chunks) => self.shared.check_chunks(&self.path, chunks),
            ElementPlace::Inline(_) | ElementPlace::Contiguous(None) | ElementPlace::Library(_) => {
                Ok(())
            }
        }
    }

    fn array_locked(&self) -> Result<Option<Found>, DatasetError> {
        // SAFETY: under the lock, with identifiers that are open; each buffer has the size that the
        // call is given.
        unsafe {
            if H5Iget_type(self.id.raw()) != H5I_type_t::H5I_DATASET {
                return Ok(None);
            }
            let stored = Id::new(H5Dget_type(self.id.raw()))?;
            let space = Id::new(H5Dget_space(self.id.raw()))?;
            if H5Sget_simple_extent_type(space.raw()) == H5S_class_t::H5S_NULL {
                return Err(DatasetError::Unsupported("a dataset without values".into()));
            }
            let kind = kind(&stored, 0)?;
            let mut shape = [0; MOST_RANK];
            let rank = status(H5Sget_simple_extent_ndims(space.raw()))?;
            status(H5Sget_simple_extent_dims(
                space.raw(),
                shape.as_mut_ptr(),
                std::ptr::null_mut(),
            ))?;
            let own = &shape[..(rank.max(0) as usize).min(MOST_RANK)];
            let creation = Id::new(H5Dget_create_plist(self.id.raw()))?;
            let mut array = Array {
                shape: own.iter().chain(&kind.inner).copied().collect(),
                dtype: kind.dtype,
                fill: Vec::new(),
                place: ElementPlace::Contiguous(None),
                pipeline: Pipeline::default(),
            };
            let bytes = array
                .shape
                .iter()
                .try_fold(array.dtype.size() as u64, |bytes, &n| bytes.checked_mul(n));
            if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
                let found = format!("{:?} elements of {} bytes", array.shape, array.dtype.size());
                return Err(DatasetError::Malformed(
                    0,
                    found,
                    "a dataset that a machine can address".into(),
                ));
            }
            let elements = kind.inner.iter().product::<u64>();
            let is_resized = elements.checked_mul(array.dtype.size() as u64)
                != Some(H5Tget_size(stored.raw()) as u64);
            let pipeline = pipeline(&creation);
            array.place = match (kind.converted, pipeline, H5Pget_layout(creation.raw())) {
                (Some(why), ..) | (None, Err(DatasetError::Unsupported(why)), _) => {
                    ElementPlace::Library(why)
                }
                (_, Err(trouble), _) => return Err(trouble),
                (None, Ok(_), H5D_layout_t::H5D_COMPACT) => {
                    ElementPlace::Inline(self.compact_values(&stored, array.bytes() as usize)?)
                }
                (None, Ok(_), H5D_layout_t::H5D_CONTIGUOUS)
                    if H5Pget_external_count(creation.raw()) > 0 =>
                {
                    ElementPlace::Contiguous(self.external_values(&creation, array.bytes())?)
                }
                (None, Ok(_), H5D_layout_t::H5D_CONTIGUOUS) => {
                    ElementPlace::Contiguous(run(&self.id)?)
                }
                (None, Ok(filters), H5D_layout_t::H5D_CHUNKED) => {
                    array.pipeline = filters;
                    let (mut chunk, chunks) = self.chunk_grid(&creation, own)?;
                    chunk.extend(kind.inner);
                    ElementPlace::Chunked(chunk, chunks)
                }
                (None, Ok(_), H5D_layout_t::H5D_VIRTUAL) => ElementPlace::Library(VIRTUAL.into()),
                _ => return Err(DatasetError::Unsupported("a layout that is not known".into())),
            };
            array.fill = fill_value(&creation, &stored)?;
            // The fill value of an array type has a value for each of its elements; the first is
            // kept.
            array.fill.truncate(array.dtype.size());
            if is_resized {
                // libhdf5 converts the elements, and fills in the value itself.
                array.fill.clear();
            }
            Ok(Some(Found::Array(Arc::new(array))))
        }
    }

    /// The values of a compact dataset, which are in its header. The lock is held.
    unsafe fn compact_values(&self, stored: &Id, bytes: usize) -> Result<Vec<u8>, DatasetError> {
        if bytes > usize::from(u16::MAX) {
            let found = format!("{bytes} bytes in a header");
            return Err(DatasetError::Malformed(0, found, "fewer".into()));
        }
        let mut values = vec![0; bytes];
        let out = values.as_mut_ptr().cast();
        // SAFETY: under the lock, with open identifiers; `values` is as long as the dataset.
        unsafe {
            status(H5Dread(self.id.raw(), stored.raw(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out))?;
        }
        Ok(values)
    }

    /// The shape of a chunk, and the chunks of a dataset of this shape. The lock is held.
    pub(super) unsafe fn chunk_grid(
        &self,
        creation: &Id,
        shape: &[u64],
    ) -> Result<(Vec<u64>, Vec<Chunk>), DatasetError> {
        let mut chunk = [0; MOST_RANK];
        let rank = shape.len();
        // SAFETY: under the lock, with open identifiers; `chunk` has room for every rank.
        unsafe {
            let found = status(H5Pget_chunk(creation.raw(), rank as c_int, chunk.as_mut_ptr()))?;
            let chunk = &chunk[..rank];
            if found.cast_unsigned() as usize != rank || chunk.contains(&0) {
                let found = format!("chunks of {found} dimensions, {chunk:?}");
                return Err(DatasetError::Malformed(0, found, format!("chunks of {rank}")));
            }
            Ok((chunk.to_vec(), self.grid(shape, chunk)?))
        }
    }

    /// Reads `rows` rows from the row `from` on through libhdf5, in the form that
    /// [`Dtype::to_little_endian`] takes. A dataset of a single element has one row.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) with what libhdf5 says.
    pub fn rows(&self, array: &Array, from: u64, rows: u64, out: &mut Vec<u8>) -> Result<()> {
        self.check_values()?;
        let row: u64 = array.shape.iter().skip(1).product::<u64>() * array.dtype.size() as u64;
        out.clear();
        out.resize((rows * row) as usize, 0);
        // libhdf5 converts numbers of little-endian types. All other elements come as they are
        // stored.
        self.shared.locked(
            || self.rows_locked(&array.dtype, from, rows, out),
            |refused| Err(self.refused(refused)),
        )
    }

    fn rows_locked(
        &self,
        dtype: &Dtype,
        from: u64,
        rows: u64,
        out: &mut [u8],
    ) -> Result<(), LibraryRefusal> {
        let converts = dtype.is_plain();
        // SAFETY: under the lock, with identifiers that are open; the buffer holds the selected
        // elements, whose size in memory is that of `dtype`: libhdf5 converts every type whose size
        // in the file is another.
        unsafe {
            let stored = Id::new(H5Dget_type(self.id.raw()))?;
            let space = Id::new(H5Dget_space(self.id.raw()))?;
            let rank = status(H5Sget_simple_extent_ndims(space.raw()))?;
            let mut count = [0; MOST_RANK];
            status(H5Sget_simple_extent_dims(
                space.raw(),
                count.as_mut_ptr(),
                std::ptr::null_mut(),
            ))?;
            let mut start = [0; MOST_RANK];
            (start[0], count[0]) = (from, rows);
            let converted = if converts { type_in_memory(&stored, dtype)? } else { None };
            let kind = converted.as_ref().unwrap_or(&stored).raw();
            let elements = count[..rank.max(0) as usize].iter().product::<u64>();
            if elements.checked_mul(H5Tget_size(kind) as u64) != Some(out.len() as u64) {
                return Err(LibraryRefusal("elements of another size than expected".into()));
            }
            let out = out.as_mut_ptr().cast();
            if rank == 0 {
                return status(H5Dread(self.id.raw(), kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, out))
                    .map(drop);
            }
            let here = Id::new(H5Screate_simple(rank, count.as_ptr(), std::ptr::null()))?;
            let set = H5S_seloper_t::H5S_SELECT_SET;
            status(H5Sselect_hyperslab(
                space.raw(),
                set,
                start.as_ptr(),
                std::ptr::null(),
                count.as_ptr(),
                std::ptr::null(),
            ))?;
            status(H5Dread(self.id.raw(), kind, here.raw(), space.raw(), H5P_DEFAULT, out))
                .map(drop)
        }
    }
}

/// Whether numbers of a type are big-endian. The lock is held.
unsafe fn is_big_endian(kind: &Id) -> Result<bool, DatasetError> {
    // SAFETY: under the lock, an open type.
    match unsafe { H5Tget_order(kind.raw()) } {
        H5T_order_t::H5T_ORDER_LE | H5T_order_t::H5T_ORDER_NONE => Ok(false),
        H5T_order_t::H5T_ORDER_BE => Ok(true),
        _ => Err(DatasetError::Unsupported("numbers in the byte order of VAX".into())),
    }
}

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
const HAS_LONG_DOUBLE: bool = cfg!(target_arch = "x86_64");

/// The type of elements, in numpy's terms, of a stored type at this level of nesting. The lock is
/// held.
pub(super) unsafe fn kind(stored: &Id, level: usize) -> Result<ElementType, DatasetError> {
    if level > MOST_TYPE_LEVELS {
        return Err(DatasetError::Unsupported("types inside each other".into()));
    }
    // SAFETY: under the lock, with types that are open; arrays are as long as the library says.
    unsafe {
        let size = H5Tget_size(stored.raw());
        if size == 0 {
            return Err(DatasetError::Unsupported("elements without bytes".into()));
        }
        Ok(match H5Tget_class(stored.raw()) {
            H5T_class_t::H5T_INTEGER => {
                let signed = H5Tget_sign(stored.raw()) != H5T_sign_t::H5T_SGN_NONE;
                integer(stored, size, if signed { 'i' } else { 'u' })?
            }
            H5T_class_t::H5T_BITFIELD => bit_field(stored, size)?,
            H5T_class_t::H5T_FLOAT => float(stored, size)?,
            H5T_class_t::H5T_COMPLEX => complex(stored, size, level)?,
            H5T_class_t::H5T_STRING if status(H5Tis_variable_str(stored.raw()))? > 0 => {
                return Err(DatasetError::Unsupported("strings of any length".into()));
            }
            H5T_class_t::H5T_STRING => plain(Dtype::text(
                size,
                match H5Tget_strpad(stored.raw()) {
                    H5T_str_t::H5T_STR_NULLTERM => Some(FixKind::Terminated),
                    H5T_str_t::H5T_STR_SPACEPAD => Some(FixKind::Spaces),
                    _ => None,
                },
            )),
            H5T_class_t::H5T_OPAQUE => plain(opaque(stored, size)),
            H5T_class_t::H5T_ENUM => enumeration(stored, size, level)?,
            H5T_class_t::H5T_ARRAY => {
                let base = kind(&Id::new(H5Tget_super(stored.raw()))?, level + 1)?;
                let rank = status(H5Tget_array_ndims(stored.raw()))?.cast_unsigned() as usize;
                let mut inner = vec![0; rank];
                status(H5Tget_array_dims2(stored.raw(), inner.as_mut_ptr()))?;
                inner.extend(base.inner);
                ElementType { inner, ..base }
            }
            H5T_class_t::H5T_COMPOUND => record(stored, size, level)?,
            H5T_class_t::H5T_VLEN => {
                return Err(DatasetError::Unsupported("lists of any length".into()));
            }
            H5T_class_t::H5T_REFERENCE => {
                return Err(DatasetError::Unsupported(reference(stored).into()));
            }
            H5T_class_t::H5T_TIME => return Err(DatasetError::Unsupported("times".into())),
            _ => {
                return Err(DatasetError::Unsupported(
                    "a type of a class that is not known".into(),
                ));
            }
        })
    }
}

/// The fill value that was set for a dataset, as it is stored; empty if none was. The lock is held.
pub(super) unsafe fn fill_value(creation: &Id, stored: &Id) -> Result<Vec<u8>, LibraryRefusal> {
    let mut defined = H5D_fill_value_t::H5D_FILL_VALUE_DEFAULT;
    // SAFETY: under the lock, with open identifiers; `fill` is as long as an element.
    unsafe {
        status(H5Pfill_value_defined(creation.raw(), &raw mut defined))?;
        if defined != H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED {
            return Ok(Vec::new());
        }
        // The value comes from a header, so it fits in memory.
        let mut fill = vec![0; H5Tget_size(stored.raw())];
        status(H5Pget_fill_value(creation.raw(), stored.raw(), fill.as_mut_ptr().cast()))?;
        Ok(fill)
    }
}

/// Elements that are read as they are stored.
fn plain(dtype: Dtype) -> ElementType {
    ElementType { dtype, inner: Vec::new(), converted: None }
}

/// Elements that libhdf5 converts while it reads them, for the reason `why`.
fn converted(dtype: Dtype, why: String) -> ElementType {
    ElementType { converted: Some(why), ..plain(dtype) }
}

/// Integers of `size` bytes. numpy has none of 3, 5, 6 or 7 bytes; these become the next larger.
/// The lock is held.
unsafe fn integer(stored: &Id, size: usize, letter: char) -> Result<ElementType, DatasetError> {
    if matches!(size, 3 | 5..=7) {
        let dtype = Dtype::number(letter, size.next_power_of_two(), false);
        return Ok(converted(dtype, format!("integers of {size} bytes")));
    }
    check_integer(size)?;
    // SAFETY: under the lock, with an open type.
    unsafe {
        let bits = H5Tget_precision(stored.raw());
        Ok(if H5Tget_offset(stored.raw()) != 0 || bits != 8 * size {
            converted(Dtype::number(letter, size, false), format!("integers of {bits} bits"))
        } else {
            plain(Dtype::number(letter, size, is_big_endian(stored)?))
        })
    }
}

/// Bit fields, which are read as unsigned integers of the same size. The lock is held.
unsafe fn bit_field(stored: &Id, size: usize) -> Result<ElementType, DatasetError> {
    check_integer(size)?;
    // SAFETY: under the lock, with an open type.
    Ok(plain(Dtype::number('u', size, unsafe { is_big_endian(stored)? })))
}

fn check_integer(size: usize) -> Result<(), DatasetError> {
    match size {
        1 | 2 | 4 | 8 => Ok(()),
        _ => Err(DatasetError::Unsupported(format!("integers of {size} bytes"))),
    }
}

/// Floating-point numbers of `size` bytes. The lock is held.
unsafe fn float(stored: &Id, size: usize) -> Result<ElementType, DatasetError> {
    let mut at = [0; 5];
    let [sign, exponent, exponent_bits, mantissa, mantissa_bits] = &mut at;
    // SAFETY: under the lock, with an open type.
    let (bias, norm) = unsafe {
        status(H5Tget_fields(
            stored.raw(),
            sign,
            exponent,
            exponent_bits,
            mantissa,
            mantissa_bits,
        ))?;
        (H5Tget_ebias(stored.raw()), H5Tget_norm(stored.raw()))
    };
    if let Some(dtype) = widened(size, at, bias, norm == H5T_norm_t::H5T_NORM_IMPLIED) {
        return Ok(converted(dtype, format!("floating-point numbers of {} bits", at[0] + 1)));
    }
    let unsupported =
        |what: String| Err(DatasetError::Unsupported(format!("floating-point numbers {what}")));
    let Some((_, ieee)) = IEEE.iter().find(|(ieee, _)| *ieee == size) else {
        return unsupported(format!("of {size} bytes"));
    };
    // The long double of x86 has all bits of its mantissa.
    if (norm == H5T_norm_t::H5T_NORM_IMPLIED) != (size <= 8) {
        return unsupported(
            "whose mantissa has its highest bit in another way than IEEE 754's".into(),
        );
    }
    let [_, _, exponent_bits, _, mantissa_bits] = at;
    if at == *ieee && bias == ieee_bias(exponent_bits) {
        // SAFETY: as above.
        return Ok(plain(Dtype::number('f', size, unsafe { is_big_endian(stored)? })));
    }
    let [_, _, most_bits, _, most_mantissa] = *ieee;
    // What does not fit would become infinite or zero.
    let fits = exponent_bits < most_bits && mantissa_bits <= most_mantissa;
    if !fits || bias != ieee_bias(exponent_bits) || !matches!(size, 4 | 8) {
        return unsupported(format!(
            "of {size} bytes, with an exponent of {exponent_bits} bits and the bias {bias}, and a \
             mantissa of {mantissa_bits} bits"
        ));
    }
    let why = "floating-point numbers other than IEEE 754's";
    Ok(converted(Dtype::number('f', size, false), why.into()))
}

/// The type in memory of floating-point numbers that numpy has no type for, by their size, the
/// places of their parts as in [`IEEE`], and the bias of their exponent. Every value fits. These
/// are bfloat16, and x86's long double in 12 bytes; h5py reads them as the same types.
fn widened(size: usize, at: [usize; 5], bias: usize, is_implied: bool) -> Option<Dtype> {
    match (size, at, is_implied) {
        (2, [15, 7, 8, 0, 7], true) if bias == ieee_bias(at[2]) => {
            Some(Dtype::number('f', 4, false))
        }
        (12, [79, 64, 15, 0, 64], false) if HAS_LONG_DOUBLE && bias == ieee_bias(15) => {
            Some(Dtype::number('f', 16, false))
        }
        _ => None,
    }
}

/// HDF5's own complex numbers (version 2 of the library) of `size` bytes. The lock is held.
unsafe fn complex(stored: &Id, size: usize, level: usize) -> Result<ElementType, DatasetError> {
    // SAFETY: under the lock, with open types.
    unsafe {
        let part = Id::new(H5Tget_super(stored.raw()))?;
        let kind = kind(&part, level + 1)?;
        let name = kind.dtype.to_string();
        if kind.converted.is_some() || !matches!(name.as_str(), "<f4" | "<f8") {
            return Err(DatasetError::Unsupported(format!("complex numbers of {name}")));
        }
        Ok(plain(Dtype::number('c', size, is_big_endian(&part)?)))
    }
}

/// The bias of IEEE 754 for an exponent of this many bits.
fn ieee_bias(bits: usize) -> usize {
    (1 << bits.saturating_sub(1).min(62)) - 1
}

/// Enumerations are read as numbers. The enumeration that h5py writes for numpy's booleans is read
/// as booleans. The lock is held.
unsafe fn enumeration(stored: &Id, size: usize, level: usize) -> Result<ElementType, DatasetError> {
    // SAFETY: under the lock, with an open type.
    let (base, names) = unsafe {
        let base = kind(&Id::new(H5Tget_super(stored.raw()))?, level + 1)?;
        (base, if size == 1 { labels(stored, size)? } else { Vec::new() })
    };
    let has = |name: &str, code| names.iter().any(|(at, label)| *at == code && label == name);
    if names.len() == 2 && has("FALSE", 0) && has("TRUE", 1) {
        return Ok(plain(Dtype::boolean()));
    }
    Ok(base)
}

/// What references of a type refer to, in words. The lock is held.
unsafe fn reference(stored: &Id) -> &'static str {
    // SAFETY: under the lock, with open types.
    let is = |kind| unsafe { status(H5Tequal(stored.raw(), kind)).is_ok_and(|is| is > 0) };
    if is(*H5T_STD_REF_OBJ) {
        "references to objects"
    } else if is(*H5T_STD_REF_DSETREG) {
        "references to regions"
    } else {
        "references"
    }
}

/// The type of opaque bytes. h5py stores numpy's own types as opaque bytes, with their names in the
/// tag. The lock is held.
unsafe fn opaque(stored: &Id, size: usize) -> Dtype {
    // SAFETY: under the lock, an open type; the tag is memory of the library, which is given back.
    let tag = unsafe {
        let tag = H5Tget_tag(stored.raw());
        if tag.is_null() {
            return Dtype::void(size);
        }
        let text = CStr::from_ptr(tag).to_string_lossy().into_owned();
        H5free_memory(tag.cast());
        text
    };
    tag.strip_prefix("NUMPY:")
        .and_then(|name| Dtype::named(name, size))
        .unwrap_or_else(|| Dtype::void(size))
}

/// A compound type. The lock is held.
unsafe fn record(stored: &Id, size: usize, level: usize) -> Result<ElementType, DatasetError> {
    let (mut fields, mut names, mut converted) = (Vec::new(), Vec::new(), None);
    // SAFETY: under the lock; each number is that of a member; a name is memory of the library,
    // which is given back.
    unsafe {
        for member in 0..status(H5Tget_nmembers(stored.raw()))?.cast_unsigned() {
            let name = H5Tget_member_name(stored.raw(), member);
            if !name.is_null() {
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
                H5free_memory(name.cast());
            }
            let field = kind(&Id::new(H5Tget_member_type(stored.raw(), member))?, level + 1)?;
            converted = converted.or(field.converted);
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
                return Err(DatasetError::Unsupported(
                    "records with long lists of numbers that are big-endian".into(),
                ));
            };
            fields.push((H5Tget_member_offset(stored.raw(), member), dtype));
        }
    }
    if let Some(what) = converted {
        return Err(DatasetError::Unsupported(format!("records with {what}")));
    }
    if fields.iter().any(|(at, field)| at.checked_add(field.size()).is_none_or(|end| end > size)) {
        return Err(DatasetError::Malformed(
            0,
            format!("fields beyond the {size} bytes of a record"),
            "fields in it".into(),
        ));
    }
    // h5py writes numpy's complex numbers as such records.
    let dtype = match &fields[..] {
        [(0, real), (at, imaginary)]
            if names == ["r", "i"]
                && real == imaginary
                && *at == real.size()
                && size == 2 * at
                && real.to_string().starts_with("<f") =>
        {
            Dtype::number('c', size, real != &Dtype::number('f', *at, false))
        }
        _ => Dtype::record(size, &fields),
    };
    Ok(plain(dtype))
}

/// The type to which libhdf5 converts elements of a stored type: little-endian numbers of the type
/// `dtype`, or arrays of them; `None` for other elements. The lock is held.
unsafe fn type_in_memory(stored: &Id, dtype: &Dtype) -> Result<Option<Id>, LibraryRefusal> {
    let name = dtype.to_string();
    // SAFETY: under the lock, open types; the others are the library's constants; `lengths` has
    // room for every rank.
    unsafe {
        let known = match (H5Tget_class(stored.raw()), name.as_str()) {
            (H5T_class_t::H5T_ARRAY, _) => {
                let base = Id::new(H5Tget_super(stored.raw()))?;
                let Some(base) = type_in_memory(&base, dtype)? else { return Ok(None) };
                let mut lengths = [0; MOST_RANK];
                let rank = status(H5Tget_array_dims2(stored.raw(), lengths.as_mut_ptr()))?;
                let rank = rank.cast_unsigned();
                return Id::new(H5Tarray_create2(base.raw(), rank, lengths.as_ptr())).map(Some);
            }
            (H5T_class_t::H5T_COMPLEX, "<c8") => *H5T_COMPLEX_IEEE_F32LE,
            (H5T_class_t::H5T_COMPLEX, "<c16") => *H5T_COMPLEX_IEEE_F64LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "|i1") => *H5T_STD_I8LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<i2") => *H5T_STD_I16LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<i4") => *H5T_STD_I32LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<i8") => *H5T_STD_I64LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "|u1") => *H5T_STD_U8LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<u2") => *H5T_STD_U16LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<u4") => *H5T_STD_U32LE,
            (H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM, "<u8") => *H5T_STD_U64LE,
            (H5T_class_t::H5T_FLOAT, "<f4") => *H5T_IEEE_F32LE,
            (H5T_class_t::H5T_FLOAT, "<f8") => *H5T_IEEE_F64LE,
            (H5T_class_t::H5T_FLOAT, "<f16") if HAS_LONG_DOUBLE => *H5T_NATIVE_LDOUBLE,
            _ => return Ok(None),
        };
        Id::new(H5Tcopy(known)).map(Some)
    }
}
