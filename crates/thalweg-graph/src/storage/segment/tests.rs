#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use thalweg_testing::{CrashDisk, Failing};

use super::*;

/// A segment of some pages, and a footer.
fn written(pages: usize) -> Arc<CrashDisk> {
    let disk = Arc::new(CrashDisk::new(Failing::Never));
    let mut segment = SegmentWriter::create(&*disk, "a.seg").unwrap();
    segment.append(&thalweg_testing::sample(pages * PAGE)).unwrap();
    segment.finish(&"footer").unwrap();
    disk
}

fn open(disk: &CrashDisk) -> Result<(SegmentPages, String)> {
    SegmentPages::open(disk.open("a.seg")?)
}

#[test]
fn pages_come_back() {
    for pages in [0, 1, 3, 70, 1023, 2500] {
        let disk = written(pages);
        let (segment, footer) = open(&disk).unwrap();
        // One more page holds the copy of the footer.
        assert_eq!((segment.pages(), footer.as_str()), (pages as u64 + 1, "footer"));
        let expected = thalweg_testing::sample(pages * PAGE);
        segment
            .with(0..pages as u64, |bytes| {
                assert!(bytes == expected);
                Ok(())
            })
            .unwrap();
        assert!(segment.with(0..pages as u64 + 2, |_| Ok(())).is_err());
    }
}

#[test]
fn damaged_checksums_are_named_and_cost_only_their_own_pages() {
    let disk = written(2500);
    let at = 2501 * PAGE + PAGE + 8;
    disk.damage("a.seg", |bytes| bytes[at] ^= 1);
    let (segment, _) = open(&disk).unwrap();
    segment.expect(&[0..1000, 2048..2501]);
    assert!(
        segment.with(0..1024, |_| Ok(())).is_ok() && segment.with(2048..2501, |_| Ok(())).is_ok()
    );
    match segment.with(2047..2048, |_| Ok(())) {
        Err(Error::Malformed { offset, .. }) => assert_eq!(offset, (2502 * PAGE) as u64),
        other => panic!("{other:?}"),
    }
    let (left, _, damage) =
        SegmentPages::open_damaged::<String>(disk.open("a.seg").unwrap()).unwrap();
    assert!(damage.is_some());
    for page in 0..2500 {
        assert_eq!(left.with(page..page + 1, |_| Ok(())).is_ok(), page != 1026, "{page}");
    }
}

#[test]
fn a_damaged_byte_is_found_wherever_it_is() {
    let whole = written(3);
    let len = whole.open("a.seg").unwrap().size() as usize;
    for at in (0..len).filter(|at| at % 211 == 0 || *at >= 4 * PAGE) {
        let disk = written(3);
        disk.damage("a.seg", |bytes| bytes[at] ^= 0x10);
        let read = open(&disk).and_then(|(segment, _)| segment.with(0..4, |_| Ok(())));
        match read {
            Err(Error::Malformed { offset, .. }) if at < 4 * PAGE => {
                assert_eq!(offset, (at / PAGE * PAGE) as u64);
            }
            Err(Error::Malformed { .. }) => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn a_segment_that_is_cut_short_is_an_error() {
    let whole = written(2);
    let len = whole.open("a.seg").unwrap().size() as usize;
    for at in (0..len).filter(|at| at % 97 == 0 || *at > len - 50) {
        let disk = written(2);
        disk.damage("a.seg", |bytes| bytes.truncate(at));
        assert!(
            matches!(open(&disk), Err(Error::Malformed { .. } | Error::Truncated { .. })),
            "{at}"
        );
    }
}

#[test]
fn each_damaged_byte_of_a_page_is_reported() {
    let expected = thalweg_testing::sample(3 * PAGE);
    let len = written(3).open("a.seg").unwrap().size() as usize;
    for at in (0..len).filter(|at| at % 211 == 0 || *at >= 4 * PAGE) {
        let disk = written(3);
        disk.damage("a.seg", |bytes| bytes[at] ^= 0x10);
        let (segment, footer, damage) =
            SegmentPages::open_damaged::<String>(disk.open("a.seg").unwrap()).unwrap();
        assert_eq!((footer.as_str(), damage.is_some()), ("footer", at >= 4 * PAGE), "byte {at}");
        for page in 0..3 {
            let same = |bytes: &[u8]| Ok(bytes == &expected[page * PAGE..(page + 1) * PAGE]);
            let read = segment.with(page as u64..page as u64 + 1, same);
            let is_damaged = at / PAGE == page
                || (4 * PAGE..4 * PAGE + 16).contains(&at) && (at - 4 * PAGE) / 4 == page;
            assert!(
                if is_damaged { read.is_err() } else { read.unwrap() },
                "byte {at}, page {page}"
            );
        }
    }
    // The end is gone, up to the checksums.
    let disk = written(3);
    disk.damage("a.seg", |bytes| bytes.truncate(4 * PAGE + 4));
    let (segment, ..) = SegmentPages::open_damaged::<String>(disk.open("a.seg").unwrap()).unwrap();
    assert!(segment.with(0..1, |_| Ok(())).is_ok() && segment.with(1..2, |_| Ok(())).is_err());
}
