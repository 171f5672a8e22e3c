//! Properties that hold for any input: one function for each parser and codec that reads untrusted
//! bytes.
//!
//! The fuzz targets in `fuzz/` call these functions. A test also runs them on the committed corpora
//! with a stable toolchain. Each function panics when a property does not hold, and needs memory in
//! proportion to its input.

mod fastq;
mod graph;
mod gzip;
mod http;
mod pod5;
#[cfg(feature = "hdf5")]
mod repack;

use std::sync::Arc;

use arrow_array::{Array, Float32Array, RecordBatch, StringArray, UInt64Array};
use thalweg_codec::splitmix::checksum;
use thalweg_codec::{Kernel, deflate, ex_zd, svb, svb16, vbz as vbz_codec, zstd};
use thalweg_hdf5::array::{ElementPlace, Found};
use thalweg_hdf5::arrays::ArrayFile;
use thalweg_hdf5::extents::Extents;
use thalweg_hdf5::filter::{Contexts, Filter, Pipeline};
use thalweg_hdf5::metadata::{FetchOptions, MetadataFile};
use thalweg_io::Fault;
use thalweg_io::condition::Condition;
use thalweg_io::control::Control;
use thalweg_io::engine::Delivery;
use thalweg_io::model::StoreModel;
use thalweg_io::object_cache::Header as SectionHeader;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::{MemoryStore, Store};
use thalweg_nanopore::bam::BamIds;
use thalweg_nanopore::fast5::{LayoutBuilder, Root};
use thalweg_nanopore::reads::{Read, ReadFile, Selection, Visitor};
use thalweg_nanopore::slow5::{
    Attribute, AuxField, AuxType, Encoding, Frame, Framing, Header, Index, Parsed, Record,
    RecordDecoder, RecordEncoder, RecordPress, Scalar, SignalPress, Version, ascii,
};

pub use fastq::fastq;
pub use graph::{graph_change, graph_log, graph_manifest, graph_seeds, graph_segment};
pub use gzip::gzip_stream;
pub use http::{aws_profile, http_answers, http_connection};
pub use pod5::pod5;
#[cfg(feature = "hdf5")]
pub use repack::hdf5_repack;

/// A function that panics when a property does not hold for these bytes.
pub type FuzzTarget = fn(&[u8]);

/// Every target but the one of the feature `hdf5`: its name, which is also the name of its corpus,
/// and its function.
pub const TARGETS: [(&str, FuzzTarget); 29] = [
    ("svb_zd", svb_zd),
    ("svb16", svb16),
    ("ex_zd", ex_zd),
    ("vbz", vbz),
    ("zstd", zstd),
    ("deflate", deflate),
    ("gzip_stream", gzip_stream),
    ("slow5_header", slow5_header),
    ("slow5_record", slow5_record),
    ("slow5_row", slow5_row),
    ("slow5_index", slow5_index),
    ("slow5_frame", slow5_frame),
    ("whole_file", whole_file),
    ("bam", bam),
    ("fastq", fastq),
    ("hdf5_meta", hdf5_meta),
    ("hdf5_file", hdf5_file),
    ("hdf5_filters", hdf5_filters),
    ("hdf5_extents", hdf5_extents),
    ("condition", condition),
    ("pod5", pod5),
    ("graph_change", graph_change),
    ("graph_log", graph_log),
    ("graph_manifest", graph_manifest),
    ("graph_segment", graph_segment),
    ("http_answers", http_answers),
    ("http_connection", http_connection),
    ("aws_profile", aws_profile),
    ("object_cache", object_cache),
];

/// The most bytes that an input may decode to: a few coded bytes can decode to very many.
const LIMIT: usize = 1 << 20;

/// The contents of `out` before a signal codec appends to it. The codec must not change them.
const BEFORE: [i16; 3] = [1, -2, 3];

