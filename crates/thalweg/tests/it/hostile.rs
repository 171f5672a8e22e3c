//! Damaged, inconsistent and changing files, read with the whole reader: an error names the file
//! and the place. Reading never panics, hangs, or silently returns fewer reads.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thalweg::format::slow5::{Encoding, Framing, Header, Index, RecordPress, SignalPress};
use thalweg::plan::Budget;
use thalweg::reads::{IndexOrigin, Options, Read, ReadFile, Selection, Visitor, index_path};
use thalweg::store::MemoryStore;
use thalweg::{Error, Result};
use thalweg_testing::no_hang;
use thalweg_testing::slow5::{SampleFile, frame, header, headers, id, sample, samples};

const MEMORY: usize = 8 << 20;
const LENGTHS: [usize; 3] = [12, 0, 50];

#[derive(Debug, Default)]
struct Count;

impl Visitor for Count {
    fn visit(&mut self, _: &Read<'_>) -> Result<()> {
        Ok(())
    }
}

fn options() -> Options {
    Options { budget: Budget { threads: 2, memory: MEMORY }, ..Options::default() }
}

fn open(bytes: &[u8]) -> Result<ReadFile> {
    ReadFile::from_store(Arc::new(MemoryStore::new("hostile", bytes.to_vec())), options())
}

fn visit(bytes: &[u8]) -> Result<u64> {
    Ok(open(bytes)?.visit(&Selection::All, Count::default)?.1.reads)
}

fn map(bytes: &[u8]) -> Result<u64> {
    let mut reads = 0;
    for item in open(bytes)?.map(&Selection::All, |read| read.samples.len())? {
        item?;
        reads += 1;
    }
    Ok(reads)
}

fn index(bytes: &[u8]) -> Result<u64> {
    Ok(open(bytes)?.build_index()?.len() as u64)
}

/// Whether the outcome is an error that names the file.
fn is_told<T: std::fmt::Debug>(outcome: &Result<T>) -> bool {
    match outcome {
        Err(Error::Malformed { file, .. } | Error::Truncated { file, .. }) => &**file == "hostile",
        _ => false,
    }
}

/// Kinds of files that use different code paths, for tests that try every byte.
fn few() -> Vec<SampleFile> {
    samples(&LENGTHS)
        .into_iter()
        .filter(|s| s.name == "text" || s.name.ends_with("+svb-zd"))
        .collect()
}

#[test]
fn every_truncation_is_reported() {
    no_hang(|| {
        for file in samples(&LENGTHS) {
            type Way = fn(&[u8]) -> Result<u64>;
            let all_ways = file.name == "text" || file.name.ends_with("+svb-zd");
            let header_len = file.frames[0].start;
            for len in 0..file.bytes.len() {
                // Text has no end marker, so a file that is cut between rows is a valid file with
                // fewer rows.
                let ends: Vec<usize> = file.frames.iter().map(|frame| frame.end).collect();
                let rows = ends.iter().filter(|&&end| end <= len).count() as u64;
                let whole = file.name == "text" && (len == header_len || ends.contains(&len));
                let cut = &file.bytes[..len];
                let ways: &[Way] = if all_ways { &[visit, map, index] } else { &[visit] };
                for (i, way) in ways.iter().enumerate() {
                    let outcome = way(cut);
                    let fine = if whole {
                        matches!(outcome, Ok(n) if n == rows)
                    } else {
                        is_told(&outcome)
                    };
                    assert!(fine, "{} cut to {len}, way {i}: {outcome:?}", file.name);
                }
            }
        }
    });
}

#[test]
fn flipped_bits_end_in_errors_or_other_values() {
    no_hang(|| {
        for file in samples(&LENGTHS) {
            let mut bytes = file.bytes.clone();
            for at in 0..bytes.len() {
                let bit = 1 << (at.wrapping_mul(5) % 8);
                bytes[at] ^= bit;
                let outcome = visit(&bytes);
                let told = is_told(&outcome) || matches!(outcome, Err(Error::Unsupported { .. }));
                // If a newline disappears, two rows are joined; if one appears, a row is split. The
                // results are not valid rows.
                assert!(
                    told || matches!(outcome, Ok(3)),
                    "{} flipped at {at}: {outcome:?}",
                    file.name
                );
                bytes[at] ^= bit;
            }
        }
    });
}

