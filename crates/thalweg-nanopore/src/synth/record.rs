//! Everything of a read except its samples: its id, calibration, time and channel.

use std::fmt::Write as _;

use thalweg_codec::splitmix::mix;
use thalweg_io::random::{Chance, hash01};

use super::Recipe;

/// One read. Its buffers are reused from call to call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SynthRead {
    /// A version 4 UUID in its usual form.
    pub read_id: String,
    /// The id as 16 bytes, as POD5 stores it.
    pub uuid: [u8; 16],
    /// The read group (run) that it belongs to.
    pub read_group: u32,
    /// Number of values of the digitiser.
    pub digitisation: f64,
    /// Picoampere = (sample + offset) * (range / digitisation).
    pub offset: f64,
    /// See `offset`.
    pub range: f64,
    /// Samples per second.
    pub sampling_rate: f64,
    /// The samples.
    pub samples: Vec<i16>,
    /// Values of the auxiliary fields.
    pub aux: Aux,
}

/// The auxiliary fields of a BLOW5 file that was converted from a current POD5 file, in their order
/// there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aux {
    /// Channel, 1 to the number of channels, as text.
    pub channel_number: String,
    /// Median current before the read, in picoampere; NaN where unknown.
    pub median_before: f64,
    /// The number of the read in its channel.
    pub read_number: i32,
    /// Well of the channel, 1 to 4.
    pub start_mux: u8,
    /// First sample, counted from the start of the run.
    pub start_time: u64,
    /// Index into [`END_REASONS`](crate::pod5::fields::END_REASONS).
    pub end_reason: u8,
    /// Scaling that the run's software measured: shift.
    pub tracked_scaling_shift: f32,
    /// Scaling that the run's software measured: scale.
    pub tracked_scaling_scale: f32,
    /// Scaling that the run's software predicted: shift.
    pub predicted_scaling_shift: f32,
    /// Scaling that the run's software predicted: scale.
    pub predicted_scaling_scale: f32,
    /// Reads of the channel since it last changed its well.
    pub num_reads_since_mux_change: u32,
    /// Seconds since then.
    pub time_since_mux_change: f32,
    /// Events that the run's software found.
    pub num_minknow_events: u64,
}

/// The random numbers of read `i`.
pub(crate) fn chance(recipe: &Recipe, i: u64) -> Chance {
    Chance::new(recipe.seed, i)
}

/// The length of a read in samples. It is the first value drawn from the read's random numbers.
pub(crate) fn length(recipe: &Recipe, chance: &mut Chance) -> usize {
    let sigma = recipe.length_sigma;
    // The mean of a log-normal variable is exp(sigma^2 / 2) times its median.
    let length = recipe.mean_length * libm::exp(sigma * chance.normal() - 0.5 * sigma * sigma);
    // The cast saturates.
    (length.round() as u32).clamp(recipe.min_length, recipe.max_length) as usize
}

/// Fills all fields except the samples. Returns the remaining random numbers, and the number of
/// samples.
pub(crate) fn describe(recipe: &Recipe, i: u64, read: &mut SynthRead) -> (Chance, usize) {
    let mut chance = chance(recipe, i);
    let len = length(recipe, &mut chance);

    let id =
        (u128::from(chance.bits()) << 64 | u128::from(chance.bits())) & !(0xf << 76) & !(0x3 << 62);
    read.uuid = (id | 0x4 << 76 | 0x2 << 62).to_be_bytes();
    hyphenated(&read.uuid, &mut read.read_id);

    read.read_group = (chance.bits() % u64::from(recipe.read_groups)) as u32;
    read.digitisation = recipe.digitisation;
    read.range = recipe.range;
    read.sampling_rate = recipe.sample_rate;

    // Each round gives one read to every channel. The multiplier scatters consecutive reads over
    // the flow cell.
    let channels = u64::from(recipe.channels);
    let round = i / channels;
    let place = i % channels;
    let channel = (u128::from(place) * u128::from(coprime(channels)) % u128::from(channels)) as u64;
    let jitter = |purpose| hash01(recipe.seed, purpose, channel) - 0.5;
    // The offset belongs to the channel, so it is the same in all reads of the channel.
    read.offset = (recipe.offset + 30.0 * jitter(5)).round();

    let aux = &mut read.aux;
    aux.channel_number.clear();
    // Writing to a String cannot fail.
    let _ = write!(aux.channel_number, "{}", channel + 1);
    aux.median_before = if chance.unit() < 0.03 {
        f64::NAN
    } else {
        f64::from((recipe.open_pore + 12.0 * chance.normal()) as f32)
    };
    // Only a third of the read numbers occur. The run's software gives the others to signal that it
    // takes for noise.
    aux.read_number = (round.wrapping_mul(3).wrapping_add(chance.bits() % 3) & 0x7fff_ffff) as i32;
    aux.start_mux = 1 + (mix(recipe.seed ^ channel ^ (round / 100) << 32) % 4) as u8;
    // Reads occupy a channel for four fifths of the time.
    let pace = 1.25 * recipe.mean_length.max(1.0);
    aux.start_time =
        (pace * (round as f64 + 0.5 + jitter(6) + 0.2 * (chance.unit() - 0.5))).max(0.0) as u64;
    aux.end_reason = match chance.bits() % 1000 {
        0..8 => 1,
        8..60 => 2,
        60..64 => 3,
        64..66 => 0,
        66..80 => 5,
        _ => 4,
    };
    let shift = recipe.level_mean;
    let scale = 0.7 * recipe.level_sd;
    let mut near = |x: f64, spread: f64| (x * (1.0 + spread * chance.normal())) as f32;
    aux.tracked_scaling_shift = near(shift, 0.1);
    aux.tracked_scaling_scale = near(scale, 0.15);
    aux.predicted_scaling_shift = near(shift, 0.15);
    aux.predicted_scaling_scale = near(scale, 0.25);
    aux.num_reads_since_mux_change = (round % 100) as u32;
    aux.time_since_mux_change =
        ((round % 100) as f64 * pace / recipe.sample_rate) as f32 + near(60.0, 0.2).abs();
    (chance, len)
}

/// A number near 0.618 times `n` that shares no factor with `n`, so that its multiples visit all
/// residues.
fn coprime(n: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = (n as f64 * 0.618) as u64;
    (start.max(1)..=n.max(1)).find(|&m| gcd(m, n) == 1).unwrap_or(1)
}

fn hyphenated(uuid: &[u8; 16], text: &mut String) {
    text.clear();
    for (k, byte) in uuid.iter().enumerate() {
        if matches!(k, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}
