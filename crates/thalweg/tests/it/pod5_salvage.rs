//! Intact reads of a damaged POD5 file are salvaged into a new file, and lost reads are counted.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use thalweg::Error;
use thalweg::format::pod5::write::{Identity, Pod5Layout, SignalCoding};
use thalweg::reads::{CheckReport, LostReads, Options, ReadFile, Selection};
use thalweg_testing::pod5;

const LENGTHS: [usize; 9] = [120, 0, 250, 30, 100, 410, 7, 90, 333];

fn small(coding: SignalCoding) -> Vec<u8> {
    let identity = Some(Identity::from_seed(1));
    let layout = Pod5Layout {
        coding,
        row_samples: 100,
        signal_rows: 3,
        reads_rows: 2,
        identity,
        software: "test".into(),
    };
    pod5::file(layout, &LENGTHS)
}

/// All reads of a file: fields and samples by id.
type Reads = BTreeMap<String, (String, Vec<i16>)>;

fn reads(path: &Path) -> Reads {
    let file = ReadFile::open(path, Options::default()).unwrap();
    let all = file.map(&Selection::All, |read| {
        let r = read.record;
        let fields = format!(
            "{:?} {:?}",
            (r.read_group, r.digitisation, r.offset, r.range, r.sampling_rate),
            r.aux
        );
        (r.read_id.to_owned(), (fields, read.samples.to_vec()))
    });
    all.unwrap().map(Result::unwrap).collect()
}

struct Case {
    folder: tempfile::TempDir,
    whole: Reads,
    bytes: Vec<u8>,
}

impl Case {
    fn new(coding: SignalCoding) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.pod5");
        let bytes = small(coding);
        fs::write(&path, &bytes).unwrap();
        let whole = reads(&path);
        assert_eq!(whole.len(), LENGTHS.len());
        Self { folder, whole, bytes }
    }

    /// Damages the file and salvages it. Returns the salvaged reads and the report. Asserts that
    /// these reads are unchanged, because the damage is in places where it is always detected.
    fn salvage(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Result<(Reads, CheckReport), Error> {
        let (path, out) =
            (self.folder.path().join("damaged.pod5"), self.folder.path().join("saved.pod5"));
        let mut bytes = self.bytes.clone();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let report = ReadFile::open(&path, Options::default())?.salvage(&out)?;
        let saved = reads(&out);
        assert_eq!((saved.len() as u64, report.reads), (report.salvaged, report.salvaged));
        let again = ReadFile::open(&out, Options::default()).unwrap().check().unwrap();
        assert!(again.is_whole(), "{again:?}");
        for (id, read) in &saved {
            assert_eq!(Some(read), self.whole.get(id), "{id}");
        }
        Ok((saved, report))
    }

    /// The range of the `n`-th occurrence of some bytes.
    fn find(&self, what: &[u8], n: usize) -> Range<usize> {
        let at = self
            .bytes
            .windows(what.len())
            .enumerate()
            .filter(|(_, window)| *window == what)
            .nth(n)
            .unwrap()
            .0;
        at..at + what.len()
    }
}

#[test]
fn a_whole_file_is_copied() {
    for coding in [SignalCoding::default(), SignalCoding::Plain] {
        let case = Case::new(coding);
        let (saved, report) = case.salvage(|_| ()).unwrap();
        assert!(
            saved == case.whole && report.is_whole() && report.left_out.is_empty(),
            "{report:?}"
        );
        assert_eq!((report.lost_reads, report.lost_bytes), (LostReads::Known(0), 0));
    }
}

#[test]
fn reads_around_damaged_signal_are_saved() {
    let case = Case::new(SignalCoding::default());
    // The frame of the third read's second row. Each row starts with the zstd magic number, and the
    // second read has no rows because it is empty.
    let frame = case.find(&[0x28, 0xb5, 0x2f, 0xfd], 3);
    let (saved, report) = case.salvage(|bytes| bytes[frame].fill(0)).unwrap();
    assert_eq!(
        (saved.len(), report.lost_reads, report.defect_count),
        (8, LostReads::Known(1), 1),
        "{report:?}"
    );
    assert!(
        report.lost_bytes > 0 && report.defects[0].to_string().contains("signal of read"),
        "{report:?}"
    );
}

