//! A buffer for bytes that are produced before they can be written. Few bytes stay in memory; many
//! go to an unnamed file.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_io::new_file::nameless;
use thalweg_io::{Error, Result};

/// The buffer moves to the file when it has at least this many bytes.
const MOST_IN_MEMORY: usize = 16 << 20;

/// Bytes read from the file at a time.
const PIECE: usize = 1 << 20;

/// A queue of bytes, partly in a file.
#[derive(Debug)]
pub(crate) struct Spill {
    beside: PathBuf,
    name: Arc<str>,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Spill {
    /// An empty buffer. Bytes that do not fit into memory go to a file beside `path`, because that
    /// disk should have room.
    pub(crate) fn new(path: &Path, name: &Arc<str>) -> Self {
        Self { beside: path.to_owned(), name: name.clone(), file: None, buffer: Vec::new() }
    }

    /// The buffer to append bytes to. The caller then calls [`Spill::settle`].
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Moves the buffer to the file if it is too large for memory.
    ///
    /// # Errors
    /// [`Error::Io`], for example on a full disk.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.buffer.len() < MOST_IN_MEMORY {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self
                .file
                .insert(nameless(&self.beside).map_err(|e| Error::io(&self.name, "creating", e))?),
        };
        file.write_all(&self.buffer)
            .map_err(|e| Error::io(&self.name, "writing its last part ahead", e))?;
        self.buffer.clear();
        Ok(())
    }

    /// Calls `take` with all bytes in order, in pieces.
    ///
    /// # Errors
    /// [`Error::Io`], and the errors of `take`.
    pub(crate) fn drain(self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(mut file) = self.file {
            let failed = |e| Error::io(&self.name, "reading its last part again", e);
            file.rewind().map_err(failed)?;
            let mut piece = vec![0; PIECE];
            loop {
                match file.read(&mut piece).map_err(failed)? {
                    0 => break,
                    len => take(piece.get(..len).unwrap_or_default())?,
                }
            }
        }
        take(&self.buffer)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn spilled_bytes_come_back() {
        let folder = tempfile::tempdir().unwrap();
        for pieces in [0, 3, 40] {
            let mut spill = Spill::new(&folder.path().join("out"), &"out".into());
            let piece: Vec<u8> = (0..1_000_003_u32).map(|i| (i ^ i >> 8) as u8).collect();
            for _ in 0..pieces {
                spill.buffer().extend(&piece);
                spill.settle().unwrap();
            }
            assert_eq!(spill.file.is_some(), pieces == 40);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing to clean up");
            let mut all = Vec::new();
            spill
                .drain(|bytes| {
                    all.extend_from_slice(bytes);
                    Ok(())
                })
                .unwrap();
            assert!(all == piece.repeat(pieces));
        }
    }
}
