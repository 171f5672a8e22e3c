#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use proptest::collection::SizeRange;
use proptest::prelude::*;
use thalweg_codec::gzip::{BlockCompressor, END, Header, PLAIN};
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::MemoryStore;
use thalweg_io::{Error, Result};

use crate::{Compression, Count, FastqFile, Filtered, Target, is_fastq, is_fastq_name};

/// Title, sequence, qualities.
type Row = (String, String, String);

fn text_of(rows: &[Row]) -> Vec<u8> {
    let lines = rows.iter().map(|(title, bases, q)| format!("@{title}\n{bases}\n+\n{q}\n"));
    lines.collect::<String>().into_bytes()
}

fn options(threads: usize) -> Options {
    Options { budget: Budget { threads, memory: 16 << 20 }, ..Options::default() }
}

fn file(stored: &[u8], threads: usize, piece: usize) -> FastqFile {
    let store = Arc::new(MemoryStore::new("test.fastq", stored.to_vec()));
    FastqFile::from_store(store, options(threads)).unwrap().with_pieces_of(piece)
}

fn rows(file: &FastqFile) -> Result<Vec<Row>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let row = move |record: &crate::Record<'_>| {
        (record.title.to_owned(), text(record.sequence), text(record.qualities))
    };
    file.map(row)?.collect()
}

/// Text as BGZF, in blocks of `len` bytes.
fn bgzf(text: &[u8], len: usize) -> Vec<u8> {
    let mut compressor = BlockCompressor::new(1).unwrap();
    let mut out = Vec::new();
    for part in text.chunks(len) {
        compressor.append(part, &mut out).unwrap();
    }
    out.extend(END);
    out
}

fn filtered(file: &FastqFile, target: Target, least: usize) -> (Vec<u8>, Filtered) {
    let mut out = Vec::new();
    let keep = move |record: &crate::Record<'_>| record.sequence.len() >= least;
    let done = file.filter(target, true, keep, |bytes| {
        out.write_all(bytes).unwrap();
        Ok(())
    });
    let done = done.unwrap();
    assert_eq!(done.written, out.len() as u64);
    (out, done)
}

fn converted(file: &FastqFile, target: Target) -> Vec<u8> {
    let mut out = Vec::new();
    let done = file.convert(target, true, None, |bytes| {
        out.write_all(bytes).unwrap();
        Ok(())
    });
    assert_eq!(done.unwrap().written, out.len() as u64);
    out
}

/// Text of some of these characters.
fn a_text(of: &'static [u8], len: impl Into<SizeRange>) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(of), len)
        .prop_map(|bytes| String::from_utf8(bytes).unwrap())
}

fn a_row() -> impl Strategy<Value = Row> {
    // Titles may be empty. Qualities may look like the starts of other lines.
    (a_text(b"ab@+> \t!", 0..8), 0_usize..40).prop_flat_map(|(title, bases)| {
        (Just(title), a_text(b"ACGTNacgt*.=-", bases), a_text(b"@+I!~", bases))
    })
}

#[test]
fn empty_files_have_no_records() {
    for stored in [&b""[..], b"\n\n", &END] {
        assert_eq!(rows(&file(stored, 2, 10)).unwrap(), []);
        assert_eq!(file(stored, 2, 10).count().unwrap(), Count::default());
    }
}

#[test]
fn names_and_first_bytes_tell_fastq() {
    for (name, compression) in [
        ("a.fastq", Some(Compression::Plain)),
        ("a/b.FQ", Some(Compression::Plain)),
        ("A.FASTQ.GZ", Some(Compression::Bgzf)),
        ("a.b.fq.bgz", Some(Compression::Bgzf)),
        ("a.fasta", None),
        ("fastq", None),
        ("a.gz", None),
        ("a.tar.gz", None),
        ("fastq.bam", None),
    ] {
        assert_eq!(Compression::of_name(name.as_ref()), compression, "{name}");
        assert_eq!(is_fastq_name(name.as_ref()), compression.is_some(), "{name}");
    }
    let text = b"@r1\nA\n+\nI\n";
    assert!(is_fastq(text) && is_fastq(&bgzf(text, 100)) && is_fastq(b"@"));
    let bam = bgzf(b"BAM\x01", 9);
    for other in [&b"@HD\tVN:1.6\n"[..], b"", b">r1\n", b"#slow5", &bam, b"\x1f\x8b"] {
        assert!(!is_fastq(other), "{other:?}");
    }
}

