//! The samples of one read. Bases pass the pore, each base holds the current at the level of its
//! word for a while, and noise is added.

use thalweg_io::random::Chance;

use super::Recipe;
use super::pore::{PoreTables, QUANTILES, WORD_MASK};

/// For each base, 16 equally likely successors. Rough shares of human DNA: A and T are more common,
/// CG is rare.
const NEXT: [[u8; 16]; 4] = [
    [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3],
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3],
    [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3],
];

/// The share of the drift that remains after each base: it lasts for about a hundred bases.
const DRIFT_KEPT: f32 = 0.99;

/// Samples that are made at a time.
const GROUP: usize = 8;

/// Replaces `samples` by `len` new ones and returns the number of bases that passed.
pub(crate) fn fill(
    recipe: &Recipe,
    tables: &PoreTables,
    chance: &mut Chance,
    offset: f64,
    len: usize,
    samples: &mut Vec<i16>,
) -> u64 {
    // Room for the last group, which may extend beyond the read.
    samples.resize(len + GROUP, 0);
    let steps = recipe.digitisation / recipe.range;
    // Pores differ slightly in gain and offset.
    let gain = (1.0 + 0.08 * chance.normal()).clamp(0.7, 1.3) as f32;
    let base = ((recipe.level_mean + 3.0 * chance.normal()) * steps - offset) as f32;
    let drift_sd = (recipe.drift_sd * steps) as f32;
    let slack = (1.0 - DRIFT_KEPT * DRIFT_KEPT).sqrt();

    let mut trace = Trace::new(recipe, tables, samples, len);
    if chance.unit() < recipe.open_pore_share {
        trace.fall(chance, (recipe.open_pore * steps - offset) as f32, base);
    }
    let adapter = recipe.adapter_length * (0.5 + chance.unit());
    // The motor protein slows the adapter down: its bases pass ten times as slowly as those of the
    // strand.
    let slow_until = (trace.at as f64 + adapter) as usize;
    let stall = (recipe.stalls_per_base * 65_536.0) as u64;

    let mut word = chance.bits() as usize & WORD_MASK;
    let mut wander = 0f32;
    let mut bases = 0u64;
    while trace.at < len {
        let bits = chance.bits();
        word = (word << 2 | NEXT[word & 3][(bits & 15) as usize] as usize) & WORD_MASK;
        let level = tables.levels[word];
        wander = DRIFT_KEPT * wander + slack * pick(&tables.normal, bits >> 4);
        let mut stay = pick(&tables.dwell, bits >> 16);
        if trace.at < slow_until {
            stay *= 10.0;
        }
        if bits >> 28 & 0xffff < stall {
            stay *= 5.0 + 35.0 * ((bits >> 44 & 0xff) as f32 / 256.0);
        }
        trace.hold(
            chance,
            base + gain * level.current + drift_sd * wander,
            gain * level.noise,
            stay,
        );
        bases += 1;
    }
    let bounds = trace.bounds;
    samples.truncate(len);
    spikes(recipe, chance, bounds, samples);
    bases
}

/// Least and greatest value of the digitiser. A digitiser with up to 2048 values counts from 0, and
/// a larger one is signed, as in real files.
pub(crate) fn bounds(digitisation: f64) -> (f32, f32) {
    let n = digitisation.floor() as f32;
    if n <= 2048.0 { (0.0, n - 1.0) } else { (-(n / 2.0).floor(), (n / 2.0).floor() - 1.0) }
}

#[inline(always)]
fn pick<const N: usize>(table: &[f32; N], bits: u64) -> f32 {
    table[bits as usize % N]
}

/// The samples written so far, and the state for the next ones.
struct Trace<'a> {
    normal: &'a [f32; QUANTILES],
    /// One group longer than the read.
    out: &'a mut [i16],
    len: usize,
    at: usize,
    /// The part of the current sample that has passed, and the sum of the current over it.
    filled: f32,
    sum: f32,
    /// The noise is a moving average of independent values: `fresh` times the new value plus `kept`
    /// times the previous one.
    fresh: f32,
    kept: f32,
    last: f32,
    bounds: (f32, f32),
}

