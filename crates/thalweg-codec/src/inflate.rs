//! Decompression of deflate streams (RFC 1951) that come in parts, and of streams whose start is
//! not known.
//!
//! zlib-rs takes 1.5 times as long, libdeflate wants streams whole, and no maintained library can
//! start in the middle of a stream.
#![allow(unsafe_code)] // The loop over symbols checks its bounds once for each few symbols.

mod ahead;
mod bits;
mod tables;

use bits::Bits;
use tables::{
    DISTANCE_BITS, END, LITERAL, LITERAL_BITS, LONGER, Lens, MOST_BITS, OTHER, Tables, extra,
    first, literal_count, literals, taken, value,
};

pub(crate) use ahead::{Ahead, AheadInflater, Known};

use crate::Fault;

/// The longest distance.
pub(crate) const WINDOW: usize = 1 << 15;
/// The longest match.
const MOST_LEN: usize = 258;
/// The most that copying a match writes after it.
const MATCH_SLACK: usize = 32;
/// Room for what the loop over symbols writes before it looks for room again: four entries of two
/// literals, a match, and what copying it writes after it.
const ROOM: usize = 8 + MOST_LEN + MATCH_SLACK;
/// Bytes that the loop over symbols reads before it looks for the end of its input again.
const INPUT: usize = 32;

/// What text is made of: bytes, or bytes and places before the text.
pub(crate) trait Symbol: Copy + Default {
    /// A byte.
    fn literal(byte: u8) -> Self;

    /// Writes the literals of an entry.
    ///
    /// # Safety
    /// There is room for two.
    unsafe fn put(to: *mut Self, literals: [u8; 2]);
}

impl Symbol for u8 {
    fn literal(byte: u8) -> Self {
        byte
    }

    #[inline(always)]
    unsafe fn put(to: *mut Self, literals: [u8; 2]) {
        // SAFETY: as required of the caller.
        unsafe { to.cast::<[u8; 2]>().write_unaligned(literals) };
    }
}

impl Symbol for u16 {
    fn literal(byte: u8) -> Self {
        byte.into()
    }

    #[inline(always)]
    unsafe fn put(to: *mut Self, [first, second]: [u8; 2]) {
        // SAFETY: as required of the caller.
        unsafe { to.cast::<[u16; 2]>().write_unaligned([first.into(), second.into()]) };
    }
}

/// Text, and room for more.
pub(crate) struct Text<T> {
    /// The text, and after it the room.
    pub(crate) symbols: Vec<T>,
    /// Where the room starts.
    pub(crate) at: usize,
    /// Where the text starts. No match reaches beyond it.
    pub(crate) start: usize,
}

impl<T: Symbol> Text<T> {
    fn room(&self) -> usize {
        self.symbols.len() - self.at
    }
}

/// Why decompression stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The next symbol or description is not whole.
    Input,
    /// A match may have no room.
    Room,
    /// A block is over, and another one follows.
    Block,
    /// The last block is over.
    End,
}

/// Decompresses a stream.
#[derive(Default)]
pub(crate) struct Inflater {
    tables: Tables,
    block: Block,
    is_last: bool,
}

/// The block that is decompressed.
#[derive(Default)]
enum Block {
    #[default]
    None,
    /// Bytes of it are left.
    Stored(usize),
    Coded,
}

impl Inflater {
    /// Another stream follows, or another block of any stream.
    pub(crate) fn reset(&mut self) {
        self.block = Block::None;
    }

