//! Huffman codes of deflate (RFC 1951, section 3.2) as tables that are indexed by the next bits.
//!
//! An entry has, from its lowest bit: the bits that it takes (8), the extra bits that follow (4),
//! and the least value (15). An entry of literals has one or two of them (8 bits each) after the
//! bits that it takes, their number (2), and if they are two the bits that the first one takes (4).

use super::bits::Bits;
use crate::Fault;

/// Bits that index the table of literals and lengths.
pub(super) const LITERAL_BITS: u32 = 11;
/// Bits that index the table of distances.
pub(super) const DISTANCE_BITS: u32 = 9;
/// Bits of the longest code.
pub(super) const MOST_BITS: u32 = 15;

// Longer codes go on in tables of their own, which come after the first one. Each of them holds at
// least two codes, so there are at most half as many of them as codes.
const LITERAL_ENTRIES: usize =
    (1 << LITERAL_BITS) + (LITERALS / 2) * (1 << (MOST_BITS - LITERAL_BITS));
const DISTANCE_ENTRIES: usize =
    (1 << DISTANCE_BITS) + (DISTANCES / 2) * (1 << (MOST_BITS - DISTANCE_BITS));

/// Entries of literals. If this bit is set, the next ones are no flags: their bits hold other
/// fields.
pub(super) const LITERAL: u32 = 1 << 31;
/// Entries that are no lengths or distances. If neither of the next two is set, the bits are no
/// code.
pub(super) const OTHER: u32 = 1 << 30;
pub(super) const END: u32 = 1 << 29;
/// The code goes on in another table: its place after the first one, and the bits that index it.
pub(super) const LONGER: u32 = 1 << 28;

const EXTRA: u32 = 8;
const VALUE: u32 = 12;
const FIRST: u32 = 8;
const SECOND: u32 = 16;
const NUMBER: u32 = 24;
const FIRST_TAKEN: u32 = 26;

/// Symbols of literals and lengths, with two that no stream may have.
const LITERALS: usize = 288;
/// Symbols of distances, with two that no stream may have.
const DISTANCES: usize = 32;
/// The most codes of each that a block may have.
const MOST_LITERALS: usize = 286;
const MOST_DISTANCES: usize = 30;
/// The symbol that ends a block.
const END_OF_BLOCK: usize = 256;

/// The bits that an entry takes.
#[inline(always)]
pub(super) fn taken(entry: u32) -> u32 {
    entry & 0xff
}

/// The extra bits of an entry, or the bits that index a longer table.
#[inline(always)]
pub(super) fn extra(entry: u32) -> u32 {
    entry >> EXTRA & 0xf
}

/// The least value of an entry, or the place of a longer table.
#[inline(always)]
pub(super) fn value(entry: u32) -> u32 {
    entry >> VALUE & 0x7fff
}

/// The number of literals of an entry.
#[inline(always)]
pub(super) fn literal_count(entry: u32) -> usize {
    (entry >> NUMBER & 3) as usize
}

/// The literals of an entry. There is no second one if its number is one.
#[inline(always)]
pub(super) fn literals(entry: u32) -> [u8; 2] {
    [(entry >> FIRST) as u8, (entry >> SECOND) as u8]
}

/// The first one alone of two literals.
pub(super) fn first(entry: u32) -> u32 {
    LITERAL | entry & 0xff << FIRST | 1 << NUMBER | entry >> FIRST_TAKEN & 0xf
}

/// The entries of symbols, without the bits that they take.
const LITERAL_SYMBOLS: [u32; LITERALS] = {
    let mut symbols = [OTHER; LITERALS];
    let mut at = 0;
    while at < END_OF_BLOCK {
        symbols[at] = LITERAL | (at as u32) << FIRST | 1 << NUMBER;
        at += 1;
    }
    symbols[END_OF_BLOCK] = OTHER | END;
    let mut length = 3;
    while at < MOST_LITERALS - 2 {
        at += 1;
        let step = at - (END_OF_BLOCK + 1);
        let extra = if step < 8 { 0 } else { (step as u32 - 4) / 4 };
        symbols[at] = length << VALUE | extra << EXTRA;
        length += 1 << extra;
    }
    // The longest has no extra bits.
    symbols[at + 1] = 258 << VALUE;
    symbols
};

const DISTANCE_SYMBOLS: [u32; DISTANCES] = {
    let mut symbols = [OTHER; DISTANCES];
    let mut distance = 1;
    let mut at = 0;
    while at < MOST_DISTANCES {
        let extra = if at < 4 { 0 } else { (at as u32 - 2) / 2 };
        symbols[at] = distance << VALUE | extra << EXTRA;
        distance += 1 << extra;
        at += 1;
    }
    symbols
};

