#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use thalweg_testing::{CrashDisk, Failing};

use super::*;
use crate::storage::segment::{SegmentPages, SegmentWriter};

/// Writes a column of these numbers, and opens it.
fn column(
    values: &[u64],
    coding: NumberCoding,
    is_keyed: bool,
    in_pieces: usize,
) -> (SegmentPages, ColumnReader) {
    use thalweg_io::disk::Disk;

    let disk = CrashDisk::new(Failing::Never);
    let mut segment = SegmentWriter::create(&disk, "a.seg").unwrap();
    let mut writer = ColumnWriter::new(coding, is_keyed);
    for piece in values.chunks(in_pieces) {
        match piece {
            [one] => writer.push(&mut segment, *one).unwrap(),
            some => writer.extend(&mut segment, some).unwrap(),
        }
    }
    assert_eq!(writer.len(), values.len() as u64);
    let meta = writer.finish(&mut segment).unwrap();
    segment.finish(&meta).unwrap();
    let (segment, meta) = SegmentPages::open::<ColumnMeta>(disk.open("a.seg").unwrap()).unwrap();
    let column = ColumnReader::open(&meta, &segment).unwrap();
    (segment, column)
}

/// Typical numbers of columns: consecutive ones, ascending ones, ascending lists, or any.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    (0..4_u8, 0..60_u32, any::<u64>(), 0..6000_usize).prop_map(|(kind, bits, seed, len)| {
        let any = |i: usize| {
            thalweg_codec::splitmix::mix(seed.wrapping_add(i as u64)) >> (63 - bits.min(63))
        };
        let mut values: Vec<u64> = (0..len).map(any).collect();
        match kind {
            0 => values = (seed >> 1..).take(len).collect(),
            1 => values.sort_unstable(),
            2 => values.chunks_mut(700).for_each(<[u64]>::sort_unstable),
            _ => {}
        }
        values
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_part_of_a_column_comes_back(
        values in numbers(),
        raw in any::<bool>(),
        pieces in 1..500_usize,
        a in 0.0..=1.0_f64,
        b in 0.0..=1.0_f64,
    ) {
        let coding = if raw { NumberCoding::Raw } else { NumberCoding::Packed };
        let (segment, column) = column(&values, coding, false, pieces);
        let at = |part: f64| (values.len() as f64 * part) as u64;
        let range = at(a).min(at(b))..at(a).max(at(b));
        let mut out = vec![0; (range.end - range.start) as usize];
        column.read(&segment, range.clone(), &mut out).unwrap();
        prop_assert_eq!(&out[..], &values[range.start as usize..range.end as usize]);
        // The spans cover the range exactly.
        let len = |span: PageSpan| span.numbers.end - span.numbers.start;
        let covered: u64 = column.spans(range.clone()).map(len).sum();
        prop_assert!(covered == range.end - range.start || column.is_range());
        let mut all = vec![0; values.len()];
        column.read(&segment, 0..values.len() as u64, &mut all).unwrap();
        prop_assert_eq!(all, values);
    }

    #[test]
    fn numbers_are_found_where_they_are(
        mut values in numbers(),
        raw in any::<bool>(),
        other in any::<u64>(),
        steps in prop::collection::vec(0.0..1.0_f64, 40),
    ) {
        values.sort_unstable();
        values.dedup();
        let coding = if raw { NumberCoding::Raw } else { NumberCoding::Packed };
        let (segment, column) = column(&values, coding, true, 100);
        let searched =
            |value: u64| values.binary_search(&value).map(|i| i as u64).map_err(|i| i as u64);
        let some = values.iter().step_by(97).copied().chain([0, other, u64::MAX]);
        for value in some {
            let expected = searched(value);
            prop_assert_eq!(column.find(&segment, value).unwrap(), expected);
            let range = column.find_in(&segment, 0..values.len() as u64, value).unwrap();
            let place = expected.unwrap_or_else(|place| place);
            prop_assert_eq!(range, place..place + u64::from(expected.is_ok()));
        }
        // Consecutive queries: near and far, up and down.
        let mut finder = column.finder(&segment);
        for step in steps {
            let place = (values.len() as f64 * step) as usize;
            let places = [place, place + 1, place + 130];
            for place in places.into_iter().filter(|place| *place < values.len()) {
                let value = values[place];
                prop_assert_eq!(finder.get(place as u64).unwrap(), value);
                for value in [value, value.saturating_add(1), value ^ other] {
                    prop_assert_eq!(finder.find(value).unwrap(), searched(value));
                }
            }
        }
        prop_assert!(finder.get(values.len() as u64).is_err());
    }
}

#[test]
fn a_column_longer_than_a_run_of_pages_comes_back() {
    let values: Vec<u64> =
        (0..600_000_u64).map(|i| thalweg_codec::splitmix::mix(i) >> 20).collect();
    for coding in [NumberCoding::Raw, NumberCoding::Packed] {
        let (segment, column) = column(&values, coding, false, 4096);
        let mut out = vec![0; values.len()];
        column.read(&segment, 0..values.len() as u64, &mut out).unwrap();
        assert!(out == values);
        assert!(column.spans(0..values.len() as u64).count() > 1);
    }
}
