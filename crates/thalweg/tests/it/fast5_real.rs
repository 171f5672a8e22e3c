//! Real FAST5 files: compared with the SLOW5, BLOW5 and POD5 files that other programs made from
//! them, read through every store, and truncated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use thalweg::Error;
use thalweg::format::Format;
use thalweg::plan::Budget;
use thalweg::reads::{Options, Read, ReadFile, ReadSet, Selection, StoreKind};
use thalweg::store::MemoryStore;
use thalweg_testing::no_hang;
use thalweg_testing::real_files::nanopore;

const FILES: [(&str, usize); 5] = [
    ("compat_file", 4),
    ("multi_fast5_v2.3", 2),
    ("multi_fast5_vbz_v1", 10),
    ("multi_fast5_zip", 10),
    ("single_fast5_v2.0", 1),
];

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join("fast5").join(name).with_extension(match name {
        "multi_fast5_v2.3" => "3.fast5",
        "single_fast5_v2.0" => "0.fast5",
        _ => "fast5",
    })
}

fn open(path: &Path) -> ReadFile {
    ReadFile::open(path, Options::default()).unwrap()
}

/// A read with all its fields, as text.
fn fields(read: &Read<'_>) -> (String, Vec<String>, Vec<i16>) {
    let record = read.record;
    let mut fields = vec![
        format!("{} {} {:?}", record.digitisation, record.offset, record.sampling_rate),
        format!("{:.3}", record.range),
    ];
    for value in record.aux_values(read.header) {
        let (field, value) = value.unwrap();
        let value = match value {
            thalweg::format::slow5::AuxValue::Double(value) => format!("{value:.3}"),
            thalweg::format::slow5::AuxValue::Enum(code) => field.label(code).unwrap().to_owned(),
            value => format!("{value:?}"),
        };
        fields.push(format!("{}: {} = {value}", field.name, field.type_name()));
    }
    fields.sort();
    (record.read_id.to_owned(), fields, read.samples.to_vec())
}

fn all(file: &ReadFile) -> BTreeMap<String, (Vec<String>, Vec<i16>)> {
    let reads: Vec<_> = file.map(&Selection::All, fields).unwrap().map(Result::unwrap).collect();
    let count = reads.len();
    let map: BTreeMap<_, _> =
        reads.into_iter().map(|(id, fields, samples)| (id, (fields, samples))).collect();
    assert_eq!(map.len(), count, "an id twice");
    map
}

