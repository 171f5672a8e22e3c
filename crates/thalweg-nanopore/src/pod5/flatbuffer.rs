//! A minimal FlatBuffers reader for POD5's footer. Every offset is checked before it is followed.
//!
//! Layout: <https://flatbuffers.dev/internals/>. A table starts with an `i32` distance back to its
//! vtable; its fields follow. The vtable has the `u16` sizes of itself and of the table, then one
//! `u16` offset into the table for each field. The offset of an absent field is 0.

use thalweg_io::Fault;

/// A table whose vtable lies within the bytes.
#[derive(Clone, Copy)]
pub(super) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
    vtable: &'a [u8],
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Fault> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(|| outside(bytes, at))
}

#[cold]
fn outside(bytes: &[u8], at: usize) -> Fault {
    let found = format!("a FlatBuffers offset to byte {at}");
    Fault::new(at.min(bytes.len()), found, format!("one within the {} bytes", bytes.len()))
}

/// The position that the unsigned offset at `at` points to.
fn follow(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let distance = u32::from_le_bytes(take(bytes, at)?) as usize;
    at.checked_add(distance).filter(|&to| to < bytes.len()).ok_or_else(|| outside(bytes, at))
}

impl<'a> FlatTable<'a> {
    /// The root table, which the offset at the start of the buffer points to.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::new(bytes, follow(bytes, 0)?)
    }

    fn new(bytes: &'a [u8], at: usize) -> Result<Self, Fault> {
        let back = i64::from(i32::from_le_bytes(take(bytes, at)?));
        let vtable = usize::try_from(at as i64 - back).map_err(|_| outside(bytes, at))?;
        let len = usize::from(u16::from_le_bytes(take(bytes, vtable)?));
        let vtable = vtable
            .checked_add(len)
            .and_then(|end| bytes.get(vtable..end))
            .ok_or_else(|| outside(bytes, at))?;
        Ok(Self { bytes, at, vtable })
    }

    /// The position of a field, if it is present.
    fn field(&self, index: usize) -> Option<usize> {
        let slot = self.vtable.get(4 + 2 * index..)?.first_chunk().copied()?;
        let offset = usize::from(u16::from_le_bytes(slot));
        (offset != 0).then_some(self.at + offset)
    }

    pub(super) fn i64(&self, index: usize) -> Result<i64, Fault> {
        self.field(index).map_or(Ok(0), |at| take(self.bytes, at).map(i64::from_le_bytes))
    }

    pub(super) fn i16(&self, index: usize) -> Result<i16, Fault> {
        self.field(index).map_or(Ok(0), |at| take(self.bytes, at).map(i16::from_le_bytes))
    }

    /// A string; empty if absent.
    pub(super) fn text(&self, index: usize) -> Result<&'a str, Fault> {
        let Some(at) = self.field(index) else { return Ok("") };
        let at = follow(self.bytes, at)?;
        let len = u32::from_le_bytes(take(self.bytes, at)?) as usize;
        let bytes = self
            .bytes
            .get(at + 4..)
            .and_then(|rest| rest.get(..len))
            .ok_or_else(|| outside(self.bytes, at))?;
        std::str::from_utf8(bytes)
            .map_err(|_| Fault::new(at, "a string that is not UTF-8", "UTF-8 text"))
    }

    /// A vector of tables; empty if absent.
    pub(super) fn tables(
        &self,
        index: usize,
    ) -> Result<impl Iterator<Item = Result<Self, Fault>> + use<'a>, Fault> {
        let bytes = self.bytes;
        let (first, len) = match self.field(index) {
            None => (0, 0),
            Some(at) => {
                let at = follow(bytes, at)?;
                let len = u32::from_le_bytes(take(bytes, at)?) as usize;
                // A vector larger than the buffer is refused before its elements are visited.
                let fits = len.checked_mul(4).is_some_and(|size| size <= bytes.len() - at);
                (at + 4, if fits { len } else { return Err(outside(bytes, at)) })
            }
        };
        Ok((0..len).map(move |i| Self::new(bytes, follow(bytes, first + 4 * i)?)))
    }
}
