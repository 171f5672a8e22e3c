//! Writing POD5 files: the newest version of the three tables, their order and the footer.
//!
//! ```text
//! signature, marker, Signal, marker, RunInfo, marker, Reads, marker,
//! footer, its length, marker, signature
//! ```
//!
//! The Signal table comes first and is by far the largest, so that it is written while reads
//! arrive. Rows of the Reads table are encoded immediately, and the caller keeps them (about 200
//! bytes per read) until the Signal table is complete.

mod column;
mod encode;
mod footer;
mod ipc;
mod model;
mod reads;
mod run_info;
mod schema;
mod signal;

use std::hash::{BuildHasher, Hasher, RandomState};

use thalweg_codec::splitmix::{STEP, mix};
use thalweg_io::Fault;

use crate::pod5::{RunInfo, format_uuid};
use footer::{TableContent, WrittenSection, push_footer, push_section_end, push_start};
use ipc::IpcFile;
use reads::ReadsTableWriter;
use signal::SignalTable;

pub use column::ColumnValue;
pub(super) use column::type_of;
pub use encode::{EncodedSignal, SignalEncoder};
pub use model::{Mapping, Runs};
pub use reads::{ExtraColumn, ReadsRow};

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalCoding {
    /// VBZ: zstd over StreamVByte16 of zigzag differences.
    Vbz {
        /// The compression level of zstd. The POD5 library uses 1.
        level: i32,
    },
    /// Plain 16-bit samples.
    Plain,
}

impl Default for SignalCoding {
    fn default() -> Self {
        Self::Vbz { level: encode::ZSTD_LEVEL }
    }
}

/// How a file is laid out. The defaults are the POD5 library's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod5Layout {
    /// How samples are stored.
    pub coding: SignalCoding,
    /// Most samples in a row of the Signal table.
    pub row_samples: u32,
    /// Rows of a batch of the Signal table.
    pub signal_rows: usize,
    /// Rows of a batch of the Reads table.
    pub reads_rows: usize,
    /// The name of the writing program in the file.
    pub software: String,
    /// The identity of the file. A new random one if `None`.
    pub identity: Option<Identity>,
}

impl Default for Pod5Layout {
    fn default() -> Self {
        Self {
            coding: SignalCoding::default(),
            row_samples: encode::ROW_SAMPLES,
            signal_rows: 100,
            reads_rows: 1000,
            software: format!("thalweg {}", env!("CARGO_PKG_VERSION")),
            identity: None,
        }
    }
}

/// The UUIDs that distinguish a file from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The UUID of the file, as text.
    pub file_identifier: String,
    /// The UUID that ends every section. Recovery of a damaged file searches for it.
    pub section_marker: [u8; 16],
}

impl Identity {
    /// An identity that is derived from `seed`: equal seeds give equal identities.
    pub fn from_seed(seed: u64) -> Self {
        let word = |n: u64| u128::from(mix(seed.wrapping_add(n.wrapping_mul(STEP))));
        let uuid_of = |n| {
            // Version 4, variant 1 (RFC 9562, section 5.4).
            let bits = (word(n) << 64 | word(n + 1)) & !(0xf << 76) & !(0x3 << 62);
            (bits | 0x4 << 76 | 0x2 << 62).to_be_bytes()
        };
        let mut file_identifier = String::new();
        format_uuid(&uuid_of(1), &mut file_identifier);
        Self { file_identifier, section_marker: uuid_of(3) }
    }

    /// A random identity. The random keys that the standard library uses for hash maps are the
    /// source of randomness, which is good enough for an identifier.
    pub fn random() -> Self {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        Self::from_seed(hasher.finish())
    }
}

/// Encodes a POD5 file. Bytes that are appended to `out` belong to the file now. Bytes that are
/// appended to `kept` belong to it after [`Pod5Encoder::end_signal`].
#[derive(Debug)]
pub struct Pod5Encoder {
    identity: Identity,
    layout: Pod5Layout,
    signal: SignalTable,
    signal_from: u64,
    reads: ReadsTableWriter,
}

/// The end of a POD5 file, while the Reads table is written.
#[derive(Debug)]
pub struct Ending {
    identity: Identity,
    software: String,
    sections: Vec<WrittenSection>,
    from: u64,
    reads: IpcFile,
}

impl Pod5Encoder {
    /// Starts a file. `extra` lists the columns of the Reads table that POD5 does not define.
    pub fn start(layout: Pod5Layout, extra: &[ExtraColumn], out: &mut Vec<u8>) -> Self {
        let identity = layout.identity.clone().unwrap_or_else(Identity::random);
        let before = out.len();
        push_start(&identity, out);
        let signal_from = (out.len() - before) as u64;
        let signal_rows = layout.signal_rows.max(1);
        let signal =
            SignalTable::start(&identity, &layout.software, layout.coding, signal_rows, out);
        let reads = ReadsTableWriter::new(layout.reads_rows.max(1), extra);
        Self { identity, layout, signal, signal_from, reads }
    }

    /// Adds a read.
    ///
    /// # Errors
    /// When a column cannot hold its value.
    pub fn push(
        &mut self,
        row: &ReadsRow,
        signal: EncodedSignal,
        out: &mut Vec<u8>,
        kept: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let samples = signal.samples();
        let rows = self.signal.push(row.read_id, signal, out);
        self.reads.push(row, rows, samples, kept)
    }

    /// Ends the Signal table, and writes the RunInfo table and the start of the Reads table. The
    /// caller then writes all of `kept`, and calls [`Ending::finish`].
    ///
    /// # Errors
    /// When a column cannot hold a value.
    pub fn end_signal(
        self,
        run_infos: &[RunInfo],
        out: &mut Vec<u8>,
        kept: &mut Vec<u8>,
    ) -> Result<Ending, Fault> {
        let Self { identity, layout, signal, signal_from, mut reads } = self;
        reads.flush(kept)?;
        let len = signal.finish(out);
        let mut sections =
            vec![WrittenSection { content: TableContent::Signal, offset: signal_from, len }];
        push_section_end(&identity, len, out);
        let from = next_section(signal_from, len);
        let len = run_info::table(run_infos, &identity, &layout.software, out)?;
        sections.push(WrittenSection { content: TableContent::RunInfo, offset: from, len });
        push_section_end(&identity, len, out);
        let from = next_section(from, len);
        let ids: Vec<&str> = run_infos.iter().map(|run| run.text("acquisition_id")).collect();
        let reads = reads.start(&identity, &layout.software, &ids, out)?;
        Ok(Ending { identity, software: layout.software, sections, from, reads })
    }
}

/// The start of the section after one at `offset` of `len` bytes. Padding and a section marker lie
/// between them.
fn next_section(offset: u64, len: u64) -> u64 {
    offset + len.next_multiple_of(8) + 16
}

impl Ending {
    /// Appends the end of the file.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        let len = self.reads.finish(out);
        push_section_end(&self.identity, len, out);
        self.sections.push(WrittenSection { content: TableContent::Reads, offset: self.from, len });
        push_footer(&self.identity, &self.software, &self.sections, out);
    }
}
