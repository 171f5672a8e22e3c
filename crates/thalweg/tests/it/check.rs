//! Checks and salvage: no intact record is lost, and no damaged record is taken for intact.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use thalweg::format::slow5::{
    Encoding, Frame, Framing, Header, Parsed, RecordDecoder, RecordPress, SignalPress,
};
use thalweg::plan::Budget;
use thalweg::reads::{CheckReport, IndexState, LostReads, Options, ReadFile, Selection};
use thalweg::store::MemoryStore;
use thalweg_testing::one_of;
use thalweg_testing::slow5::{self, SampleFile, header, headers, sample, samples};

const LENGTHS: [usize; 8] = [300, 0, 1, 2000, 40, 700, 9, 120];

fn options() -> Options {
    Options { budget: Budget { threads: 2, memory: 8 << 20 }, ..Options::default() }
}

fn open(bytes: &[u8]) -> ReadFile {
    ReadFile::from_store(Arc::new(MemoryStore::new("damaged", bytes.to_vec())), options()).unwrap()
}

/// Salvages bytes, and returns the report and the new file.
fn salvage(bytes: &[u8]) -> (CheckReport, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let report = open(bytes).salvage(&out).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    (report, fs::read(out).unwrap())
}

fn parse(bytes: &[u8]) -> Header {
    match Header::parse(bytes).unwrap() {
        Parsed::Done(header) => header,
        Parsed::NeedMore(n) => panic!("{n} bytes"),
    }
}

/// The frames of a well-formed file.
fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let header = parse(bytes);
    let mut at = header.data_offset as usize;
    let mut frames = Vec::new();
    loop {
        match Framing::new(header.encoding).next(&bytes[at..], (bytes.len() - at) as u64).unwrap() {
            Frame::Record { len, .. } => {
                frames.push(bytes[at..at + len].to_vec());
                at += len;
            }
            Frame::End => return frames,
            Frame::NeedMore(n) => panic!("{n} bytes"),
        }
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Flip(u8),
    Overwrite(Vec<u8>),
    Delete(usize),
    Insert(Vec<u8>),
}

fn edits() -> impl Strategy<Value = Vec<(f64, Edit)>> {
    let junk = || prop::collection::vec(any::<u8>(), 1..40);
    let edit = prop_oneof![
        (0..8u8).prop_map(|bit| Edit::Flip(1 << bit)),
        junk().prop_map(Edit::Overwrite),
        (1..40usize).prop_map(|len| Edit::Overwrite(vec![0; len * 8])),
        (1..400usize).prop_map(Edit::Delete),
        junk().prop_map(Edit::Insert),
    ];
    prop::collection::vec((0.0..1.0f64, edit), 1..5)
}

/// Damages a file. Each remaining byte comes with its original offset, if it has one.
fn damage(
    file: &SampleFile,
    data_offset: usize,
    edits: &[(f64, Edit)],
) -> Vec<(u8, Option<usize>)> {
    let mut bytes: Vec<_> = file.bytes.iter().enumerate().map(|(i, &b)| (b, Some(i))).collect();
    for (place, edit) in edits {
        let at = data_offset + (place * (bytes.len() - data_offset) as f64) as usize;
        match edit {
            Edit::Flip(bit) => {
                if let Some((byte, from)) = bytes.get_mut(at) {
                    *byte ^= bit;
                    *from = None;
                }
            }
            Edit::Overwrite(junk) => {
                for (slot, &byte) in bytes[at..].iter_mut().zip(junk) {
                    *slot = (byte, if slot.0 == byte { slot.1 } else { None });
                }
            }
            Edit::Delete(len) => drop(bytes.drain(at..(at + len).min(bytes.len()))),
            Edit::Insert(junk) => drop(bytes.splice(at..at, junk.iter().map(|&byte| (byte, None)))),
        }
    }
    bytes
}