/// Checks a signal codec: every kernel decodes to the same samples or fails with the same fault,
/// and decoded samples survive a round trip.
fn signal(
    data: &[u8],
    decode: impl Fn(Kernel, &[u8], &mut Vec<i16>) -> Result<(), Fault>,
    encode: impl Fn(&[i16], &mut Vec<u8>) -> Result<(), Fault>,
) {
    let run = |kernel, bytes: &[u8]| {
        let mut out = BEFORE.to_vec();
        let outcome = decode(kernel, bytes, &mut out);
        assert_eq!(out[..BEFORE.len()], BEFORE, "{kernel:?}");
        assert!(
            outcome.is_ok() || out.len() == BEFORE.len(),
            "{kernel:?} leaves something behind after a fault"
        );
        outcome.map(|()| out.split_off(BEFORE.len()))
    };
    let scalar = run(Kernel::Scalar, data);
    for kernel in Kernel::available() {
        assert_eq!(run(kernel, data), scalar, "{kernel:?}");
    }
    let Ok(samples) = scalar else { return };
    let mut coded = Vec::new();
    encode(&samples, &mut coded).unwrap();
    assert_eq!(run(Kernel::best(), &coded).as_ref(), Ok(&samples));
}

/// Checks `svb-zd`: StreamVByte of zigzag differences.
pub fn svb_zd(data: &[u8]) {
    signal(data, svb::zd::decode_with, svb::zd::encode);
}

/// Checks the 16-bit variant of StreamVByte, with the number of samples before the data.
pub fn svb16(data: &[u8]) {
    signal(data, svb16::decode_prefixed_with, svb16::encode_prefixed);
}

/// Checks `ex-zd`: one byte for each difference, with larger differences stored apart.
pub fn ex_zd(data: &[u8]) {
    signal(data, ex_zd::decode_with, ex_zd::encode);
}

/// Checks VBZ, the compression of FAST5 chunks: decoding to bytes and to samples agrees, and
/// decoded samples survive a round trip. The first input byte selects the parameters of the filter,
/// and the rest is a chunk.
pub fn vbz(data: &[u8]) {
    let Some((&pick, chunk)) = data.split_first() else { return };
    let params = vbz_codec::VbzParams {
        version: u32::from(pick & 1),
        integer_size: [1, 2, 4, 2][usize::from(pick >> 1 & 3)],
        zigzag: pick & 8 == 0,
        level: u32::from(pick >> 4 & 1),
    };
    // In a file, the dataset states the decoded size of a chunk. Here the size comes from the
    // chunk, and is at most `LIMIT`.
    let said = chunk.first_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    let size = said.min(LIMIT);
    let mut bytes = vec![7];
    let mut samples = BEFORE.to_vec();
    let mut vbz = vbz_codec::VbzDecompressor::default();
    let whole = vbz.bytes(params, chunk, size, &mut bytes);
    let outcome = vbz.samples(params, chunk, size, &mut samples);
    assert_eq!(samples[..BEFORE.len()], BEFORE);
    assert!(outcome.is_ok() || samples.len() == BEFORE.len());
    assert_eq!(outcome.is_ok(), whole.is_ok(), "{outcome:?} and {whole:?}");
    if whole.is_err() {
        return;
    }
    assert_eq!(bytes.len(), size);
    let samples = samples.split_off(BEFORE.len());
    assert!(
        samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .eq(bytes[..size / 2 * 2].iter().copied())
    );
    let mut coded = Vec::new();
    let mut again = Vec::new();
    vbz_codec::VbzCompressor::new(1).unwrap().chunk(&samples, &mut coded).unwrap();
    vbz.samples(vbz_codec::VbzParams::SIGNAL, &coded, samples.len() * 2, &mut again).unwrap();
    assert_eq!(again, samples);
}