#[test]
fn columns_are_those_of_the_schema() {
    let text = b"@r1 first\nAC\n+\nI!\n@r2\nG\n+r2\n~";
    let batches: Vec<_> = file(text, 2, 12).batches().unwrap().collect::<Result<_>>().unwrap();
    assert!(batches.len() > 1 && batches.iter().all(|batch| batch.schema() == crate::schema()));
    let column = |name: &str| -> Vec<Option<String>> {
        let column = batches.iter().map(|batch| batch.column_by_name(name).unwrap());
        let values = column.flat_map(|column| column.as_string::<i32>().iter());
        values.map(|value| value.map(str::to_owned)).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(column("name"), [some("r1"), some("r2")]);
    assert_eq!(column("description"), [some("first"), None]);
    assert_eq!(column("sequence"), [some("AC"), some("G")]);
    assert_eq!(column("quality_scores"), [some("I!"), some("~")]);
    assert!(batches.iter().all(|batch| batch.column(0).null_count() == 0));
}

#[test]
fn a_summary_has_what_the_lines_have() {
    let text = b"@r1\nACGTN\n+\n!!!!5\n@r2\ngc\n+\n?I\n@r3\n\n+\n\n";
    let summary = file(text, 2, 9).summary().unwrap();
    let lengths = summary.lengths.unwrap();
    assert_eq!((summary.reads, summary.bases, summary.gc), (3, 7, 4));
    assert_eq!((lengths.n50, lengths.min, lengths.max), (5, 0, 5));
    assert_eq!((summary.qualities[0], summary.qualities[20], summary.qualities[40]), (4, 1, 1));
    assert_eq!((summary.bases_from(20), summary.bases_from(30)), (3, 2));
    // Four errors of probability 1, one of 0.01, one of 0.001, one of 0.0001.
    let expected = -10.0 * (4.0111_f64 / 7.0).log10();
    assert!((summary.mean_quality().unwrap() - expected).abs() < 1e-9);
    assert_eq!(file(b"", 1, 9).summary().unwrap().mean_quality(), None);
}

#[test]
fn defects_name_the_record_and_the_byte() {
    let good = "@r\nACGT\n+\nIIII\n".repeat(10);
    let bad = format!("{good}@bad\nAC\n+\nI\n{good}");
    for piece in [7, 50, 1000] {
        for stored in [bad.clone().into_bytes(), bgzf(bad.as_bytes(), 40)] {
            let file = file(&stored, 3, piece);
            let mut found = file.map(|_| ()).unwrap();
            assert_eq!(found.by_ref().take_while(Result::is_ok).count(), 10, "{piece}");
            let message = file.count().unwrap_err().to_string();
            assert!(message.contains("record 11, byte 160: found 1 qualities"), "{message}");
        }
    }
    let cut = "@r\nACGT\n+\n@r\nAC\n+\nII\n";
    for piece in [3, 11, 1000] {
        let message = file(cut.as_bytes(), 2, piece).count().unwrap_err().to_string();
        assert!(
            message.contains("record 1, byte 0") || message.contains("record 1, byte 10"),
            "{message}"
        );
    }
}

/// A record of so many bases.
fn long(bases: usize) -> String {
    format!("@r\n{}\n+\n{}\n", "A".repeat(bases), "I".repeat(bases))
}

#[test]
fn a_record_must_fit_into_the_memory() {
    // Of 16 MiB, a record may take 2.
    let records = [220_000, 800_000, 800_000, 1_000_000].map(long).concat();
    for piece in [9000, 200_000] {
        let count = file(records.as_bytes(), 2, piece).count().unwrap();
        assert_eq!((count.reads, count.bases), (4, 2_820_000));
    }
    let endless = [b"@r\n".to_vec(), vec![b'A'; 3 << 20]].concat();
    let message = file(&endless, 2, 9000).count().unwrap_err().to_string();
    assert!(message.contains("record 1, byte 0: found over 2097152 bytes"), "{message}");
}

#[test]
fn a_bomb_is_refused_before_it_takes_memory() {
    let mut blocks = b"@r\n".to_vec();
    blocks.resize(1 << 27, b'A');
    let blocks = bgzf(&blocks, 0xff00);
    assert!(blocks.len() < 1 << 20);
    let gzip = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec(), blocks[18..].to_vec()].concat();
    for stored in [blocks, gzip] {
        let message = file(&stored, 2, 1 << 16).count().unwrap_err().to_string();
        assert!(message.contains("found over 2097152 bytes"), "{message}");
    }
}

#[test]
fn all_records_before_an_error_come_first() {
    let text = b"@r1\nACGT\n+\nIIII\n".repeat(1000);
    let gzip = converted(&file(&text, 2, 500), Target::Gzip(1));
    let blocks = bgzf(&text, 100);
    let bad_block = blocks.len() / 2;
    for (stored, least) in [(&gzip[..gzip.len() / 2], 300), (&blocks[..bad_block], 450)] {
        let mut records = file(stored, 2, 5000).map(|_| ()).unwrap();
        let count = records.by_ref().take_while(Result::is_ok).count();
        assert!(count > least && count < 600, "{count}");
    }
}

