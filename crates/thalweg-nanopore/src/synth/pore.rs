//! What the pore does: the current of every 9-mer, its noise, and how long a base stays.

use thalweg_io::random::{hash01, quantile};

use super::Recipe;

/// Bases that the pore feels at once, and the number of words that they form.
const WORD: usize = 9;
const WORDS: usize = 1 << (2 * WORD);
/// Keeps the newest `WORD` bases.
pub(crate) const WORD_MASK: usize = WORDS - 1;

/// How much each base of the word weighs: the narrow part of the pore holds the middle. The sum
/// over the shared bases is what makes neighbouring levels alike, as they are in real signal.
const WEIGHTS: [f64; WORD] = [0.10, 0.15, 0.30, 0.65, 1.00, 0.75, 0.40, 0.20, 0.10];

/// The order of the four bases at each place, as a number that is xored in. It does not follow from
/// the seed, for it decides how far the level moves from one word to the next: another seed is
/// another pore of the same kind.
const TURNS: [usize; WORD] = [1, 1, 2, 2, 3, 2, 0, 3, 2];

/// What the weighted sum cannot say about a word, in the sum's own standard deviations.
const PECULIARITY: f64 = 0.35;

/// Entries of the table of normal quantiles, and of that of dwell times: powers of two, and
/// together small enough for the first-level cache.
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
    /// Equally likely times that a base stays, in samples.
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

/// Middles of equally likely slots, scaled to unit variance (the slots at the ends lose a little).
fn normals<const N: usize>() -> Vec<f64> {
    let mut table: Vec<_> = (0..N).map(|k| quantile((k as f64 + 0.5) / N as f64)).collect();
    let sd = (table.iter().map(|z| z * z).sum::<f64>() / N as f64).sqrt();
    table.iter_mut().for_each(|z| *z /= sd);
    table
}

/// Gamma quantiles from normal ones (Wilson and Hilferty), scaled to the mean.
fn dwells(recipe: &Recipe) -> Box<[f32; DWELLS]> {
    let normal = normals::<DWELLS>();
    let k = recipe.dwell_shape;
    let cube = |z: f64| {
        let root = (1.0 - 1.0 / (9.0 * k) + z / (3.0 * k.sqrt())).max(0.02);
        root * root * root
    };
    // A base that stays for no time at all would make a read of endlessly many bases; one that
    // stays for a million samples says no more than one that stays for the whole read.
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
        // Four bases spread evenly; the jitter keeps sums from coinciding.
        for (b, value) in row.iter_mut().enumerate() {
            let rank = (b ^ TURNS[p]) as f64 - 1.5;
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
            sum + PECULIARITY * spread * own
        })
        .collect();
    let mean = raw.iter().sum::<f64>() / WORDS as f64;
    let sd = (raw.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / WORDS as f64).sqrt();
    raw.iter_mut().for_each(|x| *x = (*x - mean) / sd);

    let steps = recipe.digitisation / recipe.range;
    let level = |(word, x): (usize, f64)| {
        // From half the median to about twice, as in ONT's tables of the older pores.
        let u = hash01(recipe.seed, 4, word as u64);
        let noise = 0.55 + 0.7 * u + 0.8 * u * u * u;
        Level {
            current: (x * recipe.level_sd * steps) as f32,
            noise: (noise * recipe.noise_sd * steps) as f32,
        }
    };
    raw.into_iter().enumerate().map(level).collect()
}
