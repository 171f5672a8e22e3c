//! Huffman codes of limited length, from the number of occurrences of each symbol.

/// The code of a symbol. Its first bit is the lowest, as deflate writes it. The code of a symbol
/// that does not occur is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: u64,
    pub(super) len: u32,
}

/// The canonical codes (RFC 1951, section 3.2.2), each of at most `most` bits. There are always at
/// least two, because decoders require a complete code.
pub(super) fn codes<const N: usize>(counts: &[u32; N], most: u32) -> [Code; N] {
    let mut symbols: Vec<(u32, usize)> =
        counts.iter().copied().zip(0..).filter(|&(count, _)| count > 0).collect();
    let unused = (0..N).filter(|&symbol| counts[symbol] == 0);
    symbols.extend(unused.take(2_usize.saturating_sub(symbols.len())).map(|symbol| (0, symbol)));
    symbols.sort_unstable();
    let mut lengths: Vec<u32> = symbols.iter().map(|&(count, _)| count).collect();
    depths(&mut lengths);
    limit(&mut lengths, most);

    let mut codes = [Code::default(); N];
    symbols.iter().zip(lengths).for_each(|(&(_, symbol), len)| codes[symbol].len = len);
    let mut next = 0_u32;
    for len in 1..=most {
        next <<= 1;
        for code in codes.iter_mut().filter(|code| code.len == len) {
            code.bits = u64::from(next.reverse_bits() >> (u32::BITS - len));
            next += 1;
        }
    }
    codes
}

/// Replaces weights, at least two in ascending order, by the depths of their leaves in Huffman's
/// tree. Works in place, as in Moffat and Katajainen, "In-place calculation of minimum-redundancy
/// codes" (1995).
fn depths(a: &mut [u32]) {
    let n = a.len();
    // Computes the weights of inner nodes. Each is replaced by the index of its parent once it has
    // one.
    let mut leaf = 0;
    let mut root = 0;
    for next in 0..n - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            if leaf >= n || (root < next && a[root] < a[leaf]) {
                weight += std::mem::replace(&mut a[root], next as u32);
                root += 1;
            } else {
                weight += a[leaf];
                leaf += 1;
            }
        }
        a[next] = weight;
    }
    // Computes the depths of inner nodes.
    a[n - 2] = 0;
    for i in (0..n - 2).rev() {
        a[i] = a[a[i] as usize] + 1;
    }
    // Computes the depths of leaves: the places of each level that inner nodes do not take.
    let mut places = 1;
    let mut depth = 0;
    let mut inner = n - 1;
    let mut leaf = n;
    while places > 0 {
        let nodes = a[..inner].iter().rev().take_while(|&&at| at == depth).count();
        inner -= nodes;
        for _ in nodes..places {
            leaf -= 1;
            a[leaf] = depth;
        }
        places = 2 * nodes;
        depth += 1;
    }
}

/// Limits code lengths to `most` bits; other codes get longer in exchange. `lengths` begins with
/// the rarest symbols.
fn limit(lengths: &mut [u32], most: u32) {
    let full = 1_u64 << most;
    let share = |len: u32| 1_u64 << (most - len);
    lengths.iter_mut().for_each(|len| *len = most.min(*len));
    let mut taken: u64 = lengths.iter().map(|&len| share(len)).sum();
    while taken > full {
        let Some(longest) = lengths.iter_mut().find(|len| **len < most) else { return };
        taken -= share(*longest) / 2;
        *longest += 1;
    }
    while taken < full {
        let Some(shortest) = lengths.iter_mut().rev().find(|len| share(**len) <= full - taken)
        else {
            return;
        };
        taken += share(*shortest);
        *shortest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::codes;
    use proptest::prelude::*;

    /// The code of section 3.2.2's example.
    #[test]
    fn lengths_make_the_canonical_code() {
        let code = codes(&[10, 10, 10, 10, 10, 40, 5, 5], 15);
        let lengths: Vec<u32> = code.iter().map(|code| code.len).collect();
        assert_eq!(lengths, [3, 3, 3, 3, 3, 2, 4, 4]);
        let bits: Vec<u64> =
            code.iter().map(|code| code.bits.reverse_bits() >> (64 - code.len)).collect();
        assert_eq!(bits, [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]);
    }

    proptest! {
        #[test]
        fn codes_are_complete_and_no_longer_than_allowed(
            counts in proptest::array::uniform32(0_u32..1 << 20),
            most in 5_u32..15, skew in 0_u32..20,
        ) {
            let counts = counts.map(|count| count >> (count % (skew + 1)));
            let code = codes(&counts, most);
            let used = code.iter().filter(|code| code.len > 0);
            let share: u64 = used.map(|code| 1 << (most - code.len)).sum();
            prop_assert_eq!(share, 1 << most);
            for (code, count) in code.iter().zip(counts) {
                prop_assert!(code.len <= most && (count == 0 || code.len > 0));
            }
        }
    }
}
