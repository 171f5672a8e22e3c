use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::record::{RecordPress, SignalPress};

fn sample() -> Index {
    let mut index = Index::new(Version::V0_2_0);
    for i in 0..5u64 {
        assert_eq!(
            index.push(&format!("read-{i}"), Entry { offset: 100 + 50 * i, size: 50 }),
            Ok(())
        );
    }
    index
}

fn header(encoding: Encoding) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 1,
        attributes: Vec::new(),
        aux: Vec::new(),
        data_offset: 100,
    }
}

#[test]
fn layout() {
    let mut index = Index::new(Version::V0_1_0);
    assert_eq!(index.push("r1", Entry { offset: 1000, size: 17 }), Ok(()));
    let mut expected = b"SLOW5IDX\x01\0\x01\0".to_vec();
    expected.resize(64, 0);
    expected.extend(b"\x02\0r1\xe8\x03\0\0\0\0\0\0\x11\0\0\0\0\0\0\0XDI5WOLS");
    assert_eq!(index.parts().concat(), expected);
    assert!(format!("{index:?}").contains("len: 1"));
    let empty = Index::parse(Index::new(Version::V1_0_0).parts().concat());
    assert!(empty.is_ok_and(|index| index.is_empty()
        && index.get("r1").is_none()
        && index.iter().next().is_none()));
}

#[test]
fn belongs_to_its_file() {
    let index = sample();
    assert_eq!(index.check(&header(Encoding::Binary), 355), Ok(()));
    assert_eq!(index.check(&header(Encoding::Ascii), 350), Ok(()));
    assert!(index.check(&header(Encoding::Binary), 354).is_err());
    // An index that was cut between two entries does not have all reads.
    let cut = index.check(&header(Encoding::Binary), 405);
    assert!(cut.is_err_and(|fault| fault.found.contains("5 reads with 250 bytes")));
    assert!(index.check(&header(Encoding::Ascii), 349).is_err());
    assert!(index.check(&header(Encoding::Ascii), 0).is_err());
    assert!(index.check(&Header { data_offset: 101, ..header(Encoding::Binary) }, 355).is_err());
    assert!(
        index.check(&Header { version: Version::V1_0_0, ..header(Encoding::Binary) }, 355).is_err()
    );
    for place in [(u64::MAX, 8), (8, u64::MAX), (u64::MAX, u64::MAX), (100, 7), (100, 0)] {
        let mut index = Index::new(Version::V0_2_0);
        assert_eq!(index.push("r", Entry { offset: place.0, size: place.1 }), Ok(()));
        assert!(index.check(&header(Encoding::Binary), 1000).is_err(), "{place:?}");
    }
}

#[test]
fn damage_is_named() {
    let good = sample().parts().concat();
    for len in 0..good.len() {
        assert!(Index::parse(good.get(..len).unwrap_or_default().to_vec()).is_err(), "{len}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(Index::parse(longer).is_err());
    let mut newer = good.clone();
    newer.splice(9..10, [2]);
    assert!(Index::parse(newer).is_err_and(|f| f.at == 9));
    let mut again = good.clone();
    again.splice(71..72, *b"1");
    assert!(Index::parse(again).is_err_and(|f| f.found.contains("first at byte 64")));
    let mut latin1 = good;
    latin1.splice(66..67, [0xb5]);
    assert!(Index::parse(latin1).is_err_and(|f| f.at == 66));
    let mut index = sample();
    assert!(index.push("read-3", Entry { offset: 0, size: 0 }).is_err());
    assert!(index.push(&"x".repeat(65_536), Entry { offset: 0, size: 0 }).is_err());
    assert_eq!(index.len(), 5);
}

/// An id is found even if the bytes of its length are the first bytes of the end marker.
#[test]
fn a_long_id_does_not_end_the_search() {
    let id = "I5WOLS".repeat(3000);
    let id = &id[..usize::from(u16::from_le_bytes(*b"XD"))];
    let mut index = Index::new(Version::V0_2_0);
    assert_eq!(index.push(id, Entry { offset: 1, size: 9 }), Ok(()));
    let back = Index::parse(index.parts().concat());
    assert!(back.is_ok_and(|back| back.get(id) == index.get(id) && back.len() == 1));
}

proptest! {
    #[test]
    fn finds_the_same_entries_as_a_map(
        entries in prop::collection::vec(("[a-c]{0,4}", any::<u64>(), any::<u64>()), 0..200),
    ) {
        let mut index = Index::new(Version::V0_2_0);
        let mut map = HashMap::new();
        let mut order = Vec::new();
        for (id, offset, size) in &entries {
            let place = Entry { offset: *offset, size: *size };
            let new = !map.contains_key(id);
            prop_assert_eq!(index.push(id, place).is_ok(), new);
            if new {
                map.insert(id.clone(), place);
                order.push((id.as_str(), place));
            }
        }
        let back = Index::parse(index.parts().concat());
        prop_assert!(back.is_ok());
        for index in [Ok(index), back].into_iter().flatten() {
            prop_assert_eq!(index.len(), map.len());
            prop_assert_eq!(&index.iter().collect::<Vec<_>>(), &order);
            prop_assert!(map.iter().all(|(id, place)| index.get(id) == Some(*place)));
            prop_assert_eq!(index.get("absent"), None);
        }
    }

    #[test]
    fn any_bytes_parse_or_not(tail: Vec<u8>, at in 0usize..192, bit in 0u32..8) {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(ENTRIES_AT, 0);
        bytes.extend(tail);
        let _ = Index::parse(bytes);
        let mut bytes = sample().parts().concat();
        bytes[at] ^= 1 << bit;
        if let Ok(index) = Index::parse(bytes) {
            let _ = index.check(&header(Encoding::Binary), 355);
        }
    }
}