#[test]
fn reads_around_a_damaged_batch_are_saved() {
    let case = Case::new(SignalCoding::default());
    // The messages of the file: first of the Signal table, then of RunInfo, then of the Reads
    // table.
    let message = |n| case.find(&[0xff, 0xff, 0xff, 0xff], n).start;
    let mut lost = Vec::new();
    for n in 0.. {
        if case.bytes.windows(4).filter(|window| **window == [0xff; 4]).count() <= n {
            break;
        }
        match case.salvage(|bytes| bytes[message(n)..message(n) + 24].fill(0x11)) {
            // If the schema, the runs or a dictionary is damaged, no read can be salvaged.
            Err(error) => assert!(matches!(error, Error::Malformed { .. }), "{error:?}"),
            Ok((saved, report)) => {
                assert!(report.defect_count > 0 || saved == case.whole, "{n}: {report:?}");
                let missing = case.whole.len() - saved.len();
                match report.lost_reads {
                    LostReads::Known(lost) => assert_eq!(lost as usize, missing, "{n}: {report:?}"),
                    // A batch whose head is lost has one or two rows. If the mark at the end of a
                    // table is lost, there may be more batches.
                    LostReads::AtLeast(lost) => {
                        assert!(lost == 1 && missing <= 2, "{n}: {report:?}");
                    }
                }
                lost.push(missing);
            }
        }
    }
    // Each batch of the Reads table can be lost alone. All batches have two rows except the last,
    // which has one.
    assert!(lost.iter().filter(|&&lost| lost == 2).count() >= 4, "{lost:?}");
    assert!(lost.contains(&1), "{lost:?}");
}

#[test]
fn a_table_without_its_footer_is_salvaged() {
    let case = Case::new(SignalCoding::default());
    for n in 0..3 {
        // "ARROW1" is at the start and at the end of each table.
        let end = case.find(b"ARROW1", 2 * n + 1);
        let (saved, report) = match case.salvage(|bytes| bytes[end.clone()].fill(0)) {
            Ok(done) => done,
            Err(error) => panic!("{n}: {error}"),
        };
        assert!(saved == case.whole, "{n}: {report:?}");
        assert_eq!(
            (report.lost_reads, report.defect_count),
            (LostReads::Known(0), 1),
            "{n}: {report:?}"
        );
    }
}

#[test]
fn a_truncated_file_is_salvaged_up_to_its_last_row() {
    let case = Case::new(SignalCoding::default());
    let last = case.bytes.windows(4).rposition(|window| window == [0xff; 4]).unwrap();
    let before = case.bytes[..last].windows(4).rposition(|window| window == [0xff; 4]).unwrap();
    let (saved, report) = case.salvage(|bytes| bytes.truncate(before)).unwrap();
    assert!(saved.len() < case.whole.len() && saved.len() >= 6, "{}", saved.len());
    assert!(
        matches!(report.lost_reads, LostReads::AtLeast(1)) && report.defect_count == 2,
        "{report:?}"
    );
    // A file without any row of reads cannot be salvaged.
    let error = case.salvage(|bytes| bytes.truncate(bytes.len() / 3)).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. } | Error::Truncated { .. }), "{error:?}");
}

/// The Signal table names the read of each row, so swapped rows are detected.
#[test]
fn signal_of_another_read_is_a_defect() {
    let case = Case::new(SignalCoding::default());
    let rows: Vec<u8> = [2_u64, 3, 4, 5].iter().flat_map(|row| row.to_le_bytes()).collect();
    let rows = case.find(&rows, 0);
    // Rows 2 and 3 belong to the third read and row 0 to the first read. Each of these rows has 100
    // samples.
    let (saved, report) = case.salvage(|bytes| bytes[rows.start] = 3).unwrap();
    assert_eq!((saved.len(), report.lost_reads), (8, LostReads::Known(1)), "{report:?}");
    assert!(report.defects[0].to_string().contains("twice"), "{report:?}");
    let (saved, report) = case.salvage(|bytes| bytes[rows.start] = 0).unwrap();
    assert_eq!((saved.len(), report.lost_reads), (8, LostReads::Known(1)), "{report:?}");
    assert!(report.defects[0].to_string().contains("signal of another read"), "{report:?}");
}
