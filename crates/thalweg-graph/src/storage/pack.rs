//! Packing 128 numbers with as few bits each as the widest needs. A number is stored as its
//! difference from the least number of the group or, if the numbers ascend, from the one before.
//!
//! ```text
//! byte 0        bits 0-6: width, 0 to 64; bit 7: differences from the number before
//! bytes 1-8     the least number, or the first
//! 16 · width    the differences, little-endian, the first in the lowest bits
//! ```

use thalweg_io::Fault;

/// Numbers of a group.
pub(crate) const GROUP: usize = 128;

/// Bytes of a group before the differences.
pub(crate) const HEAD: usize = 9;

/// Bytes that must follow the last group, so that differences can be loaded eight bytes at a time.
pub(crate) const SLACK: usize = 8;

/// This bit is set in byte 0 if differences are from the number before.
const FROM_PREVIOUS: u8 = 0x80;

/// Bytes of the longest group.
#[cfg(test)]
const LONGEST: usize = HEAD + GROUP / 8 * 64;

/// Appends a group.
pub(crate) fn pack(values: &[u64; GROUP], out: &mut Vec<u8>) {
    let mut least = values[0];
    let mut most = values[0];
    let mut step = 0;
    let mut ascends = true;
    for pair in values.windows(2) {
        least = least.min(pair[1]);
        most = most.max(pair[1]);
        ascends &= pair[0] <= pair[1];
        step |= pair[1].wrapping_sub(pair[0]);
    }
    let flat = width(most - least);
    let steep = width(step);
    let mut differences = [0; GROUP];
    let (mode, bits, base) = if ascends && steep < flat {
        for (difference, pair) in differences[1..].iter_mut().zip(values.windows(2)) {
            *difference = pair[1] - pair[0];
        }
        (FROM_PREVIOUS, steep, values[0])
    } else {
        for (difference, value) in differences.iter_mut().zip(values) {
            *difference = value - least;
        }
        (0, flat, least)
    };
    out.push(mode | bits as u8);
    out.extend_from_slice(&base.to_le_bytes());
    let start = out.len();
    out.resize(start + GROUP / 8 * bits as usize, 0);
    match PACKERS.get(bits as usize) {
        Some(kernel) => kernel(&differences, &mut out[start..]),
        None => pack_wide(&differences, bits, &mut out[start..]),
    }
}

/// Writes differences of up to 56 bits: eight differences of `W` bits take `W` bytes.
fn pack_narrow<const W: usize>(differences: &[u64; GROUP], out: &mut [u8]) {
    for (eight, out) in differences.as_chunks::<8>().0.iter().zip(out.chunks_exact_mut(W.max(1))) {
        let mut words = [0; 8];
        for (i, difference) in eight.iter().enumerate() {
            let word = i * W / 64;
            let filled = i * W % 64;
            words[word] |= difference << filled;
            if filled + W > 64 {
                words[word + 1] |= difference >> (64 - filled);
            }
        }
        for (out, word) in out.chunks_mut(8).zip(words) {
            out.copy_from_slice(&word.to_le_bytes()[..out.len()]);
        }
    }
}

/// Writes differences of any number of bits.
fn pack_wide(differences: &[u64; GROUP], bits: u32, out: &mut [u8]) {
    let mut word = 0;
    let mut filled = 0;
    let mut out = out.as_chunks_mut().0.iter_mut();
    for difference in differences {
        word |= difference << filled;
        filled += bits;
        if filled >= 64 {
            out.next().into_iter().for_each(|out| *out = word.to_le_bytes());
            filled -= 64;
            // The bits that did not fit; none if the difference ended with the word.
            word = difference.checked_shr(bits - filled).unwrap_or(0);
        }
    }
}

