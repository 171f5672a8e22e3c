use super::Blosc2Decompressor;

/// A frame of two chunks of 16-bit elements, in which `chunks` are the stored chunks and `offsets`
/// their places.
fn frame(len: usize, chunk: usize, chunks: &[Vec<u8>], offsets: &[u64]) -> Vec<u8> {
    let stored = chunks.concat();
    let mut bytes = vec![0x9e, 0xa8];
    bytes.extend(b"b2frame\0");
    let mut number = |mark: u8, value: usize, width: usize| {
        bytes.push(mark);
        bytes.extend(&value.to_be_bytes()[8 - width..]);
    };
    number(0xd2, 97, 4);
    number(0xcf, 0, 8);
    number(0xa4, 0x12 << 24, 4);
    number(0xd3, len, 8);
    number(0xd3, stored.len(), 8);
    number(0xd2, 2, 4);
    number(0xd2, 0, 4);
    number(0xd2, chunk, 4);
    bytes.resize(87, 0);
    // No metalayers.
    bytes.extend([0x93, 0xcd, 0, 7, 0xde, 0, 0, 0xdc, 0, 0]);
    let index: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    [bytes, stored, plain(&index, 8)].concat()
}

/// The header of a chunk of `len` bytes, of which `stored` follow.
fn header(flags: u8, size: u8, len: usize, block: usize, stored: usize, last: u8) -> Vec<u8> {
    let mut header = vec![5, 1, flags, size];
    for number in [len, block, 32 + stored] {
        header.extend((number as u32).to_le_bytes());
    }
    header.resize(31, 0);
    header.push(last);
    header
}

fn plain(values: &[u8], size: u8) -> Vec<u8> {
    let len = values.len();
    [header(7, size, len, len, len, 0), values.to_vec()].concat()
}

fn decoded(frame: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![1, 2, 3];
    let outcome = Blosc2Decompressor::default().decompress(frame, most, &mut out);
    outcome.map(|()| out).map_err(|fault| fault.to_string())
}

#[test]
fn chunks_are_stored_or_of_one_value() {
    let values: Vec<u8> = (0..20).collect();
    let repeated = [header(7, 2, 20, 10, 4, 0x30), vec![7, 0, 9, 0]].concat();
    let coded = frame(50, 20, &[plain(&values, 2), repeated], &[0, 52, 0x81 << 56]);
    let expected = [values, [7, 0, 9, 0].repeat(5), vec![0; 10]].concat();
    assert_eq!(decoded(&coded, 50), Ok(expected));
    assert!(decoded(&coded, 49).is_err_and(|fault| fault.contains("at most 49")));
}

#[test]
fn parts_may_be_one_byte_repeated() {
    // One block in two parts: zeros, and a run of a byte.
    let block = [36u32.to_le_bytes().to_vec(), vec![0; 4], (-9i32).to_le_bytes().to_vec(), vec![1]];
    let block = block.concat();
    let coded = [header(5, 2, 8, 8, block.len(), 0), block].concat();
    assert_eq!(decoded(&frame(8, 8, &[coded], &[0]), 8), Ok(vec![0, 0, 0, 0, 9, 9, 9, 9]));
}

#[test]
fn every_cut_is_noticed() {
    let values: Vec<u8> = (0..20).collect();
    let coded = frame(20, 20, &[plain(&values, 2)], &[0]);
    for len in 0..coded.len() {
        assert!(decoded(&coded[..len], 20).is_err(), "{len}");
    }
}

#[test]
fn what_is_not_known_is_named() {
    let values = [1; 20];
    for (at, value, words) in [
        (26, 1, "contiguous"),
        (97, 9, "version 9"),
        (97 + 2, 3, "Blosc 2"),
        (97 + 31, 1, "dictionary"),
        (97 + 31, 0x70, "special value 7"),
    ] {
        let mut coded = frame(20, 20, &[plain(&values, 2)], &[0]);
        coded[at] = value;
        assert!(decoded(&coded, 20).is_err_and(|fault| fault.contains(words)), "{words}");
    }
}
