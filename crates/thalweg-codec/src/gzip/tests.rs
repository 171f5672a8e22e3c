#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};

use flate2::read::{GzDecoder, MultiGzDecoder};
use flate2::{Compression, GzBuilder};
use proptest::prelude::*;

use super::*;

/// A member with a name, a comment, an extra field and a checksum of the header.
fn member(plain: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().filename("a.fastq").comment("of a test").extra(*b"XY\x01\0z");
    let mut writer = builder.write(Vec::new(), Compression::default());
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

fn blocks(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    BlockCompressor::new(6).unwrap().append(plain, &mut out).unwrap();
    out.extend(END);
    out
}

/// Decompresses a stream that comes in parts of `part` bytes, `room` bytes at a time.
fn streamed(stored: &[u8], part: usize, room: usize) -> Result<(Vec<u8>, Option<u64>), Fault> {
    let mut stream = GzipStream::default();
    let mut all = Vec::new();
    for mut part in stored.chunks(part) {
        loop {
            let mut out = Vec::with_capacity(room);
            let is_all = stream.push(&mut part, &mut out)?;
            all.extend(out);
            if is_all {
                assert!(part.is_empty());
                break;
            }
        }
    }
    Ok((all, stream.unfinished()))
}

/// The same, with parts that were decompressed ahead, and whether one of them was used.
fn with_parts(stored: &[u8], part: usize, room: usize) -> Result<(Vec<u8>, bool), Fault> {
    let mut stream = GzipStream::default();
    let mut parts = PartDecompressor::default();
    let (mut all, mut old, mut is_used) = (Vec::new(), Part::default(), false);
    for mut part in stored.chunks(part) {
        stream.offer(parts.run(part, 1 << 22, old));
        loop {
            let mut out = Vec::with_capacity(room);
            let is_all = stream.push(&mut part, &mut out)?;
            all.extend(out);
            is_used |= matches!(stream.state, State::Ahead(..));
            if is_all {
                break;
            }
        }
        old = stream.take_back().unwrap_or_default();
    }
    assert_eq!(stream.unfinished(), None);
    Ok((all, is_used))
}

/// Text of some lines, in which matches are near and far.
fn lines(bytes: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut text = Vec::new();
    while text.len() < bytes {
        text.extend(format!("@read {}\n", text.len()).into_bytes());
        text.extend((0..300).map(|_| b"ACGT"[random(4) as usize]));
        text.extend(b"\n+\n");
        text.extend((0..300).map(|_| b'!' + random(40) as u8));
        text.push(b'\n');
        if random(4) == 0 {
            let len = text.len();
            let from = len.saturating_sub(1 + random(40_000) as usize);
            let again = text[from..len.min(from + random(2000) as usize)].to_vec();
            text.extend(again);
            text.extend(vec![b'N'; random(600) as usize]);
        }
    }
    text
}

fn unblocked(stored: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    let mut rest = stored;
    let mut decompressor = BlockDecompressor::default();
    while let Some(header) = Header::parse(rest)? {
        let size = header.block.unwrap();
        decompressor.append(&rest[..size], &mut out)?;
        rest = &rest[size..];
    }
    assert!(rest.is_empty());
    Ok(out)
}

#[test]
fn every_cut_is_an_unfinished_member_or_falls_between_members() {
    let (one, two) = (member(b"first"), blocks(b"second"));
    let whole = [one.clone(), two.clone()].concat();
    let ends = [one.len(), whole.len() - END.len(), whole.len()];
    for cut in 0..=whole.len() {
        let (plain, unfinished) = streamed(&whole[..cut], 7, 64).unwrap();
        assert!(b"firstsecond".starts_with(&plain[..]));
        assert_eq!(unfinished.is_none(), ends.contains(&cut), "{cut}");
    }
}

#[test]
fn padding_is_allowed_and_other_bytes_are_not() {
    let padded = [member(b"text"), vec![0; 1000]].concat();
    assert_eq!(streamed(&padded, 100, 64).unwrap(), (b"text".to_vec(), None));
    let junk = [member(b"text"), b"junk".to_vec()].concat();
    assert_eq!(streamed(&junk, 100, 64).unwrap_err().at, member(b"text").len() as u64);
    let hidden = [padded, b"junk".to_vec()].concat();
    assert!(streamed(&hidden, 100, 64).unwrap_err().expected.contains("zeros"));
}

#[test]
fn what_a_member_says_of_itself_is_checked() {
    let whole = member(&[b'A'; 1000]);
    let blocked = blocks(&[b'A'; 1000]);
    let block = blocked.len() - END.len();
    for (back, word) in [(5, "CRC-32"), (1, "a size")] {
        let mut bytes = whole.clone();
        let at = bytes.len() - back;
        bytes[at] ^= 1;
        assert!(streamed(&bytes, 100, 64).unwrap_err().found.contains(word));
        let mut bytes = blocked.clone();
        bytes[block - back] ^= 1;
        unblocked(&bytes).unwrap_err();
    }
    let mut large = blocked.clone();
    large[block - 4..block].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(unblocked(&large).unwrap_err().found.contains("4294967295"));
    let mut short = blocked;
    short[16..18].copy_from_slice(&10_u16.to_le_bytes());
    assert!(Header::parse(&short).unwrap_err().found.contains("11 bytes"));
    for (at, value) in [(0, 0), (2, 7), (3, 0xff)] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        assert_eq!(Header::parse(&bytes).unwrap_err().at, at as u64);
    }
}