/// Checks one damaged file.
fn check_salvage(file: &SampleFile, header: &Header, edits: &[(f64, Edit)]) {
    let data_offset = header.data_offset as usize;
    let damaged = damage(file, data_offset, edits);
    let bytes: Vec<u8> = damaged.iter().map(|(byte, _)| *byte).collect();
    let (report, out) = salvage(&bytes);
    let context = format!("{}, {edits:?}, {report:?}", file.name);
    assert_eq!(out[..data_offset], bytes[..data_offset], "{context}");
    let out = frames(&out);
    assert_eq!(report.salvaged as usize, out.len(), "{context}");
    assert_eq!(report.reads, report.salvaged, "{context}");
    assert!(
        !report.is_whole() || bytes.len() == out.concat().len() + data_offset + end(header),
        "{context}"
    );

    // The frames that are still contiguous in the damaged file.
    let mut expected: HashMap<&[u8], usize> = HashMap::new();
    for frame in &file.frames {
        let Some(start) = damaged.iter().position(|(_, from)| *from == Some(frame.start)) else {
            continue;
        };
        let piece = damaged[start..].iter().take(frame.len()).map(|(_, from)| *from);
        // A row counts only after the end of another row, so the newline before it must be intact
        // too.
        let newline = header.encoding == Encoding::Binary || bytes[start - 1] == b'\n';
        if piece.eq(frame.clone().map(Some)) && newline {
            expected.insert(&file.bytes[frame.clone()], start);
        }
    }
    let got: HashSet<&[u8]> = out.iter().map(Vec::as_slice).collect();
    // All other salvaged records are damaged ones. Only a checksum such as zlib's could show this.
    let originals: HashSet<&[u8]> =
        file.frames.iter().map(|frame| &file.bytes[frame.clone()]).collect();
    let others: Vec<_> = got.difference(&originals).collect();
    for (frame, start) in &expected {
        // If bytes were removed from a signal, the bytes of the next records may complete it by
        // chance.
        let swallowed = others.iter().any(|other| {
            let earliest = (start + 1).saturating_sub(other.len());
            (earliest..=*start).any(|at| bytes[at..].starts_with(other))
        });
        let shown = String::from_utf8_lossy(&frame[..frame.len().min(60)]);
        assert!(got.contains(frame) || swallowed, "lost {shown:?}; {context}");
    }
    assert!(others.len() <= file.frames.len() - expected.len(), "records from nowhere; {context}");
    if header.record_press == RecordPress::Zlib {
        let plain = |frame: &[u8]| {
            let mut decoder = RecordDecoder::new(1 << 20);
            decoder.payload(RecordPress::Zlib, &frame[8..]).unwrap().to_vec()
        };
        let plains: HashSet<_> = originals.iter().map(|frame| plain(frame)).collect();
        assert!(others.iter().all(|frame| plains.contains(&plain(frame))), "{context}");
    }
}

fn end(header: &Header) -> usize {
    Framing::new(header.encoding).end_marker().len()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn intact_reads_are_recovered(combination in 0..22usize, edits in edits()) {
        let (name, header) = &headers()[combination];
        let file = sample(name, header, &LENGTHS);
        let header = parse(&file.bytes);
        check_salvage(&file, &header, &edits);
    }
}

#[test]
fn bytes_of_the_next_record_may_complete_a_signal() {
    let header = header(Encoding::Binary, RecordPress::None, SignalPress::ExZd);
    let file = sample("none+ex-zd", &header, &LENGTHS);
    check_salvage(&file, &parse(&file.bytes), &[(0.814_119_084_679_772_7, Edit::Delete(91))]);
}

#[test]
fn neighbours_between_damaged_records_are_recovered() {
    let header = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let file = sample("zstd+svb-zd", &header, &LENGTHS);
    let edits =
        [(0.291_889_270_006_684_96, Edit::Flip(1)), (0.022_534_725_880_373_068, Edit::Delete(175))];
    check_salvage(&file, &parse(&file.bytes), &edits);
}

