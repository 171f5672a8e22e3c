#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use thalweg_io::open::Options;

use super::*;
use crate::arrays::Slab;
use crate::libhdf5::{Hdf5Writer, StoredNumber, VectorSpec};

/// A file with a dataset of strings or lists of numbers, and a dataset of numbers.
fn written(
    shape: &[u64],
    item: Option<StoredNumber>,
    elements: Option<&[Vec<u8>]>,
) -> (tempfile::TempDir, ArrayFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = Hdf5Writer::create(&path, &"f.h5".into()).unwrap();
    let group = writer.group(None, "g").unwrap();
    writer.variable(&group, "any", shape, item, elements).unwrap();
    let numbers = VectorSpec { kind: StoredNumber::U32, len: 3, chunk: None, filters: &[] };
    writer.values(&writer.vector(&group, "numbers", numbers).unwrap(), 0, &[7; 12]).unwrap();
    drop(group);
    writer.finish().unwrap();
    let file = ArrayFile::open(&path, Options::default()).unwrap();
    (folder, file)
}

fn dataset(file: &ArrayFile, name: &str) -> Dataset {
    file.matching(name).unwrap().pop().unwrap()
}

fn first(file: &ArrayFile, most: u64) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let take = &mut |string: &[u8]| {
        seen.push(string.to_vec());
        Ok(())
    };
    file.first_strings(&dataset(file, "/g/any"), most, take).unwrap();
    seen
}

fn some(file: &ArrayFile, elements: Range<u64>) -> Result<Vec<Vec<u8>>> {
    let mut seen = Vec::new();
    let take = &mut |string: &[u8]| {
        seen.push(string.to_vec());
        Ok(())
    };
    file.strings_of(&dataset(file, "/g/any"), elements, take).map(|()| seen)
}

/// A shape, and an element for each of its places.
fn shaped() -> impl Strategy<Value = (Vec<u64>, Vec<Vec<u8>>)> {
    prop::collection::vec(1_u64..6, 0..4).prop_flat_map(|shape| {
        let count = shape.iter().product::<u64>() as usize;
        (Just(shape), prop::collection::vec(prop::collection::vec(1_u8.., 0..20), count))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn strings_come_as_they_were_written((shape, strings) in shaped(), most in 0_u64..130) {
        let (_folder, file) = written(&shape, None, Some(&strings));
        let any = dataset(&file, "/g/any");
        let found = file.variable(&any).unwrap().unwrap();
        prop_assert_eq!((found.shape, found.item), (shape, None));
        prop_assert_eq!(&first(&file, most), &strings[..strings.len().min(most as usize)]);
        prop_assert_eq!(file.strings(&any).unwrap(), strings);
    }

    #[test]
    fn lists_come_as_their_bytes((shape, lists) in shaped()) {
        let whole = |list: Vec<u8>| list[..list.len() / 4 * 4].to_vec();
        let lists: Vec<Vec<u8>> = lists.into_iter().map(whole).collect();
        let (_folder, file) = written(&shape, Some(StoredNumber::I32), Some(&lists));
        let any = dataset(&file, "/g/any");
        let item = file.variable(&any).unwrap().unwrap().item.unwrap();
        prop_assert_eq!(item.to_string(), "<i4");
        prop_assert_eq!(file.strings(&any).unwrap(), lists);
    }

    #[test]
    fn parts_are_those_of_the_whole(
        count in 1_u64..9000, start in 0_u64..9000, len in 0_u64..9000,
    ) {
        // Up to more strings than are read at a time.
        let strings: Vec<Vec<u8>> = (0..count).map(|i| i.to_string().into_bytes()).collect();
        let (_folder, file) = written(&[count], None, Some(&strings));
        let (start, end) = (start.min(count), (start.min(count) + len).min(count));
        prop_assert_eq!(&some(&file, start..end).unwrap(), &strings[start as usize..end as usize]);
        prop_assert!(matches!(some(&file, start..count + 1), Err(Error::Usage(_))));
        prop_assert_eq!(&first(&file, len), &strings[..len.min(count) as usize]);
    }
}

#[test]
fn unwritten_chunks_hold_fill_values() {
    let (_folder, file) = written(&[2, 3], None, None);
    assert_eq!(file.strings(&dataset(&file, "/g/any")).unwrap(), vec![Vec::<u8>::new(); 6]);
    let (_folder, file) = written(&[0, 3], None, None);
    assert!(file.strings(&dataset(&file, "/g/any")).unwrap().is_empty());
}

#[test]
fn parts_are_rows() {
    let strings: Vec<Vec<u8>> = (0..6_u8).map(|i| vec![b'a' + i]).collect();
    let (_folder, file) = written(&[2, 3], None, Some(&strings));
    assert_eq!(some(&file, 1..2).unwrap(), strings[3..]);
    assert!(matches!(some(&file, 1..3), Err(Error::Usage(_))));
}

#[test]
fn arrays_are_not_read_as_strings() {
    let (_folder, file) = written(&[1], None, None);
    let numbers = dataset(&file, "/g/numbers");
    assert_eq!(file.variable(&numbers).unwrap(), None);
    let refused = file.strings(&numbers).unwrap_err().to_string();
    assert!(refused.contains("/g/numbers: reading it as strings or lists"), "{refused}");
    assert!(matches!(file.strings_of(&numbers, 0..1, &mut |_| Ok(())), Err(Error::Usage(_))));
}

#[test]
fn a_visitor_may_stop_the_reading() {
    let strings: Vec<Vec<u8>> = (0..10_000).map(|i: u32| i.to_string().into_bytes()).collect();
    let (_folder, file) = written(&[10_000], None, Some(&strings));
    let any = dataset(&file, "/g/any");
    let mut seen = 0;
    let ended = file.each_variable(&any, &mut |_| {
        seen += 1;
        if seen == 5000 { Err(Error::Usage("enough".into())) } else { Ok(()) }
    });
    assert!(matches!(ended, Err(Error::Usage(why)) if why == "enough"));
    assert_eq!(seen, 5000);
    file.options().control.cancel();
    assert!(matches!(file.strings(&any), Err(Error::Cancelled)));
    assert!(matches!(file.strings_of(&any, 0..10, &mut |_| Ok(())), Err(Error::Cancelled)));
}

#[test]
fn selected_strings_come_in_the_order_of_the_selection() {
    let strings: Vec<Vec<u8>> = (0..12).map(|i| format!("{i}").into_bytes()).collect();
    let (_folder, file) = written(&[3, 4], None, Some(&strings));
    let any = dataset(&file, "/g/any");
    let found = |selection| {
        let found = file.variable_elements(&any, selection).unwrap();
        found.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(Selection::Points(vec![vec![2, 1], vec![0, 3]])), ["9", "3"]);
    let slab = |start, count, step| Slab { start, count, step, block: 1 };
    assert_eq!(found(Selection::Slab(vec![slab(0, 2, 2), slab(1, 1, 1)])), ["1", "9"]);
    assert_eq!(found(Selection::All).len(), 12);
}