/// Checks the HDF5 filters. The first input byte selects the filter, the second is the size of an
/// element, and the next two are the decoded size of the chunk. The rest is the chunk; ZFP's header
/// precedes it.
pub fn hdf5_filters(data: &[u8]) {
    let Some((&[pick, element, low, high], mut stored)) = data.split_first_chunk() else { return };
    let element = u32::from(element);
    let bytes = u32::from(u16::from_le_bytes([low, high]));
    let (number, values) = match pick & 7 {
        0 if pick & 8 != 0 => {
            let size = (element & 15) + 1;
            let order = u32::from(pick >> 7);
            (5, vec![8, 0, bytes / size, 1, size, order, element >> 4, u32::from(pick >> 4 & 7)])
        }
        2 if pick & 8 != 0 => {
            let class = u32::from(pick >> 4 & 1);
            let size = 1 << (element & 3);
            let mut values = vec![2 - 2 * class, element >> 4, bytes / size, class, size, 1];
            values.extend([u32::from(pick >> 7), u32::from(pick >> 6 & 1), 7]);
            values.resize(20, 0);
            (6, values)
        }
        3 if pick & 8 != 0 => {
            let Some((header, rest)) = stored.split_first_chunk::<20>() else { return };
            stored = rest;
            let words = header.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word));
            (32013, std::iter::once(0).chain(words).collect())
        }
        4 if pick & 8 != 0 => (32026, vec![]),
        5 if pick & 8 != 0 => (307, vec![9]),
        0 => (1, vec![6]),
        1 => (2, vec![element]),
        2 => (3, vec![]),
        3 => (32000, vec![]),
        4 => (32001, vec![]),
        5 => (32004, vec![]),
        7 if pick & 8 != 0 => {
            let bits = [8, 16, 24, 32, 64][usize::from(pick >> 4) % 5];
            (4, vec![16 | u32::from(pick & 0x80) >> 2, element & 62, bits, u32::from(high) + 1])
        }
        6 => (32008, vec![0, 4, element, u32::from(pick >> 5) * 8, u32::from(pick >> 3 & 3)]),
        _ => (32015, vec![]),
    };
    let Ok(filter) = Filter::new(number, "fuzzed", &values) else { return };
    let pipeline = Pipeline(vec![filter]);
    let size = bytes as usize;
    let mut contexts = Contexts::default();
    let mut read = || {
        let mut out = vec![7; size];
        contexts.fill(&pipeline, 0, stored, &mut out).map(|()| out)
    };
    let first = read();
    assert_eq!(read(), first, "the second time");
    let alone = contexts.undo(&pipeline, 0, stored, size).map(<[u8]>::to_vec);
    assert_eq!(alone.ok(), first.ok(), "not in place");
    // A skipped filter returns the stored bytes.
    assert_eq!(contexts.undo(&pipeline, 1, stored, stored.len()), Ok(stored));
}

/// Checks a byte codec: the output respects its limit, a prefix equals the start of the whole
/// output, and any bytes survive a round trip.
fn bytes(
    data: &[u8],
    mut decompress: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), Fault>,
    mut prefix: impl FnMut(&[u8], &mut Vec<u8>, usize) -> Result<(), Fault>,
    mut compress: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), Fault>,
) {
    let mut whole = vec![7; 5];
    if decompress(data, &mut whole).is_ok() {
        assert!(whole.len() <= LIMIT);
        for n in [0, 1, 64, LIMIT] {
            let mut start = vec![9; 3];
            prefix(data, &mut start, n).unwrap();
            assert_eq!(start, whole[..n.min(whole.len())], "the first {n} bytes");
        }
    } else {
        // The start may be intact even where the whole is damaged.
        let mut start = Vec::new();
        if prefix(data, &mut start, 64).is_ok() {
            assert!(start.len() <= 64);
        }
    }
    let mut coded = Vec::new();
    let mut again = Vec::new();
    compress(data, &mut coded).unwrap();
    decompress(&coded, &mut again).unwrap();
    assert_eq!(again, data);
}

/// Checks the decompression and compression of zstd frames.
pub fn zstd(data: &[u8]) {
    let mut context = zstd::ZstdDecompressor::new();
    let mut other = zstd::ZstdDecompressor::new();
    let mut compressor = zstd::ZstdCompressor::new(1).unwrap();
    bytes(
        data,
        |coded, out| context.decompress(coded, out, LIMIT),
        |coded, out, n| other.prefix(coded, out, n),
        |plain, out| compressor.compress(plain, out),
    );
}

/// Checks the decompression and compression of zlib streams.
pub fn deflate(data: &[u8]) {
    let mut context = deflate::DeflateDecompressor::new();
    let mut other = deflate::DeflateDecompressor::new();
    let mut compressor = deflate::DeflateCompressor::new(6).unwrap();
    bytes(
        data,
        |coded, out| context.decompress(coded, out, LIMIT),
        |coded, out, n| other.prefix(coded, out, n),
        |plain, out| compressor.compress(plain, out),
    );
    let mut coded = Vec::new();
    let mut plain = Vec::new();
    deflate::RunCompressor::default().compress(data, &mut coded);
    context.decompress(&coded, &mut plain, data.len()).unwrap();
    assert_eq!(plain, data);
}

