//! A file, joined with pieces of other files that belong to it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Feed, Request, Store};
use crate::error::Result;

/// Offset of the first piece: beyond the end of any file.
const FIRST: u64 = 1 << 62;

/// The least distance, in bytes, between pieces of different arrays, so that no request covers two
/// arrays.
const APART: u64 = 1 << 40;

/// A store followed by pieces of other files, at offsets beyond the end of the store. Bytes between
/// pieces are zeros, and so are bytes of a piece that its file is too short for.
pub struct JoinedStore {
    main: Arc<dyn Store>,
    pieces: RwLock<Pieces>,
}

#[derive(Default)]
struct Pieces {
    /// Sorted by offset in the joined store.
    list: Vec<JoinedPiece>,
    files: HashMap<PathBuf, Arc<dyn Store>>,
}

/// Bytes of another file.
#[derive(Debug, Clone)]
pub struct JoinedPiece {
    /// Offset in the joined store.
    at: u64,
    /// The file.
    pub path: PathBuf,
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    file: Arc<dyn Store>,
}

impl fmt::Debug for JoinedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinedStore").field(&self.main).finish()
    }
}

impl JoinedStore {
    /// A store without pieces.
    pub fn new(main: Arc<dyn Store>) -> Self {
        Self { main, pieces: RwLock::default() }
    }

    /// The store without its pieces.
    pub fn main(&self) -> &Arc<dyn Store> {
        &self.main
    }

    /// Appends consecutive pieces, each given as path, offset in the file and length in bytes.
    /// Returns the offset of the first piece in the joined store; `None` if there is no more room.
    /// Each file is opened with `open` once.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn append(
        &self,
        parts: &[(PathBuf, u64, u64)],
        open: impl Fn(&Path) -> Result<Arc<dyn Store>>,
    ) -> Result<Option<u64>> {
        let mut pieces = self.pieces.write().unwrap_or_else(PoisonError::into_inner);
        let end = pieces.list.last().map_or(Some(FIRST), |last| {
            (last.at + last.len)
                .checked_next_multiple_of(APART)
                .and_then(|end| end.checked_add(APART))
        });
        let total = parts.iter().try_fold(0u64, |total, (_, _, len)| total.checked_add(*len));
        let room = end.zip(total).and_then(|(start, total)| start.checked_add(total));
        let Some((start, _)) = end.zip(room.filter(|&end| end <= i64::MAX as u64)) else {
            return Ok(None);
        };
        let mut at = start;
        for (path, offset, len) in parts {
            let file = match pieces.files.get(path) {
                Some(file) => file.clone(),
                None => {
                    let file = open(path)?;
                    pieces.files.insert(path.clone(), file.clone());
                    file
                }
            };
            pieces.list.push(JoinedPiece {
                at,
                path: path.clone(),
                offset: *offset,
                len: *len,
                file,
            });
            at += len;
        }
        Ok(Some(start))
    }

    /// The pieces that `len` bytes from `offset` on consist of, each cut to this range. Empty for
    /// bytes of the main store.
    pub fn pieces(&self, offset: u64, len: u64) -> Vec<JoinedPiece> {
        if offset < FIRST {
            return Vec::new();
        }
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        let end = offset.saturating_add(len);
        let first = pieces.list.partition_point(|piece| piece.at + piece.len <= offset);
        let here = pieces.list[first..].iter().take_while(|piece| piece.at < end);
        let cut = |piece: &JoinedPiece| {
            let from = piece.at.max(offset);
            let to = (piece.at + piece.len).min(end);
            JoinedPiece {
                at: from,
                offset: piece.offset + (from - piece.at),
                len: to - from,
                ..piece.clone()
            }
        };
        here.map(cut).collect()
    }

    fn is_plain(&self) -> bool {
        self.pieces.read().unwrap_or_else(PoisonError::into_inner).list.is_empty()
    }
}

impl Store for JoinedStore {
    fn name(&self) -> &Arc<str> {
        self.main.name()
    }

    fn size(&self) -> u64 {
        self.main.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset < FIRST {
            return self.main.read_at(offset, buf);
        }
        buf.fill(0);
        for piece in self.pieces(offset, buf.len() as u64) {
            let there = piece.file.size().saturating_sub(piece.offset).min(piece.len) as usize;
            let at = (piece.at - offset) as usize;
            // A file refuses an offset beyond its end, even for no bytes.
            if there > 0 {
                piece.file.read_at(piece.offset, &mut buf[at..at + there])?;
            }
        }
        Ok(())
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        offset < FIRST && self.main.read_at_hand(offset, buf)
    }

    /// The bytes of the main store. They stay addressable when pieces are appended, because a run
    /// in progress has views of them.
    fn bytes(&self) -> Option<&[u8]> {
        self.main.bytes()
    }

    fn head(&self) -> u64 {
        self.main.head()
    }

    fn missing(&self, range: Range<u64>) -> Range<u64> {
        if range.start < FIRST { self.main.missing(range) } else { range }
    }

    fn touch(&self, offset: u64, len: usize) -> Result<()> {
        self.main.touch(offset, len)
    }

    fn answer(&self, request: &mut Request) -> Result<()> {
        match &mut request.buf {
            Some(buf) if request.offset >= FIRST => {
                self.read_at(request.offset, &mut buf[request.at..request.at + request.len])
            }
            _ => self.main.answer(request),
        }
    }

    fn alignment(&self) -> usize {
        self.main.alignment()
    }

    fn serve(&self, depth: usize, feed: &dyn Feed) {
        if self.is_plain() {
            return self.main.serve(depth, feed);
        }
        super::serve_with_threads(self, depth, feed);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::JoinedStore;
    use crate::error::Result;
    use crate::store::{FileStore, MemoryStore, Store};

    #[test]
    fn pieces_stand_behind_the_file() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let open = |path: &Path| -> Result<Arc<dyn Store>> { Ok(Arc::new(FileStore::open(path)?)) };
        let folder = tempfile::tempdir()?;
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&a, b"abcdefgh")?;
        std::fs::write(&b, b"0123")?;
        let store = JoinedStore::new(Arc::new(MemoryStore::new("main", b"main".to_vec())));
        assert_eq!(store.bytes(), Some(&b"main"[..]));
        let missing = "no room";
        let first = store
            .append(&[(a.clone(), 2, 3), (b.clone(), 1, 5), (a.clone(), 0, 1)], open)?
            .ok_or(missing)?;
        let second = store.append(&[(b, 0, 2)], open)?.ok_or(missing)?;
        let read = |at: u64, len: usize| {
            let mut out = vec![9; len];
            store.read_at(at, &mut out).map(|()| out)
        };
        assert_eq!(read(first, 9)?, b"cde123\0\0a");
        assert_eq!(read(first + 2, 2)?, b"e1");
        assert_eq!(read(first + 7, 1)?, b"\0");
        assert_eq!(read(first + 8, 4)?, b"a\0\0\0");
        assert_eq!(read(second, 2)?, b"01");
        assert_eq!(read(0, 4)?, b"main");
        assert_eq!((store.size(), store.bytes()), (4, Some(&b"main"[..])));
        let pieces: Vec<_> =
            store.pieces(first + 1, 4).into_iter().map(|p| (p.offset, p.len)).collect();
        assert_eq!(pieces, [(3, 2), (1, 2)]);
        assert!(store.append(&[(a.clone(), 0, u64::MAX / 2)], open)?.is_none());
        Ok(())
    }
}
