//! Damaged and inconsistent POD5 files: an error names the file. Reading never panics, hangs, or
//! returns samples that are not in the file.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use thalweg::plan::Budget;
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::store::MemoryStore;
use thalweg::{Error, Result};
use thalweg_testing::real_files::nanopore;
use thalweg_testing::{no_hang, one_of};

/// Small files of different kinds: structs in dictionaries, the newest columns, uncompressed
/// samples.
fn small() -> Vec<(&'static str, Vec<u8>)> {
    let Some(folder) = nanopore() else { return Vec::new() };
    let names =
        ["compat_v0.pod5", "derived_b1_v4_repacked.pod5", "derived_b1_v4_uncompressed_signal.pod5"];
    names.map(|name| (name, fs::read(folder.join("pod5").join(name)).unwrap())).into()
}

fn open(bytes: &[u8]) -> Result<ReadFile> {
    let options = Options { budget: Budget { threads: 1, memory: 8 << 20 }, ..Options::default() };
    ReadFile::from_store(Arc::new(MemoryStore::new("hostile", bytes.to_vec())), options)
}

type Reads = BTreeMap<String, Vec<i16>>;

/// All reads in file order, until the first error.
fn read(bytes: &[u8]) -> (Reads, Result<()>) {
    let mut reads = BTreeMap::new();
    let mut all = || {
        for item in open(bytes)?
            .map(&Selection::All, |read| (read.record.read_id.to_owned(), read.samples.to_vec()))?
        {
            let (id, samples) = item?;
            reads.insert(id, samples);
        }
        Ok(())
    };
    let outcome = all();
    (reads, outcome)
}

fn is_told(outcome: &Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(
            Error::Malformed { file, .. }
            | Error::Truncated { file, .. }
            | Error::Unsupported { file, .. }
            | Error::NotFound { file, .. }
            | Error::Io { file, .. },
        ) => &**file == "hostile",
        Err(_) => false,
    }
}

/// The places to damage: everything except signal, and a few places in the signal.
fn places(bytes: &[u8], step: usize) -> impl Iterator<Item = usize> + use<> {
    let len = bytes.len();
    let tables = bytes.windows(8).rposition(|window| window == b"ARROW1\0\0").unwrap_or(0);
    let sparse = step * 50;
    (0..1500)
        .step_by(step)
        .chain((1500..tables - 1500).step_by(sparse))
        .chain((tables - 1500..len).step_by(step))
}

#[test]
fn truncations_are_reported() {
    no_hang(|| {
        for (name, bytes) in small() {
            let whole = read(&bytes).0;
            for len in places(&bytes, 7) {
                let (reads, outcome) = read(&bytes[..len]);
                // Only a missing footer gives no error. The file then has a note.
                assert!(
                    is_told(&outcome) && (outcome.is_err() || reads == whole),
                    "{name} cut at {len}: {outcome:?}"
                );
                for (id, samples) in reads {
                    assert_eq!(Some(&samples), whole.get(&id), "{name} cut at {len}");
                }
            }
        }
    });
}

/// A file whose writer did not finish.
#[test]
fn a_file_without_its_footer_is_read_with_a_note() {
    for (name, bytes) in small() {
        let (whole, _) = read(&bytes);
        assert!(open(&bytes).unwrap().note().is_none());
        let footer = bytes.windows(8).rposition(|window| window == b"FOOTER\0\0").unwrap();
        let (reads, outcome) = read(&bytes[..footer]);
        assert!(outcome.is_ok() && reads == whole, "{name}: {outcome:?}");
        let note = open(&bytes[..footer]).unwrap().note().unwrap_or_default().to_owned();
        assert!(note.contains("footer"), "{name}: {note}");
    }
}

/// A flipped bit gives an error or changes a value. It never ends the process.
#[test]
fn flipped_bits_are_survived() {
    no_hang(|| {
        for (name, bytes) in small() {
            let mut told = 0;
            for at in places(&bytes, 7 * one_of()) {
                for change in [0x01, 0x80] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= change;
                    let (_, outcome) = read(&damaged);
                    assert!(is_told(&outcome), "{name}, byte {at}: {outcome:?}");
                    told += usize::from(outcome.is_err());
                }
            }
            assert!(told > 100 / one_of(), "{name}: {told}");
        }
    });
}

/// Sets words of the tables' metadata to very large and negative values.
#[test]
fn giant_numbers_are_survived() {
    no_hang(|| {
        for (name, bytes) in small() {
            for at in places(&bytes, 32).map(|at| at / 8 * 8).filter(|at| at + 8 <= bytes.len()) {
                for value in [u64::MAX, i64::MAX as u64, 1 << 31, 0x7fff_ffff_7fff_ffff] {
                    let mut damaged = bytes.clone();
                    damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
                    let (_, outcome) = read(&damaged);
                    assert!(is_told(&outcome), "{name}, byte {at}: {outcome:?}");
                }
            }
        }
    });
}