/// Checks the header of a SLOW5 or BLOW5 file: a header that was read, written and read again stays
/// the same.
pub fn slow5_header(data: &[u8]) {
    let header = match Header::parse(data) {
        Err(_) => return,
        Ok(Parsed::NeedMore(n)) => {
            return assert!(n > data.len() as u64, "{n} bytes are here already");
        }
        Ok(Parsed::Done(header)) => header,
    };
    let len = header.data_offset as usize;
    assert!(len <= data.len());
    assert_eq!(
        Header::parse(&data[..len]),
        Ok(Parsed::Done(header.clone())),
        "what follows does not matter"
    );
    let Ok(written) = header.write() else { return };
    let again = match Header::parse(&written) {
        Ok(Parsed::Done(again)) => again,
        other => panic!("{other:?}"),
    };
    assert_eq!(again.data_offset as usize, written.len());
    let again = Header { version: header.version, data_offset: header.data_offset, ..again };
    assert_eq!(sorted(again), sorted(header));
}

/// Sorts the attributes by name, because the writer does so too.
fn sorted(mut header: Header) -> Header {
    header.attributes.sort_by(|a, b| a.name.cmp(&b.name));
    header
}

/// Makes a header with an auxiliary field of every type.
#[must_use]
pub fn every_field(encoding: Encoding, signal_press: SignalPress) -> Header {
    let scalars = Scalar::ALL.into_iter().map(AuxType::Scalar);
    let kinds = scalars.chain(Scalar::ALL.into_iter().map(AuxType::Array));
    let aux = kinds.enumerate().map(|(i, kind)| {
        let mut field = AuxField::new(format!("field{i}"), kind);
        if kind.element() == Scalar::Enum {
            field.labels = vec!["one".into(), "two".into()];
        }
        field
    });
    Header {
        version: Version::V1_0_0,
        encoding,
        record_press: RecordPress::None,
        signal_press,
        read_groups: 2,
        attributes: vec![Attribute { name: "run_id".into(), values: vec![Some("a".into()), None] }],
        aux: aux.collect(),
        data_offset: 0,
    }
}

/// Checks the parser and the decoder of BLOW5 records. The first input byte selects the signal
/// compression, and the rest is a decompressed record.
pub fn slow5_record(data: &[u8]) {
    let Some((&pick, payload)) = data.split_first() else { return };
    let press = SignalPress::ALL[usize::from(pick) % SignalPress::ALL.len()];
    let header = every_field(Encoding::Binary, press);
    let Ok(record) = Record::parse(payload, &header) else { return };
    assert_eq!(record.aux_values(&header).map(Result::unwrap).count(), header.aux.len());
    let mut again = Vec::new();
    record.encode(press, &mut again).unwrap();
    assert_eq!(again, payload);

    let mut decoder = RecordDecoder::new(LIMIT);
    assert_eq!(decoder.read_id(&header, payload), Ok(record.read_id));
    let count = record.sample_count(press);
    let mut samples = BEFORE.to_vec();
    if decoder.record(&header, payload, &mut samples).is_err() {
        assert_eq!(samples, BEFORE);
        return;
    }
    let samples = &samples[BEFORE.len()..];
    if let Some(count) = count.unwrap() {
        assert_eq!(count, samples.len());
    }
    let mut frame = Vec::new();
    RecordEncoder::new().unwrap().record(&header, &record, samples, &mut frame).unwrap();
    let Ok(Frame::Record { stored, len }) =
        Framing::new(header.encoding).next(&frame, frame.len() as u64)
    else {
        panic!("no frame: {frame:?}")
    };
    assert_eq!(len, frame.len());
    let mut decoded = Vec::new();
    let second = decoder.record(&header, &frame[stored], &mut decoded).unwrap();
    assert_eq!((second.read_id, second.aux), (record.read_id, record.aux));
    assert_eq!(decoded, samples);
}

