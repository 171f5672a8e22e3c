//! Writes the seeds of the fuzz corpora: small files of synthetic reads in every coding. The seeds
//! are the same on every run.
//!
//! `cargo run -p thalweg-testing --example fuzz_seeds -- fuzz/corpus`

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use thalweg_codec::{deflate, ex_zd, svb, svb16, vbz, zstd};
use thalweg_hdf5::extents::{DatasetChunks, Extents, IndexedFile, SavedMetadata};
use thalweg_hdf5::types::Chunk;
use thalweg_io::object_cache::{Header as SectionHeader, ObjectId};
use thalweg_nanopore::pod5::write::{Identity, Pod5Layout, SignalCoding};
use thalweg_nanopore::slow5::{
    Encoding, Entry, Framing, Header, Index, Record, RecordEncoder, RecordPress, SignalPress,
    Version, ascii,
};
use thalweg_nanopore::synth::{Recipe, Synth, SynthRead};
use thalweg_testing::fuzz::every_field;
use thalweg_testing::pod5;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("name the folder of the corpora")?);
    let put = |target: &str, name: &str, bytes: &[u8]| -> Outcome {
        fs::create_dir_all(folder.join(target))?;
        Ok(fs::write(folder.join(target).join(name), bytes)?)
    };
    let recipe = Recipe {
        reads: 3,
        mean_length: 120.0,
        min_length: 60,
        adapter_length: 20.0,
        ..Recipe::default()
    };
    let synth = Synth::new(recipe)?;
    let mut read = SynthRead::default();
    synth.read(0, &mut read);
    let mut jumps = read.samples.clone();
    jumps.iter_mut().step_by(9).for_each(|sample| *sample = sample.wrapping_mul(97));

    for (name, samples) in
        [("empty", &[][..]), ("one", &[-5][..]), ("signal", &read.samples), ("jumps", &jumps)]
    {
        let mut coded = Vec::new();
        svb::zd::encode(samples, &mut coded)?;
        put("svb_zd", name, &coded)?;
        coded.clear();
        svb16::encode_prefixed(samples, &mut coded)?;
        put("svb16", name, &coded)?;
        coded.clear();
        ex_zd::encode(samples, &mut coded)?;
        put("ex_zd", name, &coded)?;
        vbz::VbzCompressor::new(1)?.chunk(samples, &mut coded)?;
        put("vbz", name, &[&[0b1_0010], &coded[..]].concat())?;
        let plain: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        zstd::ZstdCompressor::new(1)?.compress(&plain, &mut coded)?;
        put("zstd", name, &coded)?;
        deflate::DeflateCompressor::new(6)?.compress(&plain, &mut coded)?;
        put("deflate", name, &coded)?;
    }
    for press in SignalPress::ALL {
        put("slow5_record", press.name(), &record(press, &jumps)?)?;
    }
    put("slow5_row", "values", &row(&read.samples)?)?;
    put("slow5_row", "missing", missing_row().as_bytes())?;
    pod5_files(&put)?;
    extents(&put)?;
    object_cache(&put)?;
    thalweg_testing::fuzz::graph_seeds()
        .iter()
        .try_for_each(|(target, name, bytes)| put(target, name, bytes))?;
    files(&synth, &put)
}

/// Writes indexes of chunk locations. One index has datasets of several shapes, of which one has
/// chunks that are out of order in the file and a chunk that skipped filters. The other index is
/// empty.
fn extents(put: &dyn Fn(&str, &str, &[u8]) -> Outcome) -> Outcome {
    let state = IndexedFile { size: 1 << 30, modified: 1_700_000_000_000_000_000, start: 7 };
    let chunk = |first, offset, size, mask| Chunk { first, offset, size, mask };
    let even = |first: u64| chunk(first, 4096 + first * 8192, 8192, 0);
    let grids = vec![
        DatasetChunks {
            address: 800,
            dimensions: vec![(20_000, 2048)],
            chunks: (0..10).map(even).collect(),
        },
        DatasetChunks {
            address: 1336,
            dimensions: vec![(37, 7), (53, 11), (3, 3)],
            chunks: vec![
                chunk(2, 900_000, 77, 0),
                chunk(7, 200_000, 231, 3),
                chunk(29, 500_000, 80, 0),
            ],
        },
        DatasetChunks { address: 1 << 29, dimensions: vec![], chunks: vec![] },
    ];
    let encoded = |grids| {
        Extents::encode(state, grids, &SavedMetadata::default()).map_err(|fault| fault.to_string())
    };
    put("hdf5_extents", "grids", &encoded(grids)?)?;
    put("hdf5_extents", "none", &encoded(Vec::new())?)
}

/// Writes headers of the cache of objects.
fn object_cache(put: &dyn Fn(&str, &str, &[u8]) -> Outcome) -> Outcome {
    let header = |url, number| {
        let id = ObjectId::new(url, url, "\"tag\"", 1 << 30);
        SectionHeader::new(id, number).encode().ok_or("a long URL")
    };
    put("object_cache", "first", &header("s3://bucket/key", 0)?)?;
    put("object_cache", "last", &header("https://host/a%20b", 3)?)
}

