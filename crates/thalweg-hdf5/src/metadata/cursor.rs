//! Reads little-endian fields one after the other.

use super::{NOWHERE, Result, damaged};

/// Bytes of the addresses and of the lengths in a file. Each is at most eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widths {
    pub(super) address: u8,
    pub(super) length: u8,
}

impl Default for Widths {
    fn default() -> Self {
        Self { address: 8, length: 8 }
    }
}

/// The number of `width` bytes, at most eight, whose bits are all set.
pub(super) fn all_ones(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width.clamp(1, 8))
}

/// The bytes that are left to parse, and their address in the file.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at: u64,
    widths: Widths,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which are at the address `at`.
    pub(super) fn new(bytes: &'a [u8], at: u64, widths: Widths) -> Self {
        Self { rest: bytes, at, widths }
    }

    /// A cursor at the start of other bytes of the same file.
    pub(super) fn same(&self, bytes: &'a [u8], at: u64) -> Self {
        Self { rest: bytes, at, widths: self.widths }
    }

    /// The widths of the file's addresses and lengths.
    pub(super) fn widths(&self) -> Widths {
        self.widths
    }

    /// The address of the next byte in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return damaged(
                self.at,
                format!("the last {} bytes of a structure", self.rest.len()),
                format!("{len} more"),
            );
        };
        self.rest = rest;
        self.at += len as u64;
        Ok(head)
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<()> {
        self.take(len).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned integer of `len` bytes, at most eight.
    pub(super) fn uint(&mut self, len: usize) -> Result<u64> {
        let at = self.at;
        let bytes = self.take(len)?;
        let mut wide = [0; 8];
        match wide.get_mut(..len) {
            Some(low) => low.copy_from_slice(bytes),
            None => return damaged(at, format!("an integer of {len} bytes"), "at most 8"),
        }
        Ok(u64::from_le_bytes(wide))
    }

    /// An address; [`NOWHERE`] if it is undefined.
    pub(super) fn address(&mut self) -> Result<u64> {
        let width = usize::from(self.widths.address);
        let address = self.uint(width)?;
        // The undefined address has all bits set, whatever its width.
        Ok(if address == all_ones(width) { NOWHERE } else { address })
    }

    /// A length.
    pub(super) fn length(&mut self) -> Result<u64> {
        self.uint(usize::from(self.widths.length))
    }

    /// Reads the signature of a structure, which must be `magic`.
    pub(super) fn magic(&mut self, magic: &'static str) -> Result<()> {
        let at = self.at;
        let found = self.take(magic.len())?;
        if found == magic.as_bytes() {
            return Ok(());
        }
        damaged(at, format!("\"{}\"", found.escape_ascii()), format!("{magic:?}"))
    }

    /// Reads a byte that must be `version`.
    pub(super) fn version(&mut self, version: u8, of: &'static str) -> Result<()> {
        let at = self.at;
        match self.u8()? {
            found if found == version => Ok(()),
            found => damaged(at, format!("version {found} of {of}"), format!("{version}")),
        }
    }

    /// The bytes up to a NUL. The NUL is skipped.
    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let Some(end) = self.rest.iter().position(|&byte| byte == 0) else {
            return damaged(self.at, "a string without an end", "a NUL");
        };
        let text = self.take(end)?;
        self.skip(1)?;
        Ok(text)
    }
}

/// The bytes before the first NUL.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}