fn width(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// The length of the group that starts with `bytes`.
pub(crate) fn packed_len(bytes: &[u8]) -> Result<usize, Fault> {
    let bits = usize::from(bytes.first().copied().unwrap_or_default() & !FROM_PREVIOUS);
    if bits > 64 {
        return Err(Fault::new(0, format!("numbers of {bits} bits"), "at most 64"));
    }
    Ok(HEAD + GROUP / 8 * bits)
}

/// The least number of the group that starts with `bytes` or, if they ascend, the first.
pub(crate) fn base(bytes: &[u8]) -> u64 {
    thalweg_codec::splitmix::word(bytes.get(1..HEAD).unwrap_or_default())
}

/// Unpacks the group that starts with `bytes`, which must continue for [`SLACK`] bytes after it.
/// Returns the length of the group.
pub(crate) fn unpack(bytes: &[u8], out: &mut [u64; GROUP]) -> Result<usize, Fault> {
    let len = packed_len(bytes)?;
    if bytes.len() < len + SLACK {
        return Err(Fault::new(
            0,
            format!("{} bytes", bytes.len()),
            format!("a group of {len} and {SLACK} more"),
        ));
    }
    let bits = usize::from(bytes[0] & !FROM_PREVIOUS);
    let base = base(bytes);
    let packed = &bytes[HEAD..];
    match UNPACKERS.get(bits) {
        Some(kernel) => kernel(packed, out),
        None => unpack_wide(packed, bits, out),
    }
    if bytes[0] & FROM_PREVIOUS == 0 {
        out.iter_mut().for_each(|value| *value = value.wrapping_add(base));
    } else {
        let mut last = base;
        for value in out.iter_mut() {
            last = last.wrapping_add(*value);
            *value = last;
        }
    }
    Ok(len)
}

/// Reads differences of up to 56 bits: every eighth difference begins at a byte, and each lies
/// within eight bytes.
fn unpack_narrow<const W: usize>(packed: &[u8], out: &mut [u64; GROUP]) {
    let mask = (1 << W) - 1;
    for (number, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let bytes = &packed[number * W..number * W + W + 8];
        for (i, value) in eight.iter_mut().enumerate() {
            let at = i * W / 8;
            let word = bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
            *value = word >> (i * W % 8) & mask;
        }
    }
}

/// Reads differences of more than 56 bits: a ninth byte may hold some of their bits.
fn unpack_wide(packed: &[u8], bits: usize, out: &mut [u64; GROUP]) {
    let mask = u64::MAX >> (64 - bits);
    for (i, value) in out.iter_mut().enumerate() {
        let at = i * bits;
        let low = packed[at / 8..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
        let high = u64::from(packed[at / 8 + 8]) << 1 << (63 - at % 8);
        *value = (low >> (at % 8) | high) & mask;
    }
}

macro_rules! kernels {
    ($kernel:ident: $($width:literal)*) => { [$($kernel::<$width>),*] };
    ($kernel:ident) => {
        kernels!($kernel: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
            28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56)
    };
}

type Unpack = fn(&[u8], &mut [u64; GROUP]);
type Pack = fn(&[u64; GROUP], &mut [u8]);

/// The reader for each width.
const UNPACKERS: [Unpack; 57] = kernels!(unpack_narrow);

/// The writer for each width.
const PACKERS: [Pack; 57] = kernels!(pack_narrow);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(values: [u64; GROUP]) -> usize {
        let mut bytes = Vec::new();
        pack(&values, &mut bytes);
        let len = bytes.len();
        assert!(len <= LONGEST);
        bytes.extend([0xa5; SLACK]);
        let mut back = [0; GROUP];
        assert_eq!(unpack(&bytes, &mut back).unwrap(), len);
        assert_eq!(back, values);
        len
    }

    #[test]
    fn groups_take_the_bits_they_need() {
        assert_eq!(round([7; GROUP]), HEAD);
        assert_eq!(round(std::array::from_fn(|i| 1000 + i as u64)), HEAD + 16, "one bit a step");
        assert_eq!(round(std::array::from_fn(|i| u64::MAX - i as u64)), HEAD + 16 * 7);
        assert_eq!(round(std::array::from_fn(|i| if i % 2 == 0 { 0 } else { u64::MAX })), LONGEST);
    }

    proptest! {
        #[test]
        fn all_widths_come_back(
            bits in 0..=64u32,
            seed in any::<u64>(),
            sorted in any::<bool>(),
            base in any::<u64>(),
        ) {
            let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let random = |i: usize| thalweg_codec::splitmix::mix(seed.wrapping_add(i as u64));
            let mut values: [u64; GROUP] =
                std::array::from_fn(|i| base.saturating_add(random(i) & mask));
            if sorted {
                values.sort_unstable();
            }
            round(values);
        }

        #[test]
        fn each_width_has_its_twin(values in prop::array::uniform32(any::<u64>())) {
            for (bits, kernel) in PACKERS.iter().enumerate().skip(1) {
                let differences: [u64; GROUP] =
                    std::array::from_fn(|i| (values[i % 32].rotate_left(i as u32)) >> (64 - bits));
                let (mut fast, mut slow) = (vec![0; GROUP / 8 * bits], vec![0; GROUP / 8 * bits]);
                kernel(&differences, &mut fast);
                pack_wide(&differences, bits as u32, &mut slow);
                prop_assert_eq!(fast, slow);
            }
        }

        #[test]
        fn any_bytes_are_a_group_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
            let mut out = [0; GROUP];
            let _ = unpack(&bytes, &mut out);
        }
    }
}