/// Writes POD5 files in both codings. There are reads of several signal rows, empty reads, a file
/// without reads, truncated files, and a damaged file.
fn pod5_files(put: &dyn Fn(&str, &str, &[u8]) -> Outcome) -> Outcome {
    let layout = |coding| Pod5Layout {
        coding,
        row_samples: 100,
        signal_rows: 2,
        reads_rows: 3,
        identity: Some(Identity::from_seed(1)),
        software: "seed".into(),
    };
    let vbz = pod5::file(layout(SignalCoding::default()), &[120, 0, 250, 9]);
    let plain = pod5::file(layout(SignalCoding::Plain), &[5, 130]);
    put("pod5", "vbz", &vbz)?;
    put("pod5", "plain", &plain)?;
    put("pod5", "empty", &pod5::file(layout(SignalCoding::Plain), &[]))?;
    let footer = vbz.windows(8).rposition(|window| window == b"FOOTER\0\0").ok_or("no footer")?;
    put("pod5", "no-footer", vbz.get(..footer).unwrap_or_default())?;
    put("pod5", "cut-reads", vbz.get(..footer * 9 / 10).unwrap_or_default())?;
    let mut flipped = plain;
    let middle = flipped.len() / 2;
    flipped.iter_mut().skip(middle).step_by(701).for_each(|byte| *byte ^= 0x10);
    put("pod5", "flipped", &flipped)
}

/// The auxiliary bytes of a record. The value of every field can be written as text.
fn aux(header: &Header) -> Outcome<Vec<u8>> {
    let mut out = Vec::new();
    for field in &header.aux {
        let element = field.kind.element();
        let one: Vec<u8> = std::iter::once(b'1').chain([0; 7]).take(element.size()).collect();
        if field.kind.is_array() {
            out.extend(2_u64.to_le_bytes());
            out.extend(&one);
        }
        out.extend(&one);
    }
    Ok(out)
}

fn fields<'a>(signal: &'a [u8], aux: &'a [u8]) -> Record<'a> {
    let (digitisation, offset, range, sampling_rate) = (8192.0, -240.0, 1437.976, 5000.0);
    Record {
        read_id: "read-1",
        read_group: 1,
        digitisation,
        offset,
        range,
        sampling_rate,
        signal,
        aux,
    }
}

/// The number of the signal compression as one byte, then the record.
fn record(press: SignalPress, samples: &[i16]) -> Outcome<Vec<u8>> {
    let pick = SignalPress::ALL.iter().position(|p| *p == press).ok_or("no such press")?;
    let mut signal = Vec::new();
    RecordEncoder::new()?.signal(press, samples, &mut signal)?;
    let aux = aux(&every_field(Encoding::Binary, press))?;
    let mut out = vec![u8::try_from(pick)?];
    fields(&signal, &aux).encode(press, &mut out)?;
    Ok(out)
}

fn row(samples: &[i16]) -> Outcome<Vec<u8>> {
    let header = every_field(Encoding::Ascii, SignalPress::None);
    let (aux, mut out) = (aux(&header)?, Vec::new());
    ascii::write_row(&fields(&[], &aux), samples, &header, &mut out)?;
    out.pop();
    Ok(out)
}

fn missing_row() -> String {
    let fields = every_field(Encoding::Ascii, SignalPress::None).aux.len();
    format!("read-2\t0\t8192\t1\t1.5\t4000\t3\t1,-2,3{}", "\t.".repeat(fields))
}

/// Writes whole SLOW5 and BLOW5 files in several codings, and their headers, frames and indexes.
fn files(synth: &Synth, put: &dyn Fn(&str, &str, &[u8]) -> Outcome) -> Outcome {
    use RecordPress::{None as Plain, Zlib, Zstd};
    for (record_press, signal_press) in [
        (Zstd, SignalPress::SvbZd),
        (Zlib, SignalPress::ExZd),
        (Plain, SignalPress::None),
        (Zstd, SignalPress::Svb16Zd),
    ] {
        let header = synth.header(record_press, signal_press);
        let name = format!("{record_press}+{signal_press}");
        whole(synth, &header, &name, put)?;
    }
    let text = synth.header(RecordPress::None, SignalPress::None);
    whole(synth, &Header { encoding: Encoding::Ascii, ..text }, "text", put)
}

fn whole(
    synth: &Synth,
    header: &Header,
    name: &str,
    put: &dyn Fn(&str, &str, &[u8]) -> Outcome,
) -> Outcome {
    let short = Header {
        attributes: header.attributes.iter().take(5).cloned().collect(),
        ..header.clone()
    };
    let (mut read, mut encoder) = (SynthRead::default(), RecordEncoder::new()?);
    let mut file = short.write()?;
    put("slow5_header", name, &file)?;
    let mut frames = vec![u8::from(header.encoding == Encoding::Ascii), 0];
    let mut index = Index::new(Version::V0_2_0);
    for i in 0..synth.recipe().reads {
        synth.read(i, &mut read);
        let frame = read.frame(&short, &mut encoder)?;
        index.push(&read.read_id, Entry { offset: file.len() as u64, size: frame.len() as u64 })?;
        frames.extend(&frame);
        file.extend(&frame);
    }
    let end = Framing::new(header.encoding).end_marker();
    frames.extend(end);
    file.extend(end);
    put("slow5_frame", name, &frames)?;
    put("slow5_index", name, &index.parts().concat())?;
    put("whole_file", name, &file)
}
