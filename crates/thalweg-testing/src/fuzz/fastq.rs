//! FASTQ, plain and compressed.

use std::sync::Arc;

use thalweg_fastq::{FastqFile, Target};
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::MemoryStore;

/// A file in pieces of so many bytes of text.
fn file(bytes: &[u8], piece: usize) -> Option<FastqFile> {
    let store = Arc::new(MemoryStore::new("fuzz", bytes.to_vec()));
    let budget = Budget { threads: 2, memory: 64 << 20 };
    let options = Options { budget, ..Options::default() };
    FastqFile::from_store(store, options).ok().map(|file| file.with_pieces_of(piece))
}

/// Names and lengths of all records, if none has a defect.
fn records(bytes: &[u8], piece: usize) -> Option<Vec<(String, usize)>> {
    let record =
        |record: &thalweg_fastq::Record<'_>| (record.title.to_owned(), record.sequence.len());
    file(bytes, piece)?.map(record).ok()?.collect::<Result<_, _>>().ok()
}

/// Any bytes as a file: all pieces give the same records, or all find a defect; and what is written
/// in another compression has the same records.
///
/// # Panics
/// If that does not hold.
pub fn fastq(bytes: &[u8]) {
    // Large inputs may decompress to very much.
    if bytes.len() > 1 << 12 {
        return;
    }
    let whole = records(bytes, 1 << 20);
    for piece in [1, 13, 200] {
        assert_eq!(records(bytes, piece), whole, "pieces of {piece} bytes");
    }
    let Some(whole) = whole else { return };
    for target in [Target::Plain, Target::Gzip(1), Target::Bgzf(1)] {
        let mut out = Vec::new();
        let converted = file(bytes, 100).map(|file| {
            file.convert(target, true, None, |part| {
                out.extend_from_slice(part);
                Ok(())
            })
        });
        assert!(converted.is_some_and(|done| done.is_ok()), "{target:?}");
        assert_eq!(records(&out, 50).as_ref(), Some(&whole), "{target:?}");
    }
}