/// Sets single fields, found by their values, to wrong values.
#[test]
fn false_counts_and_row_numbers_are_reported() {
    for (name, bytes) in small() {
        let (whole, outcome) = read(&bytes);
        assert!(outcome.is_ok(), "{name}");
        // In the Signal table: the number of samples of the first read, and the row number of the
        // second read.
        let count = (whole.values().map(Vec::len).max().unwrap() as u32).to_le_bytes();
        let at = bytes.windows(4).position(|window| window == count).unwrap();
        for lie in [0_u32, 1, u32::from_le_bytes(count) + 1, u32::MAX] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            let (_, outcome) = read(&damaged);
            assert!(matches!(&outcome, Err(Error::Malformed { .. })), "{name} {lie}: {outcome:?}");
        }
        let rows: Vec<u8> = [0_u64, 1, 2, 3].iter().flat_map(|row| row.to_le_bytes()).collect();
        let at = bytes.windows(32).rposition(|window| window == rows).unwrap();
        for lie in [4_u64, 1 << 40, u64::MAX] {
            let mut damaged = bytes.clone();
            damaged[at + 8..at + 16].copy_from_slice(&lie.to_le_bytes());
            let (reads, outcome) = read(&damaged);
            let Err(error @ Error::Malformed { .. }) = outcome else {
                panic!("{name} {lie}: {outcome:?}")
            };
            assert!(error.to_string().contains("signal row"), "{error}");
            assert!(reads.len() < 2, "nothing after the damage");
        }
    }
}

/// A check counts damaged reads and continues.
#[test]
fn a_check_counts_damaged_reads() {
    for (name, bytes) in small() {
        let report = open(&bytes).unwrap().check().unwrap();
        assert!(report.is_whole() && report.reads == 4 && report.samples > 0, "{name}: {report:?}");
        let rows: Vec<u8> = [0_u64, 1, 2, 3].iter().flat_map(|row| row.to_le_bytes()).collect();
        let at = bytes.windows(32).rposition(|window| window == rows).unwrap();
        let mut damaged = bytes;
        damaged[at + 8] = 99;
        let report = open(&damaged).unwrap().check().unwrap();
        assert_eq!((report.reads, report.defect_count), (3, 1), "{name}: {report:?}");
    }
}

/// Blocks of an index that are damaged, or in other places with their checksums, never lead to
/// other samples: the file itself says where its reads are. Who reads is warned.
#[test]
fn the_file_answers_where_blocks_of_its_index_are_damaged() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use thalweg::control::Control;
    use thalweg::format::pod5::write::Pod5Layout;
    use thalweg::reads::index_path;
    use thalweg::synth::{Recipe, Synth};
    use thalweg::write::Coding;

    const BLOCK: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reads.pod5");
    let layout = Pod5Layout { row_samples: 500, signal_rows: 5000, ..Pod5Layout::default() };
    let synth = Synth::new(Recipe::with_samples(1, 500_000)).unwrap();
    synth.write(&path, Coding::Pod5(layout)).unwrap();
    let file = || ReadFile::open(&path, Options::default()).unwrap();
    file().write_index(&index_path(&path)).unwrap();
    let ids = file().read_ids().unwrap();
    static WARNINGS: AtomicUsize = AtomicUsize::new(0);
    let by_id = || -> Result<Reads> {
        let control = Control::new();
        control.warn_with(|warning| {
            assert!(warning.contains("reads.pod5.idx: "), "{warning}");
            WARNINGS.fetch_add(1, Ordering::Relaxed);
        });
        let file = || {
            ReadFile::open(&path, Options { control: control.clone(), ..Options::default() })
                .unwrap()
        };
        let selection = Selection::Ids(Arc::new(ids.clone()));
        let samples = |read: &thalweg::reads::Read<'_>| {
            (read.record.read_id.to_owned(), read.samples.to_vec())
        };
        file().map(&selection, samples)?.collect()
    };
    let right = by_id().unwrap();
    let index = fs::read(index_path(&path)).unwrap();
    let blocks = (index.len() - 64) / BLOCK;
    let block = |number: usize| {
        index.len() - (blocks - number) * BLOCK..index.len() - (blocks - number - 1) * BLOCK
    };
    assert!(blocks >= 4, "{blocks}");
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 0);
    let mut tried = 0;
    let mut check = |bytes: Vec<u8>, what: &str| {
        fs::write(index_path(&path), bytes).unwrap();
        tried += 1;
        WARNINGS.store(0, Ordering::Relaxed);
        assert_eq!(by_id().unwrap(), right, "{what}");
        // Another index lies there now, unless only places of signal were damaged.
        let told = WARNINGS.swap(0, Ordering::Relaxed);
        assert_eq!(by_id().unwrap(), right, "{what}");
        told
    };
    let mut warned = 0;
    for number in 0..blocks {
        let mut damaged = index.clone();
        damaged[block(number).start + 100] ^= 1;
        warned += check(damaged, &format!("{number}"));
    }
    assert_eq!(warned, blocks, "each block is needed for some reads");
    for (a, b) in (0..blocks).flat_map(|a| (0..blocks).map(move |b| (a, b))).filter(|(a, b)| a != b)
    {
        // One block over another, and both exchanged.
        let mut copied = index.clone();
        copied[block(b)].copy_from_slice(&index[block(a)]);
        let mut exchanged = copied.clone();
        exchanged[block(a)].copy_from_slice(&index[block(b)]);
        for bytes in [copied, exchanged] {
            assert_eq!(check(bytes, &format!("{a} {b}")), 1);
        }
    }
    assert_eq!(tried, blocks + 2 * blocks * (blocks - 1));
}
