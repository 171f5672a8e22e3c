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
use crate::array::{Array, ElementPlace, ElementType, Found};
use crate::dtype::{Dtype, FixKind};
use crate::filter::Pipeline;
use crate::metadata::elements::{self, HAS_LONG_DOUBLE, plain};
use crate::metadata::{Bits, ByteOrder, FloatForm};
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

    fn check_inside(&self, array: &Array) -> Result<()> {
        match &array.place {
            // The offset is that of pieces of other files.
            ElementPlace::Contiguous(Some(offset)) if self.is_external(*offset) => Ok(()),
            ElementPlace::Contiguous(Some(offset)) => {
                self.shared.check_inside(&self.path, *offset, array.bytes())
            }
            ElementPlace::Chunked(_, chunks) => self.shared.check_chunks(&self.path, chunks),
            _ => Ok(()),
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
            array.place = match (
                kind.converted.map(|how| how.to_string()),
                pipeline,
                H5Pget_layout(creation.raw()),
            ) {
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
                (None, Ok(_), H5D_layout_t::H5D_VIRTUAL) => {
                    ElementPlace::Library("a virtual dataset".into())
                }
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

/// The byte order of numbers of a type. The lock is held.
unsafe fn byte_order(kind: &Id) -> ByteOrder {
    // SAFETY: under the lock, an open type.
    match unsafe { H5Tget_order(kind.raw()) } {
        H5T_order_t::H5T_ORDER_LE | H5T_order_t::H5T_ORDER_NONE => ByteOrder::Little,
        H5T_order_t::H5T_ORDER_BE => ByteOrder::Big,
        _ => ByteOrder::Vax,
    }
}

/// The outcome for a type in the bindings' terms.
fn found(outcome: elements::Outcome) -> Result<ElementType, DatasetError> {
    outcome.map_err(DatasetError::Unsupported)
}

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
            H5T_class_t::H5T_BITFIELD => found(elements::bit_field(size, byte_order(stored)))?,
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

/// Integers of `size` bytes. The lock is held.
unsafe fn integer(stored: &Id, size: usize, letter: char) -> Result<ElementType, DatasetError> {
    // SAFETY: under the lock, with an open type.
    let (order, bits) = unsafe {
        let offset = usize::try_from(H5Tget_offset(stored.raw())).unwrap_or(usize::MAX);
        (byte_order(stored), Bits { offset, precision: H5Tget_precision(stored.raw()) })
    };
    found(elements::integer(size, order, letter, bits))
}

/// Floating-point numbers of `size` bytes. The lock is held.
unsafe fn float(stored: &Id, size: usize) -> Result<ElementType, DatasetError> {
    let (mut sign, mut exponent, mut mantissa) = (0, NO_BITS, NO_BITS);
    // SAFETY: under the lock, with an open type.
    let (order, bias, norm) = unsafe {
        status(H5Tget_fields(
            stored.raw(),
            &raw mut sign,
            &raw mut exponent.offset,
            &raw mut exponent.precision,
            &raw mut mantissa.offset,
            &raw mut mantissa.precision,
        ))?;
        (byte_order(stored), H5Tget_ebias(stored.raw()), H5Tget_norm(stored.raw()))
    };
    let bias = u32::try_from(bias).unwrap_or(u32::MAX);
    let is_implied = norm == H5T_norm_t::H5T_NORM_IMPLIED;
    found(elements::float(size, order, &FloatForm { sign, exponent, mantissa, bias, is_implied }))
}

/// Before the library fills it in.
const NO_BITS: Bits = Bits { offset: 0, precision: 0 };

/// HDF5's own complex numbers (version 2 of the library) of `size` bytes. The lock is held.
unsafe fn complex(stored: &Id, size: usize, level: usize) -> Result<ElementType, DatasetError> {
    // SAFETY: under the lock, with open types.
    unsafe {
        let part = Id::new(H5Tget_super(stored.raw()))?;
        found(elements::complex(size, &kind(&part, level + 1)?, byte_order(&part)))
    }
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
    elements::opaque(&tag, size)
}

/// A compound type. The lock is held.
unsafe fn record(stored: &Id, size: usize, level: usize) -> Result<ElementType, DatasetError> {
    let mut members = Vec::new();
    // SAFETY: under the lock; each number is that of a member; a name is memory of the library,
    // which is given back.
    unsafe {
        for member in 0..status(H5Tget_nmembers(stored.raw()))?.cast_unsigned() {
            let text = H5Tget_member_name(stored.raw(), member);
            let mut name = String::new();
            if !text.is_null() {
                name = CStr::from_ptr(text).to_string_lossy().into_owned();
                H5free_memory(text.cast());
            }
            let field = kind(&Id::new(H5Tget_member_type(stored.raw(), member))?, level + 1)?;
            members.push((name, H5Tget_member_offset(stored.raw(), member), field));
        }
    }
    let is_outside = |(_, at, field): &elements::NamedElement| {
        let count =
            field.inner.iter().try_fold(field.dtype.size() as u64, |all, n| all.checked_mul(*n));
        count.and_then(|bytes| bytes.checked_add(*at as u64)).is_none_or(|end| end > size as u64)
    };
    let is_plain = members.iter().all(|(.., field)| field.converted.is_none());
    if is_plain && members.iter().any(is_outside) {
        return Err(DatasetError::Malformed(
            0,
            format!("fields beyond the {size} bytes of a record"),
            "fields in it".into(),
        ));
    }
    found(elements::record(size, members))
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
