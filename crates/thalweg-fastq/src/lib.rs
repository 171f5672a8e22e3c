//! FASTQ files: plain text, gzip and BGZF, read in parallel, in bounded memory, in file order.
//!
//! ```
//! use thalweg_fastq::FastqFile;
//! use thalweg_io::open::Options;
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("reads.fastq");
//! std::fs::write(&path, "@r1 of two\nACGT\n+\nIIII\n@r2\nAC\n+\nII\n")?;
//! let file = FastqFile::open(&path, Options::default())?;
//! let lengths = file.map(|record| (record.name().to_owned(), record.sequence.len()))?;
//! let lengths: Vec<_> = lengths.collect::<Result<_, _>>()?;
//! assert_eq!(lengths, [("r1".to_owned(), 4), ("r2".to_owned(), 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How text is read in parallel
//!
//! Threads take pieces of text that begin and end anywhere: parts of a plain file, or some blocks
//! of a BGZF file. Each finds the first record of its piece: a line that starts with `@`, two lines
//! before one that starts with `+`. It takes what follows. The consumer joins what lies across
//! pieces, and thereby proves that each piece was divided as it would have been from the start of
//! the file.
//!
//! Of a gzip file without blocks, threads decompress parts that begin anywhere, too, with places in
//! stead of the bytes that matches copy from before the part. One thread puts the bytes there.
//! Other threads take the records. A stream is decompressed by one thread.

mod columns;
mod convert;
mod file;
mod filter;
mod gathered;
mod map;
mod piece;
mod pieces;
mod record;
mod serial;
mod source;
mod split;
mod stitch;
mod summary;
#[cfg(test)]
mod tests;

pub use columns::{Batches, schema};
pub use convert::{Converted, Target};
pub use file::{Compression, FastqFile, head, is_fastq, is_fastq_name};
pub use filter::Filtered;
pub use map::Mapped;
pub use record::Record;
pub use source::OnStored;
pub use split::Parts;
pub use summary::{Count, Summary, condition_schema};
