//! Elements in memory, as libhdf5 takes them: with pointers to strings and lists, and references
//! to objects of the new file.

use std::ffi::c_void;

use hdf5_metno_sys::h5r::{H5R_ref_t, H5Rdestroy};
use hdf5_metno_sys::h5t::{H5Tget_member_offset, H5Tget_member_type, H5Tget_size, H5Tget_super};

use super::{Rewrite, RewriteError};
use crate::libhdf5::handle::{Id, LibraryRefusal, locked};
use crate::metadata::datatype::{Class, Datatype, Referent};
use crate::metadata::stored_object::{ANY_REFERENCE, OBJECT_REFERENCE, REGION_REFERENCE};
use crate::stored::{holds, is_pointer, is_reference};

/// How elements of a type are made in memory from stored ones.
#[derive(Debug)]
pub(super) struct MemoryForm {
    /// Bytes of a stored element.
    pub(super) stored: usize,
    /// Bytes of an element in memory.
    pub(super) size: usize,
    parts: Vec<Part>,
}

/// A part of an element.
#[derive(Debug)]
struct Part {
    /// Its first byte in a stored element.
    from: usize,
    /// Its first byte in an element in memory.
    to: usize,
    kind: PartKind,
}

#[derive(Debug)]
enum PartKind {
    /// So many bytes, which are the same in memory.
    Plain(usize),
    /// A string of any length.
    Text,
    /// A list of any length.
    List(MemoryForm),
    /// So many elements.
    Repeated(usize, MemoryForm),
    Reference(Referent),
}

/// Bytes of a stored string or list of any length: a length, and the place of an object in a global
/// heap, in a file with addresses of eight bytes.
const STORED_POINTER: usize = 16;

/// A list of any length in memory (`hvl_t`).
#[repr(C)]
struct MemoryList {
    len: usize,
    elements: *const c_void,
}

impl PartKind {
    /// Bytes of a stored part, and of a part in memory.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::Plain(size) => (*size, *size),
            Self::Text => (STORED_POINTER, size_of::<*const u8>()),
            Self::List(_) => (STORED_POINTER, size_of::<MemoryList>()),
            Self::Repeated(count, form) => (count * form.stored, count * form.size),
            Self::Reference(Referent::Object) => (OBJECT_REFERENCE, OBJECT_REFERENCE),
            Self::Reference(Referent::Region) => (REGION_REFERENCE, REGION_REFERENCE),
            Self::Reference(Referent::Any) => (ANY_REFERENCE, size_of::<H5R_ref_t>()),
        }
    }
}

impl MemoryForm {
    /// The form of elements of this type, which libhdf5 has in memory as `memory`. The lock is
    /// held.
    pub(super) fn of(datatype: &Datatype, memory: &Id) -> Result<Self, LibraryRefusal> {
        // SAFETY: under the lock, an open type.
        let size = unsafe { H5Tget_size(memory.raw()) };
        let form = Self { stored: datatype.size, size, parts: parts(datatype, memory)? };
        let is_inside = |part: &Part| {
            let (stored, size) = part.kind.sizes();
            part.from + stored <= form.stored && part.to + size <= form.size
        };
        if form.parts.iter().all(is_inside) {
            return Ok(form);
        }
        Err(LibraryRefusal(format!("elements of {} bytes that take {size}", datatype.size)))
    }
}

/// The parts of elements of a type.
fn parts(datatype: &Datatype, memory: &Id) -> Result<Vec<Part>, LibraryRefusal> {
    let whole = |kind| Ok(vec![Part { from: 0, to: 0, kind }]);
    // SAFETY: under the lock, an open type.
    let base = || Id::new(unsafe { H5Tget_super(memory.raw()) });
    match &datatype.class {
        _ if !holds(datatype, &|class| is_pointer(class) || is_reference(class)) => {
            whole(PartKind::Plain(datatype.size))
        }
        Class::LongText { .. } => {
            // The library takes as many of these as there are bytes before the NUL.
            // SAFETY: under the lock, an open type.
            let character = unsafe { H5Tget_size(base()?.raw()) };
            if character != 1 {
                return Err(LibraryRefusal(format!("characters of {character} bytes")));
            }
            whole(PartKind::Text)
        }
        Class::List { base: item } => whole(PartKind::List(MemoryForm::of(item, &base()?)?)),
        Class::Array { base: item, .. } => {
            let form = MemoryForm::of(item, &base()?)?;
            whole(PartKind::Repeated(datatype.size / item.size.max(1), form))
        }
        Class::Reference(referent) => whole(PartKind::Reference(*referent)),
        Class::Compound { members } => {
            let mut all = Vec::new();
            for (number, member) in (0..).zip(members) {
                // SAFETY: under the lock, an open type with this member.
                let (to, memory) = unsafe {
                    let to = H5Tget_member_offset(memory.raw(), number);
                    (to, Id::new(H5Tget_member_type(memory.raw(), number))?)
                };
                let moved =
                    |part: Part| Part { from: member.offset + part.from, to: to + part.to, ..part };
                all.extend(parts(&member.datatype, &memory)?.into_iter().map(moved));
            }
            Ok(all)
        }
        _ => whole(PartKind::Plain(datatype.size)),
    }
}

