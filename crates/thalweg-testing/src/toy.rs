//! The toy format: a minimal format of reads, which is the example of `docs/adding-a-format.md`.
//! Only tests read it.
//!
//! ```text
//! "TOYREADS"                                 signature
//! u32 length, u64 checksum, payload          a record; the length is that of the payload
//!   payload: u8 id length, id, i16 samples
//! ```
//!
//! Numbers are little-endian. The checksum is 64-bit FNV-1a over the payload.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::extent::{Extent, Framer, Source, Step};
use thalweg_io::new_file::NewFile;
use thalweg_io::open::Options;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};
use thalweg_nanopore::file::{
    CheckReport, FormatFile, KeepIntact, NewUnpacker, OpenFile, OpenedFormat, Selection,
    UnpackReads, check_reads,
};
use thalweg_nanopore::format::{AnyFile, Format, FormatEntry, register};
use thalweg_nanopore::losses::Losses;
use thalweg_nanopore::record::{
    Encoding, Entry, Header, Index, Record, RecordPress, SignalPress, StoredRow, Version,
};

/// First bytes of a file.
const SIGNATURE: &[u8; 8] = b"TOYREADS";

/// Bytes of a record before its payload: length and checksum.
const RECORD_HEAD: usize = 12;

/// The entry of the format in the list of formats.
static TOY: FormatEntry = FormatEntry {
    name: "TOY",
    extension: "toy",
    is_start: |head| head.starts_with(SIGNATURE),
    open: |store, options| open(store, options).map(AnyFile::listed),
};

/// Adds the format to the list of formats, until the process ends.
pub fn register_toy() -> Format {
    register(&TOY)
}

/// The bytes of a file with these reads.
pub fn toy_file(reads: &[(String, Vec<i16>)]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    for (id, samples) in reads {
        let mut payload = vec![u8::try_from(id.len()).expect("a short id")];
        payload.extend(id.as_bytes());
        payload.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(checksum(&payload).to_le_bytes());
        bytes.extend(payload);
    }
    bytes
}

/// 64-bit FNV-1a (constants: <http://www.isthe.com/chongo/tech/comp/fnv/>).
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// An open file. It has no state besides its header.
#[derive(Debug)]
struct ToyFile;

fn open(_store: &Arc<dyn Store>, _options: &Options) -> Result<OpenedFormat<ToyFile>> {
    let header = Header {
        version: Version::V0_2_0,
        // With this encoding an index may name records up to the end of the file.
        encoding: Encoding::Ascii,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 1,
        attributes: Vec::new(),
        aux: Vec::new(),
        data_offset: SIGNATURE.len() as u64,
    };
    Ok(OpenedFormat { file: ToyFile, header: Arc::new(header), requests: 1 })
}

impl FormatFile for ToyFile {
    type Unpacker = Box<dyn UnpackReads>;

    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        _signal: bool,
    ) -> Result<(Source, NewUnpacker<Self::Unpacker>)> {
        let source = match self.places(file, selection)? {
            Some(places) => Source::Planned(Box::new(file.gather(places, shape))),
            None => Source::Framed {
                range: file.header.data_offset..file.store.size(),
                framer: Box::new(ToyFramer { name: file.name().clone(), size: file.store.size() }),
            },
        };
        let name = file.name().clone();
        Ok((source, Arc::new(move |_| Box::new(ToyUnpacker { name: name.clone() }))))
    }

    fn single_unpacker(&self, file: &OpenFile) -> Self::Unpacker {
        Box::new(ToyUnpacker { name: file.name().clone() })
    }

    fn build_index(&self, file: &OpenFile) -> Result<Index> {
        let mut index = Index::new(file.header.version);
        let mut unpacker = ToyUnpacker { name: file.name().clone() };
        let mut at = file.header.data_offset;
        while at < file.store.size() {
            let mut head = vec![0; RECORD_HEAD];
            file.store.read_at(at, &mut head)?;
            let len = record_len(&head).unwrap_or_default() as u64;
            let mut bytes = vec![0; len.min(file.store.size() - at) as usize];
            file.store.read_at(at, &mut bytes)?;
            let extent = Extent { offset: at, ordinal: 0, bytes: &bytes };
            let (record, _) = unpacker.fields(&file.header, &extent, bytes.len())?;
            index
                .push(record.read_id, Entry { offset: at, size: len })
                .map_err(|fault| fault.in_file(file.name(), at, "read ids"))?;
            at += len;
        }
        Ok(index)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn salvage(&self, file: &OpenFile, out: &Path) -> Result<CheckReport> {
        let mut new = NewFile::create(out)?;
        new.push(SIGNATURE)?;
        let mut report = CheckReport::default();
        let source = self.source(file, &Selection::All, &file.shape(Delivery::Ordered), true)?;
        let mut salvaged = 0;
        let push = |record: Vec<u8>| {
            salvaged += 1;
            new.push(&record).map(|()| Losses::default())
        };
        check_reads(file, source, CopyRecord, push, &mut report)?;
        new.finish()?;
        report.salvaged = salvaged;
        Ok(report)
    }
}

