#![allow(clippy::unwrap_used)]

use thalweg_io::control::Control;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::Store;

use super::*;
use crate::libhdf5::{Hdf5Writer, StoredNumber, VectorSpec};

/// Datasets of each layout.
const EACH: usize = 12;
/// Elements of a dataset, which are bytes.
const LEN: usize = 3000;
/// Elements of a chunk. The last chunk of a dataset is not full.
const CHUNK: usize = 256;
/// The number and the client data of HDF5's filter shuffle. It does not change single bytes.
const SHUFFLE: (i32, &[u32]) = (2, &[1]);

/// The values of a dataset.
fn bytes_of(number: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at * (2 * number + 1) + at / 256) as u8).collect()
}

/// Writes datasets of each layout, and returns their values by path.
fn write(path: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    write_some(path, EACH)
}

/// Writes `each` datasets of each layout.
fn write_some(path: &std::path::Path, each: usize) -> Vec<(String, Vec<u8>)> {
    let writer = Hdf5Writer::create(path, &"f.h5".into()).unwrap();
    let group = writer.group(None, "g").unwrap();
    let mut written = Vec::new();
    let spec =
        |chunk, filters| VectorSpec { kind: StoredNumber::U8, len: LEN as u64, chunk, filters };
    for number in 0..each {
        let values = bytes_of(number);
        let name = |layout: &str| format!("{layout}{number:02}");
        writer.compact(&group, &name("compact"), &values).unwrap();
        let one = writer.vector(&group, &name("contiguous"), spec(None, &[])).unwrap();
        writer.values(&one, 0, &values).unwrap();
        writer
            .virtual_bytes(&group, &name("virtual"), &format!("/g/{}", name("compact")), LEN)
            .unwrap();
        for layout in ["compact", "contiguous", "virtual"] {
            written.push((format!("/g/{}", name(layout)), values.clone()));
        }
        writer.vector(&group, &name("nothing"), spec(None, &[])).unwrap();
        writer.vector(&group, &name("no_chunks"), spec(Some(CHUNK as u64), &[])).unwrap();
        for layout in ["nothing", "no_chunks"] {
            written.push((format!("/g/{}", name(layout)), vec![0; LEN]));
        }
        for (layout, filters) in [("chunks", &[][..]), ("shuffled", &[SHUFFLE][..])] {
            let many =
                writer.vector(&group, &name(layout), spec(Some(CHUNK as u64), filters)).unwrap();
            let mut expected = values.clone();
            // Chunks lie in another order than that of their elements, and some are not written.
            for place in (0..LEN.div_ceil(CHUNK)).rev() {
                let range = place * CHUNK..((place + 1) * CHUNK).min(LEN);
                if place % 5 == number % 5 || (6..9).contains(&place) {
                    expected[range].fill(0);
                    continue;
                }
                let mut chunk = values[range].to_vec();
                chunk.resize(CHUNK, 0xee);
                writer.chunk(&many, (place * CHUNK) as u64, &chunk, 0).unwrap();
            }
            written.push((format!("/g/{}", name(layout)), expected));
        }
    }
    drop(group);
    writer.finish().unwrap();
    written.sort();
    written
}

/// The values of each dataset, put together from the parts that are handed on.
fn part_by_part(file: &ArrayFile, datasets: &[&Dataset]) -> Vec<Vec<u8>> {
    let mut found = vec![Vec::new(); datasets.len()];
    file.each(datasets, &mut |number, part| {
        found[number].extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    found
}

#[test]
fn many_small_datasets_have_the_same_values_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let written = write(&path);
    for turn in 0..200 {
        // A small budget makes many windows.
        let memory = if turn % 2 == 0 { 256 << 10 } else { Budget::default().memory };
        let budget = Budget { threads: 4, memory };
        let file = ArrayFile::open(&path, Options { budget, ..Options::default() }).unwrap();
        let datasets = file.datasets().unwrap();
        let names: Vec<&str> = datasets.iter().map(Dataset::path).collect();
        assert!(names.iter().eq(written.iter().map(|(name, _)| name)), "{names:?}");
        let all: Vec<&Dataset> = datasets.iter().collect();
        let found = part_by_part(&file, &all);
        let mut at_once = vec![vec![0xaa; LEN]; all.len()];
        let requests = all.iter().zip(&mut at_once);
        let mut requests: Vec<ArrayRequest<'_>> = requests
            .map(|(dataset, out)| ArrayRequest { dataset, selection: Selection::All, out })
            .collect();
        file.read(&mut requests).unwrap();
        for (number, (name, values)) in written.iter().enumerate() {
            assert!(found[number] == *values, "turn {turn}: {name}, part by part");
            assert!(at_once[number] == *values, "turn {turn}: {name}, at once");
        }
    }
}

/// A store of which only some blocks are at hand.
#[derive(Debug)]
struct Partly {
    inner: Arc<dyn Store>,
    is_at_hand: fn(u64) -> bool,
}

impl Store for Partly {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        if (self.is_at_hand)(offset / 512) {
            return self.inner.read_at(offset, buf).is_ok();
        }
        // A read that ends early leaves bytes behind.
        let half = buf.len() / 2;
        buf[..half].fill(0x55);
        false
    }
}