/// Elements in memory, and what they point to.
#[derive(Default)]
pub(super) struct MemoryValues {
    /// The elements.
    pub(super) bytes: Vec<u8>,
    _kept: KeptValues,
}

/// What elements point to.
#[derive(Default)]
struct KeptValues {
    lists: Vec<Vec<u8>>,
    references: Vec<H5R_ref_t>,
}

impl Drop for KeptValues {
    fn drop(&mut self) {
        locked(|| {
            for reference in &mut self.references {
                // SAFETY: under the lock; the library made the reference, and nothing uses its
                // copies any more.
                unsafe { H5Rdestroy(&raw mut *reference) };
            }
        });
    }
}

impl Rewrite<'_> {
    /// Stored elements in memory. The lock is held.
    pub(super) fn memory_values(
        &mut self,
        form: &MemoryForm,
        path: &str,
        stored: &[u8],
    ) -> Result<MemoryValues, RewriteError> {
        let mut kept = KeptValues::default();
        let bytes = self.elements(form, path, stored, &mut kept)?;
        Ok(MemoryValues { bytes, _kept: kept })
    }

    fn elements(
        &mut self,
        form: &MemoryForm,
        path: &str,
        stored: &[u8],
        kept: &mut KeptValues,
    ) -> Result<Vec<u8>, RewriteError> {
        let size = form.stored.max(1);
        let mut out = vec![0; stored.len() / size * form.size];
        for Part { from, to, kind } in &form.parts {
            let (len, made_len) = kind.sizes();
            let column: Vec<u8> = stored
                .chunks_exact(size)
                .flat_map(|one| &one[*from..from + len])
                .copied()
                .collect();
            let made = self.column(kind, path, column, kept)?;
            let places = out.chunks_exact_mut(form.size.max(1));
            for (element, made) in places.zip(made.chunks_exact(made_len.max(1))) {
                element[*to..to + made_len].copy_from_slice(made);
            }
        }
        Ok(out)
    }

    /// A part of all elements in memory.
    fn column(
        &mut self,
        kind: &PartKind,
        path: &str,
        stored: Vec<u8>,
        kept: &mut KeptValues,
    ) -> Result<Vec<u8>, RewriteError> {
        match kind {
            PartKind::Plain(_) => Ok(stored),
            PartKind::Repeated(_, form) => self.elements(form, path, &stored, kept),
            PartKind::Text => {
                let texts = self.from.referenced(path, &stored, 1)?;
                let mut out = Vec::with_capacity(texts.len() * size_of::<*const u8>());
                for (mut text, stored) in texts.into_iter().zip(stored.chunks(STORED_POINTER)) {
                    let is_null = stored[4..12] == [0; 8];
                    text.push(0);
                    let pointer = if is_null { std::ptr::null() } else { text.as_ptr() };
                    out.extend(pointer.expose_provenance().to_ne_bytes());
                    kept.lists.push(text);
                }
                Ok(out)
            }
            PartKind::List(form) => {
                let lists = self.from.referenced(path, &stored, form.stored)?;
                let counts: Vec<usize> =
                    lists.iter().map(|list| list.len() / form.stored.max(1)).collect();
                let items = self.elements(form, path, &lists.concat(), kept)?;
                let mut out = Vec::with_capacity(counts.len() * size_of::<MemoryList>());
                let mut at = 0;
                for len in counts {
                    let pointer = if len == 0 { std::ptr::null() } else { items[at..].as_ptr() };
                    out.extend(len.to_ne_bytes());
                    out.extend(pointer.expose_provenance().to_ne_bytes());
                    at += len * form.size;
                }
                kept.lists.push(items);
                Ok(out)
            }
            PartKind::Reference(referent) => {
                let (bytes, made) = self.references(*referent, path, stored)?;
                kept.references.extend(made);
                Ok(bytes)
            }
        }
    }
}