/// Checks a row of a SLOW5 text file: a row that was read and written stays the same when it is
/// read and written again.
pub fn slow5_row(data: &[u8]) {
    let header = every_field(Encoding::Ascii, SignalPress::None);
    let _ = ascii::read_id_of(data);
    let Some((samples, first)) = rewrite(data, &header) else { return };
    let (second_samples, second) = rewrite(first.strip_suffix(b"\n").unwrap(), &header).unwrap();
    assert_eq!(samples, second_samples);
    assert_eq!(first.escape_ascii().to_string(), second.escape_ascii().to_string());
}

fn rewrite(row: &[u8], header: &Header) -> Option<(Vec<i16>, Vec<u8>)> {
    let mut aux = Vec::new();
    let mut samples = BEFORE.to_vec();
    let mut out = Vec::new();
    let Ok(record) = ascii::parse_row(row, header, &mut aux, &mut samples) else {
        assert_eq!(samples, BEFORE);
        return None;
    };
    let samples = samples.split_off(BEFORE.len());
    ascii::write_row(&record, &samples, header, &mut out).ok()?;
    Some((samples, out))
}

/// Checks an index file: a valid index keeps its bytes, and every read in it is found.
pub fn slow5_index(data: &[u8]) {
    let Ok(index) = Index::parse(data.to_vec()) else { return };
    assert_eq!(index.parts().concat(), data);
    assert_eq!(index.iter().count(), index.len());
    for (id, entry) in index.iter() {
        assert_eq!(index.get(id), Some(entry));
    }
    let header = every_field(Encoding::Binary, SignalPress::None);
    let _ = index.check(&header, 1 << 20);
    let mut built = Index::new(index.version());
    for (id, entry) in index.iter() {
        built.push(id, entry).unwrap();
    }
    assert!(built.iter().eq(index.iter()));
}

/// Checks the search for record frames. The first input byte selects the encoding, and the second
/// is the number of bytes that the file has after the input.
pub fn slow5_frame(data: &[u8]) {
    let [pick, more, rest @ ..] = data else { return };
    let framing = Framing::new(if pick % 2 == 0 { Encoding::Binary } else { Encoding::Ascii });
    let mut rest = rest;
    loop {
        let remaining = rest.len() as u64 + u64::from(*more);
        match framing.next(rest, remaining) {
            Ok(Frame::Record { stored, len }) => {
                assert!(stored.end <= len && len <= rest.len() && len > 0);
                rest = &rest[len..];
            }
            Ok(Frame::NeedMore(n)) => return assert!(n > rest.len() && n as u64 <= remaining),
            Ok(Frame::End) => return assert_eq!(rest, framing.end_marker()),
            Err(_) => return,
        }
    }
}

#[derive(Default)]
struct Seen(Vec<(String, usize)>);

impl Visitor for Seen {
    fn visit(&mut self, read: &Read<'_>) -> thalweg_io::Result<()> {
        self.0.push((read.record.read_id.to_owned(), read.samples.len()));
        Ok(())
    }
}

/// Checks a whole file: it is streamed, indexed, and read by id.
pub fn whole_file(data: &[u8]) {
    let store = Arc::new(MemoryStore::new("fuzz", data.to_vec()));
    let options = Options { budget: Budget { threads: 2, memory: 4 << 20 }, ..Options::default() };
    let Ok(file) = ReadFile::from_store(store, options) else { return };
    let Ok((seen, summary)) = file.visit(&Selection::All, Seen::default) else { return };
    let mut seen: Vec<_> = seen.into_iter().flat_map(|seen| seen.0).collect();
    assert_eq!(summary.reads as usize, seen.len());
    seen.sort_unstable();
    let distinct = seen.windows(2).all(|pair| pair[0].0 != pair[1].0);
    let index = file.build_index();
    assert_eq!(
        index.is_ok(),
        distinct,
        "building an index fails only for a repeated read id: {index:?}"
    );
    if !distinct {
        return;
    }
    let ids = seen.iter().map(|(id, _)| id.clone()).collect();
    let by_id = Selection::Ids(Arc::new(ids));
    let got =
        file.map(&by_id, |read| (read.record.read_id.to_owned(), read.samples.len())).unwrap();
    assert_eq!(got.map(Result::unwrap).collect::<Vec<_>>(), seen);
    assert_eq!(
        file.explain(&Selection::All, Delivery::Worker).unwrap().origin,
        thalweg_io::model::Origin::Prior
    );
}