impl<'a> Trace<'a> {
    fn new(recipe: &Recipe, tables: &'a PoreTables, out: &'a mut [i16], len: usize) -> Self {
        let rho = recipe.noise_correlation;
        let fresh = (0.5 + 0.5 * (1.0 - 4.0 * rho * rho).max(0.0).sqrt()).sqrt();
        let kept = (rho / fresh) as f32;
        let fresh = fresh as f32;
        let bounds = bounds(recipe.digitisation);
        Self {
            normal: &tables.normal,
            out,
            len,
            at: 0,
            filled: 0.0,
            sum: 0.0,
            fresh,
            kept,
            last: 0.0,
            bounds,
        }
    }

    /// Holds the current at `level` for `stay` samples. A sample is the mean of the current over
    /// its time. A sample during which the current steps therefore lies between the levels, as with
    /// a real amplifier.
    #[inline(always)]
    fn hold(&mut self, chance: &mut Chance, level: f32, sd: f32, stay: f32) {
        let rest = 1.0 - self.filled;
        if stay < rest {
            self.sum += level * stay;
            self.filled += stay;
            return;
        }
        let first = self.sum + level * rest;
        let after = stay - rest;
        let whole = after as usize;
        self.run(chance, first, level, sd, whole + 1);
        self.filled = after - whole as f32;
        self.sum = level * self.filled;
    }

    /// Writes `count` samples around `level`, the first of them around `first`, or fewer if there
    /// is no room.
    ///
    /// Whole groups are written, and the next call overwrites the surplus samples. This costs less
    /// than a loop of unpredictable length.
    #[inline(always)]
    fn run(&mut self, chance: &mut Chance, first: f32, level: f32, sd: f32, count: usize) {
        let end = self.len.min(self.at.saturating_add(count));
        let mut levels = [level; GROUP];
        levels[0] = first;
        // values[0] is the last of the group before.
        let mut values = [self.last; GROUP + 1];
        while self.at < end {
            let Some(group) =
                self.out.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<GROUP>())
            else {
                break;
            };
            for four in values[1..].chunks_exact_mut(4) {
                let mut bits = chance.bits();
                for value in four {
                    *value = pick(self.normal, bits);
                    bits >>= 16;
                }
            }
            for k in 0..GROUP {
                let noise = self.fresh * values[k + 1] + self.kept * values[k];
                group[k] = digit(levels[k] + sd * noise, self.bounds);
            }
            let written = GROUP.min(end - self.at);
            self.last = values[written];
            values[0] = self.last;
            levels[0] = level;
            self.at += written;
        }
    }

    /// The current falls from `open` towards `base` as the strand enters.
    fn fall(&mut self, chance: &mut Chance, open: f32, base: f32) {
        let sd = 0.02 * (open - base).abs();
        let mut above = (open - base) * (0.3 + 0.7 * chance.unit() as f32);
        for _ in 0..(1 + chance.bits() % 12) {
            self.run(chance, base + above, base + above, sd, 1);
            above *= 0.65;
        }
    }
}

/// The nearest value of the digitiser.
#[inline(always)]
fn digit(value: f32, (low, high): (f32, f32)) -> i16 {
    // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits. Every processor can
    // do this in vector registers. The bounds are within i16.
    (value.max(low).min(high) + 12_582_912.0).to_bits() as i16
}

/// Adds random spikes to single samples.
fn spikes(recipe: &Recipe, chance: &mut Chance, bounds: (f32, f32), out: &mut [i16]) {
    let expected = recipe.spikes_per_sample * out.len() as f64;
    let count = (expected + chance.unit()) as usize;
    let sd = 3.0 * (recipe.level_sd * recipe.digitisation / recipe.range) as f32;
    for _ in 0..count {
        let at = (chance.unit() * out.len() as f64) as usize;
        let by = sd * chance.normal() as f32;
        if let Some(sample) = out.get_mut(at) {
            *sample = digit(f32::from(*sample) + by, bounds);
        }
    }
}