#[test]
fn every_length_and_count_may_lie() {
    no_hang(|| {
        let lies =
            [0, 1, 7, 255, 1 << 16, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63]
                .into_iter()
                .chain((0..20).map(|less| u64::MAX - less));
        let lies: Vec<u64> = lies.collect();
        for file in few().iter().filter(|file| file.name != "text") {
            let header_len = file.frames[0].start;
            let first = &file.frames[0];
            for &lie in &lies {
                // The size of the record, and in uncompressed files everything that may be a length
                // of 2, 4 or 8 bytes.
                for at in first.start..first.end - 8 {
                    for width in [2, 4, 8] {
                        let mut bytes = file.bytes.clone();
                        bytes[at..at + width].copy_from_slice(&lie.to_le_bytes()[..width]);
                        if (at == first.start || file.name.starts_with("none"))
                            && bytes != file.bytes
                        {
                            let outcome = visit(&bytes);
                            assert!(
                                is_told(&outcome) || matches!(outcome, Ok(3)),
                                "{} at {at}: {outcome:?}",
                                file.name
                            );
                        }
                    }
                }
                // The length of the header's text.
                let mut bytes = file.bytes.clone();
                bytes[64..68].copy_from_slice(&lie.to_le_bytes()[..4]);
                let same = bytes == file.bytes;
                assert!(same || is_told(&visit(&bytes)), "{} of {header_len}: {lie}", file.name);
            }
        }
    });
}

/// A file with one record, which has these stored bytes.
fn with_record(header: &Header, stored: &[u8]) -> Vec<u8> {
    let mut bytes = header.write().unwrap();
    let framing = Framing::new(header.encoding);
    framing.push(stored, &mut bytes);
    bytes.extend(framing.end_marker());
    bytes
}

fn zstd_bomb(len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    thalweg::codec::zstd::ZstdCompressor::new(9)
        .unwrap()
        .compress(&vec![0; len], &mut out)
        .unwrap();
    out
}

fn zlib_bomb(len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    thalweg::codec::deflate::DeflateCompressor::new(9)
        .unwrap()
        .compress(&vec![0; len], &mut out)
        .unwrap();
    out
}

#[test]
fn bombs_are_refused() {
    no_hang(|| {
        let len = 256 << 20;
        for (press, bomb) in
            [(RecordPress::Zstd, zstd_bomb(len)), (RecordPress::Zlib, zlib_bomb(len))]
        {
            assert!(bomb.len() < 1 << 20, "{}", bomb.len());
            let bytes = with_record(&header(Encoding::Binary, press, SignalPress::None), &bomb);
            for way in [visit, map] {
                let outcome = way(&bytes);
                let told = outcome.as_ref().is_err_and(|e| e.to_string().contains("decoded bytes"));
                assert!(told && is_told(&outcome), "{press}: {outcome:?}");
            }
            let report = open(&bytes).unwrap().check().unwrap();
            assert_eq!((report.reads, report.defect_count), (0, 1), "{press}");
        }
        // The same bombs inside a signal.
        for (press, bomb) in
            [(SignalPress::Zstd, zstd_bomb(len)), (SignalPress::Zlib, zlib_bomb(len))]
        {
            let kind = header(Encoding::Binary, RecordPress::None, press);
            let mut stored = frame(&kind, "bomb", &[])[8..].to_vec();
            let at = 2 + 4 + 4 + 32;
            let old = u64::from_le_bytes(stored[at..at + 8].try_into().unwrap()) as usize;
            stored.splice(
                at..at + 8 + old,
                (bomb.len() as u64).to_le_bytes().into_iter().chain(bomb),
            );
            let outcome = visit(&with_record(&kind, &stored));
            assert!(is_told(&outcome), "{press}: {outcome:?}");
        }
    });
}

#[test]
fn counts_that_disagree_are_reported() {
    // Text: wrong numbers of samples, and too few or too many columns.
    let kind = &headers()[0].1;
    let row = String::from_utf8(frame(kind, "a", &[1, 2, 3])).unwrap();
    for (from, to) in [
        ("\t3\t", "\t4\t"),
        ("\t3\t", "\t2\t"),
        ("\t3\t", "\t-3\t"),
        ("1,2,3", "1,,3"),
        ("\t1\n", "\n"),
    ] {
        assert!(row.contains(from), "{row}");
        let bytes = [kind.write().unwrap(), row.replacen(from, to, 1).into_bytes()].concat();
        let outcome = visit(&bytes);
        assert!(is_told(&outcome), "{from:?} to {to:?}: {outcome:?}");
    }
    // Binary: a signal whose own count differs from the number of its samples.
    for signal_press in [SignalPress::SvbZd, SignalPress::ExZd, SignalPress::Svb16Zd] {
        let kind = header(Encoding::Binary, RecordPress::None, signal_press);
        let good = sample("a", &kind, &[40]);
        let at = good.frames[0].start
            + 8
            + 2
            + id(0).len()
            + 4
            + 32
            + 8
            + usize::from(signal_press == SignalPress::ExZd);
        assert_eq!(good.bytes[at], 40);
        for count in [0u32, 1, 39, 41, 80, u32::MAX] {
            let mut bytes = good.bytes.clone();
            bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            let outcome = visit(&bytes);
            assert!(is_told(&outcome), "{signal_press}, {count} of 40: {outcome:?}");
        }
    }
}