/// The codes of a block.
pub(super) struct Tables {
    /// Whether they are those that need no description.
    are_fixed: bool,
    pub(super) literals: Box<[u32; LITERAL_ENTRIES]>,
    pub(super) distances: Box<[u32; DISTANCE_ENTRIES]>,
}

impl Default for Tables {
    fn default() -> Self {
        let literals = Box::new([OTHER; LITERAL_ENTRIES]);
        Self { are_fixed: false, literals, distances: Box::new([OTHER; DISTANCE_ENTRIES]) }
    }
}

impl Tables {
    /// Sets the codes that need no description.
    pub(super) fn set_fixed(&mut self) {
        if self.are_fixed {
            return;
        }
        let mut lens = Lens { lens: [8; LITERALS + DISTANCES], literals: LITERALS, distances: 32 };
        lens.lens[144..256].fill(9);
        lens.lens[256..280].fill(7);
        lens.lens[LITERALS..].fill(5);
        // These codes are complete.
        self.are_fixed = self.set(&lens).is_ok();
    }

    /// Sets the codes with these lengths.
    pub(super) fn set(&mut self, lens: &Lens) -> Result<(), &'static str> {
        self.are_fixed = false;
        let (literals, distances) = lens.split();
        fill(literals, &LITERAL_SYMBOLS, LITERAL_BITS, &mut self.literals[..])?;
        pair(&mut self.literals[..1 << LITERAL_BITS]);
        fill(distances, &DISTANCE_SYMBOLS, DISTANCE_BITS, &mut self.distances[..])
    }
}

/// Gives entries of a literal a second one if the bits have it.
fn pair(table: &mut [u32]) {
    // The entry for the bits after a code is at a lower place, which has not been paired yet.
    for at in (0..table.len()).rev() {
        let entry = table[at];
        if entry & LITERAL == 0 {
            continue;
        }
        let next = table[at >> taken(entry)];
        let both = taken(entry) + taken(next);
        if next & LITERAL != 0 && both <= LITERAL_BITS {
            let [literal, _] = literals(next);
            table[at] = (entry & !0xff & !(3 << NUMBER))
                | u32::from(literal) << SECOND
                | 2 << NUMBER
                | taken(entry) << FIRST_TAKEN
                | both;
        }
    }
}

/// How many codes have each length. Fails unless the code is complete, empty, or a single code of
/// one bit.
fn counts(lens: &[u8]) -> Result<[u16; MOST_BITS as usize + 1], &'static str> {
    let mut counts = [0; MOST_BITS as usize + 1];
    for &len in lens {
        counts[usize::from(len)] += 1;
    }
    counts[0] = 0;
    let mut left = 1;
    for &count in &counts[1..] {
        left = left * 2 - i32::from(count);
        if left < 0 {
            return Err("more Huffman codes than their lengths allow");
        }
    }
    // zlib takes these two, too, but for a single code of the lengths of codes.
    if left > 0 && counts[2..].iter().any(|&count| count > 0) {
        return Err("fewer Huffman codes than their lengths require");
    }
    Ok(counts)
}

/// Fills a table with the codes of these lengths, each for one of `symbols`.
fn fill(lens: &[u8], symbols: &[u32], bits: u32, table: &mut [u32]) -> Result<(), &'static str> {
    let counts = counts(lens)?;
    let mut places = [0; MOST_BITS as usize + 2];
    for len in 1..=MOST_BITS as usize {
        places[len + 1] = places[len] + usize::from(counts[len]);
    }
    let most = (1..=MOST_BITS).rev().find(|&len| counts[len as usize] > 0).unwrap_or(0);
    let ends = places;
    // The symbols by the length of their codes.
    let mut sorted = [0u16; LITERALS];
    for (symbol, &len) in lens.iter().enumerate().filter(|(_, len)| **len > 0) {
        sorted[places[usize::from(len)]] = symbol as u16;
        places[usize::from(len)] += 1;
    }
    if most <= 1 && counts[1] < 2 {
        table[..1 << bits].fill(OTHER);
        if counts[1] == 1 {
            let only = symbols[usize::from(sorted[0])] | 1;
            table[..1 << bits].iter_mut().step_by(2).for_each(|entry| *entry = only);
        }
        return Ok(());
    }
    let of_len = |len: u32| &sorted[ends[len as usize]..ends[len as usize + 1]];
    // The next code, whose first bit is its highest. Streams have the first bit lowest.
    let mut code = 0u16;
    let reversed = |code: u16, len: u32| usize::from(code.reverse_bits() >> (16 - len));
    for len in 1..=bits {
        if len > 1 {
            table.copy_within(..1 << (len - 1), 1 << (len - 1));
        }
        for &symbol in of_len(len) {
            table[reversed(code, len)] = symbols[usize::from(symbol)] | len;
            code += 1;
        }
        code <<= 1;
    }
    let first = 1 << bits;
    let more = most.saturating_sub(bits);
    let (mut start, mut end, mut prefix) = (first, first, usize::MAX);
    for len in bits + 1..=most {
        for &symbol in of_len(len) {
            let code_bits = reversed(code, len);
            if code_bits & (first - 1) != prefix {
                prefix = code_bits & (first - 1);
                start = end;
                end += 1 << more;
                let place = (start - first) as u32;
                table[prefix] = OTHER | LONGER | place << VALUE | more << EXTRA | bits;
            }
            let places = table[start..end].iter_mut().skip(code_bits >> bits);
            let entry = symbols[usize::from(symbol)] | (len - bits);
            places.step_by(1 << (len - bits)).for_each(|place| *place = entry);
            code += 1;
        }
        code <<= 1;
    }
    Ok(())
}