#[test]
fn a_block_has_one_member() {
    let one = blocks(b"one");
    let two = blocks(b"two");
    let (one, two) = (&one[..one.len() - END.len()], &two[..two.len() - END.len()]);
    let mut both = [one, two].concat();
    let size = both.len() as u16 - 1;
    both[16..18].copy_from_slice(&size.to_le_bytes());
    assert!(unblocked(&both).unwrap_err().found.contains("CRC-32"));
}

#[test]
fn a_name_without_an_end_takes_no_memory() {
    let endless = [&[0x1f, 0x8b, 8, FNAME, 0, 0, 0, 0, 0, 0][..], &[b'a'; 3 << 20]].concat();
    assert!(streamed(&endless, 1 << 16, 64).unwrap_err().found.contains("without an end"));
}

/// One member of parts.
fn parts(plain: &[u8], len: usize, level: u32) -> Vec<u8> {
    let mut frame = MemberFrame::default();
    let mut out = MemberFrame::HEADER.to_vec();
    let mut compressor = PartCompressor::new(level).unwrap();
    for part in plain.chunks(len) {
        compressor.append(part, &mut out).unwrap();
        frame.push(&crc(part));
    }
    out.extend(frame.end());
    out
}

#[test]
fn parts_of_any_bytes_and_level_are_valid() {
    let mut state = 1_u32;
    let random = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let random: Vec<u8> = (0..600_000).map(random).collect();
    let bases: Vec<u8> = random.iter().map(|byte| b"ACGT"[usize::from(byte % 4)]).collect();
    for plain in [&random[..], &bases, &[255; 600_000], &[]] {
        for level in 0..10 {
            let mut read = Vec::new();
            GzDecoder::new(&parts(plain, 590_000, level)[..]).read_to_end(&mut read).unwrap();
            assert!(read == plain, "{level}");
            let mut part = Vec::new();
            PartCompressor::new(level).unwrap().append(plain, &mut part).unwrap();
            assert!(is_part_of(&part, plain) && !is_part_of(&part, &[plain, &b"x"[..]].concat()));
        }
    }
    PartCompressor::new(10).unwrap_err();
}

/// One member that libdeflate compresses.
fn by_libdeflate(plain: &[u8], level: i32) -> Vec<u8> {
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(plain.len())];
    let len = compressor.gzip_compress(plain, &mut out).unwrap();
    out.truncate(len);
    out
}

#[test]
fn parts_are_decompressed_ahead_and_give_the_same() {
    let plain = lines(2_000_000);
    for level in [1, 4, 6, 9] {
        let mut writer = GzBuilder::new().write(Vec::new(), Compression::new(level));
        writer.write_all(&plain).unwrap();
        let stored = writer.finish().unwrap();
        for part in [100_000, 300_001] {
            let (read, is_used) = with_parts(&stored, part, 10_000).unwrap();
            assert!(read == plain && is_used, "{level}, {part}");
        }
        let many: Vec<u8> = (0..3).flat_map(|_| stored.clone()).collect();
        let (read, is_used) = with_parts(&many, 200_000, 100_000).unwrap();
        assert!(read == [&plain[..], &plain, &plain].concat() && is_used, "{level}");
    }
    for level in 0..13 {
        let stored = by_libdeflate(&plain, level);
        assert!(with_parts(&stored, 150_000, 100_000).unwrap().0 == plain, "{level}");
    }
}