/// Copies intact records as they are stored.
struct CopyRecord;

impl KeepIntact for CopyRecord {
    type Kept = Vec<u8>;

    fn wants_rows(&self) -> bool {
        true
    }

    fn keep(&self, _record: &Record<'_>, rows: &[StoredRow<'_>]) -> Result<Vec<u8>, Fault> {
        Ok(rows.iter().flat_map(|row| row.bytes.iter().copied()).collect())
    }
}

/// The length in bytes of the record that starts with `head`, if `head` holds the whole length.
fn record_len(head: &[u8]) -> Option<usize> {
    let payload = head.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    Some(RECORD_HEAD + payload as usize)
}

/// Finds records in a stream of bytes.
struct ToyFramer {
    name: Arc<str>,
    size: u64,
}

impl Framer for ToyFramer {
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let mut used = 0;
        while let Some(len) = record_len(&bytes[used..]) {
            let here = at + used as u64;
            if here + len as u64 > self.size {
                return Err(self.cut(here));
            }
            if used + len > bytes.len() {
                return Ok(Step::More { used, need: len });
            }
            found.push(used..used + len);
            used += len;
        }
        if last {
            return if used == bytes.len() {
                Ok(Step::End)
            } else {
                Err(self.cut(at + used as u64))
            };
        }
        Ok(Step::More { used, need: 0 })
    }
}

impl ToyFramer {
    fn cut(&self, offset: u64) -> Error {
        Error::Truncated {
            file: self.name.clone(),
            what: "a record".into(),
            offset,
            size: self.size,
            advice: "; fetch the file again",
        }
    }
}

/// Decodes records for one worker.
struct ToyUnpacker {
    name: Arc<str>,
}

impl ToyUnpacker {
    /// The id and the stored samples of a record's payload.
    fn parts<'a>(&self, extent: &Extent<'a>) -> Result<(&'a str, &'a [u8])> {
        let at = |found: &str, expected: &str| {
            Fault::new(0, found.to_owned(), expected.to_owned()).in_file(
                &self.name,
                extent.offset,
                "record",
            )
        };
        let (head, payload) = extent
            .bytes
            .split_at_checked(RECORD_HEAD)
            .filter(|_| record_len(extent.bytes) == Some(extent.bytes.len()))
            .ok_or_else(|| at("another length", "that of the record"))?;
        if head[4..] != checksum(payload).to_le_bytes() {
            return Err(at("another checksum", "that of the payload"));
        }
        let (&len, rest) = payload.split_first().ok_or_else(|| at("nothing", "a read id"))?;
        let (id, samples) = rest
            .split_at_checked(usize::from(len))
            .ok_or_else(|| at("a short record", "a read id"))?;
        let id = std::str::from_utf8(id).map_err(|_| at("other bytes", "UTF-8 text"))?;
        Ok((id, samples))
    }
}

fn record<'a>(read_id: &'a str, signal: &'a [u8]) -> Record<'a> {
    Record {
        read_id,
        read_group: 0,
        digitisation: 8192.0,
        offset: 0.0,
        range: 1400.0,
        sampling_rate: 5000.0,
        signal,
        aux: &[],
    }
}

impl UnpackReads for ToyUnpacker {
    fn read<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        _limit: usize,
        samples: &mut Vec<i16>,
        rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        let (id, signal) = self.parts(extent)?;
        samples.extend(signal.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)));
        if let Some(rows) = rows {
            let samples = (signal.len() / size_of::<i16>()) as u32;
            rows(StoredRow { samples, bytes: extent.bytes.into() });
        }
        Ok(record(id, signal))
    }

    fn fields<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        _limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        let (id, signal) = self.parts(extent)?;
        Ok((record(id, signal), (signal.len() / size_of::<i16>()) as u64))
    }
}