#[test]
fn ids_that_are_no_text_or_not_alone() {
    let kind = header(Encoding::Binary, RecordPress::None, SignalPress::None);
    let mut bytes = sample("a", &kind, &[3, 4]).bytes;
    let at = bytes.windows(5).position(|window| window == b"read-").unwrap();
    bytes[at + 2] = 0xff;
    for way in [visit, map, index] {
        let outcome = way(&bytes);
        assert!(is_told(&outcome) && outcome.unwrap_err().to_string().contains("UTF-8"));
    }
    for (name, kind) in headers() {
        let mut bytes = kind.write().unwrap();
        bytes.extend([frame(&kind, "a", &[1]), frame(&kind, "a", &[2])].concat());
        bytes.extend(Framing::new(kind.encoding).end_marker());
        let outcome = index(&bytes);
        assert!(is_told(&outcome) && outcome.unwrap_err().to_string().contains("again"), "{name}");
        assert_eq!(visit(&bytes).unwrap(), 2, "{name}: a whole read needs no index");
    }
}

#[test]
fn empty_and_foreign_files() {
    for bytes in [&b""[..], b"B", b"BLOW5", b"#", b"\0\0\0\0", b"PK\x03\x04", &[0xff; 5000]] {
        assert!(is_told(&open(bytes).map(|_| ())), "{bytes:?}");
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn ids(path: &Path, ids: &[String]) -> Result<Vec<(String, usize)>> {
    let file = ReadFile::open(path, options())?;
    let selection = Selection::Ids(Arc::new(ids.to_vec()));
    file.map(&selection, |read| (read.record.read_id.to_owned(), read.samples.len()))?.collect()
}

#[test]
fn lists_of_ids() {
    let folder = tempfile::tempdir().unwrap();
    for file in samples(&LENGTHS) {
        let path = write(folder.path(), &format!("{}.blow5", file.name), &file.bytes);
        assert_eq!(ids(&path, &[]).unwrap(), [], "{}", file.name);
        let twice: Vec<_> = [2, 0, 2, 2, 1, 0].into_iter().map(|i| (id(i), LENGTHS[i])).collect();
        let asked: Vec<_> = twice.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(ids(&path, &asked).unwrap(), twice, "{}", file.name);
        let error = ids(&path, &[id(1), "nobody".into(), "nor he".into()]).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("2 of 3 reads (nobody, nor he)"), "{error}");
    }
}

/// An index of another file never gives the wrong read.
#[test]
fn wrong_indexes_are_reported_or_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in
        headers().into_iter().filter(|(name, _)| name == "text" || name.ends_with("+svb-zd"))
    {
        let file = sample(&name, &kind, &[20, 30, 20, 25]);
        let path = write(folder.path(), &name, &file.bytes);
        let idx = index_path(&path);
        let (good, origin) = ReadFile::open(&path, options()).unwrap().index().unwrap();
        assert_eq!(origin, IndexOrigin::Built);
        let stored = good.parts().concat();
        let check = |index: &[u8], what: &str| {
            fs::write(&idx, index).unwrap();
            for i in 0..4 {
                match ids(&path, &[id(i)]) {
                    Ok(reads) => {
                        assert_eq!(reads, [(id(i), [20, 30, 20, 25][i])], "{name}, {what}");
                    }
                    Err(Error::Malformed { file, .. } | Error::NotFound { file, .. }) => {
                        assert!(file.starts_with(&*path.to_string_lossy()), "{file}");
                    }
                    Err(error) => panic!("{name}, {what}: {error}"),
                }
            }
        };
        for len in 0..stored.len() {
            check(&stored[..len], "cut short");
        }
        for at in 0..stored.len() {
            let mut bytes = stored.clone();
            bytes[at] ^= 1 << (at % 8);
            check(&bytes, "flipped");
        }
        // Wrong places: all pairs of a few offsets and sizes.
        let (start, end) = (file.frames[0].start as u64, file.bytes.len() as u64);
        let places = [
            0,
            1,
            start,
            start + 1,
            file.frames[1].start as u64,
            end - 6,
            end - 5,
            end,
            u64::MAX,
            u64::MAX - 7,
        ];
        for offset in places {
            for size in
                [0, 1, 8, 9, file.frames[0].len() as u64, end - start, end, u64::MAX, 1 << 63]
            {
                let mut index = Index::new(good.version());
                for i in 0..4 {
                    index.push(&id(i), thalweg::format::slow5::Entry { offset, size }).unwrap();
                }
                check(&index.parts().concat(), "hostile places");
            }
        }
        // The index of another file, with the same ids in other places.
        let other = sample(&name, &kind, &[90, 10, 5, 70]);
        let other_path = write(folder.path(), "other", &other.bytes);
        let index = ReadFile::open(&other_path, options()).unwrap().build_index().unwrap();
        check(&index.parts().concat(), "another file's");

        // An index that is older than the file is built anew.
        fs::write(&idx, index.parts().concat()).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(&idx).unwrap().set_modified(old).unwrap();
        assert_eq!(ids(&path, &[id(3)]).unwrap(), [(id(3), 25)], "{name}");
        assert_eq!(fs::read(&idx).unwrap(), stored, "{name}");
    }
}