/// Each start of a block can be decompressed up to the end of the input. Without a limit, this
/// takes a quarter of an hour.
#[test]
fn many_starts_of_blocks_that_never_end_cost_little() {
    let stored = by_libdeflate(&lines(2_000_000), 6);
    let at = stored.len() / 4;
    let part = &stored[at..];
    let ahead = PartDecompressor::default().run(part, 1 << 20, Part::default()).0.unwrap();
    let head = &part[ahead.start / 8..][..200];
    let crafted: Vec<u8> = head.iter().copied().cycle().take(4 << 20).collect();
    assert!(PartDecompressor::default().run(&crafted, 1 << 23, Part::default()).0.is_none());
}

#[test]
fn text_before_a_defect_is_given_out() {
    let plain = lines(500_000);
    let mut stored = by_libdeflate(&plain, 6);
    let at = stored.len() / 2;
    stored[at..at + 40].fill(0xff);
    let text = |part: usize| {
        let (mut stream, mut all) = (GzipStream::default(), Vec::with_capacity(1 << 20));
        let mut parts = PartDecompressor::default();
        let fault = stored.chunks(part).find_map(|mut stored| {
            stream.offer(parts.run(stored, 1 << 22, Part::default()));
            stream.push(&mut stored, &mut all).err()
        });
        (fault.unwrap(), all)
    };
    let (fault, all) = text(1 << 20);
    // Some of what follows the defect may be codes, too.
    let same = all.iter().zip(&plain).take_while(|(a, b)| a == b).count();
    assert!(same > plain.len() / 3 && fault.at as usize >= at, "{same}, {fault}");
    for part in [60_000, 100_000] {
        assert_eq!(text(part), (fault.clone(), all.clone()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_parts_give_what_was_written(
        pieces in prop::collection::vec((0_usize..400_000, 1_usize..200_000), 1..5),
        level in 0_i32..13,
        part in 20_000_usize..200_000,
        room in 1000_usize..300_000,
    ) {
        let text = lines(600_000);
        let mut plain = Vec::new();
        let mut stored = Vec::new();
        for (from, len) in pieces {
            let text = &text[from..from + len];
            plain.extend_from_slice(text);
            stored.extend(by_libdeflate(text, level));
            plain.extend_from_slice(text);
            stored.extend(parts(text, len / 2 + 1, level.min(9) as u32));
        }
        prop_assert_eq!(streamed(&stored, part, room)?, (plain.clone(), None));
        prop_assert_eq!(with_parts(&stored, part, room)?.0, plain);
    }

    #[test]
    fn streams_and_blocks_give_what_was_written(
        plain in prop::collection::vec(prop::sample::select(b"ACGT\n@+!I".to_vec()), 0..200_000),
        part in 10_usize..5000,
        room in 10_usize..5000,
        level in 0_u32..10,
    ) {
        let stored = [member(&plain), blocks(&plain), member(b"")].concat();
        let twice = [plain.clone(), plain.clone()].concat();
        prop_assert_eq!(streamed(&stored, part, room)?, (twice.clone(), None));
        prop_assert_eq!(unblocked(&blocks(&plain))?, plain.clone());
        // Another implementation reads the blocks.
        let mut read = Vec::new();
        MultiGzDecoder::new(&stored[..]).read_to_end(&mut read)?;
        prop_assert_eq!(read, twice);
        let one = parts(&plain, part * 200, level);
        prop_assert_eq!(streamed(&one, part, room)?, (plain.clone(), None));
        let mut read = Vec::new();
        GzDecoder::new(&one[..]).read_to_end(&mut read)?;
        prop_assert_eq!(read, plain);
    }

    #[test]
    fn flipped_bits_never_panic_nor_pass(at in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let plain: Vec<u8> = (0..2000_u32).flat_map(|i| i.to_le_bytes()).collect();
        let mut stored = blocks(&plain);
        let at = at.index(stored.len());
        stored[at] ^= 1 << bit;
        let outcome = streamed(&stored, 64, 64);
        // A name may have been changed, but no value.
        let is_whole = |(read, unfinished): (Vec<u8>, Option<u64>)| {
            read == plain || unfinished.is_some()
        };
        prop_assert!(outcome.map_or(true, is_whole));
    }
}
