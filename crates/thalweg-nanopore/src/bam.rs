//! Reads the read ids of a BAM file (SAM specification, sections 4.1 and 4.2).
//!
//! A basecaller that splits a read gives the parts new names and keeps the name of the original
//! read in the tag `pi`. That tag takes precedence, because signal files know only the original
//! read.
//!
//! The file is read as a stream. Memory grows only with bytes that were read, never by a length
//! that the file claims.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use thalweg_codec::gzip::END;
use thalweg_io::store::FileStore;
use thalweg_io::urls;
use thalweg_io::{Error, Result};

/// First bytes of the decompressed file.
const MAGIC: [u8; 4] = *b"BAM\x01";

/// Bytes of a record before its read name.
const FIXED: usize = 32;

/// The read ids of the records of a BAM file, in their order. A read with several alignments occurs
/// several times. The iterator ends after an error.
#[derive(Debug)]
pub struct BamIds<R> {
    name: Arc<str>,
    bytes: R,
    /// Decompressed bytes so far.
    at: u64,
    records: u64,
    tags: Vec<u8>,
    over: bool,
}

impl BamIds<BufReader<MultiGzDecoder<BufReader<File>>>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Truncated`] if the end marker is missing; [`Error::Malformed`] if it
    /// is not a BAM file.
    pub fn open(path: &Path) -> Result<Self> {
        let name: Arc<str> = urls::shown_path(path).into();
        // Without its last block, a file that was cut between two blocks would pass as complete.
        // A pipe without a writer would have this wait for ever, and has no end to look at.
        let store = FileStore::open(path)?;
        let mut file = store.file().try_clone().map_err(|e| Error::io(&name, "opening", e))?;
        let last = (|| {
            let size = file.seek(SeekFrom::End(0))?;
            let mut last = Vec::new();
            file.seek(SeekFrom::Start(size.saturating_sub(END.len() as u64)))?;
            (&mut file).take(END.len() as u64).read_to_end(&mut last)?;
            file.rewind()?;
            Ok((size, last))
        })();
        let (size, last) = last.map_err(|e: io::Error| Error::io(&name, "reading", e))?;
        let ids =
            Self::new(name.clone(), BufReader::new(MultiGzDecoder::new(BufReader::new(file))))?;
        if last != END {
            let advice = "; samtools quickcheck says the same";
            return Err(Error::Truncated {
                file: name,
                what: "BGZF blocks".into(),
                offset: size,
                size,
                advice,
            });
        }
        Ok(ids)
    }
}

impl<R: BufRead> BamIds<R> {
    /// Reads ids from decompressed bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the bytes do not begin like a BAM file.
    pub fn new(name: Arc<str>, bytes: R) -> Result<Self> {
        let mut ids = Self { name, bytes, at: 0, records: 0, tags: Vec::new(), over: false };
        let magic: [u8; 4] = ids.array("the magic")?;
        if magic != MAGIC {
            return Err(ids.malformed(0, format!("\"{}\"", magic.escape_ascii()), "\"BAM\\1\""));
        }
        let text = ids.length("the length of the header text")?;
        ids.pass_over(text, "the header text")?;
        for _ in 0..ids.length("the number of reference sequences")? {
            let name = ids.length("the length of a reference's name")?;
            ids.pass_over(name + 4, "a reference sequence")?;
        }
        Ok(ids)
    }

    fn malformed(&self, at: u64, found: impl Into<String>, expected: &'static str) -> Error {
        Error::Malformed {
            file: self.name.clone(),
            what: format!("BAM record {} (decompressed)", self.records + 1).into(),
            offset: at,
            found: found.into().into(),
            expected: expected.into(),
        }
    }

    fn failed(&self, error: io::Error, what: &'static str) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.malformed(self.at, "the end of the file", what),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => self.malformed(
                self.at,
                error.to_string(),
                "BGZF blocks; it must be BAM, not SAM or CRAM",
            ),
            _ => Error::io_at(&self.name, "reading", self.at, error),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes).map_err(|e| self.failed(e, what))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn length(&mut self, what: &'static str) -> Result<u64> {
        let at = self.at;
        let length = i32::from_le_bytes(self.array(what)?);
        u64::try_from(length).map_err(|_| self.malformed(at, length.to_string(), what))
    }

    fn pass_over(&mut self, len: u64, what: &'static str) -> Result<()> {
        let skipped = io::copy(&mut (&mut self.bytes).take(len), &mut io::sink());
        let skipped = skipped.map_err(|e| self.failed(e, what))?;
        self.at += skipped;
        if skipped < len {
            Err(self.malformed(self.at, "the end of the file", what))
        } else {
            Ok(())
        }
    }

    /// The next record's id; `None` at the end.
    fn record(&mut self) -> Result<Option<String>> {
        let over = self.bytes.fill_buf().map(<[u8]>::is_empty);
        if over.map_err(|e| self.failed(e, "a record"))? {
            return Ok(None);
        }
        let start = self.at;
        let size = u64::from(u32::from_le_bytes(self.array("the size of a record")?));
        let [fixed @ .., _, _, _, _, _, _, _, _, _, _, _, _]: [u8; FIXED] =
            self.array("a record")?;
        // refID, pos, l_read_name, mapq, bin, n_cigar_op, flag, l_seq.
        let [_, _, _, _, _, _, _, _, name_len, _, _, _, c0, c1, _, _, s0, s1, s2, s3] = fixed;
        let name_len = usize::from(name_len);
        let bases = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
        let body = u64::from(u16::from_le_bytes([c0, c1])) * 4 + bases.div_ceil(2) + bases;
        let tags = size.checked_sub(FIXED as u64 + name_len as u64 + body);
        let tags = tags.ok_or_else(|| {
            self.malformed(start, format!("a record of {size} bytes"), "room for its parts")
        })?;
        let mut name = [0; u8::MAX as usize];
        let name = &mut name[..name_len];
        self.bytes.read_exact(name).map_err(|e| self.failed(e, "a read name"))?;
        self.at += name_len as u64;
        let name = name.strip_suffix(b"\0").unwrap_or(name);
        self.pass_over(body, "cigar, bases and qualities")?;
        self.tags.clear();
        let tags_at = self.at;
        let got = (&mut self.bytes).take(tags).read_to_end(&mut self.tags);
        let got = got.map_err(|e| self.failed(e, "tags"))?;
        self.at += got as u64;
        if (got as u64) < tags {
            return Err(self.malformed(self.at, "the end of the file", "tags"));
        }
        let parent = parent(&self.tags).ok_or_else(|| {
            self.malformed(tags_at, "tags that do not fill their bytes", "tags of known types")
        })?;
        let id = std::str::from_utf8(parent.unwrap_or(name))
            .map_err(|_| self.malformed(start, "a read name that is not UTF-8", "text"))?
            .to_owned();
        self.records += 1;
        Ok(Some(id))
    }
}

/// The text of the tag `pi`, if there is one; `None` if the tags are malformed.
fn parent(mut tags: &[u8]) -> Option<Option<&[u8]>> {
    while !tags.is_empty() {
        let ([a, b, kind], rest) = tags.split_first_chunk()?;
        let size = |kind: u8| match kind {
            b'A' | b'c' | b'C' => Some(1),
            b's' | b'S' => Some(2),
            b'i' | b'I' | b'f' => Some(4),
            _ => None,
        };
        let len = match kind {
            b'Z' | b'H' => rest.iter().position(|&byte| byte == 0)? + 1,
            b'B' => {
                let ([element, count @ ..], _) = rest.split_first_chunk::<5>()?;
                let bytes = size(*element)? * u32::from_le_bytes(*count) as usize;
                5 + bytes
            }
            kind => size(*kind)?,
        };
        let (value, next) = rest.split_at_checked(len)?;
        if [*a, *b, *kind] == *b"piZ" {
            return Some(value.strip_suffix(b"\0"));
        }
        tags = next;
    }
    Some(None)
}

impl<R: BufRead> Iterator for BamIds<R> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        if self.over {
            return None;
        }
        let next = self.record().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests;