/// Checks the read ids of a decompressed BAM file: there are at most as many as fit in the input,
/// and nothing follows the end or an error.
pub fn bam(data: &[u8]) {
    let Ok(mut ids) = BamIds::new("fuzz".into(), data) else { return };
    // A record takes 36 bytes in addition to its name.
    let most = data.len() / 36 + 1;
    let count = ids.by_ref().take(most + 1).take_while(Result::is_ok).count();
    assert!(count <= most && ids.next().is_none());
}

/// Checks a condition: a condition that parses and binds to a table gives one result for each row.
pub fn condition(data: &[u8]) {
    let Ok(condition) = std::str::from_utf8(data)
        .map_err(drop)
        .and_then(|text| Condition::parse(text).map_err(drop))
    else {
        return;
    };
    let table = RecordBatch::try_from_iter([
        (
            "samples",
            Arc::new(UInt64Array::from(vec![Some(0), Some(u64::MAX), None])) as Arc<dyn Array>,
        ),
        ("median", Arc::new(Float32Array::from(vec![Some(0.5), Some(f32::NAN), None]))),
        ("channel", Arc::new(StringArray::from(vec![Some("12"), Some("x"), None]))),
    ])
    .unwrap();
    if let Ok(bound) = condition.bind(&table.schema()) {
        assert_eq!(bound.holds(&table).len(), 3);
    }
}

/// Checks the metadata of a FAST5 file: parsing twice gives the same result, and all extents lie
/// inside the file.
pub fn hdf5_meta(data: &[u8]) {
    // The limit on metadata exceeds the size of a fuzzed file, and keeps each run short.
    let Ok(root) = Root::parse(&data, 1 << 20) else { return };
    let name: Arc<str> = "fuzz".into();
    let mut walk = LayoutBuilder::new(&name, &root, 1 << 20);
    for number in 0..root.len().min(64) {
        let Ok(found) = root.read(&data, number) else { return };
        assert_eq!(
            root.read(&data, number).map(|again| format!("{again:?}")).ok(),
            Some(format!("{found:?}"))
        );
        if walk.read(&data, found).is_err() {
            return;
        }
    }
    let Ok(layout) = walk.finish(0) else { return };
    for number in 0..layout.len() as u64 {
        let extent = layout.extent(number);
        assert!(extent.start <= extent.end && extent.end <= data.len() as u64);
    }
}

/// Checks the metadata of an HDF5 file: every object, with its links and attributes, and the values
/// of virtual datasets. The outcome is the same whether the bytes are in memory or fetched in
/// rounds.
pub fn hdf5_file(data: &[u8]) {
    let name: Arc<str> = "fuzz".into();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new("fuzz", data.to_vec()));
    let expected = hdf5_objects(&memory, 1 << 20);
    for at_hand in [AtHand::Nothing, AtHand::Half] {
        let (name, bytes) = (name.clone(), data.to_vec());
        let fetched: Arc<dyn Store> = Arc::new(Fetched { name, bytes, at_hand });
        assert_eq!(expected, hdf5_objects(&fetched, 4096), "{at_hand:?}");
    }
}

/// What of a store need not be waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AtHand {
    Nothing,
    /// Every second page, and every single byte, so that the file seems to be at hand.
    Half,
}

/// A store whose bytes have to be fetched.
#[derive(Debug)]
struct Fetched {
    name: Arc<str>,
    bytes: Vec<u8>,
    at_hand: AtHand,
}

