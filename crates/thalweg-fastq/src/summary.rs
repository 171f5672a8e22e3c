//! Figures of a whole file: reads, bases, lengths, qualities.

use std::ops::AddAssign;
use std::sync::LazyLock;

use arrow_schema::{DataType, Field, Schema};
use thalweg_io::Result;
use thalweg_io::cells::Number;
use thalweg_io::condition::Row;
use thalweg_io::lengths::{LengthStats, Lengths};

use crate::file::FastqFile;
use crate::piece::Gather;
use crate::record::Record;
use crate::source::OnStored;

/// The lowest character of a quality, which is Phred 0.
const ZERO: u8 = b'!';
/// Qualities from Phred 0 to 93.
const QUALITIES: usize = 94;

/// How many reads and bases a file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Records.
    pub reads: u64,
    /// Bases of all records.
    pub bases: u64,
}

impl AddAssign<Option<Self>> for Count {
    fn add_assign(&mut self, more: Option<Self>) {
        let more = more.unwrap_or_default();
        self.reads += more.reads;
        self.bases += more.bases;
    }
}

/// Figures of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Records.
    pub reads: u64,
    /// Bases of all records.
    pub bases: u64,
    /// Exact statistics of lengths in bases; `None` without reads.
    pub lengths: Option<LengthStats>,
    /// Bases that are G or C, of either case.
    pub gc: u64,
    /// The number of bases with each Phred quality, from 0 to 93.
    pub qualities: [u64; QUALITIES],
}

impl Summary {
    /// Bases with a Phred quality of at least `phred`.
    pub fn bases_from(&self, phred: usize) -> u64 {
        self.qualities.iter().skip(phred).sum()
    }

    /// The Phred quality of the mean probability of an error; `None` without bases.
    pub fn mean_quality(&self) -> Option<f64> {
        let errors = self.qualities.iter().zip(&*ERRORS);
        mean_quality(errors.map(|(&n, error)| n as f64 * error).sum(), self.bases_from(0))
    }
}

/// The probability of an error at each Phred quality.
static ERRORS: LazyLock<[f64; QUALITIES]> =
    LazyLock::new(|| std::array::from_fn(|phred| 10_f64.powf(phred as f64 / -10.0)));

/// The Phred quality of the mean of probabilities with this sum.
fn mean_quality(errors: f64, bases: u64) -> Option<f64> {
    // Not -0.
    (bases > 0).then(|| -10.0 * (errors / bases as f64).log10() + 0.0)
}

impl Record<'_> {
    /// The Phred quality of the mean probability of an error; `None` without bases.
    pub fn mean_quality(&self) -> Option<f64> {
        let errors = &*ERRORS;
        let errors = self.qualities.iter().map(|quality| errors[usize::from(quality - ZERO)]);
        mean_quality(errors.sum(), self.qualities.len() as u64)
    }
}

/// The columns of records for a [condition](thalweg_io::condition): `name`, `description`, `bases`
/// and [`mean_quality`](Record::mean_quality).
pub fn condition_schema() -> Schema {
    Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("description", DataType::Utf8, true),
        Field::new("bases", DataType::UInt64, false),
        Field::new("mean_quality", DataType::Float64, true),
    ])
}

/// With the columns of [`condition_schema`].
impl Row for Record<'_> {
    fn number(&self, column: usize) -> Option<Number> {
        match column {
            2 => Some(Number::Whole(self.sequence.len() as i128)),
            3 => self.mean_quality().map(Number::Real),
            _ => Number::parse(self.text(column)?),
        }
    }

    fn text(&self, column: usize) -> Option<&str> {
        if column == 0 { Some(self.name()) } else { self.description() }
    }

    fn is_missing(&self, column: usize) -> bool {
        match column {
            1 => self.description().is_none(),
            3 => self.qualities.is_empty(),
            _ => false,
        }
    }
}

pub(crate) struct Counter;

impl Gather for Counter {
    type Rows = Count;

    fn push(&self, count: &mut Count, record: &Record<'_>) {
        count.reads += 1;
        count.bases += record.sequence.len() as u64;
    }
}

struct Summing;

/// Neighbours that are counted apart.
const WAYS: usize = 4;

/// The figures of some records.
struct Part {
    lengths: Vec<u64>,
    gc: u64,
    /// Counts of each byte: an increment need not wait for that of an equal neighbour.
    qualities: [[u32; 256]; WAYS],
}

impl Default for Part {
    fn default() -> Self {
        Self { lengths: Vec::new(), gc: 0, qualities: [[0; 256]; WAYS] }
    }
}

impl Gather for Summing {
    type Rows = Part;

    fn push(&self, part: &mut Part, record: &Record<'_>) {
        part.lengths.push(record.sequence.len() as u64);
        let is_gc = |byte: &u8| u8::from(matches!(byte | 0x20, b'g' | b'c'));
        // As many as a byte counts, so that many bytes are added at a time.
        let parts = record.sequence.chunks(usize::from(u8::MAX));
        part.gc += parts.map(|part| u64::from(part.iter().map(is_gc).sum::<u8>())).sum::<u64>();
        let (groups, rest) = record.qualities.as_chunks::<WAYS>();
        for group in groups {
            for (counts, &byte) in part.qualities.iter_mut().zip(group) {
                counts[usize::from(byte)] += 1;
            }
        }
        for &byte in rest {
            part.qualities[0][usize::from(byte)] += 1;
        }
    }
}

impl FastqFile {
    /// The number of reads and bases. Everything is checked that reading records checks.
    ///
    /// # Errors
    /// Those of [`FastqFile::map`].
    pub fn count(&self) -> Result<Count> {
        self.count_with(None)
    }

    /// [`FastqFile::count`], while something sees the stored bytes: to calculate their checksum.
    ///
    /// # Errors
    /// Those of [`FastqFile::map`].
    pub fn count_with(&self, on_stored: Option<OnStored>) -> Result<Count> {
        self.taken(Counter, on_stored)?.try_fold(Count::default(), |mut all, part| {
            all += Some(part?);
            Ok(all)
        })
    }

    /// Figures of all records.
    ///
    /// # Errors
    /// Those of [`FastqFile::map`].
    pub fn summary(&self) -> Result<Summary> {
        let mut lengths = Lengths::default();
        let mut all =
            Summary { reads: 0, bases: 0, lengths: None, gc: 0, qualities: [0; QUALITIES] };
        for part in self.taken(Summing, None)? {
            let part = part?;
            all.reads += part.lengths.len() as u64;
            all.bases += part.lengths.iter().sum::<u64>();
            all.gc += part.gc;
            part.lengths.into_iter().for_each(|length| lengths.push(length));
            for (phred, count) in all.qualities.iter_mut().enumerate() {
                let byte = phred + usize::from(ZERO);
                *count += part.qualities.iter().map(|of| u64::from(of[byte])).sum::<u64>();
            }
        }
        all.lengths = lengths.stats();
        Ok(all)
    }
}