#[test]
fn values_are_the_same_whatever_is_at_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let written = write(&path);
    let at_hand: [fn(u64) -> bool; 6] = [
        |_| false,
        |_| true,
        |block| block < 60,
        |block| block.is_multiple_of(2),
        |block| !block.is_multiple_of(7),
        |block| block % 31 > 15,
    ];
    let mut requests = Vec::new();
    for is_at_hand in at_hand {
        // With the small budget, most runs of chunks are left to the engine.
        let memory = Budget::default().memory;
        for (threads, memory) in [(1, memory), (2, memory), (4, memory), (2, LEN)] {
            let budget = Budget { threads, memory };
            let mut file =
                ArrayFile::open(&path, Options { budget, ..Options::default() }).unwrap();
            let datasets = file.datasets().unwrap();
            file.store = Arc::new(Partly { inner: file.store.clone(), is_at_hand });
            let mut found = vec![vec![0xaa; LEN]; datasets.len()];
            let mut wanted: Vec<ArrayRequest<'_>> = datasets
                .iter()
                .zip(&mut found)
                .map(|(dataset, out)| ArrayRequest { dataset, selection: Selection::All, out })
                .collect();
            let summary = file.read(&mut wanted).unwrap();
            requests.push(summary.clocks.requests);
            for ((name, values), found) in written.iter().zip(&found) {
                assert!(found == values, "{name}, {threads} threads");
            }
        }
    }
    assert!(requests.iter().all(|&requests| requests > 0), "{requests:?}");
}

/// Windows that are filled under many interleavings of the threads: `make schedules`.
#[cfg(feature = "schedules")]
#[test]
fn windows_have_all_values_under_all_schedules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let written = Arc::new(write_some(&path, 2));
    thalweg_io::sync::explore(move || {
        // One chunk for each window, so that windows without entries lie between others, and one
        // request at a time, so that the planner is not far ahead.
        let budget = Budget { threads: 2, memory: LEN };
        let model = Some(StoreModel { depth: 1, ..StoreModel::MEMORY });
        let file = ArrayFile::open(&path, Options { budget, model, ..Options::default() }).unwrap();
        let datasets = file.datasets().unwrap();
        let all: Vec<&Dataset> = datasets.iter().collect();
        let found = part_by_part(&file, &all);
        for (found, (name, values)) in found.iter().zip(&*written) {
            assert!(found == values, "{name}");
        }
    });
}

/// Opens a file with a budget whose windows have 32 KiB.
fn open_small(path: &std::path::Path, control: &Control) -> ArrayFile {
    let budget = Budget { threads: 2, memory: (32 << 10) * WINDOW_SHARE };
    let control = control.clone();
    ArrayFile::open(path, Options { budget, control, ..Options::default() }).unwrap()
}

#[test]
fn a_claim_of_terabytes_is_read_window_by_window_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = Hdf5Writer::create(&path, &"f.h5".into()).unwrap();
    let group = writer.group(None, "g").unwrap();
    let spec = |chunk| VectorSpec { kind: StoredNumber::U8, len: 1 << 45, chunk, filters: &[] };
    writer.vector(&group, "contiguous", spec(None)).unwrap();
    let sparse = writer.vector(&group, "sparse", spec(Some(CHUNK as u64))).unwrap();
    writer.chunk(&sparse, (1 << 45) - CHUNK as u64, &[1; CHUNK], 0).unwrap();
    drop(group);
    drop(sparse);
    writer.finish().unwrap();
    let control = Control::new();
    let file = open_small(&path, &control);
    let datasets = file.datasets().unwrap();
    for dataset in &datasets {
        // The offset of the last chunk is found without a step for each chunk that is not stored.
        let slices = file.slices(&[dataset], 2).unwrap();
        assert_eq!(slices.iter().map(|slice| slice.shares.len()).sum::<usize>(), 2);
        let (mut parts, mut bytes) = (0, 0);
        let stop = Control::new();
        let file = open_small(&path, &stop);
        let dataset = &file.below(dataset.path()).unwrap()[0];
        let ended = file.values(dataset, &mut |part| {
            assert!(part.len() <= 1 << 20 && part.iter().all(|byte| *byte == 0));
            bytes += part.len();
            parts += 1;
            if parts == 3 {
                stop.cancel();
            }
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        assert_eq!(parts, 3, "{bytes}");
    }
    control.cancel();
    let all: Vec<&Dataset> = datasets.iter().collect();
    assert!(matches!(file.explain(&all, &StoreModel::MEMORY), Err(Error::Cancelled)));
}

#[test]
fn chunks_behind_long_gaps_are_read() {
    const CHUNK: usize = 4096;
    const CHUNKS: usize = 4096;
    let stored = [0, 1, 1000, 1001, 1060, 2500, CHUNKS - 1];
    let value = |chunk: usize| (chunk % 251) as u8 + 1;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = Hdf5Writer::create(&path, &"f.h5".into()).unwrap();
    let group = writer.group(None, "g").unwrap();
    let len = (CHUNK * CHUNKS) as u64;
    let spec =
        VectorSpec { kind: StoredNumber::U8, len, chunk: Some(CHUNK as u64), filters: &[SHUFFLE] };
    let sparse = writer.vector(&group, "sparse", spec).unwrap();
    for chunk in stored {
        writer.chunk(&sparse, (chunk * CHUNK) as u64, &[value(chunk); CHUNK], 0).unwrap();
    }
    drop(group);
    drop(sparse);
    writer.finish().unwrap();
    let file = open_small(&path, &Control::new());
    let dataset = &file.below("/g/sparse").unwrap()[0];
    let mut found = Vec::new();
    let summary = file
        .each(&[dataset], &mut |_, part| {
            found.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
    assert_eq!((summary.bytes, summary.stored), (len, (stored.len() * CHUNK) as u64));
    assert!(summary.clocks.requests >= 3);
    for (number, chunk) in found.chunks(CHUNK).enumerate() {
        let expected = if stored.contains(&number) { value(number) } else { 0 };
        assert!(chunk.iter().all(|byte| *byte == expected), "chunk {number}");
    }
}
