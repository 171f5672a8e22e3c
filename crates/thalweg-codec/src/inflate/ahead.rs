//! Decompression from the middle of a stream (Knespel and Brunst 2023,
//! doi:10.1145/3588195.3592992).
//!
//! A block with codes of its own is recognized by its description, which few other bits could be.
//! What its matches copy from before it is not known, so that the text has places in its stead.

use super::bits::Bits;
use super::tables::Lens;
use super::{Inflater, Stop, Text, WINDOW};

/// Symbols from here on are places before the text: this one is [`WINDOW`] bytes before it.
const PLACE: usize = 1 << 15;
/// The fewest symbols of room.
const LEAST_ROOM: usize = 1 << 16;
/// What a false find costs: symbols that are decompressed in the time in which its tables are made.
const FIND_COST: usize = 1 << 12;

/// Some blocks of a stream, decompressed without what comes before them.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Places, then bytes and places, then room.
    symbols: Vec<u16>,
    /// Where the room starts.
    room: usize,
    /// Where the first block starts and the last one ends, in bits.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the stream ends there.
    pub(crate) is_end: bool,
}

/// Decompresses blocks from the middle of a stream.
#[derive(Default)]
pub(crate) struct AheadInflater {
    inflater: Inflater,
    /// Room that was not used.
    spare: Vec<u16>,
}

impl AheadInflater {
    /// Finds the first block in `bytes`, and decompresses it and those that follow, as far as they
    /// are whole. `None` if no block was found. `symbols` is used for the text and what comes
    /// before it, and grows to `most` symbols if need be.
    ///
    /// The search ends when false finds have cost as much as several times `bytes` would. A file
    /// can be made of blocks that seem to start at every few bytes and never end.
    ///
    /// This may be a false find. It is confirmed only if the block before it ends at `start`.
    pub(crate) fn run(
        &mut self,
        bytes: &[u8],
        most: usize,
        mut symbols: Vec<u16>,
    ) -> Option<Ahead> {
        let places = PLACE as u16..=u16::MAX;
        if symbols.is_empty() {
            symbols = std::mem::take(&mut self.spare);
        }
        if symbols.len() < WINDOW + LEAST_ROOM {
            symbols.resize(WINDOW + LEAST_ROOM, 0);
        }
        symbols.iter_mut().zip(places).for_each(|(symbol, place)| *symbol = place);
        let mut text = Text { symbols, at: WINDOW, start: 0 };
        let mut from = 0;
        let mut budget = 8 * bytes.len() + FIND_COST;
        while let Some(start) = find(bytes, from) {
            self.inflater.reset();
            text.at = WINDOW;
            let mut at = start;
            let mut whole = None;
            let is_end = loop {
                match self.inflater.run(bytes, &mut at, &mut text) {
                    Ok(Stop::Block) => whole = Some((at, text.at)),
                    Ok(Stop::End) => {
                        whole = Some((at, text.at));
                        break true;
                    }
                    Ok(Stop::Room) if text.symbols.len() < most => {
                        let len = (text.symbols.len() * 2).min(most);
                        text.symbols.resize(len, 0);
                    }
                    _ => break false,
                }
            };
            if let Some((end, room)) = whole {
                return Some(Ahead { symbols: text.symbols, room, start, end, is_end });
            }
            from = start + 1;
            let cost = FIND_COST + text.at - WINDOW;
            if cost > budget {
                break;
            }
            budget -= cost;
        }
        self.spare = text.symbols;
        None
    }
}

impl Ahead {
    /// The number of bytes of text.
    pub(crate) fn len(&self) -> usize {
        self.room - WINDOW
    }

    /// Room for other text.
    pub(crate) fn into_symbols(self) -> Vec<u16> {
        self.symbols
    }

    /// Appends the bytes of the text from `from` to `to`. `bytes` has the byte that each symbol
    /// stands for.
    pub(crate) fn append(&self, from: usize, to: usize, known: &Known, out: &mut Vec<u8>) {
        let symbols = &self.symbols[WINDOW + from..WINDOW + to];
        let start = out.len();
        out.resize(start + symbols.len(), 0);
        let (parts, rest) = symbols.as_chunks::<16>();
        let (to_parts, to_rest) = out[start..].as_chunks_mut::<16>();
        for (to, part) in to_parts.iter_mut().zip(parts) {
            let is_known = part.iter().fold(0, |all, symbol| all | symbol) < 256;
            *to = match is_known {
                true => part.map(|symbol| symbol as u8),
                false => part.map(|symbol| known.0[usize::from(symbol)]),
            };
        }
        to_rest.iter_mut().zip(rest).for_each(|(to, &from)| *to = known.0[usize::from(from)]);
    }

    /// The last bytes of the text, or of what comes before it and the text.
    pub(crate) fn window(&self, known: &Known) -> [u8; WINDOW] {
        std::array::from_fn(|at| known.0[usize::from(self.symbols[self.len() + at])])
    }
}

/// The byte that each symbol stands for.
pub(crate) struct Known(Box<[u8; 1 << 16]>);

impl Default for Known {
    fn default() -> Self {
        let mut known = Box::new([0; 1 << 16]);
        known.iter_mut().zip(0..=u8::MAX).for_each(|(known, byte)| *known = byte);
        Self(known)
    }
}

impl Known {
    /// Sets what comes before the text.
    pub(crate) fn set(&mut self, window: &[u8]) {
        self.0[PLACE..].copy_from_slice(window);
    }
}

/// The first bit from `from` on at which a block that is not the last one seems to start, with
/// codes of its own.
fn find(bytes: &[u8], from: usize) -> Option<usize> {
    // What codes of these lengths, four of 3 bits each, weigh. A complete code weighs 128.
    const WEIGHTS: [u16; 1 << 12] = {
        let mut weights = [0; 1 << 12];
        let mut lens = 0;
        while lens < 1 << 12 {
            let mut left = lens;
            while left > 0 {
                if left & 7 != 0 {
                    weights[lens] += 128 >> (left & 7);
                }
                left >>= 3;
            }
            lens += 1;
        }
        weights
    };
    let mut word_at = from / 8;
    let mut skip = from % 8;
    while let Some(word) = bytes.get(word_at..).and_then(|rest| rest.first_chunk::<16>()) {
        let word = u128::from_le_bytes(*word);
        let bit = |place: u32| (word >> place) as u64;
        // Not the last block, of kind 2. HLIT and HDIST are at most 29.
        let kind = !bit(0) & !bit(1) & bit(2);
        let literals = !(bit(4) & bit(5) & bit(6) & bit(7));
        let distances = !(bit(9) & bit(10) & bit(11) & bit(12));
        let mut likely = kind & literals & distances & (u64::MAX << skip);
        skip = 0;
        while likely != 0 {
            let place = likely.trailing_zeros();
            likely &= likely - 1;
            let at = word_at * 8 + place as usize;
            let lens = Bits::new(bytes, at + 3 + 14).peek();
            let number = (word >> (place + 13)) as u64 & 15;
            let lens = lens & ((1 << (3 * (number + 4))) - 1);
            let sum: u16 = (0..5).map(|part| WEIGHTS[(lens >> (12 * part)) as usize & 0xfff]).sum();
            if sum != 128 {
                continue;
            }
            let mut bits = Bits::new(bytes, at + 3);
            if let Ok(Some(lens)) = Lens::read(&mut bits)
                && lens.are_likely()
            {
                return Some(at);
            }
        }
        word_at += 8;
    }
    None
}
