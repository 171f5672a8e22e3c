//! The model of the pore: the current of every 9-mer, its noise, and the time that a base stays.

use thalweg_io::random::{hash01, quantile};

use super::Recipe;

/// The number of bases that affect the current, and the number of words that they form.
const WORD: usize = 9;
const WORDS: usize = 1 << (2 * WORD);
/// Masks a word: keeps the newest `WORD` bases.
pub(crate) const WORD_MASK: usize = WORDS - 1;

/// The weight of each base of the word. The middle of the word lies in the narrow part of the pore
/// and weighs most. Neighbouring words share bases, so their levels are similar, as in real signal.
const WEIGHTS: [f64; WORD] = [0.10, 0.15, 0.30, 0.65, 1.00, 0.75, 0.40, 0.20, 0.10];

/// The order of the four bases at each place of the word, as a number that is combined by exclusive
/// or. It is fixed, because it determines how far the level moves from one word to the next.
/// Another seed gives another pore of the same kind.
const BASE_ORDERS: [usize; WORD] = [1, 1, 2, 2, 3, 2, 0, 3, 2];

/// The part of a word's current that the weighted sum does not give, in standard deviations of the
/// sum.
const OWN_SHARE: f64 = 0.35;

/// The sizes of the tables of normal quantiles and of dwell times: powers of two, so that both
/// tables together fit the first-level cache.
pub(crate) const QUANTILES: usize = 4096;
pub(crate) const DWELLS: usize = 1024;

/// Current and noise of one word, in digitiser steps from the mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Level {
    pub(crate) current: f32,
    pub(crate) noise: f32,
}

/// Tables that depend on the recipe alone.
#[derive(Debug)]
pub(crate) struct PoreTables {
    pub(crate) levels: Box<[Level]>,
    /// Equally likely values of a standard normal variable.
    pub(crate) normal: Box<[f32; QUANTILES]>,
    /// Equally likely times that a base stays in the pore, in samples.
    pub(crate) dwell: Box<[f32; DWELLS]>,
}

impl PoreTables {
    pub(crate) fn new(recipe: &Recipe) -> Self {
        let mut normal = Box::new([0f32; QUANTILES]);
        for (to, from) in normal.iter_mut().zip(normals::<QUANTILES>()) {
            *to = from as f32;
        }
        Self { levels: levels(recipe), normal, dwell: dwells(recipe) }
    }
}

/// Middles of equally likely slots, scaled to unit variance because the end slots lose a little.
fn normals<const N: usize>() -> Vec<f64> {
    let mut table: Vec<_> = (0..N).map(|k| quantile((k as f64 + 0.5) / N as f64)).collect();
    let sd = (table.iter().map(|z| z * z).sum::<f64>() / N as f64).sqrt();
    table.iter_mut().for_each(|z| *z /= sd);
    table
}

/// Gamma quantiles computed from normal ones (Wilson and Hilferty), scaled to the mean.
fn dwells(recipe: &Recipe) -> Box<[f32; DWELLS]> {
    let normal = normals::<DWELLS>();
    let k = recipe.dwell_shape;
    let cube = |z: f64| {
        let root = (1.0 - 1.0 / (9.0 * k) + z / (3.0 * k.sqrt())).max(0.02);
        root * root * root
    };
    // A base that stays for no time would make a read of endlessly many bases. A base that stays
    // for a million samples already fills most reads.
    let mean = (recipe.sample_rate / recipe.bases_per_second).clamp(0.25, 1e6);
    let scale = mean * DWELLS as f64 / normal.iter().map(|&z| cube(z)).sum::<f64>();
    let mut table = Box::new([0f32; DWELLS]);
    for (to, &z) in table.iter_mut().zip(&normal) {
        *to = (cube(z) * scale) as f32;
    }
    table
}

fn levels(recipe: &Recipe) -> Box<[Level]> {
    let mut share = [[0f64; 4]; WORD];
    for (p, (row, weight)) in share.iter_mut().zip(WEIGHTS).enumerate() {
        // Four evenly spaced values. The jitter prevents equal sums.
        for (b, value) in row.iter_mut().enumerate() {
            let rank = (b ^ BASE_ORDERS[p]) as f64 - 1.5;
            *value = weight * (rank + 0.6 * (hash01(recipe.seed, 2, (p * 4 + b) as u64) - 0.5));
        }
    }
    let spread = WEIGHTS.iter().map(|w| w * w).sum::<f64>().sqrt();
    let mut raw: Vec<f64> = (0..WORDS)
        .map(|word| {
            let sum: f64 =
                share.iter().enumerate().map(|(p, row)| row[(word >> (2 * p)) & 3]).sum();
            // Uniform on an interval of unit variance.
            let own = (hash01(recipe.seed, 3, word as u64) - 0.5) * 12f64.sqrt();
            sum + OWN_SHARE * spread * own
        })
        .collect();
    let mean = raw.iter().sum::<f64>() / WORDS as f64;
    let sd = (raw.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / WORDS as f64).sqrt();
    raw.iter_mut().for_each(|x| *x = (*x - mean) / sd);

    let steps = recipe.digitisation / recipe.range;
    let level = |(word, x): (usize, f64)| {
        // From half the median to about twice the median, as in ONT's tables of older pores.
        let u = hash01(recipe.seed, 4, word as u64);
        let noise = 0.55 + 0.7 * u + 0.8 * u * u * u;
        Level {
            current: (x * recipe.level_sd * steps) as f32,
            noise: (noise * recipe.noise_sd * steps) as f32,
        }
    };
    raw.into_iter().enumerate().map(level).collect()
}