#[test]
fn whole_files_are_whole_and_salvaged_to_themselves() {
    for file in samples(&LENGTHS) {
        let report = open(&file.bytes).check().unwrap();
        assert!(report.is_whole() && report.lost_bytes == 0, "{}: {report:?}", file.name);
        assert_eq!(
            (report.reads, report.samples),
            (8, LENGTHS.iter().sum::<usize>() as u64),
            "{}",
            file.name
        );
        let (report, out) = salvage(&file.bytes);
        assert!(report.is_whole() && out == file.bytes, "{}", file.name);
    }
    for file in samples(&[]) {
        let (report, out) = salvage(&file.bytes);
        assert!(report.is_whole() && report.reads == 0 && out == file.bytes, "{}", file.name);
    }
}

#[test]
fn every_flipped_size_costs_no_record() {
    for file in samples(&[50, 20, 3]).iter().filter(|file| file.name != "text") {
        for frame in &file.frames {
            for bit in (frame.start % one_of()..64).step_by(one_of()) {
                let mut bytes = file.bytes.clone();
                bytes[frame.start + bit / 8] ^= 1 << (bit % 8);
                let (report, out) = salvage(&bytes);
                assert!(!report.is_whole(), "{}", file.name);
                assert!(out == file.bytes, "{} at {frame:?}, bit {bit}: {report:?}", file.name);
                assert_eq!(report.lost_reads, LostReads::Known(0));
            }
        }
    }
}

#[test]
fn truncated_files_keep_what_is_before() {
    for file in samples(&[30, 7, 90]) {
        let header = parse(&file.bytes);
        let data_offset = header.data_offset as usize;
        for len in (data_offset..file.bytes.len()).step_by(3 * one_of()) {
            let (report, out) = salvage(&file.bytes[..len]);
            let whole = file.frames.iter().filter(|frame| frame.end <= len).count();
            assert_eq!(report.reads as usize, whole, "{} cut to {len}", file.name);
            assert_eq!(
                frames(&out).concat(),
                file.bytes[data_offset..file.frames[..whole].last().map_or(data_offset, |f| f.end)]
            );
            let between = header.encoding == Encoding::Ascii
                && (len == data_offset || file.frames.iter().any(|frame| frame.end == len));
            assert_eq!(report.is_whole(), between, "{} cut to {len}: {report:?}", file.name);
        }
    }
}

/// A damaged record is counted and skipped. The records after it are not lost, and nothing is
/// counted twice.
#[test]
fn damaged_records_are_counted() {
    let file = sample(
        "zlib",
        &header(Encoding::Binary, RecordPress::Zlib, SignalPress::SvbZd),
        &[200; 40],
    );
    let mut bytes = file.bytes.clone();
    for i in [3, 4, 20, 39] {
        let frame = &file.frames[i];
        bytes[(frame.start + frame.end) / 2] ^= 0x10;
    }
    let report = open(&bytes).check().unwrap();
    assert_eq!(
        (report.reads, report.defect_count, report.lost_reads),
        (36, 4, LostReads::Known(4)),
        "{report:?}"
    );
    let lost: Vec<_> = [3..5, 20..21, 39..40]
        .map(|r| file.frames[r.start].start as u64..file.frames[r.end - 1].end as u64)
        .into_iter()
        .collect();
    assert_eq!(report.lost, lost);
    for defect in &report.defects {
        assert!(defect.to_string().starts_with("damaged: "), "{defect}");
    }
}

#[test]
fn repeated_ids_are_defects() {
    for (name, header) in headers() {
        let mut bytes = header.write().unwrap();
        for (id, len) in [("a", 5), ("b", 6), ("a", 7), ("c", 8)] {
            bytes.extend(slow5::frame(&header, id, &slow5::signal(1, len)));
        }
        bytes.extend(Framing::new(header.encoding).end_marker());
        let (report, out) = salvage(&bytes);
        assert_eq!(
            (report.reads, report.samples, report.defect_count),
            (3, 19, 1),
            "{name}: {report:?}"
        );
        assert!(report.defects[0].to_string().contains("\"a\" again"), "{}", report.defects[0]);
        assert_eq!(frames(&out).len(), 3);
    }
}