impl Store for Fetched {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> thalweg_io::Result<()> {
        buf.copy_from_slice(&self.bytes[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        let is_at_hand = buf.len() == 1 || (offset / 4096).is_multiple_of(2);
        let Some(bytes) = self.bytes.get(offset as usize..offset as usize + buf.len()) else {
            return false;
        };
        buf.copy_from_slice(bytes);
        self.at_hand == AtHand::Half && is_at_hand
    }
}

/// All objects of an HDF5 file in words. Keeps `memory` bytes of metadata.
fn hdf5_objects(store: &Arc<dyn Store>, memory: u64) -> Vec<String> {
    let control = Control::new();
    let fetch = FetchOptions { model: StoreModel::LOCAL, threads: 1, memory, in_rounds: false };
    let file = match MetadataFile::open(store, &control, fetch) {
        Ok(file) => Arc::new(file),
        Err(error) => return vec![error.to_string()],
    };
    let mut addresses = match file.entities(vec![file.superblock().root]) {
        Ok(entities) => entities.into_iter().collect::<Vec<_>>(),
        Err(error) => return vec![error.to_string()],
    };
    addresses.sort_by_key(|(address, _)| *address);
    let mut words = Vec::new();
    for (address, entity) in addresses {
        let node = file.at(address, "object");
        words.push(format!("{address}: {entity:?}"));
        words.push(format!("{:?} {:?}", node.links().map_err(drop), node.is_group().map_err(drop)));
        words.push(format!("{:?}", node.attributes().map_err(drop)));
        words.push(format!("{:?}", node.texts("names").map_err(drop)));
        words.push(format!("{:?}", node.variable().map_err(drop)));
    }
    words.extend(virtual_values(store));
    words
}

/// The values of virtual datasets, in words.
fn virtual_values(store: &Arc<dyn Store>) -> Vec<String> {
    let budget = Budget { threads: 1, memory: 1 << 20 };
    let options = Options { budget, ..Options::default() };
    let Ok(file) = ArrayFile::from_store(store.clone(), options) else { return Vec::new() };
    let Ok(survey) = file.survey_below("/") else { return Vec::new() };
    let mut words = Vec::new();
    for dataset in survey.datasets.iter().take(16) {
        let Found::Array(array) = &dataset.found else { continue };
        if !matches!(array.place, ElementPlace::Virtual(_)) || array.bytes() > 1 << 16 {
            continue;
        }
        let mut values = Vec::new();
        let read = file.values(dataset, &mut |part| {
            values.extend_from_slice(part);
            Ok(())
        });
        words.push(format!("{}: {:?} {values:?}", dataset.path(), read.map_err(drop)));
    }
    words
}

/// Checks an index of chunk locations. The input is parsed as it is, and then with valid checksums,
/// because otherwise most inputs fail at the checksums.
pub fn hdf5_extents(data: &[u8]) {
    let _ = Extents::parse(data.to_vec());
    let Ok(mut extents) = Extents::parse(hdf5_sealed(data)) else { return };
    let grids: Vec<_> = extents.grids().collect();
    assert_eq!(grids.iter().map(|grid| grid.chunks.len() as u64).sum::<u64>(), extents.chunks());
    assert!(extents.chunks() <= data.len() as u64);
    for grid in &grids {
        let inside = |end: Option<u64>| end.is_some_and(|end| end <= extents.state().size);
        assert!(grid.chunks.iter().all(|chunk| inside(chunk.offset.checked_add(chunk.size))));
        assert!(grid.chunks.is_sorted_by(|one, two| one.first < two.first));
    }
    let metadata = extents.take_metadata();
    let coded = Extents::encode(extents.state(), grids.clone(), &metadata).unwrap();
    let mut again = Extents::parse(coded).unwrap();
    assert_eq!(again.take_metadata(), metadata);
    assert_eq!(again.state(), extents.state());
    assert_eq!(again.grids().collect::<Vec<_>>(), grids);
}

/// Returns the input with valid checksums. Checksums that lie past its end are left out.
fn hdf5_sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let sums = [0..56, 64..bytes.len().saturating_sub(8)];
    for range in sums {
        let sum = bytes.get(range.clone()).map(checksum);
        if let (Some(sum), Some(place)) = (sum, bytes.get_mut(range.end..range.end + 8)) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}

/// Checks the header of a section of the cache of objects. The input is parsed as it is, and then
/// with a valid checksum. A header that parses is written as it was read.
pub fn object_cache(data: &[u8]) {
    const SUM: usize = 4088;
    let _ = SectionHeader::parse(data);
    let mut bytes = data.to_vec();
    if let Some((summed, sum)) = bytes.get_mut(..SUM + 8).map(|bytes| bytes.split_at_mut(SUM)) {
        sum.copy_from_slice(&checksum(summed).to_le_bytes());
    }
    if let Ok(header) = SectionHeader::parse(&bytes) {
        assert_eq!(header.encode().as_deref(), bytes.get(..SUM + 8));
    }
}
