#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_testing::{CrashDisk, Failing};

use super::*;

/// A log of zeros after its first bytes, of any length. It keeps the length of the longest read.
#[derive(Debug)]
struct SparseLog {
    name: Arc<str>,
    size: u64,
    first: Vec<u8>,
    longest: AtomicU64,
}

/// A log of 64 MiB that has `change` after its head.
fn sparse(change: &[u8]) -> Arc<SparseLog> {
    let first = [MAGIC.as_slice(), &7_u64.to_le_bytes(), change].concat();
    Arc::new(SparseLog { name: "log".into(), size: 64 << 20, first, longest: AtomicU64::new(0) })
}

impl Store for SparseLog {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.longest.fetch_max(buf.len() as u64, Ordering::Relaxed);
        for (place, byte) in buf.iter_mut().enumerate() {
            *byte = self.first.get(offset as usize + place).copied().unwrap_or(0);
        }
        Ok(())
    }
}

#[test]
fn a_long_log_is_not_held_in_memory() {
    // A head of a change may name any length.
    let claim = [&(60_u32 << 20).to_le_bytes(), MARK.as_slice()].concat();
    for change in [&[][..], &claim] {
        let log = sparse(change);
        let control = Control::new();
        let end = replay_store(log.clone(), 4, 7, &control, &mut |_, _| Ok(())).unwrap();
        assert_eq!(end, START);
        assert!(log.longest.load(Ordering::Relaxed) <= WINDOW);
        control.cancel();
        let cancelled = replay_store(log, 1, 7, &control, &mut |_, _| Ok(()));
        assert!(matches!(cancelled, Err(Error::Cancelled)));
    }
}

/// A log with changes of these lengths, each durable before the next.
fn written(lens: &[usize]) -> Arc<CrashDisk> {
    let disk = Arc::new(CrashDisk::new(Failing::Never));
    let mut log = LogWriter::create(&*disk, "a.log", 7).unwrap();
    for (number, len) in lens.iter().enumerate() {
        log.push(&vec![number as u8; *len]).unwrap();
        log.sync().unwrap();
    }
    disk
}

/// The lengths of the changes in a log.
fn lens(disk: &CrashDisk) -> Vec<usize> {
    let mut lens = Vec::new();
    replay(disk, "a.log", 7, &Control::new(), &mut |_, change| {
        assert!(change.iter().all(|byte| usize::from(*byte) == lens.len()));
        lens.push(change.len());
        Ok(())
    })
    .unwrap();
    lens
}

#[test]
fn changes_of_all_lengths_come_back_around_the_window() {
    let window = WINDOW as usize;
    let all = [1, window - 100, 0, 30, 3 * window + 5, 17, window - HEAD, window];
    assert_eq!(lens(&written(&all)), all);
}

#[test]
fn damage_before_an_intact_change_is_found_beyond_the_window() {
    let window = WINDOW as usize;
    for len in [window - HEAD - 6, window - HEAD - 1, window, 2 * window + 3] {
        let disk = written(&[3, len, 5]);
        disk.damage("a.log", |bytes| bytes[START as usize + 3 + 2 * HEAD + 9] ^= 1);
        let error = replay(&*disk, "a.log", 7, &Control::new(), &mut |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains("before an intact one"), "{error}");
        let mut kept = Vec::new();
        let lost = replay_damaged(&*disk, "a.log", &Control::new(), &mut |_, change| {
            kept.push(change.len());
            Ok(())
        });
        let begin = START + HEAD as u64 + 3;
        let end = begin + (HEAD + len) as u64;
        let [lost] = &lost.unwrap()[..] else { panic!("one range of bytes is lost") };
        assert_eq!((kept, lost.clone()), (vec![3, 5], begin..end));
    }
}