#[test]
fn paths_that_are_not_files() {
    no_hang(|| {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [folder.path(), &pipe, Path::new("/dev/null"), Path::new("/dev/zero")] {
            let error = ReadFile::open(path, options()).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
        let error = ReadFile::open(folder.path().join("none"), options()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("none"), "{error}");
        // A folder in place of the index.
        let path = write(folder.path(), "reads.slow5", &samples(&[3])[0].bytes);
        fs::create_dir(index_path(&path)).unwrap();
        let outcome = ids(&path, &[id(0)]);
        assert!(outcome.is_err(), "{outcome:?}");
    });
}

fn large(kind: &Header) -> (SampleFile, Range<usize>) {
    let file = sample("large", kind, &[20_000; 300]);
    let last = file.frames[299].clone();
    (file, last)
}

/// Files that shrink while they are open: the run ends in an error, or gives every read.
#[test]
fn files_that_shrink_are_reported() {
    no_hang(|| {
        let folder = tempfile::tempdir().unwrap();
        let kind = header(Encoding::Binary, RecordPress::None, SignalPress::SvbZd);
        let (file, last) = large(&kind);
        for cut in
            [file.frames[0].start, file.frames[150].start, last.start + 7, file.bytes.len() - 1]
        {
            let path = write(folder.path(), "shrinks.blow5", &file.bytes);
            let reads = ReadFile::open(&path, options()).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(cut as u64).unwrap();
            let outcome = reads.visit(&Selection::All, Count::default);
            assert!(matches!(outcome, Err(Error::Truncated { .. })), "{outcome:?}");
            assert!(matches!(reads.check(), Err(Error::Truncated { .. })));
            let mapped: Result<Vec<_>> = reads.map(&Selection::All, |_| ()).unwrap().collect();
            assert!(matches!(mapped, Err(Error::Truncated { .. })), "{mapped:?}");
        }
        // The file shrinks after the first read was delivered.
        let path = write(folder.path(), "shrinks.blow5", &file.bytes);
        let reads = ReadFile::open(&path, options()).unwrap();
        let mut rows = reads.map(&Selection::All, |read| read.samples.len()).unwrap();
        assert!(rows.next().unwrap().is_ok());
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        let rest: Result<Vec<_>> = rows.collect();
        assert!(rest.as_ref().map_or(true, |rest| rest.len() == 299), "{rest:?}");
    });
}

#[test]
fn replaced_files_are_read_as_opened() {
    let folder = tempfile::tempdir().unwrap();
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let (file, _) = large(&kind);
    let path = write(folder.path(), "reads.blow5", &file.bytes);
    let reads = ReadFile::open(&path, options()).unwrap();
    let other = write(folder.path(), "other", &sample("other", &kind, &[5, 6]).bytes);
    fs::rename(other, &path).unwrap();
    assert_eq!(reads.visit(&Selection::All, Count::default).unwrap().1.reads, 300);
}

/// A file that is still being written has no end yet. The error says so, and bytes that were added
/// after opening are not read.
#[test]
fn growing_files() {
    no_hang(|| {
        let folder = tempfile::tempdir().unwrap();
        let binary = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
        let (file, last) = large(&binary);
        let path = write(folder.path(), "grows.blow5", &file.bytes[..last.start + 100]);
        let reads = ReadFile::open(&path, options()).unwrap();
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&file.bytes[last.start + 100..])
            .unwrap();
        let error = reads.visit(&Selection::All, Count::default).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{error}");
        assert_eq!(reads.check().unwrap().reads, 299);
        let text = sample("text", &headers()[0].1, &[2000; 300]);
        let path = write(folder.path(), "grows.slow5", &text.bytes[..text.frames[299].start]);
        let reads = ReadFile::open(&path, options()).unwrap();
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&text.bytes[text.frames[299].clone()])
            .unwrap();
        assert_eq!(reads.visit(&Selection::All, Count::default).unwrap().1.reads, 299);
    });
}