#[test]
fn pieces_are_worked_on_at_the_same_time() {
    // Far more pieces than batches. The consumer works on records, too, beside one other thread if
    // batches do not come back.
    let text = long(1000).repeat(3000).into_bytes();
    for stored in [text.clone(), converted(&file(&text, 2, 1 << 16), Target::Bgzf(0))] {
        // All calls, those that go on, and the most that went on late in the file.
        let calls = Arc::new(Mutex::new((0, 0, 0)));
        let seen = calls.clone();
        let work = move |_: &crate::Record<'_>| {
            let mut calls = seen.lock().unwrap();
            calls.0 += 1;
            calls.1 += 1;
            if calls.0 > 1000 {
                calls.2 = calls.2.max(calls.1);
            }
            drop(calls);
            std::thread::sleep(std::time::Duration::from_micros(200));
            seen.lock().unwrap().1 -= 1;
        };
        assert_eq!(file(&stored, 4, 20_000).map(work).unwrap().count(), 3000);
        assert!(calls.lock().unwrap().2 > 2, "{calls:?}");
    }
}

#[test]
fn zeros_may_follow_the_last_member() {
    let text = b"@r1\nA\n+\nI\n".repeat(100);
    let gzip = converted(&file(&text, 2, 500), Target::Gzip(1));
    for mut stored in [gzip, bgzf(&text, 100)] {
        stored.extend([0; 5000]);
        assert_eq!(file(&stored, 2, 300).count().unwrap().reads, 100);
        stored.push(1);
        assert!(file(&stored, 2, 300).count().unwrap_err().to_string().contains("zeros"));
    }
}

#[test]
fn levels_that_do_not_exist_are_refused() {
    for target in [Target::Gzip(10), Target::Bgzf(13), Target::Bgzf(-1)] {
        let outcome = file(b"", 1, 10).convert(target, false, None, |_| Ok(()));
        assert!(matches!(outcome, Err(Error::Usage(_))), "{target:?}");
    }
}

#[test]
fn stored_bytes_are_seen_in_order() {
    let text = b"@r1\nA\n+\nI\n".repeat(1000);
    let gzip = converted(&file(&text, 2, 500), Target::Gzip(1));
    for stored in [text.clone(), bgzf(&text, 500), gzip] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let see = seen.clone();
        let on_stored = move |part: &[u8]| see.lock().unwrap().extend_from_slice(part);
        file(&stored, 3, 700).count_with(Some(Box::new(on_stored))).unwrap();
        assert!(*seen.lock().unwrap() == stored);
    }
}

#[test]
fn a_stream_is_read_once() {
    let text = b"@r1\nA\n+\nI\n".repeat(1000);
    for stored in [text.clone(), bgzf(&text, 500)] {
        let file = FastqFile::from_stream("-", Cursor::new(stored), options(2)).unwrap();
        assert_eq!(file.count().unwrap().reads, 1000);
        assert!(matches!(file.count(), Err(Error::Usage(_))));
    }
}

#[test]
fn a_bgzf_file_without_its_end_is_noted() {
    let mut stored = bgzf(b"@r1\nA\n+\nI\n", 100);
    assert_eq!(file(&stored, 1, 10).note(), None);
    stored.truncate(stored.len() - END.len());
    assert!(file(&stored, 1, 10).note().is_some_and(|note| note.contains("cut short")));
}

#[test]
fn a_cancelled_read_ends() {
    let text = b"@r1\nA\n+\nI\n".repeat(100_000);
    let gzip = converted(&file(&text, 2, 5000), Target::Gzip(1));
    for stored in [text.clone(), bgzf(&text, 5000), gzip] {
        let file = file(&stored, 2, 1000);
        let mut batches = file.batches().unwrap();
        batches.next().unwrap().unwrap();
        file.options().control.cancel();
        assert!(matches!(batches.find(Result::is_err), Some(Err(Error::Cancelled))));
        // Threads end when nobody takes what they make.
        drop(self::file(&stored, 2, 1000).batches().unwrap());
    }
}