#[test]
fn samples_are_what_other_formats_hold_of_the_same_reads() {
    let Some(folder) = nanopore() else { return };
    let text = fs::read(folder.join("expect/expectations.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
    for (name, twin) in [
        ("compat_file", "blow5/compat_0.2.0.blow5"),
        ("multi_fast5_v2.3", "slow5/multi_fast5_v2.3.slow5"),
        ("multi_fast5_vbz_v1", "pod5/multi_fast5_zip_v1.pod5"),
        ("multi_fast5_zip", "pod5/multi_fast5_zip_v1.pod5"),
    ] {
        let reads = all(&open(&path(&folder, name)));
        let wanted = expected[twin]["reads"].as_array().unwrap();
        assert_eq!(reads.len(), wanted.len(), "{name}");
        for want in wanted {
            let (_, samples) = &reads[want["read_id"].as_str().unwrap()];
            let bytes: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
            let digest: String =
                Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, want["sha256"].as_str().unwrap(), "{name}");
        }
    }
}

/// slow5tools converted these files from the same reads.
#[test]
fn fields_and_attributes_are_as_slow5tools_has_them() {
    let Some(folder) = nanopore() else { return };
    for (name, twin) in [
        ("compat_file", "blow5/compat_0.2.0.blow5"),
        ("multi_fast5_v2.3", "slow5/multi_fast5_v2.3.slow5"),
    ] {
        let (ours, theirs) = (open(&path(&folder, name)), open(&folder.join(twin)));
        assert_eq!(ours.format(), Format::Fast5);
        assert_eq!(all(&ours), all(&theirs), "{name}");
        assert_eq!(ours.header().attributes, theirs.header().attributes, "{name}");
        assert_eq!(ours.header().read_groups, 1);
        assert!(ours.left_out().is_empty(), "{:?}", ours.left_out());
    }
}

#[test]
fn fields_without_a_place_are_listed() {
    let Some(folder) = nanopore() else { return };
    let zip = open(&path(&folder, "multi_fast5_zip"));
    assert_eq!(zip.left_out(), ["the group Analyses (of 10 reads)"]);
    assert_eq!(zip.header().attribute("file_version", 0), Some("1.0"));
    assert_eq!(zip.header().attribute("pore_type", 0), Some("not_set"));
    let single = open(&path(&folder, "single_fast5_v2.0"));
    assert_eq!(single.left_out(), ["the group Analyses (of 1 read)"]);
    assert_eq!(single.header().attribute("file_version", 0), Some("2.0"));
    assert_eq!(single.header().attribute("experiment_type", 0), Some("rna"));
    let (_, (fields, samples)) = all(&single).pop_first().unwrap();
    assert_eq!(samples.len(), 175_865);
    assert_eq!(fields.len(), 8);
    let reason = "end_reason: \
        enum{unknown,partial,mux_change,unblock_mux_change,signal_positive,signal_negative}";
    assert!(fields.contains(&format!("{reason} = signal_positive")), "{fields:?}");
    // This file has no fields besides signals.
    let bare = open(&path(&folder, "multi_fast5_vbz_v1"));
    assert!(bare.header().aux.is_empty() && bare.header().attributes.is_empty());
}

#[test]
fn every_store_and_every_way_gives_the_same() {
    let Some(folder) = nanopore() else { return };
    for (name, count) in FILES {
        let path = path(&folder, name);
        let wanted = all(&open(&path));
        assert_eq!(wanted.len(), count);
        for store in [
            StoreKind::Buffered,
            StoreKind::Direct,
            StoreKind::Uring,
            StoreKind::Mmap,
            StoreKind::Memory,
        ] {
            for budget in [Budget::default(), Budget { threads: 1, memory: 4 << 20 }] {
                let file =
                    ReadFile::open(&path, Options { store, budget, ..Options::default() }).unwrap();
                assert_eq!(all(&file), wanted, "{name} {store:?}");
            }
        }
        let file = open(&path);
        let ids: Vec<String> = wanted.keys().rev().chain(wanted.keys().take(1)).cloned().collect();
        let selection = Selection::Ids(Arc::new(ids.clone()));
        let got: Vec<_> = file.map(&selection, fields).unwrap().map(Result::unwrap).collect();
        assert_eq!(got.len(), ids.len());
        let mut getter = file.getter().unwrap();
        for ((id, fields_of, samples), want) in got.into_iter().zip(&ids) {
            assert_eq!((&id, &(fields_of, samples)), (want, &wanted[want]));
            let one = getter.get(want, fields).unwrap();
            assert_eq!((one.1, one.2), wanted[want]);
        }
        assert!(matches!(getter.get("no-such-read", |_| ()), Err(Error::NotFound { .. })));
        let summary = file.fetch(&Selection::All).unwrap();
        assert_eq!(summary.reads, count as u64);
        assert_eq!(
            file.batches(&Selection::All)
                .unwrap()
                .map(|batch| batch.unwrap().num_rows())
                .sum::<usize>(),
            count
        );
    }
}

#[test]
fn a_folder_of_single_reads_is_one_data_set() {
    let Some(folder) = nanopore() else { return };
    let set = ReadSet::open([folder.join("fast5")], Options::default()).unwrap();
    assert_eq!(set.paths().len(), FILES.len());
    let ids: Vec<String> = set
        .map(&Selection::All, |read| read.record.read_id.to_owned())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(ids.len(), FILES.iter().map(|(_, count)| count).sum::<usize>());
}

#[test]
fn a_check_decodes_every_read_and_names_what_is_damaged() {
    let Some(folder) = nanopore() else { return };
    for (name, count) in FILES {
        let file = open(&path(&folder, name));
        let samples: usize = all(&file).values().map(|(_, samples)| samples.len()).sum();
        let report = file.check().unwrap();
        assert!(report.is_whole(), "{name}: {:?}", report.defects);
        assert_eq!((report.reads, report.samples), (count as u64, samples as u64), "{name}");
        let out = tempfile::tempdir().unwrap();
        let refused = file.salvage(&out.path().join("saved.fast5")).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    }
    let mut bytes = fs::read(path(&folder, "multi_fast5_zip")).unwrap();
    // This byte is inside the zlib stream of the first read's signal.
    bytes[100_000] ^= 0x10;
    let store = Arc::new(MemoryStore::new("damaged.fast5", bytes));
    let report = ReadFile::from_store(store, Options::default()).unwrap().check().unwrap();
    assert_eq!((report.reads, report.defect_count), (9, 1));
    assert!(report.lost[0].contains(&100_000), "{:?}", report.lost);
    assert!(report.defects[0].to_string().contains("read 0000173c"), "{}", report.defects[0]);
}

/// Opens bytes and decodes all reads. Returns the number of samples, or the first error.
fn try_all(bytes: Vec<u8>) -> Result<usize, Error> {
    let file =
        ReadFile::from_store(Arc::new(MemoryStore::new("cut.fast5", bytes)), Options::default())?;
    file.map(&Selection::All, |read| read.samples.len())?.try_fold(0, |sum, len| Ok(sum + len?))
}

#[test]
fn a_file_cut_short_is_an_error_wherever_it_is_cut() {
    let Some(folder) = nanopore() else { return };
    for (name, _) in FILES {
        let bytes = fs::read(path(&folder, name)).unwrap();
        let whole = bytes.len();
        let near = (0..600).chain((600..whole).step_by(whole / 150)).chain(whole - 40..whole);
        for cut in near {
            let mut part = bytes.clone();
            part.truncate(cut);
            let outcome = no_hang(move || try_all(part));
            let error = outcome.expect_err("a file cut short");
            assert!(
                !matches!(error, Error::Usage(_) | Error::Cancelled),
                "{name} at {cut}: {error}"
            );
            assert!(error.to_string().contains("cut.fast5"), "{error}");
        }
    }
}