    /// Decompresses from bit `at` of `bytes` on, up to a stop, and moves `at` past what was
    /// decompressed. After [`Stop::Input`], fewer than 1,024 bytes remain.
    ///
    /// # Errors
    /// What is no deflate stream. Offsets count from the start of `bytes`.
    pub(crate) fn run<T: Symbol>(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        text: &mut Text<T>,
    ) -> Result<Stop, Fault> {
        loop {
            match &mut self.block {
                Block::None => {
                    if !self.start_block(bytes, at)? {
                        return Ok(Stop::Input);
                    }
                }
                Block::Stored(left) => {
                    let rest = &bytes[*at / 8..];
                    let more = (*left).min(rest.len()).min(text.room());
                    let to = &mut text.symbols[text.at..text.at + more];
                    to.iter_mut().zip(rest).for_each(|(to, byte)| *to = T::literal(*byte));
                    text.at += more;
                    *at += 8 * more;
                    *left -= more;
                    if *left == 0 {
                        break;
                    }
                    let has_room = text.room() > 0;
                    return Ok(if has_room { Stop::Input } else { Stop::Room });
                }
                Block::Coded => match self.symbols(bytes, at, text)? {
                    Stop::Block => break,
                    stop => return Ok(stop),
                },
            }
        }
        self.block = Block::None;
        Ok(if self.is_last { Stop::End } else { Stop::Block })
    }