#[test]
fn indexes_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reads.blow5");
    let idx = folder.path().join("reads.blow5.idx");
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let file = sample("zstd", &kind, &[40, 50, 60]);
    fs::write(&path, &file.bytes).unwrap();
    let check = || ReadFile::open(&path, options()).unwrap().check().unwrap();
    assert_eq!(check().index, IndexState::Absent);
    assert!(!idx.exists(), "a check writes nothing");
    ReadFile::open(&path, options()).unwrap().index().unwrap();
    let good = fs::read(&idx).unwrap();
    assert_eq!((check().index, check().defect_count), (IndexState::Consistent, 0));

    // The report counts the reads that a hole of zeros has overwritten.
    let mut bytes = file.bytes.clone();
    bytes[file.frames[0].start..file.frames[1].end].fill(0);
    fs::write(&path, &bytes).unwrap();
    let report = check();
    assert_eq!(
        (report.reads, report.lost_reads, report.index),
        (1, LostReads::Known(2), IndexState::Consistent)
    );

    fs::write(&path, &file.bytes).unwrap();
    for (damage, word) in
        [(0..9, "SLOW5IDX"), (70..71, "read"), (good.len() - 16..good.len() - 8, "record")]
    {
        let mut bytes = good.clone();
        bytes[damage.clone()].fill(0xff);
        fs::write(&idx, &bytes).unwrap();
        let report = check();
        assert_eq!(
            (report.index, report.defect_count, report.reads),
            (IndexState::Wrong, 1, 3),
            "{damage:?}"
        );
        let message = report.defects[0].to_string();
        assert!(message.contains("reads.blow5.idx: ") && message.contains(word), "{message}");
    }
    fs::write(&idx, &good[..good.len() - 9]).unwrap();
    assert_eq!(check().index, IndexState::Wrong);
    let other = sample("other", &kind, &[40, 50]);
    fs::write(&path, &other.bytes).unwrap();
    fs::write(&idx, &good).unwrap();
    assert_eq!((check().index, check().reads), (IndexState::Wrong, 2));
}

/// If one bit of a size is flipped, a check must not load the rest of the file into memory. The
/// budget is 8 MiB.
#[test]
fn a_giant_size_is_refused() {
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let file = sample("zstd", &kind, &[60_000; 260]);
    assert!(file.bytes.len() > 9 << 20, "{}", file.bytes.len());
    let mut bytes = file.bytes.clone();
    bytes[file.frames[1].start + 2] ^= 0x80; // 8 MiB more
    let (report, out) = salvage(&bytes);
    assert_eq!((report.reads, report.defect_count), (260, 1), "{:?}", report.defects);
    assert!(out == file.bytes);
}

/// A record larger than a quarter of the budget is still read.
#[test]
fn large_records_are_read() {
    for file in samples(&[10, 3_000_000, 20]) {
        let report = open(&file.bytes).check().unwrap();
        assert!(report.is_whole() && report.reads == 3, "{}: {report:?}", file.name);
    }
}

#[test]
fn a_file_is_not_salvaged_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reads.slow5");
    fs::write(&path, &samples(&[5])[0].bytes).unwrap();
    let error = ReadFile::open(&path, options()).unwrap().salvage(&path).unwrap_err();
    assert!(error.to_string().contains("itself"), "{error}");
    let link = folder.path().join("link.slow5");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(ReadFile::open(&path, options()).unwrap().salvage(&link).is_err());
}

#[test]
fn cancelled_salvage_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let file = sample("text", &headers()[0].1, &[50_000; 20]);
    let store = Arc::new(MemoryStore::new("text", file.bytes));
    let reads = ReadFile::from_store(store, options.clone()).unwrap();
    options.control.cancel();
    let outcome = reads.salvage(&folder.path().join("out.slow5"));
    assert!(matches!(outcome, Err(thalweg::Error::Cancelled)) || outcome.is_ok());
    let visited = reads.map(&Selection::All, |_| ()).unwrap().collect::<thalweg::Result<Vec<_>>>();
    assert!(matches!(visited, Err(thalweg::Error::Cancelled)) || visited.is_ok());
    if outcome.is_err() {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