/// The lengths of the codes of a block.
pub(super) struct Lens {
    lens: [u8; LITERALS + DISTANCES],
    literals: usize,
    distances: usize,
}

/// The order of the lengths of the codes that the lengths are written in.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Bits of the longest of these codes.
const LEN_BITS: u32 = 7;

impl Lens {
    /// Of literals and lengths, and of distances.
    fn split(&self) -> (&[u8], &[u8]) {
        let (literals, rest) = self.lens.split_at(self.literals);
        (literals, &rest[..self.distances])
    }

    /// Whether a block of an ordinary stream has these lengths: all literals that can be, and at
    /// least the code that ends it.
    pub(super) fn are_likely(&self) -> bool {
        let (literals, distances) = self.split();
        let sum = |lens: &[u8]| {
            let used = lens.iter().filter(|len| **len > 0);
            used.map(|len| 1u32 << (MOST_BITS - u32::from(*len))).sum::<u32>()
        };
        literals[END_OF_BLOCK] > 0 && sum(literals) == 1 << MOST_BITS && counts(distances).is_ok()
    }

    /// Reads the description of the codes of a block. `None` if it goes on after the bits.
    pub(super) fn read(bits: &mut Bits<'_>) -> Result<Option<Self>, Fault> {
        if bits.left() < 14 {
            return Ok(None);
        }
        let at = bits.at;
        let fault = |at: usize, found: String, expected: &'static str| {
            Err(Fault::new(at / 8, found, expected))
        };
        let head = bits.peek() as usize;
        let (literals, distances) = ((head & 31) + 257, (head >> 5 & 31) + 1);
        if literals > MOST_LITERALS {
            return fault(at, format!("{literals} codes of literals and lengths"), "at most 286");
        }
        if distances > MOST_DISTANCES {
            return fault(at, format!("{distances} codes of distances"), "at most 30");
        }
        let number = (head >> 10 & 15) + 4;
        bits.at += 14;
        if bits.left() < 3 * number {
            return Ok(None);
        }
        let mut len_lens = [0; ORDER.len()];
        let mut packed = bits.peek();
        for &symbol in &ORDER[..number] {
            len_lens[symbol] = (packed & 7) as u8;
            packed >>= 3;
        }
        bits.at += 3 * number;
        let mut table = [OTHER; 1 << LEN_BITS];
        let symbols: [u32; ORDER.len()] = std::array::from_fn(|symbol| (symbol as u32) << VALUE);
        if let Err(found) = fill(&len_lens, &symbols, LEN_BITS, &mut table) {
            return fault(at, found.into(), "the lengths of all codes");
        }
        let mut lens = [0; LITERALS + DISTANCES];
        let all = literals + distances;
        let mut done = 0;
        while done < all {
            let next = bits.peek();
            let entry = table[next as usize & ((1 << LEN_BITS) - 1)];
            let len = taken(entry);
            let after = next >> len;
            let (extra, value, times) = match value(entry) {
                _ if entry & OTHER != 0 => (0, None, 0),
                16 => (2, done.checked_sub(1).map(|last| lens[last]), 3 + (after & 3)),
                17 => (3, Some(0), 3 + (after & 7)),
                18 => (7, Some(0), 11 + (after & 127)),
                len => (0, Some(len as u8), 1),
            };
            if bits.left() < (len + extra) as usize || (entry & OTHER != 0 && bits.left() < 7) {
                return Ok(None);
            }
            let Some(value) = value else {
                let found = match entry & OTHER {
                    0 => "a repetition before the first length of a code",
                    _ => "bits that are no code of a length",
                };
                return fault(bits.at, found.into(), "a length of a code");
            };
            let Some(places) = lens[..all].get_mut(done..done + times as usize) else {
                return fault(bits.at, "more lengths of codes".into(), "as many as described");
            };
            places.fill(value);
            done += times as usize;
            bits.at += (len + extra) as usize;
        }
        // What follows the codes of literals and lengths are those of distances.
        Ok(Some(Self { lens, literals, distances }))
    }
}