    /// Reads the start of a block. Returns whether it was whole.
    fn start_block(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Fault> {
        let mut bits = Bits::new(bytes, *at);
        if bits.left() < 3 {
            return Ok(false);
        }
        let head = bits.peek();
        bits.at += 3;
        let block = match head >> 1 & 3 {
            0 => {
                bits.at = bits.at.next_multiple_of(8);
                if bits.left() < 32 {
                    return Ok(false);
                }
                let lens = bits.peek();
                let (len, inverse) = (lens as u16, !(lens >> 16) as u16);
                if len != inverse {
                    let found = format!("a stored block of {len} or {inverse} bytes");
                    return Err(Fault::new(bits.at / 8, found, "the same number twice"));
                }
                bits.at += 32;
                Block::Stored(len.into())
            }
            1 => {
                self.tables.set_fixed();
                Block::Coded
            }
            2 => {
                let Some(lens) = Lens::read(&mut bits)? else { return Ok(false) };
                let set = self.tables.set(&lens);
                set.map_err(|found| Fault::new(*at / 8, found, "a Huffman code"))?;
                Block::Coded
            }
            _ => return Err(Fault::new(*at / 8, "a block of kind 3", "a kind from 0 to 2")),
        };
        self.is_last = head & 1 == 1;
        self.block = block;
        *at = bits.at;
        Ok(true)
    }

    /// Decompresses symbols of a block up to its end, or as far as input and room allow.
    fn symbols<T: Symbol>(
        &self,
        bytes: &[u8],
        at: &mut usize,
        text: &mut Text<T>,
    ) -> Result<Stop, Fault> {
        let mut is_whole = true;
        loop {
            if text.room() < ROOM {
                return Ok(Stop::Room);
            }
            if is_whole && *at / 8 + INPUT <= bytes.len() {
                match self.many_symbols(bytes, at, text) {
                    Some(true) => return Ok(Stop::Block),
                    Some(false) => {}
                    // One of them has a defect.
                    None => is_whole = false,
                }
                continue;
            }
            if let Some(stop) = self.symbol(bytes, at, text)? {
                return Ok(stop);
            }
        }
    }

    /// Decompresses a symbol. Returns why it stops, if it does. There is room.
    fn symbol<T: Symbol>(
        &self,
        bytes: &[u8],
        at: &mut usize,
        text: &mut Text<T>,
    ) -> Result<Option<Stop>, Fault> {
        let mut bits = Bits::new(bytes, *at);
        let Some(entry) = lookup(&self.tables.literals[..], LITERAL_BITS, &mut bits)? else {
            return Ok(Some(Stop::Input));
        };
        if entry & LITERAL != 0 {
            for literal in &literals(entry)[..literal_count(entry)] {
                text.symbols[text.at] = T::literal(*literal);
                text.at += 1;
            }
            *at = bits.at;
            return Ok(None);
        }
        if entry & END != 0 {
            *at = bits.at;
            return Ok(Some(Stop::Block));
        }
        let Some(len) = length_or_distance(entry, &mut bits) else { return Ok(Some(Stop::Input)) };
        let Some(entry) = lookup(&self.tables.distances[..], DISTANCE_BITS, &mut bits)? else {
            return Ok(Some(Stop::Input));
        };
        let Some(distance) = length_or_distance(entry, &mut bits) else {
            return Ok(Some(Stop::Input));
        };
        if distance > text.at - text.start {
            return Err(too_far(distance, text.at - text.start, *at));
        }
        for _ in 0..len {
            text.symbols[text.at] = text.symbols[text.at - distance];
            text.at += 1;
        }
        *at = bits.at;
        Ok(None)
    }

    /// Decompresses symbols while there are input and room for several of them. Returns whether the
    /// block is over; `None` if there is a defect, and then `at` and `text` have not moved. There
    /// are [`INPUT`] bytes, and [`ROOM`].
    fn many_symbols<T: Symbol>(
        &self,
        bytes: &[u8],
        at: &mut usize,
        text: &mut Text<T>,
    ) -> Option<bool> {
        assert!(*at / 8 + INPUT <= bytes.len() && text.room() >= ROOM);
        let tables = &self.tables;
        let last_input = bytes.len() - INPUT + 8;
        let last_out = text.symbols.len() - ROOM;
        let out = text.symbols.as_mut_ptr();
        let mut to = text.at;
        let mut from = *at / 8;
        // The low `count` bits of `buffer` come before byte `from`. Those above are of that byte
        // and the next ones, or zero.
        let (mut buffer, mut count) = (0u64, 0u32);
        macro_rules! refill {
            () => {
                // SAFETY: `from` is at most `last_input` and grows by 7 at most in each of the up
                // to two refills that follow a comparison.
                let word = unsafe { bytes.as_ptr().add(from).cast::<[u8; 8]>().read_unaligned() };
                buffer |= u64::from_le_bytes(word) << count;
                from += (63 - count) as usize / 8;
                count |= 56;
            };
        }
        macro_rules! take {
            ($bits:expr) => {
                let bits: u32 = $bits;
                buffer >>= bits & 63;
                count -= bits & 0xff;
            };
        }
        macro_rules! length_or_distance {
            ($entry:expr) => {{
                let extra = extra($entry);
                let number = value($entry) + (buffer as u32 & ((1 << extra) - 1));
                take!(extra);
                number as usize
            }};
        }
        macro_rules! put {
            ($entry:expr) => {
                // SAFETY: `to` is at most `last_out`, and grows by what `ROOM` counts before it is
                // compared again.
                unsafe { T::put(out.add(to), literals($entry)) };
                to += literal_count($entry);
                take!($entry);
            };
        }
        let literal_mask = (1u64 << LITERAL_BITS) - 1;
        let next = |buffer: u64| tables.literals[(buffer & literal_mask) as usize];
        refill!();
        take!(*at as u32 % 8);
        let is_over = loop {
            // There are 49 bits or more the first time, then 56: enough for four codes of 11 bits.
            let mut entry = next(buffer);
            if entry & LITERAL != 0 {
                put!(entry);
                entry = next(buffer);
                if entry & LITERAL != 0 {
                    put!(entry);
                    entry = next(buffer);
                    if entry & LITERAL != 0 {
                        put!(entry);
                        refill!();
                        if from > last_input || to > last_out {
                            break false;
                        }
                        continue;
                    }
                }
            }
            refill!();
            if entry & OTHER != 0 {
                if entry & LONGER != 0 {
                    take!(entry);
                    let place = buffer as u32 & ((1 << extra(entry)) - 1);
                    let place = (1 << LITERAL_BITS) + value(entry) + place;
                    entry = tables.literals[place as usize];
                    if entry & LITERAL != 0 {
                        put!(entry);
                        refill!();
                        if from > last_input || to > last_out {
                            break false;
                        }
                        continue;
                    }
                }
                if entry & END != 0 {
                    count -= taken(entry);
                    break true;
                }
                if entry & OTHER != 0 {
                    return None;
                }
            }
            take!(entry);
            let len = length_or_distance!(entry);
            let mut entry = tables.distances[buffer as usize & ((1 << DISTANCE_BITS) - 1)];
            if entry & OTHER != 0 {
                if entry & LONGER != 0 {
                    take!(entry);
                    let place = buffer as u32 & ((1 << extra(entry)) - 1);
                    let place = (1 << DISTANCE_BITS) + value(entry) + place;
                    entry = tables.distances[place as usize];
                }
                if entry & OTHER != 0 {
                    return None;
                }
            }
            take!(entry);
            let distance = length_or_distance!(entry);
            if distance > to - text.start {
                return None;
            }
            // SAFETY: the match starts in the text, and there is room for the longest.
            unsafe { copy_match(out.add(to), distance, len) };
            to += len;
            refill!();
            if from > last_input || to > last_out {
                break false;
            }
        };
        text.at = to;
        *at = from * 8 - count as usize;
        Some(is_over)
    }
}

/// The entry for the next bits, which are taken; `None` if there are too few.
fn lookup(table: &[u32], bits: u32, from: &mut Bits<'_>) -> Result<Option<u32>, Fault> {
    let mut entry = table[from.peek() as usize & ((1 << bits) - 1)];
    let mut before = 0;
    if entry & (LITERAL | LONGER) == LONGER {
        before = taken(entry);
        let place = (from.peek() >> before) as u32 & ((1 << extra(entry)) - 1);
        entry = table[((1 << bits) + value(entry) + place) as usize];
    }
    if entry & LITERAL != 0 && literal_count(entry) == 2 && from.left() < taken(entry) as usize {
        entry = first(entry);
    }
    let len = (before + taken(entry)) as usize;
    if from.left() < len {
        return Ok(None);
    }
    if entry & (LITERAL | OTHER | END) == OTHER {
        let may_go_on = from.left() < MOST_BITS as usize;
        return if may_go_on { Ok(None) } else { Err(no_code(from.at)) };
    }
    from.at += len;
    Ok(Some(entry))
}

/// The number of an entry and its extra bits, which are taken; `None` if there are too few.
fn length_or_distance(entry: u32, bits: &mut Bits<'_>) -> Option<usize> {
    let extra = extra(entry);
    let more = bits.peek() as u32 & ((1 << extra) - 1);
    (bits.left() >= extra as usize).then(|| bits.at += extra as usize)?;
    Some((value(entry) + more) as usize)
}

fn no_code(at: usize) -> Fault {
    Fault::new(at / 8, "bits that are no Huffman code", "one that the block describes")
}

fn too_far(distance: usize, most: usize, at: usize) -> Fault {
    let found = format!("a match {distance} bytes back");
    Fault::new(at / 8, found, format!("at most {most}, where the text starts"))
}

/// Copies `len` symbols from `distance` before `to` on, which may overlap what is copied.
///
/// # Safety
/// `distance` symbols come before `to`, and there is room for `len` and [`MATCH_SLACK`] symbols.
#[inline(always)]
unsafe fn copy_match<T: Symbol>(to: *mut T, distance: usize, len: usize) {
    /// Symbols that are copied at a time. Most matches are no longer.
    const STEP: usize = 16;
    // SAFETY: as required of the caller. What is copied at a time does not overlap.
    unsafe {
        let from = to.sub(distance);
        if distance >= STEP {
            let mut done = 0;
            loop {
                let part = from.add(done).cast::<[T; STEP]>().read_unaligned();
                to.add(done).cast::<[T; STEP]>().write_unaligned(part);
                done += STEP;
                if done >= len {
                    break;
                }
            }
        } else {
            for place in 0..len {
                to.add(place).write(from.add(place).read());
            }
        }
    }
}