/// Text of many pieces, whose blocks are full but for the last one of each piece.
#[test]
fn many_kept_records_are_packed_in_full_blocks() {
    let row = |n: usize| (format!("r{n}"), "ACGT".repeat(n % 90), "IIII".repeat(n % 90));
    let rows: Vec<Row> = (0..20_000).map(row).collect();
    let wanted: Vec<Row> = rows.iter().filter(|row| row.1.len() >= 100).cloned().collect();
    let all = file(&bgzf(&text_of(&rows), 60_000), 2, 1 << 19);
    let (out, done) = filtered(&all, Target::Bgzf(1), 100);
    assert_eq!(self::rows(&file(&out, 2, 1 << 19)).unwrap(), wanted);
    let mut blocks = 0;
    let mut rest = &out[..];
    while let Some(Header { block: Some(len), .. }) = Header::parse(rest).unwrap() {
        (blocks, rest) = (blocks + 1, &rest[len..]);
        if rest.is_empty() {
            break;
        }
    }
    let full = text_of(&wanted).len() / PLAIN;
    assert!(done.kept.reads == wanted.len() as u64 && blocks < full + full / 4 + 8, "{blocks}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 500 }))]

    #[test]
    fn all_ways_to_read_give_the_same(
        rows in proptest::collection::vec(a_row(), 0..40),
        threads in 1_usize..4,
        piece in 1_usize..200,
        block in 1_usize..300,
    ) {
        let text = text_of(&rows);
        let plain = file(&text, threads, piece);
        prop_assert_eq!(&self::rows(&plain)?, &rows);
        let gzip = converted(&plain, Target::Gzip(6));
        let blocks = converted(&plain, Target::Bgzf(6));
        for (stored, compression) in [
            (&gzip, Compression::Gzip),
            (&blocks, Compression::Bgzf),
            (&bgzf(&text, block), Compression::Bgzf),
        ] {
            let packed = file(stored, threads, piece);
            prop_assert_eq!(packed.compression(), compression);
            prop_assert_eq!(&self::rows(&packed)?, &rows);
            prop_assert_eq!(&converted(&packed, Target::Plain), &text);
        }
        let bases = rows.iter().map(|row| row.1.len() as u64).sum();
        prop_assert_eq!(plain.count()?, Count { reads: rows.len() as u64, bases });
    }

    /// Filtering keeps the records for which the condition holds, as they are.
    #[test]
    fn some_records_are_kept(
        rows in proptest::collection::vec(a_row(), 0..40),
        threads in 1_usize..4,
        piece in 1_usize..200,
        least in 0_usize..30,
    ) {
        let count = |rows: &[Row]| {
            let bases = rows.iter().map(|row| row.1.len() as u64).sum();
            Count { reads: rows.len() as u64, bases }
        };
        let wanted: Vec<Row> = rows.iter().filter(|row| row.1.len() >= least).cloned().collect();
        let all = file(&text_of(&rows), threads, piece);
        for target in [Target::Plain, Target::Gzip(1), Target::Bgzf(1)] {
            let (out, done) = filtered(&all, target, least);
            prop_assert_eq!((done.all, done.kept), (count(&rows), count(&wanted)));
            prop_assert_eq!(&self::rows(&file(&out, threads, piece))?, &wanted);
        }
    }

    /// Text that is not FASTQ is refused, whatever the pieces are.
    #[test]
    fn damaged_text_is_the_same_in_all_pieces(
        rows in proptest::collection::vec(a_row(), 1..10),
        at in any::<proptest::sample::Index>(),
        byte in proptest::sample::select(b"@+\n\r \0AI".to_vec()),
        cut in any::<bool>(),
        piece in 1_usize..60,
    ) {
        let mut text = text_of(&rows);
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        let read = |piece: usize, stored: &[u8]| {
            let mut read = Vec::new();
            for row in file(stored, 2, piece).map(|record| record.title.to_owned()).unwrap() {
                match row {
                    Ok(row) => read.push(row),
                    Err(_) => return (read, false),
                }
            }
            (read, true)
        };
        let whole = read(1 << 20, &text);
        for stored in [text.clone(), bgzf(&text, 50)] {
            let parts = read(piece, &stored);
            prop_assert_eq!(parts.1, whole.1);
            // A record that is cut may end with the title of the next one, where a piece starts.
            let (shorter, longer) = match parts.0.len() < whole.0.len() {
                true => (&parts.0, &whole.0),
                false => (&whole.0, &parts.0),
            };
            prop_assert!(longer.starts_with(shorter) && (!whole.1 || longer == shorter));
        }
    }

    #[test]
    fn damaged_gzip_never_passes(
        rows in proptest::collection::vec(a_row(), 20..30),
        at in any::<proptest::sample::Index>(),
        bit in 0_u32..8,
    ) {
        let plain = file(&text_of(&rows), 2, 100);
        for target in [Target::Gzip(6), Target::Bgzf(6)] {
            let mut stored = converted(&plain, target);
            let at = at.index(stored.len());
            stored[at] ^= 1 << bit;
            let store = Arc::new(MemoryStore::new("test.fastq", stored));
            // A header has bytes that mean nothing here, such as a time.
            let file = FastqFile::from_store(store, options(2));
            if let Ok(read) = file.and_then(|file| self::rows(&file)) {
                prop_assert_eq!(&read, &rows);
            }
        }
    }
}
